//! Which alias port a new flow gets.

use packet::protocol;

use super::Nat;
use super::address;
use super::counts::NO_BLOCK;
use super::create::Wish;
use super::translate::Hint;
use crate::flow::Ends;
use crate::key::Key;
use crate::mapping::Kind;
use crate::ports::{Group, MOST_TRIES, SMALL_RANGE};
use crate::{Dependence, PortChoice, Verdict, Why};

/// Random ports tried before the range is looked through.
const RANDOM_TRIES: u32 = 4;
/// Random ports of its parity tried for a port that is taken.
const PARITY_TRIES: u32 = 2;
/// Ports of a full group tried for one whose flow has expired but was not swept.
const DEAD_TRIES: u32 = 3;

/// What may not share a port with the flow that looks for one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contest {
    ends: Ends,
    /// For a shared mapping, the remote address it is for (0: any).
    shared: Option<u32>,
    group: Group,
    /// The first sequence number, where it is TCP that opens.
    syn: Option<u32>,
    /// Whether another flow may have to give its port up.
    gives: bool,
}

impl Contest {
    /// For what takes no port from a flow: a lease, what a helper awaits.
    pub fn without_taking(ends: &Ends, shared: Option<u32>, group: Group) -> Self {
        Self {
            ends: *ends,
            shared,
            group,
            syn: None,
            gives: false,
        }
    }

    pub fn ends(&self) -> &Ends {
        &self.ends
    }

    pub fn group(&self) -> Group {
        self.group
    }

    pub fn gives(&self) -> bool {
        self.gives
    }

    pub fn syn(&self) -> Option<u32> {
        self.syn
    }

    /// Whether it is for a shared mapping of every remote.
    pub fn is_for_any_remote(&self) -> bool {
        self.shared == Some(0)
    }

    /// A free port as it was chosen, and how it counts.
    pub fn chosen(&self, (port, incoming): Free, mark: u32) -> Chosen {
        Chosen {
            port,
            incoming,
            group: Some(self.group),
            mark,
        }
    }
}

/// A port in memory order, and the hash of the incoming key where that was
/// looked up.
pub(super) type Free = (u16, Option<u64>);

/// A port that was chosen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chosen {
    /// Memory order.
    pub port: u16,
    /// The hash of the flow's incoming key, known to be in no index.
    pub incoming: Option<u64>,
    /// Where it is counted.
    pub group: Option<Group>,
    /// How it counts for a subscriber: 0 not at all, else its block, one up,
    /// or [`NO_BLOCK`].
    pub mark: u32,
}

impl Nat {
    /// The first port that will be tried for an outgoing flow where nothing
    /// special is set up, in memory order; its line is asked for.
    pub(super) fn foresee(&mut self, key: Key) -> u16 {
        if let Some(tracked) = &self.tracked {
            tracked.subscribers.prefetch(u32::from_be(key.source()));
            if tracked.pool.is_some() {
                return 0;
            }
        }
        let Some(alias) = self.own_for(key.source()) else {
            return 0;
        };
        let port = match self.config.port_choice {
            PortChoice::Same => self.like(key.source_port()),
            PortChoice::Random => self.random_port(),
        };
        let ports = [key.destination_port(), port];
        let incoming = Key::new(key.destination(), alias, ports, key.protocol());
        let hash = self.table.hasher.hash(incoming);
        self.table.index::<false>().prefetch(hash);
        port
    }

    fn random_port(&mut self) -> u16 {
        let place = self.random.below(self.ports.count());
        self.ports.port(place).to_be()
    }

    /// A free alias port, of its subscriber's blocks where there are such; or
    /// why there is none. `shared`: it is for a shared mapping of that remote
    /// address.
    pub(super) fn choose_port(
        &mut self,
        ends: &Ends,
        shared: Option<u32>,
        wish: Wish,
        hint: Hint,
    ) -> Result<Chosen, Verdict> {
        let (remote, remote_port) = match shared {
            Some(remote) => (remote, 0),
            None => (ends.remote, ends.remote_port),
        };
        let group = self.group(ends.alias, remote, remote_port, ends.protocol);
        let contest = Contest {
            ends: *ends,
            shared,
            group,
            syn: hint.syn,
            gives: hint.gives,
        };
        if let Wish::Exactly(port) = wish {
            // The claim that follows says whether it is free.
            return Ok(contest.chosen((port, None), 0));
        }
        self.admit_port(hint.subscriber, ends.protocol)?;
        if let Some(name) = self.holder_of(ends, hint.subscriber)? {
            return self.pick_in_blocks(&contest, name, wish);
        }
        let mark = if hint.subscriber.is_some() {
            NO_BLOCK
        } else {
            0
        };
        let free = self.same_or_any(&contest, wish, hint.port);
        free.map(|free| contest.chosen(free, mark))
            .ok_or(Verdict::PortsExhausted)
    }

