//! The engine: what its callers call. Each call parses, finds or makes a
//! flow, and rewrites; the parts are in the modules beside and below.

mod adopt;
mod batch;
mod beside;
mod blocks;
mod counting;
mod counts;
mod create;
mod end;
mod give;
mod icmp;
mod incoming;
mod lease;
mod leases_saved;
mod listing;
mod mapped;
mod offload;
mod outgoing;
mod overview;
mod pcp;
mod pending_segments;
mod pool;
mod port;
mod quick;
mod saving;
mod shared;
mod strangers;
mod taking_up;
#[cfg(test)]
mod tests;
mod tracked;
mod translate;

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::Arc;

pub use self::adopt::NotAdopted;
pub use self::offload::{Offloaded, Recall};
pub use self::shared::{put_back, source_of};
pub use self::taking_up::TakenUp;

use self::end::{Barren, Dying};
use self::offload::Offloads;
use self::pending_segments::PendingSegments;
use self::tracked::Tracked;
use crate::blocks::BlockEvent;
use crate::clock::{Clock, Ticks};
use crate::event::{Event, Events};
use crate::flow::{Flow, MOST_EPOCH, flag};
use crate::fragment::Fragments;
use crate::held_ports::HeldPorts;
use crate::helper::{Helped, Helpers};
use crate::key::{Key, Random};
use crate::mapping::Mappings;
use crate::pcp::leases::Leases;
use crate::ports::Ports;
use crate::proxied;
use crate::ranges::Ranges;
use crate::rules::Rules;
use crate::shards::Shard;
use crate::strangers::Strangers;
use crate::table::Table;
use crate::view::Seen;
use crate::work::Work;
use crate::{
    Behaviour, Config, Cursor, Direction, Error, FlowView, Hairpin, Limits, Mode, Packet,
    PcpConfig, PortChoice, Shards, Statistics, Timeouts, Verdict, Why,
};

/// An engine. One thread uses it at a time; it shares nothing with another.
#[derive(Debug)]
pub struct Nat {
    table: Table,
    clock: Clock,
    ticks: Ticks,
    /// Flows of another epoch have expired.
    epoch: u8,
    /// [`Flow::plain_flags`] of it.
    ordinary_flags: u32,
    /// The same for packets that come in: those of no flow, where they do
    /// not let theirs live on, so that all of them go the longer way.
    plain_flags_in: u32,
    /// Where the sweep goes on.
    hand: usize,
    /// Calls with one packet since the sweep's last place.
    calls: u8,
    /// Whether the last outgoing packet of a call of its own had no flow.
    one_made: bool,
    mappings: Mappings,
    ports: Ports,
    random: Random,
    rules: Rules,
    helpers: Helpers,
    proxied: proxied::Table,
    fragments: Fragments,
    strangers: Strangers,
    held_ports: HeldPorts,
    /// What inside hosts asked for, where they may.
    leases: Option<Box<Leases>>,
    /// Subscribers, where they count.
    tracked: Option<Box<Tracked>>,
    /// Their addresses; none: all.
    inside: Ranges,
    /// Whom to talk to is not translated.
    exempt: Ranges,
    /// The alias addresses in memory order, sorted.
    pool: Vec<u32>,
    pending_segments: PendingSegments,
    offloads: Offloads,
    dying: Dying,
    barren: Barren,
    /// Room for a packet as it was, while it turns back.
    kept: Vec<u8>,
    config: Config,
    /// Its share, where it is one of several.
    shard: Option<Shard>,
    events: Events,
    statistics: Statistics,
    work: Work,
}

