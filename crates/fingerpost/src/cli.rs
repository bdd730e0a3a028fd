//! The command line, from one definition: [`command`] is what is parsed,
//! and what help, man pages and completions are made of.

mod conditions;
mod rewrite;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::PathBuf;

use change::{links, rows};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, ValueHint, value_parser};
use clap_complete::Shell;
use router::forward;
use serve::control::protocol::Ask;
use serve::snmp;
use traffic::{receive, send};
use view::conditions::{FILTERS, GET, Packet, of_object, settle_family};
use view::{Filter, Format, Object, Output, Question, RouteQuestion};
use words::{Verb, values};

use crate::arp::Called;
use crate::ask::{self, From, switch};
use crate::daemon::{self, Up};
use crate::nat::{self, Nat};
use crate::{failover, ifaceseq, replay, top};

/// What the user wants.
#[derive(Debug)]
pub enum Wanted {
    /// The daemon.
    Up(Up),
    /// A recording replayed.
    Replay(Box<crate::replay::Replay>),
    /// To know whether a configuration is right.
    Check(Option<PathBuf>),
    /// An answer.
    Ask(Ask, From),
    /// A change to a table.
    Change(Object, Verb, Box<rows::Change>),
    /// Links made, deleted or changed.
    Link(links::Wanted, links::Terms),
    /// arp(8), with its own command line.
    Arp(Vec<OsString>, Called),
    /// ifconfig(8), with its own command line.
    Ifconfig(Vec<OsString>, Called),
    /// To know what links cost.
    Ifaceseq(ArgMatches),
    /// To know how fast a failover is seen.
    Failover(ArgMatches),
    /// Rates and changes on a full screen.
    Top(top::Top),
    /// The translation engine by itself.
    Nat(Nat),
    /// UDP packets sent.
    Send(Box<send::Arguments>),
    /// UDP packets counted.
    Receive(receive::Arguments),
    /// Packets moved by the tables.
    Forward(Box<forward::Forward>),
    /// `fingerpost snmp …`.
    Snmp(snmp::command::Command),
    /// Completions for a shell.
    Completions(Shell),
    /// Man pages in a directory.
    Man(PathBuf),
}

const OBJECTS: [(Object, &str); 7] = [
    (Object::Link, "Links (network interfaces)"),
    (Object::Addr, "IP addresses of links"),
    (Object::Neigh, "ARP and ND neighbours"),
    (
        Object::Route,
        "Routes; `route get ADDR`: the one a packet would take",
    ),
    (Object::Nexthop, "Next-hop objects and groups"),
    (Object::Rule, "Rules of policy routing"),
    (Object::Fdb, "Bridge and VXLAN forwarding entries"),
];

const AFTER_HELP: &str = "\
Questions are answered by the daemon of the namespace (`fingerpost up`), or by
the kernel when none runs: the same answer. ip's own words do as well:
  fingerpost neigh show dev eth0 nud stale
  fingerpost -j route show to root 10.0.0.0/8
  fingerpost route get 10.0.5.80
Changes are made by the process that asks, in ip's words too, one or a file of
them: fingerpost route add --file routes.txt
Exit status: 0 done (an empty answer too, and a pipe closed early), 1 it
failed, 2 the command line is wrong, 3 the answer may lack rows.";

/// The whole command line.
pub fn command() -> Command {
    let mut command = Command::new("fingerpost")
        .version(env!("CARGO_PKG_VERSION"))
        .about("What a router knows, at any size, answered at once")
        .after_help(AFTER_HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .max_term_width(100)
        .subcommand(daemon::command())
        .subcommand(status())
        .subcommand(replay::command());
    for (object, about) in OBJECTS {
        command = command.subcommand(question(object, about));
    }
    command
        .subcommand(foreign(
            "arp",
            "The ARP table, as arp(8) shows and changes it",
        ))
        .subcommand(foreign(
            "ifconfig",
            "Links and addresses, as ifconfig(8) shows them",
        ))
        .subcommand(ifaceseq::command())
        .subcommand(failover::command())
        .subcommand(top::command())
        .subcommand(nat::command())
        .subcommand(send::command())
        .subcommand(receive::command())
        .subcommand(forward::command())
        .subcommand(snmp::command::command())
        .subcommand(check())
        .subcommand(completions())
        .subcommand(man())
}

fn check() -> Command {
    Command::new("check")
        .about("Say whether a configuration is right")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The configuration [default: /etc/fingerpost/fingerpost.toml, or /etc/fingerpost.toml]"),
        )
}

fn status() -> Command {
    Command::new("status")
        .about("How the daemon is: what it mirrors, how much, how well")
        .arg(switch("json", Some('j'), "As one JSON object"))
        .args(ask::from_arguments())
        .mut_arg("direct", |arg| arg.hide(true))
}

fn completions() -> Command {
    Command::new("completions")
        .about("Write completions for a shell to standard output")
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(value_parser!(Shell)),
        )
}

