//! `fingerpost nat`: the translation engine tried by itself. `run` puts a
//! capture file or two TUN devices through it. Called by the command line.

mod bench;
mod run;

use std::process::ExitCode;

use clap::{ArgMatches, Command, FromArgMatches, Subcommand};

/// What is to be done with the engine.
#[derive(Debug, Subcommand)]
pub enum Nat {
    /// Translate a capture file, or between two TUN devices
    Run(run::Run),
    /// Measure the engine: no packet leaves this process
    Bench(bench::Bench),
}

/// `fingerpost nat` as the command line knows it.
pub fn command() -> Command {
    let command = Command::new("nat")
        .subcommand_required(true)
        .arg_required_else_help(true);
    Nat::augment_subcommands(command).about("Translate addresses (NAT): captures and TUN devices")
}

/// Reads what [`command`] matched.
pub fn parse(matches: &ArgMatches) -> Result<Nat, clap::Error> {
    Nat::from_arg_matches(matches)
}

/// The engine that a file of rules describes (see `nat run --rules`).
pub fn engine_by_rules(path: &std::path::Path) -> anyhow::Result<::nat::Nat> {
    run::engine_by_rules(path)
}

/// The same as so many engines that share alias addresses, each with a part
/// of the inside and of the ports.
pub fn engines_by_rules(path: &std::path::Path, parts: u16) -> anyhow::Result<Vec<::nat::Nat>> {
    run::engines_by_rules(path, parts)
}

/// Does it.
pub fn run(nat: &Nat) -> anyhow::Result<ExitCode> {
    match nat {
        Nat::Run(arguments) => run::run(arguments),
        Nat::Bench(arguments) => bench::run(arguments),
    }
}
