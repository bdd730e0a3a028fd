//! New flows: which alias endpoint an outgoing one gets, and where an
//! incoming one goes.

use packet::protocol;

use super::port::Chosen;
use super::translate::Hint;
use super::{address, word};
use crate::flow::{Ends, Flow, flag};
use crate::key::Key;
use crate::mapping::{Kind, Mapping};
use crate::parse::{Parsed, Upper};
use crate::rules::{Found, Tuple};
use crate::table::Hashes;
use crate::{Dependence, EventKind, Hairpin, Nat, Pooling, PortChoice, State, Verdict, Why};

/// Alias addresses tried for one packet, where hosts are not bound to one.
const ADDRESSES_TRIED: usize = 8;
/// Places swept for each new flow: more than one, so that the dead never
/// outnumber the living by much.
pub(super) const SWEEP_A_FLOW: usize = 2;

/// Which alias an outgoing flow is to have.
#[derive(Debug, Clone, Copy)]
struct Alias {
    address: u32,
    port: Wish,
    /// Whether other addresses of the pool would do.
    pooled: bool,
}

/// Which alias port, in memory order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// This one or none.
    Exactly(u16),
    /// The inside one if free, else any of the range.
    Same,
    /// Any of the range.
    Any,
}

/// What a flow belongs to besides itself.
#[derive(Debug, Clone, Copy, Default)]
struct MappingChoice {
    /// An entry there is.
    mapping: Option<u32>,
    /// An entry to be made, for this remote address (0: any).
    make_for: Option<u32>,
}

/// How a flow is to be made.
#[derive(Debug, Clone, Copy)]
struct Plan {
    flags: u32,
    shared: MappingChoice,
    chosen: Chosen,
    /// Whether its alias port was chosen, and is counted.
    ported: bool,
    /// The hash of its key outward.
    out: u64,
    /// Places to be swept before it is entered.
    sweep: usize,
}

impl Nat {
    /// Makes the flow of an outgoing packet.
    #[inline(never)]
    pub(super) fn new_out(&mut self, parsed: &Parsed, hint: Hint) -> Result<u32, Verdict> {
        self.sweep(SWEEP_A_FLOW);
        if self.config.mode.proxy_only {
            return Err(Verdict::Passed);
        }
        self.new_flow_out(parsed, hint)
    }

    /// Makes the flow of an outgoing packet, whatever the modes say.
    pub(super) fn new_flow_out(&mut self, parsed: &Parsed, hint: Hint) -> Result<u32, Verdict> {
        let key = parsed.key;
        let alias = self.alias_for(key, parsed.upper)?;
        let made = if alias.pooled && self.config.pooling == Pooling::Arbitrary {
            // All of them before a port is taken from anybody.
            let free = Hint {
                gives: false,
                ..hint
            };
            match self.out_through_any(parsed, alias, free) {
                Err(Verdict::PortsExhausted) => self.out_through_any(parsed, alias, hint),
                made => made,
            }
        } else {
            self.out_through(key, parsed.upper, alias, hint)
        };
        if made.is_err() && alias.address == key.source() && self.is_open() {
            return Err(Verdict::Passed);
        }
        made
    }

    /// Makes an outgoing flow behind one of several alias addresses.
    fn out_through_any(
        &mut self,
        parsed: &Parsed,
        mut alias: Alias,
        hint: Hint,
    ) -> Result<u32, Verdict> {
        let mut made = Err(Verdict::PortsExhausted);
        for _ in 0..ADDRESSES_TRIED.min(self.pool.len()) {
            made = self.out_through(parsed.key, parsed.upper, alias, hint);
            if made != Err(Verdict::PortsExhausted) {
                break;
            }
            alias.address = self.next_own(alias.address);
        }
        made
    }

    /// Whether what comes in without a flow passes as it is.
    fn is_open(&self) -> bool {
        !self.config.mode.deny_incoming && self.config.target.is_none()
    }

