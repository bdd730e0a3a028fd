//! The leases there are, in the order of who has them, and of their ends.
//! For the engine, which holds a rule for each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use hashbrown::HashMap;

use super::natpmp;
use super::{ALL_HOSTS, CLIENT_PORT, PORT, PcpConfig, datagram, message};
use crate::rules::{Handle, Redirect};

/// A lease is its inside end's. All in host order; leases of one host stand
/// together, those of one protocol in the order of their ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub inside: Ipv4Addr,
    pub protocol: u8,
    pub port: u16,
    /// PEER's; `None`: for all.
    pub remote: Option<(Ipv4Addr, u16)>,
}

impl Key {
    /// That of a mapping for all remote ends: the first of those that differ
    /// by the remote end alone.
    pub fn for_all(inside: Ipv4Addr, protocol: u8, port: u16) -> Self {
        Self {
            inside,
            protocol,
            port,
            remote: None,
        }
    }

    /// Behind all that a host may have of a protocol.
    fn last(inside: Ipv4Addr, protocol: u8) -> Self {
        Self {
            remote: Some((Ipv4Addr::BROADCAST, u16::MAX)),
            ..Self::for_all(inside, protocol, u16::MAX)
        }
    }
}

/// What was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub nonce: [u8; 12],
    /// How many ports in a row, from the key's on.
    pub ports: u16,
    pub alias: Ipv4Addr,
    pub alias_port: u16,
    /// By the caller's clock, milliseconds.
    pub until_millis: u64,
    pub handle: Handle,
    /// How each port counts for its subscriber.
    pub mark: u32,
}

/// An alias port: protocol, address, and port in host order.
pub type Port = (u8, Ipv4Addr, u16);

impl Lease {
    fn ports_of(&self, key: &Key) -> impl Iterator<Item = Port> + use<> {
        let (protocol, alias, first) = (key.protocol, self.alias, self.alias_port);
        (0..self.ports).map(move |step| (protocol, alias, first.wrapping_add(step)))
    }
}

/// Announcements that follow a start (RFC 6886 §3.2.1): the first at once,
/// each pause twice the one before.
const ANNOUNCEMENTS: u32 = 10;
const FIRST_PAUSE_MILLIS: u64 = 250;

/// See the module.
#[derive(Debug)]
pub struct Leases {
    pub config: PcpConfig,
    by_key: BTreeMap<Key, Lease>,
    by_end: BTreeSet<(u64, Key)>,
    /// How many have an alias port: one for all, and any for remotes.
    by_port: HashMap<Port, u32>,
    /// Since when what was granted is known, in time that only goes forward;
    /// milliseconds.
    begun_millis: u64,
    /// How many announcements were made, and when the next is due.
    announced: u32,
    due_millis: u64,
    /// Room for an answer.
    pub answer: Vec<u8>,
}

impl Leases {
    /// None yet.
    pub fn new(config: &PcpConfig) -> Self {
        Self {
            config: config.clone(),
            by_key: BTreeMap::new(),
            by_end: BTreeSet::new(),
            by_port: HashMap::new(),
            begun_millis: 0,
            announced: 0,
            due_millis: 0,
            answer: Vec::with_capacity(message::MOST_BYTES),
        }
    }

    /// How long what was granted is known, seconds (RFC 6887 §8.5).
    pub fn epoch_secs(&self, run_millis: u64) -> u32 {
        let secs = self.epoch_millis(run_millis) / 1_000;
        u32::try_from(secs).unwrap_or(u32::MAX)
    }

    /// What was granted is not known any more, or not as it was: clients are
    /// to ask again.
    pub fn begin_anew(&mut self, run_millis: u64) {
        self.begun_millis = run_millis;
        self.announced = 0;
        self.due_millis = run_millis;
    }

    /// What was granted is known still: it was kept over a restart, and
    /// nobody has to ask again. `epoch_millis`: how long it is known.
    pub fn go_on(&mut self, run_millis: u64, epoch_millis: u64) {
        self.begun_millis = run_millis.saturating_sub(epoch_millis);
        self.announced = 2 * ANNOUNCEMENTS;
    }

