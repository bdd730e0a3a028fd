//! `fingerpost ifconfig`: ifconfig(8) of FreeBSD and of Linux's net-tools.
//!
//! Called by `main` with the words after the command's name. Links with
//! counters and addresses come from the daemon's snapshot where
//! one runs, else one dump of each; [`view::ifconfig`] writes them. Words
//! behind a link's name are read into steps ([`net_tools`], [`bsd`]), which
//! are done one after the other ([`apply`]) with the caller's own rights.

mod apply;
mod arguments;
mod bsd;
mod net_tools;
mod step;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Command;
use serve::control::protocol::Ask;
use view::ifconfig::{IfconfigQuestion, Style, Which};

use crate::ask;
use crate::escaped::Escaped;
use crate::foreign::failed::Failed;
use crate::foreign::{self, Called};
use arguments::Wanted;

/// The command's definition.
pub fn command() -> Command {
    foreign::command(
        "ifconfig",
        "Links and addresses, as ifconfig(8) shows and changes them",
    )
}

/// Runs the command. `arguments` are those after the name. A wrong command
/// line is said on standard error and ends with 2, in net-tools' words with
/// net-tools' status; a link that is not there ends with 1.
pub fn run(arguments: Vec<OsString>, called: Called) -> Result<ExitCode> {
    foreign::give_up_before_words()?;
    let wanted = match arguments::parse(arguments, called) {
        Ok(wanted) => wanted,
        Err(error) => return Ok(foreign::refused(&error)),
    };
    if let Some(option) = &wanted.unknown {
        let text = format!(
            "ifconfig: option `{option}' not recognised.\n\
             ifconfig: `--help' gives usage information."
        );
        return Ok(Failed::new(1, text).end());
    }
    let changes = match wanted.words.as_slice() {
        [name, words @ ..] if !words.is_empty() => match wanted.is_linux() {
            true => net_tools::read(name, words),
            false => bsd::read(name, words),
        },
        _ => return list(&wanted),
    };
    let changes = match changes {
        Ok(changes) => changes,
        Err(failed) => return Ok(failed.end()),
    };
    let namespace = wanted.namespace()?;
    foreign::give_up_but_changes(wanted.netns.is_some())?;
    let done = apply::run(&changes, &namespace)?;
    Ok(done.map_or_else(|failed| failed.end(), ExitCode::from))
}

/// Lists links.
fn list(wanted: &Wanted) -> Result<ExitCode> {
    let namespace = wanted.namespace()?;
    // What it writes lasts as long as its reader does.
    ask::give_up(wanted.netns.is_some())?;
    let name = wanted.words.first();
    let question = IfconfigQuestion {
        style: wanted.style,
        which: name.map_or_else(|| wanted.which.clone(), |name| Which::Named(name.clone())),
    };
    let stdout = io::stdout();
    let mut out = Escaped::stdout(&stdout, true);
    let asked = Ask::Ifconfig(Box::new(question));
    let blocks = ask::one_namespace(asked, &namespace, wanted.direct, &mut out)?.rows;
    out.flush()?;
    let Some(name) = name.filter(|_| blocks == 0) else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut error = io::stderr().lock();
    match wanted.style {
        Style::Linux | Style::LinuxShort => writeln!(
            error,
            "{name}: error fetching interface information: Device not found"
        )?,
        Style::Bsd | Style::BsdNames => {
            writeln!(error, "ifconfig: interface {name} does not exist")?;
        }
    }
    Ok(ExitCode::FAILURE)
}
