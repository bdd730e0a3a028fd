//! Routes of a first load: where they come in the order of their keys, as
//! those of a file do, each costs a fraction of what putting it would.
//!
//! The index by prefix is built as the routes come, that by body in the
//! end, by counting the routes of each body. A route that comes out of
//! order ends that: it and all behind it are put as ever.

use ipnet::IpNet;

use super::family::{FIRST_ORDINAL, Family};
use super::key::{BodyKey, Key, RunKey};
use super::run::RouteCount;
use super::{Placement, Put, Routes};
use crate::ordered::Build;
use crate::prefix::{Either, Halves, RouteAddress, either};
use crate::route_bodies::{Bodies, BodyId, Interner};
use crate::row::route::{Route, RouteBody};
use crate::writer::Limits;

/// Routes being loaded. [`Writer::replace_routes`] takes them in.
///
/// [`Writer::replace_routes`]: crate::Writer::replace_routes
#[derive(Debug)]
pub struct RouteLoad {
    limit: usize,
    refused: u64,
    v4: Loading<u32>,
    v6: Loading<Halves>,
    /// All of them, once one came out of order.
    routes: Option<Box<Routes>>,
    bodies: Bodies,
    interner: Interner,
    /// To each body how many routes have it.
    uses: Vec<u32>,
}

/// The routes of one family as they come in order.
#[derive(Debug)]
struct Loading<A: RouteAddress> {
    rows: Build<Key<A>, BodyId>,
    /// To each body the last run that it was put to, counted from 1.
    seen: Vec<u32>,
    runs: u32,
}

impl<A: RouteAddress> Default for Loading<A> {
    fn default() -> Self {
        Self {
            rows: Build::default(),
            seen: Vec::new(),
            runs: 0,
        }
    }
}

fn len_of(routes: Option<&Routes>, v4: &Loading<u32>, v6: &Loading<Halves>) -> usize {
    routes.map_or(v4.rows.len() + v6.rows.len(), Routes::len)
}

/// What became of a route.
enum Taken {
    Added,
    Same,
    OutOfOrder,
}

