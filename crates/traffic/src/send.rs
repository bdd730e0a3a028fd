//! `fingerpost send`: UDP packets by any way there is, at a rate, and what
//! each of them costs. The ways are in `dataplane::socket`; here are the
//! packets, the pace and the report. Called by the command line.

mod arguments;
mod clock;
mod cores;
mod device;
mod flows;
mod frame;
mod own;
mod pace;
mod plan;
mod prefixes;
mod profiled;
mod report;
mod toward;
mod way;
mod worker;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command, FromArgMatches};

use crate::caught::caught;
pub use arguments::Arguments;
use cores::send_all;
use report::Report;

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
        profiled::run(&plan, arguments.json, &arguments.svg, &end)?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = send_all(&plan, &end)?;
    let report = Report::of(&plan, &outcome);
    let mut out = io::stdout().lock();
    report.write(arguments.json, &mut out)?;
    out.flush()?;
    // The kernel takes what it will never send, and tells UDP nothing.
    if let Some(silent) = toward::silent(&plan) {
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