    fn same_or_any(&mut self, contest: &Contest, wish: Wish, hint: u16) -> Option<Free> {
        if wish == Wish::Any {
            return self.pick(contest, hint);
        }
        let same = contest.ends.inside_port;
        let free = match same {
            0 => None,
            same => self.same_or_like(contest, same),
        };
        free.or_else(|| self.pick(contest, 0))
    }

    /// A port (memory order) if it is free; where it is taken, or another
    /// part's, one like it or any of its parity (RFC 4787 REQ-4).
    fn same_or_like(&mut self, contest: &Contest, port: u16) -> Option<Free> {
        let like = self.like(port);
        let is_own = like == port;
        let free = self.is_rested(contest, port);
        let settles = is_own && !self.keeps_parity(contest);
        if free.is_some() || like == 0 || settles {
            return free;
        }
        let tries = if is_own { PARITY_TRIES } else { RANDOM_TRIES };
        let mut candidate = if is_own {
            self.like_parity(port)?
        } else {
            like
        };
        for _ in 0..tries {
            if let Some(free) = self.is_rested(contest, candidate) {
                return Some(free);
            }
            candidate = self.like_parity(port)?;
        }
        None
    }

    /// Whether another port than the wished one is looked for by its parity:
    /// of UDP alone that says something (RFC 3550 §11). In a crowd any port
    /// will do.
    fn keeps_parity(&mut self, contest: &Contest) -> bool {
        contest.ends.protocol == protocol::UDP && self.ports.map(contest.group).is_none()
    }

    /// Any port of the range with the parity of another one (memory order).
    fn like_parity(&mut self, port: u16) -> Option<u16> {
        let parity = u16::from_be(port) & 1;
        let random = u16::from_be(self.random_port()) & !1 | parity;
        self.ports.has(random).then_some(random.to_be())
    }

    /// A port (memory order) of the engine's part that is like another one.
    pub(super) fn like(&self, port: u16) -> u16 {
        match &self.shard {
            None => port,
            Some(part) => part.ports.like(u16::from_be(port)).to_be(),
        }
    }

    /// Any free port of the range.
    fn pick(&mut self, contest: &Contest, hint: u16) -> Option<Free> {
        if self.ports.count() <= SMALL_RANGE {
            let free = self.try_in_turn(contest, self.ports.count());
            return free.or_else(|| self.give_in_turn(contest));
        }
        self.ports.catch_up(contest.group, self.rules.released());
        if self.ports.map(contest.group).is_some() {
            return self.by_map(contest);
        }
        for attempt in 0..RANDOM_TRIES {
            let port = match hint {
                0 => self.random_port(),
                hint if attempt == 0 => hint,
                _ => self.random_port(),
            };
            if let Some(free) = self.is_rested(contest, port) {
                return Some(free);
            }
        }
        let free = self.try_in_turn(contest, MOST_TRIES);
        free.or_else(|| self.give_in_turn(contest))
    }

    /// Tries ports in a row from a random one on.
    fn try_in_turn(&mut self, contest: &Contest, tries: u32) -> Option<Free> {
        let count = self.ports.count();
        let start = self.random.below(count);
        let mut held = None;
        for step in 0..tries.min(count) {
            let port = self.ports.port((start + step) % count).to_be();
            if let Some(free) = self.is_free(contest, port) {
                if !self.is_held(contest, port) {
                    return Some(free);
                }
                held = held.or(Some(free));
            }
        }
        held
    }

    /// Picks by the group's map, which learns the next ports before.
    fn by_map(&mut self, contest: &Contest) -> Option<Free> {
        self.learn(contest);
        self.forget_givers(contest);
        let mut held_seen = 0;
        for _ in 0..MOST_TRIES {
            let map = self.ports.map(contest.group)?;
            let Some(place) = map.candidate(&mut self.random) else {
                break;
            };
            let port = self.ports.port(place).to_be();
            if let Some(free) = self.is_free(contest, port) {
                held_seen += 1;
                // In a crowd a held port is better than none.
                if held_seen > RANDOM_TRIES || !self.is_held(contest, port) {
                    return Some(free);
                }
                continue;
            }
            self.ports.map(contest.group)?.set(place);
        }
        self.reclaim(contest).or_else(|| self.give_by_map(contest))
    }

