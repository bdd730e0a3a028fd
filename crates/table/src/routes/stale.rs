//! Routes that a feeder has not told again: which of all places and bodies
//! are left.

use std::sync::Arc;

use super::Routes;
use super::family::Family;
use super::key::{BodyKey, Key, RunKey};
use crate::ordered::Ordered;
use crate::prefix::{Either, Halves, RouteAddress, either};
use crate::route_bodies::{BodyId, Interner};
use crate::row::route::{OtherRoute, OtherRouteKey, Route, RouteBody, SharedRoute};
use crate::writer::Change;

/// A route is a place and the number of a body. A number that was given
/// back and taken by another body is no trouble: a place with the new body
/// is one that was told, and the old body's routes are gone.
#[derive(Debug, Clone)]
pub(crate) struct StaleRoutes {
    v4: Ordered<BodyKey<u32>, u32>,
    v6: Ordered<BodyKey<Halves>, u32>,
    other: Ordered<OtherRouteKey, Arc<OtherRoute>>,
}

impl StaleRoutes {
    /// All routes. O(1), but behind a load.
    pub(crate) fn all(routes: &Routes) -> Self {
        Self {
            v4: routes.v4.by_body().clone(),
            v6: routes.v6.by_body().clone(),
            other: routes.other.clone(),
        }
    }

    /// A route is there as it was told. O(log n).
    pub(crate) fn told(&mut self, interner: &Interner, route: &Route) {
        self.gone(interner, &route.with_body(&route.body));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.v4.len() + self.v6.len() + self.other.len()
    }

    /// Takes those of some tables out, and gives them. O(n).
    pub(crate) fn split_off(&mut self, is_of: impl Fn(u32) -> bool) -> Self {
        Self {
            v4: split_off(&mut self.v4, &is_of),
            v6: split_off(&mut self.v6, &is_of),
            other: Ordered::default(),
        }
    }

    /// Whether this one is among them. O(log n).
    pub(crate) fn has(&self, interner: &Interner, route: &Route<&RouteBody>) -> bool {
        let found = interner.find(route.body);
        found.is_some_and(|id| match either(route.prefix.network()) {
            Either::V4(address) => {
                let run = RunKey::of(address, route);
                self.v4.contains_key(&run.with_body(id))
            }
            Either::V6(address) => {
                let run = RunKey::of(address, route);
                self.v6.contains_key(&run.with_body(id))
            }
        })
    }

    /// Whether one with this body is among them. O(log n).
    pub(crate) fn has_body(&self, interner: &Interner, body: &RouteBody) -> bool {
        let found = interner.find(body);
        found.is_some_and(|id| has_body(&self.v4, id) || has_body(&self.v6, id))
    }

    /// A route goes. O(log n).
    pub(crate) fn gone(&mut self, interner: &Interner, route: &Route<&RouteBody>) {
        let Some(id) = interner.find(route.body) else {
            return;
        };
        match either(route.prefix.network()) {
            Either::V4(address) => {
                let run = RunKey::of(address, route);
                self.v4.remove(&run.with_body(id));
            }
            Either::V6(address) => {
                let run = RunKey::of(address, route);
                self.v6.remove(&run.with_body(id));
            }
        }
    }

    /// A route takes the place of the first of its run. O(log n).
    pub(crate) fn replaced(&mut self, routes: &Routes, route: &Route) {
        match either(route.prefix.network()) {
            Either::V4(address) => {
                let run = RunKey::of(address, route);
                if let Some((_, id)) = routes.v4.run(run).next() {
                    self.v4.remove(&run.with_body(*id));
                }
            }
            Either::V6(address) => {
                let run = RunKey::of(address, route);
                if let Some((_, id)) = routes.v6.run(run).next() {
                    self.v6.remove(&run.with_body(*id));
                }
            }
        }
    }

    pub(crate) fn told_other(&mut self, key: &OtherRouteKey) {
        self.other.remove(key);
    }

    /// Those that are still among the routes. O(log n) for each.
    pub(crate) fn iter<'a>(&'a self, routes: &'a Routes) -> impl Iterator<Item = SharedRoute> {
        let v4 = self
            .v4
            .iter()
            .map(|(key, _)| still(routes, &routes.v4, key));
        let v6 = self
            .v6
            .iter()
            .map(|(key, _)| still(routes, &routes.v6, key));
        v4.chain(v6).flatten()
    }

    /// Takes one out that is still among the routes; what deletes it.
    pub(crate) fn take(&mut self, routes: &Routes) -> Option<Change> {
        while let Some((key, _)) = self.v4.first() {
            let key = *key;
            self.v4.remove(&key);
            if let Some(route) = still(routes, &routes.v4, &key) {
                return Some(Change::DeleteRoute(route));
            }
        }
        while let Some((key, _)) = self.v6.first() {
            let key = *key;
            self.v6.remove(&key);
            if let Some(route) = still(routes, &routes.v6, &key) {
                return Some(Change::DeleteRoute(route));
            }
        }
        let key = self.other.first()?.0.clone();
        self.other.remove(&key);
        Some(Change::DeleteOtherRoute(key))
    }
}

fn split_off<A: RouteAddress>(
    left: &mut Ordered<BodyKey<A>, u32>,
    is_of: impl Fn(u32) -> bool,
) -> Ordered<BodyKey<A>, u32> {
    let mut off = Ordered::default();
    for (key, ordinal) in left.clone().iter() {
        if is_of(key.run().table()) {
            left.remove(key);
            off.insert(*key, *ordinal);
        }
    }
    off
}

fn has_body<A: RouteAddress>(left: &Ordered<BodyKey<A>, u32>, id: BodyId) -> bool {
    let first = Key::first_of(0, A::ZERO, 0).run().with_body(id);
    let next = left.from(&first).next();
    next.is_some_and(|(key, _)| key.body() == id)
}

/// The route of a family at a place with a body, if it is there.
fn still<A: RouteAddress>(
    routes: &Routes,
    family: &Family<A>,
    key: &BodyKey<A>,
) -> Option<SharedRoute> {
    let body = key.body();
    let found = family.find(body, key.run())?;
    Some(routes.read((&found, &body))?.to_shared())
}
