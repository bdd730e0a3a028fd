//! `fingerpost arp`: arp(8) of the BSDs and of Linux's net-tools.
//!
//! Called by `main` with the words after the command's name. By the name
//! `arp` it is that of net-tools, word for word ([`net_tools`]). What is listed
//! comes from the daemon's snapshot or straight from the kernel
//! ([`crate::direct::arp`]); [`view::arp`] writes it; changes go as packed
//! requests ([`change`]), with the caller's own rights.

mod arguments;
mod change;
mod file;
mod net_tools;
mod show;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Command;
use linux::Namespace;

use crate::ask;
use crate::foreign::{self, Called};
use arguments::Action;

/// The command's definition.
pub fn command() -> Command {
    foreign::command("arp", "The ARP table, as arp(8) shows and changes it")
}

/// Runs the command. `arguments` are those after the name. A wrong command
/// line is said on standard error and ends with 2; what was not found or
/// not done ends with 1.
pub fn run(arguments: Vec<OsString>, called: Called) -> Result<ExitCode> {
    foreign::give_up_before_words()?;
    if called == Called::ByItsName && !arguments::are_ours(&arguments) {
        return net_tools::run(arguments);
    }
    let wanted = match arguments::parse(arguments, called) {
        Ok(wanted) => wanted,
        Err(error) => return Ok(foreign::refused_as(&error, called)),
    };
    let namespace = Namespace::named_or_current(wanted.netns.as_deref())?;
    let enters = wanted.netns.is_some();
    // Another user's file is root's to read as well.
    let lines = match &wanted.action {
        Action::File(path) => Some(file::read(path.as_deref())?),
        _ => None,
    };
    match &wanted.action {
        Action::Show(_) => ask::give_up(enters)?,
        _ => foreign::give_up_but_changes(enters)?,
    }
    let done = match &wanted.action {
        Action::Show(show) => show::run(show, &wanted, &namespace)?,
        Action::Delete(which) => change::delete(which, &wanted, &namespace)?,
        Action::Set(set) => change::set(set, &wanted, &namespace)?,
        Action::File(path) => file::run(path, &lines.unwrap_or_default(), &wanted, &namespace)?,
    };
    Ok(if done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
