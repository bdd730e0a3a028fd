//! `add`, `replace`, `change`, `append`, `delete` under the objects that
//! have them: their options; the words between are `ip`'s and are read by
//! [`mod@super`].

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use ipnet::IpNet;
use words::{Object, ParseError, Verb, values};

use super::Change;
use crate::arguments::switch;
use crate::pattern::Numbers;

const AFTER_HELP: &str = "\
The words are ip's own. With -n a pattern stands for many: {} is the number,
and {/256}, {%256}, {*4+1} are computed from it. A file has a line for each:
ip's lines (`route add …`, or just the words after it) or JSON objects as
--ndjson and ip -j print them, so that a listing can be loaded again.
Each failure is reported with its line; the other lines are still done.
Exit status: 0 all were made, 1 some were not, 2 the command line is wrong.";

/// The commands of an object.
pub fn commands(object: Object) -> impl Iterator<Item = Command> {
    Verb::of(object)
        .iter()
        .map(move |verb| command(object, *verb))
}

fn command(object: Object, verb: Verb) -> Command {
    let (one, example) = example(object);
    let about = match verb {
        Verb::Add => format!("Make {one}; an error if it exists"),
        Verb::Replace => format!("Make {one}, or change the existing one"),
        Verb::Change => format!("Change {one} that exists"),
        Verb::Append => format!("Make {one}, behind others of the same prefix"),
        Verb::Prepend => format!("Make {one}, before others of the same prefix"),
        Verb::Delete => format!("Delete {one}"),
    };
    let command = Command::new(verb.name())
        .about(about)
        .after_help(AFTER_HELP)
        .args(arguments())
        .arg(
            Arg::new("words")
                .value_name("WORDS")
                .num_args(0..)
                .allow_hyphen_values(false)
                .help(format!("ip's words, like: {example}")),
        );
    if object == Object::Addr {
        command.args(split())
    } else {
        command
    }
}

fn example(object: Object) -> (&'static str, &'static str) {
    match object {
        Object::Addr => ("an address", "10.0.0.1/24 dev em1"),
        Object::Route => ("a route", "10.0.0.0/8 via 192.0.2.1 dev em1 metric 5"),
        Object::Neigh => (
            "a neighbour",
            "192.0.2.9 lladdr 02:00:00:00:00:09 nud permanent dev em1",
        ),
        Object::Rule => ("a rule", "from 10.0.0.0/8 lookup 100 priority 500"),
        Object::Nexthop => ("a next hop or group", "id 5 via 192.0.2.1 dev em1"),
        Object::Fdb => (
            "a forwarding entry",
            "02:00:00:00:00:09 dev em1 master static",
        ),
        Object::Link => ("a row", ""),
    }
}

fn arguments() -> Vec<Arg> {
    vec![
        Arg::new("file")
            .long("file")
            .value_name("FILE")
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(PathBuf))
            .conflicts_with("count")
            .help("A line for each, from here; -: standard input"),
        Arg::new("count")
            .long("count")
            .short('n')
            .value_name("N|FROM-TO")
            .value_parser(|text: &str| text.parse::<Numbers>())
            .help("One for each number, put into the words in the place of {}"),
        switch("ipv4", Some('4'), "IPv4, where the words do not say it").conflicts_with("ipv6"),
        switch("ipv6", Some('6'), "IPv6, where the words do not say it"),
        switch(
            "atomic",
            None,
            "All or nothing: after one failure, or Ctrl-C, everything is undone",
        ),
        Arg::new("max-errors")
            .long("max-errors")
            .value_name("N")
            .value_parser(value_parser!(u64).range(1..))
            .conflicts_with("atomic")
            .help("Stop after so many failures"),
        switch("json", Some('j'), "The result as one JSON object"),
        Arg::new("netns")
            .long("netns")
            .value_name("NAME|PATH|PID")
            .help("In this namespace instead of the current one"),
    ]
}

/// `--split 10.0.0.0/18 --len 30 --dev em1`
fn split() -> [Arg; 3] {
    [
        Arg::new("split")
            .long("split")
            .value_name("PREFIX")
            .value_parser(values::prefix)
            .action(ArgAction::Set)
            .requires_all(["len", "dev"])
            .conflicts_with_all(["file", "count"])
            .help("The first address of each part of this prefix, with its broadcast address"),
        Arg::new("len")
            .long("len")
            .value_name("LEN")
            .value_parser(value_parser!(u8).range(0..=128))
            .requires("split")
            .help("Length of the parts"),
        Arg::new("dev")
            .long("dev")
            .value_name("NAME")
            .requires("split")
            .help("Link of the addresses"),
    ]
}

/// What the command line asks for, if it asks for a change.
pub fn wanted(object: Object, matches: &ArgMatches) -> Result<Option<(Verb, Change)>, ParseError> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(None);
    };
    let verb = Verb::of(object).iter().find(|verb| verb.name() == name);
    match verb {
        Some(verb) => Ok(Some((*verb, change(object, matches)?))),
        None => Ok(None),
    }
}

fn change(object: Object, matches: &ArgMatches) -> Result<Change, ParseError> {
    let text = |id: &str| matches.get_one::<String>(id).cloned();
    let mut change = Change {
        words: matches
            .get_many("words")
            .unwrap_or_default()
            .cloned()
            .collect(),
        file: matches.get_one("file").cloned(),
        numbers: matches.get_one("count").cloned(),
        netns: text("netns"),
        family: match (matches.get_flag("ipv4"), matches.get_flag("ipv6")) {
            (true, _) => Some(table::AF_INET),
            (_, true) => Some(table::AF_INET6),
            _ => None,
        },
        atomic: matches.get_flag("atomic"),
        max_errors: matches.get_one("max-errors").copied(),
        json: matches.get_flag("json"),
        ..Change::default()
    };
    if object == Object::Addr {
        let prefix: Option<&IpNet> = matches.get_one("split");
        change.split = prefix.copied().zip(matches.get_one("len").copied());
        change.dev = text("dev");
    }
    if change.words.is_empty() && change.file.is_none() && change.split.is_none() {
        return Err("say what, in ip's words; or name a file with --file".to_owned());
    }
    Ok(change)
}
