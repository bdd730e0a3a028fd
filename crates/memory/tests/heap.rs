//! What is freed goes back to the system. The whole heap is looked at, so
//! nothing else runs in this process.

#![cfg(target_env = "gnu")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

use std::fs;

use fingerpost_memory::heap;

const PIECES: usize = 100_000;
const PIECE: usize = 1_000;

/// Anonymous memory of this process.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.unwrap().split_whitespace().next().unwrap();
    kib.parse::<usize>().unwrap() << 10
}

#[test]
fn what_is_freed_is_told_and_given_back() {
    assert!(heap::share_arenas(1));
    let before = heap::usage().unwrap();
    let pieces: Vec<Box<[u8]>> = (0..PIECES).map(|_| vec![1; PIECE].into()).collect();
    let with = heap::usage().unwrap();
    let octets = (PIECES * PIECE) as u64;
    assert!(with.used >= before.used + octets, "{before:?} {with:?}");
    // One in a hundred stays, so that the heap's end does not come down.
    let (left, rest): (Vec<_>, Vec<_>) = pieces
        .into_iter()
        .enumerate()
        .partition(|(at, _)| at % 100 == 99);
    drop(rest);
    let after = heap::usage().unwrap();
    assert!(after.free >= octets / 2, "{after:?}");
    assert_eq!(heap::last_usage(), Some(after));
    let held = resident();
    assert!(heap::give_back());
    let given = held - resident();
    assert!(given >= PIECES * PIECE / 2, "{given} of {held}");
    drop(left);
}
