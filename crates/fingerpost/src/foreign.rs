//! Commands with a command line of their own, those of another tool: what
//! follows their name is theirs to read.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
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

/// What follows the command's name.
pub fn words(matches: &ArgMatches) -> Vec<OsString> {
    let words = matches.get_many("arguments").unwrap_or_default();
    words.cloned().collect()
}
