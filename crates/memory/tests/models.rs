//! All interleavings of a small model of what a writer and a reader share:
//! a slot that leads to a block, whose slot leads to a record, both of
//! which are replaced and used again after a grace, in the order of
//! `store` and `v6::records` of `fib`, which has no other part in it: here
//! nothing but this crate is built anew for it.
//!
//! `cargo test --package fingerpost-memory --features model --test models`

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "loom's cells are read and written behind a pointer, and loom fails the model if they race"
)]

use fingerpost_memory::quiescent::{Domain, Grace, Section};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;

/// Records say their answer; blocks have one slot.
struct Table {
    top: AtomicUsize,
    blocks: [AtomicUsize; 2],
    records: [UnsafeCell<usize>; 3],
    domain: Arc<Domain>,
}

impl Table {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            top: AtomicUsize::new(0),
            blocks: [AtomicUsize::new(0), AtomicUsize::new(usize::MAX)],
            records: [10, 0, 0].map(UnsafeCell::new),
            domain: Domain::new(1),
        })
    }

    fn lookup(&self, _section: &Section<'_>) -> usize {
        let block = self.top.load(Ordering::Acquire);
        let record = self.blocks[block].load(Ordering::Acquire);
        // SAFETY: loom fails the model if the writer writes meanwhile.
        self.records[record].with(|record| unsafe { *record })
    }

    fn write(&self, record: usize, answer: usize) {
        // SAFETY: loom fails the model if the reader reads meanwhile.
        self.records[record].with_mut(|record| unsafe { *record = answer });
    }

    fn is_over(&self, grace: Grace) -> bool {
        let is_over = self.domain.is_over(grace);
        if !is_over {
            thread::yield_now();
        }
        is_over
    }
}

mod models {
    use super::*;

    #[test]
    fn a_reader_sees_an_old_or_a_new_answer() {
        // More switches than this between the two find nothing new, and take
        // hours.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let table = Table::new();
            let shared = Arc::clone(&table);
            let reader = thread::spawn(move || {
                let mut registered = shared.domain.register().unwrap();
                let mut seen = 10;
                for _ in 0..2 {
                    let answer = shared.lookup(&registered.enter());
                    assert!(answer >= seen, "{answer} after {seen}");
                    seen = answer;
                }
            });
            // A record takes another's place in the block.
            table.write(1, 11);
            table.blocks[0].store(1, Ordering::Release);
            let first = table.domain.begin();
            // Another block takes the place of this one.
            table.write(2, 12);
            table.blocks[1].store(2, Ordering::Release);
            table.top.store(1, Ordering::Release);
            let second = table.domain.begin();
            // What was taken out is used again once its grace is over.
            if table.is_over(first) {
                table.write(0, 0);
            }
            if table.is_over(second) {
                table.write(1, 0);
                table.blocks[0].store(usize::MAX, Ordering::Relaxed);
            }
            reader.join().unwrap();
        });
    }
}