    /// Which alias an outgoing packet's source gets.
    fn alias_for(&mut self, key: Key, upper: Upper) -> Result<Alias, Verdict> {
        if let Some(alias) = self.alias_by_rule(key, upper) {
            return Ok(alias);
        }
        let source = key.source();
        let mode = self.config.mode;
        let private_only = mode.unregistered_only || mode.carrier_grade;
        if mode.proxy_only || private_only && !is_private(source, mode.carrier_grade) {
            // A flow it is all the same: answers come in by it where the door
            // is shut, and it keeps its ways when the modes change.
            return Ok(Alias {
                address: source,
                port: Wish::Exactly(key.source_port()),
                pooled: false,
            });
        }
        let address = self.own_for(source).ok_or(Verdict::Passed)?;
        let port = match self.config.port_choice {
            PortChoice::Random => Wish::Any,
            PortChoice::Same => Wish::Same,
        };
        Ok(Alias {
            address,
            port,
            pooled: true,
        })
    }

    fn alias_by_rule(&mut self, key: Key, upper: Upper) -> Option<Alias> {
        if self.rules.is_empty() {
            return None;
        }
        let tuple = Tuple {
            protocol: key.protocol(),
            own: address(key.source()),
            own_port: u16::from_be(key.source_port()),
            remote: address(key.destination()),
            remote_port: u16::from_be(key.destination_port()),
        };
        let current = self.is_own(key.source());
        let own = self.own_for(key.source());
        let now = self.clock.said_millis();
        let pooled = false;
        if let Some(found) = self.rules.outbound(&tuple, current, now) {
            self.rules.take(found.handle);
            let address = found.address.map(word).or(own)?;
            let port = if found.port == 0 || !is_ported(upper) {
                Wish::Same
            } else {
                Wish::Exactly(found.port.to_be())
            };
            return Some(Alias {
                address,
                port,
                pooled,
            });
        }
        let found = self.rules.alias_address(tuple.own, current)?;
        let address = found.address.map(word).or(own)?;
        Some(Alias {
            address,
            port: Wish::Same,
            pooled,
        })
    }

    /// The address that packets of a host leave with, of which no more is
    /// known; `None`: they pass as they are.
    pub(super) fn alias_of_host(&self, source: u32) -> Option<u32> {
        let mode = self.config.mode;
        let own = self.own_for(source);
        let by_rule = self
            .rules
            .alias_address(address(source), self.is_own(source));
        if let Some(found) = by_rule {
            return found.address.map(word).or(own);
        }
        let private_only = mode.unregistered_only || mode.carrier_grade;
        if mode.proxy_only || private_only && !is_private(source, mode.carrier_grade) {
            return None;
        }
        own
    }

    /// Makes an outgoing flow behind one alias address.
    fn out_through(
        &mut self,
        key: Key,
        upper: Upper,
        alias: Alias,
        hint: Hint,
    ) -> Result<u32, Verdict> {
        let mut ends = Ends {
            inside: key.source(),
            inside_port: key.source_port(),
            remote: key.destination(),
            remote_port: key.destination_port(),
            alias: alias.address,
            alias_port: key.source_port(),
            protocol: key.protocol(),
        };
        let mut shared = MappingChoice::default();
        let mut chosen = Chosen::default();
        if is_ported(upper) {
            let part = self.remote_part(&ends);
            let exactly = matches!(alias.port, Wish::Exactly(_));
            shared = match part {
                Some(remote) if !exactly => self.shared_for(&ends, remote, alias.pooled),
                _ => MappingChoice::default(),
            };
            if let Some(mapping) = shared.mapping.and_then(|name| self.mappings.get(name)) {
                (ends.alias, ends.alias_port) = (mapping.alias, mapping.alias_port);
            } else {
                let port = self.choose_port(&ends, shared.make_for, alias.port, hint);
                chosen = port.ok_or(Verdict::PortsExhausted)?;
                ends.alias_port = chosen.port;
            }
        }
        let flags = flag::SEEN_OUT | self.hairpin_flag(&ends);
        let plan = Plan {
            flags,
            shared,
            chosen,
            ported: is_ported(upper),
            out: hint.hash,
            // Done before its port was chosen.
            sweep: 0,
        };
        self.make(&ends, &plan)
    }

