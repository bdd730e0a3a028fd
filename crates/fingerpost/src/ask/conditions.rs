//! The conditions of questions ([`view::conditions`]) as arguments of the
//! command line.

use clap::{Arg, ArgAction, ArgMatches};
use view::conditions::Word;

/// A condition as an argument.
pub fn argument<T: Default + 'static>(word: &'static Word<T>) -> Arg {
    let arg = Arg::new(word.flag)
        .long(word.flag)
        .help(help(word))
        .help_heading("Which rows");
    let arg = match word.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    match word.value {
        None => arg.action(ArgAction::SetTrue),
        Some(name) => arg
            .value_name(name)
            .action(if word.many {
                ArgAction::Append
            } else {
                ArgAction::Set
            })
            .value_parser(move |value: &str| {
                (word.set)(&mut T::default(), value).map(|()| value.to_owned())
            }),
    }
}

/// Its help, with what `ip` calls it where that differs from the flag.
fn help<T>(word: &Word<T>) -> String {
    let other: Vec<_> = word
        .bare
        .iter()
        .filter(|bare| **bare != word.flag)
        .copied()
        .collect();
    if other.is_empty() {
        word.help.to_owned()
    } else {
        format!("{} (ip: {})", word.help, other.join(", "))
    }
}

/// Applies what was given on the command line.
pub fn apply<T>(word: &Word<T>, matches: &ArgMatches, to: &mut T) -> Result<(), String> {
    if word.value.is_none() {
        return if matches.get_flag(word.flag) {
            (word.set)(to, "")
        } else {
            Ok(())
        };
    }
    for value in matches.get_many::<String>(word.flag).unwrap_or_default() {
        (word.set)(to, value)?;
    }
    Ok(())
}
