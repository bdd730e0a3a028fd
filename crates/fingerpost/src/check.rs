//! `fingerpost check`: whether a configuration is right. Called by the
//! command line.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};

use crate::config;

/// The command's definition.
pub fn command() -> Command {
    Command::new("check")
        .about("Say whether a configuration is right")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The configuration [default: /etc/fingerpost/fingerpost.toml, or /etc/fingerpost.toml]"),
        )
}

/// The configuration that is meant; `None`: the usual one.
pub fn wanted(matches: &ArgMatches) -> Option<PathBuf> {
    matches.get_one("file").cloned()
}

/// Reads it, and says that it is right.
pub fn run(path: Option<&Path>, out: &mut impl Write) -> anyhow::Result<()> {
    let shown = path.unwrap_or(config::usual_path());
    config::load(Some(shown))?;
    writeln!(out, "{}: all right", shown.display())?;
    Ok(())
}