    /// Whether a flow's other end is one of ours.
    fn hairpin_flag(&self, ends: &Ends) -> u32 {
        if self.config.hairpin == Hairpin::Engine && self.is_own(ends.remote) {
            flag::HAIRPIN
        } else {
            0
        }
    }

    /// What of the remote a mapping depends on: `None` all of it, else its
    /// address or nothing (0).
    pub(super) fn remote_part(&self, ends: &Ends) -> Option<u32> {
        match self.behaviour(ends.protocol)?.mapping {
            Dependence::Endpoint => Some(0),
            Dependence::Address => Some(ends.remote),
            Dependence::AddressAndPort => None,
        }
    }

    /// How a protocol is mapped and filtered; `None`: as narrowly as can be.
    fn behaviour(&self, protocol: u8) -> Option<crate::Behaviour> {
        match protocol {
            protocol::TCP => Some(self.config.tcp),
            protocol::UDP => Some(self.config.udp),
            _ => None,
        }
    }

    /// The mapping of an inside endpoint, or that there is to be one.
    fn shared_for(&mut self, ends: &Ends, remote: u32, pooled: bool) -> MappingChoice {
        let (inside, port) = (ends.inside, ends.inside_port);
        let mapping = self.mappings.by_inside(inside, port, remote, ends.protocol);
        let mapping = mapping.and_then(|name| self.living_mapping(name));
        let mapping = mapping.filter(|name| self.is_still(*name, ends.alias, pooled));
        MappingChoice {
            mapping,
            make_for: mapping.is_none().then_some(remote),
        }
    }

    /// Whether a mapping's address is still to be had: by a new flow that
    /// would get `alias`, or any of the pool. The mapping of an address that
    /// went leaves the indexes; its flows stay.
    fn is_still(&mut self, name: u32, alias: u32, pooled: bool) -> bool {
        let mapping = self.mappings.get(name);
        let still = mapping
            .is_some_and(|mapping| mapping.alias == alias || pooled && self.is_own(mapping.alias));
        if !still {
            self.mappings.detach(name, &mut self.work);
        }
        still
    }

    /// Makes the flow of an incoming packet: by a redirect, a mapping that
    /// lets it in, an address redirect, or the target.
    #[inline(never)]
    pub(super) fn new_in(&mut self, parsed: &Parsed) -> Result<u32, Verdict> {
        let key = parsed.key;
        if !self.rules.is_empty()
            && let Some(found) = self.redirect(key)
        {
            self.rules.take(found.handle);
            return self.in_by_rule(key, parsed.upper, &found);
        }
        if self.mappings.len() > 0
            && let Some(made) = self.in_by_mapping(key)
        {
            return made;
        }
        if self.config.mode.deny_incoming {
            return self.in_to_foreign(parsed);
        }
        if !self.rules.is_empty() {
            let alias = address(key.destination());
            let current = self.is_own(key.destination());
            if let Some(found) = self.rules.original_address(alias, current) {
                // The next server's turn comes, where there are several.
                self.rules.take(found.handle);
                return self.in_by_rule(key, parsed.upper, &found);
            }
        }
        let Some(target) = self.config.target else {
            return self.in_as_it_is(parsed);
        };
        self.in_to(
            key,
            parsed.upper,
            word(target),
            key.destination_port(),
            MappingChoice::default(),
        )
    }

