//! Completions and man pages, from the definition of the command line.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;

use crate::cli;

/// Writes the completions of a shell.
pub fn completions(shell: Shell, out: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "fingerpost", &mut text);
    out.write_all(&text)?;
    out.flush()
}

/// Writes a man page for the program and one for each command.
pub fn man(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut command = cli::command();
    command.build();
    page(directory, &command, "fingerpost")
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
