//! The way of a packet through a worker: plain functions over a batch, one
//! behind the other, each with its counters.
//!
//! [`Forwarder`] is what a worker owns of it. It asks for no clock and
//! touches no port: frames go in, and for each comes out by which port it
//! leaves; packets that are made on the way (errors, fragments, those that
//! waited) come out beside them. So it runs in tests and simulations as it
//! runs in [`crate::worker`].
//!
//! ```text
//! ethernet -> ipv4, ipv6 -> nat in -> fib -> next hop -> nat out -> output
//!        \________\___________________\______\-> host        \-> icmp, wait
//! ```
//!
//! A packet is only touched by its own worker. What it reads of others (the
//! FIB, next hops, neighbours) it reads inside a section, by loads alone.

mod counters;
mod error;
mod error_budget;
pub mod ethernet;
mod fast_path;
mod fragment;
mod handoff;
mod hash;
pub mod ip;
mod originated;
mod output;
mod ports;
mod resolve;
mod sources;
mod translate;
mod vector;
mod waiting;

use std::sync::Arc;

use memory::quiescent::Section;
use nat::Nat;

use crate::neighbour::Table;
use crate::{Buffer, Cache};
use error_budget::ErrorBudget;
use ethernet::{Arrived, Carried};
use handoff::Handoff;
use ip::Checked;
use originated::{OriginatedQueue, Stage};
use vector::{Destination, PacketVector};
use waiting::Waiting;

pub use counters::{Counters, Node, Reason};
pub use error::Message;
pub use handoff::{NOTE_LEN, worker_of};
pub use hash::flow_hash;
pub use ports::{MAX_PORTS, PortSettings, Ports};
pub use sources::SourceCheck;
pub use waiting::{Request, Requests, WaitingLimits};

/// Packets that go through at a time at most.
pub const MAX_BATCH: usize = 256;

/// Stands for a port where a packet ended: dropped, held, or replaced.
pub const GONE: u16 = u16::MAX;
/// Stands for a port where a packet is the kernel's.
pub const HOST: u16 = u16::MAX - 1;

/// The FIBs that decide for some ports; several views share next hops.
#[derive(Debug, Clone)]
pub struct VrfFibs {
    /// For IPv4.
    pub v4: fib::Reader4,
    /// For IPv6.
    pub v6: fib::Reader6,
}

/// How a worker forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Errors that may be sent in a second, and at once.
    pub errors_per_second: u32,
    /// See above.
    pub errors_at_once: u32,
    /// The same to each sender (of IPv6, each network of 64 bits).
    pub errors_each_per_second: u32,
    /// See above.
    pub errors_each_at_once: u32,
    /// What packets may wait for neighbours.
    pub waiting: WaitingLimits,
    /// The largest segment that TCP over IPv4 may announce, bytes (over IPv6
    /// 20 less): a larger one is lowered ([`packet::mss`]). `None`: each stays.
    pub clamp_mss: Option<u16>,
    /// What sources of packets from inside are held against.
    pub source_check: SourceCheck,
    /// Goes into the hash of flows: other routers on the way should have
    /// another one.
    pub hash_seed: u64,
}

impl Default for Settings {
    /// As Linux limits errors: 1,000 a second, 50 at once; to each sender
    /// more than its one a second, for what traces a way asks faster.
    fn default() -> Self {
        Self {
            errors_per_second: 1_000,
            errors_at_once: 50,
            errors_each_per_second: 10,
            errors_each_at_once: 10,
            waiting: WaitingLimits::default(),
            clamp_mss: None,
            source_check: SourceCheck::Off,
            hash_seed: 0,
        }
    }
}

/// All that a worker owns of the way. Two share nothing that is written.
#[derive(Debug)]
pub struct Forwarder {
    state: State,
    v4: Box<PacketVector<u32>>,
    v6: Box<PacketVector<u128>>,
}

/// What the nodes work with, but the packets themselves.
#[derive(Debug)]
struct State {
    ports: Box<Ports>,
    views: Vec<VrfFibs>,
    table: Arc<Table>,
    nat: Option<Box<Nat>>,
    /// Where the engine is one of several.
    handoff: Option<Box<Handoff>>,
    settings: Settings,
    counters: Counters,
    waiting: Waiting,
    requests: Requests,
    error_budget: ErrorBudget,
    originated: OriginatedQueue,
    /// Buffers for what is made on the way; the worker's own.
    cache: Cache,
    /// Room for a fragment that the engine of translation held back.
    fragment: Vec<u8>,
    egress: [u16; MAX_BATCH],
    seen_changes: u64,
    now_millis: u64,
}