impl Nat {
    /// An engine without flows. Reserves address space for
    /// `limits.max_flows`, and makes memory ready for `initial_flows`.
    pub fn new(config: Config) -> Result<Self, Error> {
        let Limits {
            initial_flows,
            max_flows,
            events,
            ..
        } = config.limits;
        if max_flows.max(initial_flows) > Limits::MOST_FLOWS {
            return Err(Error::Flows {
                asked: max_flows.max(initial_flows),
                most: Limits::MOST_FLOWS,
            });
        }
        check_ports(&config.ports)?;
        let (first, last) = (*config.ports.start(), *config.ports.end());
        let max_flows = max_flows.max(initial_flows).max(1);
        let refused = |error: std::io::Error| Error::Memory {
            bytes: max_flows * 128,
            error: error.to_string(),
        };
        let mut seeds = Random::new(config.seed);
        let table = Table::new(initial_flows, max_flows, seeds.next()).map_err(refused)?;
        let mut nat = Self {
            table,
            clock: Clock::default(),
            ticks: Ticks::new(&config.timeouts),
            epoch: 0,
            ordinary_flags: Flow::plain_flags(0),
            plain_flags_in: Flow::plain_flags_in(0, config.inbound_refresh),
            held_ports: HeldPorts::new(config.hold_down_secs),
            hand: 0,
            calls: 0,
            one_made: false,
            mappings: Mappings::new(max_flows, seeds.next()).map_err(refused)?,
            ports: Ports::new(first, last, max_flows),
            random: Random::new(seeds.next()),
            rules: Rules::default(),
            helpers: Helpers::new(config.limits.helpers),
            proxied: proxied::Table::new(config.limits.proxied),
            fragments: Fragments::new(config.limits.fragments),
            strangers: Strangers::of(max_flows).map_err(refused)?,
            leases: leases(&config),
            tracked: Tracked::new(&config, seeds.next())?,
            inside: Ranges::new(&config.subscribers.inside),
            exempt: Ranges::new(&config.exempt),
            pool: Vec::new(),
            pending_segments: PendingSegments::default(),
            offloads: Offloads::default(),
            dying: Dying::default(),
            barren: Barren::default(),
            kept: Vec::new(),
            events: Events::new(events),
            statistics: Statistics::default(),
            work: Work::default(),
            shard: None,
            config,
        };
        nat.set_own()?;
        nat.begin_leases_anew();
        Ok(nat)
    }

    /// Makes it one of several engines behind the same addresses: from now
    /// on it gives flows only the alias ports of its part, and expects to be
    /// given what [`Shards::owner`] says is its own. To be called before
    /// there are flows. Addresses, rules and modes must stay as they are
    /// from then on, and are the same for all parts.
    pub fn join_shards(&mut self, shards: Arc<Shards>, number: u16) {
        let part = Shard::new(shards, number);
        self.ports.set_port_slice(part.ports);
        self.helpers.calls_mut().set_port_slice(part.ports);
        if let Some(pool) = self.tracked.as_mut().and_then(|of| of.pool.as_mut()) {
            pool.set_part(number, part.shards.parts());
        }
        self.shard = Some(part);
    }

    /// The shards that it is one of, and which.
    pub fn shard(&self) -> Option<(&Arc<Shards>, u16)> {
        let part = self.shard.as_ref()?;
        Some((&part.shards, part.number))
    }

    /// Translates an outgoing packet. `bytes` is an IPv4 packet from its
    /// first byte, with room behind it for helpers that lengthen it.
    /// `now_millis` is any clock of milliseconds; it may step.
    ///
    /// O(1); allocates nothing.
    #[inline]
    pub fn translate_out(&mut self, bytes: &mut [u8], now_millis: u64) -> Verdict {
        self.begin(now_millis);
        let verdict = if self.config.mode.reverse {
            self.one::<false>(bytes)
        } else {
            self.one::<true>(bytes)
        };
        self.sweep_a_call();
        self.statistics.count(Direction::Out, bytes, verdict);
        verdict
    }

    /// Translates an incoming packet; as [`Nat::translate_out`].
    #[inline]
    pub fn translate_in(&mut self, bytes: &mut [u8], now_millis: u64) -> Verdict {
        self.begin(now_millis);
        let verdict = if self.config.mode.reverse {
            self.one::<true>(bytes)
        } else {
            self.one::<false>(bytes)
        };
        self.sweep_a_call();
        self.statistics.count(Direction::In, bytes, verdict);
        verdict
    }

