//! The project's own chores: `cargo xtask test|tidy|bench|fuzz|install-libalias|miri|dist|lab|soak|siege|rates|pictures|xdp`.

mod bench;
mod dist;
mod fuzz;
mod host;
mod install;
mod lab;
mod miri;
mod pictures;
mod rates;
mod siege;
mod soak;
mod test;
mod tidy;
mod uml;
mod xdp;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The project's own chores.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Installs what the tests need, runs all of them, counts the skipped
    Test(test::Arguments),
    /// Checks the rules of the house
    Tidy,
    /// Measures Fingerpost beside today's tools
    Bench(bench::Arguments),
    /// Looks for inputs that break a parser or an engine
    Fuzz(fuzz::Arguments),
    /// Looks for undefined behaviour with miri, of a nightly toolchain
    Miri(miri::Arguments),
    /// Installs libalias: library, header, pkg-config file
    InstallLibalias(install::Arguments),
    /// Makes Debian packages of the program and of libalias
    Dist(dist::Arguments),
    /// Builds a situation of the reports in a network namespace
    Lab(lab::Arguments),
    /// Changes everything at random under a daemon, and compares it with the kernel
    Soak(soak::Arguments),
    /// Attacks a daemon in every way we know, and measures what others notice
    Siege(siege::Arguments),
    /// Makes the pictures of the README anew
    Pictures,
    /// Compares the rates that SNMP gives with the kernel's own
    Rates(rates::Arguments),
    /// Makes the program that forwards at XDP from its source in C
    Xdp(xdp::Arguments),
}

fn main() -> ExitCode {
    match run() {
        Ok(status) => status,
        // What is wrong is said to whoever called, without where it was found.
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    match Arguments::parse().chore {
        Chore::Test(arguments) => test::run(&arguments),
        Chore::Tidy => tidy::run(),
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Miri(arguments) => miri::run(&arguments),
        Chore::InstallLibalias(arguments) => install::run(&arguments),
        Chore::Dist(arguments) => dist::run(&arguments),
        Chore::Lab(arguments) => lab::run(&arguments),
        Chore::Soak(arguments) => soak::run(&arguments),
        Chore::Siege(arguments) => siege::run(&arguments),
        Chore::Pictures => pictures::run(),
        Chore::Rates(arguments) => rates::run(&arguments),
        Chore::Xdp(arguments) => xdp::run(&arguments),
    }
}