impl Forwarder {
    /// One that forwards by these tables, and takes buffers for what it makes
    /// from this cache. All allocations of the usual way are made here.
    pub fn new(
        ports: Ports,
        views: Vec<VrfFibs>,
        table: Arc<Table>,
        nat: Option<Nat>,
        settings: Settings,
        cache: Cache,
    ) -> Self {
        Self {
            state: State {
                ports: Box::new(ports),
                views,
                table,
                handoff: nat.as_ref().and_then(Handoff::of).map(Box::new),
                nat: nat.map(Box::new),
                settings,
                counters: Counters::default(),
                waiting: Waiting::new(settings.waiting),
                requests: Requests::new(),
                error_budget: ErrorBudget::new(&settings),
                originated: OriginatedQueue::default(),
                cache,
                fragment: Vec::new(),
                egress: [GONE; MAX_BATCH],
                seen_changes: 0,
                now_millis: 0,
            },
            v4: Box::default(),
            v6: Box::default(),
        }
    }

    /// Takes the first [`MAX_BATCH`] frames that came in by a port through
    /// all nodes. [`Forwarder::egress`] then says where each goes, and
    /// [`Forwarder::next_originated`] gives the packets that were made.
    ///
    /// The section is of the domain of the tables. Bounded work: O(frames),
    /// and what waits is looked at when a neighbour changed.
    pub fn forward(
        &mut self,
        section: &Section<'_>,
        port: u16,
        frames: &mut [Buffer],
        now_millis: u64,
    ) {
        let (frames, _) = frames.split_at_mut(frames.len().min(MAX_BATCH));
        let state = &mut self.state;
        state.begin(now_millis);
        self.v4.clear();
        self.v6.clear();
        state.input(port, frames, &mut self.v4, &mut self.v6);
        if let Some(most) = state.settings.clamp_mss {
            clamp_mss(frames, most);
        }
        let is_host = state.ports.get(port).is_some_and(|port| port.is_host);
        if !self.v4.is_empty() {
            state.pass_v4(section, &mut self.v4, frames, is_host);
        }
        if !self.v6.is_empty() {
            let find =
                |view: &VrfFibs, to: &[u128], hops: &mut [u16]| view.v6.lookup(section, to, hops);
            state.check_sources(section, &mut self.v6, frames, find);
            state.look_up(&mut self.v6, find);
            state.pass(section, &mut self.v6, frames, is_host);
        }
        state.finish(section);
    }

    /// Takes packets that other workers handed over: each is one that leaves
    /// by a port that stands for this worker ([`worker_of`]), as it left
    /// there. Else as [`Forwarder::forward`].
    pub fn take_over(&mut self, section: &Section<'_>, frames: &mut [Buffer], now_millis: u64) {
        let (frames, _) = frames.split_at_mut(frames.len().min(MAX_BATCH));
        let state = &mut self.state;
        state.begin(now_millis);
        let mut ports_in = [None; MAX_BATCH];
        state.take_notes(frames, &mut ports_in);
        // What the host sends is told from the rest by batches.
        for is_host in [false, true] {
            self.v4.clear();
            for (at, (frame, port)) in frames.iter().zip(ports_in).enumerate() {
                if let Some(port) = port
                    && state.ports.get(port).is_some_and(|port| port.is_host) == is_host
                {
                    self.v4.push(at, port, u32::of_packet(frame.packet()));
                }
            }
            if !self.v4.is_empty() {
                state.pass_v4(section, &mut self.v4, frames, is_host);
            }
        }
        state.take_released();
        state.take_met();
        state.forget_notes();
        state.finish(section);
    }

    /// What is due without a packet: those that waited go on or end. To be
    /// called now and then while nothing comes in.
    pub fn tend(&mut self, section: &Section<'_>, now_millis: u64) {
        self.state.begin(now_millis);
        self.state.finish(section);
    }

    /// By which port each frame of the last batch leaves: [`GONE`], [`HOST`]
    /// or a port's number. A frame that leaves begins with the header of
    /// its link, one for the host with its IP header.
    pub fn egress(&self) -> &[u16; MAX_BATCH] {
        &self.state.egress
    }

    /// Hands out the packets that were made since [`Forwarder::forward`] or
    /// [`Forwarder::tend`] was called, one by one, with the port that each
    /// leaves by.
    pub fn next_originated(&mut self) -> Option<(u16, Buffer)> {
        self.state.originated.next()
    }

