//! The ends of flows: expiry by the sweep, eviction at the cap, removal.

use crate::flow::{Ends, Flow, flag};
use crate::mapping::Kind;
use crate::ports::Group;
use crate::saved::{Fields, Record};
use crate::{AtCap, EventKind, Nat, State, Why};

/// Flows looked at for one to evict.
const EVICT_LOOKS: usize = 32;
/// Places that the sweep looks at before anybody is refused for want of room,
/// some at a time: where one in a hundred is over, it is found.
const SWEPT_FOR_ROOM: usize = 256;
const SWEPT_AT_ONCE: usize = 32;
/// Ticks for which a round of all places that found nobody over is believed:
/// about a second. Until then a flood at the cap sweeps no more.
const BARREN_TICKS: u32 = 4;
/// How far ahead of the sweep lines are asked for.
const AHEAD: u32 = 8;
/// Dead flows that are ended together.
const TOGETHER: usize = 16;

/// Dead flows that the sweep is about to end: flows made in one go die in one
/// go, and the lines of all of them are on their way before the first ends.
#[derive(Debug, Default)]
pub struct Dying {
    names: [u32; TOGETHER],
    len: usize,
}

/// How many places in a row were swept at the cap that nobody left, and since
/// when.
#[derive(Debug, Clone, Copy, Default)]
pub struct Barren {
    places: usize,
    since: u32,
}

impl Barren {
    /// It as a saved state keeps it.
    pub fn saved(&self, out: Record) -> Record {
        out.u32(self.places as u32).u32(self.since)
    }

    pub fn restored(fields: &mut Fields<'_>) -> Self {
        Self {
            places: fields.u32() as usize,
            since: fields.u32(),
        }
    }
}

impl Nat {
    /// Looks at the next places and ends what has expired there. O(`places`).
    #[inline]
    pub(super) fn sweep(&mut self, places: usize) {
        let mut left = places;
        while left > 0 && self.table.places() > 0 {
            if self.hand >= self.table.places() {
                self.hand = 0;
            }
            let from = self.hand;
            let to = (from + left).min(self.table.places());
            self.hand = to;
            left -= to - from;
            self.statistics.flows_inspected += (to - from) as u64;
            for name in from as u32..to as u32 {
                self.work.slot();
                self.table.prefetch(name.wrapping_add(AHEAD));
                if self.table.get(name).is_some_and(|flow| self.is_dead(flow)) {
                    self.bury_soon(name);
                }
            }
            if self.dying.len > 0 {
                self.bury();
            }
        }
    }

    /// Whether a place holds a flow that may not be translated any more.
    #[inline(always)]
    fn is_dead(&self, flow: &Flow) -> bool {
        let idle = self.clock.now().wrapping_sub(flow.last_used);
        let over = (flow.epoch() != self.epoch) | (idle > self.ticks.of(flow.class));
        flow.has(flag::LIVE) & over
    }

    /// Notes a flow that the sweep found expired, and asks for what its end
    /// needs.
    #[cold]
    fn bury_soon(&mut self, name: u32) {
        self.table.prefetch_end(name);
        if let Some(place) = self.dying.names.get_mut(self.dying.len) {
            *place = name;
            self.dying.len += 1;
        }
        if self.dying.len == TOGETHER {
            self.bury();
        }
    }

    /// Ends the flows that were noted.
    #[cold]
    #[inline(never)]
    fn bury(&mut self) {
        let Dying { names, len } = std::mem::take(&mut self.dying);
        for name in names.into_iter().take(len) {
            let Some(flow) = self.table.get(name) else {
                continue;
            };
            let why = if flow.epoch() == self.epoch {
                Why::Expired
            } else {
                Why::Removed
            };
            self.end(name, why);
        }
    }

    /// Makes room for a new flow at the cap: a stranger's goes, another only
    /// if the settings say so. Returns whether there is room.
    #[cold]
    pub(super) fn make_room(&mut self) -> bool {
        let (ended, looked) = match self.strangers.count() {
            0 => (false, 0),
            _ => self.end_a_stranger(),
        };
        if ended {
            return true;
        }
        self.sweep_for_room();
        let left = EVICT_LOOKS.saturating_sub(looked);
        !self.table.is_full() || self.make_room_of_some(left)
    }

    /// Sweeps until there is room, as long as that has any prospect.
    fn sweep_for_room(&mut self) {
        let now = self.clock.now();
        let places = self.table.places();
        let barren = &mut self.barren;
        if now.wrapping_sub(barren.since) >= BARREN_TICKS {
            *barren = Barren {
                places: 0,
                since: now,
            };
        }
        for _ in 0..SWEPT_FOR_ROOM / SWEPT_AT_ONCE {
            if self.barren.places >= places {
                return;
            }
            self.sweep(SWEPT_AT_ONCE);
            if !self.table.is_full() {
                self.barren.places = 0;
                return;
            }
            self.barren.places += SWEPT_AT_ONCE;
        }
    }

