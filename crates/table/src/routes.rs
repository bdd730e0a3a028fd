//! The table of routes: by (table, prefix, metric), by longest match, by
//! next hop.
//!
//! A route is a key of 18 bytes (IPv4; 30 for IPv6) and the number of a
//! shared body, in two ordered indexes. Longest match needs no index of
//! its own: the covering prefixes of an address are found from its
//! predecessors in prefix order.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::ordered::Ordered;
use crate::prefix::{Either, Halves, RouteAddress, either};
use crate::route_bodies::{Bodies, Interner};
pub use crate::route_bodies::{BodyId, BodyKey};
use crate::row::route::{OtherRoute, OtherRouteKey, Route, RouteBody, RouteRef, SharedRoute};

mod family;
mod key;
mod load;
mod placement;
mod rewrite;
mod run;
mod stale;

use family::{Covering, Family};
use key::{Key, RunKey};
pub use load::RouteLoad;
pub use placement::Placement;
pub use run::{RouteCount, RoutePlace, RouteRun};
pub(crate) use stale::StaleRoutes;

/// A run that is looked at whole rather than by its bodies.
const SHORT_RUN: usize = 16;

/// Routes of all tables and both families.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    v4: Family<u32>,
    v6: Family<Halves>,
    bodies: Bodies,
    other: Ordered<OtherRouteKey, Arc<OtherRoute>>,
}

/// Two lists of routes, each with the longest prefix first, as one; of one
/// length those of the first list come first.
pub fn longest_first<'a>(
    first: impl Iterator<Item = RouteRef<'a>> + 'a,
    second: impl Iterator<Item = RouteRef<'a>> + 'a,
) -> Box<dyn Iterator<Item = RouteRef<'a>> + 'a> {
    let (mut first, mut second) = (first.peekable(), second.peekable());
    Box::new(std::iter::from_fn(move || {
        let len = |route: &RouteRef<'_>| route.prefix.prefix_len();
        if first.peek().map(len) >= second.peek().map(len) {
            first.next()
        } else {
            second.next()
        }
    }))
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
                .from(&Key::first_of(table, address, prefix.prefix_len()))
                .take_while(move |(key, _)| key.run().table() == table)
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
                .from(&Key::first_of(table, address, len))
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
                .from(&Key::first_of(table, address, len))
                .take_while(move |(key, _)| {
                    key.run().table() == table && key.run().address() <= last
                })
                .filter(move |(key, _)| key.run().len() >= len)
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
            .flatten()
            .filter_map(|row| self.read(row))
        })
    }

    /// The routes of two tables that cover a prefix, as if the tables were
    /// one: the longest first, of one length those of the first table.
    pub fn covering_in_both(
        &self,
        [first, second]: [u32; 2],
        prefix: IpNet,
    ) -> Box<dyn Iterator<Item = RouteRef<'_>> + '_> {
        longest_first(self.covering(first, prefix), self.covering(second, prefix))
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

    /// The distinct bodies of several next hops, one of them over a link,
    /// that name those themselves. O(log n + rows returned).
    pub fn bodies_of_several_over_link(
        &self,
        link: u32,
    ) -> impl Iterator<Item = (BodyId, &Arc<RouteBody>)> {
        self.bodies
            .several_over_link(link)
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
            .filter_map(move |key| self.read((&key, &id)));
        let v6 = self
            .v6
            .of_body(id)
            .filter_map(move |key| self.read((&key, &id)));
        v4.chain(v6)
    }

    /// The routes of a route's run (same table, prefix, TOS and metric)
    /// that could be the same to a kernel, or parts of it, in the kernel's
    /// order: those that share its source (IPv4), its next-hop object or a
    /// next hop's link, and others. A short run is given whole. O(log n)
    /// for each body of those, and never more than O(run).
    pub fn beside(&self, route: &Route) -> Vec<RouteRef<'_>> {
        match either(route.prefix.network()) {
            Either::V4(address) => self.beside_in(&self.v4, address, route),
            Either::V6(address) => self.beside_in(&self.v6, address, route),
        }
    }

    fn beside_in<'a, A: RouteAddress>(
        &'a self,
        family: &'a Family<A>,
        address: A,
        route: &Route,
    ) -> Vec<RouteRef<'a>> {
        let run = RunKey::of(address, route);
        let len = family.run_len(run);
        let whole = || family.run(run).filter_map(|row| self.read(row)).collect();
        if len <= SHORT_RUN {
            return whole();
        }
        let is_v4 = matches!(route.prefix, IpNet::V4(_));
        let mut ids = self.bodies.like(&route.body, is_v4, len);
        if ids.len() == len {
            return whole();
        }
        ids.sort_unstable();
        ids.dedup();
        let found = |id: BodyId| Some((family.find(id, run)?, id));
        let mut found: Vec<_> = ids.into_iter().filter_map(found).collect();
        found.sort_unstable_by_key(|(key, _)| key.ordinal());
        let routes = found.iter().filter_map(|(key, id)| self.read((key, id)));
        routes.collect()
    }

    /// The routes of families that are kept as they came.
    pub fn other(&self) -> impl Iterator<Item = &Arc<OtherRoute>> {
        self.other.iter().map(|(_, row)| row)
    }

    /// Bytes of heap: what a route costs, all indexes included.
    pub fn heap_bytes(&self) -> usize {
        self.v4.heap_bytes()
            + self.v6.heap_bytes()
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

    /// Whether [`Routes::put`] would make the table longer. O(log n).
    pub(crate) fn would_add(
        &self,
        interner: &Interner,
        route: &Route,
        placement: Placement,
    ) -> bool {
        match either(route.prefix.network()) {
            Either::V4(address) => self.v4.would_add(interner, address, route, placement),
            Either::V6(address) => self.v6.would_add(interner, address, route, placement),
        }
    }

    /// The ordinal of the route that equals this one, body and all.
    pub(crate) fn ordinal_of(&self, interner: &Interner, route: &Route<&RouteBody>) -> Option<u32> {
        let id = interner.find(route.body)?;
        match either(route.prefix.network()) {
            Either::V4(address) => {
                let key = self.v4.find(id, RunKey::of(address, route))?;
                Some(key.ordinal())
            }
            Either::V6(address) => {
                let key = self.v6.find(id, RunKey::of(address, route))?;
                Some(key.ordinal())
            }
        }
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

    pub(crate) fn get_other(&self, key: &OtherRouteKey) -> Option<&Arc<OtherRoute>> {
        self.other.get(key)
    }

    pub(crate) fn put_other(&mut self, row: Arc<OtherRoute>) -> Option<Arc<OtherRoute>> {
        self.other.insert(row.key.clone(), row)
    }

    pub(crate) fn remove_other(&mut self, key: &OtherRouteKey) -> Option<Arc<OtherRoute>> {
        self.other.remove(key)
    }

    fn read<'a, A: RouteAddress>(&'a self, (key, id): (&Key<A>, &BodyId)) -> Option<RouteRef<'a>> {
        let run = key.run();
        Some(Route {
            table: run.table(),
            prefix: run.address().to_net(run.len()),
            tos: run.tos(),
            metric: run.metric(),
            body: self.bodies.get(*id)?,
        })
    }
}

#[cfg(test)]
mod tests;
