//! Commands with a command line of their own, those of another tool: what
//! follows their name is theirs to read.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Command, value_parser};

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

/// What follows the command's name.
pub fn words(matches: &ArgMatches) -> Vec<OsString> {
    let words = matches.get_many("arguments").unwrap_or_default();
    words.cloned().collect()
}
