//! `cargo xtask soak`: random changes of a namespace under a daemon, whose
//! tables and answers are then compared with what `ip` and `bridge` say.
//! A list of changes that fails is shrunk and printed as a shell script.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::lab::soak::{self, Soak};
use anyhow::{Result, ensure};

use crate::host::{self, say};

/// Which seeds, and how long each.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// Changes of each
    #[arg(long, default_value_t = 120)]
    changes: usize,
    /// Questions about routes after each
    #[arg(long, default_value_t = 200)]
    questions: usize,
    /// Receive buffer of the mirror, bytes; every second seed has 4,096
    #[arg(long, default_value_t = 1 << 20)]
    buffer: usize,
    /// Runs that shrinking a failure may take
    #[arg(long, default_value_t = 150)]
    shrink: usize,
    /// Ends after this many failures
    #[arg(long, default_value_t = 1)]
    failures: usize,
    /// Begins no further seed after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// The program under test
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Does it; fails when a seed does.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => built()?,
    };
    let start = Instant::now();
    let (mut passed, mut failed) = (0, 0);
    for seed in arguments.seed..arguments.seed.saturating_add(arguments.seeds) {
        let is_over = |limit| start.elapsed() >= Duration::from_secs(limit);
        if failed >= arguments.failures || arguments.seconds.is_some_and(is_over) {
            break;
        }
        let soak = Soak {
            program: program.display().to_string(),
            buffer: if seed.is_multiple_of(2) {
                4_096
            } else {
                arguments.buffer
            },
            questions: arguments.questions,
            settles: Duration::from_secs(4),
        };
        match soak::soak(&soak, seed, arguments.changes, arguments.shrink)? {
            None => passed += 1,
            Some(failure) => {
                failed += 1;
                say(format_args!(
                    "seed {seed}:\n{}",
                    soak::script(&failure.lines)
                ));
                for difference in &failure.differences {
                    say(format_args!("  {difference}"));
                }
            }
        }
    }
    let took = start.elapsed().as_secs();
    say(format_args!(
        "soak: {passed} seeds passed, {failed} failed, in {took} s"
    ));
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// The program, built.
fn built() -> Result<PathBuf> {
    let built = host::cargo().args(["build", "-p", "fingerpost"]).status()?;
    ensure!(built.success(), "the program could not be built");
    Ok(host::target()?.join("debug/fingerpost"))
}
