//! The table of routes: by (table, prefix, metric), by longest match, by
//! next hop.
//!
//! A route is a key of 16 bytes (IPv4; 32 for IPv6) and the number of a
//! shared body, in two ordered indexes. Longest match needs no index of
//! its own: the covering prefixes of an address are found from its
//! predecessors in prefix order.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::ordered::Ordered;
use crate::prefix::{Either, Halves, RouteAddress, either};
pub use crate::route_bodies::BodyId;
use crate::route_bodies::{Bodies, Interner};
use crate::row::route::{OtherRoute, OtherRouteKey, Route, RouteBody, RouteRef, SharedRoute};

mod run;

pub use run::{RouteCount, RoutePlace, RouteRun};

/// Where a new route goes among those of the same table, prefix, TOS and
/// metric; the kernel uses the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Before them (`ip route prepend`).
    First,
    /// Behind them (`ip route append`, and rows of a dump in their order).
    Last,
    /// In place of the first of them (`ip route replace`, IPv4).
    InsteadOfFirst,
}

/// The order of routes: by table, then as a MIB walks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key<A> {
    table: u32,
    address: A,
    rest: Rest,
}

/// Length, TOS, metric and place among routes that are equal so far, in
/// this order from the highest bits: one comparison instead of four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Rest(u64);

impl Rest {
    const LAST: Self = Self(u64::MAX);

    fn new(len: u8, tos: u8, metric: u32) -> Self {
        Self(u64::from(len) << 56 | u64::from(tos) << 48 | u64::from(metric) << 16)
    }

    fn len(self) -> u8 {
        (self.0 >> 56) as u8
    }

    fn tos(self) -> u8 {
        (self.0 >> 48) as u8
    }

    fn metric(self) -> u32 {
        (self.0 >> 16) as u32
    }

    fn ordinal(self) -> u16 {
        self.0 as u16
    }

    fn with_ordinal(self, ordinal: u16) -> Self {
        Self(self.0 & !0xffff | u64::from(ordinal))
    }

    /// The last of a length.
    fn last_of(len: u8) -> Self {
        Self(Self::LAST.0 & !(0xff << 56) | u64::from(len) << 56)
    }
}

/// Where numbering of equal routes starts.
const FIRST_ORDINAL: u16 = 0x8000;

/// The routes of one family.
#[derive(Debug, Clone)]
struct Family<A> {
    by_prefix: Ordered<Key<A>, BodyId>,
    by_body: Ordered<(BodyId, Key<A>), ()>,
    /// How many there are, by table.
    counts: Ordered<u32, RouteCount>,
}

impl<A> Default for Family<A> {
    fn default() -> Self {
        Self {
            by_prefix: Ordered::default(),
            by_body: Ordered::default(),
            counts: Ordered::default(),
        }
    }
}

/// Routes of all tables and both families.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    v4: Family<u32>,
    v6: Family<Halves>,
    bodies: Bodies,
    other: Ordered<OtherRouteKey, Arc<OtherRoute>>,
}

/// What putting a route did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Added,
    Replaced(SharedRoute),
    /// It was there already.
    Same,
}

macro_rules! by_family {
    ($self:ident, $prefix:expr, |$family:ident, $address:ident| $body:expr) => {
        match either($prefix.network()) {
            Either::V4($address) => {
                let $family = &$self.v4;
                Box::new($body) as Box<dyn Iterator<Item = RouteRef<'_>> + '_>
            }
            Either::V6($address) => {
                let $family = &$self.v6;
                Box::new($body)
            }
        }
    };
}

impl Routes {
    /// Number of routes, both families. O(1).
    pub fn len(&self) -> usize {
        self.v4.by_prefix.len() + self.v6.by_prefix.len() + self.other.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of IPv4 routes. O(1).
    pub fn len_v4(&self) -> usize {
        self.v4.by_prefix.len()
    }

    /// Number of IPv6 routes. O(1).
    pub fn len_v6(&self) -> usize {
        self.v6.by_prefix.len()
    }

    /// Number of distinct bodies. O(1).
    pub fn distinct_bodies(&self) -> usize {
        self.bodies.len()
    }

    /// All: IPv4 then IPv6, each by table, prefix, TOS, metric.
    pub fn iter(&self) -> impl Iterator<Item = RouteRef<'_>> {
        self.iter_v4().chain(self.iter_v6())
    }

