//! A body that changes under all its routes at once: what they share came
//! to mean something else.

use std::collections::BTreeMap;

use super::family::Family;
use super::run::{self, RouteCount};
use super::{BodyId, Interner, Routes};
use crate::prefix::RouteAddress;
use crate::row::route::RouteBody;

impl Routes {
    /// Gives all routes with a body another one, in their places; the id
    /// that both have. `None`, and nothing done, where no route has the
    /// first or some have the second already. O(1), and O(routes with it)
    /// where the other has more or fewer next hops.
    pub(crate) fn rewrite(
        &mut self,
        interner: &mut Interner,
        from: &RouteBody,
        to: RouteBody,
    ) -> Option<BodyId> {
        let (before, after) = (RouteCount::of(from), RouteCount::of(&to));
        let id = interner.rewrite(&mut self.bodies, from, to)?;
        if before != after {
            recount(&mut self.v4, id, before, after);
            recount(&mut self.v6, id, before, after);
        }
        Some(id)
    }
}

/// Counts the routes with a body anew, of which each was `before`.
fn recount<A: RouteAddress>(
    family: &mut Family<A>,
    id: BodyId,
    before: RouteCount,
    after: RouteCount,
) {
    let mut tables = BTreeMap::<u32, usize>::new();
    for key in family.of_body(id) {
        *tables.entry(key.run().table()).or_default() += 1;
    }
    let times = |one: RouteCount, routes| RouteCount {
        routes,
        hops: routes * one.hops,
    };
    for (table, routes) in tables {
        let (before, after) = (times(before, routes), times(after, routes));
        run::count(&mut family.counts, table, before, after);
    }
}
