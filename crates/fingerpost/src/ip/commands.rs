//! Objects and their commands, in the order in which `ip` looks for them: a
//! beginning means the first that has it. Called by [`super`] for the one
//! line of a command, and for each line of a batch.

use std::io::Write;

use words::{Object, Verb};

use super::grammar::begins;
use super::session::Session;
use super::stop::Stop;
use super::{
    Tool, bridge_groups, bridge_monitor, bridge_ports, bridge_vlans, buckets, fdb, flush, get,
    link, monitor, netns, rows, show, usage,
};

/// What a word leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Rows(Object),
    Netns,
    Monitor,
    Ports,
    Groups,
    Vlans,
    Help,
    NotBuilt,
}

const IP: &[(&str, Room)] = &[
    ("address", Room::Rows(Object::Addr)),
    ("addrlabel", Room::NotBuilt),
    ("maddress", Room::NotBuilt),
    ("route", Room::Rows(Object::Route)),
    ("rule", Room::Rows(Object::Rule)),
    ("neighbor", Room::Rows(Object::Neigh)),
    ("neighbour", Room::Rows(Object::Neigh)),
    ("ntable", Room::NotBuilt),
    ("ntbl", Room::NotBuilt),
    ("link", Room::Rows(Object::Link)),
    ("l2tp", Room::NotBuilt),
    ("fou", Room::NotBuilt),
    ("ila", Room::NotBuilt),
    ("macsec", Room::NotBuilt),
    ("tunnel", Room::NotBuilt),
    ("tunl", Room::NotBuilt),
    ("tuntap", Room::NotBuilt),
    ("tap", Room::NotBuilt),
    ("token", Room::NotBuilt),
    ("tcpmetrics", Room::NotBuilt),
    ("tcp_metrics", Room::NotBuilt),
    ("monitor", Room::Monitor),
    ("xfrm", Room::NotBuilt),
    ("mroute", Room::NotBuilt),
    ("mrule", Room::NotBuilt),
    ("netns", Room::Netns),
    ("netconf", Room::NotBuilt),
    ("vrf", Room::NotBuilt),
    ("sr", Room::NotBuilt),
    ("nexthop", Room::Rows(Object::Nexthop)),
    ("mptcp", Room::NotBuilt),
    ("ioam", Room::NotBuilt),
    ("help", Room::Help),
    ("stats", Room::NotBuilt),
];

const BRIDGE: &[(&str, Room)] = &[
    ("link", Room::Ports),
    ("fdb", Room::Rows(Object::Fdb)),
    ("mdb", Room::Groups),
    ("vlan", Room::Vlans),
    ("vni", Room::NotBuilt),
    ("monitor", Room::Monitor),
    ("help", Room::Help),
];

/// What a command of an object does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Show,
    Change(Verb),
    Get,
    Flush,
    Help,
    Set,
    Property,
    Buckets,
    NotBuilt,
}

use Act::{Buckets, Change, Flush, Get, Help, NotBuilt, Property, Set, Show};
use Verb::{Add, Append, Delete, Prepend, Replace};

const ADDRESS: &[(&str, Act)] = &[
    ("add", Change(Add)),
    ("change", Change(Verb::Change)),
    ("chg", Change(Verb::Change)),
    ("replace", Change(Replace)),
    ("delete", Change(Delete)),
    ("show", Show),
    ("lst", Show),
    ("list", Show),
    ("flush", Flush),
    ("save", NotBuilt),
    ("showdump", NotBuilt),
    ("restore", NotBuilt),
    ("help", Help),
];

const ROUTE: &[(&str, Act)] = &[
    ("list", Show),
    ("show", Show),
    ("lst", Show),
    ("get", Get),
    ("add", Change(Add)),
    ("change", Change(Verb::Change)),
    ("chg", Change(Verb::Change)),
    ("replace", Change(Replace)),
    ("prepend", Change(Prepend)),
    ("append", Change(Append)),
    ("test", NotBuilt),
    ("delete", Change(Delete)),
    ("flush", Flush),
    ("save", NotBuilt),
    ("restore", NotBuilt),
    ("showdump", NotBuilt),
    ("help", Help),
];

const RULE: &[(&str, Act)] = &[
    ("list", Show),
    ("lst", Show),
    ("show", Show),
    ("save", NotBuilt),
    ("restore", NotBuilt),
    ("add", Change(Add)),
    ("delete", Change(Delete)),
    ("flush", Flush),
    ("help", Help),
];

const NEIGHBOUR: &[(&str, Act)] = &[
    ("add", Change(Add)),
    ("change", Change(Verb::Change)),
    ("chg", Change(Verb::Change)),
    ("replace", Change(Replace)),
    ("delete", Change(Delete)),
    ("get", Get),
    ("show", Show),
    ("lst", Show),
    ("list", Show),
    ("flush", Flush),
    ("help", Help),
];

const NEXTHOP: &[(&str, Act)] = &[
    ("add", Change(Add)),
    ("replace", Change(Replace)),
    ("delete", Change(Delete)),
    ("list", Show),
    ("show", Show),
    ("lst", Show),
    ("get", Get),
    ("flush", Flush),
    ("help", Help),
    ("bucket", Buckets),
];

