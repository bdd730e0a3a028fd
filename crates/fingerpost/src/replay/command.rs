//! The command line of `fingerpost replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use serve::control::protocol::Ask;

use super::until::Until;
use words::calendar;

use super::Replay;

const AFTER_HELP: &str = "\
Without a question it answers at a control socket until Ctrl-C:
  fingerpost replay FILE
  fingerpost --socket SOCKET neigh
With one, once and without any socket:
  fingerpost replay FILE -- route show 10.0.0.0/8
A recording in several parts is replayed in its order: FILE.1 FILE. A file
packed by gzip is unpacked; `-` is standard input.
Exit status: 1 also when a recording is damaged or cut off; answers then come
from what stands before the damage.";

/// The command.
pub fn command() -> Command {
    Command::new("replay")
        .about("Answer questions from a recording, without privileges")
        .after_help(AFTER_HELP)
        .arg(
            Arg::new("files")
                .value_name("FILE")
                .required(true)
                .num_args(1..)
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("What `fingerpost up --record` wrote; `-`: standard input"),
        )
        .arg(
            Arg::new("real-time")
                .long("real-time")
                .action(ArgAction::SetTrue)
                .help("At the pace it was recorded, answering meanwhile"),
        )
        .arg(
            Arg::new("until")
                .long("until")
                .value_name("TIME")
                .value_parser(until)
                .help("No further than this: 2026-11-22T03:15:00Z, @SECONDS since 1970, or +SECONDS after the beginning"),
        )
        .arg(
            Arg::new("netns")
                .long("netns")
                .short('n')
                .value_name("NAME")
                .help("Only this namespace of the recording; `own` is the daemon's own"),
        )
        .arg(
            Arg::new("socket")
                .long("socket")
                .value_name("PATH")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("question")
                .help("Listen here instead of at a name of its own"),
        )
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Limits, sockets, SNMP and HTTP as in this configuration [default: neither of these two]"),
        )
        .arg(
            Arg::new("log")
                .long("log")
                .value_name("LEVEL")
                .help("What is logged, as for `fingerpost up`"),
        )
        .arg(
            Arg::new("question")
                .value_name("QUESTION")
                .last(true)
                .num_args(1..)
                .value_parser(value_parser!(OsString))
                .help("Answer this and end"),
        )
}

/// What the command line says. `asked` reads the words of a question, and
/// tells which namespace it is about.
pub fn wanted(
    matches: &ArgMatches,
    asked: impl FnOnce(Vec<OsString>) -> Result<(Ask, Option<String>), clap::Error>,
) -> Result<Replay, clap::Error> {
    let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
    let question: Option<Vec<OsString>> = matches
        .get_many("question")
        .map(|words| words.cloned().collect());
    let question = question.map(asked).transpose()?;
    let asked_of = question.as_ref().and_then(|(_, netns)| netns.clone());
    Ok(Replay {
        files: matches
            .get_many("files")
            .unwrap_or_default()
            .cloned()
            .collect(),
        real_time: matches.get_flag("real-time"),
        until: matches.get_one("until").copied(),
        netns: asked_of.or(matches.get_one("netns").cloned()),
        socket: path("socket"),
        config: path("config"),
        log: matches.get_one("log").cloned(),
        question: question.map(|(ask, _)| ask),
    })
}

fn until(text: &str) -> Result<Until, String> {
    let wrong = || {
        format!("`{text}` is no time: 2026-11-22T03:15:00Z, @SECONDS since 1970, or +SECONDS are")
    };
    let micros = |seconds: &str| {
        let seconds: f64 = seconds.parse().map_err(|_| wrong())?;
        if !(0.0..1e12).contains(&seconds) {
            return Err(wrong());
        }
        Ok((seconds * 1e6) as u64)
    };
    if let Some(seconds) = text.strip_prefix('+') {
        return micros(seconds).map(Until::After);
    }
    if let Some(seconds) = text.strip_prefix('@') {
        return micros(seconds).map(Until::At);
    }
    calendar::parse(text).map(Until::At).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_understood() {
        assert_eq!(until("+1.5").unwrap(), Until::After(1_500_000));
        assert_eq!(until("@10").unwrap(), Until::At(10_000_000));
        assert_eq!(
            until("1970-01-01T00:01:00Z").unwrap(),
            Until::At(60_000_000)
        );
        for wrong in ["", "soon", "+", "+-1", "@nan", "1960-01-01T00:00:00Z"] {
            assert!(until(wrong).is_err(), "{wrong}");
        }
    }
}
