//! The corpus of the fuzz target `forward`, replayed through what the target
//! does: as it is, cut at every length, and with bytes changed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by it, in its helpers as well"
)]

use std::fs;
use std::path::Path;

// By the names that the target knows them by.
extern crate memory as fingerpost_memory;
extern crate nat as fingerpost_nat;
extern crate table as fingerpost_table;

#[path = "../../../fuzz/src/forward.rs"]
mod check;

#[test]
fn frames() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/forward");
    let mut files = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        files += 1;
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
    assert!(files > 0, "there is a corpus");
}
