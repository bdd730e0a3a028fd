//! The corpus of the fuzz targets, replayed through what the targets do: as
//! it is, and with every byte changed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by it, in its helpers as well"
)]

#[path = "../../../fuzz/src/fib.rs"]
mod check;

fn replay(target: &str, check: fn(&[u8])) {
    for bytes in lab::corpus::files(target, 1).unwrap() {
        check(&bytes);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            check(&changed);
        }
    }
}

#[test]
fn fib4_changes() {
    replay("fib4_changes", check::fib4_changes);
}

#[test]
fn fib6_changes() {
    replay("fib6_changes", check::fib6_changes);
}
