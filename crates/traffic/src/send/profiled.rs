//! `send --by own --profile`: a plan run on one core and on all, without
//! clocks between the stages and with, and where the time went.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use view::plot::{Plot, Series};

use super::cores::{Outcome, send_all};
use super::own::Profile;
use super::plan::{Plan, Stage};
use super::worker::Tally;
use crate::histogram::Histogram;

/// Runs of a profile, unless a duration is said: without clocks and with.
const USUAL_RUN: Duration = Duration::from_secs(2);
/// Columns of the longest bar.
const BAR: f64 = 50.0;

/// What some cores showed.
#[derive(Debug, Serialize)]
struct Side {
    cores: usize,
    /// Without clocks between the stages.
    pps: f64,
    ns_per_packet: f64,
    clock_ns: u64,
    stages: Vec<Row>,
    refills: Option<Row>,
}

/// One stage.
#[derive(Debug, Serialize)]
struct Row {
    stage: &'static str,
    batches: u64,
    /// Of the middle batch.
    ns_per_packet: f64,
    /// Of all stages together; nothing where it is none of them.
    share_percent: Option<f64>,
    p50_batch_ns: u64,
    p99_batch_ns: u64,
    max_batch_ns: u64,
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    way: &'static str,
    into: String,
    to: String,
    payload_bytes: usize,
    batch: usize,
    flows: u32,
    prefixes: usize,
    next_hops: usize,
    neighbours: usize,
    sides: &'a [Side],
}

/// Runs a plan on one core and on all, and shows the split.
pub fn run(plan: &Plan, json: bool, svg: &std::path::Path, end: &AtomicBool) -> Result<()> {
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sides = Vec::new();
    let mut sizes = (0, 0, 0);
    for cores in if most > 1 { vec![1, most] } else { vec![1] } {
        let mut plan = plan.clone();
        plan.cores = cores;
        plan.flows = plan
            .flows
            .with_count(plan.flows.count().max(cores as u32))?;
        plan.rate = None;
        plan.count = None;
        plan.duration = Some(plan.duration.filter(|_| plan.is_timed).unwrap_or(USUAL_RUN) / 2);
        plan.profile = false;
        let bare = send_all(&plan, end)?;
        plan.profile = true;
        let timed = send_all(&plan, end)?;
        sizes = timed.sizes;
        sides.push(side(&plan, &bare.tallies, &timed));
        if end.load(Ordering::Relaxed) {
            break;
        }
    }
    fs::write(svg, picture(&sides)).with_context(|| svg.display().to_string())?;
    let shown = Shown {
        way: "own",
        into: plan.into.to_string(),
        to: plan.flows.to().to_string(),
        payload_bytes: plan.payload_bytes,
        batch: plan.batch,
        flows: plan.flows.count(),
        prefixes: sizes.0,
        next_hops: sizes.1,
        neighbours: sizes.2,
        sides: &sides,
    };
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, &shown)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text(&shown))?;
        writeln!(out, "picture: {}", svg.display())?;
    }
    Ok(out.flush()?)
}

fn side(plan: &Plan, bare: &[Tally], timed: &Outcome) -> Side {
    let sent: u64 = bare.iter().map(|tally| tally.sent).sum();
    let wall = bare.iter().map(|tally| tally.wall).max();
    let seconds = wall.unwrap_or_default().as_secs_f64();
    let pps = if seconds > 0.0 {
        sent as f64 / seconds
    } else {
        0.0
    };
    let mut whole = Profile::new();
    for profile in &timed.profiles {
        whole.merge(profile);
    }
    let batch = plan.batch as f64;
    let rows: Vec<(Stage, &Histogram)> = Stage::ALL
        .into_iter()
        .map(|stage| (stage, &whole.stages[stage as usize]))
        .filter(|(_, times)| times.total() > 0)
        .collect();
    let middle = |times: &Histogram| times.quantile(0.5).unwrap_or(0);
    let sum: u64 = rows.iter().map(|(_, times)| middle(times)).sum();
    let row = |stage: &'static str, times: &Histogram| Row {
        stage,
        batches: times.total(),
        ns_per_packet: middle(times) as f64 / batch,
        share_percent: Some(middle(times) as f64 * 100.0 / sum.max(1) as f64),
        p50_batch_ns: middle(times),
        p99_batch_ns: times.quantile(0.99).unwrap_or(0),
        max_batch_ns: times.max().unwrap_or(0),
    };
    Side {
        cores: plan.cores,
        pps,
        ns_per_packet: match sent {
            0 => 0.0,
            sent => seconds * 1e9 * plan.cores as f64 / sent as f64,
        },
        clock_ns: whole.clock_nanos,
        stages: rows
            .iter()
            .map(|(stage, times)| row(stage.name(), times))
            .collect(),
        // Of the batches that had one only: no share of the others.
        refills: (whole.refills.total() > 0).then(|| Row {
            share_percent: None,
            ..row("buffer, refill", &whole.refills)
        }),
    }
}