    /// With the door shut: to an address that is no alias it passes all the
    /// same where the caller routes such ([`crate::Config::passes_foreign`]).
    fn in_to_foreign(&mut self, parsed: &Parsed) -> Result<u32, Verdict> {
        let to = parsed.key.destination();
        let host = address(to);
        let is_foreign = self.config.passes_foreign
            && !self.is_own(to)
            && !is_private(to, true)
            && self.rules.original_address(host, false).is_none();
        if is_foreign {
            self.in_as_it_is(parsed)
        } else {
            Err(Verdict::NoMapping)
        }
    }

    /// To whom it was sent: this machine, or a host with an address of its
    /// own. It goes as it is, and a flow sees to it that its answer leaves
    /// by the address and port that were asked. Where there can be none, it
    /// goes all the same.
    fn in_as_it_is(&mut self, parsed: &Parsed) -> Result<u32, Verdict> {
        let key = parsed.key;
        let translates = !self.pool.is_empty() || !self.rules.is_empty();
        if !translates || self.config.mode.proxy_only || self.speaks(key) {
            return Err(Verdict::Passed);
        }
        let (inside, port) = (key.destination(), key.destination_port());
        let made = self.in_to(key, parsed.upper, inside, port, MappingChoice::default());
        made.map_err(|_| Verdict::Passed)
    }

    /// Whether the receiver of an unasked packet has a conversation with its
    /// sender by the same two ends, through another alias: that one stays.
    fn speaks(&self, key: Key) -> bool {
        let out = key.turned();
        let name = self.table.find::<true>(self.table.hasher.hash(out), out);
        let flow = name.and_then(|name| self.table.get(name));
        flow.is_some_and(|flow| {
            let spoken = flow.has(flag::SEEN_OUT | flag::SEEN_IN);
            self.alive(flow) && spoken && !flow.state().is_over()
        })
    }

    fn redirect(&self, key: Key) -> Option<Found> {
        let tuple = Tuple {
            protocol: key.protocol(),
            own: address(key.destination()),
            own_port: u16::from_be(key.destination_port()),
            remote: address(key.source()),
            remote_port: u16::from_be(key.source_port()),
        };
        let current = self.is_own(key.destination());
        self.rules
            .inbound(&tuple, current, self.clock.said_millis())
    }

    fn in_by_rule(&mut self, key: Key, upper: Upper, found: &Found) -> Result<u32, Verdict> {
        let inside = found.address.map_or(key.destination(), word);
        let port = match found.port {
            0 => key.destination_port(),
            port => port.to_be(),
        };
        self.in_to(key, upper, inside, port, MappingChoice::default())
    }

    /// By a shared mapping; `None`: there is none for the endpoint.
    fn in_by_mapping(&mut self, key: Key) -> Option<Result<u32, Verdict>> {
        let behaviour = self.behaviour(key.protocol())?;
        let (alias, port, remote) = (key.destination(), key.destination_port(), key.source());
        let protocol = key.protocol();
        let own = |remote| (alias, port, remote, protocol);
        let any = self.shared_at(own(0), Kind::Mapping);
        let name = any.or_else(|| self.shared_at(own(remote), Kind::Mapping))?;
        let mapping = *self.mappings.get(name)?;
        let allowed = match behaviour.filtering {
            Dependence::Endpoint => true,
            Dependence::Address => {
                let inside = (mapping.inside, mapping.inside_port);
                mapping.remote == remote || self.permit_at(own(remote), inside).is_some()
            }
            Dependence::AddressAndPort => false,
        };
        if !allowed {
            return Some(Err(Verdict::Denied));
        }
        let shared = MappingChoice {
            mapping: Some(name),
            make_for: None,
        };
        Some(self.in_to(key, Upper::Udp, mapping.inside, mapping.inside_port, shared))
    }

