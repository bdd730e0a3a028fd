//! Rows that are sorted for clients of the control socket take what the
//! budget has, and no more, however many there are.
//!
//! The heap is counted by an allocator of this test, so nothing else runs in
//! it at the time.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

use std::alloc::System;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cap::Cap;
use fingerpost_serve::control::client;
use fingerpost_serve::control::protocol::Ask;
use fingerpost_serve::control::server::{Patience, Server};
use fingerpost_serve::namespace::Namespace;
use fingerpost_serve::namespace_service::{DaemonGauges, NamespaceService};
use table::{Change, Link, Phase, Reader, Samples, Source, Status, Writer};
use view::{Filter, Format, Names, Object, Output, Question};

/// Clients that ask at once.
const CLIENTS: usize = 6;
/// Links of the table: more than ten MiB when they are all in memory to be
/// sorted.
const LINKS: u32 = 30_000;
/// Memory for all clients.
const KEPT: usize = 4 << 20;
/// For all answers.
const PATIENCE: Duration = Duration::from_secs(180);

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
        // As text their order is another.
        name: format!("test{index}").into(),
        ..Link::default()
    })
}

/// Counts lines, and looks whether each comes after the one before.
#[derive(Default)]
struct Ordered {
    last: String,
    line: Vec<u8>,
    lines: u32,
}

impl Write for Ordered {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        for octet in octets {
            if *octet != b'\n' {
                self.line.push(*octet);
                continue;
            }
            let row: serde_json::Value = serde_json::from_slice(&self.line)?;
            let name = row["ifname"].as_str().unwrap_or_default().to_owned();
            assert!(self.last < name, "{} {name}", self.last);
            self.last = name;
            self.line.clear();
            self.lines += 1;
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn asks(socket: &Path) -> u32 {
    let question = Question {
        object: Object::Link,
        filter: Filter::default(),
        output: Output {
            format: Format::Ndjson,
            sort: Some("ifname".to_owned()),
            ..Output::default()
        },
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let stream = client::connect(socket).unwrap().unwrap();
        let mut out = Ordered::default();
        let ask = Ask::Question(Box::new(question.clone()));
        match client::ask(&stream, ask, &mut out) {
            Ok(_) => return out.lines,
            // One that waited too long for its turn is told to ask again.
            Err(error) => {
                assert!(error.to_string().contains("ask again"), "{error}");
                assert_eq!(out.lines, 0, "refused after it had begun");
                assert!(Instant::now() < deadline, "no turn came");
            }
        }
    }
}

#[test]
fn sorted_answers_take_no_more_memory_than_all_clients_may() {
    let mut writer = Writer::default();
    writer.commit((1..=LINKS).map(link)).unwrap();
    let namespace = Namespace {
        name: None,
        inode: 1,
        is_others: false,
        source: Arc::new(Fixed(writer.reader())),
        feeder: None,
    };
    let answers = Arc::new(NamespaceService::new(namespace, DaemonGauges::default()));
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let patience = Patience {
        kept: KEPT,
        ..Patience::default()
    };
    let server = Server::new(patience, Names::default());
    let before = HEAP.allocated();
    let mut most = before;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let socket = socket.clone();
            thread::spawn(move || asks(&socket))
        })
        .collect();
    listener.set_nonblocking(true).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !clients.iter().all(thread::JoinHandle::is_finished) {
        assert!(Instant::now() < deadline, "not all were answered");
        server.accept(&listener, &answers);
        most = most.max(HEAP.allocated());
        thread::yield_now();
    }
    for client in clients {
        assert_eq!(client.join().unwrap(), LINKS);
    }
    // With the clients' own ends, in this process too.
    let grown = most - before;
    assert!(grown <= KEPT, "{grown} octets, {KEPT} at most");
    server.stop();
}
