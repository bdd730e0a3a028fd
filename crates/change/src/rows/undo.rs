//! `--atomic`: what was there before, to put it back.
//!
//! Nothing is inverted. Before the first change of a table it is read; if
//! it comes to undoing, it is read again, and what differs is put back, as
//! far as rows that were changed here are concerned. So it does not matter
//! by which way a row came to be as it is. Of rows that the kernel takes
//! along with others (routes with their address, an address's secondary
//! ones, members of a group), those that are gone come back too. Rules
//! have no key: theirs is put back as a whole.
//!
//! What is read before is held in memory: about 100 octets a route.
//! Somebody else's change to the same row meanwhile is lost.

mod along;

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use ipnet::IpNet;
use linux::error::Error;
use linux::{Namespace, bulk, dump};
use netlink::decode::{Decoded, Item, Operation, decode};
use netlink::encode::{self, Request};
use netlink::message::flag;
use netlink::request::Dump;
use rustix::io::Errno;
use table::row::neighbour::flag::{MASTER, SELF};
use table::row::neighbour::state;
use table::row::route::{hop_flag, protocol};
use table::row::{address, rule};
use table::{
    AF_INET, AF_INET6, FdbEntry, LinkLayerAddress, NextHops, Pair, Route, RouteBody, pairs,
};
use words::{Object, Verb};

use super::asked::Asked;
use crate::patience::patiently;

pub use along::{along_with, relink, stands_on};

/// The tables of rows, in the order in which rows can be made: what others use
/// first.
pub const ROWS: [Object; 6] = [
    Object::Addr,
    Object::Neigh,
    Object::Nexthop,
    Object::Route,
    Object::Rule,
    Object::Fdb,
];

/// Putting a row back may take others along again (an address that goes
/// takes its routes): so often is looked and put back at most.
const ROUNDS: usize = 4;
/// So many rows that cannot be put back are told.
const MAX_COMPLAINTS: usize = 100;

/// What tells rows apart here: as much as a line always says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    Address(u32, IpAddr),
    Route(u32, IpNet),
    Neighbour(u32, IpAddr, bool),
    Nexthop(u32),
    /// Any rule.
    Rule,
    Fdb(u32, LinkLayerAddress),
}

/// A row that was read. Routes share their bodies.
#[derive(Debug, Clone)]
enum Kept {
    Route(Route<Arc<RouteBody>>),
    Other(Box<Item>),
}

/// A row, its key and its place in the dump.
type Placed = (Key, u32, Kept);

/// The rows of a table, by key.
type Rows = Vec<Placed>;

/// What was before, and what was changed.
pub struct Undo {
    now_millis: u64,
    before: BTreeMap<u8, (Object, Rows)>,
    touched: HashSet<Key>,
    /// The kernel may have taken others along.
    took_along: bool,
}

/// What was put back.
pub struct Back {
    pub rows: u64,
    pub failed: u64,
}

impl Undo {
    pub fn new(now_millis: u64) -> Self {
        Self {
            now_millis,
            before: BTreeMap::new(),
            touched: HashSet::new(),
            took_along: false,
        }
    }

    /// To be called before a change is sent: reads the tables that it may
    /// change, unless they have been. Gives what [`Self::done`] wants.
    pub(super) fn before(&mut self, namespace: &Namespace, asked: &Asked) -> Result<Key> {
        let key = key(&asked.item).ok_or_else(|| anyhow!("a row that cannot be undone"))?;
        let object = object(&key);
        self.read(namespace, object)?;
        let takes_along =
            asked.verb != Verb::Add && matches!(object, Object::Addr | Object::Nexthop);
        if takes_along && !self.took_along {
            for object in [Object::Addr, Object::Neigh, Object::Nexthop, Object::Route] {
                self.read(namespace, object)?;
            }
            self.took_along = true;
        }
        Ok(key)
    }

