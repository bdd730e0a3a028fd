//! `link add`, `link delete`, `link set` and `link journal`: their options,
//! and `ip`'s own words for the same.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use ipnet::IpNet;
use linux::links::journal::Work;
use words::{ParseError, values};

use super::{Deletion, Plan, Select, Settings, Split, Terms, Wanted, grammar};
use crate::arguments::switch;
use crate::pattern::Numbers;

/// What `ip` calls the commands. It takes any beginning of them; the first
/// in this list wins.
const COMMANDS: &[(&str, &str)] = &[
    ("add", "add"),
    ("set", "set"),
    ("change", "set"),
    ("delete", "delete"),
];

const ADD_HELP: &str = "\
With -n a pattern stands for many: {} is the number, and {/256}, {%256},
{*4+1} are computed from it. ip's own words work too:
  fingerpost link add -n 1000 --kind veth --name 'testa{}' --peer 'testb{}'
  fingerpost link add testa{} type veth peer name testb{} -n 1000
  fingerpost link add -n 9000 --kind vlan --link eth0,eth1,eth2 --name 'v{}'
  fingerpost link add -n 500 --kind vxlan --name 'vx{}' id {} dstport 4789
While they are made the links carry a random group number, by which a journal
finds them again: after Ctrl-C or a kill, --resume continues and --undo removes
what was made. Then they are in the group of --group, or in ip's default.
Exit status: 0 all were made, 1 some were not (each is named), 2 the command
line makes no sense and nothing was done.";

const DELETE_HELP: &str = "\
Names may be patterns: 'testa*', 'testa[1-500]', or with -n 'testa{}'.
Conditions must all hold; ip's `group N` and `type KIND` are conditions too.
The other ends of veths are deleted with them, as in the kernel. What else it
would delete (VLANs and macvlans on a link or on such an end, in other
namespaces too) is listed first, and nothing is done unless it is named too or
--cascade is given.
Many links are deleted as one group: the kernel waits once, not for each.
--undo brings back links with their names, indexes, kinds and settings, MAC,
MTU, groups, masters, flags and addresses, and what went with them: routes, next
hops, neighbours and forwarding entries that somebody made, ports of a bridge,
settings under /proc/sys/net/ipv4/conf and ipv6/conf. It lists what does not
come back: counters, what was learnt, queueing disciplines, settings of ports.
Exit status: 0 all are deleted, 1 some are not (each is named), 2 the command
line makes no sense and nothing was done.";

const SET_HELP: &str = "\
ip's own words work too:
  fingerpost link set 'testa{}' -n 1000 up mtu 1400
  fingerpost link set --kind veth --in-group 7 nomaster
With --atomic one failure puts all back as it was. A journal is kept: after
Ctrl-C or a kill, --resume goes on, and --undo puts the links back as they
were, with the addresses, next hops, routes and permanent neighbours that the
kernel removed when links went down; not learnt neighbours and
forwarding entries, nor a port's own settings in its bridge or bond.
Exit status: 0 all are as wanted, 1 some are not (each is named), 2 the
command line makes no sense and nothing was done.";

/// The command that a word of `ip` means.
pub fn meant(word: &str) -> Option<&'static str> {
    if word == "journal" {
        return Some("journal");
    }
    COMMANDS
        .iter()
        .find(|(theirs, _)| !word.is_empty() && theirs.starts_with(word))
        .map(|(_, ours)| *ours)
}

/// The commands.
pub fn commands() -> [Command; 4] {
    [add(), delete(), set(), journal()]
}

fn add() -> Command {
    Command::new("add")
        .about("Make links, one or by the thousand")
        .after_help(ADD_HELP)
        .arg(count())
        .args([
            value("start", "K", "The first number [default: 1]")
                .value_parser(value_parser!(u64).range(..=1 << 32)),
            value("kind", "KIND", "veth, vlan, macvlan, bridge, vxlan, … (ip: type)"),
            value("name", "PATTERN", "Their names, like 'testa{}'"),
            value("peer", "PATTERN", "Names of veths' other ends"),
            value("peer-netns", "NAME|PATH|PID", "Make the other ends in this namespace"),
            value("link", "NAME,…", "The link below; several take 4,094 VLANs each, or turns")
                .value_delimiter(',')
                .action(ArgAction::Append),
            value("qinq", "PATTERN", "Put VLANs on 802.1ad VLANs of these names, 4,094 on each"),
            number("mtu", "BYTES", "MTU, of peers too"),
            value("address", "PATTERN", "MAC, like 02:00:00:{/65536}:{/256%256}:{%256}"),
            value("peer-address", "PATTERN", "MAC of the other ends"),
            value("addr", "PATTERN", "An IP address for each, like 10.{/256}.{%256}.1/30")
                .action(ArgAction::Append),
            value("peer-addr", "PATTERN", "An IP address for each of the other ends")
                .action(ArgAction::Append),
            value("split", "PREFIX", "Addresses from the parts of this prefix: the first for the link, the second for its peer")
                .value_parser(values::prefix),
            value("len", "LEN", "Length of the parts [default: 30, or 127]")
                .value_parser(value_parser!(u8).range(..=128))
                .requires("split"),
            value("master", "NAME", "Bridge, bond or VRF that they join; a pattern too"),
            value("group", "NUMBER", "Group that they are in at the end")
                .value_parser(values::group),
            number("txqueuelen", "PACKETS", "Length of the transmit queue"),
            switch("up", None, "Up at once, peers too"),
        ])
        .args(terms())
        .args(again())
        .arg(words("the kind's options in ip's words, or ip's whole line"))
}

