//! `fingerpost send`: UDP packets by any way there is, at a rate, and what
//! each of them costs. The ways are in `dataplane::socket`; here are the
//! packets, the pace and the report. Called by the command line.

pub mod arguments;
mod flows;
mod frame;
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
    let senders = (0..plan.cores)
        .map(|core| Sender::open(&plan, core))
        .collect::<Result<Vec<Sender>>>()?;
    let results = thread::scope(|scope| {
        let started: Vec<_> = senders
            .into_iter()
            .enumerate()
            .map(|(core, sender)| {
                let worker = Worker::new(&plan, core, sender);
                let end = &end;
                scope.spawn(move || worker.run(end))
            })
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| (Tally::default(), None)))
            .collect::<Vec<_>>()
    });
    let (tallies, errors): (Vec<Tally>, Vec<_>) = results.into_iter().unzip();
    let report = Report::of(&plan, tallies);
    let mut out = io::stdout().lock();
    report.write(arguments.json, &mut out)?;
    out.flush()?;
    match errors.into_iter().flatten().next() {
        Some(error) => Err(error).context("sending ended early"),
        None if report.sent() == 0 && !end.load(Ordering::Relaxed) => {
            bail!("nothing could be sent: see the counts above")
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Set when it is time to end.
pub fn caught() -> Result<Arc<AtomicBool>> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&end)).context("catching signals")?;
    }
    Ok(end)
}
