//! What clients of HTTP take of memory is what the budget counts: for those
//! who ask nothing, have asked, are slow to ask and slow to take.
//!
//! The heap is counted by an allocator of this test, so nothing else runs in
//! it at the time.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use cap::Cap;
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
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

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
fn settled() -> usize {
    let mut last = HEAP.allocated();
    lab::wait_until(PATIENCE, "a heap that stays as it is", || {
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(30));
            let now = HEAP.allocated();
            let moved = now.abs_diff(last);
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
        lab::wait_until(PATIENCE, "all let in", || {
            (budget.taken() >= CLIENTS * (6 << 10)).then_some(())
        })
        .unwrap();
        let grown = settled().saturating_sub(before);
        let counted = budget.taken();
        assert!(counted >= CLIENTS * (6 << 10), "who {what}: {counted}");
        let of_client = |octets: usize| octets / CLIENTS;
        let told = format!(
            "who {what}: {} octets of heap a client, {} counted",
            of_client(grown),
            of_client(counted)
        );
        assert!(grown <= counted, "{told}");
        drop(clients);
    }
}
