//! The command line: it collects the definitions that stand beside each
//! command's code. [`command`] is what is parsed, and what help, man pages
//! and completions are made of.

mod rewrite;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use change::drill::{failover, ifaceseq};
use change::state::import::command as import;
use change::{links, rows, state};
use clap::error::ErrorKind;
use clap::{ArgMatches, Command};
use clap_complete::Shell;
use router::{forward, live};
use serve::control::protocol::Ask;
use serve::snmp;
use traffic::{receive, send};
use view::{Format, Object};
use words::Verb;

use crate::ask::{self, From};
use crate::daemon::{self, Up};
use crate::foreign::{self, Called};
use crate::nat::{self, Nat};
use crate::{arp, check, generate, ifconfig, ip, netstat, replay, sql, top};

/// What the user wants.
#[derive(Debug)]
pub enum Wanted {
    /// The daemon.
    Up(Up),
    /// A recording replayed.
    Replay(Box<crate::replay::Replay>),
    /// To know whether a configuration is right.
    Check(check::Check),
    /// Others' files as declared state.
    Import(import::Import),
    /// An answer.
    Ask(Ask, From),
    /// Statements of SQL.
    Sql(Box<sql::Sql>),
    /// A change to a table.
    Change(Object, Verb, Box<rows::Change>),
    /// Links made, deleted or changed.
    Link(links::Wanted, links::Terms),
    /// Links and rows as files say.
    State(state::Wanted),
    /// arp(8), with its own command line.
    Arp(Vec<OsString>, Called),
    /// ifconfig(8), with its own command line.
    Ifconfig(Vec<OsString>, Called),
    /// netstat(8), with its own command line.
    Netstat(Vec<OsString>),
    /// route(8), by that name alone.
    Route8(Vec<OsString>),
    /// ip(8) or bridge(8), with its own command line.
    Ip(ip::Tool, Vec<OsString>),
    /// To know what links cost.
    Ifaceseq(ifaceseq::Wanted),
    /// To know how fast a failover is seen.
    Failover(failover::Wanted),
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
    /// Packets forwarded at XDP, beside the kernel.
    Router(Box<live::Router>),
    /// `fingerpost snmp …`.
    Snmp(snmp::command::Command),
    /// Completions for a shell.
    Completions(Shell),
    /// Man pages in a directory.
    Man(PathBuf),
}

impl Wanted {
    /// Whether rows are told in the words of `ip`, for people.
    pub fn is_text(&self) -> bool {
        match self {
            Self::Ask(Ask::Question(question), _) => question.output.format == Format::Text,
            Self::Ask(Ask::RouteGet(get), _) => get.output.format == Format::Text,
            _ => false,
        }
    }
}

const AFTER_HELP: &str = "\
Questions are answered by the daemon of the namespace (`fingerpost up`), or by
the kernel when none runs, with the same answer. ip's own words work too:
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
        .subcommand(ask::status())
        .subcommand(replay::command());
    for object in Object::ALL {
        command = command.subcommand(of_object(object));
    }
    command
        .subcommands(state::command::commands())
        .subcommand(sql::command())
        .subcommand(arp::command())
        .subcommand(ifconfig::command())
        .subcommand(netstat::command())
        .subcommand(ip::command(ip::Tool::Ip))
        .subcommand(ip::command(ip::Tool::Bridge))
        .subcommand(ifaceseq::command())
        .subcommand(failover::command())
        .subcommand(top::command())
        .subcommand(nat::command())
        .subcommand(send::command())
        .subcommand(receive::command())
        .subcommand(forward::command())
        .subcommand(live::command())
        .subcommand(snmp::command::command())
        .subcommand(check::command())
        .subcommand(import::command())
        .subcommand(generate::completions_command())
        .subcommand(generate::man_command())
}

/// Questions about an object's rows, and changes of them.
fn of_object(object: Object) -> Command {
    let command = ask::command(object).subcommands(rows::command::commands(object));
    match object {
        Object::Route => command
            .subcommand(ask::route_get())
            .subcommand(ask::route_diff())
            .subcommand(ask::route_why())
            .subcommand(ask::route_flaps()),
        Object::Link => command.subcommands(links::command::commands()),
        _ => command,
    }
}

/// Reads the command line. `arguments` begin with the program's name.
pub fn parse(arguments: Vec<OsString>) -> Result<Wanted, clap::Error> {
    let mut arguments = arguments.into_iter();
    let program = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    match called_by(&program) {
        Some("arp") => return Ok(Wanted::Arp(rest, Called::ByItsName)),
        Some("ifconfig") => return Ok(Wanted::Ifconfig(rest, Called::ByItsName)),
        Some("route") => return Ok(Wanted::Route8(rest)),
        Some("netstat") => return Ok(Wanted::Netstat(rest)),
        Some(name) => {
            if let Some(tool) = ip::Tool::named(name) {
                return Ok(Wanted::Ip(tool, rest));
            }
        }
        None => {}
    }
    // Their words are not ours: nothing of them is rewritten.
    if let Some(tool) = rest
        .first()
        .and_then(|name| ip::Tool::named(name.to_str()?))
    {
        return Ok(Wanted::Ip(tool, rest.into_iter().skip(1).collect()));
    }
    let is_utf8 = rest.iter().all(|argument| argument.to_str().is_some());
    let matches = match matches_of(&rest) {
        // A file may be called anything, and so may a link.
        Err(_) if !is_utf8 => matches_of(&named(&rest)),
        matches => matches,
    }?;
    let Some((name, matches)) = matches.subcommand() else {
        return Err(usage("say what you want to know"));
    };
    wanted(name, matches)
}

