//! What the container under every table costs, beside others, and what the
//! real tables cost. `cargo xtask bench table` runs it; it writes the
//! measured rows to standard output as JSON and its progress to standard
//! error.

mod clock;
mod containers;
mod race;
mod real;

use std::io::{self, Write};

use anyhow::{Context, Result};
use cap::Cap;
use clap::Parser;
use lab::bench::Samples;

/// Counts the bytes that are allocated: two atomic additions for each
/// allocation, the same for all who are measured.
#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// Measures containers and tables.
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

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut sizes = vec![1_000, 10_000, 100_000];
    if !arguments.quick {
        sizes.push(1_000_000);
    }
    let mut samples = Samples::default();
    for round in 1..=arguments.rounds {
        for &size in &sizes {
            progress(&format!("round {round}: {size} rows"));
            containers::measure(size, &mut samples);
            real::measure(size, &mut samples)?;
        }
    }
    let rows = serde_json::to_string(&samples.into_rows())?;
    writeln!(io::stdout().lock(), "{rows}").context("writing the rows")
}

/// Bytes allocated by what `make` makes and keeps.
fn bytes_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.allocated();
    let made = make();
    (made, ALLOCATOR.allocated().saturating_sub(before))
}

/// A closed standard error is no reason to stop.
fn progress(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
