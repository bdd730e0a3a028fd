//! The corpora of the fuzz targets `state_file` and `state_import`. Whatever
//! is in them, nothing panics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

#[path = "../../../fuzz/src/state.rs"]
mod state;

#[test]
fn the_corpora_of_the_fuzz_targets() {
    for file in lab::corpus::files("state_file", 4).unwrap() {
        state::state_file(&file);
    }
    for file in lab::corpus::files("state_import", 4).unwrap() {
        state::state_import(&file);
    }
}
