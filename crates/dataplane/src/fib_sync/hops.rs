//! Next hops by what they are: the same one once, with a number that lives
//! as long as something uses it.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use super::decide::{Hop, Spec};
use crate::forward::{PortSettings, Ports};
use crate::neighbour::{Adjacency, Full, Key, Kind, Member, Writer};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A next hop that is in use.
#[derive(Debug)]
struct Used {
    spec: Arc<Spec>,
    users: u32,
    members: Vec<u16>,
    group: Option<u16>,
}

/// The next hops in use and the resolved neighbours, with the table that
/// workers read.
#[derive(Debug)]
pub struct Hops {
    writer: Writer,
    by_spec: Map<Arc<Spec>, u16>,
    used: Map<u16, Used>,
    /// Next hops of a single gateway, by it.
    by_gateway: Map<Key, u16>,
    neighbours: Map<Key, Adjacency>,
    /// Next hops to be taken away once no FIB names them.
    unused: Vec<u16>,
    refused: u64,
}

impl Hops {
    pub fn new(writer: Writer) -> Self {
        Self {
            writer,
            by_spec: Map::default(),
            used: Map::default(),
            by_gateway: Map::default(),
            neighbours: Map::default(),
            unused: Vec::new(),
            refused: 0,
        }
    }

    /// The table's writer.
    pub fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// How many next hops are in use, how many neighbours are resolved, and
    /// how many of either there was no room for.
    pub fn counts(&self) -> (usize, usize, u64) {
        (self.used.len(), self.neighbours.len(), self.refused)
    }

    /// The number of a next hop, made if there is none, for one more user.
    pub fn take(&mut self, spec: &Arc<Spec>, ports: &Ports) -> Result<u16, Full> {
        if let Some(&number) = self.by_spec.get(spec) {
            if let Some(used) = self.used.get_mut(&number) {
                used.users += 1;
            }
            return Ok(number);
        }
        let made = self.make(spec, ports);
        self.refused += u64::from(made.is_err());
        made
    }

    fn make(&mut self, spec: &Arc<Spec>, ports: &Ports) -> Result<u16, Full> {
        let mut used = Used {
            spec: Arc::clone(spec),
            users: 1,
            members: Vec::new(),
            group: None,
        };
        let kind = |kind| (Key::default(), Adjacency::of_kind(kind));
        let (gateway, adjacency) = match &**spec {
            Spec::None => kind(Kind::None),
            Spec::Host => kind(Kind::Host),
            Spec::Blackhole => kind(Kind::Blackhole),
            Spec::Unreachable => kind(Kind::Unreachable),
            Spec::Prohibit => kind(Kind::Prohibit),
            Spec::Hops(hops) => match hops.as_slice() {
                [hop] => (gateway_of(hop), self.adjacency(hop, ports)),
                many => {
                    let group = self.make_group(many, ports, &mut used.members)?;
                    used.group = Some(group);
                    (Key::default(), Adjacency::of_group(group))
                }
            },
        };
        let number = match self.writer.add_next_hop(gateway, adjacency) {
            Ok(number) => number,
            Err(full) => {
                self.abandon(used);
                return Err(full);
            }
        };
        if gateway != Key::default() {
            self.by_gateway.insert(gateway, number);
        }
        self.by_spec.insert(Arc::clone(spec), number);
        self.used.insert(number, used);
        Ok(number)
    }

    fn make_group(
        &mut self,
        hops: &[Hop],
        ports: &Ports,
        taken: &mut Vec<u16>,
    ) -> Result<u16, Full> {
        let mut members = Vec::with_capacity(hops.len());
        let mut full = None;
        for hop in hops {
            let only = Spec::Hops(vec![Hop { weight: 1, ..*hop }]);
            match self.take(&Arc::new(only), ports) {
                Ok(next_hop) => {
                    taken.push(next_hop);
                    members.push(Member {
                        next_hop,
                        weight: hop.weight,
                        identity: identity(hop),
                    });
                }
                Err(error) => full = Some(error),
            }
        }
        let made = match full {
            None => self.writer.add_group(&members),
            Some(full) => Err(full),
        };
        if made.is_err() {
            for member in taken.drain(..) {
                self.give_back(member);
            }
        }
        made
    }