const LINK: &[(&str, Act)] = &[
    ("add", Change(Add)),
    ("set", Set),
    ("change", Set),
    ("replace", NotBuilt),
    ("delete", Change(Delete)),
    ("show", Show),
    ("lst", Show),
    ("list", Show),
    ("xstats", NotBuilt),
    ("afstats", NotBuilt),
    ("property", Property),
    ("help", Help),
];

const FDB: &[(&str, Act)] = &[
    ("add", Change(Add)),
    ("append", Change(Append)),
    ("replace", Change(Replace)),
    ("delete", Change(Delete)),
    ("get", NotBuilt),
    ("flush", NotBuilt),
    ("show", Show),
    ("lst", Show),
    ("list", Show),
    ("help", Help),
];

fn acts(object: Object) -> (&'static [(&'static str, Act)], &'static str) {
    match object {
        Object::Addr => (ADDRESS, "ip address"),
        Object::Route => (ROUTE, "ip route"),
        Object::Rule => (RULE, "ip rule"),
        Object::Neigh => (NEIGHBOUR, "ip neigh"),
        Object::Nexthop => (NEXTHOP, "ip nexthop"),
        Object::Link => (LINK, "ip link"),
        Object::Fdb => (FDB, "bridge fdb"),
    }
}

/// Does what a line says: an object, a command, its words.
pub fn line(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let Some((object, rest)) = words.split_first() else {
        return Ok(());
    };
    let rooms = match session.tool {
        Tool::Ip => IP,
        Tool::Bridge => BRIDGE,
    };
    let room = rooms.iter().find(|(name, _)| begins(object, name));
    if !matches!(room, Some((_, Room::Rows(_)))) {
        session.settle()?;
    }
    match room.map(|(_, room)| *room) {
        Some(Room::Rows(object)) => of_rows(session, object, rest, out),
        Some(Room::Netns) => netns::line(session, rest, out),
        Some(Room::Help) => Err(Stop::wrong(usage::of_tool(session.tool))),
        Some(Room::Monitor) if session.tool == Tool::Ip => monitor::line(session, rest, out),
        Some(Room::Monitor) => bridge_monitor::line(session, rest, out),
        Some(Room::Ports) => bridge_ports::line(session, rest, out),
        Some(Room::Groups) => bridge_groups::line(session, rest, out),
        Some(Room::Vlans) => bridge_vlans::line(session, rest, out),
        Some(Room::NotBuilt) => Err(Stop::NotBuilt(object.clone())),
        None => Err(unknown_object(session.tool, object)),
    }
}

fn unknown_object(tool: Tool, object: &str) -> Stop {
    let name = tool.name();
    let text = format!("Object \"{object}\" is unknown, try \"{name} help\".");
    match tool {
        Tool::Ip => Stop::failed(text),
        Tool::Bridge => Stop::wrong(text),
    }
}

fn of_rows(
    session: &mut Session,
    object: Object,
    words: &[String],
    out: &mut impl Write,
) -> Result<(), Stop> {
    let (acts, called) = acts(object);
    let Some((command, rest)) = words.split_first() else {
        session.settle()?;
        return show::show(session, object, &[], out);
    };
    let act = acts.iter().find(|(name, _)| begins(command, name));
    // Only changes of rows wait for each other.
    if !matches!(act, Some((_, Change(_)))) || matches!(object, Object::Link | Object::Fdb) {
        session.settle()?;
    }
    let is_of_rows = !matches!(object, Object::Link | Object::Fdb);
    let is_other = session.options.family.is_some() && session.family().is_none();
    if matches!(act, Some((_, Change(_)))) && is_of_rows && is_other {
        return Err(Stop::NotBuilt("a change of rows of this family".to_owned()));
    }
    match act.map(|(_, act)| *act) {
        Some(Show) => show::show(session, object, rest, out),
        Some(Change(verb)) if object == Object::Link => match verb {
            Delete => link::delete(session, rest),
            _ => link::add(session, rest),
        },
        Some(Change(verb)) if object == Object::Fdb => fdb::change(session, verb, rest),
        Some(Change(verb)) => rows::change(session, object, verb, rest),
        Some(Set) => link::set(session, rest),
        Some(Property) => link::property(session, rest),
        Some(Buckets) => buckets::line(session, rest, out),
        Some(Get) if object == Object::Route => get::route(session, rest, out),
        Some(Get) if object == Object::Neigh => get::neighbour(session, rest, out),
        Some(Get) if object == Object::Nexthop => match rest {
            [id, _] if id == "id" => show::show(session, object, rest, out),
            [id] if id == "id" => Err(Stop::incomplete()),
            _ => Err(Stop::wrong(usage::of_object(called, "get id ID"))),
        },
        Some(Flush) => flush::flush(session, object, rest, out),
        Some(Help) if object == Object::Link && !rest.is_empty() => {
            Err(Stop::NotBuilt(format!("ip link help {}", rest.join(" "))))
        }
        Some(Help) => Err(Stop::wrong(usage::of_object(
            called,
            &acts
                .iter()
                .filter(|(_, act)| *act != NotBuilt)
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(" | "),
        ))),
        Some(Get | NotBuilt) => Err(Stop::NotBuilt(format!("{called} {command}"))),
        None => Err(Stop::no_command(command, called)),
    }
}
