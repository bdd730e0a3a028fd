//! Commands with a command line of their own, those of another tool: what
//! follows their name is theirs to read.
//!
//! What the faces of net-tools share lies beside: options as the C library
//! reads them ([`getopt`]), hosts and networks ([`inet`], [`host`]), the way
//! to the kernel ([`kernel`]), and how they fail ([`failed`]).

pub mod failed;
pub mod getopt;
pub mod host;
pub mod inet;
pub mod kernel;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, value_parser};
use privileges::CapabilitySet;
use table::LinkLayerAddress;

/// How a command with two faces was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called {
    /// By its own name (a link named `arp` or `ifconfig`): it behaves like
    /// the tool of that name on Linux, net-tools.
    ByItsName,
    /// As a command of `fingerpost`.
    OfFingerpost,
}

/// A command with a command line of its own.
pub fn command(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).disable_help_flag(true).arg(
        Arg::new("arguments")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(value_parser!(OsString)),
    )
}

/// Ends a run whose command line was wrong, or that was for help.
pub fn refused(error: &clap::Error) -> ExitCode {
    // A reader that is gone changes nothing.
    let _ = error.print();
    ExitCode::from(error.exit_code() as u8)
}

/// What net-tools' arp ends with where an option is not known.
const NO_OPTION: u8 = 3;
/// And where anything else is wrong with its words.
const NO_WORDS: u8 = 255;

/// The same for one that was called by its tool's name: with the tool's
/// exit status.
pub fn refused_as(error: &clap::Error, called: Called) -> ExitCode {
    let ours = refused(error);
    match (called, error.exit_code()) {
        (Called::OfFingerpost, _) | (_, 0) => ours,
        (Called::ByItsName, _) if error.kind() == ErrorKind::UnknownArgument => NO_OPTION.into(),
        (Called::ByItsName, _) => NO_WORDS.into(),
    }
}

/// The version of a command that is called by a tool's name.
pub fn version(tool: &str) -> String {
    format!("{tool} of fingerpost {}", env!("CARGO_PKG_VERSION"))
}

/// What any command by another tool's name needs: to change tables, to find
/// and enter other namespaces, to connect to another user's daemon.
const ANY: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::SYS_PTRACE);

/// Gives up what no such command needs. Called before its words are read: a
/// name among them is looked up while they are, and who is asked is a
/// stranger ([`host::ask_all`] gives up the rest for those threads).
pub fn give_up_before_words() -> Result<()> {
    privileges::give_up_but(ANY).context("cannot give up privileges")
}

/// Gives up what a change of the kernel's tables does not need; `enters`: it
/// is about another namespace.
pub fn give_up_but_changes(enters: bool) -> Result<()> {
    let mut kept = CapabilitySet::NET_ADMIN;
    if enters {
        kept |= CapabilitySet::SYS_ADMIN;
    }
    privileges::give_up_but(kept).context("cannot give up privileges")
}

/// A word as text, octet by octet.
pub fn text_of(word: &OsStr) -> String {
    table::text::of_octets(word.as_bytes()).into()
}

/// What follows the command's name.
pub fn words(matches: &ArgMatches) -> Vec<OsString> {
    let words = matches.get_many("arguments").unwrap_or_default();
    words.cloned().collect()
}

/// An address of six octets, as net-tools reads it: of one or two digits
/// each, with colons between them or, of two each, nothing.
pub fn six_octets(word: &str) -> Option<LinkLayerAddress> {
    let mut octets = Vec::with_capacity(6);
    let mut rest = word;
    while octets.len() < 6 {
        let end = rest.find(|one: char| !one.is_ascii_hexdigit());
        let digits = end.unwrap_or(rest.len()).min(2);
        octets.push(u8::from_str_radix(rest.get(..digits)?, 16).ok()?);
        rest = &rest[digits..];
        if octets.len() < 6 {
            rest = rest.strip_prefix(':').unwrap_or(rest);
        }
    }
    LinkLayerAddress::new(&octets).filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_octets_in_their_spellings() {
        let expected = LinkLayerAddress::new(&[2, 0, 0, 0, 0xa, 5]);
        for word in ["02:00:00:00:0a:05", "2:0:0:0:a:5", "020000000A05"] {
            assert_eq!(six_octets(word), expected, "{word}");
        }
        for word in ["", "zz", "2:0:0:0:0", "2:0:0:0:0:5:6", "2-0-0-0-0-5", "é"] {
            assert_eq!(six_octets(word), None, "{word}");
        }
    }
}