/// Arguments with the names that are not UTF-8 as rows have them.
fn named(arguments: &[OsString]) -> Vec<OsString> {
    let arguments = arguments.iter().map(|argument| argument.as_bytes());
    let names = arguments.map(|octets| String::from(table::text::of_octets(octets)));
    names.map(OsString::from).collect()
}

fn matches_of(rest: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let texts: Option<Vec<String>> = rest
        .iter()
        .map(|argument| argument.to_str().map(str::to_owned))
        .collect();
    let rest: Vec<OsString> = match texts {
        Some(texts) => rewrite::rewrite(texts)
            .into_iter()
            .map(OsString::from)
            .collect(),
        None => rest.to_vec(),
    };
    let program = OsString::from("fingerpost");
    command().try_get_matches_from(std::iter::once(program).chain(rest))
}

/// The question behind `--` of a replay, and the namespace it is about.
fn replayed(words: Vec<OsString>) -> Result<(Ask, Option<String>), clap::Error> {
    let program = OsString::from("fingerpost");
    match parse(std::iter::once(program).chain(words).collect())? {
        Wanted::Ask(ask, from)
            if !from.all_netns && from.socket.is_none() && from.at_micros.is_none() =>
        {
            Ok((ask, from.netns))
        }
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
    command().error(ErrorKind::InvalidValue, message)
}

fn wanted(name: &str, matches: &ArgMatches) -> Result<Wanted, clap::Error> {
    if let Some(object) = Object::ALL.into_iter().find(|object| object.name() == name) {
        return wanted_of(object, matches).map_err(usage);
    }
    if let Some(wanted) = state::command::wanted(name, matches) {
        return Ok(Wanted::State(wanted));
    }
    Ok(match name {
        "up" => Wanted::Up(daemon::wanted(matches)),
        "replay" => Wanted::Replay(Box::new(replay::wanted(matches, replayed)?)),
        "check" => Wanted::Check(check::wanted(matches)),
        "import" => Wanted::Import(import::wanted(matches)),
        "status" => {
            let (ask, from) = ask::status_wanted(matches);
            Wanted::Ask(ask, from)
        }
        "arp" => Wanted::Arp(foreign::words(matches), Called::OfFingerpost),
        "ifconfig" => Wanted::Ifconfig(foreign::words(matches), Called::OfFingerpost),
        "netstat" => Wanted::Netstat(foreign::words(matches)),
        "ip" => Wanted::Ip(ip::Tool::Ip, foreign::words(matches)),
        "bridge" => Wanted::Ip(ip::Tool::Bridge, foreign::words(matches)),
        "ifaceseq" => Wanted::Ifaceseq(ifaceseq::wanted(matches)),
        "failover" => Wanted::Failover(failover::wanted(matches)),
        "sql" => Wanted::Sql(Box::new(sql::wanted(matches).map_err(usage)?)),
        "top" => Wanted::Top(top::wanted(matches)),
        "nat" => Wanted::Nat(nat::parse(matches)?),
        "send" => Wanted::Send(Box::new(send::parse(matches)?)),
        "receive" => Wanted::Receive(receive::parse(matches)?),
        "forward" => Wanted::Forward(Box::new(forward::parse(matches)?)),
        "router" => Wanted::Router(Box::new(live::parse(matches)?)),
        "snmp" => Wanted::Snmp(snmp::command::wanted(matches).map_err(usage)?),
        "completions" => match generate::shell(matches) {
            Some(shell) => Wanted::Completions(shell),
            None => return Err(usage("which shell?")),
        },
        "man" => Wanted::Man(generate::directory(matches)),
        _ => return Err(usage(format!("`{name}` is no command"))),
    })
}

/// What is wanted of an object's rows.
fn wanted_of(object: Object, matches: &ArgMatches) -> Result<Wanted, String> {
    if object == Object::Link
        && let Some((wanted, terms)) = links::command::wanted(matches)?
    {
        return Ok(Wanted::Link(wanted, terms));
    }
    if let Some((verb, change)) = rows::command::wanted(object, matches)? {
        return Ok(Wanted::Change(object, verb, Box::new(change)));
    }
    let (ask, from) = ask::wanted(object, matches)?;
    Ok(Wanted::Ask(ask, from))
}

#[cfg(test)]
mod tests;
