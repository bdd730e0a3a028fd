//! The stages of our own stack, each a plain function over a batch: buffer,
//! payload, header, route, neighbour, port.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use anyhow::{Context, Result};
use dataplane::forward::{VrfFibs, flow_hash};
use dataplane::neighbour::{Key, Kind, Table};
use dataplane::socket::Flushed;
use dataplane::{Batch, Cache, Memory, Port, Sent};
use memory::quiescent::{Reader, Section};
use packet::ethernet;

use super::super::device;
use super::super::frame::Prefix;
use super::super::plan::{Into, Plan, Stage};
use super::super::prefixes::{prefixes, sources};
use super::profile::Profile;
use super::tables::Tables;
use crate::payload::Header;

/// Packets of a batch at most.
const MAX_BATCH: usize = 1_024;

/// Packets that did not leave, by why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Drops {
    /// The pool had no buffer.
    pub no_buffer: u64,
    /// No route, or one that forbids.
    pub no_route: u64,
    /// The next hop's link-layer address is not known.
    pub unresolved: u64,
    /// They are for this host.
    pub local: u64,
    /// Longer than the MTU of the port.
    pub too_long: u64,
}

impl Drops {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.no_buffer + self.no_route + self.unresolved + self.local + self.too_long
    }

    /// Adds another core's.
    pub fn add(&mut self, other: &Self) {
        self.no_buffer += other.no_buffer;
        self.no_route += other.no_route;
        self.unresolved += other.unresolved;
        self.local += other.local;
        self.too_long += other.too_long;
    }
}

/// Where the packets of a batch go.
enum Destinations {
    V4(Vec<u32>),
    V6(Vec<u128>),
}

/// One core's part of our own stack. It shares nothing that is written.
pub struct Stack {
    stop_after: Stage,
    cache: Cache,
    batch: Batch,
    reader: Reader,
    view: VrfFibs,
    table: Arc<Table>,
    prefixes: Vec<Prefix>,
    destinations: Destinations,
    payload: Vec<u8>,
    /// Where payloads are copied when there are no buffers.
    scratch: Vec<u8>,
    port: Box<dyn Port + Send>,
    flow: usize,
    /// Flow of each packet of the batch.
    flows: [u16; MAX_BATCH],
    next_hops: [u16; MAX_BATCH],
    addresses_v4: [u32; MAX_BATCH],
    addresses_v6: Vec<u128>,
    stopped: u64,
    drops: Drops,
    /// What stages take, where that is wanted.
    pub profile: Option<Profile>,
}

impl Stack {
    /// For one of the plan's cores.
    pub fn open(plan: &Plan, core: usize, flows: &[u32], tables: &Tables) -> Result<Self> {
        let toward = &tables.toward;
        let prefixes = prefixes(plan, flows, None, toward.source)?;
        let all = sources(plan, toward.source)?;
        let to = flows.iter().map(|flow| all.get(*flow).1);
        let destinations = match plan.flows.to() {
            SocketAddr::V4(_) => Destinations::V4(
                to.filter_map(|to| match to {
                    SocketAddr::V4(to) => Some(to.ip().to_bits()),
                    SocketAddr::V6(_) => None,
                })
                .collect(),
            ),
            SocketAddr::V6(_) => Destinations::V6(
                to.filter_map(|to| match to {
                    SocketAddr::V6(to) => Some(to.ip().to_bits()),
                    SocketAddr::V4(_) => None,
                })
                .collect(),
            ),
        };
        let head = prefixes.first().map_or(0, Prefix::len);
        let port: Box<dyn Port + Send> = match (&plan.into, plan.into.way()) {
            (_, Some(way)) => {
                let frame_bytes = ethernet::HEADER_LEN + head + plan.payload_bytes;
                let name = &toward.interface;
                device::open(way, name, core, frame_bytes, plan.batch, &tables.pool)?
            }
            (Into::Tun(_), None) => {
                let tun = tables.tun.borrow_mut().take();
                Box::new(tun.context("the TUN device is taken")?)
            }
            _ => Box::new(Memory::null()),
        };
        let reader = tables.domain.register();
        Ok(Self {
            stop_after: plan.stop_after.unwrap_or(Stage::Port),
            cache: tables.pool.cache(),
            batch: Batch::new(plan.batch.min(MAX_BATCH)),
            reader: reader.ok().context("too many cores for the tables")?,
            view: tables.view.clone(),
            table: Arc::clone(&tables.table),
            prefixes,
            destinations,
            payload: vec![0; plan.payload_bytes],
            scratch: vec![0; plan.batch * plan.payload_bytes],
            port,
            flow: 0,
            flows: [0; MAX_BATCH],
            next_hops: [0; MAX_BATCH],
            addresses_v4: [0; MAX_BATCH],
            addresses_v6: vec![0; MAX_BATCH],
            stopped: 0,
            drops: Drops::default(),
            profile: plan.profile.then(Profile::new),
        })
    }