    /// The same from so many flows at random.
    fn make_room_of_some(&mut self, most: usize) -> bool {
        // At random: a run of places was often made in one go, and would be
        // all of one kind. Few places are all looked at.
        let places = self.table.places() as u32;
        let looks = most.min(places as usize);
        let all = places as usize <= most;
        let mut names = [0; EVICT_LOOKS];
        for (at, name) in names.iter_mut().enumerate() {
            *name = if all {
                at as u32
            } else {
                self.random.below(places)
            };
            self.table.prefetch(*name);
        }
        let mut least = None;
        for name in names.into_iter().take(looks) {
            self.work.slot();
            let Some(flow) = self.table.get(name).filter(|flow| flow.has(flag::LIVE)) else {
                continue;
            };
            if !self.alive(flow) {
                return self.end(name, Why::Expired);
            }
            let worth = worth(flow);
            if least.is_none_or(|(least, _)| worth < least) {
                least = Some((worth, name));
            }
        }
        let evict = self.config.limits.at_cap == AtCap::Evict;
        match least {
            Some((worth, name)) if evict && worth < Worth::Kept => self.end(name, Why::Evicted),
            _ => false,
        }
    }

    /// Ends a flow. Returns whether there was one.
    #[inline(never)]
    pub(super) fn end(&mut self, name: u32, why: Why) -> bool {
        debug_assert!(
            self.pending_segments.is_empty(),
            "a segment of what was here"
        );
        let Some(flow) = self.table.remove(name, &mut self.work) else {
            return false;
        };
        match why {
            Why::Expired => self.statistics.flows_expired += 1,
            Why::Evicted => self.statistics.flows_evicted += 1,
            Why::Removed => self.statistics.flows_removed += 1,
        }
        if flow.has(flag::STRANGER) {
            self.strangers.went();
        }
        if flow.has(flag::OFFLOADED) {
            self.recall(&flow);
        }
        self.end_session(&flow);
        self.end_beside(&flow);
        self.leave_shared(&flow);
        if flow.has(flag::PERMIT) {
            self.mappings.release(flow.permit, &mut self.work);
        }
        let last = !flow.has(flag::MAPPED) || self.release_mapping(flow.mapping);
        if !flow.has(flag::MAPPED) && has_ports(&flow) {
            let ends = flow.ends();
            let group = self.group(ends.alias, ends.remote, ends.remote_port, ends.protocol);
            self.ports.gave(group, u16::from_be(ends.alias_port));
            self.free_for_shared(&ends);
            self.give_port(&ends, flow.permit, false);
        }
        if last {
            self.statistics.mapping_went(flow.protocol);
            if self.events.wanted() {
                self.tell(EventKind::Ended(why), &flow);
            }
        }
        true
    }

    /// The port of a flow that ended is free for shared mappings as well: to
    /// them it was one more that is used, in a group of another kind.
    fn free_for_shared(&mut self, ends: &Ends) {
        if self.ports.has_maps()
            && let Some(remote) = self.remote_part(ends)
        {
            let group = self.group(ends.alias, remote, 0, ends.protocol);
            self.ports.freed(group, u16::from_be(ends.alias_port));
        }
    }

    /// Lets go of a shared mapping. Returns whether that was its last flow.
    pub(super) fn release_mapping(&mut self, name: u32) -> bool {
        let Some(mapping) = self.mappings.get(name).copied() else {
            return false;
        };
        if mapping.flows == 1 {
            self.hold_port(name);
        }
        if !self.mappings.release(name, &mut self.work) {
            return false;
        }
        if mapping.kind == Kind::Mapping {
            let group = self.group(mapping.alias, mapping.remote, 0, mapping.protocol);
            self.ports.gave(group, u16::from_be(mapping.alias_port));
            let mark = self.mark_of(&mapping);
            self.give_port(&mapping.ends(), mark, true);
        }
        true
    }

    /// What may not share a port: see [`crate::ports`].
    pub(super) fn group(&self, alias: u32, remote: u32, remote_port: u16, protocol: u8) -> Group {
        let key = crate::key::Key::new(remote, alias, [remote_port, 0], protocol);
        Group(self.table.hasher.hash(key))
    }

    pub(super) fn tell(&mut self, kind: EventKind, flow: &Flow) {
        let flow = self.seen(flow);
        self.events.push(kind, self.clock.said_millis(), flow);
    }
}

/// Whether a flow's alias port was chosen.
pub(super) fn has_ports(flow: &Flow) -> bool {
    use packet::protocol::{ICMP, TCP, UDP};
    matches!(flow.protocol, TCP | UDP | ICMP)
}

/// What a flow is worth at the cap, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    Closing,
    Unreplied,
    Kept,
}

pub(super) fn worth(flow: &Flow) -> Worth {
    match flow.state() {
        state if state.is_over() => Worth::Closing,
        State::TcpOpening | State::UdpUnreplied => Worth::Unreplied,
        State::TcpEstablished | State::TcpHalfClosed | State::Udp => Worth::Kept,
        _ if flow.has(flag::SEEN_OUT | flag::SEEN_IN) => Worth::Kept,
        _ => Worth::Unreplied,
    }
}
