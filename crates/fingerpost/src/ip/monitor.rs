//! `ip monitor`: the kernel's events as they come, each as the listing of its
//! object would show the row. Called by the table of commands.
//!
//! The kernel itself is asked, also where a daemon mirrors: that one tells
//! what became of rows, and `ip` every message.

use std::io::Write;

use linux::socket::Socket;
use table::{AF_INET, AF_INET6, Writer};

use super::events::Teller;
use super::grammar::begins;
use super::hearing::{self, list_links};
use super::session::Session;
use super::stamp::Stamp;
use super::stop::Stop;
use super::usage;

/// What may be watched, in the order in which `ip` looks for the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    Link,
    Address,
    Route,
    Mroute,
    Prefix,
    Neigh,
    Netconf,
    Rule,
    Nsid,
    Nexthop,
    Stats,
}

const OBJECTS: [(&str, Object); 11] = [
    ("link", Object::Link),
    ("address", Object::Address),
    ("route", Object::Route),
    ("mroute", Object::Mroute),
    ("prefix", Object::Prefix),
    ("neigh", Object::Neigh),
    ("netconf", Object::Netconf),
    ("rule", Object::Rule),
    ("nsid", Object::Nsid),
    ("nexthop", Object::Nexthop),
    ("stats", Object::Stats),
];

/// `RTNLGRP_…` (`linux/rtnetlink.h`) with the object that it is of, and its
/// family if it has one.
const GROUPS: [(u32, Object, Option<u8>); 18] = [
    (1, Object::Link, None),
    (5, Object::Address, Some(AF_INET)),
    (9, Object::Address, Some(AF_INET6)),
    (7, Object::Route, Some(AF_INET)),
    (11, Object::Route, Some(AF_INET6)),
    (27, Object::Route, Some(AF_MPLS)),
    (6, Object::Mroute, Some(AF_INET)),
    (10, Object::Mroute, Some(AF_INET6)),
    (18, Object::Prefix, Some(AF_INET6)),
    (3, Object::Neigh, None),
    (24, Object::Netconf, Some(AF_INET)),
    (25, Object::Netconf, Some(AF_INET6)),
    (29, Object::Netconf, Some(AF_MPLS)),
    (8, Object::Rule, Some(AF_INET)),
    (19, Object::Rule, Some(AF_INET6)),
    (28, Object::Nsid, None),
    (32, Object::Nexthop, None),
    (36, Object::Stats, None),
];

/// `AF_MPLS`, `linux/socket.h`.
pub const AF_MPLS: u8 = 28;

/// What the words say.
#[derive(Debug, Default)]
struct Asked {
    /// Empty: all.
    objects: Vec<Object>,
    /// Each event has its object's name before it.
    labels: bool,
    /// Only of this link.
    link: Option<u32>,
    /// Of a file, and not as they come.
    file: Option<String>,
}

fn read(session: &mut Session, words: &[String]) -> Result<Asked, Stop> {
    let mut asked = Asked::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let known = OBJECTS.iter().find(|(name, object)| match object {
            Object::Stats => word == name,
            _ => begins(word, name),
        });
        match (word.as_str(), known) {
            // Before all objects, as in `ip`.
            (word, _) if begins(word, "file") => {
                asked.file = Some(rest.next().ok_or_else(Stop::incomplete)?.clone());
            }
            (word, _) if begins(word, "label") => asked.labels = true,
            (_, Some((_, object))) => asked.objects.push(*object),
            ("all", None) => asked.labels = true,
            ("dev", None) => {
                let name = rest.next().ok_or_else(Stop::incomplete)?;
                let index = session.index(name);
                asked.link = Some(index.map_err(|stop| match stop {
                    Stop::Said { .. } => Stop::argument(name, "Device does not exist\n"),
                    stop => stop,
                })?);
            }
            (word, None) if begins(word, "all-nsid") => {
                return Err(Stop::NotBuilt(word.to_owned()));
            }
            (word, None) if begins(word, "help") => {
                return Err(Stop::wrong(usage::of_object(
                    "ip monitor",
                    "[ all | OBJECTS ] [ FILE ] [ label ] [ dev DEVICE ]",
                )));
            }
            (word, None) => {
                return Err(Stop::wrong(format!(
                    "Argument \"{word}\" is unknown, try \"ip monitor help\"."
                )));
            }
        }
    }
    Ok(asked)
}

/// Shows events until somebody ends it, or a file of them.
pub fn line(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let asked = read(session, words)?;
    if session.options.brief {
        return Err(Stop::NotBuilt("-brief monitor".to_owned()));
    }
    let mut links = Writer::default();
    let mut teller = Teller::new(session, asked.labels, asked.link)?;
    let stamp = Stamp::new(&session.options);
    if let Some(file) = &asked.file {
        list_links(session, &mut links)?;
        // As `ip`, which shows all of a file.
        return hearing::from_file(session, file, &mut |session, message| {
            teller.tell(session, message, &mut links, &|_| true, &stamp, out)
        });
    }
    let family = session.options.family;
    let socket = hearing::subscribe(session, |socket| join(socket, &asked, family))?;
    list_links(session, &mut links)?;
    let wants = |object| asked.objects.is_empty() || asked.objects.contains(&object);
    hearing::hear(
        session,
        &socket,
        out,
        |session, message, out| match message {
            Some(message) => teller.tell(session, message, &mut links, &wants, &stamp, out),
            None => list_links(session, &mut links),
        },
    )
}

/// Joins what is asked for. Links are always heard of: events name them.
fn join(socket: &Socket, asked: &Asked, family: Option<u8>) -> Result<(), linux::Error> {
    let groups = GROUPS.iter().filter(|(_, object, of)| {
        let is_asked = asked.objects.is_empty() || asked.objects.contains(object);
        let is_family = family.is_none() || of.is_none() || *of == family;
        *object == Object::Link || is_asked && is_family
    });
    for (group, ..) in groups {
        match socket.join(&[*group]) {
            // Of younger kernels.
            Err(_) if matches!(group, 27..=29 | 36) => {}
            joined => joined?,
        }
    }
    Ok(())
}