    fn read(&mut self, namespace: &Namespace, object: Object) -> Result<()> {
        if !self.before.contains_key(&order(object)) {
            let rows = rows(namespace, object, self.now_millis)
                .context("--atomic reads a table before it is changed")?;
            self.before.insert(order(object), (object, rows));
        }
        Ok(())
    }

    /// A change was made.
    pub fn done(&mut self, key: Option<Key>) {
        self.touched.extend(key);
    }

    /// Puts back what was before; `say` hears why a row could not be.
    pub fn run(self, namespace: &Namespace, say: &mut dyn FnMut(String)) -> Result<Back> {
        let mut back = Back { rows: 0, failed: 0 };
        let mut complaints = Vec::new();
        for round in 0..=ROUNDS {
            let (gone, new) = self.differences(namespace)?;
            let rows = (gone.len() + new.len()) as u64;
            if rows == 0 {
                return Ok(back);
            }
            if round == ROUNDS {
                back.failed = rows;
                break;
            }
            back.rows += rows;
            complaints.clear();
            self.apply(namespace, Operation::Delete, new, &mut complaints)?;
            self.apply(namespace, Operation::New, gone, &mut complaints)?;
        }
        complaints.into_iter().for_each(say);
        Ok(back)
    }

    /// Rows that are gone, in the order in which they can be made, and rows
    /// that are new, in the order in which they can be deleted: what uses
    /// others goes first.
    fn differences(&self, namespace: &Namespace) -> Result<(Vec<Kept>, Vec<Kept>)> {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for (object, before) in self.before.values() {
            let after = rows(namespace, *object, self.now_millis)?;
            self.compare(before, &after, &mut gone, &mut new);
        }
        new.reverse();
        Ok((gone, new))
    }

    /// Rows that are gone, and rows that are new.
    fn compare<'a>(
        &self,
        before: &'a Rows,
        after: &'a Rows,
        gone: &mut Vec<Kept>,
        new: &mut Vec<Kept>,
    ) {
        let mut missing: Vec<(u32, &Kept)> = Vec::new();
        let mut extra: Vec<&Kept> = Vec::new();
        let key = |run: &&[Placed]| run.first().map(|(key, _, _)| key.clone());
        let of_one_key = |left: &Placed, right: &Placed| left.0 == right.0;
        let runs = pairs(
            before.chunk_by(of_one_key),
            after.chunk_by(of_one_key),
            |a, b| key(a).cmp(&key(b)),
        );
        for run in runs {
            let (old, now): (&[Placed], &[Placed]) = match run {
                Pair::Both(old, now) => (old, now),
                Pair::First(old) => (old, &[]),
                Pair::Second(now) => (&[], now),
            };
            let Some(key) = key(&old).or_else(|| key(&now)) else {
                continue;
            };
            let touched = self.touched.contains(&key);
            if !touched && (!self.took_along || old.is_empty()) {
                continue;
            }
            let old_rows: Vec<Item> = old.iter().map(|(_, _, kept)| regular(kept)).collect();
            let now_rows: Vec<Item> = now.iter().map(|(_, _, kept)| regular(kept)).collect();
            for ((_, number, kept), row) in old.iter().zip(&old_rows) {
                if !now_rows.contains(row) && (touched || comes_back(row)) {
                    missing.push((*number, kept));
                }
            }
            let is_replaced = matches!(key, Key::Nexthop(_) | Key::Neighbour(..));
            for ((_, _, kept), row) in now.iter().zip(&now_rows) {
                if touched && !old_rows.contains(row) && (old.is_empty() || !is_replaced) {
                    extra.push(kept);
                }
            }
        }
        missing.sort_by_key(|(number, kept)| (is_group(kept), *number));
        gone.extend(missing.into_iter().map(|(_, kept)| kept.clone()));
        new.extend(extra.into_iter().cloned());
    }

    fn apply(
        &self,
        namespace: &Namespace,
        operation: Operation,
        rows: Vec<Kept>,
        complaints: &mut Vec<String>,
    ) -> Result<()> {
        let now_millis = self.now_millis;
        let requests = rows.iter().map(|kept| {
            move |sequence, out: &mut Vec<u8>| {
                let request = Request {
                    operation,
                    flags: flags(operation, kept),
                    sequence,
                    now_millis,
                };
                // A row that came from the kernel fits a message.
                let _ = match kept {
                    Kept::Route(route) => encode::route(out, &request, route),
                    Kept::Other(item) => match &**item {
                        Item::Fdb(entry) => encode::fdb(out, &request, &asked_for(entry)),
                        item => encode::row(out, &request, item),
                    },
                };
            }
        });
        bulk::apply(namespace, requests, &mut |place, result| {
            let Err(refusal) = result else { return };
            // What the kernel made or took along by itself is well.
            let is_well = match refusal.source.kind() {
                std::io::ErrorKind::AlreadyExists => operation == Operation::New,
                std::io::ErrorKind::NotFound | std::io::ErrorKind::AddrNotAvailable => {
                    operation == Operation::Delete
                }
                _ => {
                    let gone = rustix::io::Errno::SRCH.raw_os_error();
                    operation == Operation::Delete && refusal.source.raw_os_error() == Some(gone)
                }
            };
            if !is_well && complaints.len() < MAX_COMPLAINTS {
                let row = rows.get(place).map(regular);
                complaints.push(match row {
                    Some(Item::Fdb(row)) => format!(
                        "fingerpost: the forwarding entry of {}: {refusal}",
                        row.lladdr
                    ),
                    Some(row) => format!("fingerpost: undoing: {refusal}: {row:?}"),
                    None => format!("fingerpost: undoing: {refusal}"),
                });
            }
        })?;
        Ok(())
    }
}