    fn learn(&mut self, contest: &Contest) {
        let Some(map) = self.ports.map(contest.group) else {
            return;
        };
        if map.is_whole() {
            return;
        }
        for place in map.next_to_learn() {
            let port = self.ports.port(place).to_be();
            if self.is_free(contest, port).is_none()
                && let Some(map) = self.ports.map(contest.group)
            {
                map.set(place);
                map.may_give(place);
            }
        }
    }

    /// With every port taken: perhaps by a flow that has expired. Each refusal
    /// looks at the next few, so that the whole range is seen in turn.
    fn reclaim(&mut self, contest: &Contest) -> Option<Free> {
        for _ in 0..DEAD_TRIES {
            let place = self.ports.map(contest.group)?.next_to_doubt();
            let port = self.ports.port(place).to_be();
            if let Some(free) = self.is_free(contest, port) {
                return Some(free);
            }
        }
        None
    }

    /// An alias port (memory order) if it is free. An expired flow that holds it
    /// is ended.
    pub(super) fn is_free(&mut self, contest: &Contest, port: u16) -> Option<Free> {
        self.work.port();
        let ends = &contest.ends;
        if !self.may_take(ends, port) {
            return None;
        }
        if !self.rules.is_empty() && self.is_ruled(ends, port) {
            return None;
        }
        if self.mappings.len() > 0 && self.is_mapped(contest, port) {
            self.statistics.ports_retried += 1;
            return None;
        }
        let ports = [ends.remote_port, port];
        let key = Key::new(ends.remote, ends.alias, ports, ends.protocol);
        let hash = self.table.hasher.hash(key);
        if let Some(name) = self.table.find::<false>(hash, key) {
            if self.table.get(name).is_some_and(|flow| self.alive(flow)) {
                self.statistics.ports_retried += 1;
                return None;
            }
            self.end(name, Why::Expired);
        }
        Some((port, Some(hash)))
    }

    /// An alias port (memory order) if it is free, and not held for the sake
    /// of who had it before.
    pub(super) fn is_rested(&mut self, contest: &Contest, port: u16) -> Option<Free> {
        let free = self.is_free(contest, port)?;
        (!self.is_held(contest, port)).then_some(free)
    }

    pub(super) fn is_held(&self, contest: &Contest, port: u16) -> bool {
        let Contest { ends, shared, .. } = contest;
        shared.is_some()
            && ends.protocol == protocol::UDP
            && self
                .held_ports
                .holds(ends.alias, u16::from_be(port), self.clock.now())
    }

    /// Holds the port of a shared mapping that ends: who still sends to it
    /// is not to reach somebody else. TCP is followed, and a narrower filter
    /// keeps others out (RFC 6888 REQ-8, exceptions A and C).
    pub(super) fn hold_port(&mut self, name: u32) {
        let Some(mapping) = self.mappings.get(name) else {
            return;
        };
        let is_open = self.config.udp.filtering == Dependence::Endpoint;
        let is_udp = mapping.protocol == protocol::UDP;
        if is_open && is_udp && mapping.kind == Kind::Mapping {
            let ended = self.clock.now().min(mapping.dies);
            let port = u16::from_be(mapping.alias_port);
            self.held_ports.hold(mapping.alias, port, ended);
        }
    }

    /// Whether a port (memory order) is of the engine's part.
    pub(super) fn may_take(&self, ends: &Ends, port: u16) -> bool {
        match &self.shard {
            Some(part) => part.may_take(self.is_own(ends.alias), u16::from_be(port)),
            None => true,
        }
    }

    /// Whether a redirect could speak for the port, or somebody has a lease of
    /// it.
    pub(super) fn is_ruled(&self, ends: &Ends, port: u16) -> bool {
        let current = self.is_own(ends.alias);
        let (alias, port) = (address(ends.alias), u16::from_be(port));
        let leased = (ends.protocol, alias, port);
        self.rules.holds_port(ends.protocol, alias, current, port)
            || self.leases.as_ref().is_some_and(|of| of.has_port(leased))
    }

    fn is_mapped(&mut self, contest: &Contest, port: u16) -> bool {
        self.mapping_of(contest, port).is_some()
    }

    /// The shared mapping that has the port, for any remote or for this.
    pub(super) fn mapping_of(&mut self, contest: &Contest, port: u16) -> Option<u32> {
        let Contest { ends, shared, .. } = *contest;
        let mut mapped = |remote| {
            let place = (ends.alias, port, remote, ends.protocol);
            self.shared_at(place, Kind::Mapping)
        };
        mapped(0).or_else(|| {
            if shared != Some(0) {
                mapped(ends.remote)
            } else {
                None
            }
        })
    }
}
