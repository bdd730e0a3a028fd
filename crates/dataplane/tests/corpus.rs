//! The corpus of the fuzz target `forward`, replayed through what the target
//! does: as it is, cut at every length, and with bytes changed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by it, in its helpers as well"
)]

// By the names that the target knows them by.
extern crate nat as fingerpost_nat;

#[path = "../../../fuzz/src/forward.rs"]
mod check;

#[test]
fn frames() {
    for bytes in lab::corpus::files("forward", 1).unwrap() {
        check::forward(&bytes);
        for at in 0..bytes.len() {
            check::forward(&bytes[..at]);
            for value in [0, 0xff, bytes[at].wrapping_add(1)] {
                let mut changed = bytes.clone();
                changed[at] = value;
                check::forward(&changed);
            }
        }
    }
}
