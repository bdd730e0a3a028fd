//! Makes and deletes entries, with what the kernel says of its ioctls
//! (`net/ipv4/arp.c`).

use std::io::{self, Write};
use std::net::Ipv4Addr;

use anyhow::Result;
use linux::{Namespace, bulk};
use netlink::decode::Operation;
use netlink::request::Dump;
use table::row::link::flag;
use table::row::neighbour::state;
use table::{AF_INET, Link, Neighbour};

use super::on_link::OnLink;
use super::{Deletion, ETHER, Entry, Source, failed};
use crate::arp::change::{request, row};
use crate::direct::rows::{Links, Rows, listing};
use crate::foreign::failed::{Failed, reason};

const NO_DEVICE: &str = "No such device";
const INVALID: &str = "Invalid argument";

/// What a run knows of the system.
pub struct System<'a> {
    namespace: &'a Namespace,
    links: Links,
    on_link: OnLink,
}

impl<'a> System<'a> {
    /// Reads the links.
    pub fn read(namespace: &'a Namespace) -> Result<Self> {
        Ok(Self {
            namespace,
            links: Rows::new(namespace)?.links(false)?,
            on_link: OnLink::default(),
        })
    }

    /// The row of an entry, or why there is none.
    pub fn neighbour(&mut self, entry: &Entry) -> Result<Result<Neighbour, String>> {
        let refused = |why: &str| Ok(Err(format!("SIOCSARP: {why}")));
        let (hardware, lladdr) = match &entry.lladdr {
            Source::Said(lladdr) => (ETHER, *lladdr),
            Source::Link(name, wanted) => match self.links.by_name(name) {
                None => {
                    let why = format!("arp: cant get HW-Address for `{name}': {NO_DEVICE}.");
                    return Ok(Err(why));
                }
                Some(link) if wanted.is_some_and(|wanted| wanted != link.hardware) => {
                    return Ok(Err("arp: protocol type mismatch.".to_owned()));
                }
                Some(link) => (link.hardware, link.address),
            },
        };
        let link = match &entry.device {
            Some(name) => match self.links.by_name(name) {
                None => return refused(NO_DEVICE),
                Some(link) if link.hardware != hardware => return refused(INVALID),
                Some(link) => link.index,
            },
            None if entry.published => {
                let mut links = self.links.iter().map(|(link, _)| link);
                let owner = links.find(|link| link.hardware == hardware && link.address == lladdr);
                match owner {
                    None => return refused(NO_DEVICE),
                    Some(link) => link.index,
                }
            }
            None => match self.on_link.link(entry.address, self.namespace)? {
                Ok(link) if self.links.get(link).is_some_and(is_loopback) => {
                    return refused(INVALID);
                }
                Ok(link) => link,
                Err(why) => return refused(&why),
            },
        };
        let how = [entry.published, entry.temporary];
        Ok(Ok(row(entry.address, link, lladdr, how)))
    }
}

fn is_loopback(link: &Link) -> bool {
    link.flags & flag::LOOPBACK != 0
}

/// Makes an entry.
pub fn set(entry: &Entry, namespace: &Namespace) -> Result<Result<(), Failed>> {
    let row = System::read(namespace)?.neighbour(entry)?;
    let row = match row {
        Ok(row) => row,
        Err(why) => return Ok(Err(failed(why))),
    };
    let answered = one(Operation::New, &row, namespace)?;
    Ok(answered.map_err(|error| failed(format!("SIOCSARP: {}", reason(&error)))))
}

/// Sends one change.
fn one(
    operation: Operation,
    row: &Neighbour,
    namespace: &Namespace,
) -> Result<Result<(), io::Error>> {
    let mut answered = Ok(());
    bulk::apply(namespace, [request(operation, row)], &mut |_, result| {
        answered = result.map_err(|refusal| refusal.source);
    })?;
    Ok(answered)
}

/// Deletes an entry: of those that are not published, or else of those that
/// are.
pub fn delete(asked: &Deletion, namespace: &Namespace) -> Result<Result<(), Failed>> {
    let refused = |kind: &str, why: &str| Ok(Err(failed(format!("SIOCDARP({kind}): {why}"))));
    let mut system = System::read(namespace)?;
    let device = match &asked.device {
        Some(name) => match system.links.by_name(name) {
            Some(link) => Some(link.index),
            None if asked.private => return refused("dontpub", NO_DEVICE),
            None => return refused("pub", NO_DEVICE),
        },
        None => None,
    };
    if asked.private {
        let link = match device {
            Some(link) => link,
            None => match system.on_link.link(asked.address, namespace)? {
                Ok(link) => link,
                Err(why) => return refused("dontpub", &why),
            },
        };
        if let Some(entry) = entry_of(asked.address, link, false, namespace)? {
            return match one(Operation::Delete, &entry, namespace)? {
                Ok(()) => Ok(Ok(())),
                Err(error) => refused("dontpub", &reason(&error)),
            };
        }
    }
    // Without a link the kernel looks for an entry of all links.
    if let (true, Some(link)) = (asked.published, device)
        && let Some(entry) = entry_of(asked.address, link, true, namespace)?
    {
        return match one(Operation::Delete, &entry, namespace)? {
            Ok(()) => Ok(Ok(())),
            Err(error) => refused("pub", &reason(&error)),
        };
    }
    // Said on standard output, as net-tools does.
    let _ = writeln!(io::stdout(), "No ARP entry for {}", asked.host);
    Ok(Err(failed("")))
}

/// The entry of an address on a link.
fn entry_of(
    address: Ipv4Addr,
    link: u32,
    proxy: bool,
    namespace: &Namespace,
) -> Result<Option<Neighbour>> {
    let rows = Rows::new(namespace)?;
    let request = Dump::Neighbours {
        family: AF_INET,
        link: Some(link),
        master: None,
        proxy,
    };
    let mut found = None;
    listing(rows.each(&request, |payload| {
        let row = netlink::decode::neighbour(payload)?;
        let is_there = proxy || row.state & !state::NOARP != 0;
        if row.address == address && row.link == link && is_there {
            found = Some(row);
        }
        Ok(())
    }))?;
    Ok(found)
}
