//! How a new flow is entered: its place is made free, it joins what it
//! shares, and its port is counted.

use super::mapped::MappingChoice;
use super::port::Chosen;
use crate::flow::{Ends, Flow, flag};
use crate::parse::Upper;
use crate::table::Hashes;
use crate::{EventKind, Hairpin, Nat, State, Verdict, Why};

/// Places swept for each new flow: more than one, so that expired flows
/// never outnumber active ones by much.
const SWEEP_A_FLOW: usize = 2;
/// The same where the table is crowded. As many begin as end: of all places
/// one in twice as many is an expired one that was not swept yet.
const SWEEP_A_FLOW_CROWDED: usize = 32;

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

/// How a flow is to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) flags: u32,
    pub(super) shared: MappingChoice,
    pub(super) chosen: Chosen,
    /// Whether its alias port was chosen, and is counted.
    pub(super) ported: bool,
    /// The hash of its key outward.
    pub(super) out: u64,
    /// Places to be swept before it is entered.
    pub(super) sweep: usize,
    /// What it was before, where it is no new one.
    pub(super) back: Option<Back>,
}

/// A flow that another engine made, as far as that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Back {
    pub(super) state: State,
    /// When it was used last, in ticks.
    pub(super) used: u32,
}

impl Nat {
    /// Places to be swept for each new flow.
    #[inline(always)]
    pub(super) fn swept_a_flow(&self) -> usize {
        match self.table.is_crowded() {
            true => SWEEP_A_FLOW_CROWDED,
            false => SWEEP_A_FLOW,
        }
    }

    /// Enters a flow whose key outward is free.
    pub(super) fn make(&mut self, ends: &Ends, plan: &Plan) -> Result<u32, Verdict> {
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
        let (state, used) = match plan.back {
            Some(back) => (back.state, back.used),
            None => (State::first(ends.protocol), self.clock.now()),
        };
        let mut flow = Flow::new(ends, state, used, self.epoch);
        flow.flags |= plan.flags;
        flow.permit = match plan.chosen.mark {
            0 if plan.ported && plan.shared.mapping.is_none() => self.mark_of_redirected(ends),
            mark => mark,
        };
        if plan.back.is_none() {
            self.mark_helper(&mut flow, ends);
        }
        let opens = self.share(&mut flow, ends, plan)?;
        if !stranger {
            self.count_session(&mut flow);
        }
        let out = plan.out;
        let hashes = Hashes { out, incoming };
        let Some(name) = self.table.insert(flow, hashes, &mut self.work) else {
            self.leave_shared(&flow);
            self.unshare(&flow);
            self.end_session(&flow);
            return Err(Verdict::TableFull);
        };
        if plan.ported && !flow.has(flag::MAPPED) {
            self.count_port_of(plan, ends, flow.permit, false);
        }
        if stranger {
            self.note_stranger(name);
        }
        self.statistics.flows_made += u64::from(plan.back.is_none());
        if plan.ported && !flow.has(flag::MAPPED) {
            let Ends { remote_port, .. } = *ends;
            let group = plan
                .chosen
                .group
                .unwrap_or_else(|| self.group(ends.alias, ends.remote, remote_port, ends.protocol));
            self.ports.took(group, u16::from_be(ends.alias_port));
        }
        if opens {
            match plan.back {
                None => self.statistics.mapping_came(flow.protocol),
                Some(_) => self.statistics.mapping_is_back(flow.protocol),
            }
            if self.events.wanted() {
                self.tell(EventKind::Made, &flow);
            }
        }
        Ok(name)
    }

    /// The port of a flow, or of the mapping that it opens, counts from now
    /// on. One that is back is no new one.
    pub(super) fn count_port_of(&mut self, plan: &Plan, ends: &Ends, mark: u32, shared: bool) {
        match plan.back {
            None => self.count_port(ends, mark, shared),
            Some(_) => self.recount_port(ends, mark, shared),
        }
    }

    /// Sees to it that nobody has the outside tuple: an expired flow
    /// is ended, and of protocols without ports the last sender has it. Returns the hash
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

    /// Whether a flow's other end is one of ours.
    pub(super) fn hairpin_flag(&self, ends: &Ends) -> u32 {
        if self.config.hairpin == Hairpin::Engine && self.is_own(ends.remote) {
            flag::HAIRPIN
        } else {
            0
        }
    }
}

/// Whether an upper layer has a port or an identifier to be mapped.
pub(super) fn is_ported(upper: Upper) -> bool {
    matches!(upper, Upper::Udp | Upper::Tcp | Upper::Query)
}
