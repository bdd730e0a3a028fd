//! Captures the corpus of the fuzz targets anew: makes a network namespace,
//! runs `fuzz/situation.sh` in it while listening, dumps every table, and
//! writes one message of each shape to `fuzz/corpus`.
//!
//! `cargo run -p fingerpost-netlink --example capture`, as root.

#![allow(
    clippy::expect_used,
    reason = "a chore run by hand: it stops at the first thing that is not as it should be"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fingerpost_netlink::attribute::attributes;
use fingerpost_netlink::message::{Message, kind, messages};
use fingerpost_netlink::request::{RouteQuery, get_link_by_name, get_route};
use lab::Netns;
use support::{DUMPS, Kernel};

/// Datagrams kept whole for the walk.
const MAX_DATAGRAMS: usize = 12;
/// Bytes of a datagram that is kept whole at most.
const MAX_DATAGRAM: usize = 4096;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let netns = Netns::new("capture").expect("a namespace");
    let datagrams = netns
        .inside(|| capture(&netns, &root))
        .expect("work inside the namespace");
    let mut shapes: BTreeMap<(&str, Vec<u8>), Vec<u8>> = BTreeMap::new();
    for datagram in &datagrams {
        for message in messages(datagram) {
            let message = message.expect("a sound message");
            if let Some((directory, header)) = home(&message) {
                let shape = shape(&message, header);
                let payload = message.payload.to_vec();
                shapes.entry((directory, shape)).or_insert(payload);
            }
        }
    }
    let corpus = root.join("corpus");
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for ((directory, _), payload) in &shapes {
        write(&corpus, directory, &mut numbers, payload);
    }
    let small = datagrams.iter().filter(|bytes| bytes.len() <= MAX_DATAGRAM);
    for datagram in small.step_by(9).take(MAX_DATAGRAMS) {
        write(&corpus, "messages", &mut numbers, datagram);
    }
}

fn write<'a>(
    corpus: &Path,
    directory: &'a str,
    numbers: &mut BTreeMap<&'a str, usize>,
    bytes: &[u8],
) {
    let number = numbers.entry(directory).or_default();
    let path: PathBuf = corpus.join(directory).join(format!("{number:03}"));
    *number += 1;
    fs::create_dir_all(corpus.join(directory)).expect("the directory");
    fs::write(path, bytes).expect("a file of the corpus");
}

/// Events of the situation being made, then all dumps, then answers.
fn capture(netns: &Netns, root: &Path) -> Vec<Vec<u8>> {
    let mut listener = Kernel::open();
    listener.listen();
    let script = root.join("situation.sh");
    let script = script.to_str().expect("a path in UTF-8");
    netns.run("sh", &[script]).expect("the situation");
    let mut datagrams: Vec<Vec<u8>> = std::iter::from_fn(|| listener.try_receive()).collect();
    let mut kernel = Kernel::open();
    for dump in DUMPS {
        datagrams.extend(kernel.dump(*dump).expect("a dump"));
    }
    let mut questions = Vec::new();
    for (number, address) in ["10.4.0.1", "2001:db8:11::1", "10.13.0.1", "198.18.0.1"]
        .iter()
        .enumerate()
    {
        let address = address.parse().expect("an address");
        get_route(
            address,
            &RouteQuery::default(),
            number as u32,
            &mut questions,
        );
    }
    get_link_by_name("no such link", 9, &mut questions).expect("a short name");
    kernel.send(&questions);
    datagrams.extend((0..5).map(|_| kernel.receive()));
    datagrams
}

/// Directory of a message, and bytes of its header.
fn home(message: &Message<'_>) -> Option<(&'static str, usize)> {
    let bridge = message.payload.first() == Some(&7);
    Some(match message.kind {
        kind::NEWLINK | kind::DELLINK => ("link", 16),
        kind::NEWADDR | kind::DELADDR => ("address", 8),
        kind::NEWNEIGH | kind::DELNEIGH if bridge => ("fdb", 12),
        kind::NEWNEIGH | kind::DELNEIGH => ("neighbour", 12),
        kind::NEWROUTE | kind::DELROUTE => ("route", 12),
        kind::NEWNEXTHOP | kind::DELNEXTHOP => ("nexthop", 8),
        kind::NEWRULE | kind::DELRULE => ("rule", 12),
        _ => return None,
    })
}

/// Messages of one shape have the same family and the same attributes;
/// routes, rules and neighbours also the same type, state and flags, links
/// the same kind.
fn shape(message: &Message<'_>, header: usize) -> Vec<u8> {
    let (head, rest) = message.payload.split_at(header);
    let mut shape = vec![head[0]];
    match message.kind {
        kind::NEWROUTE | kind::DELROUTE => shape.extend_from_slice(&head[7..12]),
        kind::NEWRULE | kind::DELRULE => shape.push(head[7]),
        kind::NEWNEIGH | kind::DELNEIGH => shape.extend_from_slice(&head[8..12]),
        _ => {}
    }
    for (kind, value) in attributes(rest).flatten() {
        shape.extend_from_slice(&kind.to_be_bytes());
        // IFLA_LINKINFO begins with the kind; RTA_MULTIPATH and RTA_METRICS
        // differ by size.
        match (message.kind, kind) {
            (kind::NEWLINK | kind::DELLINK, 18) => shape.extend(value.iter().take(24)),
            (kind::NEWROUTE | kind::DELROUTE, _) => shape.push(value.len() as u8),
            _ => {}
        }
    }
    shape
}
