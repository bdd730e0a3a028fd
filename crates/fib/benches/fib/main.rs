//! What a lookup and a change cost, beside DPDK's tables on the same routes
//! and addresses. `cargo xtask bench fib` runs it; it writes the measured
//! rows to standard output as JSON and its progress to standard error.
//!
//! The peers are programs of `benches/peers/`, started once and asked in
//! turn with our own measurements, so that a slow second of the machine
//! meets both. Before anything is timed, all answers are compared.

#![allow(clippy::indexing_slicing, reason = "a benchmark fails by it")]

mod churn;
mod four;
mod peer;
mod six;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use lab::bench::Samples;

/// Measures the forwarding tables.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Without the largest tables
    #[arg(long)]
    quick: bool,
    /// The peers' program; without it only our own figures
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Only this part: four, six or churn
    #[arg(long)]
    only: Option<String>,
    /// Milliseconds of a measurement
    #[arg(long, default_value_t = 40)]
    millis: u64,
    /// Only tables of so many routes
    #[arg(long)]
    size: Option<usize>,
    /// Handed over by Cargo
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    /// Whether tables of so many routes are measured, more or less.
    fn wants(&self, routes: usize) -> bool {
        self.size
            .is_none_or(|size| size.abs_diff(routes) <= size / 100)
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut samples = Samples::default();
    let wants = |part| arguments.only.as_deref().is_none_or(|only| only == part);
    if wants("four") {
        four::measure(&arguments, &mut samples)?;
    }
    if wants("six") {
        six::measure(&arguments, &mut samples)?;
    }
    if wants("churn") {
        churn::measure(&arguments, &mut samples)?;
    }
    let rows = serde_json::to_string(&samples.into_rows())?;
    writeln!(io::stdout().lock(), "{rows}").context("writing the rows")
}

/// ns for each of `per_pass` things that a pass does, over passes of at
/// least so long in all. One pass before it warms the caches.
fn ns_per_op(millis: u64, per_pass: usize, mut pass: impl FnMut()) -> f64 {
    pass();
    let start = Instant::now();
    let mut done = 0;
    loop {
        pass();
        done += per_pass;
        let elapsed = start.elapsed();
        if elapsed >= Duration::from_millis(millis) {
            return elapsed.as_secs_f64() * 1e9 / done as f64;
        }
    }
}

/// A closed standard error is no reason to stop.
fn progress(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
