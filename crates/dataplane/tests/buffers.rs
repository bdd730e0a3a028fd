//! Buffers taken, passed on and given back at random by several workers:
//! each is in exactly one place, and all come home.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use fingerpost_dataplane::{Batch, Buffer, Cache, Pool};
use proptest::prelude::*;

/// What a worker does next.
#[derive(Debug, Clone, Copy)]
enum Step {
    FibSync(usize),
    Take,
    Give,
    Clear,
    /// To the cache of another worker.
    Pass(usize),
    /// Dropped like any value.
    Drop,
    /// Another cache for the worker.
    Change,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_usize..200).prop_map(Step::FibSync),
        Just(Step::Take),
        Just(Step::Give),
        Just(Step::Clear),
        (0_usize..200).prop_map(Step::Pass),
        Just(Step::Drop),
        Just(Step::Change),
    ];
    prop::collection::vec(step, 0..60)
}

/// Who has each buffer: 0 for the pool, or a worker's number. The oracle.
struct Owners {
    first: usize,
    stride: usize,
    owners: Vec<AtomicUsize>,
}

impl Owners {
    fn of(pool: &Pool) -> Self {
        let mut batch = Batch::new(pool.capacity());
        let mut cache = pool.cache();
        assert_eq!(cache.fill(&mut batch, pool.capacity()), pool.capacity());
        let places = batch.packets().iter().map(address);
        let first = places.min().unwrap_or(0);
        cache.clear(&mut batch);
        Self {
            first,
            stride: pool.stride_bytes(),
            owners: (0..pool.capacity()).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    fn hand(&self, buffer: &Buffer, from: usize, to: usize) {
        let offset = address(buffer) - self.first;
        assert_eq!(offset % self.stride, 0);
        let before = self.owners[offset / self.stride].swap(to, Ordering::Relaxed);
        assert_eq!(before, from, "a buffer was with two owners");
    }
}

fn address(buffer: &Buffer) -> usize {
    buffer.as_ref().as_ptr().addr()
}

/// A worker that holds buffers, and writes its number into all of them.
struct Worker<'a> {
    number: usize,
    pool: &'a Pool,
    owners: &'a Owners,
    cache: Cache,
    held: Batch,
    next: Sender<Buffer>,
    come: Receiver<Buffer>,
}

impl Worker<'_> {
    fn run(mut self, steps: &[Step]) {
        for step in steps {
            self.step(*step);
            // What another worker had goes back to the pool from here.
            for buffer in self.come.try_iter() {
                self.owners.hand(&buffer, usize::MAX, 0);
                self.cache.give(buffer);
            }
            let number = self.number as u8;
            let packets = self.held.packets().iter();
            assert!(
                packets
                    .map(Buffer::packet)
                    .all(|packet| packet == [number; 9])
            );
        }
        self.leave_all();
        self.cache.clear(&mut self.held);
        // The worker before us may still be passing buffers on.
        drop(self.next);
        for buffer in self.come {
            self.owners.hand(&buffer, usize::MAX, 0);
            self.cache.give(buffer);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::FibSync(count) => {
                let before = self.held.len();
                let came = self.cache.fill(&mut self.held, count);
                assert_eq!(self.held.len(), before + came);
                self.enter(before);
            }
            Step::Take => {
                let before = self.held.len();
                if let Some(buffer) = self.cache.take() {
                    // Without room it goes home by itself.
                    let _ = self.held.push(buffer);
                }
                self.enter(before);
            }
            Step::Give | Step::Drop => {
                let Some(buffer) = self.held.pop() else {
                    return;
                };
                self.owners.hand(&buffer, self.number, 0);
                match step {
                    Step::Give => self.cache.give(buffer),
                    _ => drop(buffer),
                }
            }
            Step::Clear => {
                self.leave_all();
                self.cache.clear(&mut self.held);
            }
            Step::Pass(count) => {
                let from = self.held.len().saturating_sub(count);
                for buffer in self.held.drain_from(from) {
                    self.owners.hand(&buffer, self.number, usize::MAX);
                    self.next.send(buffer).unwrap();
                }
            }
            Step::Change => self.cache = self.pool.cache(),
        }
    }

    /// Buffers from a place on are new here.
    fn enter(&mut self, from: usize) {
        for buffer in &mut self.held.packets_mut()[from..] {
            self.owners.hand(buffer, 0, self.number);
            buffer.set_len(9);
            buffer.packet_mut().fill(self.number as u8);
        }
    }

    fn leave_all(&self) {
        for buffer in self.held.packets() {
            self.owners.hand(buffer, self.number, 0);
        }
    }
}

/// Every buffer is in the pool, once.
fn all_are_home(pool: &Pool) {
    assert_eq!(pool.outstanding(), 0);
    let mut batch = Batch::new(pool.capacity() + 1);
    let mut cache = pool.cache();
    let came = cache.fill(&mut batch, pool.capacity() + 1);
    let places: HashSet<usize> = batch.packets().iter().map(address).collect();
    assert_eq!((came, places.len()), (pool.capacity(), pool.capacity()));
    cache.clear(&mut batch);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_buffer_is_in_one_place_and_all_come_home(
        capacity in 1_usize..700,
        workers in prop::collection::vec(steps(), 1..4),
    ) {
        let pool = Pool::new(capacity, 64).unwrap();
        let owners = Owners::of(&pool);
        let (mut senders, receivers): (Vec<_>, Vec<_>) = workers.iter().map(|_| channel()).unzip();
        senders.rotate_left(1);
        thread::scope(|scope| {
            let ends = senders.into_iter().zip(receivers);
            for ((number, steps), (next, come)) in (1..).zip(&workers).zip(ends) {
                let worker = Worker {
                    number,
                    pool: &pool,
                    owners: &owners,
                    cache: pool.cache(),
                    held: Batch::new(256),
                    next,
                    come,
                };
                scope.spawn(move || worker.run(steps));
            }
        });
        all_are_home(&pool);
    }
}

/// The way of a busy router: one worker only takes, the other only gives,
/// many more times than there are buffers.
#[test]
fn a_stream_from_one_worker_to_another_loses_none() {
    const PACKETS: usize = 300_000;
    let pool = Pool::new(600, 64).unwrap();
    let (left, right) = channel::<Vec<Buffer>>();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut cache = pool.cache();
            let mut batch = Batch::new(32);
            let mut sent = 0;
            while sent < PACKETS {
                if cache.fill(&mut batch, 32) == 0 {
                    thread::yield_now();
                }
                sent += batch.len();
                left.send(batch.drain().collect()).unwrap();
            }
            drop(left);
        });
        let mut cache = pool.cache();
        let mut came = 0;
        for buffers in right {
            came += buffers.len();
            cache.give_all(buffers.into_iter());
        }
        assert!(came >= PACKETS);
    });
    all_are_home(&pool);
    assert_eq!(pool.late_frees(), 0);
}
