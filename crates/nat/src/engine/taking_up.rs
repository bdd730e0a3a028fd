//! A saved state taken up: see [`crate::saved`].
//!
//! Nothing of it is believed: a name that does not fit, a key that is there
//! already, an entry without its owner are left out. What is counted of
//! flows (mappings, sessions, uses of blocks) is counted anew as they come.

use std::net::Ipv4Addr;

use super::Nat;
use super::beside::tuple;
use super::end::{Barren, has_ports};
use super::leases_saved::SavedLeases;
use super::saving::print;
use super::tracked::Tracked;
use crate::State;
use crate::blocks::{Blocks, Orders, Pool, Subscriber, SubscriberConfig};
use crate::flow::{Ends, Flow, flag};
use crate::mapping::{Kind, Mapping};
use crate::proxied::Proxied;
use crate::rules::{Encoding, Redirect, Tuple};
use crate::saved::{Chunk, ChunkReader, Fields, SavedError, tag};
use crate::tcp::Side;

/// How far ahead of a flow that is entered lines are asked for.
const AHEAD: usize = 8;
/// Longer than any state lives: so long away is as good as this.
const MOST_GONE_MILLIS: u64 = 1 << 40;
/// What of a flow's flags comes along, beside its window scales.
const KEPT_FLAGS: u32 = flag::SEEN_OUT
    | flag::SEEN_IN
    | flag::FIN_OUT
    | flag::FIN_IN
    | flag::END_OUT
    | flag::END_IN
    | flag::ACKED_OUT
    | flag::ACKED_IN
    | flag::MAPPED
    | flag::HAIRPIN
    | flag::HELPER
    | flag::PROXY
    | flag::PERMIT
    | flag::STRANGER
    | flag::COUNTED;

/// What came of a saved state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TakenUp {
    /// Flows that are there again, with those that expired meanwhile.
    pub flows: usize,
    /// Flows for which there is no room any more, or no place by the
    /// settings.
    pub left_out: usize,
    /// Blocks that are somebody's again.
    pub blocks: usize,
}

/// What is put in order at the end.
#[derive(Default)]
struct Later {
    free_flows: Vec<u32>,
    free_mappings: Vec<u32>,
    free_subscribers: Vec<u32>,
    blocks: Orders,
    leases: SavedLeases,
}

impl Nat {
    /// Takes up what an engine has saved that had the same seed: for one
    /// without flows yet, with its rules and, where it is one of several, its
    /// part. `gone_millis` went by since, for nobody; `now_millis` is the
    /// time now. After an error the engine is of no use any more. O(places).
    pub fn take_up(
        &mut self,
        from: &mut ChunkReader<'_>,
        gone_millis: u64,
        now_millis: u64,
    ) -> Result<TakenUp, SavedError> {
        let gone = gone_millis.min(MOST_GONE_MILLIS);
        let mut taken = TakenUp::default();
        let mut later = Later::default();
        let first = from.next_chunk()?;
        let record = first.records().next();
        let record = record.filter(|_| first.tag == tag::ENGINE && self.table.places() == 0);
        let mut fields = record.ok_or(SavedError::Damaged("an engine begins otherwise"))?;
        self.take_engine(&mut fields, (now_millis, gone))?;
        loop {
            let chunk = from.next_chunk()?;
            match chunk.tag {
                tag::END => break,
                tag::FLOW => self.take_flows(&chunk, &mut taken),
                _ => self.take_chunk(&chunk, (now_millis, gone), &mut later),
            }
        }
        self.settle_all(&later);
        self.take_leases(&later.leases, (now_millis, gone));
        let pool = self.tracked.as_ref().and_then(|of| of.pool.as_ref());
        taken.blocks = pool.map_or(0, Pool::taken);
        Ok(taken)
    }

