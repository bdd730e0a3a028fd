//! Which alias port a new flow gets.

use super::Nat;
use super::address;
use super::create::Wish;
use crate::Why;
use crate::flow::Ends;
use crate::key::Key;
use crate::mapping::Kind;
use crate::ports::{Group, MOST_TRIES, SMALL_RANGE};

/// Random ports tried before the range is looked through.
const RANDOM_TRIES: u32 = 4;
/// Ports of a full group tried for one whose flow is dead but not swept.
const DEAD_TRIES: u32 = 4;

/// What may not share a port with the flow that looks for one.
#[derive(Debug, Clone, Copy)]
struct Contest {
    ends: Ends,
    /// For a shared mapping, the remote address it is for (0: any).
    shared: Option<u32>,
    group: Group,
}

impl Nat {
    /// A free alias port in memory order; `None`: no port of the range is.
    /// `shared`: the port is for a shared mapping of that remote address.
    pub(super) fn choose_port(
        &mut self,
        ends: &Ends,
        shared: Option<u32>,
        wish: Wish,
    ) -> Option<u16> {
        let (remote, remote_port) = match shared {
            Some(remote) => (remote, 0),
            None => (ends.remote, ends.remote_port),
        };
        let group = self.group(ends.alias, remote, remote_port, ends.protocol);
        let contest = Contest {
            ends: *ends,
            shared,
            group,
        };
        match wish {
            // The claim that follows says whether it is free.
            Wish::Exactly(port) => return Some(port),
            Wish::Same if ends.inside_port != 0 && self.is_free(&contest, ends.inside_port) => {
                return Some(ends.inside_port);
            }
            Wish::Same | Wish::Any => {}
        }
        if self.ports.count() <= SMALL_RANGE {
            return self.try_in_turn(&contest, self.ports.count());
        }
        if self.ports.map(group).is_some() {
            return self.by_map(&contest);
        }
        for _ in 0..RANDOM_TRIES {
            let place = self.random.below(self.ports.count());
            let port = self.ports.port(place).to_be();
            if self.is_free(&contest, port) {
                return Some(port);
            }
        }
        self.try_in_turn(&contest, MOST_TRIES)
    }

    /// Tries ports in a row from a random one on.
    fn try_in_turn(&mut self, contest: &Contest, tries: u32) -> Option<u16> {
        let count = self.ports.count();
        let start = self.random.below(count);
        for step in 0..tries.min(count) {
            let port = self.ports.port((start + step) % count).to_be();
            if self.is_free(contest, port) {
                return Some(port);
            }
        }
        None
    }

    /// Picks by the group's map, which learns the next ports before.
    fn by_map(&mut self, contest: &Contest) -> Option<u16> {
        self.learn(contest);
        for _ in 0..MOST_TRIES {
            let map = self.ports.map(contest.group)?;
            let Some(place) = map.candidate(&mut self.random) else {
                break;
            };
            let port = self.ports.port(place).to_be();
            if self.is_free(contest, port) {
                return Some(port);
            }
            self.ports.map(contest.group)?.set(place);
        }
        self.reclaim(contest)
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
            if !self.is_free(contest, port)
                && let Some(map) = self.ports.map(contest.group)
            {
                map.set(place);
            }
        }
    }

    /// With every port taken: perhaps by a flow that is dead.
    fn reclaim(&mut self, contest: &Contest) -> Option<u16> {
        for _ in 0..DEAD_TRIES {
            let place = self.random.below(self.ports.count());
            let port = self.ports.port(place).to_be();
            if self.is_free(contest, port) {
                return Some(port);
            }
        }
        None
    }

    /// Whether an alias port (memory order) is free. A dead flow that holds
    /// it is ended.
    fn is_free(&mut self, contest: &Contest, port: u16) -> bool {
        self.work.port();
        let Contest { ends, shared, .. } = contest;
        if !self.rules.is_empty() {
            let current = self.is_own(ends.alias);
            let (alias, port) = (address(ends.alias), u16::from_be(port));
            if self.rules.holds_port(ends.protocol, alias, current, port) {
                return false;
            }
        }
        if self.mappings.len() > 0 && self.is_mapped(contest, port) {
            self.statistics.ports_retried += 1;
            return false;
        }
        if shared.is_some() {
            return true;
        }
        let key = Key::new(
            ends.remote,
            ends.alias,
            [ends.remote_port, port],
            ends.protocol,
        );
        let hash = self.table.hasher.hash(key);
        let Some(name) = self.table.find::<false>(hash, key) else {
            return true;
        };
        if self.table.get(name).is_some_and(|flow| self.alive(flow)) {
            self.statistics.ports_retried += 1;
            return false;
        }
        self.end(name, Why::Expired)
    }

    /// Whether a shared mapping has the port, for any remote or for this.
    fn is_mapped(&self, contest: &Contest, port: u16) -> bool {
        let Contest { ends, shared, .. } = contest;
        let mapped = |remote| {
            let kind = Kind::Mapping;
            self.mappings
                .by_alias(ends.alias, port, remote, ends.protocol, kind)
                .is_some()
        };
        mapped(0) || *shared != Some(0) && mapped(ends.remote)
    }
}
