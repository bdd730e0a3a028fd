//! What counts for a subscriber: its flows, and the ports they have.
//!
//! What counts is marked where it is kept, so that it is given back by the
//! same mark whatever changed meanwhile: a flow by [`flag::COUNTED`] and, for
//! its own port, by its `permit`; a shared mapping by its `marks`.

use packet::protocol;

use super::Nat;
use super::end::has_ports;
use crate::State;
use crate::blocks::{Class, Subscriber};
use crate::flow::{Ends, Flow, flag};
use crate::mapping::{Mapping, mark};

/// The mark of a port that counts, and is of no block.
pub(super) const NO_BLOCK: u32 = u32::MAX;
/// Of the mark of a port in a block: it is in use there, and a redirect or a
/// lease is what counts, once for all its flows.
const BESIDE: u32 = 1 << 31;

impl Nat {
    /// A port counts from now on, of a subscriber that is known by its inside
    /// address (memory order). `shared`: a shared mapping has it.
    pub(super) fn count_port(&mut self, ends: &Ends, mark: u32, shared: bool) {
        let millis = self.clock.run_millis();
        let rate = self.config.subscribers.quotas.new_mappings;
        let Some(tracked) = self.tracked.as_mut().filter(|_| mark != 0) else {
            return;
        };
        let class = Class::of(ends.protocol);
        let name = tracked.subscribers.find(u32::from_be(ends.inside));
        let name = name.filter(|_| counts(mark));
        if let Some(entry) = name.and_then(|name| tracked.subscribers.get_mut(name)) {
            if let Some(count) = entry.ports.get_mut(class as usize) {
                *count += 1;
            }
            entry.pace(class, &rate, millis);
        }
        if let Some(counts) = name.and_then(|name| tracked.subscribers.counts_mut(name)) {
            counts.mappings_made += 1;
        }
        if let Some((block, pool)) = block_of(mark).zip(tracked.pool.as_mut()) {
            pool.hold(block, mapped_of(ends.protocol).filter(|_| shared));
        }
    }

    /// A port that counted is given back.
    pub(super) fn give_port(&mut self, ends: &Ends, mark: u32, shared: bool) {
        let now = self.clock.now();
        let Some(tracked) = self.tracked.as_mut().filter(|_| mark != 0) else {
            return;
        };
        let class = Class::of(ends.protocol);
        let name = tracked.subscribers.find(u32::from_be(ends.inside));
        let name = name.filter(|_| counts(mark));
        if let Some(entry) = name.and_then(|name| tracked.subscribers.get_mut(name))
            && let Some(count) = entry.ports.get_mut(class as usize)
        {
            *count = count.saturating_sub(1);
        }
        if let Some((block, pool)) = block_of(mark).zip(tracked.pool.as_mut()) {
            pool.release(block, mapped_of(ends.protocol).filter(|_| shared), now);
        }
    }

    /// The mark of a shared mapping's port, as it was counted.
    pub(super) fn mark_of(&self, mapping: &Mapping) -> u32 {
        if !mapping.has(mark::COUNTED) {
            return 0;
        }
        let block = match mapping.has(mark::IN_BLOCK) {
            true => self.block_at(mapping.alias, mapping.alias_port),
            false => None,
        };
        block.map_or(NO_BLOCK, |block| block + 1)
    }

    /// What of it a mapping keeps.
    pub(super) fn marks_of(port: u32) -> u8 {
        match port {
            0 => 0,
            NO_BLOCK => mark::COUNTED,
            _ => mark::COUNTED | mark::IN_BLOCK,
        }
    }

    /// The mark for the alias port of a flow that a redirect, a lease or the
    /// target made: it is in use where it lies in a block of the very
    /// subscriber, and counts for nobody.
    pub(super) fn mark_of_redirected(&self, ends: &Ends) -> u32 {
        let Some(tracked) = &self.tracked else {
            return 0;
        };
        let block = self.block_at(ends.alias, ends.alias_port);
        let owner = block.and_then(|block| tracked.pool.as_ref()?.get(block)?.owner.checked_sub(1));
        let name = owner.and_then(|_| tracked.subscribers.find(u32::from_be(ends.inside)));
        match (block, owner == name && owner.is_some()) {
            (Some(block), true) => (block + 1) | BESIDE,
            _ => 0,
        }
    }

    /// The mark for the alias port of a flow that a helper has awaited: it
    /// counts as one that was chosen.
    pub(super) fn mark_of_awaited(&self, inside: u32, alias: u32, port: u16) -> u32 {
        let block = self.block_at(alias, port);
        let block = block.filter(|_| self.is_in_block(inside, alias, port));
        match (block, self.subscriber_of(inside)) {
            (Some(block), _) => block + 1,
            (None, Some(_)) => NO_BLOCK,
            (None, None) => 0,
        }
    }

    /// A flow counts as a session from now on, if its inside is a
    /// subscriber.
    pub(super) fn count_session(&mut self, flow: &mut Flow) {
        let millis = self.clock.lived_millis();
        let Some(tracked) = &mut self.tracked else {
            return;
        };
        let inside = u32::from_be(flow.inside());
        if !self.inside.is_empty() && !self.inside.has(inside) {
            return;
        }
        let Some(name) = tracked.enter(inside, millis) else {
            return;
        };
        if let Some(entry) = tracked.subscribers.get_mut(name) {
            let class = Class::of(flow.protocol) as usize;
            if let Some(count) = entry.sessions.get_mut(class) {
                *count += 1;
            }
            if is_half_open(flow.class)
                && let Some(count) = entry.half_open.get_mut(class)
            {
                *count += 1;
            }
            flow.flags |= flag::COUNTED;
        }
    }

