//! `cargo xtask rates`: what rates a network manager gets from a daemon by
//! SNMP, beside a reader of the kernel's own counters, while the time of day
//! is set an hour forward and back.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ::lab::rates::{self, Found, Rates, Worst};
use anyhow::Result;

use crate::host::{self, say};

/// What is polled, how often and for how long.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Links of the router; may be repeated
    #[arg(long = "links", default_values_t = [10, 1_000, 20_000])]
    links: Vec<usize>,
    /// Seconds between two polls; may be repeated
    #[arg(long = "every", default_values_t = [10, 60])]
    every: Vec<u64>,
    /// Seconds of each
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Links of another namespace that come and go meanwhile, and hold the
    /// kernel's lock of links
    #[arg(long, default_value_t = 0)]
    disturbing: usize,
    /// The program under test; without it a release build is made
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Does it; fails when an answer was not true, or a rate more than 1 % off.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    let program = match &arguments.program {
        Some(program) => program.canonicalize()?,
        None => host::released()?,
    };
    let mut holds = true;
    say(
        "links  every  rates  worst %  own clock %  wrong  stale  missing  jumps  again  oldest ms  lock ms  where",
    );
    for &links in &arguments.links {
        for &every in &arguments.every {
            let found = Rates {
                program: program.clone(),
                links,
                every: Duration::from_secs(every),
                polls: (arguments.seconds / every) as usize + 1,
                faketime: rates::faketime(),
                disturbing_links: arguments.disturbing,
            }
            .run()?;
            holds &= found.is_true() && found.worst.per_mille <= 10;
            say(line(links, every, &found));
        }
    }
    Ok(ExitCode::from(u8::from(!holds)))
}

fn line(links: usize, every: u64, found: &Found) -> String {
    let percent = |worst: &Worst| worst.per_mille as f64 / 10.0;
    let of = |worst: &Worst| format!("poll {} of {}", worst.poll, worst.link);
    format!(
        "{links:>5}  {every:>4}s  {:>5}  {:>7.1}  {:>11.1}  {:>5}  {:>5}  {:>7}  {:>5}  {:>5}  \
         {:>9}  {:>7}  {}, {}",
        found.rates,
        percent(&found.worst),
        percent(&found.worst_by_own_clock),
        found.wrong,
        found.stale,
        found.missing,
        found.jumps,
        found.again,
        found.oldest_millis,
        found.longest_lock_millis,
        of(&found.worst),
        of(&found.worst_by_own_clock)
    )
}
