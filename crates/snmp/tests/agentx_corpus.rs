//! The corpus of the fuzz target `agentx`, replayed through what the target
//! does: as it is, cut at every length, and with every byte changed.

#![allow(clippy::expect_used, reason = "a test fails by it")]

#[path = "../../../fuzz/src/agentx.rs"]
mod check;

#[test]
fn the_corpus_and_what_is_near_it() {
    for bytes in lab::corpus::files("agentx", 9).expect("the corpus") {
        check::agentx(&bytes);
        for at in 0..bytes.len() {
            check::agentx(&bytes[..at]);
            let mut changed = bytes.clone();
            for byte in [0, 1, 0x7f, 0xff, bytes[at].wrapping_add(1)] {
                changed[at] = byte;
                check::agentx(&changed);
            }
        }
    }
}