fn man() -> Command {
    Command::new("man")
        .about("Write the man pages into a directory")
        .arg(
            Arg::new("directory")
                .value_name("DIR")
                .required(true)
                .value_hint(ValueHint::DirPath)
                .value_parser(value_parser!(PathBuf)),
        )
}

/// A command with a command line of its own.
fn foreign(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).disable_help_flag(true).arg(
        Arg::new("arguments")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(value_parser!(OsString)),
    )
}

fn question(object: Object, about: &'static str) -> Command {
    let name = rewrite::command(object);
    let bare = of_object(FILTERS, object).flat_map(|word| word.bare.iter().copied());
    let spoken: Vec<&str> = ["show", "list"].into_iter().chain(bare).collect();
    let command = Command::new(name)
        .about(about)
        .args(of_object(FILTERS, object).map(conditions::argument))
        .args(output_arguments())
        .arg(
            switch(
                "watch",
                None,
                "Changes as they happen, one line of JSON each",
            )
            // A change is a line of JSON, and there is no last one.
            .conflicts_with_all(["fields", "csv", "sort", "count"])
            .help_heading("How"),
        )
        .group(ArgGroup::new("family").args(["ipv4", "ipv6"]))
        .args(ask::from_arguments())
        .arg(
            Arg::new("words")
                .value_name("WORDS")
                .num_args(0..)
                .value_parser(PossibleValuesParser::new(spoken))
                .hide_possible_values(true)
                .help("ip's own words for the same: show, dev NAME, …"),
        );
    let command = command
        .args_conflicts_with_subcommands(true)
        .subcommands(rows::command::commands(object));
    if object == Object::Route {
        command.subcommand(route_get())
    } else if object == Object::Link {
        command.subcommands(links::command::commands())
    } else {
        command
    }
}

fn route_get() -> Command {
    Command::new("get")
        .about("The route that a packet would take")
        .arg(
            Arg::new("address")
                .value_name("ADDRESS")
                .required(true)
                .value_parser(values::address)
                .help("Where it goes"),
        )
        .args(of_object(GET, Object::Route).map(conditions::argument))
        .args(output_arguments())
        .args(ask::from_arguments())
        .mut_arg("sort", |arg| arg.hide(true))
        .mut_arg("count", |arg| arg.hide(true))
}

fn output_arguments() -> Vec<Arg> {
    let mut arguments = vec![
        switch("json", Some('j'), "One JSON array, in the shape of ip -j")
            .conflicts_with_all(["ndjson", "csv"]),
        switch("ndjson", None, "One JSON object a line").conflicts_with("csv"),
        switch("csv", None, "Comma-separated values with a header"),
        Arg::new("fields")
            .long("fields")
            .value_name("A,B,…")
            .action(ArgAction::Append)
            .value_delimiter(',')
            .help("Only these columns, in this order"),
        Arg::new("sort")
            .long("sort")
            .value_name("FIELD")
            .allow_hyphen_values(true)
            .help("Sort by a column; -FIELD: downwards"),
        switch("count", None, "Only the number of rows"),
        switch("details", Some('d'), "More of each row"),
        switch("statistics", Some('s'), "Counters and ages"),
        switch("oneline", Some('o'), "One line a row"),
        Arg::new("colour")
            .long("colour")
            .visible_alias("color")
            .value_name("WHEN")
            .value_parser(["auto", "always", "never"])
            .default_value("auto")
            .hide_possible_values(true)
            .help("auto, always or never"),
    ];
    for argument in &mut arguments {
        *argument = argument.clone().help_heading("How");
    }
    arguments
}

/// Reads the command line. `arguments` begin with the program's name.
pub fn parse(arguments: Vec<OsString>) -> Result<Wanted, clap::Error> {
    let mut arguments = arguments.into_iter();
    let program = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    match called_by(&program) {
        Some("arp") => return Ok(Wanted::Arp(rest, Called::ByItsName)),
        Some("ifconfig") => return Ok(Wanted::Ifconfig(rest, Called::ByItsName)),
        _ => {}
    }
    let texts: Option<Vec<String>> = rest
        .iter()
        .map(|argument| argument.to_str().map(str::to_owned))
        .collect();
    let rest: Vec<OsString> = match texts {
        Some(texts) => rewrite::rewrite(texts)
            .into_iter()
            .map(OsString::from)
            .collect(),
        None => rest,
    };
    let program = OsString::from("fingerpost");
    let matches = command().try_get_matches_from(std::iter::once(program).chain(rest))?;
    let Some((name, matches)) = matches.subcommand() else {
        return Err(usage("say what you want to know"));
    };
    wanted(name, matches)
}

/// The question behind `--` of a replay, and the namespace it is about.
fn replayed(words: Vec<OsString>) -> Result<(Ask, Option<String>), clap::Error> {
    let program = OsString::from("fingerpost");
    match parse(std::iter::once(program).chain(words).collect())? {
        Wanted::Ask(ask, from) if !from.all_netns && from.socket.is_none() => Ok((ask, from.netns)),
        _ => Err(usage(
            "after `--` stands a question about one namespace: link, addr, neigh, route, \
             nexthop, rule, fdb or status",
        )),
    }
}

