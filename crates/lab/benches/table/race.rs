//! One reader walks, one writer changes, each on its core.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_skiplist::SkipMap;
use imbl::OrdMap;
use lab::Random;
use memory::Published;
use table::Ordered;

use crate::clock::{stay_on, taken_away_ns};
use crate::containers::{Key, RowOf};

/// Changes a second that the writer tries to apply.
const RATE: u64 = 100_000;
/// A batch, and so a publication, for each millisecond.
const BATCH: u64 = RATE / 1_000;
/// How long they race; at least one walk is finished.
const TIME: Duration = Duration::from_millis(600);

/// A container as a reader and a writer share it.
pub trait Shared: Sync {
    const NAME: &'static str;
    fn load(rows: &[RowOf]) -> Self;
    /// Applies a batch: takes each row out and puts it back.
    fn change(&self, batch: &[RowOf]);
    fn walk(&self) -> u64;
}

/// What came of a race.
pub struct Outcome {
    /// Wall time of the reader, for each row walked.
    pub ns_per_row: f64,
    /// Of that, time in which another process or thread had its core.
    pub taken_away_ns_per_row: f64,
    /// What the writer reached.
    pub changes_per_s: f64,
}

/// Lets them race.
pub fn run<S: Shared>(rows: &[RowOf]) -> Outcome {
    let shared = S::load(rows);
    let stop = AtomicBool::new(false);
    let changes = AtomicU64::new(0);
    let start = Instant::now();
    let (walked, reading, taken) = thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(1);
            write(&shared, rows, &stop, &changes);
        });
        let reader = scope.spawn(|| {
            stay_on(0);
            let taken = taken_away_ns();
            let start = Instant::now();
            let mut walks = 0;
            while walks == 0 || start.elapsed() < TIME {
                black_box(shared.walk());
                walks += 1;
            }
            let reading = start.elapsed();
            stop.store(true, Ordering::Relaxed);
            (walks * rows.len(), reading, taken_away_ns() - taken)
        });
        reader.join().unwrap_or_default()
    });
    let walked = walked.max(1) as f64;
    Outcome {
        ns_per_row: reading.as_nanos() as f64 / walked,
        taken_away_ns_per_row: taken as f64 / walked,
        changes_per_s: changes.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64(),
    }
}

fn write<S: Shared>(shared: &S, rows: &[RowOf], stop: &AtomicBool, changes: &AtomicU64) {
    let mut random = Random::new(3);
    let mut due = Instant::now();
    let mut batch = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        batch.clear();
        // Taking out and putting back are two changes.
        batch.extend((0..BATCH / 2).map(|_| rows[random.below(rows.len())]));
        shared.change(&batch);
        changes.fetch_add(BATCH, Ordering::Relaxed);
        due += Duration::from_millis(1);
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

macro_rules! published {
    ($map:ty, $name:literal) => {
        impl Shared for Published<$map> {
            const NAME: &'static str = $name;
            fn load(rows: &[RowOf]) -> Self {
                let mut map = <$map>::default();
                for (key, value) in rows {
                    map.insert(*key, *value);
                }
                Published::new(map)
            }
            fn change(&self, batch: &[RowOf]) {
                let mut map = <$map>::clone(&self.load());
                for (key, value) in batch {
                    map.remove(key);
                    map.insert(*key, *value);
                }
                self.store(map);
            }
            fn walk(&self) -> u64 {
                self.load().iter().map(|(_, value)| u64::from(*value)).sum()
            }
        }
    };
}

published!(Ordered<Key, u32>, "fingerpost");
published!(OrdMap<Key, u32>, "imbl OrdMap");
published!(BTreeMap<Key, u32>, "std BTreeMap copied");

impl Shared for RwLock<BTreeMap<Key, u32>> {
    const NAME: &'static str = "std BTreeMap in RwLock";
    fn load(rows: &[RowOf]) -> Self {
        RwLock::new(rows.iter().copied().collect())
    }
    fn change(&self, batch: &[RowOf]) {
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in batch {
            map.remove(key);
            map.insert(*key, *value);
        }
    }
    fn walk(&self) -> u64 {
        let map = self.read().unwrap_or_else(PoisonError::into_inner);
        map.values().map(|value| u64::from(*value)).sum()
    }
}

/// Walks what changes under it: not one moment.
impl Shared for SkipMap<Key, u32> {
    const NAME: &'static str = "crossbeam SkipMap";
    fn load(rows: &[RowOf]) -> Self {
        rows.iter().copied().collect()
    }
    fn change(&self, batch: &[RowOf]) {
        for (key, value) in batch {
            self.remove(key);
            self.insert(*key, *value);
        }
    }
    fn walk(&self) -> u64 {
        self.iter().map(|entry| u64::from(*entry.value())).sum()
    }
}
