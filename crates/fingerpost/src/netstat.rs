//! route(8) and what netstat(8) has of routes and interfaces, as net-tools
//! has them. netstat changes nothing, and knows no sockets; route changes
//! routes too ([`change`]).
//!
//! Called by `main` with the words after the command's name. `route` is a
//! question of our own, so route(8) is had by its name alone, of a link to
//! the program. Routes of IPv4 come from the daemon's snapshot where one
//! runs, else from the kernel, as lines of JSON; `listing` writes them as
//! `/proc/net/route` has them, in its order. Those of IPv6 are the kernel's
//! own list ([`listing6`]).

mod arguments;
mod change;
mod listing;
mod listing6;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Command;
use linux::Namespace;
use serve::control::protocol::Ask;
use view::ifconfig::{IfconfigQuestion, Style, Which};
use view::{Filter, Format, Object, Output, Question};

use crate::ask;
use crate::escaped::Escaped;
use crate::foreign::failed::Failed;
use crate::foreign::{self, version};
use arguments::{Routes, Wanted, What};

/// How a list of interfaces begins, of `ifconfig -s` and of `netstat -i`.
const HEAD_OF_IFCONFIG: &[u8] = b"Iface      MTU ";
const HEAD: &[u8] = b"Iface             MTU ";

/// The definition of `fingerpost netstat`.
pub fn command() -> Command {
    foreign::command(
        "netstat",
        "Routes and interfaces, as net-tools' netstat -r and -i show them",
    )
}

/// Runs netstat(8). `arguments` are those after the name.
pub fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    foreign::give_up_before_words()?;
    answer("netstat", arguments::netstat(arguments))
}

/// Runs route(8).
pub fn run_route(arguments: Vec<OsString>) -> Result<ExitCode> {
    foreign::give_up_before_words()?;
    answer("route", arguments::route(arguments))
}

/// Does what is wanted; what is not is said on standard error.
fn answer(tool: &str, wanted: Result<Wanted, Failed>) -> Result<ExitCode> {
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(failed) => return Ok(failed.end()),
    };
    let namespace = Namespace::named_or_current(wanted.netns.as_deref())?;
    let enters = wanted.netns.is_some();
    if let What::Change(change) = &wanted.what {
        foreign::give_up_but_changes(enters)?;
        let done = change::run(change, &namespace)?;
        return Ok(done.map_or_else(|failed| failed.end(), |()| ExitCode::SUCCESS));
    }
    // What it writes lasts as long as its reader does.
    ask::give_up(enters)?;
    let stdout = io::stdout();
    let mut out = Escaped::stdout(&stdout, true);
    match &wanted.what {
        What::Routes(asked) => routes(asked, &namespace, wanted.direct, &mut out)?,
        What::Interfaces { all, extended } => {
            interfaces(*all, *extended, &namespace, wanted.direct, &mut out)?;
        }
        What::Version => writeln!(out, "{}", version(tool))?,
        What::Help(text) => writeln!(out, "{text}")?,
        What::Change(_) => {}
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn routes(asked: &Routes, namespace: &Namespace, direct: bool, out: &mut impl Write) -> Result<()> {
    for is_v6 in &asked.families {
        if *is_v6 {
            let rows = listing6::read(namespace)?;
            for cache in [false, true] {
                if cache && asked.cache || !cache && asked.fib {
                    listing6::write(&rows, cache, asked.layout.numeric, out)?;
                }
            }
            continue;
        }
        if asked.fib {
            let rows = inet_routes(namespace, direct)?;
            listing::write(&rows, asked.layout, out)?;
        }
        if asked.cache {
            writeln!(out, "{}", asked.layout.columns.head_of_cache())?;
        }
    }
    Ok(())
}

fn interfaces(
    all: bool,
    extended: bool,
    namespace: &Namespace,
    direct: bool,
    out: &mut impl Write,
) -> Result<()> {
    let question = IfconfigQuestion {
        style: match extended {
            true => Style::Linux,
            false => Style::LinuxShort,
        },
        which: if all { Which::All } else { Which::Up },
    };
    let asked = Ask::Ifconfig(Box::new(question));
    let mut listed = Vec::new();
    ask::one_namespace(asked, namespace, direct, &mut listed)?;
    writeln!(out, "Kernel Interface table")?;
    // Its heading is wider than that of `ifconfig -s`.
    match listed.strip_prefix(HEAD_OF_IFCONFIG) {
        Some(rest) => {
            out.write_all(HEAD)?;
            out.write_all(rest)?;
        }
        None => out.write_all(&listed)?,
    }
    Ok(())
}

/// The routes of the main table, in the order of `/proc/net/route`.
fn inet_routes(namespace: &Namespace, direct: bool) -> Result<Vec<listing::Row>> {
    let question = Question {
        object: Object::Route,
        filter: Filter {
            family: Some(4),
            ..Filter::default()
        },
        output: Output {
            format: Format::Ndjson,
            ..Output::default()
        },
    };
    let mut lines = Vec::new();
    let asked = Ask::Question(Box::new(question));
    ask::one_namespace(asked, namespace, direct, &mut lines)?;
    listing::read(&lines)
}