    /// Makes an incoming flow to an inside endpoint.
    fn in_to(
        &mut self,
        key: Key,
        upper: Upper,
        inside: u32,
        inside_port: u16,
        shared: MappingChoice,
    ) -> Result<u32, Verdict> {
        // An ICMP query's identifier stands on the alias side only.
        let (inside_port, alias_port) = match upper {
            Upper::Plain | Upper::Call => (0, 0),
            _ => (inside_port, key.destination_port()),
        };
        let ends = Ends {
            inside,
            inside_port,
            remote: key.source(),
            remote_port: key.source_port(),
            alias: key.destination(),
            alias_port,
            protocol: key.protocol(),
        };
        let plan = Plan {
            flags: flag::SEEN_IN | flag::STRANGER | self.hairpin_flag(&ends),
            shared,
            chosen: Chosen::default(),
            ported: is_ported(upper),
            out: self.give_way(&ends)?,
            sweep: SWEEP_A_FLOW,
        };
        self.make(&ends, &plan)
    }

    /// Whether the inside may take an incoming flow: one that goes out by
    /// the same inside endpoints is ended if it is no connection. Returns
    /// the hash of the key outward.
    fn give_way(&mut self, ends: &Ends) -> Result<u64, Verdict> {
        let key = ends.out_key();
        let hash = self.table.hasher.hash(key);
        let Some(name) = self.table.find::<true>(hash, key) else {
            return Ok(hash);
        };
        let Some(flow) = self.table.get(name) else {
            return Ok(hash);
        };
        if self.alive(flow) && flow.state() == State::TcpEstablished {
            return Err(Verdict::Denied);
        }
        self.end(name, Why::Removed);
        Ok(hash)
    }

    /// Enters a flow whose key outward is free.
    fn make(&mut self, ends: &Ends, plan: &Plan) -> Result<u32, Verdict> {
        let Some(mapping) = plan.shared.mapping else {
            return self.enter(ends, plan);
        };
        // A flow that is swept or gives way at the cap may be the last one of
        // the very mapping that this one joins.
        self.mappings.hold(mapping);
        let made = self.enter(ends, plan);
        self.release_mapping(mapping);
        made
    }

    fn enter(&mut self, ends: &Ends, plan: &Plan) -> Result<u32, Verdict> {
        self.sweep(plan.sweep);
        let incoming = match plan.chosen.incoming {
            Some(hash) => hash,
            None => self.claim(ends, plan.ported)?,
        };
        let stranger = plan.flags & flag::STRANGER != 0;
        if stranger {
            self.bound_strangers();
        }
        if self.table.is_full() && !self.make_room() {
            return Err(Verdict::TableFull);
        }
        let class = State::first(ends.protocol);
        let mut flow = Flow::new(ends, class, self.clock.now(), self.epoch);
        flow.flags |= plan.flags;
        self.mark_helper(&mut flow, ends);
        let opens = self.share(&mut flow, ends, plan.shared)?;
        let out = plan.out;
        let hashes = Hashes { out, incoming };
        let Some(name) = self.table.insert(flow, hashes, &mut self.work) else {
            self.unshare(&flow);
            return Err(Verdict::TableFull);
        };
        if stranger {
            self.note_stranger(name);
        }
        self.statistics.flows_made += 1;
        if plan.ported && !flow.has(flag::MAPPED) {
            let Ends { remote_port, .. } = *ends;
            let group = plan
                .chosen
                .group
                .unwrap_or_else(|| self.group(ends.alias, ends.remote, remote_port, ends.protocol));
            self.ports.took(group, u16::from_be(ends.alias_port));
        }
        if opens && self.events.wanted() {
            self.tell(EventKind::Made, &flow);
        }
        Ok(name)
    }

    /// Sees to it that nobody has the outside tuple: the dead go, and of
    /// protocols without ports the last who sends has it. Returns the hash
    /// of the key inward.
    fn claim(&mut self, ends: &Ends, ported: bool) -> Result<u64, Verdict> {
        let key = ends.in_key();
        let hash = self.table.hasher.hash(key);
        let Some(name) = self.table.find::<false>(hash, key) else {
            return Ok(hash);
        };
        let alive = self.table.get(name).is_some_and(|flow| self.alive(flow));
        if alive && ported {
            return Err(Verdict::PortsExhausted);
        }
        let why = if alive { Why::Removed } else { Why::Expired };
        self.end(name, why);
        Ok(hash)
    }