    /// A flow that ended is no session any more.
    pub(super) fn end_session(&mut self, flow: &Flow) {
        if !flow.has(flag::COUNTED) {
            return;
        }
        let Some(entry) = self.entry_of(flow.inside()) else {
            return;
        };
        let class = Class::of(flow.protocol) as usize;
        if let Some(count) = entry.sessions.get_mut(class) {
            *count = count.saturating_sub(1);
        }
        if is_half_open(flow.class)
            && let Some(count) = entry.half_open.get_mut(class)
        {
            *count = count.saturating_sub(1);
        }
    }

    /// What a mapping that was saved may say of its port's count.
    pub(super) fn settle_marks(&self, mapping: &mut Mapping) {
        let is_known = self.subscriber_of(mapping.inside).is_some();
        let is_block = self.is_in_block(mapping.inside, mapping.alias, mapping.alias_port);
        if !is_known || mapping.has(mark::IN_BLOCK) && !is_block {
            mapping.marks &= !(mark::COUNTED | mark::IN_BLOCK);
        }
    }

    /// What a flow that was saved may say of what counts of it.
    pub(super) fn settle_flow(&self, flow: &mut Flow) {
        let is_known = self.subscriber_of(flow.inside()).is_some();
        if !is_known {
            flow.flags &= !flag::COUNTED;
        }
        if flow.has(flag::PERMIT) || flow.permit == 0 {
            return;
        }
        let is_block = self.is_in_block(flow.inside(), flow.alias(), flow.alias_port());
        let block = self.block_at(flow.alias(), flow.alias_port());
        flow.permit = match (flow.permit, block) {
            _ if !has_ports(flow) => 0,
            (NO_BLOCK, _) if is_known => NO_BLOCK,
            (mark, Some(block)) if mark != NO_BLOCK && is_block => (block + 1) | (mark & BESIDE),
            _ => 0,
        };
    }

    fn subscriber_of(&self, inside: u32) -> Option<u32> {
        let tracked = self.tracked.as_ref()?;
        tracked.subscribers.find(u32::from_be(inside))
    }

    /// Whether an alias port (memory order) is of a block of an inside one.
    pub(super) fn is_in_block(&self, inside: u32, alias: u32, port: u16) -> bool {
        let pool = self.tracked.as_ref().and_then(|of| of.pool.as_ref());
        let block = self.block_at(alias, port);
        let owner = block.and_then(|block| pool?.get(block)?.owner.checked_sub(1));
        owner.is_some() && owner == self.subscriber_of(inside)
    }

    /// A flow that was saved counts as a session.
    pub(super) fn recount_session(&mut self, flow: &Flow) {
        if !flow.has(flag::COUNTED) {
            return;
        }
        let class = Class::of(flow.protocol) as usize;
        let Some(entry) = self.entry_of(flow.inside()) else {
            return;
        };
        if let Some(count) = entry.sessions.get_mut(class) {
            *count += 1;
        }
        if is_half_open(flow.class)
            && let Some(count) = entry.half_open.get_mut(class)
        {
            *count += 1;
        }
    }

    /// A port that was saved counts: as [`Nat::count_port`], but it is no
    /// new one.
    pub(super) fn recount_port(&mut self, ends: &Ends, mark: u32, shared: bool) {
        if mark == 0 {
            return;
        }
        let class = Class::of(ends.protocol) as usize;
        let entry = self.entry_of(ends.inside).filter(|_| counts(mark));
        if let Some(count) = entry.and_then(|entry| entry.ports.get_mut(class)) {
            *count += 1;
        }
        let pool = self.tracked.as_mut().and_then(|of| of.pool.as_mut());
        if let Some((block, pool)) = block_of(mark).zip(pool) {
            pool.hold(block, mapped_of(ends.protocol).filter(|_| shared));
        }
    }

    fn entry_of(&mut self, inside: u32) -> Option<&mut Subscriber> {
        let tracked = self.tracked.as_mut()?;
        let name = tracked.subscribers.find(u32::from_be(inside))?;
        tracked.subscribers.get_mut(name)
    }

    /// A flow's class was another one before this packet.
    #[inline(always)]
    pub(super) fn note_class(&mut self, name: u32, before: u8) {
        if self.tracked.is_some() {
            self.count_half_open(name, before);
        }
    }

    #[inline(never)]
    fn count_half_open(&mut self, name: u32, before: u8) {
        let Some(flow) = self.table.get(name).copied() else {
            return;
        };
        let (was, is) = (is_half_open(before), is_half_open(flow.class));
        if was == is || !flow.has(flag::COUNTED) {
            return;
        }
        let class = Class::of(flow.protocol) as usize;
        let entry = self.entry_of(flow.inside());
        if let Some(count) = entry.and_then(|entry| entry.half_open.get_mut(class)) {
            *count = if is {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        }
    }
}

/// Whether a flow in a state waits for its first answer.
fn is_half_open(class: u8) -> bool {
    matches!(State::of(class), State::TcpOpening | State::UdpUnreplied)
}

/// The block of a mark.
pub(super) fn block_of(mark: u32) -> Option<u32> {
    let block = mark & !BESIDE;
    block.checked_sub(1).filter(|_| mark != NO_BLOCK)
}

/// Whether a mark counts for the subscriber.
pub(super) fn counts(mark: u32) -> bool {
    mark == NO_BLOCK || mark & BESIDE == 0
}

/// Which count of shared mappings a protocol has.
pub(super) fn mapped_of(of: u8) -> Option<usize> {
    match of {
        protocol::TCP => Some(0),
        protocol::UDP => Some(1),
        _ => None,
    }
}