    /// All IPv4 routes in order.
    pub fn iter_v4(&self) -> impl Iterator<Item = RouteRef<'_>> {
        self.v4.by_prefix.iter().filter_map(|row| self.read(row))
    }

    /// All IPv6 routes in order.
    pub fn iter_v6(&self) -> impl Iterator<Item = RouteRef<'_>> {
        self.v6.by_prefix.iter().filter_map(|row| self.read(row))
    }

    /// The routes of one table and the prefix's family, from the prefix on.
    /// A seek, then O(1) a row.
    pub fn from(&self, table: u32, prefix: IpNet) -> Box<dyn Iterator<Item = RouteRef<'_>> + '_> {
        by_family!(self, prefix, |family, address| {
            family
                .by_prefix
                .from(&first_of(table, address, prefix.prefix_len()))
                .take_while(move |(key, _)| key.table == table)
                .filter_map(|row| self.read(row))
        })
    }

    /// The routes of exactly this prefix in a table, in the kernel's order
    /// of preference. A seek, then O(rows returned).
    pub fn exact(&self, table: u32, prefix: IpNet) -> Box<dyn Iterator<Item = RouteRef<'_>> + '_> {
        by_family!(self, prefix, |family, address| {
            let len = prefix.prefix_len();
            family
                .by_prefix
                .from(&first_of(table, address, len))
                .take_while(move |(key, _)| key.is_of(table, address, len))
                .filter_map(|row| self.read(row))
        })
    }

    /// The routes inside a prefix, itself included. A seek, then O(rows
    /// returned) but for shorter prefixes of the same first address.
    pub fn within(&self, table: u32, prefix: IpNet) -> Box<dyn Iterator<Item = RouteRef<'_>> + '_> {
        by_family!(self, prefix, |family, address| {
            let len = prefix.prefix_len();
            let last = address.last(len);
            family
                .by_prefix
                .from(&first_of(table, address, len))
                .take_while(move |(key, _)| key.table == table && key.address <= last)
                .filter(move |(key, _)| key.rest.len() >= len)
                .filter_map(|row| self.read(row))
        })
    }

    /// The routes that cover an address, the longest prefix first, each
    /// prefix's routes in the kernel's order of preference. Some seeks a
    /// prefix: O(log n) each.
    pub fn matching(
        &self,
        table: u32,
        address: IpAddr,
    ) -> Box<dyn Iterator<Item = RouteRef<'_>> + '_> {
        self.covering(table, IpNet::from(address))
    }

    /// The routes that cover a prefix (itself included), the longest first.
    pub fn covering(
        &self,
        table: u32,
        prefix: IpNet,
    ) -> Box<dyn Iterator<Item = RouteRef<'_>> + '_> {
        let len = prefix.prefix_len();
        by_family!(self, prefix, |family, address| {
            Covering {
                family,
                table,
                address,
                len: Some(len),
            }
            .flat_map(move |(at, len)| {
                family
                    .by_prefix
                    .from(&first_of(table, at, len))
                    .take_while(move |(key, _)| key.is_of(table, at, len))
            })
            .filter_map(|row| self.read(row))
        })
    }

    /// The routes over a link. O(log n + rows returned).
    pub fn over_link(&self, link: u32) -> impl Iterator<Item = RouteRef<'_>> {
        self.bodies.over_link(link).flat_map(|id| self.of_body(id))
    }

    /// The routes via a gateway. O(log n + rows returned).
    pub fn via(&self, gateway: IpAddr) -> impl Iterator<Item = RouteRef<'_>> {
        self.bodies.via(gateway).flat_map(|id| self.of_body(id))
    }

    /// The routes that use a next-hop object. O(log n + rows returned).
    pub fn of_nexthop(&self, nexthop: u32) -> impl Iterator<Item = RouteRef<'_>> {
        self.bodies
            .of_nexthop(nexthop)
            .flat_map(|id| self.of_body(id))
    }

    /// The routes that prefer a source address. O(log n + rows returned).
    pub fn preferring(&self, source: IpAddr) -> impl Iterator<Item = RouteRef<'_>> {
        self.bodies
            .preferring(source)
            .flat_map(|id| self.of_body(id))
    }

    /// The distinct bodies over a link: some hundreds where routes are a
    /// million. O(log n + rows returned).
    pub fn bodies_over_link(&self, link: u32) -> impl Iterator<Item = (BodyId, &Arc<RouteBody>)> {
        self.bodies
            .over_link(link)
            .filter_map(|id| Some((id, self.bodies.get(id)?)))
    }

    /// The distinct bodies that use a next-hop object.
    pub fn bodies_of_nexthop(
        &self,
        nexthop: u32,
    ) -> impl Iterator<Item = (BodyId, &Arc<RouteBody>)> {
        self.bodies
            .of_nexthop(nexthop)
            .filter_map(|id| Some((id, self.bodies.get(id)?)))
    }

    /// The routes with a body. O(log n + rows returned).
    pub fn of_body(&self, id: BodyId) -> impl Iterator<Item = RouteRef<'_>> {
        let v4 = self
            .v4
            .of_body(id)
            .filter_map(move |key| self.read((key, &id)));
        let v6 = self
            .v6
            .of_body(id)
            .filter_map(move |key| self.read((key, &id)));
        v4.chain(v6)
    }

    /// The routes of families that are kept as they came.
    pub fn other(&self) -> impl Iterator<Item = &Arc<OtherRoute>> {
        self.other.iter().map(|(_, row)| row)
    }

    /// Bytes of heap: what a route costs, all indexes included.
    pub fn heap_bytes(&self) -> usize {
        self.v4.by_prefix.heap_bytes()
            + self.v4.by_body.heap_bytes()
            + self.v6.by_prefix.heap_bytes()
            + self.v6.by_body.heap_bytes()
            + self.bodies.heap_bytes()
            + self.other.heap_bytes()
    }

    pub(crate) fn put(
        &mut self,
        interner: &mut Interner,
        route: Route,
        placement: Placement,
    ) -> Put {
        let Self { v4, v6, bodies, .. } = self;
        let (table, one) = (route.table, RouteCount::of(&route.body));
        let address = either(route.prefix.network());
        let put = match address {
            Either::V4(address) => v4.put(bodies, interner, address, route, placement),
            Either::V6(address) => v6.put(bodies, interner, address, route, placement),
        };
        let before = match &put {
            Put::Same => return put,
            Put::Added => RouteCount::default(),
            Put::Replaced(old) => RouteCount::of(&old.body),
        };
        match address {
            Either::V4(_) => run::count(&mut v4.counts, table, before, one),
            Either::V6(_) => run::count(&mut v6.counts, table, before, one),
        }
        put
    }

    /// Takes the route out that equals this one, body and all.
    pub(crate) fn remove(&mut self, interner: &mut Interner, route: &Route<&RouteBody>) -> bool {
        let Some(id) = interner.find(route.body) else {
            return false;
        };
        let (table, one) = (route.table, RouteCount::of(route.body));
        let address = either(route.prefix.network());
        let removed = match address {
            Either::V4(address) => self.v4.remove(address, route, id),
            Either::V6(address) => self.v6.remove(address, route, id),
        };
        if removed {
            let none = RouteCount::default();
            match address {
                Either::V4(_) => run::count(&mut self.v4.counts, table, one, none),
                Either::V6(_) => run::count(&mut self.v6.counts, table, one, none),
            }
            interner.give_back(&mut self.bodies, route.body);
        }
        removed
    }

    pub(crate) fn put_other(&mut self, row: Arc<OtherRoute>) -> Option<Arc<OtherRoute>> {
        self.other.insert(row.key.clone(), row)
    }

    pub(crate) fn remove_other(&mut self, key: &OtherRouteKey) -> Option<Arc<OtherRoute>> {
        self.other.remove(key)
    }

    fn read<'a, A: RouteAddress>(&'a self, (key, id): (&Key<A>, &BodyId)) -> Option<RouteRef<'a>> {
        Some(Route {
            table: key.table,
            prefix: key.address.to_net(key.rest.len()),
            tos: key.rest.tos(),
            metric: key.rest.metric(),
            body: self.bodies.get(*id)?,
        })
    }
}