/// A listed entry as a request has it: that says whose the entry is, the
/// device's own or its bridge's; a listing, by the bridge.
fn asked_for(entry: &FdbEntry) -> FdbEntry {
    let of_bridge = entry.master.is_some_and(|master| master != entry.link);
    let mut entry = entry.clone();
    entry.flags |= if of_bridge { MASTER } else { SELF };
    entry
}

/// How a row is made again or deleted.
fn flags(operation: Operation, kept: &Kept) -> u16 {
    match (operation, kept) {
        (Operation::Delete, _) => 0,
        // Several may have one key: remote ends of an address as well.
        (_, Kept::Route(route)) if route.prefix.addr().is_ipv4() => flag::CREATE | flag::APPEND,
        (_, Kept::Other(item)) if matches!(**item, Item::Fdb(_)) => flag::CREATE | flag::APPEND,
        (_, Kept::Other(item)) if matches!(**item, Item::Nexthop(_) | Item::Neighbour(_)) => {
            flag::CREATE | flag::REPLACE
        }
        _ => flag::CREATE | flag::EXCL,
    }
}

/// The place of a table in their order.
fn order(object: Object) -> u8 {
    let place = ROWS.iter().position(|of| *of == object);
    place.unwrap_or(ROWS.len()) as u8
}

fn object(key: &Key) -> Object {
    match key {
        Key::Address(..) => Object::Addr,
        Key::Route(..) => Object::Route,
        Key::Neighbour(..) => Object::Neigh,
        Key::Nexthop(_) => Object::Nexthop,
        Key::Rule => Object::Rule,
        Key::Fdb(..) => Object::Fdb,
    }
}

fn key(item: &Item) -> Option<Key> {
    Some(match item {
        Item::Address(row) => Key::Address(row.link, row.local),
        Item::Route(row) => Key::Route(row.table, row.prefix),
        Item::Neighbour(row) => Key::Neighbour(row.link, row.address, row.proxy),
        Item::Nexthop(row) => Key::Nexthop(row.id),
        Item::Rule(_) => Key::Rule,
        Item::Fdb(row) => Key::Fdb(row.link, row.lladdr),
        Item::Link(_) | Item::OtherRoute(_) => return None,
    })
}

