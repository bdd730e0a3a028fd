//! From whom an answer is wanted: the arguments that every question has.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};

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
