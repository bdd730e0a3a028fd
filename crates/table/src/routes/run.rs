//! A table's routes in order from any place on, with their places; and how
//! many there are. For who names a route by its place, as SNMP does.

use ipnet::IpNet;

use super::Routes;
use super::family::{FIRST_ORDINAL, Family};
use super::key::{Key, RunKey};
use crate::ordered::{Iter, Ordered};
use crate::prefix::{Either, Halves, RouteAddress, either};
use crate::route_bodies::{BodyId, BodyKey};
use crate::row::route::{RouteBody, RouteRef};

/// Where a route stands in its table. Places of one family order as the
/// routes do: by address, length, TOS, metric, ordinal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoutePlace {
    /// Address and length.
    pub prefix: IpNet,
    /// `rtm_tos`.
    pub tos: u8,
    /// `RTA_PRIORITY`.
    pub metric: u32,
    /// Tells routes apart that are equal so far. A route keeps it as long
    /// as it is there (unless two billion are put before or behind it).
    pub ordinal: u32,
}

impl RoutePlace {
    /// The ordinal of a route that had nobody beside it when it came.
    pub const FIRST_ORDINAL: u32 = FIRST_ORDINAL;

    /// Before all routes of a prefix.
    pub fn first_of(prefix: IpNet) -> Self {
        Self {
            prefix,
            tos: 0,
            metric: 0,
            ordinal: 0,
        }
    }
}

/// How many routes a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteCount {
    /// Routes.
    pub routes: usize,
    /// Their next hops; a route without counts as one.
    pub hops: usize,
}

impl RouteCount {
    pub(super) fn of(body: &RouteBody) -> Self {
        Self {
            routes: 1,
            hops: body.next_hops.as_slice().len().max(1),
        }
    }
}

/// Takes `before` off a table's count and adds `after`. O(log tables).
pub(super) fn count(
    counts: &mut Ordered<u32, RouteCount>,
    table: u32,
    before: RouteCount,
    after: RouteCount,
) {
    if before == after {
        return;
    }
    let old = counts.get(&table).copied().unwrap_or_default();
    let new = RouteCount {
        routes: (old.routes + after.routes).saturating_sub(before.routes),
        hops: (old.hops + after.hops).saturating_sub(before.hops),
    };
    if new == RouteCount::default() {
        counts.remove(&table);
    } else {
        counts.insert(table, new);
    }
}

/// Routes of one table and family in order, each with its place.
#[derive(Debug, Clone)]
pub struct RouteRun<'a> {
    routes: &'a Routes,
    table: u32,
    rows: Rows<'a>,
}

#[derive(Debug, Clone)]
enum Rows<'a> {
    V4(Iter<'a, Key<u32>, BodyId>),
    V6(Iter<'a, Key<Halves>, BodyId>),
}

impl<'a> Iterator for RouteRun<'a> {
    type Item = (u32, RouteRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (ordinal, route) = match &mut self.rows {
            Rows::V4(rows) => read(self.routes, rows.next()?)?,
            Rows::V6(rows) => read(self.routes, rows.next()?)?,
        };
        (route.table == self.table).then_some((ordinal, route))
    }
}

fn read<'a, A: RouteAddress>(
    routes: &'a Routes,
    row: (&Key<A>, &BodyId),
) -> Option<(u32, RouteRef<'a>)> {
    Some((row.0.ordinal(), routes.read(row)?))
}

/// Gives rows as long as their keys fit and `each` wants more; whether it
/// had all that fit.
fn given<'a, A: RouteAddress>(
    routes: &'a Routes,
    rows: Iter<'a, Key<A>, BodyId>,
    fits: impl Fn(&Key<A>) -> bool,
    each: &mut impl FnMut(u32, RouteRef<'a>) -> bool,
) -> bool {
    for row in rows {
        if !fits(row.0) {
            break;
        }
        if let Some((ordinal, route)) = read(routes, row)
            && !each(ordinal, route)
        {
            return false;
        }
    }
    true
}

