//! What flows share: mappings (RFC 4787, 5382), and the permits of filters
//! that go by addresses.

use packet::protocol;

use super::create::Plan;
use crate::flow::{Ends, Flow, flag};
use crate::mapping::{Kind, Mapping};
use crate::{Dependence, Nat, State, Verdict, tcp};

/// What a flow belongs to besides itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MappingChoice {
    /// An entry there is.
    pub(super) mapping: Option<u32>,
    /// An entry to be made, for this remote address (0: any).
    pub(super) make_for: Option<u32>,
}

impl Nat {
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
    pub(super) fn behaviour(&self, protocol: u8) -> Option<crate::Behaviour> {
        match protocol {
            protocol::TCP => Some(self.config.tcp),
            protocol::UDP => Some(self.config.udp),
            _ => None,
        }
    }

    /// The mapping of an inside endpoint, or that there is to be one.
    pub(super) fn shared_for(&mut self, ends: &Ends, remote: u32, pooled: bool) -> MappingChoice {
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

    /// Joins or makes the shared mapping and the permit of a new flow.
    /// Returns whether the flow opens a mapping.
    pub(super) fn share(
        &mut self,
        flow: &mut Flow,
        ends: &Ends,
        plan: &Plan,
    ) -> Result<bool, Verdict> {
        let shared = plan.shared;
        let port_mark = flow.permit;
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
            long: u32::from(flow.state().lives_long()),
            ..Mapping::default()
        };
        let (name, made) = match (shared.mapping, shared.make_for) {
            (Some(name), _) => {
                self.hold_one_more(name, flow, entry.dies);
                (name, false)
            }
            (None, Some(remote)) => {
                let marks = Self::marks_of(port_mark);
                let entry = Mapping {
                    remote,
                    marks,
                    ..entry
                };
                let name = self.mappings.insert(entry, &mut self.work);
                let name = name.ok_or(Verdict::TableFull)?;
                self.count_port_of(plan, ends, port_mark, true);
                let group = self.group(ends.alias, remote, 0, ends.protocol);
                self.ports.took(group, u16::from_be(ends.alias_port));
                (name, true)
            }
            (None, None) => return Ok(true),
        };
        (flow.mapping, flow.permit) = (name, 0);
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
                self.hold_one_more(name, flow, entry.dies);
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

    /// The active entry at an alias endpoint for a remote address (0: any).
    pub(super) fn shared_at(
        &mut self,
        (alias, port, remote, protocol): (u32, u16, u32, u8),
        kind: Kind,
    ) -> Option<u32> {
        let name = self.mappings.by_alias(alias, port, remote, protocol, kind);
        self.living_mapping(name?)
    }

    /// The active permit at an alias endpoint for a remote address, given by
    /// an inside endpoint. One of another inside is of a mapping whose address
    /// had gone: it leaves the indexes, as that mapping did.
    pub(super) fn permit_at(
        &mut self,
        place: (u32, u16, u32, u8),
        inside: (u32, u16),
    ) -> Option<u32> {
        let name = self.shared_at(place, Kind::Permit)?;
        let permit = self.mappings.get(name)?;
        if (permit.inside, permit.inside_port) == inside {
            return Some(name);
        }
        self.mappings.detach(name, &mut self.work);
        None
    }

    /// A mapping if it is active; an expired one leaves the indexes.
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
        let dies = match tcp::is_refused(&flow) || self.is_unasked_for(&flow) {
            true => 0,
            false => self.dies(&flow),
        };
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

    /// Whether a flow is a stranger's that nobody inside has taken up, where
    /// what comes in keeps nothing alive.
    fn is_unasked_for(&self, flow: &Flow) -> bool {
        let is_taken_up = flow.has(flag::SEEN_OUT)
            && (flow.protocol != protocol::TCP || flow.has(flag::ACKED_OUT | flag::ACKED_IN));
        !self.lets_live_on(flow) && !is_taken_up
    }

    /// Whether a new flow lets live on what it holds: a stranger's comes in.
    fn lets_live_on(&self, flow: &Flow) -> bool {
        !flow.has(flag::STRANGER) || self.config.inbound_refresh
    }

    /// A mapping, or a permission, is one more flow's.
    fn hold_one_more(&mut self, name: u32, flow: &Flow, dies: u32) {
        self.mappings.hold(name);
        if flow.state().lives_long() {
            self.mappings.lengthen(name);
        }
        if self.lets_live_on(flow) {
            self.mappings.refresh(name, dies);
        }
    }

    /// A flow's state has changed from the class `before`: its mapping is
    /// told, and whether it may give its port up.
    #[cold]
    #[inline(never)]
    pub(super) fn turned(&mut self, name: u32, before: u8) {
        self.note_class(name, before);
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

    pub(super) fn unshare(&mut self, flow: &Flow) {
        if flow.has(flag::PERMIT) {
            self.mappings.release(flow.permit, &mut self.work);
        }
        if flow.has(flag::MAPPED) {
            self.release_mapping(flow.mapping);
        }
    }
}

/// A flow's shared mapping and permit.
fn shared_of(flow: &Flow) -> [Option<u32>; 2] {
    [
        flow.has(flag::MAPPED).then_some(flow.mapping),
        flow.has(flag::PERMIT).then_some(flow.permit),
    ]
}