/// Whether a row comes back that the kernel took along. Routes of its own
/// it makes itself, and stations teach it entries.
pub fn comes_back(row: &Item) -> bool {
    match row {
        Item::Route(route) => route.body.protocol != protocol::KERNEL,
        Item::Address(_) | Item::Nexthop(_) => true,
        // Those of multicast groups are the kernel's own.
        Item::Neighbour(row) => (row.proxy || row.state != 0) && !row.address.is_multicast(),
        Item::Fdb(row) => row.state & (state::PERMANENT | state::NOARP) != 0,
        _ => false,
    }
}

fn is_group(kept: &Kept) -> bool {
    matches!(kept, Kept::Other(item) if matches!(&**item, Item::Nexthop(row) if !row.group.is_empty()))
}

/// The row without what moves by itself.
fn regular(kept: &Kept) -> Item {
    steady(match kept {
        Kept::Route(route) => Item::Route(route.with_body(RouteBody::clone(&route.body))),
        Kept::Other(item) => Item::clone(item),
    })
}

/// A row without what moves by itself, or is the kernel's to tell.
pub fn steady(mut item: Item) -> Item {
    match &mut item {
        Item::Route(route) => {
            let body = &mut route.body;
            body.expires_at_millis = None;
            body.error = 0;
            if body.nexthop_id.is_some() {
                // The object's, repeated.
                body.next_hops = NextHops::None;
            }
            let told = hop_flag::ONLINK | hop_flag::PERVASIVE;
            for hop in body.next_hops.as_mut_slice() {
                hop.flags &= told;
            }
        }
        Item::Address(row) => {
            row.valid_until_millis = None;
            row.preferred_until_millis = None;
            row.created_centisecs = 0;
            row.flags &= address::flag::NODAD
                | address::flag::HOMEADDRESS
                | address::flag::MANAGETEMPADDR
                | address::flag::NOPREFIXROUTE
                | address::flag::MCAUTOJOIN;
        }
        Item::Neighbour(row) => {
            row.state &= state::PERMANENT | state::NOARP;
            if row.state == 0 {
                row.lladdr = LinkLayerAddress::NONE;
            }
        }
        Item::Nexthop(row) => {
            row.flags &= hop_flag::ONLINK;
            // The kernel's own choice, and in no request.
            row.scope = 0;
        }
        Item::Rule(row) => row.flags &= rule::flag::INVERT,
        Item::Fdb(row) => {
            row.activity = None;
            row.state &= state::PERMANENT | state::NOARP;
            // `master` tells whose it is; a listing marks some of them besides.
            row.flags &= !(SELF | MASTER);
        }
        Item::Link(_) | Item::OtherRoute(_) => {}
    }
    item
}

/// The rows of a table as they are now; only those that are wanted. O(rows
/// of the table).
pub fn listed(
    namespace: &Namespace,
    object: Object,
    now_millis: u64,
    wanted: &dyn Fn(&Item) -> bool,
) -> Result<Vec<Item>> {
    listed_of(namespace, &dumps(object, None), now_millis, wanted)
}

/// The same of a part of a table: those of some dumps.
pub fn listed_of(
    namespace: &Namespace,
    dumps: &[Dump],
    now_millis: u64,
    wanted: &dyn Fn(&Item) -> bool,
) -> Result<Vec<Item>> {
    let mut rows = rows_of(namespace, dumps, now_millis, wanted)?;
    // In the kernel's order.
    rows.sort_by_key(|(_, number, _)| *number);
    Ok(rows.into_iter().map(|row| along::item(row.2)).collect())
}

/// The rows of a table as they are now, ordered by key.
fn rows(namespace: &Namespace, object: Object, now_millis: u64) -> Result<Rows> {
    rows_of(namespace, &dumps(object, None), now_millis, &|_| true)
}

/// Those of the rows of some dumps that are wanted, ordered by key.
fn rows_of(
    namespace: &Namespace,
    dumps: &[Dump],
    now_millis: u64,
    wanted: &dyn Fn(&Item) -> bool,
) -> Result<Rows> {
    let mut rows = Vec::new();
    let mut bodies: HashSet<Arc<RouteBody>> = HashSet::new();
    for request in dumps {
        let start = rows.len();
        patiently(&mut || {
            rows.truncate(start);
            gather(namespace, request, now_millis, wanted, &mut |item| {
                keep(item, &mut rows, &mut bodies);
            })
        })
        .context("reading a table")?;
    }
    rows.sort_by(|(left, _, _), (right, _, _)| left.cmp(right));
    Ok(rows)
}

