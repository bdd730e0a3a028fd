//! What clients of HTTP take of memory is what the budget counts: for those
//! who ask nothing, have asked, are slow to ask and slow to take.
//!
//! The heap is counted by an allocator of this test, so nothing else runs in
//! it at the time.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]
#![allow(unsafe_code, reason = "an allocator that counts has unsafe methods")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;

use fingerpost_serve::budget::Budget;
use fingerpost_serve::http::config::Http;
use fingerpost_serve::http::{BoundSockets, Service};
use fingerpost_serve::namespace::Namespace;
use table::{Change, Link, Phase, Reader, Samples, Source, Status, Writer};
use view::Names;

/// For anything that should happen at once.
const PATIENCE: Duration = Duration::from_secs(60);
/// Clients of a kind.
const CLIENTS: usize = 400;
/// Links of the table: more than a socket takes.
const LINKS: u32 = 60_000;
/// Sizes of allocations are told apart by so many octets.
const STEP: usize = 16;
const STEPS: usize = 8_192;

/// The system's allocator, and what it has given out.
struct Counting;

static LIVE: [AtomicIsize; STEPS] = [const { AtomicIsize::new(0) }; STEPS];
static OCTETS: AtomicIsize = AtomicIsize::new(0);

fn count(size: usize, times: isize) {
    let step = (size.div_ceil(STEP)).min(STEPS - 1);
    LIVE[step].fetch_add(times, Ordering::Relaxed);
    OCTETS.fetch_add(times * size as isize, Ordering::Relaxed);
}

// SAFETY: what the system's allocator promises is passed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations by their size, and octets of all.
struct Heap {
    live: Vec<isize>,
    octets: isize,
}

impl Heap {
    fn now() -> Self {
        let live = LIVE.iter().map(|live| live.load(Ordering::Relaxed));
        Self {
            live: live.collect(),
            octets: OCTETS.load(Ordering::Relaxed),
        }
    }

    /// What came since, the largest part first: size, how many a client.
    fn since(&self, before: &Self) -> String {
        let mut parts = BTreeMap::new();
        for (step, (now, then)) in self.live.iter().zip(&before.live).enumerate() {
            let more = now - then;
            if more > CLIENTS as isize / 2 {
                parts.insert(more * (step * STEP) as isize, (step * STEP, more));
            }
        }
        let parts = parts.iter().rev().take(16);
        let clients = CLIENTS as f64;
        let line = |(_, (size, more)): (&isize, &(usize, isize))| {
            format!(
                "  {size:>6} octets: {:.2} a client\n",
                *more as f64 / clients
            )
        };
        parts.map(line).collect()
    }
}

/// Tables, and nothing that is sampled.
#[derive(Debug)]
struct Fixed(Reader);

impl Source for Fixed {
    fn reader(&self) -> Reader {
        self.0.clone()
    }

    fn status(&self) -> Status {
        Status {
            phase: Phase::Live,
            ..Status::default()
        }
    }

    fn samples(&self) -> Option<&Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        0
    }
}

fn link(index: u32) -> Change {
    Change::PutLink(Link {
        index,
        name: format!("test{index}").into(),
        ..Link::default()
    })
}

/// A service over many links, and where it listens.
fn service(budget: &Arc<Budget>, writer: &mut Writer) -> (Service, SocketAddr) {
    writer.commit((1..=LINKS).map(link)).unwrap();
    let config = Http {
        listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
        ..Http::default()
    };
    let sockets = BoundSockets::open(&config).unwrap();
    let service = Service::start(sockets, Names::default(), Arc::clone(budget)).unwrap();
    let namespace = Namespace {
        name: None,
        inode: 1,
        is_others: false,
        source: Arc::new(Fixed(writer.reader())),
        feeder: None,
    };
    service.set_namespaces([namespace].into_iter());
    let url = service.listening().remove(0);
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    (service, at.parse().unwrap())
}

fn said(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// Takes a short answer whole.
fn took(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = String::new();
    while !text.ends_with("}\n") {
        let mut octets = [0; 1024];
        let read = stream.read(&mut octets).unwrap();
        assert!(read > 0, "{text}");
        text += std::str::from_utf8(&octets[..read]).unwrap();
    }
}

/// What a client does, of each kind.
type Kind = (&'static str, fn(&mut TcpStream));

const KINDS: [Kind; 6] = [
    ("asks nothing", |_| ()),
    ("has asked", |stream| {
        said(stream, &get("/healthz"));
        took(stream);
    }),
    ("has not asked all of it", |stream| {
        said(stream, "GET /v1/links HTTP/1.1\r\nHost: loc");
    }),
    ("takes no rows", |stream| said(stream, &get("/v1/links"))),
    ("takes no page", |stream| {
        said(stream, &get("/v1/links?limit=10000"));
    }),
    ("watches", |stream| said(stream, &get("/v1/changes"))),
];

/// Waits until the heap has stayed as it is for a while: it has no event to
/// wait for.
fn settled() -> Heap {
    let mut last = Heap::now();
    lab::wait_until(PATIENCE, "a heap that stays as it is", || {
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(30));
            let now = Heap::now();
            let moved = (now.octets - last.octets).unsigned_abs();
            last = now;
            if moved > CLIENTS * 16 {
                return None;
            }
        }
        Some(())
    })
    .unwrap();
    last
}

#[test]
fn what_clients_take_is_what_the_budget_counts() {
    fingerpost_serve::descriptors::raise();
    let budget = Budget::new(1 << 30);
    let mut writer = Writer::default();
    let (_service, at) = service(&budget, &mut writer);
    // What is made once.
    let mut first = TcpStream::connect(at).unwrap();
    said(&mut first, &get("/healthz"));
    took(&mut first);
    drop(first);
    for (what, does) in KINDS {
        lab::wait_until(PATIENCE, "nobody to be left", || {
            (budget.taken() == 0).then_some(())
        })
        .unwrap();
        let before = settled();
        let clients: Vec<TcpStream> = (0..CLIENTS)
            .map(|_| {
                let mut stream = TcpStream::connect(at).unwrap();
                does(&mut stream);
                stream
            })
            .collect();
        let now = settled();
        let grown = (now.octets - before.octets) as usize;
        let counted = budget.taken();
        let of_client = |octets: usize| octets / CLIENTS;
        let told = format!(
            "who {what}: {} octets of heap a client, {} counted\n{}",
            of_client(grown),
            of_client(counted),
            now.since(&before)
        );
        println!("{told}");
        assert!(grown <= counted, "{told}");
        drop(clients);
    }
}
