//! `fingerpost nat bench`: what the engine costs. The load test of the
//! report with its parameters, the shapes of carriers, one port to many
//! remotes, growth, and the slowest calls. Called by `nat`; `cargo xtask bench nat` runs it too.

mod carrier;
mod growth;
mod load;
mod measure;
mod packets;
mod subscribers;
mod tail;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum;

/// Measure the engine: no packet leaves this process
#[derive(Debug, clap::Args)]
pub struct Bench {
    /// How long the load test runs
    #[arg(value_name = "SECONDS", default_value_t = 10)]
    seconds: u64,
    /// New flows of a round
    #[arg(value_name = "BATCH", default_value_t = 2_000)]
    batch: usize,
    /// Random packets from outside of a round
    #[arg(value_name = "RANDOM", default_value_t = 1_000)]
    random: usize,
    /// How often one such packet is repeated in a round
    #[arg(value_name = "ATTACK", default_value_t = 1_000)]
    attack: usize,
    /// Redirected ports
    #[arg(value_name = "REDIRECTS", default_value_t = 2_000)]
    redirects: usize,
    /// What is measured
    #[arg(long, value_enum, default_value_t = Shape::Load)]
    shape: Shape,
    /// Packets of the shape `tail`
    #[arg(long, default_value_t = 100_000_000)]
    packets: usize,
    /// Without the largest sizes
    #[arg(long)]
    quick: bool,
    /// Rows as JSON; not of the load test
    #[arg(long, short)]
    json: bool,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// The load test of the report
    Load,
    /// 63 ports for each of 1,024 to 262,144 inside hosts
    Carrier,
    /// One client port to 30,000 remotes
    OnePort,
    /// From 2,000 to 10 million flows
    Growth,
    /// A million subscribers in blocks of ports, one who scans, and a flood of
    /// strangers
    Subscribers,
    /// The slowest calls, by the thread's own time, while flows are made,
    /// expire and become more
    Tail,
}

/// Does it.
pub fn run(arguments: &Bench) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    let rows = match arguments.shape {
        Shape::Load => {
            let load = load::Load {
                seconds: arguments.seconds,
                batch: arguments.batch.max(1),
                random: arguments.random,
                attack: arguments.attack,
                redirects: arguments.redirects,
            };
            load::run(&load, &mut out)?;
            return Ok(ExitCode::SUCCESS);
        }
        Shape::Carrier => carrier::measure(arguments.quick)?,
        Shape::OnePort => carrier::one_port()?,
        Shape::Growth => growth::measure(arguments.quick)?,
        Shape::Subscribers => subscribers::measure(arguments.quick)?,
        Shape::Tail => tail::measure(arguments.packets)?,
    };
    if arguments.json {
        serde_json::to_writer(&mut out, &rows).context("writing the rows")?;
        writeln!(out)?;
    } else {
        write!(out, "{}", measure::text(&rows))?;
    }
    Ok(ExitCode::SUCCESS)
}
