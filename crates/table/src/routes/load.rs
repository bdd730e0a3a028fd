//! Routes of a first load: where they come in the order of their keys, as
//! those of a file do, each costs a fraction of what putting it would.
//!
//! The index by prefix is built as the routes come, those of bodies in the
//! end, that by body when it is asked for. A route that comes out of order
//! ends that: it and all behind it are put as ever.

use std::borrow::Borrow;
use std::sync::Arc;

use arrayvec::ArrayVec;
use ipnet::IpNet;

use super::family::{FIRST_ORDINAL, Family};
use super::key::{Key, RunKey};
use super::run::RouteCount;
use super::{Placement, Put, Routes};
use crate::ordered::{Build, Ordered};
use crate::prefix::{Either, Halves, RouteAddress, either};
use crate::route_bodies::{Bodies, BodyId, Interner};
use crate::row::route::{Route, RouteBody};
use crate::writer::Limits;

/// Routes of one run that are taken in order; with more all are put one by
/// one.
const MAX_RUN: usize = 64;

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
    /// All bodies by their numbers, which begin with 1.
    bodies: Vec<Arc<RouteBody>>,
    interner: Interner,
    /// To each body how many routes have it, once one came out of order.
    uses: Vec<u32>,
}

/// The routes of one family as they come in order.
#[derive(Debug)]
struct Loading<A: RouteAddress> {
    rows: Build<Key<A>, BodyId>,
    /// The bodies of the last run.
    of_run: ArrayVec<BodyId, MAX_RUN>,
}

impl<A: RouteAddress> Default for Loading<A> {
    fn default() -> Self {
        Self {
            rows: Build::default(),
            of_run: ArrayVec::new(),
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
            bodies: Vec::new(),
            interner: Interner::default(),
            uses: Vec::new(),
        }
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        len_of(self.routes.as_deref(), &self.v4, &self.v6)
    }

    /// How many had no place.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a body, for routes to come. One that another load has
    /// may be shared with it ([`RouteLoad::get`]).
    pub fn body(&mut self, body: impl Borrow<RouteBody> + Into<Arc<RouteBody>>) -> BodyId {
        let (id, new) = self.interner.take_unlisted(body);
        if let Some(body) = new {
            if let Some(routes) = &mut self.routes {
                routes.bodies.put(id, &body);
                self.uses.resize(self.bodies.len() + 2, 0);
            }
            self.bodies.push(body);
        }
        id
    }

    /// A body by its number.
    pub fn get(&self, body: BodyId) -> Option<&Arc<RouteBody>> {
        let at = usize::try_from(body.0).ok()?.checked_sub(1)?;
        self.bodies.get(at)
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
        if self.get(body).is_none() {
            return;
        }
        if self.len() >= self.limit {
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
                Taken::Added | Taken::Same => return,
                Taken::OutOfOrder => self.settle(),
            }
        }
        self.put_as_ever(table, prefix, metric, body, placement);
    }

    /// From now on routes are put one by one.
    fn settle(&mut self) {
        let bodies = Bodies::of_load(&self.bodies);
        self.uses = vec![0; self.bodies.len() + 1];
        let hops = self.bodies.iter().map(|body| RouteCount::of(body).hops);
        let hops: Vec<usize> = [0].into_iter().chain(hops).collect();
        let (v4, v6) = (std::mem::take(&mut self.v4), std::mem::take(&mut self.v6));
        let routes = Routes {
            v4: v4.finish(&hops, &mut self.uses),
            v6: v6.finish(&hops, &mut self.uses),
            bodies,
            ..Routes::default()
        };
        // Each body is counted once more for being named, so that none goes
        // that has a number.
        self.interner.add(&self.uses);
        self.routes = Some(Box::new(routes));
    }

    fn put_as_ever(
        &mut self,
        table: u32,
        prefix: IpNet,
        metric: u32,
        id: BodyId,
        placement: Placement,
    ) {
        let Some(body) = self.get(id) else {
            return;
        };
        let route = Route {
            table,
            prefix,
            tos: 0,
            metric,
            body: RouteBody::clone(body),
        };
        let Some(routes) = &mut self.routes else {
            return;
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

    /// The same routes once more, which share their memory with these until
    /// one of both changes. O(bodies). Routes to come are put one by one.
    #[must_use]
    pub fn shared(&mut self) -> Self {
        if self.routes.is_none() {
            self.settle();
        }
        Self {
            limit: self.limit,
            refused: self.refused,
            v4: Loading::default(),
            v6: Loading::default(),
            routes: self.routes.clone(),
            bodies: self.bodies.clone(),
            interner: self.interner.clone(),
            uses: self.uses.clone(),
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
        let Some(last) = last.copied() else {
            let is_next = self.rows.push(run.at(FIRST_ORDINAL), body);
            if !is_next {
                return Taken::OutOfOrder;
            }
            self.of_run.clear();
            self.of_run.push(body);
            return Taken::Added;
        };
        if placement != Placement::Last {
            return Taken::OutOfOrder;
        }
        if self.of_run.contains(&body) {
            return Taken::Same;
        }
        let next = run.at(last.ordinal().saturating_add(1));
        if self.of_run.is_full() || !self.rows.push(next, body) {
            return Taken::OutOfOrder;
        }
        self.of_run.push(body);
        Taken::Added
    }

    /// The family. By the number of the body, `hops` says how many next hops
    /// it has and `uses` counts its routes.
    fn finish(self, hops: &[usize], uses: &mut [u32]) -> Family<A> {
        let by_prefix = self.rows.finish();
        let mut counts = Ordered::default();
        let mut table = None;
        let mut count = RouteCount::default();
        for (key, id) in by_prefix.iter() {
            let at = id.0 as usize;
            if let Some(uses) = uses.get_mut(at) {
                *uses += 1;
            }
            if table != Some(key.run().table()) {
                table.map(|table| counts.insert(table, count));
                (table, count) = (Some(key.run().table()), RouteCount::default());
            }
            count.routes += 1;
            count.hops += hops.get(at).copied().unwrap_or(1);
        }
        table.map(|table| counts.insert(table, count));
        Family::of_load(by_prefix, counts)
    }
}
