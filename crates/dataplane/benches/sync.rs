//! What a read of a shared value costs while a writer changes it, with one
//! reader and more: by quiescent states as `fib` and the neighbours are
//! read, and by what else there is. Asked by `cargo xtask bench sync`, beside
//! liburcu.
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at once")]

mod served;

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::Duration;

use memory::Published;
use memory::quiescent::{Domain, Reader, Section};
use served::{ns_each, serve, stay_on};

/// Reads in a section.
const BATCH: u64 = 32;
const MOST_READERS: usize = 8;
/// From one change to the next: 10,000 a second.
const PAUSE: Duration = Duration::from_micros(100);

fn main() -> io::Result<()> {
    serve(|name, readers, time| {
        let readers = (1..=MOST_READERS).contains(&readers).then_some(readers)?;
        Some(match name {
            "bare" => bare(readers, time),
            "online" => quiescent(readers, |reader, values| {
                let mut online = reader.online();
                ns_each(time, || values.read(&online.enter()))
            }),
            "enter" => quiescent(readers, |reader, values| {
                ns_each(time, || values.read(&reader.enter()))
            }),
            "arc-swap" => arc_swap(readers, time),
            "rwlock" => rwlock(readers, time),
            "mutex" => mutex(readers, time),
            _ => return None,
        })
    })
}

/// The mean of what the readers measure, each on a core of its own, while
/// `change` is called with a number that grows.
fn race(readers: usize, read: impl Fn() -> f64 + Sync, mut change: impl FnMut(u64) + Send) -> f64 {
    let going = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0;
            while going.load(Ordering::Relaxed) {
                turn += 1;
                change(turn);
                thread::sleep(PAUSE);
            }
        });
        let read = &read;
        let threads: Vec<_> = (0..readers)
            .map(|core| {
                scope.spawn(move || {
                    stay_on(core);
                    read()
                })
            })
            .collect();
        let sum: f64 = threads.into_iter().map(|one| one.join().unwrap()).sum();
        going.store(false, Ordering::Relaxed);
        sum / readers as f64
    })
}

/// A batch of reads, each of which `one` does.
#[inline(always)]
fn batch(one: impl Fn() -> u64) -> u64 {
    let mut sum = 0_u64;
    for _ in 0..BATCH {
        sum = sum.wrapping_add(one());
    }
    black_box(sum);
    BATCH
}

/// The floor: nothing says when a place may be reused, so none is.
fn bare(readers: usize, time: Duration) -> f64 {
    let value = AtomicU64::new(0);
    race(
        readers,
        || ns_each(time, || batch(|| value.load(Ordering::Acquire))),
        |turn| value.store(turn, Ordering::Release),
    )
}

/// A cache line of its own for each value.
#[repr(align(128))]
struct Place(AtomicU64);

/// Two places, one of them published: the writer uses the other again when
/// the grace is over.
struct Values {
    published: AtomicUsize,
    places: [Place; 2],
    domain: Arc<Domain>,
}

impl Values {
    #[inline(always)]
    fn read(&self, section: &Section<'_>) -> u64 {
        assert!(section.is_of(&self.domain));
        batch(|| {
            let at = self.published.load(Ordering::Acquire);
            self.places[at % 2].0.load(Ordering::Relaxed)
        })
    }
}

fn quiescent(readers: usize, read: impl Fn(&mut Reader, &Values) -> f64 + Sync) -> f64 {
    let values = Values {
        published: AtomicUsize::new(0),
        places: [Place(AtomicU64::new(0)), Place(AtomicU64::new(0))],
        domain: Domain::new(MOST_READERS),
    };
    let mut waiting = None;
    race(
        readers,
        || read(&mut values.domain.register().unwrap(), &values),
        |turn| {
            // What was unlinked is left alone until its grace is over.
            if waiting.is_some_and(|grace| !values.domain.is_over(grace)) {
                return;
            }
            let next = 1 - values.published.load(Ordering::Relaxed) % 2;
            values.places[next].0.store(turn, Ordering::Relaxed);
            values.published.store(next, Ordering::Release);
            waiting = Some(values.domain.begin());
        },
    )
}

fn arc_swap(readers: usize, time: Duration) -> f64 {
    let value = Published::new(0_u64);
    race(
        readers,
        || ns_each(time, || batch(|| *value.load())),
        |turn| value.store(turn),
    )
}

fn rwlock(readers: usize, time: Duration) -> f64 {
    let value = RwLock::new(0_u64);
    race(
        readers,
        || ns_each(time, || batch(|| *value.read().unwrap())),
        |turn| *value.write().unwrap() = turn,
    )
}

fn mutex(readers: usize, time: Duration) -> f64 {
    let value = Mutex::new(0_u64);
    race(
        readers,
        || ns_each(time, || batch(|| *value.lock().unwrap())),
        |turn| *value.lock().unwrap() = turn,
    )
}