fn delete() -> Command {
    Command::new("delete")
        .about("Delete links, one or by the thousand")
        .after_help(DELETE_HELP)
        .arg(count())
        .args(selection(["group", "master"]))
        .args([
            value(
                "peer",
                "PATTERN",
                "Name of the other ends: they are meant too",
            ),
            switch(
                "cascade",
                None,
                "Delete also what the kernel deletes with them",
            ),
            switch("dry-run", None, "Only list what would be deleted"),
        ])
        .args(terms())
        .args(again())
        .arg(words("names and patterns"))
}

fn set() -> Command {
    Command::new("set")
        .about("Change links, one or by the thousand")
        .after_help(SET_HELP)
        .arg(count())
        .args(selection(["in-group", "in-master"]))
        .args([
            switch("up", None, "Up").conflicts_with("down"),
            switch("down", None, "Down"),
            number("mtu", "BYTES", "MTU"),
            value("master", "NAME", "Bridge, bond or VRF to join").conflicts_with("nomaster"),
            switch("nomaster", None, "Leave the master"),
            value("group", "NUMBER", "Group").value_parser(values::group),
            value("rename", "PATTERN", "New names (ip: name)"),
            value("address", "PATTERN", "MAC"),
            number("txqueuelen", "PACKETS", "Length of the transmit queue"),
            value("alias", "TEXT", "Alias"),
        ])
        .args(terms())
        .args(again())
        .arg(words("names and patterns, and ip's words: up, mtu 1400, …"))
}

fn journal() -> Command {
    Command::new("journal")
        .about("List what can be resumed or undone")
        .args(terms())
        .mut_arg("atomic", |arg| arg.hide(true))
        .mut_arg("no-journal", |arg| arg.hide(true))
        .mut_arg("netns", |arg| arg.hide(true))
}

fn value(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn number(name: &'static str, unit: &'static str, help: &'static str) -> Arg {
    value(name, unit, help).value_parser(value_parser!(u32))
}

fn words(help: &'static str) -> Arg {
    Arg::new("words")
        .value_name("WORDS")
        .num_args(0..)
        .help(help)
}

fn count() -> Arg {
    value("count", "N|FROM-TO", "For so many, or for these numbers")
        .short('n')
        .value_parser(|text: &str| text.parse::<Numbers>())
}

fn selection([group, master]: [&'static str; 2]) -> Vec<Arg> {
    let arguments = [
        value(
            "name",
            "PATTERN",
            "Names, like 'testa*' or, with -n, 'testa{}'",
        )
        .action(ArgAction::Append),
        value("kind", "KIND", "Of this kind (ip: type)"),
        value(group, "NUMBER", "In this group").value_parser(values::group),
        value(master, "NAME", "In this bridge, bond or VRF"),
        value("link", "NAME", "On this link"),
        value(
            "file",
            "FILE",
            "Names from here, a line each; -: standard input",
        )
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf)),
        switch("all", None, "All that are not hardware"),
    ];
    arguments
        .map(|argument| argument.help_heading("Which links"))
        .into()
}

fn terms() -> [Arg; 5] {
    [
        value("netns", "NAME|PATH|PID", "In this namespace instead of the current one"),
        switch("atomic", None, "All or nothing: after one failure, or Ctrl-C, everything is undone"),
        switch("json", Some('j'), "The result as lines of JSON"),
        switch("no-journal", None, "Keep no journal: nothing can be resumed or undone"),
        value("journal", "DIR", "Keep journals here [default: /run/fingerpost-journal, or $XDG_RUNTIME_DIR/fingerpost/journal]")
            .value_hint(ValueHint::DirPath)
            .value_parser(value_parser!(PathBuf))
            .conflicts_with("no-journal"),
    ]
}

fn again() -> [Arg; 2] {
    let again = |name, help| {
        value(name, "JOURNAL", help)
            .num_args(0..=1)
            .default_missing_value("")
            .help_heading("Again")
    };
    [
        again("resume", "Continue where it stopped [default: the newest]"),
        again("undo", "Undo what was done [default: the newest]").conflicts_with("resume"),
    ]
}

