//! One FIB kept in step with the tables it stands for.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fib::{Change, Route, Writer};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use table::{AF_INET, AF_INET6, RouteRef, Tables};

use super::decide::{self, Decided, Says, Spec};
use super::hops::Hops;
use crate::forward::Ports;

/// What differs between the families.
pub trait Address: fib::Address {
    /// The prefix, if it is of this family.
    fn of(prefix: IpNet) -> Option<(Self, u8)>;
    /// The other way.
    fn prefix(self, len: u8) -> IpNet;
    /// The last address of a prefix.
    fn last(self, len: u8) -> Self;
    /// All routes of the family in a table.
    fn routes(tables: &Tables, table: u32) -> Box<dyn Iterator<Item = RouteRef<'_>> + '_>;
}

impl Address for u32 {
    fn of(prefix: IpNet) -> Option<(Self, u8)> {
        match prefix {
            IpNet::V4(net) => Some((net.network().to_bits(), net.prefix_len())),
            IpNet::V6(_) => None,
        }
    }

    fn prefix(self, len: u8) -> IpNet {
        Ipv4Net::new_assert(self.into(), len.min(32)).into()
    }

    fn last(self, len: u8) -> Self {
        self | Self::MAX.checked_shr(len.into()).unwrap_or(0)
    }

    fn routes(tables: &Tables, table: u32) -> Box<dyn Iterator<Item = RouteRef<'_>> + '_> {
        let routes = tables.routes.from(table, 0_u32.prefix(0));
        Box::new(routes.take_while(move |route| is_of(route, table, true)))
    }
}

impl Address for u128 {
    fn of(prefix: IpNet) -> Option<(Self, u8)> {
        match prefix {
            IpNet::V6(net) => Some((net.network().to_bits(), net.prefix_len())),
            IpNet::V4(_) => None,
        }
    }

    fn prefix(self, len: u8) -> IpNet {
        Ipv6Net::new_assert(self.into(), len.min(128)).into()
    }

    fn last(self, len: u8) -> Self {
        self | Self::MAX.checked_shr(len.into()).unwrap_or(0)
    }

    fn routes(tables: &Tables, table: u32) -> Box<dyn Iterator<Item = RouteRef<'_>> + '_> {
        let routes = tables.routes.from(table, 0_u128.prefix(0));
        Box::new(routes.take_while(move |route| is_of(route, table, false)))
    }
}

fn is_of(route: &RouteRef<'_>, table: u32, is_v4: bool) -> bool {
    route.table == table && matches!(route.prefix, IpNet::V4(_)) == is_v4
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What all parts of a fill look at while they bring a FIB up to date.
pub struct Surroundings<'a> {
    pub tables: &'a Tables,
    pub ports: &'a Ports,
    pub hops: &'a mut Hops,
    pub said: &'a mut Said,
}

/// What routes said, by their bodies and families: a full table has a million routes and
/// some hundred of these. Good until a link, a port or a next-hop object
/// changes.
#[derive(Debug, Default)]
pub struct Said(Map<(usize, u8), (Arc<table::RouteBody>, Says)>);

/// Bodies remembered at most.
const MAX_SAID: usize = 1 << 16;

impl Said {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// What a route says, asked once for each body.
    fn ask(&mut self, tables: &Tables, ports: &Ports, route: &RouteRef<'_>) -> Says {
        if self.0.len() >= MAX_SAID {
            self.0.clear();
        }
        let family = match route.prefix {
            ipnet::IpNet::V4(_) => AF_INET,
            ipnet::IpNet::V6(_) => AF_INET6,
        };
        // The body is kept, so that its address stays its own.
        let at = Arc::as_ptr(route.body) as usize;
        match self.0.entry((at, family)) {
            Entry::Occupied(said) => said.get().1.clone(),
            Entry::Vacant(place) => {
                let says = decide::says(tables, ports, family, route.body);
                place.insert((Arc::clone(route.body), says)).1.clone()
            }
        }
    }
}