    /// Joins or makes the shared mapping and the permit of a new flow.
    /// Returns whether the flow opens a mapping.
    fn share(
        &mut self,
        flow: &mut Flow,
        ends: &Ends,
        shared: MappingChoice,
    ) -> Result<bool, Verdict> {
        let entry = Mapping {
            inside: ends.inside,
            alias: ends.alias,
            remote: 0,
            inside_port: ends.inside_port,
            alias_port: ends.alias_port,
            protocol: ends.protocol,
            flows: 1,
            epoch: self.epoch,
            dies: self.dies(flow),
            ..Mapping::default()
        };
        let (name, made) = match (shared.mapping, shared.make_for) {
            (Some(name), _) => {
                self.mappings.hold(name);
                self.mappings.refresh(name, entry.dies);
                (name, false)
            }
            (None, Some(remote)) => {
                let entry = Mapping { remote, ..entry };
                let name = self.mappings.insert(entry, &mut self.work);
                let name = name.ok_or(Verdict::TableFull)?;
                let group = self.group(ends.alias, remote, 0, ends.protocol);
                self.ports.took(group, u16::from_be(ends.alias_port));
                (name, true)
            }
            (None, None) => return Ok(true),
        };
        flow.mapping = name;
        flow.flags |= flag::MAPPED;
        self.permit(flow, ends, entry);
        Ok(made)
    }

    /// Notes the remote's address where the filter goes by addresses.
    fn permit(&mut self, flow: &mut Flow, ends: &Ends, entry: Mapping) {
        let behaviour = self.behaviour(ends.protocol);
        if behaviour.is_none_or(|behaviour| behaviour.filtering != Dependence::Address) {
            return;
        }
        let kind = Kind::Permit;
        let place = (ends.alias, ends.alias_port, ends.remote, ends.protocol);
        let name = match self.permit_at(place, (ends.inside, ends.inside_port)) {
            Some(name) => {
                self.mappings.hold(name);
                self.mappings.refresh(name, entry.dies);
                Some(name)
            }
            None => {
                let remote = ends.remote;
                let entry = Mapping {
                    remote,
                    kind,
                    ..entry
                };
                self.mappings.insert(entry, &mut self.work)
            }
        };
        // Without room for it the remote's other ports stay outside.
        if let Some(name) = name {
            flow.permit = name;
            flow.flags |= flag::PERMIT;
        }
    }

    /// The living entry at an alias endpoint for a remote address (0: any).
    pub(super) fn shared_at(
        &mut self,
        (alias, port, remote, protocol): (u32, u16, u32, u8),
        kind: Kind,
    ) -> Option<u32> {
        let name = self.mappings.by_alias(alias, port, remote, protocol, kind);
        self.living_mapping(name?)
    }

    /// The living permit at an alias endpoint for a remote address, given by
    /// an inside endpoint. One of another inside is of a mapping whose address
    /// had gone: it leaves the indexes, as that mapping did.
    fn permit_at(&mut self, place: (u32, u16, u32, u8), inside: (u32, u16)) -> Option<u32> {
        let name = self.shared_at(place, Kind::Permit)?;
        let permit = self.mappings.get(name)?;
        if (permit.inside, permit.inside_port) == inside {
            return Some(name);
        }
        self.mappings.detach(name, &mut self.work);
        None
    }

    /// A mapping if it lives; a dead one leaves the indexes.
    fn living_mapping(&mut self, name: u32) -> Option<u32> {
        let mapping = self.mappings.get(name)?;
        if mapping.epoch == self.epoch && self.clock.now() <= mapping.dies {
            return Some(name);
        }
        self.hold_port(name);
        self.mappings.detach(name, &mut self.work);
        None
    }

    /// The last tick of a flow that is used no more.
    fn dies(&self, flow: &Flow) -> u32 {
        flow.last_used.saturating_add(self.ticks.of(flow.class))
    }

