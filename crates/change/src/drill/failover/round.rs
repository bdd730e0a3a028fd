//! One change of all links, and who has seen it when.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use ipnet::{IpNet, Ipv4Net};
use linux::Namespace;
use linux::socket::{DATAGRAM_BYTES, Received, Socket};
use netlink::decode::{Announcement, Decoded, Item, Operation, decode};
use netlink::encode::{self, LinkSettings, Request};
use netlink::message::messages;
use serde::Serialize;
use table::row::route::table_id;
use table::{Address, Events, Generation, Operation as Happened, Reader, Row, Tables};

use crate::drill::making::{self, Making};

/// Between two looks at the mirror.
const LOOK: Duration = Duration::from_micros(200);
/// A turn that is not seen by then never will be.
const PATIENCE: Duration = Duration::from_secs(60);
/// `linux/rtnetlink.h`.
const RTNLGRP_LINK: u32 = 1;
/// Bytes: some ten thousand events.
const RECEIVE_BUFFER: usize = 32 << 20;
/// Of the subnets: a /30 for each pair.
const FIRST: u32 = u32::from_be_bytes([10, 0, 0, 0]);

/// Links of a drill and what to look for.
pub struct Drill<'a> {
    namespace: &'a Namespace,
    making: Making<'a>,
    /// First ends, by index.
    links: Vec<u32>,
    /// Their peers.
    peers: Vec<u32>,
    /// The connected route of each pair.
    subnets: Vec<IpNet>,
}

/// Milliseconds from the first request until…
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Seen {
    /// …the kernel has answered the last.
    pub kernel_ms: f64,
    /// …it has announced the last link (of carriers it tells some hundred a
    /// second, however many changed).
    pub announced_ms: f64,
    /// …a snapshot of the mirror shows all of it.
    pub mirror_ms: f64,
    /// …a watcher has been handed the last event of it.
    pub watcher_ms: f64,
}

/// Something that a watcher waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sign {
    Link(u32),
    Route(IpNet),
}

impl<'a> Drill<'a> {
    /// Makes the pairs, the peers up, each first end with its address.
    pub fn build(namespace: &'a Namespace, count: u32) -> Result<Self> {
        let making = Making::prepare(namespace, "veth", count)?;
        making.create(false)?;
        let (links, peers) = making.indexes()?;
        let subnets: Vec<Ipv4Net> = (0..count)
            .map(|k| Ipv4Net::new(Ipv4Addr::from(FIRST + 4 * k), 30))
            .collect::<Result<_, _>>()
            .context("a subnet")?;
        let addresses = links.iter().zip(&subnets).map(|(link, subnet)| {
            let first = Ipv4Addr::from(u32::from(subnet.network()) + 1);
            address(*link, Ipv4Net::new_assert(first, 30))
        });
        let encoders = addresses.map(|row| {
            move |sequence, out: &mut Vec<u8>| {
                encode::address(out, &Request::plain(Operation::New, sequence), &row)
            }
        });
        making::all_taken(namespace, "give addresses", encoders)?;
        set(namespace, &peers, true)?;
        Ok(Self {
            namespace,
            making,
            links,
            peers,
            subnets: subnets.into_iter().map(IpNet::V4).collect(),
        })
    }

    /// Sets all first ends, and waits until it has been seen.
    pub fn turn(&self, reader: &Reader, up: bool) -> Result<Seen> {
        let before = reader.snapshot().generation;
        let start = Instant::now();
        let deadline = start + PATIENCE;
        let socket = Socket::open(self.namespace)?;
        socket.set_receive_buffer(RECEIVE_BUFFER)?;
        socket.join(&[RTNLGRP_LINK])?;
        thread::scope(|scope| {
            let announced = scope.spawn(|| self.announced(&socket, up, deadline));
            let mirror = scope.spawn(|| self.seen_in_snapshots(reader, up, deadline));
            let watcher = scope.spawn(|| self.seen_in_events(reader, before, up, deadline));
            set(self.namespace, &self.links, up)?;
            let kernel = Instant::now();
            let died = |_| anyhow::anyhow!("a thread ended without an answer");
            let announced = announced.join().map_err(died)??;
            let mirror = mirror.join().map_err(died)??;
            let watcher = watcher.join().map_err(died)??;
            let ms = |at: Instant| at.duration_since(start).as_secs_f64() * 1_000.0;
            Ok(Seen {
                kernel_ms: ms(kernel),
                announced_ms: ms(announced),
                mirror_ms: ms(mirror),
                watcher_ms: ms(watcher),
            })
        })
    }

    /// Deletes the pairs.
    pub fn clear(&self) -> Result<()> {
        self.making.delete(false).map(drop)
    }

