//! Streams that nobody sent: the corpus of the fuzz target `fpm`, and it
//! with random changes. Whatever is in them, nothing panics.
//!
//! `FINGERPOST_FUZZ_ROUNDS` sets how many changed ones are tried.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod peer;

#[path = "../../../fuzz/src/fpm.rs"]
mod fpm;

use fpm::fpm as stream;
use lab::corpus::{files, try_changed, write_streams};

#[test]
fn the_corpus_and_what_comes_of_it() {
    let corpus = files("fpm", 8).unwrap();
    for file in &corpus {
        stream(file);
    }
    try_changed(&corpus, 2_000, stream);
}

/// Writes the corpus anew: `cargo test -p fingerpost-feed --test corpus --
/// --ignored`.
#[test]
#[ignore = "it writes fuzz/corpus/fpm: cargo test -p fingerpost-feed --test corpus -- --ignored"]
fn write_the_corpus() {
    use peer::{blackhole, by_id, framed, gone, group, new, object, via};
    let told = [
        ("one", vec![new(&via("10.0.0.0/8", 20, "192.0.2.1"))]),
        (
            "by-id",
            vec![
                new(&by_id("10.0.0.0/8", 20, 1)),
                new(&object(1, "192.0.2.1")),
            ],
        ),
        (
            "group",
            vec![
                new(&object(1, "192.0.2.1")),
                new(&object(2, "192.0.2.2")),
                new(&group(7, &[1, 2])),
                new(&by_id("10.0.0.0/8", 20, 7)),
                new(&object(1, "192.0.2.9")),
            ],
        ),
        (
            "blackhole",
            vec![new(&blackhole(3)), new(&by_id("2001:db8::/32", 20, 3))],
        ),
        (
            "replaced",
            vec![
                new(&via("10.0.0.0/8", 20, "192.0.2.1")),
                gone(&via("10.0.0.0/8", 20, "192.0.2.1")),
                new(&via("10.0.0.0/8", 30, "192.0.2.2")),
            ],
        ),
        (
            "gone",
            vec![new(&object(1, "192.0.2.1")), gone(&object(1, "192.0.2.1"))],
        ),
    ];
    let streams = told.map(|(name, messages)| (name, framed(&messages.concat())));
    write_streams("fpm", &streams, |_| true).unwrap();
}
