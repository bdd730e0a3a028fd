//! From whom an answer is wanted: the arguments that every question has.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};

use super::at::at;

/// From whom an answer is wanted.
#[derive(Debug, Clone, Default)]
pub struct From {
    /// A namespace other than the own.
    pub netns: Option<String>,
    /// All named namespaces.
    pub all_netns: bool,
    /// From the kernel, whether a daemon runs or not.
    pub direct: bool,
    /// The daemon that listens here.
    pub socket: Option<PathBuf>,
    /// Changes instead of rows.
    pub watch: bool,
    /// As it was at this time, microseconds since the UNIX epoch.
    pub at_micros: Option<u64>,
    /// Where the history is that tells it.
    pub history: Option<PathBuf>,
}

/// The arguments that say it.
pub fn from_arguments() -> Vec<Arg> {
    let arguments = [
        Arg::new("netns")
            .long("netns")
            .short('n')
            .value_name("NAME|PATH|PID")
            .help("Of this namespace instead of the current one"),
        switch("all-netns", None, "Of all named namespaces").conflicts_with("netns"),
        switch("direct", None, "From the kernel, even if a daemon runs").conflicts_with("socket"),
        Arg::new("socket")
            .long("socket")
            .value_name("PATH")
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(PathBuf))
            .conflicts_with_all(["netns", "all-netns"])
            .help("From the daemon that listens here"),
        Arg::new("at")
            .long("at")
            .value_name("TIME")
            .allow_hyphen_values(true)
            .value_parser(at)
            .conflicts_with_all(["all-netns", "direct", "socket"])
            .help(
                "As it was then, from the history that the daemon keeps: 14:05 (the last time \
                 that it was), `yesterday 14:05`, -10m, 2026-11-22T03:15:00Z, or @SECONDS since 1970",
            ),
        Arg::new("history")
            .long("history")
            .value_name("DIRECTORY")
            .value_hint(ValueHint::DirPath)
            .value_parser(value_parser!(PathBuf))
            .requires("at")
            .help(
                "Where that is [default: as the configuration says, or /var/lib/fingerpost/history]",
            ),
    ];
    arguments
        .map(|argument| argument.help_heading("From where"))
        .into()
}

/// What they say.
pub fn from(matches: &ArgMatches) -> From {
    From {
        netns: matches.get_one("netns").cloned(),
        all_netns: matches.get_flag("all-netns"),
        direct: matches.get_flag("direct"),
        socket: matches.get_one("socket").cloned(),
        // Not every command has it. (What clap says of an unknown name
        // differs between debug and release builds; this holds in both.)
        watch: matches.try_get_one("watch").ok().flatten() == Some(&true),
        at_micros: matches.try_get_one("at").ok().flatten().copied(),
        history: matches.try_get_one("history").ok().flatten().cloned(),
    }
}

/// A flag without a value.
pub fn switch(name: &'static str, short: Option<char>, help: &'static str) -> Arg {
    let arg = Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .help(help);
    match short {
        Some(short) => arg.short(short),
        None => arg,
    }
}