/// A FIB of one family, and what was put into it.
pub struct Kept<A: Address> {
    writer: Writer<A>,
    chain: Vec<u32>,
    /// The next hop of each prefix.
    entries: Map<(A, u8), u16>,
    /// Prefixes whose decision other prefixes have a part in.
    odd: BTreeSet<(A, u8)>,
    dirty: BTreeSet<(A, u8)>,
    refused: u64,
}

impl<A: Address> Kept<A> {
    pub fn new(writer: Writer<A>) -> Self {
        Self {
            writer,
            chain: Vec::new(),
            entries: Map::default(),
            odd: BTreeSet::new(),
            dirty: BTreeSet::new(),
            refused: 0,
        }
    }

    /// Prefixes in the FIB, and those that it refused.
    pub fn counts(&self) -> (usize, u64) {
        (self.entries.len(), self.refused)
    }

    /// Notes that a route of a table has changed.
    pub fn touch(&mut self, tables: &Tables, table: u32, prefix: IpNet) {
        let Some(position) = self.chain.iter().position(|asked| *asked == table) else {
            return;
        };
        let Some((address, len)) = A::of(prefix) else {
            return;
        };
        self.dirty.insert((address, len));
        // What it shadows, or does no longer.
        for later in &self.chain[position + 1..] {
            let within = tables.routes.within(*later, prefix);
            self.dirty
                .extend(within.filter_map(|route| A::of(route.prefix)));
        }
        let until = (address.last(len), u8::MAX);
        let odd: Vec<(A, u8)> = self.odd.range((address, len)..=until).copied().collect();
        self.dirty.extend(odd);
    }

    /// Decides anew about what has changed, and changes the FIB.
    pub fn update(&mut self, around: &mut Surroundings<'_>) {
        if self.dirty.is_empty() {
            return;
        }
        let dirty = std::mem::take(&mut self.dirty);
        let mut changes = Vec::with_capacity(dirty.len());
        let mut former = Vec::new();
        for at in dirty {
            let decided = self.decide_if_any(around, at);
            let place = self.entries.entry(at);
            let old = match &place {
                Entry::Occupied(number) => Some(*number.get()),
                Entry::Vacant(_) => None,
            };
            let next_hop = match decided {
                None => None,
                Some(decided) => match number(around, &decided, old) {
                    Some(number) => Some(number),
                    None => continue,
                },
            };
            match (next_hop, place) {
                (Some(number), place) => drop(place.insert_entry(number)),
                (None, Entry::Occupied(place)) => drop(place.remove()),
                (None, Entry::Vacant(_)) => {}
            }
            former.extend(old);
            if next_hop != old {
                let (prefix, len) = at;
                changes.push(Change {
                    prefix,
                    len,
                    next_hop,
                });
            }
        }
        self.apply(&changes);
        for number in former {
            around.hops.give_back(number);
        }
    }

    /// What is decided about a prefix; `None` where no table has a route for
    /// just this one.
    fn decide_if_any(&mut self, around: &mut Surroundings<'_>, at: (A, u8)) -> Option<Decided> {
        let decided = self.decide(around, at);
        // Its own route has decided, mostly: then there is one.
        if decided.is_own || self.has_any(around.tables, at.0.prefix(at.1)) {
            return Some(decided);
        }
        self.odd.remove(&at);
        None
    }

    fn has_any(&self, tables: &Tables, prefix: IpNet) -> bool {
        let mut chain = self.chain.iter();
        chain.any(|table| tables.routes.exact(*table, prefix).next().is_some())
    }

    fn decide(&mut self, around: &mut Surroundings<'_>, at: (A, u8)) -> Decided {
        let (tables, ports) = (around.tables, around.ports);
        let said = &mut *around.said;
        let says = |route: &RouteRef<'_>| said.ask(tables, ports, route);
        let decided = decide::decide(tables, &self.chain, at.0.prefix(at.1), says);
        if decided.is_own {
            self.odd.remove(&at);
        } else {
            self.odd.insert(at);
        }
        decided
    }

