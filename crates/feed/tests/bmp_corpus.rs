//! Streams that no router sent: the corpus of the fuzz target `bmp`, and it
//! with random changes. Whatever is in them, nothing panics.
//!
//! `FINGERPOST_FUZZ_ROUNDS` sets how many changed ones are tried.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../../../fuzz/src/bmp.rs"]
mod bmp;

use bmp::bmp as stream;
use ipnet::IpNet;
use lab::bmp::{Peer, flag, message, open, reach_v6, termination, tlv};
use lab::corpus::{files, try_changed, write_streams};
use lab::mrt::Attributes;

#[test]
fn the_corpus_and_what_comes_of_it() {
    let corpus = files("bmp", 10).unwrap();
    for file in &corpus {
        stream(file);
    }
    try_changed(&corpus, 4_000, stream);
}

/// Writes the corpus anew: `cargo test -p fingerpost-feed --test bmp_corpus --
/// --ignored`.
#[test]
#[ignore = "it writes fuzz/corpus/bmp: cargo test -p fingerpost-feed --test bmp_corpus -- --ignored"]
fn write_the_corpus() {
    let peer = Peer::new([192, 0, 2, 1].into(), 65_001);
    let six = Peer {
        kind: 1,
        distinguisher: [0, 0, 0xfd, 0xe8, 0, 0, 0, 7],
        ..Peer::new("2001:db8::2".parse().unwrap(), 70_000)
    };
    let own = Peer::loc_rib(65_000);
    let net = |text: &str| -> IpNet { text.parse().unwrap() };
    let some = [net("10.0.0.0/8"), net("10.1.0.0/16"), net("11.0.0.0/24")];
    let how = Attributes::default()
        .origin(0)
        .as_path(&[(2, vec![65_001, 7]), (1, vec![8, 9])])
        .next_hop([198, 51, 100, 1].into())
        .numbers(0xc0, 8, &[65_001 << 16 | 7]);
    let v6 = reach_v6(how.clone(), six.address, &[net("2001:db8:7::/48")]);
    let paths = open(65_001, &[(1, &[0, 1, 0, 1]), (69, &[0, 1, 1, 3])]);
    let with_id = [&[0, 0][..], &(how.0.len() as u16).to_be_bytes(), &how.0].concat();
    let with_id = lab::mrt::message(2, &[&with_id[..], &[0, 0, 0, 1, 8, 10]].concat());
    let long = how.clone().raw(0xd0, 99, &[7; 60_000]);
    let shut = lab::mrt::message(3, &[6, 2]);
    let told: [(&str, Vec<Vec<u8>>); 10] = [
        (
            "update",
            vec![peer.plain_up(), peer.update(&[], &how, &some)],
        ),
        (
            "tables",
            vec![
                peer.plain_up(),
                peer.with(flag::POST_POLICY).update(&[], &how, &some),
                peer.with(flag::OUT).update(&some, &how, &some[..1]),
                peer.end_of_rib(false),
                peer.end_of_rib(true),
            ],
        ),
        (
            "ipv6",
            vec![
                six.plain_up(),
                six.update(&[], &v6, &[]),
                six.down(1, &shut),
            ],
        ),
        (
            "own",
            vec![own.update(&[], &how, &some), own.down(6, &tlv(3, b"red"))],
        ),
        (
            "add_path",
            vec![peer.up(&paths, &paths), peer.says(&with_id)],
        ),
        (
            "down",
            vec![
                peer.plain_up(),
                peer.update(&[], &how, &some),
                peer.down(4, &[]),
            ],
        ),
        (
            "statistics",
            vec![
                peer.plain_up(),
                peer.end_of_rib(false),
                peer.statistics(&[(0, &[0, 0, 0, 3]), (9, &[0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0])]),
                peer.mirrors(&with_id),
            ],
        ),
        ("termination", vec![termination(1, "bye")]),
        ("unknown", vec![message(99, b"new"), message(0, &[9; 48])]),
        (
            "big_attribute",
            vec![peer.plain_up(), peer.update(&[], &long, &some)],
        ),
    ];
    let streams = told.map(|(name, messages)| (name, messages.concat()));
    let apart = ["termination", "big_attribute"];
    write_streams("bmp", &streams, |name| !apart.contains(&name)).unwrap();
}