    /// Takes a batch through the stages, up to the port.
    pub fn push(&mut self, count: usize, mut header: impl FnMut(usize) -> Header) -> usize {
        if !self.batch.is_empty() {
            return 0;
        }
        let count = count.min(self.batch.capacity());
        if self.stop_after == Stage::Payload {
            self.copy_to_scratch(count);
            self.stopped += count as u64;
            return count;
        }
        let refills = self.cache.counters().refills;
        self.lap(None);
        let got = self.cache.fill(&mut self.batch, count);
        self.drops.no_buffer += (count - got) as u64;
        let refilled = self.cache.counters().refills != refills;
        self.lap_buffer(refilled);
        self.copy_payload();
        self.lap(Some(Stage::Payload));
        if self.stop_after > Stage::Buffer {
            self.write_headers(&mut header);
            self.lap(Some(Stage::Header));
        }
        if self.stop_after > Stage::Header {
            self.look_up();
        }
        if self.stop_after < Stage::Port {
            self.stopped += self.batch.len() as u64;
            self.cache.clear(&mut self.batch);
        }
        count
    }

    /// Gives what is left of the batch to the port.
    pub fn flush(&mut self) -> Result<Flushed> {
        if self.batch.is_empty() && self.port.pending() == 0 {
            return Ok(Flushed::All);
        }
        self.lap(None);
        let sent = self.port.send(&mut self.cache, &mut self.batch)?;
        self.lap(Some(Stage::Port));
        Ok(match sent {
            Sent::All => Flushed::All,
            Sent::Full => Flushed::Full,
            Sent::NoBuffers => Flushed::NoBuffers,
        })
    }

    /// Packets that went as far as they were to go.
    pub fn sent(&self) -> u64 {
        self.stopped + self.port.counters().sent_packets
    }

    /// Packets that did not.
    pub fn refused(&self) -> u64 {
        self.port.counters().refused_packets + self.drops.total()
    }

    /// Packets that the port copied.
    pub fn copied(&self) -> u64 {
        self.port.counters().copied_packets
    }

    /// Those that did not go, by why.
    pub fn drops(&self) -> Drops {
        self.drops
    }

    /// Packets that are on their way.
    pub fn pending(&self) -> usize {
        self.batch.len() + self.port.pending()
    }

    /// Looks which of them are gone.
    pub fn reap(&mut self) {
        self.port.reap();
    }