    /// The worker's buffers, which ports fill and empty as well.
    pub fn cache(&mut self) -> &mut Cache {
        &mut self.state.cache
    }

    /// Counts what became of packets behind the last node: there was no such
    /// port, or no buffer.
    pub fn count(&mut self, reason: Reason, packets: usize) {
        self.state.counters.count_many(reason, packets);
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.state.counters
    }

    /// What the program is asked to do about neighbours.
    pub fn requests(&mut self) -> &mut Requests {
        &mut self.state.requests
    }

    /// Neighbours that packets wait for, and bytes of those packets.
    pub fn waiting(&self) -> (usize, usize) {
        let waiting = &self.state.waiting;
        (waiting.neighbours(), waiting.bytes())
    }

    /// Its engine of address translation.
    pub fn nat(&mut self) -> Option<&mut Nat> {
        self.state.nat.as_deref_mut()
    }

    /// The engine, at the end: nothing is translated any more.
    pub fn take_nat(&mut self) -> Option<Box<Nat>> {
        self.state.nat.take()
    }

    /// Ports have changed.
    pub fn set_ports(&mut self, ports: Ports) {
        *self.state.ports = ports;
    }

    /// What it knows of its ports.
    pub fn ports(&self) -> &Ports {
        &self.state.ports
    }
}

impl State {
    fn begin(&mut self, now_millis: u64) {
        self.now_millis = now_millis;
        self.originated.clear(&mut self.cache);
    }

    /// Drops the packet of a frame.
    #[inline(always)]
    fn drop(&mut self, at: usize, reason: Reason) {
        self.counters.count(reason);
        self.egress[at] = GONE;
    }

    /// Ethernet and IP: each frame ends here, or goes into a vector.
    #[inline]
    fn input(
        &mut self,
        port: u16,
        frames: &mut [Buffer],
        v4: &mut PacketVector<u32>,
        v6: &mut PacketVector<u128>,
    ) {
        let Self {
            ports,
            counters,
            egress,
            ..
        } = self;
        let Some(settings) = ports.get(port) else {
            for egress in egress.iter_mut().take(frames.len()) {
                counters.count(Reason::NoPort);
                *egress = GONE;
            }
            return;
        };
        let is_host = settings.is_host;
        if settings.ethernet.is_some() {
            counters.visit(Node::Ethernet, frames.len());
        }
        // Without a header none is usual.
        let station = settings.ethernet.map_or(u64::MAX, fast_path::station);
        for (at, frame) in frames.iter_mut().enumerate() {
            if let Some(to) = fast_path::input_v4(frame, station) {
                v4.push(at, port, to);
                continue;
            }
            let arrived = match settings.ethernet {
                Some(own) => ethernet::input(frame, port, own, ports),
                None => bare(frame, port),
            };
            let end = match arrived.carried {
                Carried::Ipv4 => match ip::check_v4(frame, is_host) {
                    Checked::To(to) => {
                        v4.push(at, arrived.port, to);
                        continue;
                    }
                    Checked::Host => None,
                    Checked::Dropped(reason) => Some(reason),
                },
                Carried::Ipv6 => match ip::check_v6(frame, is_host) {
                    Checked::To(to) => {
                        v6.push(at, arrived.port, to);
                        continue;
                    }
                    Checked::Host => None,
                    Checked::Dropped(reason) => Some(reason),
                },
                Carried::Host => None,
                Carried::Dropped(reason) => Some(reason),
            };
            egress[at] = match end {
                Some(reason) => {
                    counters.count(reason);
                    GONE
                }
                None => {
                    counters.visit(Node::Host, 1);
                    HOST
                }
            };
        }
        self.counters.visit(Node::Ipv4, v4.len());
        self.counters.visit(Node::Ipv6, v6.len());
    }

    /// Takes a packet out of a batch, with an empty buffer in its place;
    /// `None`, and counted, where there is none.
    fn take_out(&mut self, frame: &mut Buffer) -> Option<Buffer> {
        let Some(empty) = self.cache.take() else {
            self.counters.count(Reason::NoRoom);
            return None;
        };
        Some(std::mem::replace(frame, empty))
    }

    /// A buffer with a copy of a packet that was kept elsewhere; `None`, and
    /// counted, where there is none or no room in it.
    fn copy_of(&mut self, packet: &[u8]) -> Option<Buffer> {
        let mut buffer = self.cache.take();
        if !buffer
            .as_mut()
            .is_some_and(|buffer| buffer.set_frame(packet, 0))
        {
            self.counters.count(Reason::NoRoom);
            self.cache.give_all(buffer.take().into_iter());
        }
        buffer
    }

