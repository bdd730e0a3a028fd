//! What several commands' definitions are made of.

use clap::{Arg, ArgAction};

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