impl RouteLoad {
    /// No routes; of those to come, so many as a table may have.
    pub fn new(limits: &Limits) -> Self {
        Self {
            limit: limits.routes,
            refused: 0,
            v4: Loading::default(),
            v6: Loading::default(),
            routes: None,
            bodies: Bodies::default(),
            interner: Interner::default(),
            uses: Vec::new(),
        }
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        len_of(self.routes.as_deref(), &self.v4, &self.v6)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a body, for routes to come.
    pub fn body(&mut self, body: RouteBody) -> BodyId {
        let bodies = match &mut self.routes {
            Some(routes) => &mut routes.bodies,
            None => &mut self.bodies,
        };
        let id = self.interner.take(bodies, body);
        let at = id.0 as usize;
        if self.uses.len() <= at {
            self.uses.resize(at + 1, 0);
        }
        id
    }

    /// A body by its number.
    pub fn get(&self, body: BodyId) -> Option<&RouteBody> {
        let bodies = self.routes.as_ref().map(|routes| &routes.bodies);
        bodies.unwrap_or(&self.bodies).get(body).map(|body| &**body)
    }

    /// Puts a route without a type of service where [`Placement`] says; one
    /// that is there already changes nothing, and one that there is no room
    /// for is refused and counted. O(1) in the order of
    /// (table, address, length, metric), for each family; else O(log n).
    pub fn put(
        &mut self,
        table: u32,
        prefix: IpNet,
        metric: u32,
        body: BodyId,
        placement: Placement,
    ) {
        let Some(uses) = self.uses.get_mut(body.0 as usize) else {
            return;
        };
        if len_of(self.routes.as_deref(), &self.v4, &self.v6) >= self.limit {
            self.refused = self.refused.saturating_add(1);
            return;
        }
        if self.routes.is_none() {
            let len = prefix.prefix_len();
            let taken = match either(prefix.network()) {
                Either::V4(at) => {
                    self.v4
                        .push(RunKey::new(table, at, len, 0, metric), body, placement)
                }
                Either::V6(at) => {
                    self.v6
                        .push(RunKey::new(table, at, len, 0, metric), body, placement)
                }
            };
            match taken {
                Taken::Added => return *uses += 1,
                Taken::Same => return,
                Taken::OutOfOrder => self.settle(),
            }
        }
        self.put_as_ever(table, prefix, metric, body, placement);
    }

    /// From now on routes are put one by one.
    fn settle(&mut self) {
        // Each body is counted once more for being named, so that none goes
        // that has a number.
        self.interner.add(&self.uses);
        let bodies = std::mem::take(&mut self.bodies);
        self.routes = Some(Box::new(Routes {
            v4: std::mem::take(&mut self.v4).finish(&bodies),
            v6: std::mem::take(&mut self.v6).finish(&bodies),
            bodies,
            ..Routes::default()
        }));
    }

    fn put_as_ever(
        &mut self,
        table: u32,
        prefix: IpNet,
        metric: u32,
        id: BodyId,
        placement: Placement,
    ) {
        let Some(routes) = &mut self.routes else {
            return;
        };
        let Some(body) = routes.bodies.get(id) else {
            return;
        };
        let route = Route {
            table,
            prefix,
            tos: 0,
            metric,
            body: RouteBody::clone(body),
        };
        // Counted here as well: see `finish`.
        let replaced = match routes.put(&mut self.interner, route, placement) {
            Put::Same => return,
            Put::Added => None,
            Put::Replaced(old) => self.interner.find(&old.body),
        };
        for (id, change) in [(Some(id), 1), (replaced, -1)] {
            let id = id.map_or(usize::MAX, |id| id.0 as usize);
            if let Some(uses) = self.uses.get_mut(id) {
                *uses = uses.saturating_add_signed(change);
            }
        }
    }

    /// The routes, who counts their bodies, and how many were refused.
    pub(crate) fn finish(mut self) -> (Routes, Interner, u64) {
        if self.routes.is_none() {
            self.settle();
        }
        let mut routes = self.routes.map(|routes| *routes).unwrap_or_default();
        let mut interner = self.interner;
        interner.count(&mut routes.bodies, &self.uses);
        (routes, interner, self.refused)
    }
}

impl<A: RouteAddress> Loading<A> {
    #[inline]
    fn push(&mut self, run: RunKey<A>, body: BodyId, placement: Placement) -> Taken {
        let last = self.rows.last().filter(|last| last.run() == run);
        if last.is_some() && placement != Placement::Last {
            return Taken::OutOfOrder;
        }
        let ordinal = match last {
            Some(last) => last.ordinal().saturating_add(1),
            None => FIRST_ORDINAL,
        };
        let number = self.runs + u32::from(last.is_none());
        let at = body.0 as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, 0);
        }
        if self.seen[at] == number {
            return Taken::Same;
        }
        if !self.rows.push(run.at(ordinal), body) {
            return Taken::OutOfOrder;
        }
        (self.runs, self.seen[at]) = (number, number);
        Taken::Added
    }

    /// The family with all its indexes.
    fn finish(self, bodies: &Bodies) -> Family<A> {
        let by_prefix = self.rows.finish();
        let mut family = Family {
            by_prefix,
            ..Family::default()
        };
        // Where the routes of each body begin.
        let mut ends = vec![0_u32; self.seen.len() + 1];
        let mut table = None;
        let mut count = RouteCount::default();
        for (key, id) in family.by_prefix.iter() {
            ends[id.0 as usize + 1] += 1;
            if table != Some(key.run().table()) {
                table.map(|table| family.counts.insert(table, count));
                (table, count) = (Some(key.run().table()), RouteCount::default());
            }
            let hops = bodies.get(*id).map(|body| RouteCount::of(body).hops);
            count.routes += 1;
            count.hops += hops.unwrap_or(1);
        }
        table.map(|table| family.counts.insert(table, count));
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let none = RunKey::new(0, A::ZERO, 0, 0, 0);
        let mut rows: Vec<(BodyKey<A>, u32)> =
            vec![(none.with_body(BodyId(0)), 0); family.by_prefix.len()];
        for (key, id) in family.by_prefix.iter() {
            let end = &mut ends[id.0 as usize];
            rows[*end as usize] = (key.run().with_body(*id), key.ordinal());
            *end += 1;
        }
        let mut by_body = Build::default();
        for (key, ordinal) in rows {
            by_body.push(key, ordinal);
        }
        family.by_body = by_body.finish();
        family
    }
}
