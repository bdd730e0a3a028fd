//! `fingerpost`: what a router knows, at any size, answered at once.
//!
//! This crate assembles: the command line, the configuration file, the
//! daemon. What it knows comes from `linux`, what it says is written by
//! `view`, programs at a distance are answered by `serve`.
//!
//! Exit status: 0 done, an empty answer and a pipe that the reader closed
//! included; 1 it failed; 2 the command line is wrong; 3 the answer may lack
//! rows, and standard error says why.

mod arp;
mod ask;
mod check;
mod cli;
mod config;
mod daemon;
mod direct;
mod escaped;
mod foreign;
mod generate;
mod ifconfig;
mod ip;
mod nat;
mod replay;
mod tables_file;
mod top;

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use change::drill;
use cli::Wanted;
use escaped::Escaped;
use serve::snmp;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os().collect()) {
        Ok(wanted) => end(run(wanted)),
        Err(error) => {
            // Help and version too come this way, for standard output. A
            // reader that is gone changes nothing.
            let _ = error.print();
            ExitCode::from(error.exit_code() as u8)
        }
    }
}

fn run(wanted: Wanted) -> anyhow::Result<ExitCode> {
    let stdout = io::stdout();
    let mut out = Escaped::stdout(&stdout, wanted.is_text());
    match wanted {
        Wanted::Up(up) => {
            drop(out);
            daemon::run(&up)?;
        }
        Wanted::Replay(replay) => {
            drop(out);
            return replay::run(&replay);
        }
        Wanted::Check(path) => check::run(path.as_deref(), &mut out)?,
        Wanted::Ask(ask, from) => return ask::run(ask, &from, &mut out),
        Wanted::Snmp(command) => snmp::command::run(&command, &state_directory, &mut out)?,
        Wanted::Completions(shell) => generate::completions(shell, cli::command(), &mut out)?,
        Wanted::Ifaceseq(wanted) => return drill::ifaceseq::run(&wanted, &mut out),
        Wanted::Failover(wanted) => return drill::failover::run(&wanted, &mut out),
        Wanted::Man(directory) => generate::man(&directory, cli::command())?,
        Wanted::Change(object, verb, asked) => {
            drop(out);
            return change::rows::run(object, verb, &asked);
        }
        Wanted::Link(wanted, terms) => {
            drop(out);
            return change::links::run(&wanted, &terms);
        }
        Wanted::Arp(arguments, called) => {
            drop(out);
            return arp::run(arguments, called);
        }
        Wanted::Top(top) => {
            drop(out);
            top::run(&top)?;
        }
        Wanted::Nat(nat) => {
            drop(out);
            return nat::run(&nat);
        }
        Wanted::Send(arguments) => {
            drop(out);
            return traffic::send::run(&arguments);
        }
        Wanted::Receive(arguments) => {
            drop(out);
            return traffic::receive::run(&arguments);
        }
        Wanted::Forward(asked) => {
            drop(out);
            let readers = router::forward::Readers {
                tables: tables_file::read,
                routes: replay::routes,
            };
            return router::forward::run(&asked, &readers);
        }
        Wanted::Ip(tool, arguments) => {
            drop(out);
            return ip::run(tool, arguments);
        }
        Wanted::Ifconfig(arguments, called) => {
            drop(out);
            return ifconfig::run(arguments, called);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The directory for SNMP's state that a configuration names.
fn state_directory(config: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    Ok(config::load(config)?.snmp.state_directory)
}

/// A closed pipe is a quiet end: `| head` has what it wanted.
fn end(result: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    if error.chain().any(is_closed_pipe) {
        return ExitCode::SUCCESS;
    }
    // Nothing is left to do when standard error is closed as well.
    let _ = writeln!(io::stderr(), "fingerpost: {error:#}");
    ExitCode::FAILURE
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
