//! A few seeds of `cargo xtask soak`: whatever a namespace goes through, the
//! daemon's tables and decisions are the kernel's, by events alone.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

mod common;

use lab::soak::{self, Soak};
use lab::{Netns, skip};

/// Some, and those that have found faults (decision 048).
const SEEDS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8_012, 8_032, 8_037];
const CHANGES: usize = 120;
/// `route get` after each.
const QUESTIONS: usize = 60;

#[test]
fn after_random_changes_the_tables_are_the_kernels() {
    if skip::unless(Netns::new("soak")).is_none() {
        return;
    }
    for seed in SEEDS {
        let soak = Soak {
            program: common::program().to_owned(),
            buffer: if seed % 2 == 0 { 4_096 } else { 1 << 20 },
            questions: QUESTIONS,
            settles: common::PATIENCE,
            scans: false,
        };
        let lines = soak::lines(seed, CHANGES);
        let outcome = soak.run(seed, &lines).unwrap();
        assert!(
            outcome.differences.is_empty(),
            "seed {seed}: {:#?}\n{}",
            outcome.differences,
            soak::script(&lines)
        );
    }
}
