//! The real tables: what a route and a neighbour cost, each index, a
//! snapshot, and how long a reader waits beside a busy writer.

use std::hint::black_box;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::Random;
use lab::bench::Samples;
use lab::situation::neighbours;
use lab::situation::routes::{self, Family};
use table::row::route::table_id;
use table::{Change, Placement, Reader, Route, Tables, Writer};

use crate::bytes_of;
use crate::clock::{ns_each, stay_on, taken_away_ns};

/// Links of the synthetic routes.
const LINKS: [u32; 4] = [11, 12, 13, 14];
const WHO: &str = "fingerpost";
/// Lookups of each kind.
const LOOKUPS: usize = 100_000;
/// Changes in each of the thousand batches of a second.
const BATCH: usize = 100;
/// How long reader and writer run beside each other.
const RACE: Duration = Duration::from_secs(3);

/// Measures the tables at one size.
pub fn measure(size: usize, samples: &mut Samples) -> Result<()> {
    let rows = routes::rows(Family::V4, size, &LINKS)?;
    let ((writer, ns), bytes) = bytes_of(|| {
        let changes = rows.clone();
        ns_each(size, || {
            let mut writer = Writer::default();
            let put = |row| Change::PutRoute(row, Placement::Last);
            writer.commit(changes.into_iter().map(put)).map(|_| writer)
        })
    });
    let writer = writer?;
    let size_row = size as u64;
    let mut add = |what: &str, metric: &str, value: f64| {
        samples.add(WHO, what, size_row, metric, value);
    };
    let heap = writer.tables().routes.heap_bytes();
    add("routes: load in random order", "ns_per_row", ns);
    add(
        "routes: rows and indexes",
        "bytes_per_row",
        heap as f64 / size as f64,
    );
    let what = "routes: rows, indexes, the writer's own";
    add(what, "bytes_per_row", bytes as f64 / size as f64);
    let tables = writer.tables().clone();
    route_lookups(&rows, &tables, &mut add);
    snapshot(&writer.reader(), &mut add);
    race(writer, &rows, &mut add);
    neighbour_lookups(size, &mut add)
}

fn route_lookups(rows: &[Route], tables: &Tables, add: &mut impl FnMut(&str, &str, f64)) {
    let routes = &tables.routes;
    let mut random = Random::new(5);
    let some: Vec<&Route> = (0..LOOKUPS)
        .map(|_| &rows[random.below(rows.len())])
        .collect();
    let (_, ns) = ns_each(LOOKUPS, || {
        for row in &some {
            black_box(routes.exact(table_id::MAIN, row.prefix).next());
        }
    });
    add("routes: exact prefix", "ns_per_op", ns);
    let (_, ns) = ns_each(LOOKUPS, || {
        for row in &some {
            black_box(routes.matching(table_id::MAIN, row.prefix.addr()).next());
        }
    });
    add("routes: longest match", "ns_per_op", ns);
    let (found, ns) = ns_each(1, || {
        let inside = some.iter().take(10_000);
        inside
            .map(|row| routes.within(table_id::MAIN, row.prefix).count())
            .sum::<usize>()
    });
    add(
        "routes: inside a prefix",
        "ns_per_row",
        ns / found.max(1) as f64,
    );
    let hop = rows[0].body.next_hops.as_slice().first().cloned();
    let gateway = hop.and_then(|hop| hop.gateway);
    let gateway = gateway.unwrap_or(IpAddr::from([0, 0, 0, 0]));
    let (found, ns) = ns_each(1, || routes.via(gateway).count());
    add(
        "routes: by next hop",
        "ns_per_row",
        ns / found.max(1) as f64,
    );
    let (found, ns) = ns_each(1, || routes.over_link(LINKS[0]).count());
    add("routes: by link", "ns_per_row", ns / found.max(1) as f64);
    let (_, ns) = ns_each(rows.len(), || {
        for row in routes.iter_v4() {
            black_box(row);
        }
    });
    add("routes: walk", "ns_per_row", ns);
}

fn snapshot(reader: &Reader, add: &mut impl FnMut(&str, &str, f64)) {
    let (_, ns) = ns_each(LOOKUPS, || {
        for _ in 0..LOOKUPS {
            black_box(reader.snapshot());
        }
    });
    add("snapshot taken and dropped", "ns_per_op", ns);
}