    fn take_engine(
        &mut self,
        fields: &mut Fields<'_>,
        (now_millis, gone): (u64, u64),
    ) -> Result<(), SavedError> {
        let run = fields.u64();
        self.random = crate::key::Random::new(fields.u64());
        self.hand = fields.u32() as usize;
        (self.calls, self.one_made) = (fields.u8(), fields.u8() != 0);
        let [flows, mappings, subscribers, hand] = [(); 4].map(|()| fields.u32() as usize);
        let part = (fields.u16(), fields.u16());
        let (bits, saved_print) = (fields.u8(), fields.bytes::<16>());
        if part != self.part() {
            return Err(SavedError::Settings("number of workers"));
        }
        let is_same = [0, self.subscriber_bits()].contains(&bits) || self.tracked.is_none();
        if !is_same {
            return Err(SavedError::Settings("length of subscribers' prefixes"));
        }
        // Without blocks now, flows of former ones are like any others.
        if self.config.blocks.is_some() && saved_print != print(&self.config) {
            return Err(SavedError::Settings("layout of port blocks"));
        }
        self.barren = Barren::restored(fields);
        self.clock.restore(run.saturating_add(gone), now_millis);
        self.table.restore_places(flows);
        self.mappings.restore_places(mappings);
        if let Some(tracked) = &mut self.tracked {
            tracked.subscribers.restore_places(subscribers, hand);
        }
        Ok(())
    }

    fn take_chunk(&mut self, chunk: &Chunk, time: (u64, u64), later: &mut Later) {
        let order = match chunk.tag {
            tag::FREE_FLOW => &mut later.free_flows,
            tag::FREE_MAPPING => &mut later.free_mappings,
            tag::FREE_SUBSCRIBER => &mut later.free_subscribers,
            tag::FREE_BLOCK => &mut later.blocks.free,
            tag::RESTING => &mut later.blocks.resting,
            tag::TOLD => &mut later.blocks.told,
            tag::AVAILABLE => &mut later.blocks.available,
            tag::UNOPENED => {
                let words = chunk.records().map(|mut fields| fields.word());
                later.blocks.unopened.extend(words);
                return;
            }
            tag::CONNECTION | tag::CHANGE | tag::CALL => {
                self.helpers.restore(chunk, time);
                return;
            }
            tag::EPOCH | tag::LEASE | tag::LEASE_FILTER => {
                later.leases.take(chunk);
                return;
            }
            _ => {
                for mut fields in chunk.records() {
                    self.take_record(chunk.tag, &mut fields, time);
                }
                return;
            }
        };
        order.extend(chunk.records().map(|mut fields| fields.u32()));
    }

    /// One of a tag that is not known is passed by.
    fn take_record(&mut self, of: [u8; 4], fields: &mut Fields<'_>, (now, gone): (u64, u64)) {
        match of {
            tag::HOME | tag::SUBSCRIBER | tag::BLOCK => {
                if let Some(tracked) = &mut self.tracked {
                    tracked.take_record(of, fields);
                }
            }
            tag::MAPPING => self.take_mapping(fields),
            tag::PROXIED => {
                let tuple = tuple_of(fields);
                let [meant, server] =
                    [(); 2].map(|()| (Ipv4Addr::from(fields.bytes::<4>()), fields.u16()));
                let encoding = match fields.u8() {
                    1 => Encoding::IpHeader,
                    2 => Encoding::TcpStream,
                    _ => Encoding::None,
                };
                if !self.proxied.is_full() {
                    let proxied = Proxied {
                        meant,
                        server,
                        encoding,
                    };
                    self.proxied.open(tuple, proxied);
                }
            }
            tag::STRANGER => {
                let name = fields.u32();
                if (name as usize) < self.table.places() {
                    self.strangers.push(name);
                }
            }
            tag::HELD_PORT => {
                let held = (fields.u32(), fields.word(), fields.u32());
                self.held_ports.restore(held);
            }
            tag::EXPECTED => {
                let left = fields.u64().saturating_sub(gone);
                if left > 0 {
                    // Without room for it nobody waits.
                    let until = now.saturating_add(left);
                    let _ = self.await_by(redirect_of(fields), until);
                }
            }
            _ => {}
        }
    }

