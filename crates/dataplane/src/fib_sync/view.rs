//! One FIB kept in step with the tables it stands for.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use fib::{Change, Route, Writer};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use table::row::route::table_id;
use table::{AF_INET, AF_INET6, RouteRef, SharedRoute};

use super::decide::{self, Chain, Decided, RouteDecision, Spec};
use super::gateways::Gateways;
use super::hops::Hops;
use super::known::Known;
use crate::forward::Ports;

/// What differs between the families.
pub trait Address: fib::Address {
    /// The prefix, if it is of this family.
    fn of(prefix: IpNet) -> Option<(Self, u8)>;
    /// The other way.
    fn prefix(self, len: u8) -> IpNet;
    /// The last address of a prefix.
    fn last(self, len: u8) -> Self;
    /// `AF_INET` or `AF_INET6`.
    const FAMILY: u8;
}

impl Address for u32 {
    const FAMILY: u8 = AF_INET;

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
}

impl Address for u128 {
    const FAMILY: u8 = AF_INET6;

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
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What all parts of a fill look at while they bring a FIB up to date.
pub struct Context<'a> {
    pub known: &'a Known,
    pub ports: &'a Ports,
    pub hops: &'a mut Hops,
    pub said: &'a mut RouteDecisions,
}

/// What routes said, by their bodies and families: a full table has a
/// million routes and some hundred of these. Good until a link, a port or a
/// next-hop object changes.
#[derive(Debug, Default)]
pub struct RouteDecisions {
    by_body: Map<(usize, u8), (Arc<table::RouteBody>, RouteDecision)>,
    /// Gateways without a link, whose ways were looked for among the
    /// namespace's routes since everything was made anew.
    ways: BTreeSet<IpAddr>,
    gateways: Gateways,
}

/// Bodies remembered at most.
const MAX_DECISIONS: usize = 1 << 16;

impl RouteDecisions {
    pub fn clear(&mut self) {
        self.by_body.clear();
    }

    /// Whether the way to any gateway was looked for.
    pub fn has_ways(&self) -> bool {
        !self.ways.is_empty()
    }

    /// Whether a route of the namespace may be the way to one of them.
    pub fn is_way(&self, route: &SharedRoute) -> bool {
        let (first, last) = (route.prefix.network(), route.prefix.broadcast());
        route.table == table_id::MAIN && self.ways.range(first..=last).next().is_some()
    }

    /// The gateways inside a prefix that have become the host itself, or are it
    /// no more: routes by them say something else.
    pub fn gateways_changed(&mut self, known: &Known, within: Ipv4Net) -> Vec<IpAddr> {
        let changed = self.gateways.changed(known, within);
        if !changed.is_empty() {
            self.clear();
        }
        changed
    }

    /// What a route says, asked once for each body.
    fn ask(&mut self, known: &Known, ports: &Ports, route: &RouteRef<'_>) -> RouteDecision {
        if self.by_body.len() >= MAX_DECISIONS {
            self.by_body.clear();
        }
        let family = match route.prefix {
            IpNet::V4(_) => AF_INET,
            IpNet::V6(_) => AF_INET6,
        };
        // The body is kept, so that its address stays its own.
        let at = Arc::as_ptr(route.body) as usize;
        match self.by_body.entry((at, family)) {
            Entry::Occupied(said) => said.get().1.clone(),
            Entry::Vacant(place) => {
                let hops = route.body.next_hops.as_slice().iter();
                self.ways.extend(hops.filter_map(decide::far_gateway));
                let gateways = &mut self.gateways;
                let says = decide::says(known, ports, gateways, family, route.body);
                place.insert((Arc::clone(route.body), says)).1.clone()
            }
        }
    }
}

/// A FIB of one family, and what was put into it.
pub struct Kept<A: Address> {
    writer: Writer<A>,
    chain: Chain,
    /// The next hop of each prefix.
    entries: Map<(A, u8), u16>,
    /// Prefixes whose decision other prefixes have a part in.
    odd: BTreeSet<(A, u8)>,
    dirty: BTreeSet<(A, u8)>,
    /// Next hops that no entry names any more, and that the FIB may still
    /// name: parts of it may wait for space.
    former: Vec<u16>,
    refused: u64,
    /// Prefixes that packets do not go by as a daemon's route for just this
    /// prefix in the main table says: as one in which table says; `None`: as
    /// none, or there was no room for it.
    unusual: BTreeMap<(A, u8), Option<u32>>,
    /// Whether that is kept: there is a feed to be told of it.
    is_fed: bool,
    /// Parts of the FIB wait for space.
    is_behind: bool,
}

impl<A: Address> Kept<A> {
    pub fn new(writer: Writer<A>, is_fed: bool) -> Self {
        Self {
            writer,
            chain: Chain::default(),
            entries: Map::default(),
            odd: BTreeSet::new(),
            dirty: BTreeSet::new(),
            former: Vec::new(),
            refused: 0,
            unusual: BTreeMap::new(),
            is_fed,
            is_behind: false,
        }
    }