fn first_of<A: RouteAddress>(table: u32, address: A, len: u8) -> Key<A> {
    Key {
        table,
        address: address.masked(len),
        rest: Rest::new(len, 0, 0),
    }
}

impl<A: RouteAddress> Key<A> {
    /// The key of a place; its ordinal is 0, before all.
    fn of_place<B>(address: A, route: &Route<B>) -> Self {
        Self {
            table: route.table,
            address,
            rest: Rest::new(route.prefix.prefix_len(), route.tos, route.metric),
        }
    }

    fn is_of(&self, table: u32, address: A, len: u8) -> bool {
        (self.table, self.address, self.rest.len()) == (table, address, len)
    }

    fn with_ordinal(self, ordinal: u16) -> Self {
        Self {
            rest: self.rest.with_ordinal(ordinal),
            ..self
        }
    }

    fn same_place(&self, other: &Self) -> bool {
        self.with_ordinal(0) == other.with_ordinal(0)
    }
}

impl<A: RouteAddress> Family<A> {
    fn of_body(&self, id: BodyId) -> impl Iterator<Item = &Key<A>> {
        self.of_body_from(id, first_of(0, A::ZERO, 0))
    }

    fn of_body_from(&self, id: BodyId, from: Key<A>) -> impl Iterator<Item = &Key<A>> {
        self.by_body
            .from(&(id, from))
            .take_while(move |((of, _), ())| *of == id)
            .map(|((_, key), ())| key)
    }