    /// Changes the FIB; what it refuses is counted and passed over.
    fn apply(&mut self, mut changes: &[Change<A>]) {
        while !changes.is_empty() {
            let done = match self.writer.apply(changes) {
                Ok(()) => break,
                Err(fib::Error::Full { at, .. }) => at + 1,
                Err(
                    fib::Error::Length { at, .. }
                    | fib::Error::HostBits { at, .. }
                    | fib::Error::NextHop { at, .. },
                ) => {
                    // None of the slice was made.
                    let (before, _) = changes.split_at(at.min(changes.len()));
                    self.refused += u64::from(self.writer.apply(before).is_err());
                    at + 1
                }
                // All of it is kept, and done when there is room.
                Err(_) => {
                    self.refused += 1;
                    break;
                }
            };
            self.refused += 1;
            changes = changes.get(done..).unwrap_or_default();
        }
    }

    /// Lets the FIB take back what readers no longer see, and do what had
    /// no room before.
    pub fn settle(&mut self) {
        if self.writer.apply(&[]).is_err() {
            self.refused += 1;
        }
    }

    /// Makes everything anew from the tables; readers go on with the old
    /// until it is done. O(routes), some 0.5 µs each.
    pub fn rebuild(&mut self, around: &mut Surroundings<'_>, chain: Vec<u32>) {
        self.chain = chain;
        self.dirty.clear();
        self.odd.clear();
        let former = std::mem::take(&mut self.entries);
        // Where earlier tables of the chain have routes: from, to.
        let mut shadows: Vec<(A, A)> = Vec::new();
        for position in 0..self.chain.len() {
            let table = self.chain[position];
            let mut covered: Vec<(A, A)> = Vec::new();
            let mut last = None;
            for route in A::routes(around.tables, table) {
                let Some(at) = A::of(route.prefix).filter(|at| last != Some(*at)) else {
                    continue;
                };
                last = Some(at);
                let (from, to) = (at.0, at.0.last(at.1));
                if covered.last().is_none_or(|(_, end)| *end < from) {
                    covered.push((from, to));
                }
                let in_front = shadows.partition_point(|(_, end)| *end < from);
                let is_apart = shadows.get(in_front).is_none_or(|(start, _)| *start > to);
                let says = match is_apart && decide::counts(&route) {
                    true => around.said.ask(around.tables, around.ports, &route),
                    false => Says::Nothing,
                };
                let decided = match says {
                    Says::Goes(spec) => Decided { spec, is_own: true },
                    _ => self.decide(around, at),
                };
                if self.entries.contains_key(&at) {
                    continue;
                }
                if let Some(number) = number(around, &decided, None) {
                    self.entries.insert(at, number);
                }
            }
            shadows.extend(covered);
            merge(&mut shadows);
        }
        let routes = self
            .entries
            .iter()
            .map(|(&(prefix, len), &next_hop)| Route {
                prefix,
                len,
                next_hop,
            });
        if self.writer.build(routes).is_err() {
            self.refused += 1;
        }
        for number in former.into_values() {
            around.hops.give_back(number);
        }
    }
}

/// A number for what was decided; `None`, counted, where there is no
/// room and what was there stays.
fn number(around: &mut Surroundings<'_>, decided: &Decided, old: Option<u16>) -> Option<u16> {
    match around.hops.take(&decided.spec, around.ports) {
        Ok(number) => Some(number),
        Err(_) if old.is_some() => None,
        // Nothing was there: refused aloud is better than sent along
        // the way of a shorter prefix.
        Err(_) => {
            let refusal = Arc::new(Spec::Unreachable);
            around.hops.take(&refusal, around.ports).ok()
        }
    }
}

/// Sorts ranges and joins those that overlap.
fn merge<A: Ord + Copy>(ranges: &mut Vec<(A, A)>) {
    ranges.sort_unstable();
    let mut merged: Vec<(A, A)> = Vec::with_capacity(ranges.len());
    for &(from, to) in ranges.iter() {
        match merged.last_mut() {
            Some((_, end)) if *end >= from => *end = (*end).max(to),
            _ => merged.push((from, to)),
        }
    }
    *ranges = merged;
}
