//! The closing wish of the report on SNMP and a full BGP table, made
//! visible: 500,000 and 1,000,000 routes into each container that stood at
//! one time behind the agent, into a ready-made tree, and into ours.
//! `cargo xtask bench container` runs it; it writes the measured rows to
//! standard output as JSON and its progress to standard error.
//!
//! What is quadratic is measured at small sizes, and told for the large
//! ones as `extrapolated_ms`, by its law, from the largest size measured.

use std::collections::{BTreeMap, LinkedList};
use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use lab::bench::Samples;
use lab::situation::routes::{Family, rows};
use table::{Change, Ordered, Placement, Route, Writer};

/// Measures containers for routes.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Up to 100,000 rows only
    #[arg(long)]
    quick: bool,
    /// Handed over by Cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// Table, address, length, metric: what an agent's rows order by.
type Key = (u32, u32, u8, u32);
type Row = (Key, u32);

/// Sizes at which the quadratic ones are measured.
const SMALL: [usize; 3] = [1_000, 4_000, 16_000];

const LOAD: &str = "load in random order, then walk in order";

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let large: &[usize] = if arguments.quick {
        &[100_000]
    } else {
        &[500_000, 1_000_000]
    };
    let mut samples = Samples::default();
    for round in 1..=arguments.rounds {
        progress(&format!("round {round}"));
        for who in [Quadratic::SortedEachTime, Quadratic::NoTail] {
            quadratic(who, large, &mut samples)?;
        }
        for &size in large {
            progress(&format!("round {round}: {size} routes"));
            linear(size, &mut samples)?;
        }
    }
    let rows = serde_json::to_string(&samples.into_rows())?;
    writeln!(io::stdout().lock(), "{rows}").context("writing the rows")
}

/// What costs a pass over all rows for each row.
#[derive(Clone, Copy)]
enum Quadratic {
    /// The array that looks for a duplicate at each insertion and sorts
    /// itself for that.
    SortedEachTime,
    /// The list that is walked to its end at each insertion.
    NoTail,
}

impl Quadratic {
    fn name(self) -> &'static str {
        match self {
            Self::SortedEachTime => "array sorted at each insert",
            Self::NoTail => "list without a tail, then one sort",
        }
    }

    fn load(self, rows: &[Row]) -> u64 {
        match self {
            Self::SortedEachTime => sorted_each_time(rows),
            Self::NoTail => no_tail(rows),
        }
    }

    /// How its time grows: n² log n, and n².
    fn cost(self, size: usize) -> f64 {
        let n = size as f64;
        match self {
            Self::SortedEachTime => n * n * n.ln(),
            Self::NoTail => n * n,
        }
    }
}

fn quadratic(who: Quadratic, large: &[usize], samples: &mut Samples) -> Result<()> {
    let mut last = (0, 0.0);
    for size in SMALL {
        let rows = routes(size)?.iter().map(row).collect::<Vec<_>>();
        let ms = ms(|| who.load(&rows));
        samples.add(who.name(), LOAD, size as u64, "wall_ms", ms);
        last = (size, ms);
    }
    for &size in large {
        let told = last.1 * who.cost(size) / who.cost(last.0);
        samples.add(who.name(), LOAD, size as u64, "extrapolated_ms", told);
    }
    Ok(())
}

fn linear(size: usize, samples: &mut Samples) -> Result<()> {
    let whole = routes(size)?;
    let rows: Vec<Row> = whole.iter().map(row).collect();
    let mut add = |who: &str, ms: f64| samples.add(who, LOAD, size as u64, "wall_ms", ms);
    add("list with a tail, then one sort", ms(|| sorted_once(&rows)));
    add("std BTreeMap", ms(|| tree(&rows)));
    add("fingerpost", ms(|| ours(&rows)));
    let changes: Vec<Change> = whole
        .into_iter()
        .map(|route| Change::PutRoute(route, Placement::Last))
        .collect();
    add(
        "fingerpost, all indexes of its routes",
        ms(|| tables(changes)),
    );
    Ok(())
}

/// Synthetic BGP routes in random order.
fn routes(size: usize) -> Result<Vec<Route>> {
    rows(Family::V4, size, &[11, 12, 13, 14])
}

fn row(route: &Route) -> Row {
    let address = match route.prefix.addr() {
        std::net::IpAddr::V4(v4) => v4.into(),
        std::net::IpAddr::V6(_) => 0,
    };
    let key = (
        route.table,
        address,
        route.prefix.prefix_len(),
        route.metric,
    );
    (key, address)
}

fn ms(work: impl FnOnce() -> u64) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64() * 1_000.0
}

fn sum<'a>(rows: impl Iterator<Item = &'a u32>) -> u64 {
    rows.map(|value| u64::from(*value)).sum()
}

fn sorted_each_time(rows: &[Row]) -> u64 {
    let mut all: Vec<Row> = Vec::new();
    for row in rows {
        all.sort_unstable();
        if all.binary_search(row).is_err() {
            all.push(*row);
        }
    }
    all.sort_unstable();
    sum(all.iter().map(|(_, value)| value))
}

/// A node of a list that knows its head only.
struct Node {
    row: Row,
    next: Option<Box<Node>>,
}

fn no_tail(rows: &[Row]) -> u64 {
    let mut head: Option<Box<Node>> = None;
    for row in rows {
        let mut end = &mut head;
        while let Some(node) = end {
            end = &mut node.next;
        }
        *end = Some(Box::new(Node {
            row: *row,
            next: None,
        }));
    }
    let mut all = Vec::with_capacity(rows.len());
    // Node by node: a list that drops itself recurses as deep as it is long.
    while let Some(mut node) = head {
        all.push(node.row);
        head = node.next.take();
    }
    all.sort_unstable();
    sum(all.iter().map(|(_, value)| value))
}

fn sorted_once(rows: &[Row]) -> u64 {
    let mut list = LinkedList::new();
    for row in rows {
        list.push_back(*row);
    }
    let mut all: Vec<Row> = list.into_iter().collect();
    all.sort_unstable();
    sum(all.iter().map(|(_, value)| value))
}

fn tree(rows: &[Row]) -> u64 {
    let mut all = BTreeMap::new();
    for (key, value) in rows {
        all.insert(*key, *value);
    }
    sum(all.values())
}

fn ours(rows: &[Row]) -> u64 {
    let mut all = Ordered::default();
    for (key, value) in rows {
        all.insert(*key, *value);
    }
    sum(all.iter().map(|(_, value)| value))
}

/// The real thing: routes with their bodies, found by next hop as well, and
/// a snapshot for readers.
fn tables(changes: Vec<Change>) -> u64 {
    let mut writer = Writer::default();
    // The limits are far beyond a million.
    let _ = writer.commit(changes);
    let tables = writer.reader().snapshot();
    tables
        .routes
        .iter_v4()
        .map(|route| u64::from(route.metric))
        .sum()
}

/// A closed standard error is no reason to stop.
fn progress(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
