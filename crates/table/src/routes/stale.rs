//! Routes that a feeder has not told again: which of all places and bodies
//! are left.

use std::sync::Arc;

use super::Routes;
use super::family::Family;
use super::key::{BodyKey, RunKey};
use crate::ordered::Ordered;
use crate::prefix::{Either, Halves, RouteAddress, either};
use crate::route_bodies::Interner;
use crate::row::route::{OtherRoute, OtherRouteKey, Route, SharedRoute};
use crate::writer::Change;

/// A route is a place and the number of a body. A number that was given
/// back and taken by another body is no trouble: a place with the new body
/// is one that was told, and the old body's routes are gone.
#[derive(Debug)]
pub(crate) struct StaleRoutes {
    v4: Ordered<BodyKey<u32>, u32>,
    v6: Ordered<BodyKey<Halves>, u32>,
    other: Ordered<OtherRouteKey, Arc<OtherRoute>>,
}

impl StaleRoutes {
    /// All routes. O(1).
    pub(crate) fn all(routes: &Routes) -> Self {
        Self {
            v4: routes.v4.by_body.clone(),
            v6: routes.v6.by_body.clone(),
            other: routes.other.clone(),
        }
    }

    /// A route is there as it was told. O(log n).
    pub(crate) fn told(&mut self, interner: &Interner, route: &Route) {
        let Some(id) = interner.find(&route.body) else {
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

    pub(crate) fn told_other(&mut self, key: &OtherRouteKey) {
        self.other.remove(key);
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
