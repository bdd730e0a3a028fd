//! Changes, and lookups on one core and on two while a writer changes
//! routes.

use std::sync::Arc;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use fingerpost_fib::{Change4, Reader4, Writer4};
use lab::Random;
use lab::bench::Samples;
use lab::situation::fib::{Family, Route, Stream, table};
use memory::Reserved;
use memory::quiescent::Domain;

use crate::four::{addresses, build, route};
use crate::peer::Peer;
use crate::{Arguments, four, progress};

/// Addresses of a batch.
const BATCH: usize = 64;
/// Changes of a batch.
const CHANGES: usize = 1_000;
/// Longer than other measurements: threads start and stop in it.
const TIMES_LONGER: u64 = 5;

pub fn measure(arguments: &Arguments, samples: &mut Samples) -> Result<()> {
    let size = if arguments.quick { 100_000 } else { 1_000_000 };
    let routes = table(Family::V4, size);
    let size = routes.len() as u64;
    let domain = Domain::new(4);
    let (mut writer, reader, _) = build(&routes, &domain)?;
    let inside = addresses(Stream::Inside, &routes)?;
    let mut peer = match &arguments.peer {
        Some(program) => {
            let directory = tempfile::tempdir()?;
            let streams = [
                addresses(Stream::Uniform, &routes)?,
                addresses(Stream::Inside, &routes)?,
                addresses(Stream::Zipf, &routes)?,
            ];
            let files = four::write_files(directory.path(), &routes, &streams)?;
            Some(Peer::start(program, "rte_fib", &files)?)
        }
        None => None,
    };
    let mut feed = Feed::new(&routes);
    for round in 1..=arguments.rounds {
        progress(&format!("fib: changes, round {round}"));
        let mut add = |who: &str, what: &str, metric: &str, value: f64| {
            samples.add(who, what, size, metric, value);
        };
        let count = 200_000;
        let ns = changes(&mut writer, &mut feed, count, 1)?;
        add("fingerpost", "single changes", "ns_per_op", ns);
        let ns = changes(&mut writer, &mut feed, count, CHANGES)?;
        add("fingerpost", "changes in batches of 1000", "ns_per_op", ns);
        if let Some(peer) = &mut peer {
            add(
                "rte_fib",
                "single changes",
                "ns_per_op",
                peer.change(count)?,
            );
        }
        let (change, withdrawal) = default_route(&mut writer)?;
        add("fingerpost", "a default route added", "wall_ms", change);
        add(
            "fingerpost",
            "a default route withdrawn",
            "wall_ms",
            withdrawal,
        );
        let millis = arguments.millis * TIMES_LONGER;
        for (name, readers, pace) in [
            ("one reader", 1, None),
            ("two readers", 2, None),
            (
                "two readers, 10000 changes a second",
                2,
                Some(Pace::new(10_000, 1)),
            ),
            (
                "one reader, 250000 single changes a second",
                1,
                Some(Pace::new(250_000, 1)),
            ),
            (
                "one reader, 1000000 changes a second in batches",
                1,
                Some(Pace::new(1_000_000, CHANGES)),
            ),
        ] {
            let (ns, made) = race(
                &domain,
                &reader,
                &inside,
                &mut writer,
                &mut feed,
                readers,
                pace,
                millis,
            )?;
            add("fingerpost", &format!("inside, {name}"), "ns_per_op", ns);
            if pace.is_some() {
                add(
                    "fingerpost",
                    &format!("inside, {name}"),
                    "changes_per_s",
                    made,
                );
            }
        }
        for readers in [1, 2] {
            let name = if readers == 1 {
                "one reader"
            } else {
                "two readers"
            };
            let ns = locked(&inside, readers, millis);
            add("RwLock", &format!("inside, {name}"), "ns_per_op", ns);
        }
        add(
            "fingerpost",
            "memory after changes",
            "bytes",
            writer.stats().lookup_bytes as f64,
        );
        add(
            "fingerpost",
            "spread after changes",
            "bytes",
            writer.stats().spread_bytes as f64,
        );
    }
    Ok(())
}

/// Withdrawals and announcements of routes picked at random, each route in
/// turn withdrawn and announced with another next hop.
struct Feed {
    routes: Vec<Route>,
    random: Random,
    withdrawn: Vec<usize>,
}

impl Feed {
    fn new(routes: &[Route]) -> Self {
        Self {
            routes: routes.to_vec(),
            random: Random::new(77),
            withdrawn: Vec::new(),
        }
    }