    /// Prefixes in the FIB, and those that it refused.
    pub fn counts(&self) -> (usize, u64) {
        (self.entries.len(), self.refused)
    }

    /// The tables that are asked.
    pub fn tables(&self) -> impl Iterator<Item = u32> {
        self.chain.tables.iter().copied()
    }

    /// Prefixes that are to be decided about.
    pub fn dirty(&self) -> impl Iterator<Item = IpNet> {
        self.dirty.iter().map(|at| at.0.prefix(at.1))
    }

    /// Prefixes that packets may not go by as routes of the main table say.
    pub fn unusual(&self) -> impl Iterator<Item = IpNet> {
        self.unusual.keys().map(|at| at.0.prefix(at.1))
    }

    /// Whether packets go by a daemon's route of a table for just a prefix;
    /// not by one of the other family.
    pub fn takes(&self, table: u32, prefix: IpNet) -> bool {
        let Some(at) = A::of(prefix) else {
            return false;
        };
        match self.unusual.get(&at) {
            Some(by) => *by == Some(table),
            None => table == table_id::MAIN && self.entries.contains_key(&at),
        }
    }

    /// Whether workers do not see all that was decided: parts of the FIB
    /// wait for space.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Notes by whose route packets to a prefix go.
    fn goes_by(&mut self, at: (A, u8), by: Option<u32>) {
        match by {
            _ if !self.is_fed => None,
            Some(table_id::MAIN) => self.unusual.remove(&at),
            by => self.unusual.insert(at, by),
        };
    }

    /// Notes that a route of a table has changed.
    pub fn touch(&mut self, known: &Known, table: u32, prefix: IpNet) {
        let chain = &self.chain.tables;
        let Some(position) = chain.iter().position(|asked| *asked == table) else {
            return;
        };
        let Some((address, len)) = A::of(prefix) else {
            return;
        };
        self.dirty.insert((address, len));
        // What it shadows, or does no longer.
        for later in &chain[position + 1..] {
            let within = known.within(*later, prefix);
            self.dirty
                .extend(within.filter_map(|route| A::of(route.prefix)));
        }
        let until = (address.last(len), u8::MAX);
        let odd: Vec<(A, u8)> = self.odd.range((address, len)..=until).copied().collect();
        self.dirty.extend(odd);
    }

    /// Decides anew about what has changed, and changes the FIB.
    pub fn update(&mut self, around: &mut Context<'_>) {
        if self.dirty.is_empty() {
            return;
        }
        let dirty = std::mem::take(&mut self.dirty);
        let mut changes = Vec::with_capacity(dirty.len());
        for at in dirty {
            let decided = self.decide_if_any(around, at);
            let old = self.entries.get(&at).copied();
            let next_hop = match decided {
                None => None,
                Some(decided) => match self.number(around, &decided, at) {
                    Some(number) => Some(number),
                    None => continue,
                },
            };
            if next_hop == old {
                // It was taken a second time.
                if let Some(number) = next_hop {
                    around.hops.give_back(number);
                }
                continue;
            }
            let (prefix, len) = at;
            changes.push(Change {
                prefix,
                len,
                next_hop,
            });
        }
        self.commit(changes, around.hops);
    }

    /// Makes changes whose next hops are taken. What the FIB refuses stays
    /// as it was, and its next hop is given back.
    fn commit(&mut self, mut changes: Vec<Change<A>>, hops: &mut Hops) {
        // What goes makes room for what comes.
        changes.sort_by_cached_key(|change| {
            let is_new = !self.entries.contains_key(&(change.prefix, change.len));
            (change.next_hop.is_some(), is_new)
        });
        let mut refused = self.apply(&changes).into_iter().peekable();
        for (at, change) in changes.iter().enumerate() {
            if refused.next_if_eq(&at).is_some() {
                self.refused += 1;
                self.goes_by((change.prefix, change.len), None);
                if let Some(number) = change.next_hop {
                    hops.give_back(number);
                }
                continue;
            }
            let key = (change.prefix, change.len);
            self.former.extend(match change.next_hop {
                Some(number) => self.entries.insert(key, number),
                None => self.entries.remove(&key),
            });
        }
        self.settle(hops);
    }

    /// A number for what was decided; `None`, counted, where there is no
    /// room and what was there stays.
    fn number(&mut self, around: &mut Context<'_>, decided: &Decided, at: (A, u8)) -> Option<u16> {
        if let Ok(number) = around.hops.take(&decided.spec, around.ports) {
            self.goes_by(at, decided.by_daemon);
            return Some(number);
        }
        self.goes_by(at, None);
        if self.entries.contains_key(&at) {
            return None;
        }
        // Nothing was there: refused aloud is better than sent along the
        // way of a shorter prefix.
        let refusal = Arc::new(Spec::Unreachable);
        around.hops.take(&refusal, around.ports).ok()
    }

    /// What is decided about a prefix; `None` where no table has a route for
    /// just this one.
    fn decide_if_any(&mut self, around: &mut Context<'_>, at: (A, u8)) -> Option<Decided> {
        let decided = self.decide(around, at);
        // Its own route has decided, mostly: then there is one.
        if decided.is_own || self.has_any(around.known, at.0.prefix(at.1)) {
            return Some(decided);
        }
        self.odd.remove(&at);
        self.unusual.remove(&at);
        None
    }