    /// Tells a flow's mapping and permit that it is used, and of its class,
    /// which was `before`.
    #[inline(never)]
    pub(super) fn refresh_shared(&mut self, name: u32, before: u8) {
        let Some(flow) = self.table.get(name).copied() else {
            return;
        };
        let dies = self.dies(&flow);
        let (was, is) = (State::of(before).lives_long(), flow.state().lives_long());
        let answered = flow.state() == State::Dns && before != State::Dns as u8;
        for shared in shared_of(&flow).into_iter().flatten() {
            self.mappings.refresh(shared, dies);
            match (was, is) {
                (false, true) => self.mappings.lengthen(shared),
                (true, false) => self.shorten(shared),
                _ if answered => self.mappings.answered(shared, dies),
                _ => {}
            }
        }
    }

    /// A flow's state has changed from the class `before`: its mapping is
    /// told, and whether it may give its port up.
    #[cold]
    #[inline(never)]
    pub(super) fn turned(&mut self, name: u32, before: u8) {
        if self
            .table
            .get(name)
            .is_some_and(|flow| flow.has(flag::MAPPED))
        {
            self.refresh_shared(name, before);
        }
        self.may_give(name);
    }

    /// A flow of a mapping or permit lives long no more.
    fn shorten(&mut self, shared: u32) {
        let dies = self.clock.now().saturating_add(self.ticks.short());
        if self.mappings.shorten(shared, dies) {
            self.mapping_may_give(shared);
        }
    }

    /// A flow ends: its mapping and permit lose what it gave them of life.
    pub(super) fn leave_shared(&mut self, flow: &Flow) {
        if flow.state().lives_long() {
            for shared in shared_of(flow).into_iter().flatten() {
                self.shorten(shared);
            }
        }
    }

    fn unshare(&mut self, flow: &Flow) {
        if flow.has(flag::PERMIT) {
            self.mappings.release(flow.permit, &mut self.work);
        }
        if flow.has(flag::MAPPED) {
            self.release_mapping(flow.mapping);
        }
    }

    /// Whether an address is one of the alias addresses.
    pub(super) fn is_own(&self, address: u32) -> bool {
        match self.pool.as_slice() {
            [only] => *only == address,
            own => own.binary_search(&address).is_ok(),
        }
    }

    /// The alias address of an inside host: always the same while the pool
    /// is ("paired", RFC 4787 REQ-2).
    pub(super) fn own_for(&self, inside: u32) -> Option<u32> {
        if let [only] = self.pool.as_slice() {
            return Some(*only);
        }
        let key = Key::new(inside, 0, [0, 0], 0);
        let hash = self.table.hasher.hash(key) >> 32;
        let at = (hash * self.pool.len() as u64) >> 32;
        self.pool.get(at as usize).copied()
    }

    fn next_own(&self, address: u32) -> u32 {
        let at = self.pool.binary_search(&address).map_or(0, |at| at + 1);
        let next = self.pool.get(at).or_else(|| self.pool.first());
        next.copied().unwrap_or(address)
    }
}

/// A flow's shared mapping and permit.
fn shared_of(flow: &Flow) -> [Option<u32>; 2] {
    [
        flow.has(flag::MAPPED).then_some(flow.mapping),
        flow.has(flag::PERMIT).then_some(flow.permit),
    ]
}

/// Whether an upper layer has a port or an identifier to be mapped.
pub(super) fn is_ported(upper: Upper) -> bool {
    matches!(upper, Upper::Udp | Upper::Tcp | Upper::Query)
}

/// Whether an address is private (RFC 1918), or carrier-grade (RFC 6598) if
/// those count.
fn is_private(source: u32, carrier_grade: bool) -> bool {
    let source = address(source);
    let [first, second, ..] = source.octets();
    source.is_private() || carrier_grade && first == 100 && second & 0xc0 == 64
}