/// The name a program was called by, without its directory.
fn called_by(program: &OsString) -> Option<&str> {
    std::path::Path::new(program).file_name()?.to_str()
}

fn usage(message: impl std::fmt::Display) -> clap::Error {
    command().error(clap::error::ErrorKind::InvalidValue, message)
}

fn wanted(name: &str, matches: &ArgMatches) -> Result<Wanted, clap::Error> {
    let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
    let foreign = || {
        matches
            .get_many("arguments")
            .unwrap_or_default()
            .cloned()
            .collect()
    };
    let object = OBJECTS
        .iter()
        .find(|(object, _)| rewrite::command(*object) == name);
    Ok(match (name, object) {
        ("up", _) => Wanted::Up(daemon::wanted(matches)),
        ("replay", _) => Wanted::Replay(Box::new(replay::wanted(matches, replayed)?)),
        ("check", _) => Wanted::Check(path("file")),
        ("status", _) => {
            let from = ask::from(matches);
            Wanted::Ask(
                Ask::Status {
                    json: matches.get_flag("json"),
                },
                from,
            )
        }
        ("arp", _) => Wanted::Arp(foreign(), Called::OfFingerpost),
        ("ifconfig", _) => Wanted::Ifconfig(foreign(), Called::OfFingerpost),
        ("ifaceseq", _) => Wanted::Ifaceseq(matches.clone()),
        ("failover", _) => Wanted::Failover(matches.clone()),
        ("top", _) => Wanted::Top(top::wanted(matches)),
        ("nat", _) => Wanted::Nat(nat::parse(matches)?),
        ("send", _) => Wanted::Send(Box::new(send::parse(matches)?)),
        ("receive", _) => Wanted::Receive(receive::parse(matches)?),
        ("forward", _) => Wanted::Forward(Box::new(forward::parse(matches)?)),
        ("snmp", _) => Wanted::Snmp(snmp::command::wanted(matches).map_err(usage)?),
        ("completions", _) => match matches.get_one::<Shell>("shell") {
            Some(shell) => Wanted::Completions(*shell),
            None => return Err(usage("which shell?")),
        },
        ("man", _) => Wanted::Man(path("directory").unwrap_or_default()),
        (_, Some((Object::Route, _))) if let Some(("get", matches)) = matches.subcommand() => {
            Wanted::Ask(
                Ask::RouteGet(Box::new(route_to_get(matches)?)),
                ask::from(matches),
            )
        }
        (_, Some((Object::Link, _)))
            if let Some((wanted, terms)) = links::command::wanted(matches).map_err(usage)? =>
        {
            Wanted::Link(wanted, terms)
        }
        (_, Some((object, _)))
            if let Some((verb, change)) =
                rows::command::wanted(*object, matches).map_err(usage)? =>
        {
            Wanted::Change(*object, verb, Box::new(change))
        }
        (_, Some((object, _))) => {
            let question = Box::new(asked(*object, matches)?);
            let from = ask::from(matches);
            let ask = if from.watch {
                Ask::Watch(question)
            } else {
                Ask::Question(question)
            };
            Wanted::Ask(ask, from)
        }
        _ => return Err(usage(format!("`{name}` is no command"))),
    })
}

fn route_to_get(matches: &ArgMatches) -> Result<RouteQuestion, clap::Error> {
    let mut packet = Packet::default();
    for word in of_object(GET, Object::Route) {
        conditions::apply(word, matches, &mut packet).map_err(usage)?;
    }
    let to: Option<&IpAddr> = matches.get_one("address");
    let to = to.ok_or_else(|| usage("where does the packet go?"))?;
    let mut question = packet.question(*to);
    question.output = output(matches);
    Ok(question)
}

fn asked(object: Object, matches: &ArgMatches) -> Result<Question, clap::Error> {
    let mut filter = Filter::default();
    for word in of_object(FILTERS, object) {
        conditions::apply(word, matches, &mut filter).map_err(usage)?;
    }
    settle_family(&mut filter);
    Ok(Question {
        object,
        filter,
        output: output(matches),
    })
}

fn output(matches: &ArgMatches) -> Output {
    let format = if matches.get_flag("json") {
        Format::Json
    } else if matches.get_flag("ndjson") {
        Format::Ndjson
    } else if matches.get_flag("csv") {
        Format::Csv
    } else {
        Format::Text
    };
    let colour = matches
        .get_one::<String>("colour")
        .map_or("auto", String::as_str);
    Output {
        format,
        fields: matches
            .get_many("fields")
            .unwrap_or_default()
            .cloned()
            .collect(),
        sort: matches.get_one("sort").cloned(),
        count: matches.get_flag("count"),
        details: matches.get_flag("details"),
        statistics: matches.get_flag("statistics"),
        oneline: matches.get_flag("oneline"),
        colour: colour == "always" || colour == "auto" && colours_suit_the_output(),
        words: false,
        netns: None,
    }
}

/// Whether standard output is a terminal that may show colours
/// (<https://no-color.org>).
fn colours_suit_the_output() -> bool {
    std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests;
