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

use dataplane::neighbour::{Adjacency, Key, Kind, Limits, Writer};
use lab::Random;
use lab::bench::Samples;
use memory::quiescent::Domain;
use rustix::time::{ClockId, clock_gettime};

use super::{Arguments, progress};

const NEIGHBOURS: u32 = 10_000;
const BATCH: usize = 64;

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
    for _ in 0..arguments.rounds {
        for (readers, writes) in [(1, false), (2, false), (2, true)] {
            let lookup = |done: &AtomicBool, sum: &AtomicU64| -> Result<()> {
                let mut reader = domain.register()?;
                let mut online = reader.online();
                let mut found = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    for keys in keys.chunks(BATCH) {
                        let section = online.enter();
                        let places: [_; BATCH] = std::array::from_fn(|at| table.place(keys[at]));
                        for (key, place) in keys.iter().zip(places) {
                            let way = table.neighbour(&section, *key, place);
                            found += u64::from(black_box(way).is_some());
                        }
                    }
                }
                sum.fetch_add(found, Ordering::Relaxed);
                Ok(())
            };
            let with = if writes {
                ", 10,000 changes a second"
            } else {
                ""
            };
            let ns = timed(readers, arguments.time() / 4, lookup, |number| {
                if writes {
                    let key = Key::v4(1, 0x0a00_0000 + number % NEIGHBOURS);
                    let put = writer.put_neighbour(key, way(number));
                    writer.settle();
                    thread::sleep(Duration::from_micros(100));
                    return put.is_ok();
                }
                false
            });
            let what = format!("neighbour, {readers} readers{with}");
            ns.add(samples, "fingerpost", &what);
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
            let ns = timed(readers, arguments.time() / 4, lookup, |_| false);
            let what = format!("map under a lock, {readers} readers");
            ns.add(samples, "RwLock", &what);
        }
    }
    Ok(())
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
    mut write: impl FnMut(u32) -> bool,
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