/// One writer at 100,000 changes a second, one reader, each on its core:
/// how long a reader's question takes, from the snapshot to its drop.
fn race(mut writer: Writer, rows: &[Route], add: &mut impl FnMut(&str, &str, f64)) {
    let reader = writer.reader();
    let stop = AtomicBool::new(false);
    let changes = AtomicU64::new(0);
    let start = Instant::now();
    let waits = thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(1);
            write(&mut writer, rows, &stop, &changes);
        });
        let reading = scope.spawn(|| {
            stay_on(0);
            let waits = read(&reader, rows);
            stop.store(true, Ordering::Relaxed);
            waits
        });
        reading.join().unwrap_or_default()
    });
    let reached = changes.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    let what = "question beside a writer";
    add(what, "changes_per_s", reached);
    for (metric, share) in [("p50_us", 0.5), ("p99.9_us", 0.999), ("max_us", 1.0)] {
        add(what, metric, waits.percentile(&waits.wall_ns, share));
        let own = format!("{metric}_own");
        add(what, &own, waits.percentile(&waits.own_ns, share));
    }
}

fn write(writer: &mut Writer, rows: &[Route], stop: &AtomicBool, changes: &AtomicU64) {
    let mut random = Random::new(7);
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..BATCH / 2 {
            let row = &rows[random.below(rows.len())];
            let shared = row.with_body(std::sync::Arc::new(row.body.clone()));
            let put = Change::PutRoute(row.clone(), Placement::Last);
            // The limits are far above what is here.
            let _ = writer.apply(Change::DeleteRoute(shared));
            let _ = writer.apply(put);
        }
        writer.publish();
        changes.fetch_add(BATCH as u64, Ordering::Relaxed);
        due += Duration::from_millis(1);
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// How long each question took.
#[derive(Debug, Default)]
struct Waits {
    wall_ns: Vec<u64>,
    /// Without the time in which another process had the core.
    own_ns: Vec<u64>,
}

fn read(reader: &Reader, rows: &[Route]) -> Waits {
    let mut random = Random::new(9);
    let mut waits = Waits::default();
    let start = Instant::now();
    while start.elapsed() < RACE {
        let address = rows[random.below(rows.len())].prefix.addr();
        let taken = taken_away_ns();
        let asked = Instant::now();
        let tables = reader.snapshot();
        black_box(tables.routes.matching(table_id::MAIN, address).next());
        drop(tables);
        let wall = asked.elapsed().as_nanos() as u64;
        waits.wall_ns.push(wall);
        let taken = taken_away_ns() - taken;
        waits.own_ns.push(wall.saturating_sub(taken));
    }
    waits.wall_ns.sort_unstable();
    waits.own_ns.sort_unstable();
    waits
}

impl Waits {
    /// Microseconds that a share of the questions stayed at or below.
    fn percentile(&self, sorted_ns: &[u64], share: f64) -> f64 {
        let last = sorted_ns.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        sorted_ns.get(at).copied().unwrap_or(0) as f64 / 1_000.0
    }
}

fn neighbour_lookups(size: usize, add: &mut impl FnMut(&str, &str, f64)) -> Result<()> {
    let count = u32::try_from(size).context("more neighbours than addresses")?;
    let rows = neighbours::rows(LINKS[0], count)?;
    let mut shuffled = rows.clone();
    Random::new(11).shuffle(&mut shuffled);
    let (writer, ns) = ns_each(size, || {
        let mut writer = Writer::default();
        let put = shuffled.into_iter().map(Change::PutNeighbour);
        writer.commit(put).map(|_| writer)
    });
    let writer = writer?;
    let table = &writer.tables().neighbours;
    add("neighbours: load in random order", "ns_per_row", ns);
    let heap = table.heap_bytes() as f64 / size as f64;
    add("neighbours: rows and indexes", "bytes_per_row", heap);
    let mut random = Random::new(13);
    let some: Vec<_> = (0..LOOKUPS).map(|_| &rows[random.below(size)]).collect();
    let (_, ns) = ns_each(LOOKUPS, || {
        for row in &some {
            black_box(table.get(&row.key()));
        }
    });
    add("neighbours: by link and address", "ns_per_op", ns);
    let (_, ns) = ns_each(LOOKUPS, || {
        for row in &some {
            black_box(table.by_address(row.address).next());
        }
    });
    add("neighbours: by address", "ns_per_op", ns);
    let (_, ns) = ns_each(LOOKUPS, || {
        for row in &some {
            black_box(table.by_lladdr(row.lladdr).next());
        }
    });
    add("neighbours: by MAC", "ns_per_op", ns);
    let (_, ns) = ns_each(size, || {
        for row in table.iter() {
            black_box(row);
        }
    });
    add("neighbours: walk", "ns_per_row", ns);
    Ok(())
}