    /// What was begun of a next hop that there is no room for.
    fn abandon(&mut self, used: Used) {
        if let Some(group) = used.group {
            self.writer.remove_group(group);
        }
        for member in used.members {
            self.give_back(member);
        }
    }

    /// One user less. The number stays good until [`Hops::sweep`].
    pub fn give_back(&mut self, number: u16) {
        if let Some(used) = self.used.get_mut(&number) {
            used.users = used.users.saturating_sub(1);
            if used.users == 0 {
                self.unused.push(number);
            }
        }
    }

    /// Takes away what nobody uses any more. To be called when the FIBs no
    /// longer name what was given back.
    pub fn sweep(&mut self) {
        while let Some(number) = self.unused.pop() {
            let is_unused = self.used.get(&number).is_some_and(|used| used.users == 0);
            let used = if is_unused {
                self.used.remove(&number)
            } else {
                None
            };
            let Some(used) = used else {
                continue;
            };
            self.by_spec.remove(&used.spec);
            if let Spec::Hops(hops) = &*used.spec
                && let [hop] = hops.as_slice()
            {
                self.by_gateway.remove(&gateway_of(hop));
            }
            self.writer.remove_next_hop(number);
            self.abandon(used);
        }
    }

    /// A neighbour is resolved, or differently.
    pub fn put_neighbour(&mut self, key: Key, adjacency: Adjacency) {
        if self.neighbours.get(&key) == Some(&adjacency) {
            return;
        }
        if self.writer.put_neighbour(key, adjacency).is_err() {
            self.refused += 1;
            return;
        }
        self.neighbours.insert(key, adjacency);
        if let Some(&number) = self.by_gateway.get(&key) {
            self.writer.set_next_hop(number, adjacency);
        }
    }

    /// A neighbour is gone, or not resolved any more.
    pub fn remove_neighbour(&mut self, key: Key, ports: &Ports) {
        if self.neighbours.remove(&key).is_none() {
            return;
        }
        self.writer.remove_neighbour(key);
        if let Some(&number) = self.by_gateway.get(&key)
            && let Some(port) = ports.get(key.port)
        {
            let adjacency = Adjacency::of_port(Kind::Unresolved, key.port, port.mtu);
            self.writer.set_next_hop(number, adjacency);
        }
    }

    /// The neighbours that are resolved.
    pub fn neighbours(&self) -> impl Iterator<Item = Key> {
        self.neighbours.keys().copied()
    }

    /// Ports have changed (MTU, addresses): so have all next hops over
    /// them. The neighbours are put again by the caller. O(next hops).
    pub fn refresh(&mut self, ports: &Ports) {
        let single = |(number, used): (&u16, &Used)| match &*used.spec {
            Spec::Hops(hops) => match hops.as_slice() {
                [hop] => Some((*number, *hop)),
                _ => None,
            },
            _ => None,
        };
        let all: Vec<(u16, Hop)> = self.used.iter().filter_map(single).collect();
        for (number, hop) in all {
            let adjacency = self.adjacency(&hop, ports);
            self.writer.set_next_hop(number, adjacency);
        }
    }

    /// The adjacency of a single hop as things are.
    fn adjacency(&self, hop: &Hop, ports: &Ports) -> Adjacency {
        let Some(PortSettings { mtu, ethernet, .. }) = ports.get(hop.port) else {
            return Adjacency::of_kind(Kind::Unreachable);
        };
        match (ethernet, hop.gateway) {
            (None, _) => Adjacency::of_port(Kind::Direct, hop.port, *mtu),
            (Some(_), None) => Adjacency::of_port(Kind::OnLink, hop.port, *mtu),
            (Some(_), Some(_)) => {
                let known = self.neighbours.get(&gateway_of(hop)).copied();
                known.unwrap_or_else(|| Adjacency::of_port(Kind::Unresolved, hop.port, *mtu))
            }
        }
    }
}

fn gateway_of(hop: &Hop) -> Key {
    let key = hop.gateway.map(|gateway| Key::new(hop.port, gateway));
    key.unwrap_or_default()
}

/// What names a member in every group and every run: so a flow's path
/// outlives a restart.
fn identity(hop: &Hop) -> u64 {
    let hasher = foldhash::quality::FixedState::with_seed(0);
    hasher.hash_one((hop.port, gateway_of(hop)))
}
