//! The listings of net-tools' route(8) and netstat(8): the IPv4 routes of the
//! main table, and interfaces. They change nothing, and know no sockets.
//!
//! Called by `main` with the words after the command's name. `route` is a
//! question of our own, so route(8) is had by its name alone, of a link to
//! the program. Routes come from the daemon's snapshot where one runs, else
//! from the kernel, as lines of JSON; `listing` writes them as `/proc/net/route`
//! has them, in its order.

mod arguments;
mod listing;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Command;
use linux::Namespace;
use serve::control::protocol::Ask;
use view::ifconfig::{IfconfigQuestion, Style, Which};
use view::{Filter, Format, Object, Output, Question};

use crate::ask;
use crate::escaped::Escaped;
use crate::foreign;
use arguments::{Wanted, What};

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
    answer(arguments::netstat(arguments))
}

/// Runs route(8).
pub fn run_route(arguments: Vec<OsString>) -> Result<ExitCode> {
    answer(arguments::route(arguments))
}

/// A wrong command line is said on standard error and ends with 2.
fn answer(wanted: Result<Wanted, clap::Error>) -> Result<ExitCode> {
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(error) => return Ok(foreign::refused(&error)),
    };
    let namespace = match &wanted.netns {
        Some(spec) => Namespace::open(spec)?,
        None => Namespace::current()?,
    };
    // What it writes lasts as long as its reader does.
    ask::give_up(wanted.netns.is_some())?;
    let stdout = io::stdout();
    let mut out = Escaped::stdout(&stdout, true);
    match wanted.what {
        What::Refused(why) => bail!(why),
        What::Cache(columns) => writeln!(out, "{}", columns.head_of_cache())?,
        What::Routes(columns) => {
            let rows = routes(&namespace, wanted.direct)?;
            listing::write(&rows, columns, wanted.numeric, &mut out)?;
        }
        What::Interfaces { all, extended } => {
            let question = IfconfigQuestion {
                style: match extended {
                    true => Style::Linux,
                    false => Style::LinuxShort,
                },
                which: if all { Which::All } else { Which::Up },
            };
            let asked = Ask::Ifconfig(Box::new(question));
            let mut listed = Vec::new();
            ask::one_namespace(asked, &namespace, wanted.direct, &mut listed)?;
            writeln!(out, "Kernel Interface table")?;
            // Its heading is wider than that of `ifconfig -s`.
            match listed.strip_prefix(HEAD_OF_IFCONFIG) {
                Some(rest) => {
                    out.write_all(HEAD)?;
                    out.write_all(rest)?;
                }
                None => out.write_all(&listed)?,
            }
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The routes of the main table, in the order of `/proc/net/route`.
fn routes(namespace: &Namespace, direct: bool) -> Result<Vec<listing::Row>> {
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