    fn take_mapping(&mut self, fields: &mut Fields<'_>) {
        let name = fields.u32();
        let [inside, alias, remote] = [(); 3].map(|()| fields.word());
        let [inside_port, alias_port] = [(); 2].map(|()| fields.half());
        let mut mapping = Mapping {
            inside,
            alias,
            remote,
            inside_port,
            alias_port,
            protocol: fields.u8(),
            kind: match fields.u8() {
                0 => Kind::Mapping,
                _ => Kind::Permit,
            },
            epoch: self.epoch,
            marks: fields.u8(),
            dies: fields.u32(),
            flows: 0,
            long: 0,
        };
        self.settle_marks(&mut mapping);
        self.mappings.restore(name, mapping);
    }

    fn take_flows(&mut self, chunk: &Chunk, taken: &mut TakenUp) {
        let flows = chunk.records().map(|mut fields| self.flow_of(&mut fields));
        let flows: Vec<(u32, Flow)> = flows.collect();
        for at in 0..flows.len() {
            if let Some((_, ahead)) = flows.get(at + AHEAD) {
                self.table.prefetch_restore(ahead);
            }
            let Some((name, flow)) = flows.get(at).copied() else {
                continue;
            };
            match self.take_flow(name, flow) {
                true => taken.flows += 1,
                false => taken.left_out += 1,
            }
        }
    }

    fn flow_of(&self, fields: &mut Fields<'_>) -> (u32, Flow) {
        let name = fields.u32();
        let [inside, remote, alias] = [(); 3].map(|()| fields.word());
        let [inside_port, remote_port, alias_port] = [(); 3].map(|()| fields.half());
        let (protocol, class) = (fields.u8(), fields.u8());
        let (last_used, flags) = (fields.u32(), fields.u32());
        let ends = Ends {
            inside,
            inside_port,
            remote,
            remote_port,
            alias,
            alias_port,
            protocol,
        };
        let last_used = last_used.min(self.clock.now());
        let state = match State::of(class) {
            state if state.is_of(protocol) => state,
            _ => State::first(protocol),
        };
        let mut flow = Flow::new(&ends, state, last_used, self.epoch);
        flow.set_scales((flags >> 24) as u8);
        flow.flags |= flags & KEPT_FLAGS;
        flow.sides = [(); 2].map(|()| Side {
            end: fields.u32(),
            acked: fields.u32(),
            limit: fields.u32(),
        });
        (flow.mapping, flow.permit) = (fields.u32(), fields.u32());
        (name, flow)
    }

    /// Enters a flow; whether it fits.
    fn take_flow(&mut self, name: u32, mut flow: Flow) -> bool {
        let ends = flow.ends();
        let [mapping, permit] = [
            (flag::MAPPED, flow.mapping, Kind::Mapping),
            (flag::PERMIT, flow.permit, Kind::Permit),
        ]
        .map(|(flag, name, kind)| flow.has(flag).then_some((name, kind)));
        for (name, kind) in [mapping, permit].into_iter().flatten() {
            let shared = self.mappings.get(name);
            if !shared.is_some_and(|shared| fits(shared, &ends, kind)) {
                return false;
            }
        }
        if flow.has(flag::PROXY) && self.proxied.meant(&tuple(&ends)).is_none() {
            return false;
        }
        self.settle_flow(&mut flow);
        if !self.table.restore(name, flow) {
            return false;
        }
        for (name, _) in [mapping, permit].into_iter().flatten() {
            self.mappings.restore_flow(name, flow.state().lives_long());
        }
        if flow.has(flag::STRANGER) {
            self.strangers.came();
        }
        self.recount_session(&flow);
        if !flow.has(flag::MAPPED) && has_ports(&flow) {
            let group = self.group(ends.alias, ends.remote, ends.remote_port, ends.protocol);
            self.ports.took(group, u16::from_be(ends.alias_port));
            self.recount_port(&ends, flow.permit, false);
        }
        if !flow.has(flag::MAPPED) {
            self.statistics.mapping_is_back(flow.protocol);
        }
        true
    }