    fn next(&mut self) -> Change4 {
        let again = self.withdrawn.len() >= CHANGES;
        let at = match again.then(|| self.withdrawn.swap_remove(0)) {
            Some(at) => at,
            None => {
                let at = self.random.below(self.routes.len());
                self.withdrawn.push(at);
                at
            }
        };
        let route = route(&self.routes[at]);
        let next_hop = 1 + (self.random.number() % 200) as u16;
        Change4 {
            prefix: route.prefix,
            len: route.len,
            next_hop: again.then_some(next_hop),
        }
    }

    fn batch(&mut self, count: usize) -> Vec<Change4> {
        (0..count).map(|_| self.next()).collect()
    }
}

fn changes(writer: &mut Writer4, feed: &mut Feed, count: usize, batch: usize) -> Result<f64> {
    let changes = feed.batch(count);
    let start = Instant::now();
    for changes in changes.chunks(batch) {
        writer.apply(changes)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / count as f64)
}

/// ms until a default route is visible everywhere, and gone again.
fn default_route(writer: &mut Writer4) -> Result<(f64, f64)> {
    let mut times = [0.0; 2];
    for (next_hop, time) in [Some(7), None].into_iter().zip(&mut times) {
        let start = Instant::now();
        writer.apply(&[Change4 {
            prefix: 0,
            len: 0,
            next_hop,
        }])?;
        *time = start.elapsed().as_secs_f64() * 1e3;
    }
    writer.reclaim();
    Ok((times[0], times[1]))
}

/// So many changes a second, so many at a time.
#[derive(Clone, Copy)]
struct Pace {
    per_second: u64,
    batch: usize,
}

impl Pace {
    fn new(per_second: u64, batch: usize) -> Self {
        Self { per_second, batch }
    }
}

/// ns for each lookup of all readers together, and the changes made in a
/// second.
#[allow(clippy::too_many_arguments, reason = "one measurement's setting")]
fn race(
    domain: &Arc<Domain>,
    reader: &Reader4,
    addresses: &Reserved<u32>,
    writer: &mut Writer4,
    feed: &mut Feed,
    readers: usize,
    pace: Option<Pace>,
    millis: u64,
) -> Result<(f64, f64)> {
    // Made before: where changes come from is not what is measured.
    let most = pace.map_or(0, |pace| pace.per_second * millis * 2 / 1_000);
    let changes = feed.batch(most as usize + CHANGES);
    let is_done = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let start = Instant::now();
    let mut made = 0;
    std::thread::scope(|scope| -> Result<()> {
        for at in 0..readers {
            let (is_done, done, reader) = (&is_done, &done, reader.clone());
            let mut registered = domain.register()?;
            scope.spawn(move || {
                let mut online = registered.online();
                let mut answers = [0; BATCH];
                let from = at * addresses.len() / readers;
                let batches = addresses[from..].chunks_exact(BATCH);
                let mut batches = batches.chain(addresses[..from].chunks_exact(BATCH)).cycle();
                let mut looked_up = 0;
                while !is_done.load(Ordering::Relaxed) {
                    for addresses in batches.by_ref().take(64) {
                        let section = online.enter();
                        reader.lookup(&section, addresses, &mut answers);
                        std::hint::black_box(&mut answers);
                    }
                    looked_up += 64 * BATCH as u64;
                }
                done.fetch_add(looked_up, Ordering::Relaxed);
            });
        }
        let until = start + Duration::from_millis(millis);
        while Instant::now() < until {
            let Some(pace) = pace else {
                std::thread::sleep(Duration::from_millis(millis));
                continue;
            };
            let due = (start.elapsed().as_secs_f64() * pace.per_second as f64) as usize;
            let due = due.min(changes.len());
            if made + pace.batch <= due {
                for changes in changes[made..due].chunks_exact(pace.batch) {
                    writer.apply(changes)?;
                    made += changes.len();
                }
            } else {
                // Rarely: it wakes on a core that a reader uses.
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        is_done.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((
        seconds * 1e9 / done.load(Ordering::Relaxed) as f64,
        made as f64 / seconds,
    ))
}

/// The same with a lock around a plain array of /24s, taken for each
/// address as the report's kernel did.
fn locked(addresses: &Reserved<u32>, readers: usize, millis: u64) -> f64 {
    let table = RwLock::new(vec![1_u16; 1 << 24]);
    let is_done = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                let mut looked_up = 0;
                while !is_done.load(Ordering::Relaxed) {
                    for address in &addresses[..1 << 12] {
                        if let Ok(table) = table.read() {
                            std::hint::black_box(table[(address >> 8) as usize]);
                        }
                    }
                    looked_up += 1 << 12;
                }
                done.fetch_add(looked_up, Ordering::Relaxed);
            });
        }
        std::thread::sleep(Duration::from_millis(millis));
        is_done.store(true, Ordering::Relaxed);
    });
    start.elapsed().as_secs_f64() * 1e9 / done.load(Ordering::Relaxed) as f64
}
