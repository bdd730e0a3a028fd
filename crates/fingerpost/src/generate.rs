//! `fingerpost completions` and `fingerpost man`: from the definition of the
//! whole command line, which the caller gives.

mod state;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::config::manual;

/// `fingerpost completions`.
pub fn completions_command() -> Command {
    Command::new("completions")
        .about("Write what a shell needs to complete command lines, names of links and tables too")
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(value_parser!(Shell)),
        )
}

/// `fingerpost man`.
pub fn man_command() -> Command {
    Command::new("man")
        .about("Write the man pages into a directory")
        .arg(
            Arg::new("directory")
                .value_name("DIR")
                .required(true)
                .value_hint(ValueHint::DirPath)
                .value_parser(value_parser!(PathBuf)),
        )
}

/// The shell that completions are for.
pub fn shell(matches: &ArgMatches) -> Option<Shell> {
    matches.get_one("shell").copied()
}

/// The directory that man pages go to.
pub fn directory(matches: &ArgMatches) -> PathBuf {
    matches.get_one("directory").cloned().unwrap_or_default()
}

/// Set by a shell that wants to know how a command line goes on, to its own
/// name; what it then calls the program with stands behind `--`.
pub const VARIABLE: &str = "FINGERPOST_COMPLETE";

/// Writes what a shell needs to complete: it asks the program.
pub fn completions(shell: Shell, out: &mut impl Write) -> io::Result<()> {
    let shells = Shells::builtins();
    let known = shells.completer(&shell.to_string());
    let known = known.ok_or(io::ErrorKind::Unsupported)?;
    let mut text = Vec::new();
    let program = "fingerpost";
    known.write_registration(VARIABLE, program, program, program, &mut text)?;
    out.write_all(&text)?;
    out.flush()
}

/// Writes a man page for the program, one for each command, and those of the
/// configuration and of files of declared state.
pub fn man(directory: &Path, mut of: Command) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    of.build();
    page(directory, &of, "fingerpost")?;
    let mut configuration = Vec::new();
    manual::page(&mut configuration)?;
    let mut declared = Vec::new();
    state::page(&mut declared)?;
    for (name, text) in [
        ("fingerpost.toml.5", configuration),
        ("fingerpost-state.5", declared),
    ] {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn page(directory: &Path, command: &Command, name: &str) -> Result<()> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    let path = directory.join(format!("{name}.1"));
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    command
        .get_subcommands()
        .try_for_each(|sub| page(directory, sub, &format!("{name}-{}", sub.get_name())))
}
