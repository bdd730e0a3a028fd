//! Streams that nobody sent: the corpus of the fuzz target `fpm`, and it
//! with random changes. Whatever is in them, nothing panics.
//!
//! `FINGERPOST_FUZZ_ROUNDS` sets how many changed ones are tried.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod peer;

#[path = "../../../fuzz/src/fpm.rs"]
mod fpm;

use fpm::fpm as stream;
use lab::Random;
use lab::corpus::files;

#[test]
fn the_corpus_and_what_comes_of_it() {
    let corpus = files("fpm", 8).unwrap();
    for file in &corpus {
        stream(file);
    }
    let rounds = std::env::var("FINGERPOST_FUZZ_ROUNDS").ok();
    let rounds: u64 = rounds.and_then(|text| text.parse().ok()).unwrap_or(2_000);
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        let mut bytes = corpus[random.below(corpus.len())].clone();
        for _ in 0..1 + random.below(8) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.number() as u8,
                1 => bytes[at] ^= 1 << random.below(8),
                2 => drop(bytes.drain(at..(at + random.below(9)).min(bytes.len()))),
                _ => bytes
                    .splice(at..at, (0..random.below(9) as u8).rev())
                    .for_each(drop),
            }
            if bytes.is_empty() {
                break;
            }
        }
        stream(&bytes);
    }
}

/// Writes the corpus anew: `cargo test -p fingerpost-feed --test corpus --
/// --ignored`.
#[test]
#[ignore = "a chore: it writes fuzz/corpus/fpm"]
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
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/fpm");
    std::fs::create_dir_all(&directory).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.join(name), bytes).unwrap();
    let mut all = Vec::new();
    for (name, messages) in told {
        let frame = framed(&messages.concat());
        write(name, &frame);
        all.extend(frame);
    }
    write("all", &all);
    // Broken off, and then the same by another connection.
    write("again", &[&all[..], &[9], &all].concat());
}
