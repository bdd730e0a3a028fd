//! `fingerpost check`: whether a configuration is right, and one with every
//! key. Called by the command line.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use crate::config::{self, settings};
use crate::daemon;

/// What is wanted of it.
#[derive(Debug)]
pub enum Check {
    /// To know whether a file is right; `None`: the usual one.
    File(Option<PathBuf>),
    /// A configuration with every key.
    Example,
}

/// The command's definition.
pub fn command() -> Command {
    Command::new("check")
        .about("Check whether `up` would go by a configuration")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The configuration [default: /etc/fingerpost/fingerpost.toml, or /etc/fingerpost.toml]"),
        )
        .arg(
            Arg::new("example")
                .long("example")
                .action(ArgAction::SetTrue)
                .conflicts_with("file")
                .help("Write a configuration with every key, what it is for and its default"),
        )
}

/// What is asked for.
pub fn wanted(matches: &ArgMatches) -> Check {
    match matches.get_flag("example") {
        true => Check::Example,
        false => Check::File(matches.get_one("file").cloned()),
    }
}

/// Looks whether `up` would go by it, and says so.
pub fn run(check: &Check, out: &mut impl Write) -> Result<()> {
    let path = match check {
        Check::Example => return Ok(out.write_all(settings::example().as_bytes())?),
        Check::File(path) => path.as_deref(),
    };
    let shown = path.unwrap_or(config::usual_path());
    if path.is_none() && !shown.exists() {
        writeln!(out, "{}: there is none, all defaults hold", shown.display())?;
    }
    let shown = shown.display();
    let config = config::load(path)?;
    let mut warnings = config::exposed(path, &config);
    warnings.extend(daemon::rehearse(&config)?);
    for warning in warnings {
        writeln!(out, "{shown}: warning: {warning}")?;
    }
    writeln!(out, "{shown}: all right")?;
    Ok(())
}
