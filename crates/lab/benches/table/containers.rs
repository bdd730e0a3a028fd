//! Candidates for the container: load, bytes, lookup, walk, and a walk
//! while a writer applies 100,000 changes a second.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::RwLock;

use crossbeam_skiplist::SkipMap;
use imbl::OrdMap;
use lab::Random;
use lab::bench::Samples;
use lab::situation::routes::{Family, prefixes};
use memory::Published;
use table::Ordered;

use crate::bytes_of;
use crate::clock::ns_each;
use crate::race::{self, Shared};

/// The routes' key: sixteen bytes, ordered by table and prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    table: u32,
    address: u32,
    len: u8,
    tos: u8,
    metric: u32,
    ordinal: u16,
}

pub type RowOf = (Key, u32);

/// What every candidate can do.
trait Candidate: Sized {
    const NAME: &'static str;
    fn empty() -> Self;
    fn put(&mut self, key: Key, value: u32);
    fn look_up(&self, key: &Key) -> Option<u32>;
    fn walk(&self) -> u64;
}

/// Measures all candidates at one size.
pub fn measure(size: usize, samples: &mut Samples) {
    let rows = rows(size);
    measure_one::<Ordered<Key, u32>>(&rows, samples);
    measure_one::<BTreeMap<Key, u32>>(&rows, samples);
    measure_one::<OrdMap<Key, u32>>(&rows, samples);
    measure_one::<SkipMap<Key, u32>>(&rows, samples);
    race::<Published<Ordered<Key, u32>>>(&rows, samples);
    race::<RwLock<BTreeMap<Key, u32>>>(&rows, samples);
    race::<Published<OrdMap<Key, u32>>>(&rows, samples);
    race::<SkipMap<Key, u32>>(&rows, samples);
    if size <= 10_000 {
        // A whole copy for each batch: beyond, it publishes a few a second.
        race::<Published<BTreeMap<Key, u32>>>(&rows, samples);
    }
}

/// Keys of synthetic routes, in order.
fn rows(size: usize) -> Vec<RowOf> {
    let made = prefixes(Family::V4, size).unwrap_or_default();
    let mut rows: Vec<RowOf> = (0..)
        .zip(made)
        .map(|(value, prefix)| (key(prefix), value))
        .collect();
    rows.sort_unstable();
    rows
}

fn key(prefix: ipnet::IpNet) -> Key {
    let address = match prefix.network() {
        std::net::IpAddr::V4(address) => address.into(),
        std::net::IpAddr::V6(_) => 0,
    };
    Key {
        table: 254,
        address,
        len: prefix.prefix_len(),
        tos: 0,
        metric: 0,
        ordinal: 0x8000,
    }
}

fn measure_one<C: Candidate>(rows: &[RowOf], samples: &mut Samples) {
    let size = rows.len() as u64;
    let mut add = |what: &str, metric: &str, value: f64| {
        samples.add(C::NAME, what, size, metric, value);
    };
    let ((loaded, ns), bytes) = bytes_of(|| ns_each(rows.len(), || load::<C>(rows)));
    add("load in order", "ns_per_row", ns);
    add(
        "load in order",
        "bytes_per_row",
        bytes as f64 / rows.len() as f64,
    );
    drop(loaded);
    let mut shuffled = rows.to_vec();
    Random::new(1).shuffle(&mut shuffled);
    let ((loaded, ns), bytes) = bytes_of(|| ns_each(rows.len(), || load::<C>(&shuffled)));
    add("load in random order", "ns_per_row", ns);
    add(
        "load in random order",
        "bytes_per_row",
        bytes as f64 / rows.len() as f64,
    );
    let repeats = (200_000 / rows.len()).max(1);
    let (_, ns) = ns_each(shuffled.len() * repeats, || {
        for _ in 0..repeats {
            for (key, _) in &shuffled {
                black_box(loaded.look_up(key));
            }
        }
    });
    add("lookup", "ns_per_op", ns);
    let (_, ns) = ns_each(rows.len() * repeats, || {
        for _ in 0..repeats {
            black_box(loaded.walk());
        }
    });
    add("walk", "ns_per_row", ns);
}

fn load<C: Candidate>(rows: &[RowOf]) -> C {
    let mut container = C::empty();
    for (key, value) in rows {
        container.put(*key, *value);
    }
    container
}

fn race<S: Shared>(rows: &[RowOf], samples: &mut Samples) {
    let outcome = race::run::<S>(rows);
    let size = rows.len() as u64;
    let mut add = |metric: &str, value: f64| {
        samples.add(S::NAME, "walk beside a writer", size, metric, value);
    };
    add("ns_per_row", outcome.ns_per_row);
    add("taken_away_ns_per_row", outcome.taken_away_ns_per_row);
    add("changes_per_s", outcome.changes_per_s);
}

macro_rules! candidate {
    ($type:ty, $name:literal, $empty:expr) => {
        impl Candidate for $type {
            const NAME: &'static str = $name;
            fn empty() -> Self {
                $empty
            }
            fn put(&mut self, key: Key, value: u32) {
                self.insert(key, value);
            }
            fn look_up(&self, key: &Key) -> Option<u32> {
                self.get(key).copied()
            }
            fn walk(&self) -> u64 {
                self.iter().map(|(_, value)| u64::from(*value)).sum()
            }
        }
    };
}

candidate!(Ordered<Key, u32>, "fingerpost", Self::default());
candidate!(BTreeMap<Key, u32>, "std BTreeMap", Self::new());
candidate!(OrdMap<Key, u32>, "imbl OrdMap", Self::new());

impl Candidate for SkipMap<Key, u32> {
    const NAME: &'static str = "crossbeam SkipMap";
    fn empty() -> Self {
        Self::new()
    }
    fn put(&mut self, key: Key, value: u32) {
        self.insert(key, value);
    }
    fn look_up(&self, key: &Key) -> Option<u32> {
        self.get(key).map(|entry| *entry.value())
    }
    fn walk(&self) -> u64 {
        self.iter().map(|entry| u64::from(*entry.value())).sum()
    }
}