/// Hands on the rows of a dump that are wanted; an error if it changed
/// meanwhile. What the kernel does not have by name, a table or a link, has
/// no rows.
fn gather(
    namespace: &Namespace,
    request: &Dump,
    now_millis: u64,
    wanted: &dyn Fn(&Item) -> bool,
    each: &mut dyn FnMut(Item),
) -> Result<()> {
    let mut failed = None;
    let end = dump(namespace, request, &mut |message| {
        match decode(message, now_millis) {
            Ok(Decoded::Announcement(told)) if wanted(&told.item) => each(told.item),
            Ok(_) => {}
            Err(error) => {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    let end = match end {
        Err(error) if is_narrow(request) && is_absent(&error) => return Ok(()),
        end => end?,
    };
    match failed {
        Some(error) => Err(error.into()),
        None if end.interrupted => Err(Error::Restless {
            what: what(request),
        }
        .into()),
        None => Ok(()),
    }
}

/// Whether it names a table or a link.
fn is_narrow(request: &Dump) -> bool {
    match request {
        Dump::Routes { table, link, .. } => table.is_some() || link.is_some(),
        Dump::Addresses { link, .. } | Dump::Neighbours { link, .. } | Dump::Fdb { link, .. } => {
            link.is_some()
        }
        _ => false,
    }
}

/// Whether the kernel does not have the table or link that was named.
fn is_absent(error: &Error) -> bool {
    let Error::Refused { source, .. } = error else {
        return false;
    };
    let absent = [Errno::NOENT, Errno::NODEV].map(Errno::raw_os_error);
    source.raw_os_error().is_some_and(|is| absent.contains(&is))
}

/// What rows of a dump are called.
fn what(request: &Dump) -> &'static str {
    match request {
        Dump::Addresses { .. } => "addresses",
        Dump::Neighbours { .. } => "neighbours",
        Dump::Nexthops => "next hops",
        Dump::Routes { .. } => "routes",
        Dump::Rules { .. } => "rules",
        Dump::Fdb { .. } => "forwarding entries",
        _ => "rows",
    }
}

fn keep(item: Item, rows: &mut Rows, bodies: &mut HashSet<Arc<RouteBody>>) {
    let Some(key) = key(&item) else { return };
    let number = rows.len() as u32;
    let kept = match item {
        Item::Route(route) => {
            let body = match bodies.get(&route.body) {
                Some(body) => Arc::clone(body),
                None => {
                    let body = Arc::new(route.body.clone());
                    bodies.insert(Arc::clone(&body));
                    body
                }
            };
            Kept::Route(route.with_body(body))
        }
        other => Kept::Other(Box::new(other)),
    };
    rows.push((key, number, kept));
}

/// What lists a table; only of a link, where one is named.
pub fn dumps(object: Object, link: Option<u32>) -> Vec<Dump> {
    let neighbours = |proxy| Dump::Neighbours {
        family: 0,
        link,
        master: None,
        proxy,
    };
    let routes = |family| Dump::Routes {
        family,
        table: None,
        link,
        protocol: None,
        kind: None,
    };
    match object {
        Object::Addr => vec![Dump::Addresses { family: 0, link }],
        Object::Route => vec![routes(AF_INET), routes(AF_INET6)],
        Object::Neigh => vec![neighbours(false), neighbours(true)],
        Object::Nexthop => vec![Dump::Nexthops],
        Object::Rule => vec![
            Dump::Rules { family: AF_INET },
            Dump::Rules { family: AF_INET6 },
        ],
        Object::Fdb => vec![Dump::Fdb { link, master: None }],
        Object::Link => Vec::new(),
    }
}
