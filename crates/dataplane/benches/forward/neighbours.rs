//! What a neighbour's lookup costs, alone and with a writer, beside a map
//! under a lock.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use fingerpost_dataplane as dataplane;

use dataplane::neighbour::{Adjacency, Key, Kind, Limits, Place, Spot, Table, Writer};
use lab::Random;
use lab::bench::Samples;
use memory::quiescent::{Domain, Section};
use rustix::time::{ClockId, clock_gettime};

use super::{Arguments, progress};

const NEIGHBOURS: u32 = 10_000;
const BATCH: usize = 64;
/// Measurements of each kind in a round.
const SLICES: usize = 4;

pub fn measure(arguments: &Arguments, samples: &mut Samples) -> Result<()> {
    let domain = Domain::new(4);
    let mut writer = Writer::new(&domain, Limits::default());
    let way = |number: u32| {
        let [a, b, c, d] = number.to_be_bytes();
        Adjacency::of_port(Kind::Rewrite, 1, 1_500).with_addresses([2, 0, a, b, c, d], [2; 6])
    };
    let mut locked = HashMap::new();
    for number in 0..NEIGHBOURS {
        let key = Key::v4(1, 0x0a00_0000 + number);
        writer.put_neighbour(key, way(number))?;
        locked.insert(key, way(number));
    }
    writer.settle();
    let locked = RwLock::new(locked);
    let mut random = Random::new(3);
    let keys: Vec<Key> = (0..1 << 16)
        .map(|_| Key::v4(1, 0x0a00_0000 + random.below(NEIGHBOURS as usize) as u32))
        .collect();
    let table = writer.table().clone();
    let time = arguments.time() / 8;
    // Short and often: what else runs on the machine hits all alike.
    for _ in 0..SLICES * arguments.rounds {
        for (readers, writes) in [(1, false), (2, false), (2, true)] {
            let with = if writes {
                ", 10,000 changes a second"
            } else {
                ""
            };
            let mut write = |number| writes && change(&mut writer, way, number);
            for (what, pass) in [
                ("in batches of 64", batches as Pass),
                ("one by one", singly),
            ] {
                let lookup = |done: &AtomicBool, sum: &AtomicU64| -> Result<()> {
                    let mut reader = domain.register()?;
                    let mut online = reader.online();
                    let mut found = 0_u64;
                    while !done.load(Ordering::Relaxed) {
                        for keys in keys.chunks_exact(BATCH) {
                            found += pass(&table, &online.enter(), keys);
                        }
                    }
                    sum.fetch_add(found, Ordering::Relaxed);
                    Ok(())
                };
                let ns = timed(readers, time, lookup, &mut write);
                let what = format!("neighbours {what}, {readers} readers{with}");
                ns.add(samples, "fingerpost", &what);
            }
            if writes {
                continue;
            }
            let lookup = |done: &AtomicBool, sum: &AtomicU64| -> Result<()> {
                let mut found = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    for key in &keys {
                        let map = locked
                            .read()
                            .unwrap_or_else(|poisoned| poisoned.into_inner());
                        found += u64::from(black_box(map.get(key)).is_some());
                    }
                }
                sum.fetch_add(found, Ordering::Relaxed);
                Ok(())
            };
            let ns = timed(readers, time, lookup, &mut |_| false);
            let what = format!("map under a lock, {readers} readers");
            ns.add(samples, "RwLock", &what);
        }
    }
    Ok(())
}

/// Looks up some keys; gives how many were found.
type Pass = fn(&Table, &Section<'_>, &[Key]) -> u64;

/// As the packet path does: each step for all of them, so that what one asks
/// for is there for the next.
fn batches(table: &Table, section: &Section<'_>, keys: &[Key]) -> u64 {
    let Some(keys) = keys.first_chunk::<BATCH>() else {
        return 0;
    };
    let (mut places, mut spots) = ([Place::default(); BATCH], [Spot::default(); BATCH]);
    for (place, key) in places.iter_mut().zip(keys) {
        *place = table.place(*key);
    }
    for (spot, place) in spots.iter_mut().zip(&places) {
        *spot = table.spot(section, *place);
    }
    let mut found = 0;
    for at in 0..BATCH {
        let way = table.neighbour_at(section, keys[at], places[at], spots[at]);
        found += u64::from(black_box(way).is_some());
    }
    found
}

/// Without any of that.
fn singly(table: &Table, section: &Section<'_>, keys: &[Key]) -> u64 {
    let find = |key: &Key| black_box(table.neighbour(section, *key, table.place(*key)));
    keys.iter().map(|key| u64::from(find(key).is_some())).sum()
}

/// One of 10,000 changes a second; whether it was made.
fn change(writer: &mut Writer, way: impl Fn(u32) -> Adjacency, number: u32) -> bool {
    let key = Key::v4(1, 0x0a00_0000 + number % NEIGHBOURS);
    let put = writer.put_neighbour(key, way(number));
    writer.settle();
    thread::sleep(Duration::from_micros(100));
    put.is_ok()
}

/// What each reader needs for a read, ns.
struct Cost {
    /// By the clock.
    wall: f64,
    /// Of its CPU: the machine may be busy.
    cpu: f64,
}

impl Cost {
    fn add(&self, samples: &mut Samples, who: &str, what: &str) {
        let Self { wall, cpu } = self;
        samples.add(who, what, NEIGHBOURS.into(), "ns_per_read", *wall);
        samples.add(who, what, NEIGHBOURS.into(), "cpu_ns_per_read", *cpu);
        progress(&format!("{what}: {wall:.2} ns, of CPU {cpu:.2}"));
    }
}

/// What reads cost; `write` is called as long as it says so.
fn timed(
    readers: usize,
    time: Duration,
    lookup: impl Fn(&AtomicBool, &AtomicU64) -> Result<()> + Sync,
    write: &mut impl FnMut(u32) -> bool,
) -> Cost {
    let (done, sum, cpu) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                let before = cpu_nanos();
                let looked_up = lookup(&done, &sum);
                cpu.fetch_add(cpu_nanos() - before, Ordering::Relaxed);
                looked_up
            });
        }
        let mut number = 0;
        while start.elapsed() < time {
            number += 1;
            if !write(number) {
                thread::sleep(time / 20);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let reads = sum.load(Ordering::Relaxed) as f64;
    Cost {
        wall: start.elapsed().as_secs_f64() * 1e9 * readers as f64 / reads,
        cpu: cpu.load(Ordering::Relaxed) as f64 / reads,
    }
}

/// Time that this thread has run.
fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
