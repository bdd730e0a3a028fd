//! Flows that someone outside made give way to all others.
//!
//! Ending one costs nobody anything where its next packet makes it again,
//! from either side: through a shared mapping that has other flows, or by its
//! own endpoint. What the inside has not answered is nobody's loss either.

use super::Nat;
use crate::Why;
use crate::flow::{Flow, flag};

/// Names looked at for a flow to end.
const LOOKS: usize = 16;

/// What may become of a stranger's flow when room is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The place is free, or another's.
    Gone,
    /// It ends.
    Ends(Why),
    /// It ends if none else does.
    Spare,
    /// The inside has made it its own.
    Kept,
}

impl Nat {
    /// Notes a flow that someone outside made. O(1).
    pub(super) fn note_stranger(&mut self, name: u32) {
        if self.strangers.is_full() {
            // Its share is used up by flows that cannot end: the oldest name
            // is forgotten, and its flow one of many.
            if let Some(oldest) = self.strangers.pop() {
                self.accept(oldest);
            }
        }
        if self.strangers.push(name) {
            self.strangers.came();
        }
    }

    /// Sees to it that strangers have no more than their share with one more
    /// of them. O(1).
    pub(super) fn bound_strangers(&mut self) {
        if self.strangers.are_many() {
            self.end_a_stranger();
        }
        // Half of the names at least are of flows that ended by themselves.
        let looks = if self.strangers.is_full() { LOOKS } else { 0 };
        for _ in 0..looks {
            let name = self.strangers.pop();
            let Some(name) = name.filter(|name| self.fate(*name) != Fate::Gone) else {
                return;
            };
            self.strangers.push(name);
        }
    }

    /// Ends the oldest stranger's flow that may end. Returns whether one
    /// ended, and how many were looked at: O(1).
    pub(super) fn end_a_stranger(&mut self) -> (bool, usize) {
        let mut spare = None;
        let mut ended = None;
        let mut looked = 0;
        while ended.is_none() && looked < LOOKS {
            let Some(name) = self.strangers.pop() else {
                break;
            };
            looked += 1;
            self.work.slot();
            match self.fate(name) {
                Fate::Gone => {}
                Fate::Ends(why) => ended = Some((name, why)),
                Fate::Spare if spare.is_none() => spare = Some(name),
                Fate::Spare => {
                    self.strangers.push(name);
                }
                Fate::Kept => self.accept(name),
            }
        }
        if let (Some(_), Some(name)) = (ended, spare) {
            self.strangers.push(name);
        }
        let ended = ended.or(spare.map(|name| (name, Why::Evicted)));
        (ended.is_some_and(|(name, why)| self.end(name, why)), looked)
    }

    fn fate(&self, name: u32) -> Fate {
        let Some(flow) = self.table.get(name) else {
            return Fate::Gone;
        };
        if !flow.has(flag::LIVE | flag::STRANGER) {
            return Fate::Gone;
        }
        if !self.alive(flow) {
            return Fate::Ends(Why::Expired);
        }
        if flow.state().is_over() || !flow.has(flag::SEEN_OUT) {
            return Fate::Ends(Why::Evicted);
        }
        if self.comes_again(flow) {
            return Fate::Spare;
        }
        Fate::Kept
    }

    /// Whether the next packet of either side would make a flow again as it
    /// was.
    fn comes_again(&self, flow: &Flow) -> bool {
        if flow.has(flag::MAPPED) {
            let mapping = self.mappings.get(flow.mapping);
            return mapping.is_some_and(|mapping| mapping.flows > 1 && !mapping.is_detached());
        }
        // Datagrams to an address that nobody translates: each question
        // brings its flow along.
        flow.inside() == flow.alias() && flow.protocol != packet::protocol::TCP
    }

    /// A stranger's flow is one of many from now on.
    fn accept(&mut self, name: u32) {
        let Some(mut flow) = self.table.get(name).copied() else {
            return;
        };
        if !flow.has(flag::LIVE | flag::STRANGER) {
            return;
        }
        flow.flags &= !flag::STRANGER;
        self.strangers.went();
        self.count_session(&mut flow);
        if let Some(place) = self.table.get_mut(name) {
            place.flags = flow.flags;
        }
    }
}