/// What the command line asks for, if it asks for links to be changed.
pub fn wanted(matches: &ArgMatches) -> Result<Option<(Wanted, Terms)>, ParseError> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(None);
    };
    let wanted = match name {
        "add" | "delete" | "set" if let Some(wanted) = again_wanted(name, matches) => wanted,
        "add" => Wanted::Add(Box::new(plan(matches)?)),
        "delete" => {
            let deletion = Deletion {
                cascade: matches.get_flag("cascade"),
                dry_run: matches.get_flag("dry-run"),
            };
            let mut select = select(matches, ["group", "master"]);
            grammar::delete(&all(matches), &mut select)?;
            select.names.extend(text(matches, "peer"));
            Wanted::Delete(select, deletion)
        }
        "set" => {
            let mut settings = settings(matches);
            let mut select = select(matches, ["in-group", "in-master"]);
            grammar::set(&all(matches), &mut settings, &mut select)?;
            Wanted::Set(select, Box::new(settings))
        }
        "journal" => Wanted::Journal,
        _ => return Ok(None),
    };
    let terms = Terms {
        netns: text(matches, "netns"),
        atomic: matches.get_flag("atomic"),
        json: matches.get_flag("json"),
        no_journal: matches.get_flag("no-journal"),
        journal: matches.get_one("journal").cloned(),
    };
    Ok(Some((wanted, terms)))
}

fn again_wanted(name: &str, matches: &ArgMatches) -> Option<Wanted> {
    let id = |flag: &str| text(matches, flag).map(|id| Some(id).filter(|id| !id.is_empty()));
    let work = match name {
        "add" => Work::Add,
        "delete" => Work::Delete,
        _ => Work::Set,
    };
    match (id("resume"), id("undo")) {
        (Some(id), _) => Some(Wanted::Resume(work, id)),
        (_, Some(id)) => Some(Wanted::Undo(work, id)),
        _ => None,
    }
}

fn text(matches: &ArgMatches, id: &str) -> Option<String> {
    matches.get_one::<String>(id).cloned()
}

fn all(matches: &ArgMatches) -> Vec<String> {
    let words = matches.get_many::<String>("words");
    words.unwrap_or_default().cloned().collect()
}

fn select(matches: &ArgMatches, [group, master]: [&str; 2]) -> Select {
    let names = matches.get_many::<String>("name").unwrap_or_default();
    Select {
        names: names.cloned().collect(),
        numbers: matches.get_one::<Numbers>("count").map(Into::into),
        file: matches.get_one("file").cloned(),
        kind: text(matches, "kind"),
        group: matches.get_one(group).copied(),
        master: text(matches, master),
        lower: text(matches, "link"),
        all: matches.get_flag("all"),
    }
}

fn plan(matches: &ArgMatches) -> Result<Plan, ParseError> {
    let texts = |id: &str| -> Vec<String> {
        let given = matches.get_many::<String>(id);
        given.unwrap_or_default().cloned().collect()
    };
    let number = |id: &str| matches.get_one::<u32>(id).copied();
    let (mut first, mut last) = matches
        .get_one::<Numbers>("count")
        .map_or((1, 1), Into::into);
    if let Some(start) = matches.get_one::<u64>("start") {
        (first, last) = (*start, start + (last - first));
    }
    let mut plan = Plan {
        kind: text(matches, "kind").unwrap_or_default(),
        numbers: (first, last),
        name: text(matches, "name").unwrap_or_default(),
        peer: text(matches, "peer"),
        peer_netns: text(matches, "peer-netns"),
        parents: texts("link"),
        qinq: text(matches, "qinq"),
        mtu: number("mtu"),
        address: text(matches, "address"),
        peer_address: text(matches, "peer-address"),
        addrs: texts("addr"),
        peer_addrs: texts("peer-addr"),
        split: matches.get_one::<IpNet>("split").map(|prefix| Split {
            prefix: *prefix,
            len: matches
                .get_one("len")
                .copied()
                .unwrap_or(if prefix.addr().is_ipv4() { 30 } else { 127 }),
        }),
        master: text(matches, "master"),
        group: number("group"),
        up: matches.get_flag("up"),
        tx_queue_len: number("txqueuelen"),
        ..Plan::default()
    };
    if plan.kind.is_empty() {
        grammar::add(&all(matches), &mut plan)?;
    } else {
        plan.words = all(matches);
    }
    if plan.kind == "veth" {
        grammar::peer(&mut plan)?;
    }
    Ok(plan)
}

/// What is to be set by flags; `ip`'s words come on top.
fn settings(matches: &ArgMatches) -> Settings {
    let number = |id: &str| matches.get_one::<u32>(id).copied();
    let up = match (matches.get_flag("up"), matches.get_flag("down")) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    Settings {
        up,
        mtu: number("mtu"),
        master: text(matches, "master").or_else(|| matches.get_flag("nomaster").then(String::new)),
        group: number("group"),
        rename: text(matches, "rename"),
        address: text(matches, "address"),
        tx_queue_len: number("txqueuelen"),
        alias: text(matches, "alias"),
    }
}