impl Routes {
    /// The routes of a table and the place's family, from the place on
    /// (itself included), each with its ordinal. A seek, then O(1) a row;
    /// no allocation.
    pub fn run(&self, table: u32, from: &RoutePlace) -> RouteRun<'_> {
        let rows = match either(from.prefix.addr()) {
            Either::V4(address) => Rows::V4(self.v4.by_prefix.from(&key(table, address, from))),
            Either::V6(address) => Rows::V6(self.v6.by_prefix.from(&key(table, address, from))),
        };
        RouteRun {
            routes: self,
            table,
            rows,
        }
    }

    /// Gives the routes of exactly a prefix in a table, each with its
    /// ordinal, until `each` wants no more; whether it had all. A seek, then
    /// O(1) a row: what [`Routes::run`] gives costs more where there are few.
    pub fn each_of_prefix<'a>(
        &'a self,
        table: u32,
        prefix: IpNet,
        mut each: impl FnMut(u32, RouteRef<'a>) -> bool,
    ) -> bool {
        let from = RoutePlace::first_of(prefix);
        let len = prefix.prefix_len();
        match either(prefix.addr()) {
            Either::V4(address) => {
                let rows = self.v4.by_prefix.from(&key(table, address, &from));
                given(self, rows, |key| key.is_of(table, address, len), &mut each)
            }
            Either::V6(address) => {
                let rows = self.v6.by_prefix.from(&key(table, address, &from));
                given(self, rows, |key| key.is_of(table, address, len), &mut each)
            }
        }
    }

    /// How many routes [`Routes::run`] would give. O(log n).
    pub fn run_len(&self, table: u32, from: &RoutePlace) -> usize {
        match either(from.prefix.addr()) {
            Either::V4(address) => left_of(&self.v4, &key(table, address, from)),
            Either::V6(address) => left_of(&self.v6, &key(table, address, from)),
        }
    }

    /// The place of the route that [`Routes::run`] would give after `skip`
    /// others. O(log n), whatever `skip` is.
    pub fn run_nth(&self, table: u32, from: &RoutePlace, skip: usize) -> Option<RoutePlace> {
        match either(from.prefix.addr()) {
            Either::V4(address) => nth(&self.v4, &key(table, address, from), skip),
            Either::V6(address) => nth(&self.v6, &key(table, address, from), skip),
        }
    }

    /// The tables that have IPv4 routes, from a number on. A seek, then
    /// O(1) a table.
    pub fn tables_v4(&self, from: u32) -> impl Iterator<Item = u32> {
        self.v4.counts.from(&from).map(|(table, _)| *table)
    }

    /// The tables that have IPv6 routes, from a number on. A seek, then
    /// O(1) a table.
    pub fn tables_v6(&self, from: u32) -> impl Iterator<Item = u32> {
        self.v6.counts.from(&from).map(|(table, _)| *table)
    }

    /// The distinct bodies with a key, in the order of their ids, from an
    /// id on. A seek, then O(1) a body.
    pub fn bodies(&self, key: BodyKey, from: BodyId) -> impl Iterator<Item = BodyId> {
        self.bodies.with(key, from)
    }

    /// The routes with a body, IPv4 then IPv6, each with its ordinal, from
    /// a place in a table on (itself included, whatever its ordinal) where
    /// one is given. A seek, then O(1) a row.
    pub fn run_of_body(
        &self,
        body: BodyId,
        from: Option<(u32, &RoutePlace)>,
    ) -> impl Iterator<Item = (u32, RouteRef<'_>)> {
        let mut v4 = Some(Key::first_of(0, u32::ZERO, 0).run());
        let mut v6 = Key::first_of(0, Halves::ZERO, 0).run();
        if let Some((table, place)) = from {
            match either(place.prefix.addr()) {
                Either::V4(address) => v4 = Some(key(table, address, place).run()),
                Either::V6(address) => (v4, v6) = (None, key(table, address, place).run()),
            }
        }
        let v4 = v4.into_iter().flat_map(move |from| {
            let keys = self.v4.of_body_from(body, from);
            keys.filter_map(move |key| read(self, (&key, &body)))
        });
        let v6 = self.v6.of_body_from(body, v6);
        v4.chain(v6.filter_map(move |key| read(self, (&key, &body))))
    }

    /// The route of exactly this place. O(log n).
    pub fn at(&self, table: u32, place: &RoutePlace) -> Option<RouteRef<'_>> {
        match either(place.prefix.addr()) {
            Either::V4(address) => {
                let key = key(table, address, place);
                self.read((&key, self.v4.by_prefix.get(&key)?))
            }
            Either::V6(address) => {
                let key = key(table, address, place);
                self.read((&key, self.v6.by_prefix.get(&key)?))
            }
        }
    }

    /// How many IPv4 routes a table has. O(log tables).
    pub fn count_v4(&self, table: u32) -> RouteCount {
        self.v4.counts.get(&table).copied().unwrap_or_default()
    }

    /// How many IPv6 routes a table has. O(log tables).
    pub fn count_v6(&self, table: u32) -> RouteCount {
        self.v6.counts.get(&table).copied().unwrap_or_default()
    }
}

/// The address is taken as it is, host bits and all: a place between
/// prefixes is a place too.
fn key<A: RouteAddress>(table: u32, address: A, place: &RoutePlace) -> Key<A> {
    let len = place.prefix.prefix_len();
    RunKey::new(table, address, len, place.tos, place.metric).at(place.ordinal)
}

/// How many routes of the key's table are at it or behind it.
fn left_of<A: RouteAddress>(family: &Family<A>, from: &Key<A>) -> usize {
    let rows = &family.by_prefix;
    let end = match from.run().table().checked_add(1) {
        Some(next) => rows.rank(&Key::first_of(next, A::ZERO, 0)),
        None => rows.len(),
    };
    end.saturating_sub(rows.rank(from))
}

fn nth<A: RouteAddress>(family: &Family<A>, from: &Key<A>, skip: usize) -> Option<RoutePlace> {
    let rows = &family.by_prefix;
    let rank = rows.rank(from).checked_add(skip)?;
    let (key, _) = rows.from_rank(rank).next()?;
    let run = key.run();
    (run.table() == from.run().table()).then(|| RoutePlace {
        prefix: run.address().to_net(run.len()),
        tos: run.tos(),
        metric: run.metric(),
        ordinal: key.ordinal(),
    })
}