    /// A packet that leaves beside those of the batch.
    fn add(&mut self, packet: Buffer, stage: Stage) {
        if stage == Stage::Ready(GONE) {
            return self.cache.give(packet);
        }
        if !self.originated.add(&mut self.cache, packet, stage) {
            self.counters.count(Reason::NoRoom);
        }
    }

    fn leave_to_host(&mut self, at: usize) {
        self.counters.visit(Node::Host, 1);
        self.egress[at] = HOST;
    }

    /// Longest-prefix match for a vector, by the view of each packet's port;
    /// `find` is that of the vector's family.
    #[inline]
    fn look_up<A: Destination>(
        &mut self,
        vector: &mut PacketVector<A>,
        find: impl Fn(&VrfFibs, &[A], &mut [u16]),
    ) {
        self.counters.visit(Node::Fib, vector.len());
        match self.one_view(vector.ports()) {
            Some(view) => {
                let (to, hops) = vector.look_up();
                if let Some(view) = self.views.get(view) {
                    find(view, to, hops);
                }
            }
            None => vector.look_up_each(|port, to, hop| {
                if let Some(view) = self.views.get(self.view_of(port)) {
                    find(view, to, hop);
                }
            }),
        }
    }

    /// The view that decides for a port.
    #[inline]
    fn view_of(&self, port: u16) -> usize {
        self.ports
            .get(port)
            .map_or(0, |port| usize::from(port.view))
    }

    /// The view of all these ports, if they have one in common.
    #[inline]
    fn one_view(&self, ports: &[u16]) -> Option<usize> {
        if self.views.len() == 1 {
            return Some(0);
        }
        let first = self.view_of(*ports.first()?);
        let same = ports.iter().all(|port| self.view_of(*port) == first);
        same.then_some(first)
    }

    /// IPv4 from behind the checks to where each packet of a vector goes.
    #[inline]
    fn pass_v4(
        &mut self,
        section: &Section<'_>,
        vector: &mut PacketVector<u32>,
        frames: &mut [Buffer],
        is_host: bool,
    ) {
        let find = |view: &VrfFibs, to: &[u32], hops: &mut [u16]| view.v4.lookup(section, to, hops);
        self.check_sources(section, vector, frames, find);
        self.translate_in(vector, frames);
        self.look_up(vector, find);
        self.pass(section, vector, frames, is_host);
    }

    /// From next hops to where each packet of a vector goes.
    #[inline]
    fn pass<A: Destination>(
        &mut self,
        section: &Section<'_>,
        vector: &mut PacketVector<A>,
        frames: &mut [Buffer],
        is_host: bool,
    ) {
        if !is_host && (A::IS_V6 || self.nat.is_none()) {
            self.resolve_and_output(section, vector, frames);
            if vector.is_empty() {
                return;
            }
        } else {
            self.resolve(section, vector, frames);
        }
        self.decide(vector, frames, is_host);
        if !A::IS_V6 && self.nat.is_some() {
            self.translate_out(vector, frames);
        }
        self.output_vector(section, vector, frames, is_host);
    }

    /// Behind a batch: packets that waited, and those made on the way.
    fn finish(&mut self, section: &Section<'_>) {
        self.release(section);
        self.give_up();
        self.route_originated(section);
    }
}

/// The frame of a place that a vector names: one of its batch. (A place that
/// is not there is an error of the nodes, which a build with checks stops at.)
#[inline(always)]
fn frame_at(frames: &mut [Buffer], at: usize) -> Option<&mut Buffer> {
    debug_assert!(at < frames.len(), "no frame {at} of {}", frames.len());
    frames.get_mut(at)
}

/// Lowers what frames announce as TCP's largest segment.
#[inline(never)]
fn clamp_mss(frames: &mut [Buffer], most: u16) {
    for frame in frames {
        packet::mss::clamp(frame.packet_mut(), most);
    }
}

/// The bytes of its packet.
#[inline(always)]
fn packet_at(frames: &[Buffer], at: usize) -> &[u8] {
    debug_assert!(at < frames.len(), "no frame {at} of {}", frames.len());
    frames.get(at).map(Buffer::packet).unwrap_or_default()
}

/// A frame without a link's header: its version says what it is.
#[inline(always)]
fn bare(frame: &Buffer, port: u16) -> Arrived {
    let carried = match frame.packet().first().map(|first| first >> 4) {
        Some(6) => Carried::Ipv6,
        _ => Carried::Ipv4,
    };
    Arrived { port, carried }
}

#[cfg(test)]
mod tests;