    fn has_any(&self, known: &Known, prefix: IpNet) -> bool {
        let mut chain = self.chain.tables.iter();
        chain.any(|table| known.has(*table, prefix))
    }

    fn decide(&mut self, around: &mut Context<'_>, at: (A, u8)) -> Decided {
        let (known, ports) = (around.known, around.ports);
        let said = &mut *around.said;
        let says = |route: &RouteRef<'_>| said.ask(known, ports, route);
        let decided = decide::decide(known, &self.chain, at.0.prefix(at.1), says);
        if decided.is_own {
            self.odd.remove(&at);
        } else {
            self.odd.insert(at);
        }
        decided
    }

    /// Changes the FIB; which changes it refused, in order. New prefixes
    /// are behind all others.
    fn apply(&mut self, changes: &[Change<A>]) -> Vec<usize> {
        let mut refused = Vec::new();
        let mut done = 0;
        while let Some(rest) = changes.get(done..).filter(|rest| !rest.is_empty()) {
            match self.writer.apply(rest) {
                // What finds no space is kept, and done when there is some.
                Ok(()) | Err(fib::Error::NoSpace { .. } | fib::Error::Memory { .. }) => break,
                Err(fib::Error::Full { at, .. }) => {
                    refused.extend(done + at..changes.len());
                    break;
                }
                Err(
                    fib::Error::Length { at, .. }
                    | fib::Error::HostBits { at, .. }
                    | fib::Error::NextHop { at, .. },
                ) => {
                    // None of the slice was made: what stands before it is
                    // made by itself.
                    let before = changes.get(done..done + at).unwrap_or_default();
                    if let Err(fib::Error::Full { at, .. }) = self.writer.apply(before) {
                        refused.extend(done + at..changes.len());
                        break;
                    }
                    refused.push(done + at);
                    done += at + 1;
                }
            }
        }
        refused
    }

    /// Whether the FIB may name former next hops.
    #[cfg(test)]
    pub fn is_compiled(&self) -> bool {
        self.former.is_empty()
    }

    /// Lets the FIB take back what readers no longer see, and do what had
    /// no room before. Once it names no former next hop, they are given
    /// back.
    pub fn settle(&mut self, hops: &mut Hops) {
        self.is_behind = self.writer.apply(&[]).is_err();
        if !self.is_behind {
            for number in self.former.drain(..) {
                hops.give_back(number);
            }
        }
    }

    /// Makes everything anew from the tables; readers go on with the old
    /// until it is done. O(routes), some 0.5 µs each.
    pub fn rebuild(&mut self, around: &mut Context<'_>, chain: Chain) {
        self.chain = chain;
        self.dirty.clear();
        self.odd.clear();
        self.unusual.clear();
        let former = std::mem::take(&mut self.entries);
        // Where earlier tables of the chain have routes: from, to.
        let mut shadows: Vec<(A, A)> = Vec::new();
        for position in 0..self.chain.tables.len() {
            let table = self.chain.tables[position];
            let mut covered: Vec<(A, A)> = Vec::new();
            let mut last = None;
            for route in around.known.all(table, A::FAMILY) {
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
                    true => around.said.ask(around.known, around.ports, &route),
                    false => RouteDecision::Nothing,
                };
                let decided = match says {
                    RouteDecision::Goes(spec) => Decided {
                        by_daemon: decide::by_daemon(&route, &spec),
                        spec,
                        is_own: true,
                    },
                    _ => self.decide(around, at),
                };
                if self.entries.contains_key(&at) {
                    continue;
                }
                if let Some(number) = self.number(around, &decided, at) {
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
        match self.writer.build(routes) {
            Ok(()) | Err(fib::Error::NoSpace { .. }) => {
                self.former.extend(former.into_values());
                self.settle(around.hops);
            }
            // More than it may hold, and nothing was made.
            Err(_) => {
                let wanted = std::mem::replace(&mut self.entries, former);
                self.approach(wanted, around.hops);
            }
        }
    }

    /// Changes what is there into what is wanted, as far as there is room:
    /// prefixes that are there go on, short ones come first.
    fn approach(&mut self, wanted: Map<(A, u8), u16>, hops: &mut Hops) {
        let gone = self.entries.keys().filter(|at| !wanted.contains_key(at));
        let mut changes: Vec<Change<A>> = gone
            .map(|&(prefix, len)| Change {
                prefix,
                len,
                next_hop: None,
            })
            .collect();
        let mut wanted: Vec<((A, u8), u16)> = wanted.into_iter().collect();
        wanted.sort_unstable_by_key(|&((prefix, len), _)| (len, prefix));
        for ((prefix, len), number) in wanted {
            if self.entries.get(&(prefix, len)) == Some(&number) {
                hops.give_back(number);
                continue;
            }
            changes.push(Change {
                prefix,
                len,
                next_hop: Some(number),
            });
        }
        self.commit(changes, hops);
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