    fn signs(&self) -> impl Iterator<Item = Sign> {
        let links = self
            .links
            .iter()
            .chain(&self.peers)
            .copied()
            .map(Sign::Link);
        links.chain(self.subnets.iter().copied().map(Sign::Route))
    }

    /// When the kernel itself has told of every link, on a socket that does
    /// nothing else.
    fn announced(&self, socket: &Socket, up: bool, deadline: Instant) -> Result<Instant> {
        let links = self.links.iter().chain(&self.peers);
        let mut waiting: HashSet<u32> = links.copied().collect();
        let mut buffer = vec![0; DATAGRAM_BYTES];
        while !waiting.is_empty() {
            if Instant::now() > deadline {
                bail!("the kernel did not tell of {} links", waiting.len());
            }
            if !socket.wait(Duration::from_millis(100))? {
                continue;
            }
            let len = match socket.try_receive(&mut buffer)? {
                Received::Bytes(len) => len,
                Received::Nothing => continue,
                Received::Overrun => bail!("the kernel's events came faster than they were read"),
            };
            for message in messages(&buffer[..len]) {
                if let Decoded::Announcement(Announcement {
                    item: Item::Link(link),
                    ..
                }) = decode(&message?, 0)?
                    && link.has_carrier() == up
                {
                    waiting.remove(&link.index);
                }
            }
        }
        Ok(Instant::now())
    }

    /// When a snapshot first shows everything. Looks again only at what
    /// the last look did not find yet.
    fn seen_in_snapshots(&self, reader: &Reader, up: bool, deadline: Instant) -> Result<Instant> {
        let mut waiting = self.signs().peekable();
        loop {
            let tables = reader.snapshot();
            while waiting
                .next_if(|sign| self.shows(&tables, *sign, up))
                .is_some()
            {}
            match waiting.peek() {
                None => return Ok(Instant::now()),
                Some(sign) if Instant::now() > deadline => {
                    bail!("the mirror does not show {sign:?} after {PATIENCE:?}")
                }
                Some(_) => thread::sleep(LOOK),
            }
        }
    }

    fn shows(&self, tables: &Tables, sign: Sign, up: bool) -> bool {
        match sign {
            Sign::Link(index) => tables.links.get(index).is_some_and(|link| {
                link.is_up() == (up || !self.is_first(index)) && link.has_carrier() == up
            }),
            Sign::Route(subnet) => {
                tables.routes.exact(table_id::MAIN, subnet).next().is_some() == up
            }
        }
    }

    /// Whether it is one of those that are set; peers stay up.
    fn is_first(&self, index: u32) -> bool {
        self.links.binary_search(&index).is_ok()
    }

    /// When a watcher has heard of everything.
    fn seen_in_events(
        &self,
        reader: &Reader,
        mut seen: Generation,
        up: bool,
        deadline: Instant,
    ) -> Result<Instant> {
        let mut waiting: HashSet<Sign> = self.signs().collect();
        while !waiting.is_empty() {
            let Events::Batches(batches) = reader.events_after(seen, Duration::from_millis(100))
            else {
                bail!("the watcher fell behind");
            };
            for batch in batches {
                seen = batch.generation;
                for event in batch.events.iter() {
                    if let Some(sign) = sign(event.operation, &event.row, up) {
                        waiting.remove(&sign);
                    }
                }
            }
            if let Some(sign) = waiting.iter().next()
                && Instant::now() > deadline
            {
                bail!("the watcher did not hear of {sign:?} within {PATIENCE:?}");
            }
        }
        Ok(Instant::now())
    }
}

/// What an event is a sign of, if it is one of links gone `up` or down.
fn sign(happened: Happened, row: &Row, up: bool) -> Option<Sign> {
    match row {
        Row::Link(link) => (link.has_carrier() == up).then_some(Sign::Link(link.index)),
        Row::Route(route) => {
            let is_there = happened != Happened::Deleted;
            (route.table == table_id::MAIN && is_there == up).then_some(Sign::Route(route.prefix))
        }
        _ => None,
    }
}

fn set(namespace: &Namespace, links: &[u32], up: bool) -> Result<()> {
    let settings = LinkSettings {
        up: Some(up),
        ..LinkSettings::default()
    };
    let settings = &settings;
    let encoders = links.iter().map(|&index| {
        move |sequence, out: &mut Vec<u8>| {
            encode::set_link(
                out,
                &Request::plain(Operation::New, sequence),
                index,
                settings,
            )
        }
    });
    making::all_taken(namespace, "set links", encoders)
}

/// An address as a script gives it: its broadcast the last of the subnet.
fn address(link: u32, subnet: Ipv4Net) -> Address {
    Address {
        broadcast: Some(subnet.broadcast().into()),
        ..Address::new(link, subnet.addr().into(), subnet.prefix_len())
    }
}