    /// All are there: counts what mappings have, and puts the rest in order.
    fn settle_all(&mut self, later: &Later) {
        let mut kept = Vec::new();
        self.mappings
            .restore_ends(&later.free_mappings, &mut |mapping| {
                if mapping.kind == Kind::Mapping {
                    kept.push(*mapping);
                }
            });
        for mapping in kept {
            let group = self.group(mapping.alias, mapping.remote, 0, mapping.protocol);
            self.ports.took(group, u16::from_be(mapping.alias_port));
            let mark = self.mark_of(&mapping);
            self.recount_port(&mapping.ends(), mark, true);
            self.statistics.mapping_is_back(mapping.protocol);
        }
        self.table.restore_free(&later.free_flows);
        let now = self.clock.now();
        if let Some(tracked) = &mut self.tracked {
            tracked.subscribers.restore_free(&later.free_subscribers);
            if let Some(pool) = &mut tracked.pool {
                pool.restore_lines(&later.blocks, now);
                pool.set_addresses(&self.pool);
                pool.restore_addresses(&later.blocks);
            }
        }
        self.know_crowds();
    }

    /// Groups that use half of the ports have maps, which know those of
    /// their flows at once.
    fn know_crowds(&mut self) {
        for name in 0..self.table.places() as u32 {
            let flow = self.table.get(name).copied();
            let Some(flow) = flow.filter(|flow| flow.has(flag::LIVE) && has_ports(flow)) else {
                continue;
            };
            let ends = flow.ends();
            let group = match flow.has(flag::MAPPED) {
                false => self.group(ends.alias, ends.remote, ends.remote_port, ends.protocol),
                true => {
                    let remote = self.mappings.get(flow.mapping).map_or(0, |of| of.remote);
                    self.group(ends.alias, remote, 0, ends.protocol)
                }
            };
            self.ports.know(group, u16::from_be(ends.alias_port));
        }
    }

    /// A block that its subscriber had, as a record says that was kept
    /// elsewhere (address and ports of the alias, first and last, in host
    /// order): for one without flows, whose state was lost. It rests from now
    /// on: nobody else gets it before its hold-down ends. Nothing is told of
    /// it. False: the subscriber cannot have it, for there is no such block,
    /// or the settings do not let him; what there is of its ports rests with
    /// nobody then. O(addresses) for the first block of one.
    pub fn hold_block(
        &mut self,
        subscriber: Ipv4Addr,
        alias: Ipv4Addr,
        ports: (u16, u16),
        now_millis: u64,
    ) -> bool {
        self.begin(now_millis);
        if !self.is_alias(alias) {
            return false;
        }
        let is_his = self.hold_for(subscriber, alias, ports);
        if !is_his {
            self.hold_for_nobody(alias, ports);
        }
        is_his
    }

    fn hold_for(&mut self, subscriber: Ipv4Addr, alias: Ipv4Addr, ports: (u16, u16)) -> bool {
        let inside = subscriber.to_bits();
        if !self.inside.is_empty() && !self.inside.has(inside) {
            return false;
        }
        let millis = self.clock.lived_millis();
        let Some(tracked) = &mut self.tracked else {
            return false;
        };
        let is_whole = tracked
            .pool
            .as_ref()
            .is_some_and(|pool| pool.layout().is_block(ports));
        let name = match is_whole {
            true => tracked.enter(inside, millis),
            false => None,
        };
        let place = (super::word(alias), ports.0);
        name.is_some_and(|name| self.claim_for(name, place).is_ok())
    }

    /// The block of an alias port (address in memory, port in host order),
    /// which is nobody's, is a subscriber's from now on.
    pub(super) fn claim_for(&mut self, name: u32, place: (u32, u16)) -> Result<u32, Unclaimed> {
        let now = self.clock.now();
        let (Some(tracked), Some(blocks)) = (&mut self.tracked, &self.config.blocks) else {
            return Err(Unclaimed::Taken);
        };
        let (Some(pool), Some(entry)) = (&mut tracked.pool, tracked.subscribers.get_mut(name))
        else {
            return Err(Unclaimed::Taken);
        };
        if entry.blocks >= blocks.most {
            return Err(Unclaimed::Quota);
        }
        let block = pool.claim(place, name, now, &mut self.random);
        let block = block.ok_or(Unclaimed::Taken)?;
        entry.home = pool.place_of(block).0 + 1;
        let next = std::mem::replace(&mut entry.block, block + 1);
        entry.blocks += 1;
        if let Some(place) = pool.get_mut(block) {
            place.next = next;
        }
        if blocks.interim_secs > 0 {
            pool.tell_again(block);
        }
        Ok(block)
    }

