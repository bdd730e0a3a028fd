//! `fingerpost nat`: its commands, those of the router and one of the
//! benchmarks. Called by the command line.

use std::process::ExitCode;

use clap::{ArgMatches, Command, FromArgMatches, Subcommand};

use crate::daemon::logging;

/// What is to be done with the engine.
#[derive(Debug, Subcommand)]
pub enum Nat {
    /// Translate a capture file, or between two TUN devices
    Run(Box<router::nat::Run>),
    /// Show what a translation has: flows, mappings, subscribers, blocks, pools
    Show(router::nat::Show),
    /// End flows of a translation
    Clear(router::nat::Clear),
    /// Make a translation read its rules again
    Reload(router::nat::Reload),
    /// Ask whose an outside port is or was, or which ports somebody has
    Who(router::nat::Who),
    /// Measure the engine: no packet leaves this process
    Bench(traffic::bench::Bench),
}

/// `fingerpost nat` as the command line knows it.
pub fn command() -> Command {
    let command = Command::new("nat")
        .subcommand_required(true)
        .arg_required_else_help(true);
    Nat::augment_subcommands(command)
        .mut_subcommand("run", router::nat::lasting)
        .about("Translate addresses (NAT): captures and TUN devices")
}

/// Reads what [`command`] matched.
pub fn parse(matches: &ArgMatches) -> Result<Nat, clap::Error> {
    Nat::from_arg_matches(matches)
}

/// Does it.
pub fn run(nat: &Nat) -> anyhow::Result<ExitCode> {
    match nat {
        Nat::Run(arguments) => {
            let _logging = logging::start(None, None)?;
            router::nat::run(arguments)
        }
        Nat::Show(show) => router::nat::show(show),
        Nat::Clear(clear) => router::nat::clear(clear),
        Nat::Reload(reload) => router::nat::run_reload(reload),
        Nat::Who(who) => router::nat::run_who(who),
        Nat::Bench(arguments) => traffic::bench::run(arguments),
    }
}
