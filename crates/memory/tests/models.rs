//! All interleavings of small models of what threads share.
//!
//! A writer and a reader of `fib`: a slot that leads to a block, whose slot
//! leads to a record, both of which are replaced and used again after a
//! grace, in the order of `store` and `v6::records` of `fib`. Workers of
//! `dataplane` that hand things to one another: rings, and the wakeup of one
//! that rests. Those crates have no other part in it: here nothing but this
//! one is built anew.
//!
//! `cargo test --package fingerpost-memory --features model --test models`

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "loom's cells are read and written behind a pointer, and loom fails the model if they race"
)]

use fingerpost_memory::Wakeup;
use fingerpost_memory::quiescent::{Domain, Grace, Section};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Condvar, Mutex};
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

/// Work on its way from some givers to one taker, each with a ring of its
/// own, as `dataplane::worker::Mesh` has it: the ring is a model here (`rtrb`
/// knows nothing of loom), in the orders that `rtrb` has; the wakeup is the
/// real one.
struct Mesh {
    rings: Vec<Ring>,
    wakeup: Wakeup,
    /// The `eventfd`: whether it is rung, and who waits for that.
    is_rung: Mutex<bool>,
    rung: Condvar,
}

/// Places that are written once each, and how many are.
struct Ring {
    places: [UnsafeCell<usize>; 2],
    written: AtomicUsize,
}

impl Mesh {
    fn of(rings: usize) -> Self {
        let ring = || Ring {
            places: [0, 0].map(UnsafeCell::new),
            written: AtomicUsize::new(0),
        };
        Self {
            rings: (0..rings).map(|_| ring()).collect(),
            wakeup: Wakeup::new(),
            is_rung: Mutex::new(false),
            rung: Condvar::new(),
        }
    }

    fn give(&self, ring: usize, place: usize) {
        let to = &self.rings[ring];
        // SAFETY: loom fails the model if the taker reads meanwhile.
        to.places[place].with_mut(|work| unsafe { *work = place + 1 });
        to.written.store(place + 1, Ordering::Release);
        if self.wakeup.must_wake() {
            *self.is_rung.lock().unwrap() = true;
            self.rung.notify_one();
        }
    }

    /// Takes what has come by all rings; how much that is.
    fn take(&self, taken: &mut [usize]) -> usize {
        let mut sum = 0;
        for (ring, taken) in self.rings.iter().zip(taken) {
            let written = ring.written.load(Ordering::Acquire);
            for place in *taken..written {
                // SAFETY: loom fails the model if a giver writes meanwhile.
                let work = ring.places[place].with(|work| unsafe { *work });
                assert_eq!(work, place + 1, "work is whole");
            }
            sum += written - *taken;
            *taken = written;
        }
        sum
    }

    fn has_nothing(&self, taken: &[usize]) -> bool {
        let mut rings = self.rings.iter().zip(taken);
        rings.all(|(ring, taken)| ring.written.load(Ordering::Acquire) == *taken)
    }

    /// As a worker: works, rests where nothing comes, until all has come. One
    /// that nobody wakes waits for ever here, which loom tells.
    fn work(&self, wanted: usize) {
        let (mut taken, mut came) = (vec![0; self.rings.len()], 0);
        loop {
            came += self.take(&mut taken);
            if came == wanted {
                return;
            }
            if self.wakeup.rests(|| self.has_nothing(&taken)) {
                let mut is_rung = self.is_rung.lock().unwrap();
                while !*is_rung {
                    is_rung = self.rung.wait(is_rung).unwrap();
                }
                // Read, or each rest would end at once from here on.
                *is_rung = false;
            }
            self.wakeup.wakes();
        }
    }
}

/// So many givers, of so many things each.
fn nobody_is_forgotten(givers: usize, things: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let mesh = Arc::new(Mesh::of(givers));
        let giving: Vec<_> = (0..givers)
            .map(|ring| {
                let mesh = Arc::clone(&mesh);
                thread::spawn(move || (0..things).for_each(|thing| mesh.give(ring, thing)))
            })
            .collect();
        mesh.work(givers * things);
        for giver in giving {
            giver.join().unwrap();
        }
    });
}

mod models {
    use super::*;

    #[test]
    fn a_worker_that_rests_is_woken_for_each_thing() {
        nobody_is_forgotten(1, 2);
    }

    #[test]
    fn of_two_that_give_one_wakes_it() {
        nobody_is_forgotten(2, 1);
    }

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
