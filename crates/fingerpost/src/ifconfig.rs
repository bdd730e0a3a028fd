//! `fingerpost ifconfig`: the listings of ifconfig(8), of FreeBSD and of
//! Linux's net-tools. It changes nothing.
//!
//! Called by `main` with the words after the command's name. Links with
//! counters and addresses come from the daemon's snapshot where
//! one runs, else one dump of each; [`view::ifconfig`] writes them.

mod arguments;
mod instead;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Command;
use linux::Namespace;
use serve::control::protocol::Ask;
use view::ifconfig::{IfconfigQuestion, Style, Which};

use crate::ask;
use crate::escaped::Escaped;
use crate::foreign::{self, Called};

/// The command's definition.
pub fn command() -> Command {
    foreign::command("ifconfig", "Links and addresses, as ifconfig(8) shows them")
}

/// Runs the command. `arguments` are those after the name. A wrong command
/// line is said on standard error and ends with 2; a link that is not
/// there ends with 1.
pub fn run(arguments: Vec<OsString>, called: Called) -> Result<ExitCode> {
    let wanted = match arguments::parse(arguments, called) {
        Ok(wanted) => wanted,
        Err(error) => return Ok(foreign::refused(&error)),
    };
    let option = wanted.words.first().filter(|word| word.starts_with('-'));
    if let Some(option) = option {
        let mut error = io::stderr().lock();
        writeln!(
            error,
            "ifconfig: option `{option}' not recognised.\nifconfig: `--help' gives usage information."
        )?;
        return Ok(ExitCode::FAILURE);
    }
    if let Some(commands) = instead::commands(&wanted.words) {
        bail!("ifconfig only lists here; to change a link:\n{commands}");
    }
    let namespace = match &wanted.netns {
        Some(spec) => Namespace::open(spec)?,
        None => Namespace::current()?,
    };
    let name = wanted.words.first();
    let question = IfconfigQuestion {
        style: wanted.style,
        which: name.map_or(wanted.which, |name| Which::Named(name.clone())),
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
