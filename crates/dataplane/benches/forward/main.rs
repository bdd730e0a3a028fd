//! What a worker forwards: a full table, ten thousand neighbours, packets of
//! 64 bytes, beside DPDK's testpmd on ports of its own that send nowhere.
//! `cargo xtask bench forward` runs it; it writes the measured rows to
//! standard output as JSON and its progress to standard error.

mod counted;
mod neighbours;
mod ours;
mod testpmd;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use lab::bench::Samples;

/// Measures forwarding between memory ports.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A tenth of the routes and flows
    #[arg(long)]
    quick: bool,
    /// The peer's program; without it only our own figures
    #[arg(long)]
    testpmd: Option<PathBuf>,
    /// Only this part: forward, nat, change or neighbours; with --count also
    /// ring or pool
    #[arg(long)]
    only: Option<String>,
    /// Packets of a batch
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Milliseconds of a measurement
    #[arg(long, default_value_t = 500)]
    millis: u64,
    /// Moves so many packets on one thread and measures nothing: for a
    /// program that counts instructions
    #[arg(long)]
    count: Option<u64>,
    /// Handed over by Cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut samples = Samples::default();
    let wants = |part: &str| arguments.only.as_deref().is_none_or(|only| only == part);
    if let Some(packets) = arguments.count {
        return counted::run(&arguments, packets);
    }
    if wants("neighbours") {
        neighbours::measure(&arguments, &mut samples)?;
    }
    if wants("forward") || wants("nat") || wants("change") {
        ours::measure(&arguments, &mut samples, wants)?;
    }
    let rows = serde_json::to_string(&samples.into_rows())?;
    writeln!(io::stdout().lock(), "{rows}").context("writing the rows")
}

impl Arguments {
    fn time(&self) -> Duration {
        Duration::from_millis(self.millis)
    }
}

/// A closed standard error is no reason to stop.
fn progress(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