fn text(shown: &Shown<'_>) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "own stack into {}: {} bytes to {}, batches of {}, {} flow{}; {} prefixes, {} next hops, {} neighbours",
        shown.into,
        shown.payload_bytes,
        shown.to,
        shown.batch,
        shown.flows,
        if shown.flows == 1 { "" } else { "s" },
        shown.prefixes,
        shown.next_hops,
        shown.neighbours
    );
    let longest = shown.sides.iter().flat_map(|side| &side.stages);
    let longest = longest.map(|row| row.ns_per_packet).fold(0.1, f64::max);
    for side in shown.sides {
        let plural = if side.cores == 1 { "" } else { "s" };
        let _ = writeln!(
            out,
            "\n{} core{plural}: {:.2} million packets/s, {:.2} ns a packet and core ({} ns of clock taken off each stage below)",
            side.cores,
            side.pps / 1e6,
            side.ns_per_packet,
            side.clock_ns
        );
        let _ = writeln!(
            out,
            "{:<16}{:>10}{:>8}{:>12}{:>12}{:>12}{:>12}",
            "stage", "ns/packet", "share", "p50/batch", "p99/batch", "max/batch", "batches"
        );
        for row in side.stages.iter().chain(&side.refills) {
            let share = match row.share_percent {
                Some(share) => format!("{share:.1} %"),
                None => "rare".to_owned(),
            };
            let _ = writeln!(
                out,
                "{:<16}{:>10.2}{share:>8}{:>12}{:>12}{:>12}{:>12}",
                row.stage,
                row.ns_per_packet,
                row.p50_batch_ns,
                row.p99_batch_ns,
                row.max_batch_ns,
                row.batches
            );
        }
        for row in &side.stages {
            let bar = "#".repeat((row.ns_per_packet / longest * BAR).round() as usize);
            let _ = writeln!(out, "{:<10} {bar} {:.2}", row.stage, row.ns_per_packet);
        }
    }
    out
}

/// What a packet costs up to each stage.
fn picture(sides: &[Side]) -> String {
    let plural = |cores: usize| if cores == 1 { "" } else { "s" };
    let names: Vec<String> = sides
        .first()
        .into_iter()
        .flat_map(|side| &side.stages)
        .enumerate()
        .map(|(at, row)| format!("{} {}", at + 1, row.stage))
        .collect();
    let up_to = |side: &Side, of: fn(&Row) -> f64| {
        let mut sum = 0.0;
        let points = side.stages.iter().enumerate().map(|(at, row)| {
            sum += of(row);
            ((at + 1) as f64, sum)
        });
        points.collect::<Vec<_>>()
    };
    let mut series = Vec::new();
    for side in sides {
        series.push(Series {
            name: format!("{} core{}, p50", side.cores, plural(side.cores)),
            points: up_to(side, |row| row.ns_per_packet),
        });
        series.push(Series {
            name: format!("{} core{}, p99", side.cores, plural(side.cores)),
            points: up_to(side, |row| match row.p50_batch_ns {
                0 => 0.0,
                p50 => row.ns_per_packet * row.p99_batch_ns as f64 / p50 as f64,
            }),
        });
    }
    Plot {
        title: "fingerpost send --by own: ns a packet, up to each stage".to_owned(),
        x: names.join(", "),
        y: "ns".to_owned(),
        series,
    }
    .svg()
}
