//! `fingerpost send`: UDP packets by any way there is, at a rate, and what
//! each of them costs. The ways are in `dataplane::socket`; here are the
//! packets, the pace and the report. Called by the command line.

pub mod arguments;
mod flows;
mod frame;
mod frame_port;
mod own;
mod pace;
pub mod payload;
mod report;
mod toward;
mod way;
mod worker;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command, FromArgMatches};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub use arguments::Arguments;
use arguments::{Plan, Way};
use own::{Drops, Profile, Tables};
use report::Report;
use way::Sender;
use worker::{Tally, Worker};

/// `fingerpost send` as the command line knows it.
pub fn command() -> Command {
    <Arguments as clap::Args>::augment_args(Command::new("send"))
}

/// Reads what [`command`] matched.
pub fn parse(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
    Arguments::from_arg_matches(matches)
}

/// Sends, and tells what it cost.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let plan = arguments.plan()?;
    let end = caught()?;
    if plan.profile {
        own::run_profile(&plan, arguments.json, &arguments.svg, &end)?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = send_all(&plan, &end)?;
    let report = Report::of(&plan, &outcome);
    let mut out = io::stdout().lock();
    report.write(arguments.json, &mut out)?;
    out.flush()?;
    // A waiting queue fills the socket; the kernel tells UDP nothing else.
    if report.was_full()
        && let Some(silent) = toward::silent(&plan)
    {
        writeln!(io::stderr(), "fingerpost: {silent}")?;
    }
    match outcome.error {
        Some(error) => Err(error).context("sending ended early"),
        None if report.sent() == 0 && !end.load(Ordering::Relaxed) => {
            bail!("nothing could be sent: see the counts above")
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// What came of a plan.
#[derive(Default)]
struct Outcome {
    tallies: Vec<Tally>,
    profiles: Vec<Profile>,
    drops: Drops,
    /// Prefixes, next hops and neighbours of our own stack.
    sizes: (usize, usize, usize),
    /// Why a core could not go on.
    error: Option<anyhow::Error>,
}

/// Carries out a plan, a thread for each core.
fn send_all(plan: &Plan, end: &AtomicBool) -> Result<Outcome> {
    let mut tables = match plan.way {
        Way::Own => Some(Tables::load(plan)?),
        _ => None,
    };
    let senders = (0..plan.cores)
        .map(|core| Sender::open(plan, core, tables.as_ref()))
        .collect::<Result<Vec<Sender>>>()?;
    let mut outcome = Outcome::default();
    thread::scope(|scope| {
        let started: Vec<_> = senders
            .into_iter()
            .enumerate()
            .map(|(core, sender)| {
                let worker = Worker::new(plan, core, sender);
                scope.spawn(move || worker.run(end))
            })
            .collect();
        // The tables follow the kernel's while there is somebody to see it.
        while let Some(tables) = &mut tables
            && started.iter().any(|thread| !thread.is_finished())
        {
            tables.follow();
        }
        for thread in started {
            let Ok(done) = thread.join() else { continue };
            outcome.tallies.push(done.tally);
            outcome.profiles.extend(done.profile);
            outcome.drops.add(&done.drops);
            outcome.error = outcome.error.take().or(done.error);
        }
    });
    outcome.sizes = tables.map_or((0, 0, 0), |tables| tables.sizes());
    Ok(outcome)
}

/// Set when it is time to end.
pub fn caught() -> Result<Arc<AtomicBool>> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&end)).context("catching signals")?;
    }
    Ok(end)
}
