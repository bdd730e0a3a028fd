//! With every alias port to a remote taken: whose is given up.
//!
//! A flow that is over (closed, reset, a question of DNS with its answer)
//! lives on for what is late, and one that nobody answered for whoever might.
//! Both give their port up before a new flow is refused, the oldest first;
//! one that was answered and is not over never does.
//!
//! Of closed TCP connections that one is preferred behind whose last sequence
//! number the new one begins: who still has it in TIME-WAIT takes the SYN
//! then (RFC 9293 §3.6.1, RFC 6191 §2).

use arrayvec::ArrayVec;

use super::Nat;
use super::end::{Worth, worth};
use super::port::{Contest, Free};
use crate::flow::{Flow, flag};
use crate::key::Key;
use crate::{State, Why, tcp};

/// Ticks that a flow is unused, at least, before it gives its port up: about
/// a second, in which an answer or a last acknowledgement comes.
const IDLE_TICKS: u32 = 4;
/// Ports of the queue that are looked at for a new flow, and in a row where
/// there is no queue.
const LOOKS: usize = 64;
/// Those of them that are in use, and go to the end of the queue.
const TURNED_AWAY: usize = 3;
/// Those of them that would do, of which the best is taken.
const CHOICE: usize = 8;
/// What is taken out of the queue with each new flow.
const FORGOTTEN: usize = 2;

/// What a port's holder says to giving it up; the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gives {
    /// It keeps it.
    No,
    /// Not yet: it was used a moment ago.
    NotYet,
    /// Nobody has answered it.
    Unanswered,
    /// It is over.
    Over,
    /// It is over, and who remembers it takes the new connection all the
    /// same.
    Forgotten,
}

impl Nat {
    /// A flow may have come into a state in which it gives its port up: its
    /// group is told, if that is crowded.
    pub(super) fn may_give(&mut self, name: u32) {
        if !self.ports.has_maps() {
            return;
        }
        let Some(flow) = self.table.get(name).copied() else {
            return;
        };
        if flow.state().is_over() && !flow.has(flag::MAPPED) {
            let ends = flow.ends();
            let group = self.group(ends.alias, ends.remote, ends.remote_port, ends.protocol);
            self.ports.may_give(group, u16::from_be(ends.alias_port));
        }
    }

    /// The same of a shared mapping none of whose flows lives long.
    pub(super) fn mapping_may_give(&mut self, name: u32) {
        if !self.ports.has_maps() {
            return;
        }
        if let Some(mapping) = self.mappings.get(name).copied() {
            let group = self.group(mapping.alias, mapping.remote, 0, mapping.protocol);
            self.ports.may_give(group, u16::from_be(mapping.alias_port));
        }
    }

    /// Takes the first few out of the queue of a group that keep their
    /// ports, so that the first of it would do when one is wanted.
    pub(super) fn forget_givers(&mut self, contest: &Contest) {
        for _ in 0..FORGOTTEN {
            let Some((place, gives)) = self.next_giver(contest) else {
                return;
            };
            if gives != Gives::No {
                self.put_back_giver(contest, place);
                return;
            }
        }
    }

    /// The port of the group's queue that is given up.
    pub(super) fn give_by_map(&mut self, contest: &Contest) -> Option<Free> {
        if !contest.gives() {
            return None;
        }
        let mut choice = [(Gives::No, 0); CHOICE];
        let mut choices = 0;
        let mut turned_away = 0;
        for _ in 0..LOOKS {
            let Some((place, gives)) = self.next_giver(contest) else {
                break;
            };
            match gives {
                Gives::No => continue,
                Gives::NotYet => {
                    turned_away += 1;
                    self.ports.map(contest.group())?.may_give(place);
                }
                _ => {
                    if let Some(next) = choice.get_mut(choices) {
                        *next = (gives, place);
                    }
                    choices += 1;
                }
            }
            let enough = (gives == Gives::Forgotten) | (choices == CHOICE);
            if enough | (turned_away == TURNED_AWAY) {
                break;
            }
        }
        let choice = choice.get(..choices)?;
        // The first of the best.
        let best = choice.iter().rev().max_by_key(|(gives, _)| *gives)?.1;
        for (_, place) in choice.iter().rev().filter(|(_, place)| *place != best) {
            self.put_back_giver(contest, *place);
        }
        self.take_over(contest, self.ports.port(best).to_be())
    }

