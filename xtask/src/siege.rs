//! `cargo xtask siege`: a daemon with a full table under every attack that
//! we know of, all at once, in a memory cgroup; what it cost the others,
//! beside what it may cost. With `--kills` it is killed at random moments
//! meanwhile.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ::lab::siege::{self, Bounds, Force, Siege};
use anyhow::Result;

use crate::host::{self, say};

/// How long and how hard.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Seconds under attack
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Routes in the table
    #[arg(long, default_value_t = 200_000)]
    routes: usize,
    /// MiB of memory that the daemon may take
    #[arg(long, default_value_t = 200)]
    memory: u64,
    /// This attack alone; may be repeated
    #[arg(long = "only", value_parser = clap::builder::PossibleValuesParser::new(siege::words()))]
    only: Vec<String>,
    /// Kills it so often, at random moments, before that
    #[arg(long, default_value_t = 0)]
    kills: u32,
    /// Where the random moments begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program under test; without it a release build is made
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Does it; fails when a bound does not hold.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    siege::may_become_others()?;
    let program = match &arguments.program {
        Some(program) => program.canonicalize()?,
        None => host::released()?,
    };
    let figures = Siege {
        program,
        routes: arguments.routes,
        lasts: Duration::from_secs(arguments.seconds),
        memory: arguments.memory << 20,
        kept: 16 << 20,
        only: arguments.only.clone(),
        force: Force {
            burst: 2_048,
            slow: 1_500,
            quiet: 32,
            connects: 2_000,
            snmp: 5_000,
            forged: 5_000,
            changes: 5_000,
        },
        bounds: Bounds {
            status: Duration::from_millis(100),
            health: Duration::from_millis(50),
            snmp: Duration::from_millis(100),
            end: Duration::from_secs(1),
            back: Duration::from_secs(1),
            ready: Duration::from_secs(2),
            unanswered: 0,
        },
        kills: arguments.kills,
        seed: arguments.seed,
    }
    .run()?;
    say(siege::table(&figures));
    let held = figures.iter().all(|figure| figure.holds);
    Ok(ExitCode::from(u8::from(!held)))
}
