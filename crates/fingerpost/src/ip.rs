//! `ip` and `bridge`, for who has scripts and habits: iproute2's command
//! line, its abbreviations, exit statuses and messages. A word that is not
//! built here is refused by name before anything is done, or the line is
//! handed to the program that `fallback` names in `[ip]` of the
//! configuration.
//!
//! Called by `main` with the words after the command's name. Listings are
//! questions like any other ([`crate::ask`]); changes are requests of
//! `change` and `netlink`, with the caller's own rights. Our own commands
//! (patterns, files, journals) stay under our own name.

mod batch;
mod bridge;
mod bridge_groups;
mod bridge_monitor;
mod bridge_ports;
mod bridge_vlans;
mod buckets;
mod commands;
mod deletions;
mod events;
mod fdb;
mod flush;
mod forwarding;
mod get;
mod grammar;
mod hearing;
mod link;
mod listing;
mod monitor;
mod netns;
mod options;
mod pretty;
mod rows;
mod rules;
mod sending;
mod session;
mod show;
mod stamp;
mod stop;
mod usage;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Command;

use crate::escaped::Escaped;
use crate::{config, foreign};
use session::{Session, complain};
use stop::{FAILED, REFUSED, Stop, WRONG_WORDS};

/// Which program of iproute2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// ip(8)
    Ip,
    /// bridge(8)
    Bridge,
}

impl Tool {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Bridge => "bridge",
        }
    }

    /// The tool of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Ip, Self::Bridge]
            .into_iter()
            .find(|tool| tool.name() == name)
    }
}

/// The command's definition.
pub fn command(tool: Tool) -> Command {
    let about = match tool {
        Tool::Ip => "Everything, in the words of ip(8)",
        Tool::Bridge => "Bridges, in the words of bridge(8)",
    };
    foreign::command(tool.name(), about)
}

/// Runs the command. `arguments` are those after the name.
pub fn run(tool: Tool, arguments: Vec<OsString>) -> Result<ExitCode> {
    let stdout = io::stdout();
    let texts: Vec<String> = arguments
        .iter()
        .map(|argument| String::from(table::text::of_octets(argument.as_bytes())))
        .collect();
    let is_json = texts.iter().any(|text| text == "-j" || text == "-json");
    let mut out = BufWriter::with_capacity(64 << 10, Escaped::stdout(&stdout, !is_json));
    let ended = with_options(tool, &texts, &mut out);
    let flushed = out.flush();
    drop(out);
    match ended {
        Ok(status) => {
            flushed?;
            Ok(ExitCode::from(status))
        }
        Err(Stop::Said { status, text } | Stop::Left { status, text }) => {
            // bridge has one status for all of these.
            let status = match tool {
                Tool::Ip => status,
                Tool::Bridge if status <= REFUSED => WRONG_WORDS,
                Tool::Bridge => status,
            };
            if !text.is_empty() {
                complain(&text);
            }
            Ok(ExitCode::from(status))
        }
        Err(Stop::Told) => Ok(ExitCode::from(FAILED)),
        Err(Stop::NotBuilt(what)) => not_built(tool, &what, &arguments),
        Err(Stop::Broken(error)) => Err(error),
    }
}

fn with_options(tool: Tool, texts: &[String], out: &mut impl Write) -> Result<u8, Stop> {
    let (options, at) = options::read(tool, texts)?;
    let words = texts.get(at..).unwrap_or_default();
    if options.version {
        writeln!(
            out,
            "{} of Fingerpost {}, for iproute2's",
            tool.name(),
            env!("CARGO_PKG_VERSION")
        )?;
        return Ok(0);
    }
    if let Some(option) = options.not_built {
        return Err(Stop::NotBuilt(option));
    }
    let all = options.all && options.batch.is_none();
    if all && words.first().is_none_or(|word| word != "netns") {
        return Err(Stop::NotBuilt("-all".to_owned()));
    }
    let file = options.batch.clone();
    let mut session = Session::open(tool, options)?;
    match file {
        Some(file) => batch::run(&mut session, &file, out),
        None if words.is_empty() => Err(Stop::wrong(usage::of_tool(tool))),
        None => commands::line(&mut session, words, out).map(|()| 0),
    }
}

/// What is done with a line that has a word that is not built: the program
/// of the configuration has it, or it is refused.
fn not_built(tool: Tool, what: &str, arguments: &[OsString]) -> Result<ExitCode> {
    let configured = config::load(None)?;
    let (setting, fallback) = match tool {
        Tool::Ip => ("fallback", &configured.ip.fallback),
        Tool::Bridge => ("bridge_fallback", &configured.ip.bridge_fallback),
    };
    let Some(program) = fallback else {
        complain(&format!(
            "fingerpost: {}: `{what}` is not built here, and nothing was done; `{setting}` in \
             [ip] of fingerpost.toml names a program that takes such lines",
            tool.name()
        ));
        return Ok(ExitCode::from(WRONG_WORDS));
    };
    if is_ourselves(program) {
        complain(&format!(
            "fingerpost: `{setting}` in [ip] is this program itself: {}",
            program.display()
        ));
        return Ok(ExitCode::from(FAILED));
    }
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("starting {}", program.display()))
}

/// Whether a path leads to this very program, which would call itself for
/// ever.
fn is_ourselves(program: &Path) -> bool {
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let other = std::fs::canonicalize(program);
    matches!((own, other), (Ok(own), Ok(other)) if own == other)
}