    /// The key of a route with this body in this place.
    fn find(&self, id: BodyId, place: Key<A>) -> Option<Key<A>> {
        let ((of, key), ()) = self.by_body.from(&(id, place)).next()?;
        (*of == id && key.same_place(&place)).then_some(*key)
    }

    fn put(
        &mut self,
        bodies: &mut Bodies,
        interner: &mut Interner,
        address: A,
        route: Route,
        placement: Placement,
    ) -> Put {
        let place = Key::of_place(address, &route);
        let last = self.last_of_place(place);
        let same = last.and_then(|_| self.find(interner.find(&route.body)?, place));
        if same.is_some() {
            return Put::Same;
        }
        match placement {
            Placement::Last => self.append(place, last, interner.take(bodies, route.body)),
            Placement::First => self.prepend(place, interner.take(bodies, route.body)),
            Placement::InsteadOfFirst if last.is_some() => {
                return self.replace_first(bodies, interner, place, route);
            }
            Placement::InsteadOfFirst => {
                self.append(place, None, interner.take(bodies, route.body));
            }
        }
        Put::Added
    }

    /// The ordinal of the last route of a place.
    fn last_of_place(&self, place: Key<A>) -> Option<u16> {
        let (key, _) = self.by_prefix.last_to(&place.with_ordinal(u16::MAX))?;
        key.same_place(&place).then(|| key.rest.ordinal())
    }

    fn append(&mut self, place: Key<A>, last: Option<u16>, id: BodyId) {
        let ordinal = match last {
            Some(u16::MAX) => {
                let run = self.take_run(place);
                return self.put_run(place, run.into_iter().chain([id]).collect());
            }
            Some(last) => last + 1,
            None => FIRST_ORDINAL,
        };
        self.put_key(place.with_ordinal(ordinal), id);
    }

