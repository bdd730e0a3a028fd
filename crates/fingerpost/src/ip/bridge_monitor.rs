//! `bridge monitor`: the kernel's events of ports, forwarding entries and
//! multicast groups. Called by the table of commands.

use std::io::Write;

use linux::mirror::now_millis;
use linux::socket::Socket;
use netlink::decode::{self, Announcement, Decoded, Item};
use netlink::message::{Message, kind};
use table::{Change, Link, Writer};
use view::{BridgeRow, Context, Format, Output};

use crate::ip::grammar::begins;
use crate::ip::hearing::{self, list_links};
use crate::ip::session::{Session, complain};
use crate::ip::show;
use crate::ip::stamp::Stamp;
use crate::ip::stop::Stop;
use crate::ip::usage;

/// What may be watched, with its group (`RTNLGRP_…`) and label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    Link,
    Fdb,
    Mdb,
}

const OBJECTS: [(&str, Object, u32); 3] = [
    ("link", Object::Link, 1),
    ("fdb", Object::Fdb, 3),
    ("mdb", Object::Mdb, 26),
];

/// `AF_UNSPEC` and `AF_BRIDGE`, `linux/socket.h`.
const FAMILIES: [u8; 2] = [0, 7];

/// Shows events until somebody ends it.
pub fn line(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let (mut asked, mut labels, mut file) = (Vec::new(), false, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let known = OBJECTS.iter().find(|(name, ..)| begins(word, name));
        match (word.as_str(), known) {
            (word, _) if begins(word, "file") => {
                file = Some(rest.next().ok_or_else(Stop::incomplete)?);
            }
            (_, Some((_, object, _))) => asked.push(*object),
            (word, None) if begins(word, "vlan") || begins(word, "vni") => {
                return Err(Stop::NotBuilt(format!("monitor {word}")));
            }
            ("all", None) => labels = true,
            (word, None) if begins(word, "help") => {
                return Err(Stop::wrong(usage::of_object(
                    "bridge monitor",
                    "[ all | link | fdb | mdb ] [ file FILE ]",
                )));
            }
            (word, None) => {
                return Err(Stop::wrong(format!(
                    "Argument \"{word}\" is unknown, try \"bridge monitor help\"."
                )));
            }
        }
    }
    let wants = |object| asked.is_empty() || asked.contains(&object);
    let groups = OBJECTS.iter().filter(|(_, object, _)| wants(*object));
    let groups: Vec<u32> = groups.map(|(.., group)| *group).collect();
    let mut teller = Teller {
        output: Output {
            format: Format::Text,
            ..show::output(session)
        },
        labels,
        stamp: Stamp::new(&session.options),
        known: Writer::default(),
    };
    if let Some(file) = file {
        return hearing::from_file(session, file, &mut |session, message| {
            teller.tell(session, message, out)
        });
    }
    let socket = hearing::subscribe(session, |socket: &Socket| {
        groups.iter().try_for_each(|group| socket.join(&[*group]))
    })?;
    list_links(session, &mut teller.known)?;
    hearing::hear(
        session,
        &socket,
        out,
        |session, message, out| match message {
            Some(message) => teller.tell(session, message, out),
            None => Ok(()),
        },
    )
}

/// Writes events.
struct Teller {
    output: Output,
    labels: bool,
    stamp: Stamp,
    /// Links as they were when they were first asked for: `bridge` asks once
    /// for the name of each, and keeps it.
    known: Writer,
}

