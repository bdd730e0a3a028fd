//! The corpus of the fuzz target `mrt`. Whatever is in it, nothing panics.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../../../fuzz/src/mrt.rs"]
mod mrt;

#[test]
fn the_corpus_of_the_fuzz_target() {
    for file in lab::corpus::files("mrt", 8).unwrap() {
        mrt::mrt(&file);
    }
}