    /// The others keep their numbers, as far as there is one before them:
    /// who walks the table names routes by them.
    fn prepend(&mut self, place: Key<A>, id: BodyId) {
        let first = self.by_prefix.from(&place).next().map(|(key, _)| *key);
        let ordinal = match first.filter(|key| key.same_place(&place)) {
            Some(key) => key.rest.ordinal().checked_sub(1),
            None => Some(FIRST_ORDINAL),
        };
        match ordinal {
            Some(ordinal) => self.put_key(place.with_ordinal(ordinal), id),
            None => {
                let run = self.take_run(place);
                self.put_run(place, std::iter::once(id).chain(run).collect());
            }
        }
    }

    fn replace_first(
        &mut self,
        bodies: &mut Bodies,
        interner: &mut Interner,
        place: Key<A>,
        route: Route,
    ) -> Put {
        let first = self.by_prefix.from(&place).next();
        let Some((key, old)) = first.map(|(key, id)| (*key, *id)) else {
            return Put::Same;
        };
        let Some(old_body) = bodies.get(old).cloned() else {
            return Put::Same;
        };
        let replaced = route.with_body(Arc::clone(&old_body));
        let id = interner.take(bodies, route.body);
        self.by_body.remove(&(old, key));
        self.put_key(key, id);
        interner.give_back(bodies, &old_body);
        Put::Replaced(replaced)
    }

    fn remove(&mut self, address: A, route: &Route<&RouteBody>, id: BodyId) -> bool {
        let Some(key) = self.find(id, Key::of_place(address, route)) else {
            return false;
        };
        self.by_body.remove(&(id, key));
        self.by_prefix.remove(&key).is_some()
    }

    fn put_key(&mut self, key: Key<A>, id: BodyId) {
        self.by_prefix.insert(key, id);
        self.by_body.insert((id, key), ());
    }

    fn take_run(&mut self, place: Key<A>) -> Vec<BodyId> {
        let run: Vec<(Key<A>, BodyId)> = self
            .by_prefix
            .from(&place)
            .take_while(|(key, _)| key.same_place(&place))
            .map(|(key, id)| (*key, *id))
            .collect();
        for (key, id) in &run {
            self.by_prefix.remove(key);
            self.by_body.remove(&(*id, *key));
        }
        run.into_iter().map(|(_, id)| id).collect()
    }

    /// Puts a whole run anew, numbered around the middle. A run longer
    /// than the numbers keeps its first 65,536.
    fn put_run(&mut self, place: Key<A>, run: Vec<BodyId>) {
        let first = FIRST_ORDINAL.saturating_sub((run.len() / 2).min(0x8000) as u16);
        for (id, ordinal) in run.into_iter().zip(first..=u16::MAX) {
            self.put_key(place.with_ordinal(ordinal), id);
        }
    }
}

/// The prefixes of a table that cover an address, the longest first.
///
/// The longest covering prefix is the last key at or before (address,
/// length) that covers it. A key found there that does not cover it has
/// `common` bits in common, and no covering prefix can be longer than that:
/// go on from (address masked to `common`, `common`).
struct Covering<'a, A> {
    family: &'a Family<A>,
    table: u32,
    address: A,
    /// Longest length still to be looked for.
    len: Option<u8>,
}

impl<A: RouteAddress> Iterator for Covering<'_, A> {
    type Item = (A, u8);

    fn next(&mut self) -> Option<(A, u8)> {
        loop {
            let len = self.len?;
            let probe = Key {
                table: self.table,
                address: self.address.masked(len),
                rest: Rest::last_of(len),
            };
            let Some((key, _)) = self.family.by_prefix.last_to(&probe) else {
                self.len = None;
                return None;
            };
            if key.table != self.table {
                self.len = None;
                return None;
            }
            let common = key.address.common_bits(self.address);
            let found = key.rest.len();
            if found <= common {
                self.len = found.checked_sub(1);
                return Some((key.address, found));
            }
            self.len = Some(common);
        }
    }
}

#[cfg(test)]
mod tests;
