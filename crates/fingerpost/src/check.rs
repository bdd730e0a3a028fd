//! `fingerpost check`: whether a configuration is right. Called by the
//! command line.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};

use crate::config;
use crate::daemon::group;

/// The command's definition.
pub fn command() -> Command {
    Command::new("check")
        .about("Check whether a configuration is right")
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
    let config = config::load(Some(shown))?;
    if let Some(group) = &config.control.group {
        group::number(group)?;
    }
    if let Some(group) = &config.snmp.agentx_master_group {
        serve::groups::number(group).context("snmp.agentx_master_group")?;
    }
    for warning in config::exposed(Some(shown), &config) {
        writeln!(out, "{}: warning: {warning}", shown.display())?;
    }
    writeln!(out, "{}: all right", shown.display())?;
    Ok(())
}
