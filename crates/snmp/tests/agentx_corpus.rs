//! The corpora of the fuzz targets `agentx` and `agentx_master`, replayed
//! through what the targets do: as they are, cut at every length, and with
//! every byte changed.

#![allow(clippy::expect_used, reason = "a test fails by it")]

#[path = "../../../fuzz/src/agentx.rs"]
mod check;
#[path = "../../../fuzz/src/agentx_master.rs"]
mod check_master;

fn replay(target: &str, files: usize, check: fn(&[u8])) {
    for bytes in lab::corpus::files(target, files).expect("the corpus") {
        check(&bytes);
        for at in 0..bytes.len() {
            check(&bytes[..at]);
            let mut changed = bytes.clone();
            for byte in [0, 1, 0x7f, 0xff, bytes[at].wrapping_add(1)] {
                changed[at] = byte;
                check(&changed);
            }
        }
    }
}

#[test]
fn the_corpus_of_a_subagent_and_what_is_near_it() {
    replay("agentx", 9, check::agentx);
}

#[test]
fn the_corpus_of_a_master_and_what_is_near_it() {
    replay("agentx_master", 14, check_master::agentx_master);
}