    /// Translates a batch of outgoing packets, in order, and writes their
    /// verdicts. Best with 32 to 64 packets; any number is right.
    ///
    /// The time is taken also from a call without packets.
    pub fn translate_out_batch(&mut self, packets: &mut [Packet<'_>], now_millis: u64) {
        self.begin(now_millis);
        match (self.config.mode.reverse, self.is_counting()) {
            (false, false) => self.batch::<true>(packets, now_millis),
            (true, false) => self.batch::<false>(packets, now_millis),
            (false, true) => self.counted_batch::<true>(packets, now_millis),
            (true, true) => self.counted_batch::<false>(packets, now_millis),
        }
        self.statistics.count_all(Direction::Out, packets);
    }

    /// Translates a batch of incoming packets; as
    /// [`Nat::translate_out_batch`].
    pub fn translate_in_batch(&mut self, packets: &mut [Packet<'_>], now_millis: u64) {
        self.begin(now_millis);
        match (self.config.mode.reverse, self.is_counting()) {
            (false, false) => self.batch::<false>(packets, now_millis),
            (true, false) => self.batch::<true>(packets, now_millis),
            (false, true) => self.counted_batch::<false>(packets, now_millis),
            (true, true) => self.counted_batch::<true>(packets, now_millis),
        }
        self.statistics.count_all(Direction::In, packets);
    }

    /// Undoes [`Nat::translate_out`]: a packet as it left (its source is an
    /// alias endpoint) gets its inside source back. For those who keep a
    /// copy of what left, as a router does for its ICMP errors. O(1); the
    /// flow is not refreshed, and nothing is counted.
    pub fn untranslate_out(&mut self, bytes: &mut [u8], now_millis: u64) -> Verdict {
        self.begin(now_millis);
        self.undo(bytes)
    }

    /// Sweeps and prepares memory while there is nothing else to do: looks
    /// at `budget` flows at most, about 5 ns each and 0.2 µs for each that
    /// ended, and makes at most one huge page ready (some 0.1 ms) ahead of
    /// growth. An engine that is never maintained sweeps by its packets
    /// alone. Returns the flows ended.
    pub fn maintain(&mut self, now_millis: u64, budget: usize) -> usize {
        self.begin(now_millis);
        self.catch_up_calls();
        let before = self.table.len();
        let budget = budget.min(self.table.places());
        self.sweep(budget);
        self.tend_blocks(budget.max(1));
        self.rules.expire(now_millis);
        self.end_leases(pcp::ENDED_IDLE);
        self.fragments.forget(now_millis);
        self.table.prepare_ahead();
        before - self.table.len()
    }

    /// What was counted. O(1).
    pub fn statistics(&self) -> Statistics {
        let tracked = self.tracked.as_ref();
        Statistics {
            events_lost: self.events.lost(),
            block_events_lost: tracked.map_or(0, |of| of.events.lost()),
            fragments_dropped: self.fragments.dropped(),
            subscribers: tracked.map_or(0, |of| of.subscribers.len()),
            subscribers_made: tracked.map_or(0, |of| of.subscribers.entered().0),
            subscribers_refused: tracked.map_or(0, |of| of.subscribers.entered().1),
            blocks: tracked
                .and_then(|of| of.pool.as_ref())
                .map_or(0, |pool| pool.taken()),
            flows: self.table.len(),
            mappings: self.mappings.len(),
            strangers: self.strangers.count(),
            leases: self.leases.as_ref().map_or(0, |leases| leases.len()),
            memory_bytes: self.table.memory_bytes()
                + self.mappings.memory_bytes()
                + self.ports.memory_bytes()
                + self.strangers.memory_bytes()
                + self.offloads.memory_bytes()
                + self.rules.memory_bytes()
                + tracked.map_or(0, |of| of.memory_bytes()),
            ..self.statistics
        }
    }

    /// What the last call did, of a batch its last 32 packets: counted in
    /// debug builds only, zeros in others. O(1).
    pub fn work(&self) -> Work {
        self.work
    }

    /// The next event. O(1).
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The next event of a subscriber or block. O(1).
    pub fn next_block_event(&mut self) -> Option<BlockEvent> {
        self.tracked.as_mut()?.events.pop()
    }

    /// When the next event happened, and the next one of a subscriber or
    /// block: for who wants both in order. O(1).
    pub fn next_events_at(&self) -> (Option<u64>, Option<u64>) {
        let blocks = self.tracked.as_ref();
        let of_block = blocks.and_then(|of| of.events.next_millis());
        (self.events.next_millis(), of_block)
    }

    /// The flow of an outgoing (its source and destination) or incoming
    /// packet, ports in host order. O(1); does not touch the flow.
    ///
    /// Flows are of IPv4: with an IPv6 address in it, be it one that stands
    /// for an IPv4 address, no flow is found.
    pub fn lookup(
        &self,
        direction: Direction,
        protocol: u8,
        source: (IpAddr, u16),
        destination: (IpAddr, u16),
    ) -> Option<FlowView> {
        let name = self.name_of(direction, protocol, source, destination)?;
        let flow = self.table.get(name)?;
        let mut flow = *flow;
        self.pending_segments.apply(name, &mut flow);
        self.alive(&flow).then(|| self.view(&flow))
    }

    /// Hands some flows to `sink`: looks at `budget` places from `from` on
    /// and returns where to go on, `None` at the end. O(`budget`).
    pub fn flows(
        &self,
        from: Cursor,
        budget: usize,
        sink: &mut dyn FnMut(&FlowView),
    ) -> Option<Cursor> {
        let Cursor(from) = from;
        let to = (from as usize).saturating_add(budget.max(1));
        let to = to.min(self.table.places());
        for name in from..to as u32 {
            if let Some(flow) = self.table.get(name).filter(|flow| self.alive(flow)) {
                let mut flow = *flow;
                self.pending_segments.apply(name, &mut flow);
                sink(&self.view(&flow));
            }
        }
        (to < self.table.places()).then_some(Cursor(to as u32))
    }

    /// Ends the flow of an outgoing or incoming packet, found as by
    /// [`Nat::lookup`]. Returns whether there was one.
    pub fn remove(
        &mut self,
        direction: Direction,
        protocol: u8,
        source: (IpAddr, u16),
        destination: (IpAddr, u16),
    ) -> bool {
        self.catch_up_calls();
        let name = self.name_of(direction, protocol, source, destination);
        name.is_some_and(|name| self.end(name, Why::Removed))
    }

    /// Forgets all flows. O(1): they expire at once, and the sweep takes
    /// their memory back. (Each 128th time it is O(flows): the number of an
    /// epoch has seven bits, and none may be used again with flows left.)
    pub fn forget_flows(&mut self) {
        self.catch_up_calls();
        if self.epoch == MOST_EPOCH {
            for name in 0..self.table.places() as u32 {
                self.end(name, Why::Removed);
            }
        }
        self.offloads.forget();
        self.epoch = (self.epoch + 1) & MOST_EPOCH;
        self.ordinary_flags = Flow::plain_flags(self.epoch);
        self.plain_flags_in = Flow::plain_flags_in(self.epoch, self.config.inbound_refresh);
    }

    /// Whether an address is one of the alias addresses. O(log addresses).
    pub fn is_alias(&self, address: Ipv4Addr) -> bool {
        self.is_own(word(address))
    }

    /// The settings as they are.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sets the alias addresses. Flows of former addresses stay, unless
    /// `reset_on_address_change` is set and the addresses differ.
    /// O(addresses).
    pub fn set_addresses(&mut self, addresses: &[Ipv4Addr]) -> Result<(), Error> {
        if self.config.addresses == addresses {
            return Ok(());
        }
        let former = std::mem::replace(&mut self.config.addresses, addresses.to_vec());
        if let Err(error) = self.set_own() {
            self.config.addresses = former;
            return Err(error);
        }
        if self.config.mode.reset_on_address_change {
            self.forget_flows();
            self.rules.drop_dynamic();
        }
        if self.drop_foreign_leases() {
            self.begin_leases_anew();
        }
        Ok(())
    }

    fn set_own(&mut self) -> Result<(), Error> {
        let addresses = &self.config.addresses;
        if addresses.len() > Config::MAX_ADDRESSES {
            return Err(Error::Addresses {
                asked: addresses.len(),
                most: Config::MAX_ADDRESSES,
            });
        }
        self.pool = addresses.iter().map(|address| word(*address)).collect();
        self.pool.sort_unstable();
        if let Some(pool) = self.tracked.as_mut().and_then(|of| of.pool.as_mut()) {
            pool.set_addresses(&self.pool);
        }
        Ok(())
    }

    /// Sets the range of alias ports; flows keep theirs. Blocks have theirs as
    /// well.
    pub fn set_ports(&mut self, ports: RangeInclusive<u16>) -> Result<(), Error> {
        check_ports(&ports)?;
        self.ports.set_range(*ports.start(), *ports.end());
        self.config.ports = ports;
        Ok(())
    }

    /// Sets the modes; flows keep their translation. O(1), or O(flows) where
    /// flows are offloaded and directions are swapped from now on.
    pub fn set_mode(&mut self, mode: Mode) {
        if mode.reverse {
            self.take_all_back();
        }
        self.config.mode = mode;
    }

    /// Sets where unknown incoming packets go ([`Config::target`]).
    pub fn set_target(&mut self, target: Option<Ipv4Addr>) {
        self.config.target = target;
    }

    /// Sets how UDP is mapped and filtered; flows keep theirs.
    pub fn set_udp(&mut self, behaviour: Behaviour) {
        self.config.udp = behaviour;
        self.ports.forget();
    }

    /// Sets how TCP is mapped and filtered; flows keep theirs.
    pub fn set_tcp(&mut self, behaviour: Behaviour) {
        self.config.tcp = behaviour;
        self.ports.forget();
    }

    /// Sets which port a new flow gets.
    pub fn set_port_choice(&mut self, choice: PortChoice) {
        self.config.port_choice = choice;
    }

    /// Sets which helpers are switched on. Connections of TCP that are there
    /// keep theirs; datagrams go by what is switched on as they come.
    pub fn set_helpers(&mut self, helpers: Helped) {
        self.config.helpers = helpers;
    }

    /// Sets what is done with packets from inside to an alias address.
    pub fn set_hairpin(&mut self, hairpin: Hairpin) {
        self.config.hairpin = hairpin;
    }

    /// Sets the timeouts; they count for flows that live as well.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.catch_up_calls();
        self.config.timeouts = timeouts;
        self.ticks = Ticks::new(&timeouts);
    }

    /// The rules, to be asked.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The rules, to be changed. Which ports they hold is looked at anew.
    pub fn rules_mut(&mut self) -> &mut Rules {
        self.ports.forget();
        &mut self.rules
    }

    /// Replaces the operator's rules; what inside hosts have asked for and
    /// what helpers await stays beside them. O(leases and awaited).
    pub fn set_rules(&mut self, rules: Rules) {
        self.ports.forget();
        let former = std::mem::replace(&mut self.rules, rules);
        self.renew_leases(&former);
        self.renew_awaited(&former);
    }

    /// Hosts are told to ask anew for what they have.
    fn begin_leases_anew(&mut self) {
        if let Some(leases) = &mut self.leases {
            leases.begin_anew(self.clock.run_millis());
        }
    }

    /// Sets whether and how inside hosts may ask for ports; what they have
    /// stays, unless nobody may ask any more. O(leases).
    pub fn set_pcp(&mut self, pcp: PcpConfig) {
        self.config.pcp = pcp;
        match (&mut self.leases, self.config.pcp.addresses.is_empty()) {
            (Some(leases), false) => leases.config = self.config.pcp.clone(),
            (None, false) => {
                self.leases = leases(&self.config);
                self.begin_leases_anew();
            }
            (_, true) => {
                self.close_all_leases();
                self.leases = None;
            }
        }
    }

    /// The sweep's share of a call with one packet.
    #[inline(always)]
    fn sweep_a_call(&mut self) {
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(CALLS_A_SWEEP) {
            self.sweep_a_stage();
        }
    }

    /// The sweep's share of a stage, or of as many calls with one packet.
    #[inline(never)]
    fn sweep_a_stage(&mut self) {
        self.catch_up_calls();
        if self.tracked.is_some() {
            self.tend_blocks(1);
        }
        self.sweep(SWEEP_A_STAGE);
    }

    #[inline(always)]
    fn begin(&mut self, now_millis: u64) {
        if self.clock.is_other(now_millis) {
            self.pass_time(now_millis);
        }
        if cfg!(debug_assertions) {
            self.work = Work::default();
        }
    }

    #[inline(never)]
    fn pass_time(&mut self, now_millis: u64) {
        // While no time passes, no flow's end depends on what TCP said.
        self.catch_up_calls();
        self.clock.set(now_millis);
    }

    /// Whether a place holds a flow that may be translated.
    #[inline(always)]
    fn alive(&self, flow: &Flow) -> bool {
        let idle = self.clock.now().wrapping_sub(flow.last_used);
        flow.has(flag::LIVE) && flow.epoch() == self.epoch && idle <= self.ticks.of(flow.class)
    }

    /// Whether a destination (memory order) is not translated.
    #[inline(always)]
    fn is_exempt(&self, address: u32) -> bool {
        !self.exempt.is_empty() && self.exempt.has(u32::from_be(address))
    }

    fn name_of(
        &self,
        direction: Direction,
        protocol: u8,
        source: (IpAddr, u16),
        destination: (IpAddr, u16),
    ) -> Option<u32> {
        let ports = [source.1.to_be(), destination.1.to_be()];
        let (from, to) = (ipv4_word(source.0)?, ipv4_word(destination.0)?);
        self.name_by(direction, Key::new(from, to, ports, protocol))
    }

    /// The place of the flow of a key, expired or not.
    fn name_by(&self, direction: Direction, key: Key) -> Option<u32> {
        let hash = self.table.hasher.hash(key);
        match direction {
            Direction::Out => self.table.find::<true>(hash, key),
            Direction::In => self.table.find::<false>(hash, key),
        }
    }

    fn view(&self, flow: &Flow) -> FlowView {
        self.seen(flow).into()
    }

    /// What [`Nat::view`] is made of.
    fn seen(&self, flow: &Flow) -> Seen {
        let idle = self.clock.now().wrapping_sub(flow.last_used);
        Seen {
            ends: flow.ends(),
            state: flow.state(),
            idle,
            left: self.ticks.of(flow.class).saturating_sub(idle),
        }
    }
}

/// Places that the sweep looks at for each stage of a batch.
const SWEEP_A_STAGE: usize = 8;
/// Calls with one packet that sweep as much together: a batch's pace.
const CALLS_A_SWEEP: u8 = 32;

fn leases(config: &Config) -> Option<Box<Leases>> {
    let is_wanted = !config.pcp.addresses.is_empty();
    is_wanted.then(|| Box::new(Leases::new(&config.pcp)))
}

fn check_ports(ports: &RangeInclusive<u16>) -> Result<(), Error> {
    let (first, last) = (*ports.start(), *ports.end());
    if first == 0 || first > last {
        return Err(Error::Ports { first, last });
    }
    Ok(())
}

/// An address in memory order.
fn word(address: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(address.octets())
}

/// An address in memory order, if it is of IPv4.
fn ipv4_word(address: IpAddr) -> Option<u32> {
    match address {
        IpAddr::V4(address) => Some(word(address)),
        IpAddr::V6(_) => None,
    }
}

/// An address from memory order.
fn address(word: u32) -> Ipv4Addr {
    Ipv4Addr::from(word.to_ne_bytes())
}