    /// The same where there is no queue: of some ports in a row.
    pub(super) fn give_in_turn(&mut self, contest: &Contest) -> Option<Free> {
        let count = self.ports.count();
        let start = self.random.below(count);
        let steps = 0..count.min(LOOKS as u32);
        let port = |step| self.ports.port((start + step) % count).to_be();
        let ports: ArrayVec<u16, LOOKS> = steps.map(port).collect();
        self.give_one_of(contest, &ports)
    }

    /// The best of some ports (memory order) that is given up.
    pub(super) fn give_one_of(&mut self, contest: &Contest, ports: &[u16]) -> Option<Free> {
        if !contest.gives() {
            return None;
        }
        let mut best = (Gives::NotYet, 0, 0);
        for port in ports.iter().copied() {
            let (gives, idle) = self.gives(contest, port);
            if (gives, idle) > (best.0, best.1) && gives > Gives::NotYet {
                best = (gives, idle, port);
            }
        }
        let (gives, _, port) = best;
        if gives == Gives::NotYet {
            return None;
        }
        self.take_over(contest, port)
    }

    fn next_giver(&mut self, contest: &Contest) -> Option<(u32, Gives)> {
        let place = self.ports.map(contest.group())?.next_giver()?;
        let port = self.ports.port(place).to_be();
        Some((place, self.gives(contest, port).0))
    }

    fn put_back_giver(&mut self, contest: &Contest, place: u32) {
        if let Some(map) = self.ports.map(contest.group()) {
            map.may_give_first(place);
        }
    }

    /// Whether who holds a port (memory order) gives it up, and how many
    /// ticks it was not used, as far as known.
    fn gives(&mut self, contest: &Contest, port: u16) -> (Gives, u32) {
        self.work.port();
        let ends = contest.ends();
        let free = self.may_take(ends, port);
        if !free || !self.rules.is_empty() && self.is_ruled(ends, port) {
            return (Gives::No, 0);
        }
        let mapping = match self.mappings.len() {
            0 => None,
            _ => self.mapping_of(contest, port),
        };
        let mapping = mapping.and_then(|name| self.mappings.get(name));
        let (mapped, long) = mapping.map_or((false, 0), |mapping| (true, mapping.long));
        // A mapping that is given up leaves its flows where they are: with the
        // table full that would be for nothing.
        if long > 0 || mapped && self.table.is_full() {
            return (Gives::No, 0);
        }
        match self.holder(contest, port) {
            Some(flow) => self.flow_gives(&flow, contest.syn()),
            None if mapped => (Gives::Unanswered, 0),
            // It is free, and the map knows.
            None => (Gives::No, 0),
        }
    }

    /// The flow that has an alias port (memory order) to the very remote.
    fn holder(&self, contest: &Contest, port: u16) -> Option<Flow> {
        let ends = contest.ends();
        let key = Key::new(
            ends.remote,
            ends.alias,
            [ends.remote_port, port],
            ends.protocol,
        );
        let name = self.table.find::<false>(self.table.hasher.hash(key), key)?;
        self.table.get(name).copied()
    }

    fn flow_gives(&self, flow: &Flow, syn: Option<u32>) -> (Gives, u32) {
        let idle = self.clock.now().wrapping_sub(flow.last_used);
        if !self.alive(flow) {
            return (Gives::Forgotten, idle);
        }
        let gives = match worth(flow) {
            Worth::Kept => Gives::No,
            _ if idle < IDLE_TICKS => Gives::NotYet,
            Worth::Unreplied => Gives::Unanswered,
            Worth::Closing if flow.state() == State::Dns => Gives::Forgotten,
            Worth::Closing if syn.is_some_and(|syn| tcp::begins_behind(flow, syn)) => {
                Gives::Forgotten
            }
            Worth::Closing => Gives::Over,
        };
        (gives, idle)
    }

    /// Ends what holds a port (memory order) that is given up.
    fn take_over(&mut self, contest: &Contest, port: u16) -> Option<Free> {
        if self.mappings.len() > 0
            && let Some(mapping) = self.mapping_of(contest, port)
        {
            // Its flows have their remotes still; it serves no new ones.
            self.mappings.detach(mapping, &mut self.work);
        }
        let ends = contest.ends();
        let key = Key::new(
            ends.remote,
            ends.alias,
            [ends.remote_port, port],
            ends.protocol,
        );
        let name = self.table.find::<false>(self.table.hasher.hash(key), key);
        if let Some(name) = name {
            self.end(name, Why::Evicted);
        }
        self.is_free(contest, port)
    }
}