    /// How long what was granted is known, milliseconds.
    pub fn epoch_millis(&self, run_millis: u64) -> u64 {
        run_millis.saturating_sub(self.begun_millis)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether another one fits.
    pub fn is_full(&self) -> bool {
        self.len() >= self.config.most_leases
    }

    pub fn get(&self, key: &Key) -> Option<&Lease> {
        self.by_key.get(key)
    }

    /// The lease for all of an inside end, whoever the remote; with `any`
    /// one for another remote will do.
    pub fn at(&self, key: &Key, any: bool) -> Option<&Lease> {
        let of_all = Key {
            remote: None,
            ..*key
        };
        let last = Key {
            remote: Some((Ipv4Addr::BROADCAST, u16::MAX)),
            ..*key
        };
        match any {
            false => self.by_key.get(&of_all),
            true => self.by_key.range(of_all..=last).next().map(|(_, of)| of),
        }
    }

    /// Enters one, or enters it again as it is now.
    pub fn put(&mut self, key: Key, lease: Lease) {
        self.by_end.insert((lease.until_millis, key));
        let former = self.by_key.insert(key, lease);
        for port in lease.ports_of(&key) {
            *self.by_port.entry(port).or_default() += 1;
        }
        if let Some(former) = former {
            self.forget_ports(&key, &former);
            if former.until_millis != lease.until_millis {
                self.by_end.remove(&(former.until_millis, key));
            }
        }
    }

    fn forget_ports(&mut self, key: &Key, lease: &Lease) {
        for port in lease.ports_of(key) {
            let left = self.by_port.get(&port).map_or(0, |count| count - 1);
            match left {
                0 => drop(self.by_port.remove(&port)),
                left => drop(self.by_port.insert(port, left)),
            }
        }
    }

    /// Whether somebody has a lease of an alias port. O(1).
    pub fn has_port(&self, port: Port) -> bool {
        self.by_port.contains_key(&port)
    }

    pub fn remove(&mut self, key: &Key) -> Option<Lease> {
        let lease = self.by_key.remove(key)?;
        self.by_end.remove(&(lease.until_millis, *key));
        self.forget_ports(key, &lease);
        Some(lease)
    }

    /// One that is over by that time.
    pub fn next_over(&self, now_millis: u64) -> Option<Key> {
        let (until, key) = self.by_end.first()?;
        (*until <= now_millis).then_some(*key)
    }

    /// Those of a host and a protocol (0: all), in order.
    pub fn of(&self, inside: Ipv4Addr, protocol: u8) -> impl Iterator<Item = (&Key, &Lease)> {
        let last = match protocol {
            0 => u8::MAX,
            protocol => protocol,
        };
        let from = Key::for_all(inside, protocol, 0);
        self.by_key.range(from..=Key::last(inside, last))
    }

    /// Ports that a host has by them. O(its leases), of which there are no
    /// more than it may have ports.
    pub fn ports_of(&self, inside: Ipv4Addr) -> u32 {
        let leases = self.of(inside, 0);
        leases.map(|(_, lease)| u32::from(lease.ports)).sum()
    }

    /// How many ports from an inside one on are of no lease for all
    /// remotes, `most` at most.
    pub fn room(&self, key: &Key, most: u16) -> u16 {
        let of_all = |(key, _): &(&Key, &Lease)| key.remote.is_none();
        let mut room = most;
        for (other, lease) in self.of(key.inside, key.protocol).filter(of_all) {
            let end = u32::from(other.port) + u32::from(lease.ports);
            if other.port > key.port {
                room = room.min(other.port - key.port);
            } else if end > u32::from(key.port) {
                room = 0;
            }
        }
        room.min((u16::MAX - key.port).saturating_add(1))
    }

    /// Those of the inside end that a redirect begins at.
    pub fn of_port(&self, redirect: &Redirect) -> impl Iterator<Item = (&Key, &Lease)> {
        let inside = redirect.inside.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let protocol = redirect.protocol.unwrap_or(0);
        let first = Key::for_all(inside, protocol, redirect.inside_port);
        let last = Key {
            remote: Some((Ipv4Addr::BROADCAST, u16::MAX)),
            ..first
        };
        self.by_key.range(first..=last)
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Lease)> {
        self.by_key.iter()
    }

    /// Writes the next announcement that is due, a packet for all inside:
    /// PCP's, and with one outside address for all also NAT-PMP's. Its length.
    pub fn announce(
        &mut self,
        alias: Option<Ipv4Addr>,
        room: &mut [u8],
        run_millis: u64,
    ) -> Option<usize> {
        let own = *self.config.addresses.first()?;
        let is_due = self.announced < 2 * ANNOUNCEMENTS && run_millis >= self.due_millis;
        if !is_due {
            return None;
        }
        let epoch = self.epoch_secs(run_millis);
        let of_pcp = self.announced.is_multiple_of(2);
        self.announced += 1;
        match (of_pcp, alias) {
            (true, _) => message::announce(&mut self.answer, epoch),
            (false, Some(alias)) => natpmp::address(&mut self.answer, alias, epoch),
            (false, None) => self.answer.clear(),
        }
        if !of_pcp {
            let doubled = FIRST_PAUSE_MILLIS << (self.announced / 2 - 1);
            self.due_millis = run_millis + doubled;
        }
        if self.answer.is_empty() {
            return None;
        }
        let to = (ALL_HOSTS, CLIENT_PORT);
        datagram::write(room, (own, PORT), to, &self.answer)
    }
}
