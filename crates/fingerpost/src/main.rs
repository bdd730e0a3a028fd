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
mod complete;
mod config;
mod daemon;
mod direct;
mod escaped;
mod foreign;
mod generate;
mod ifconfig;
mod ip;
mod nat;
mod netstat;
mod replay;
mod sql;
mod tables_file;
mod top;

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use change::drill;
use change::state::import::command as import;
use cli::Wanted;
use escaped::Escaped;
use router::live::{Configured, Router};
use serve::snmp;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    match complete::run(arguments.clone()) {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(_) => return ExitCode::FAILURE,
    }
    match cli::parse(arguments) {
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
        Wanted::Check(asked) => check::run(&asked, &mut out)?,
        Wanted::Import(asked) => return import::run(&asked, &mut out),
        Wanted::Ask(ask, from) => {
            return replay::past::run(ask, &from, &mut out);
        }
        Wanted::Sql(asked) => return sql::run(*asked, &mut out),
        Wanted::Snmp(command) => snmp::command::run(&command, &state_directory, &mut out)?,
        Wanted::Completions(shell) => generate::completions(shell, &mut out)?,
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
        Wanted::State(wanted) => {
            drop(out);
            return change::state::run(&wanted);
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
            let _logging = daemon::logging::start(None, None)?;
            let readers = router::forward::Readers {
                tables: tables_file::read,
                routes: replay::routes,
            };
            return router::forward::run(&asked, &readers);
        }
        Wanted::Router(asked) => {
            drop(out);
            return live(&asked);
        }
        Wanted::Ip(tool, arguments) => {
            drop(out);
            return ip::run(tool, arguments);
        }
        Wanted::Ifconfig(arguments, called) => {
            drop(out);
            return ifconfig::run(arguments, called);
        }
        Wanted::Netstat(arguments) => {
            drop(out);
            return netstat::run(arguments);
        }
        Wanted::Route8(arguments) => {
            drop(out);
            return netstat::run_route(arguments);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `fingerpost router`, with what the configuration says.
fn live(asked: &Router) -> anyhow::Result<ExitCode> {
    let configured = match asked.config() {
        None => Configured::default(),
        Some(path) => match config::load(path) {
            Ok(config) => config.router,
            // Of the usual one, which not everybody may read.
            Err(error) if path.is_none() && asked.is_question() && error.is_forbidden() => {
                Configured::default()
            }
            Err(error) => return Err(error.into()),
        },
    };
    let group = match asked.is_question() {
        true => None,
        false => asked.group(&configured),
    };
    let group = group.map(|group| daemon::group::join("router.group", group));
    router::live::run(asked, &configured, group.transpose()?)
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
    let _ = writeln!(io::stderr(), "fingerpost: {}", said_once(&error));
    ExitCode::FAILURE
}

/// An error and its causes in one line. Many say their cause themselves: it
/// is not said again.
fn said_once(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain().map(ToString::to_string) {
        match said.as_str() {
            "" => said = cause,
            before if before.contains(&cause) => {}
            _ => said = format!("{said}: {cause}"),
        }
    }
    said
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let cause = || io::Error::from_raw_os_error(2);
        let own = serve::control::client::AskError::Output(cause());
        let own = anyhow::Error::from(own).context("asked");
        assert!(format!("{own:#}").matches("(os error 2)").count() > 1);
        assert_eq!(said_once(&own).matches("(os error 2)").count(), 1);
        let plain = anyhow::Error::from(cause()).context("a file");
        assert_eq!(said_once(&plain), format!("a file: {}", cause()));
    }
}
