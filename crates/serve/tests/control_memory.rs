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

use cap::Cap;
use fingerpost_serve::control::client;
use fingerpost_serve::control::protocol::Ask;
use fingerpost_serve::control::server::{Patience, Server};
use fingerpost_serve::namespace::Namespace;
use fingerpost_serve::namespace_service::{DaemonGauges, NamespaceService};
use table::{Change, Link, Phase, Reader, Samples, Source, Status, Writer};
use view::{Filter, Names, Object, Output, Question};

/// Clients that ask at once.
const CLIENTS: usize = 6;
/// Links of the table: 40 MiB when they are sorted all at once.
const LINKS: u32 = 60_000;
/// Memory for all clients.
const KEPT: usize = 8 << 20;

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
    last: Vec<u8>,
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
            assert!(self.last < self.line, "{:?} {:?}", self.last, self.line);
            std::mem::swap(&mut self.last, &mut self.line);
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
            fields: vec!["ifname".to_owned()],
            sort: Some("ifname".to_owned()),
            ..Output::default()
        },
    };
    let stream = client::connect(socket).unwrap().unwrap();
    let mut out = Ordered::default();
    client::ask(&stream, Ask::Question(Box::new(question)), &mut out).unwrap();
    out.lines
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
    // What was the most until now counts as well: the tables were made.
    let most_before = HEAP.max_allocated();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let socket = socket.clone();
            thread::spawn(move || asks(&socket))
        })
        .collect();
    listener.set_nonblocking(true).unwrap();
    while !clients.iter().all(thread::JoinHandle::is_finished) {
        server.accept(&listener, &answers);
        thread::yield_now();
    }
    for client in clients {
        // The header is a line.
        assert_eq!(client.join().unwrap(), LINKS + 1);
    }
    let grown = HEAP.max_allocated().max(most_before) - before;
    // The clients' own ends, in this process too.
    let may = KEPT + CLIENTS * (1 << 20);
    assert!(grown <= may, "{grown} octets, {may} at most");
    server.stop();
}
