//! Records of feeds that nobody recorded: the corpus of the fuzz target
//! `feed_recording`, and it with random changes. Whatever is in them,
//! nothing panics.
//!
//! `FINGERPOST_FUZZ_ROUNDS` sets how many changed ones are tried.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod peer;

#[path = "../../../fuzz/src/feed_recording.rs"]
mod feed_recording;

use std::fs;
use std::path::Path;

use feed_recording::feed_recording as records;
use lab::bmp::{Peer, initiation};
use lab::corpus::{files, try_changed};
use peer::{by_id, framed, new, object};

#[test]
fn the_corpus_and_what_comes_of_it() {
    let corpus = files("feed_recording", 2).unwrap();
    for file in &corpus {
        records(file);
    }
    try_changed(&corpus, 2_000, records);
}

/// A record: what it is and of which feed, and what it says.
fn record(what: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).unwrap().to_le_bytes();
    [&[what][..], &len, payload].concat()
}

/// What a connection did; `number` as `recording::heard` has it.
fn heard(feed: u8, number: u8, is_state: bool, rest: &[u8]) -> Vec<u8> {
    let head = [&[0; 8][..], &[number, u8::from(is_state), 1, 0, 0, 0]].concat();
    record(feed, &[&head, rest].concat())
}

/// A state that is told, and what was heard while it was and behind it.
fn life(feed: u8, first: &[u8], more: &[u8]) -> Vec<u8> {
    let cut = more.len() / 2;
    [
        record(4 | feed, &[]),
        heard(feed, 4, true, &more[..cut]),
        heard(feed, 1, true, b"127.0.0.1:9"),
        heard(feed, 2, true, first),
        heard(feed, 2, false, &more[cut..]),
        heard(feed, 5, true, b""),
        record(6 | feed, &[]),
        heard(feed, 2, false, more),
        heard(feed, 3, false, b"\x00gone"),
        record(10 | feed, &[]),
        record(12 | feed, &[]),
    ]
    .concat()
}

/// Writes the corpus anew: `cargo test -p fingerpost-feed --test
/// recording_corpus -- --ignored`.
#[test]
#[ignore = "it writes fuzz/corpus/feed_recording: cargo test -p fingerpost-feed --test recording_corpus -- --ignored"]
fn write_the_corpus() {
    let object = new(&object(1, "192.0.2.1"));
    let route = framed(&new(&by_id("10.0.0.0/8", 20, 1)));
    let up = Peer::new([192, 0, 2, 1].into(), 65_001).plain_up();
    let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/feed_recording");
    fs::create_dir_all(&at).unwrap();
    fs::write(at.join("fpm"), life(0, &framed(&object), &route)).unwrap();
    fs::write(at.join("bmp"), life(1, &initiation("edge"), &up)).unwrap();
}