impl Teller {
    fn tell(
        &mut self,
        session: &Session,
        message: &Message<'_>,
        out: &mut impl Write,
    ) -> Result<(), Stop> {
        let mut text = Vec::new();
        let label = match message.kind {
            kind::NEWLINK | kind::DELLINK => "[LINK]",
            kind::NEWNEIGH | kind::DELNEIGH => "[NEIGH]",
            kind::NEWMDB | kind::DELMDB => "[MDB]",
            _ => return Ok(()),
        };
        let is_gone = matches!(message.kind, kind::DELLINK | kind::DELNEIGH | kind::DELMDB);
        let told = match label {
            "[LINK]" => self.link(session, message, is_gone, &mut text),
            "[NEIGH]" => self.entry(session, message, is_gone, &mut text),
            _ => self.groups(session, message, is_gone, &mut text),
        };
        told?;
        // Of another family.
        if text.is_empty() {
            return Ok(());
        }
        out.write_all(self.stamp.now().as_bytes())?;
        if self.labels {
            out.write_all(label.as_bytes())?;
        }
        Ok(out.write_all(&text)?)
    }

    fn link(
        &mut self,
        session: &Session,
        message: &Message<'_>,
        is_gone: bool,
        text: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let family = message.payload.first().copied().unwrap_or_default();
        if !FAMILIES.contains(&family) {
            return Ok(());
        }
        let read = decode::link(message.payload)
            .and_then(|link| Ok((link, decode::bridge_port(message.payload)?)));
        let (link, port) = match read {
            Ok(read) => read,
            Err(malformed) => {
                complain(&format!("fingerpost: bridge: monitor: {malformed}"));
                return Ok(());
            }
        };
        let backup = port.as_ref().and_then(|port| port.backup_port);
        let below = link.lower.filter(|_| link.lower_netns_id.is_none());
        self.know(session, [below, link.master, backup].into_iter().flatten())?;
        self.put(
            session,
            is_gone,
            &BridgeRow::Port(&link, port.as_deref()),
            text,
        );
        Ok(())
    }

    fn entry(
        &mut self,
        session: &Session,
        message: &Message<'_>,
        is_gone: bool,
        text: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let Ok(Decoded::Announcement(Announcement {
            item: Item::Fdb(row),
            ..
        })) = decode::decode(message, now_millis())
        else {
            return Ok(());
        };
        let links = [Some(row.link), row.master, row.via_link];
        self.know(session, links.into_iter().flatten())?;
        self.put(session, is_gone, &BridgeRow::Entry(&row), text);
        Ok(())
    }

    fn groups(
        &mut self,
        session: &Session,
        message: &Message<'_>,
        is_gone: bool,
        text: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let told = match decode::bridge_groups(message.payload) {
            Ok(told) => told,
            Err(malformed) => {
                complain(&format!("fingerpost: bridge: monitor: {malformed}"));
                return Ok(());
            }
        };
        let ports = told.groups.iter().map(|group| group.port);
        let routers = told.routers.iter().map(|router| router.port);
        self.know(session, ports.chain(routers).chain([told.bridge]))?;
        for group in &told.groups {
            self.put(
                session,
                is_gone,
                &BridgeRow::Group(told.bridge, group),
                text,
            );
        }
        for router in &told.routers {
            let row = BridgeRow::Router(told.bridge, router.port);
            self.put(session, is_gone, &row, text);
        }
        Ok(())
    }

    fn put(&self, session: &Session, is_gone: bool, row: &BridgeRow<'_>, text: &mut Vec<u8>) {
        let context = Context {
            links: &self.known.tables().links,
            tables: None,
            now_millis: now_millis(),
            names: &session.names,
        };
        if is_gone {
            text.extend_from_slice(b"Deleted ");
        }
        row.write(&self.output, &context, text);
    }

    /// Asks for links that were not met before.
    fn know(&mut self, session: &Session, links: impl Iterator<Item = u32>) -> Result<(), Stop> {
        for index in links.filter(|index| *index != 0) {
            if self.known.tables().links.get(index).is_some() {
                continue;
            }
            let link: Option<Link> = linux::once::link(index, &session.namespace)?;
            if let Some(link) = link {
                let put = self.known.apply(Change::PutLink(link));
                put.map_err(|full| Stop::Broken(full.into()))?;
            }
        }
        Ok(())
    }
}
