//! `ip monitor`: the kernel's events as they come, each as the listing of its
//! object would show the row. Called by the table of commands.
//!
//! The kernel itself is asked, also where a daemon mirrors: that one tells
//! what became of rows, and `ip` every message.

mod stamp;
mod text;

use std::io::Write;
use std::time::Duration;

use linux::mirror::now_millis;
use linux::socket::{DATAGRAM_BYTES, Received, Socket};
use netlink::message::messages;
use table::{AF_INET, AF_INET6, Change, Writer};

use self::stamp::Stamp;
use self::text::Teller;
use super::grammar::begins;
use super::session::{Session, complain};
use super::stop::Stop;
use super::usage;

/// What the socket holds while its reader does something else; as `ip` has
/// it.
const BUFFER_BYTES: usize = 1 << 20;
/// How long a wait lasts at most before it begins again.
const WAIT: Duration = Duration::from_secs(3600);

/// What may be watched, in the order in which `ip` looks for the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
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
const GROUPS: [(u32, Object, Option<u8>); 17] = [
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
];

/// `AF_MPLS`, `linux/socket.h`.
const AF_MPLS: u8 = 28;

/// What the words say.
#[derive(Debug, Default)]
struct Asked {
    /// Empty: all.
    objects: Vec<Object>,
    /// Each event has its object's name before it.
    labels: bool,
    /// Only of this link.
    link: Option<u32>,
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
            ("f" | "fi" | "fil" | "file", _) => return Err(Stop::NotBuilt(word.clone())),
            (word, _) if begins(word, "label") => asked.labels = true,
            (word, Some((_, Object::Mroute | Object::Prefix | Object::Stats))) => {
                return Err(Stop::NotBuilt(format!("monitor {word}")));
            }
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
                    "[ all | OBJECTS ] [ label ] [ dev DEVICE ]",
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

/// Shows events until somebody ends it.
pub fn line(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let asked = read(session, words)?;
    if session.options.brief {
        return Err(Stop::NotBuilt("-brief monitor".to_owned()));
    }
    let (socket, mut writer) = subscribe(session, &asked)?;
    if !session.is_batch {
        // What is left is to read, to write, and to ask for links again.
        crate::ask::give_up(session.options.netns.is_some())?;
    }
    let mut teller = Teller::new(session, asked.labels, asked.link)?;
    let stamp = Stamp::new(&session.options);
    let wants = |object| asked.objects.is_empty() || asked.objects.contains(&object);
    let mut buffer = vec![0; DATAGRAM_BYTES];
    loop {
        match socket.try_receive(&mut buffer)? {
            Received::Nothing => {
                out.flush()?;
                socket.wait(WAIT)?;
            }
            Received::Overrun => {
                out.flush()?;
                complain("netlink receive error No buffer space available (105): events were lost");
                list_links(session, &mut writer)?;
            }
            Received::Bytes(len) => {
                for message in messages(buffer.get(..len).unwrap_or_default()) {
                    let Ok(message) = message else { break };
                    teller.tell(session, &message, &mut writer, &wants, &stamp, out)?;
                }
            }
        }
    }
}

/// A socket that hears of what is asked for, and the links that are there.
/// Links are always heard of: events name them.
fn subscribe(session: &Session, asked: &Asked) -> Result<(Socket, Writer), Stop> {
    let socket = Socket::open(&session.namespace)?;
    socket.set_receive_buffer(BUFFER_BYTES)?;
    let family = session.options.family;
    let groups: Vec<u32> = GROUPS
        .iter()
        .filter(|(_, object, of)| {
            let is_asked = asked.objects.is_empty() || asked.objects.contains(object);
            let is_family = family.is_none() || of.is_none() || *of == family;
            *object == Object::Link || is_asked && is_family
        })
        .map(|(group, ..)| *group)
        .collect();
    for group in groups {
        match socket.join(&[group]) {
            // Of younger kernels.
            Err(_) if matches!(group, 27..=29) => {}
            joined => joined?,
        }
    }
    let mut writer = Writer::default();
    list_links(session, &mut writer)?;
    Ok((socket, writer))
}

/// The links that are there now.
fn list_links(session: &Session, writer: &mut Writer) -> Result<(), Stop> {
    *writer = Writer::default();
    for link in linux::once::links(&session.namespace)?.iter() {
        let put = writer.apply(Change::PutLink((**link).clone()));
        put.map_err(|full| Stop::Broken(full.into()))?;
    }
    Ok(())
}

/// Now.
fn now() -> u64 {
    now_millis()
}