    /// What becomes writable when there is room.
    pub fn writable(&self) -> Option<BorrowedFd<'_>> {
        self.port.writable()
    }

    #[inline(always)]
    fn lap(&mut self, stage: Option<Stage>) {
        if let Some(profile) = &mut self.profile {
            profile.lap(stage);
        }
    }

    #[inline(always)]
    fn lap_buffer(&mut self, refilled: bool) {
        if let Some(profile) = &mut self.profile {
            profile.lap_buffer(refilled);
        }
    }

    fn copy_to_scratch(&mut self, count: usize) {
        self.lap(None);
        let len = self.payload.len().max(1);
        for to in self.scratch.chunks_exact_mut(len).take(count) {
            // The same as a copy from a caller: not to be left out.
            to.copy_from_slice(std::hint::black_box(&self.payload));
        }
        self.lap(Some(Stage::Payload));
    }

    fn copy_payload(&mut self) {
        let head = self.prefixes.first().map_or(0, Prefix::len);
        let len = self.payload.len();
        for buffer in self.batch.packets_mut() {
            if let Some(to) = buffer.room_mut().get_mut(head..head + len) {
                to.copy_from_slice(&self.payload);
            }
            buffer.set_len(head + len);
        }
    }

    fn write_headers(&mut self, header: &mut impl FnMut(usize) -> Header) {
        for (buffer, of) in self.batch.packets_mut().iter_mut().zip(&mut self.flows) {
            self.flow = if self.flow + 1 < self.prefixes.len() {
                self.flow + 1
            } else {
                0
            };
            *of = self.flow as u16;
            if let Some(prefix) = self.prefixes.get(self.flow) {
                prefix.write(buffer.packet_mut(), &header(self.flow));
            }
        }
    }

    /// Route and neighbour, inside one section of the tables.
    fn look_up(&mut self) {
        let count = self.batch.len();
        let section = self.reader.enter();
        let (flows, hops) = (&self.flows[..count], &mut self.next_hops[..count]);
        match &self.destinations {
            Destinations::V4(all) => {
                let addresses = &mut self.addresses_v4[..count];
                for (address, flow) in addresses.iter_mut().zip(flows) {
                    *address = all.get(usize::from(*flow)).copied().unwrap_or(0);
                }
                self.view.v4.lookup(&section, addresses, hops);
            }
            Destinations::V6(all) => {
                let addresses = &mut self.addresses_v6[..count];
                for (address, flow) in addresses.iter_mut().zip(flows) {
                    *address = all.get(usize::from(*flow)).copied().unwrap_or(0);
                }
                self.view.v6.lookup(&section, addresses, hops);
            }
        }
        if let Some(profile) = &mut self.profile {
            profile.lap(Some(Stage::Route));
        }
        if self.stop_after == Stage::Route {
            return;
        }
        let is_v4 = matches!(self.destinations, Destinations::V4(_));
        let [a, b] = if is_v4 {
            ethernet::IPV4.to_be_bytes()
        } else {
            ethernet::IPV6.to_be_bytes()
        };
        let address = |at: usize| {
            if is_v4 {
                u128::from(self.addresses_v4[at])
            } else {
                self.addresses_v6[at]
            }
        };
        let mut last = Resolved::default();
        let hops = &self.next_hops[..count];
        for (at, (buffer, hop)) in self.batch.packets_mut().iter_mut().zip(hops).enumerate() {
            let to = address(at);
            if !last.is_for(*hop, to) {
                let key = |port| match u32::try_from(to) {
                    Ok(to) if is_v4 => Key::v4(port, to),
                    _ => Key::v6(port, to),
                };
                last = resolve(&self.table, &section, *hop, buffer.packet(), key);
                last.to = to;
                last.link[12..].copy_from_slice(&[a, b]);
            }
            let fits = buffer.packet_len() <= last.mtu;
            match last.kind {
                Kind::Rewrite if fits => {
                    let link = buffer.link_mut(ethernet::HEADER_LEN);
                    if let Some(link) = link.first_chunk_mut() {
                        *link = last.link;
                    }
                    continue;
                }
                Kind::Direct if fits => {
                    buffer.link_mut(0);
                    continue;
                }
                Kind::Rewrite | Kind::Direct => self.drops.too_long += 1,
                Kind::Unresolved | Kind::OnLink => self.drops.unresolved += 1,
                Kind::Host => self.drops.local += 1,
                _ => self.drops.no_route += 1,
            }
            buffer.set_discarded(true);
        }
        drop(section);
        if let Some(profile) = &mut self.profile {
            profile.lap(Some(Stage::Neighbour));
        }
    }
}

/// What the packet before found: the next one of a batch to the same
/// destination takes the same, unless its flow decides.
#[derive(Default)]
struct Resolved {
    hop: u16,
    to: u128,
    by_flow: bool,
    kind: Kind,
    mtu: usize,
    link: [u8; ethernet::HEADER_LEN],
}

impl Resolved {
    #[inline(always)]
    fn is_for(&self, hop: u16, to: u128) -> bool {
        self.hop == hop && self.to == to && !self.by_flow
    }
}

/// What a packet leaves by: the next hop's adjacency, of a group the flow's
/// member, and on a link the destination's own. The caller adds destination
/// and EtherType.
fn resolve(
    table: &Table,
    section: &Section<'_>,
    hop: u16,
    packet: &[u8],
    key: impl Fn(u16) -> Key,
) -> Resolved {
    let mut adjacency = table.next_hop(section, hop);
    let by_flow = adjacency.kind() == Kind::Group;
    if by_flow {
        let member = table.member(section, adjacency.group(), flow_hash(packet, 0));
        adjacency = table.next_hop(section, member);
    }
    if adjacency.kind() == Kind::OnLink {
        let key = key(adjacency.port());
        let found = table.neighbour(section, key, table.place(key));
        adjacency = found.unwrap_or(adjacency);
    }
    let mut link = [0; ethernet::HEADER_LEN];
    link[..12].copy_from_slice(&adjacency.addresses());
    Resolved {
        hop,
        to: 0,
        by_flow,
        kind: adjacency.kind(),
        mtu: usize::from(adjacency.mtu()),
        link,
    }
}