    /// The free blocks that have some of these ports are nobody's until they
    /// have rested.
    fn hold_for_nobody(&mut self, alias: Ipv4Addr, (first, last): (u16, u16)) {
        let now = self.clock.now();
        let pool = self.tracked.as_mut().and_then(|of| of.pool.as_mut());
        let Some(pool) = pool else {
            return;
        };
        let mut port = Some(first);
        while let Some(at) = port.filter(|port| *port <= last) {
            let place = (super::word(alias), at);
            pool.claim(place, NOBODY, now, &mut self.random);
            // Behind this block, or one port on where there is none.
            let row = pool.layout().row_at(at);
            port = row.map_or(at, |(_, end)| end).checked_add(1);
        }
    }
}

/// Why a block cannot be a subscriber's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unclaimed {
    /// It is another's, or may not be given.
    Taken,
    /// The subscriber has as many as it may have.
    Quota,
}

/// The owner of a block that rests with nobody: no subscriber's name.
pub(super) const NOBODY: u32 = SubscriberConfig::MOST as u32;

impl Tracked {
    fn take_record(&mut self, of: [u8; 4], fields: &mut Fields<'_>) {
        match (of, &mut self.pool) {
            (tag::SUBSCRIBER, pool) => {
                let name = fields.u32();
                let mut entry = Subscriber::restored(fields);
                let homes = pool.as_ref().map_or(0, |pool| pool.homes().len());
                if entry.home as usize > homes {
                    entry.home = 0;
                }
                self.subscribers.restore(name, entry);
            }
            (tag::HOME, Some(pool)) => pool.restore_home(fields.word()),
            (tag::BLOCK, Some(pool)) => {
                let (block, owner, place) = Pool::restore_block(fields);
                let name = owner.wrapping_sub(1);
                let is_fixed = pool.is_fixed(block);
                if let Some(entry) = self.subscribers.get_mut(name)
                    && (entry.blocks < Blocks::MOST && !is_fixed
                        || entry.block == 0 && pool.is_reckoned(block, entry.address))
                    && pool.restore_owner(block, name, entry.block, place)
                {
                    entry.block = block + 1;
                    entry.blocks += u8::from(!is_fixed);
                }
            }
            _ => {}
        }
    }
}

/// Whether a shared entry is of a flow.
fn fits(shared: &Mapping, ends: &Ends, kind: Kind) -> bool {
    let is_same = shared.kind == kind && shared.protocol == ends.protocol;
    let inside = (shared.inside, shared.inside_port) == (ends.inside, ends.inside_port);
    let alias = (shared.alias, shared.alias_port) == (ends.alias, ends.alias_port);
    is_same && inside && alias && [0, ends.remote].contains(&shared.remote)
}

fn tuple_of(fields: &mut Fields<'_>) -> Tuple {
    Tuple {
        protocol: fields.u8(),
        own: Ipv4Addr::from(fields.bytes::<4>()),
        own_port: fields.u16(),
        remote: Ipv4Addr::from(fields.bytes::<4>()),
        remote_port: fields.u16(),
    }
}

fn redirect_of(fields: &mut Fields<'_>) -> Redirect {
    let protocol = Some(fields.u8()).filter(|protocol| *protocol != 0);
    let [inside, alias, remote] = [(); 3].map(|()| {
        let address = Ipv4Addr::from(fields.bytes::<4>());
        (!address.is_unspecified()).then_some(address)
    });
    Redirect {
        protocol,
        inside,
        inside_port: fields.u16(),
        alias,
        alias_port: fields.u16(),
        ports: fields.u16(),
        remote,
        remote_port: Some(fields.u16()).filter(|port| *port != 0),
    }
}
