//! What a feeder has not told again since its resync began.
//!
//! Rows are marked by taking the tables as they stand aside, which is one
//! step: they share their nodes with those that go on. A row told again is
//! taken out; what is left at the end was not told again.

use std::sync::Arc;

use super::Writer;
use super::change::Change;
use super::limits::Refused;
use crate::routes::{Placement, Routes, StaleRoutes};
use crate::row::nexthop::Nexthop;
use crate::row::route::{Route, RouteBody, SharedRoute};
use crate::writer::Tables;

/// Rows that were there when a resync began and were not told again.
#[derive(Debug, Clone)]
pub(super) struct Stale {
    /// All tables but the routes.
    rows: Tables,
    routes: StaleRoutes,
}

/// Rows of a feeder that were not told again, as they were at a moment.
#[derive(Debug)]
pub struct Unconfirmed {
    stale: Stale,
    routes: Routes,
}

impl Unconfirmed {
    /// Those of a resync under way.
    pub(super) fn of(stale: &Stale, writer: &Writer) -> Self {
        Self {
            stale: stale.clone(),
            routes: writer.tables.routes.clone(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.stale.len() == 0
    }

    /// The routes. O(log n) for each.
    pub fn routes(&self) -> impl Iterator<Item = SharedRoute> {
        self.stale.routes.iter(&self.routes)
    }

    /// Whether a next-hop object is among them. O(log n).
    pub fn has_nexthop(&self, id: u32) -> bool {
        self.stale.has_nexthop(id)
    }
}

impl Stale {
    /// All rows, in one step.
    pub(super) fn all(writer: &Writer) -> Self {
        let tables = &writer.tables;
        Self {
            routes: StaleRoutes::all(&tables.routes),
            rows: Tables {
                links: tables.links.clone(),
                addresses: tables.addresses.clone(),
                neighbours: tables.neighbours.clone(),
                nexthops: tables.nexthops.clone(),
                rules: tables.rules.clone(),
                fdb: tables.fdb.clone(),
                ..Tables::default()
            },
        }
    }

    /// A row was put, or was there as it was told. O(log n).
    pub(super) fn told(&mut self, writer: &Writer, change: &Change) {
        let rows = &mut self.rows;
        match change {
            Change::PutLink(row) => drop(rows.links.remove(row.index)),
            Change::PutAddress(row) | Change::AddAddress(row) => {
                rows.addresses.remove(&row.key());
            }
            Change::PutNeighbour(row) => drop(rows.neighbours.remove(&row.key())),
            Change::PutRoute(row, _) => self.routes.told(&writer.interner, row),
            Change::PutOtherRoute(row) => self.routes.told_other(&row.key),
            Change::PutNexthop(row) => drop(rows.nexthops.remove(row.id)),
            // Two may have become equal.
            Change::PutRule(row) | Change::ReplaceRule(_, row) => {
                while rows.rules.remove(row).is_some() {}
            }
            Change::PutFdb(row) => drop(rows.fdb.remove(&row.key())),
            Change::DeleteLink(_)
            | Change::DeleteAddress(_)
            | Change::OrderAddresses(..)
            | Change::DeleteNeighbour(_)
            | Change::DeleteRoute(_)
            | Change::DeleteOtherRoute(_)
            | Change::DeleteNexthop(_)
            | Change::DeleteRule(_)
            | Change::DeleteFdb(_) => {}
        }
    }

    /// Rows that were not told again.
    pub(super) fn len(&self) -> usize {
        self.routes.len() + self.rows.rows()
    }

    /// Takes the routes of some tables out, and gives them. O(routes).
    pub(super) fn split_off(&mut self, is_of: impl Fn(u32) -> bool) -> Self {
        Self {
            rows: Tables::default(),
            routes: self.routes.split_off(is_of),
        }
    }

    /// Whether a route was not told again. O(log n).
    pub(super) fn has_route(&self, writer: &Writer, route: &Route<&RouteBody>) -> bool {
        self.routes.has(&writer.interner, route)
    }

    /// Whether a route with this body was not told again. O(log n).
    pub(super) fn has_body(&self, writer: &Writer, body: &RouteBody) -> bool {
        self.routes.has_body(&writer.interner, body)
    }

    /// Whether a next-hop object was not told again. O(log n).
    pub(super) fn has_nexthop(&self, id: u32) -> bool {
        self.rows.nexthops.get(id).is_some()
    }

    /// A next-hop object has another id, or its group another member.
    pub(super) fn renumbered(&mut self, id: u32, object: Nexthop) {
        if self.rows.nexthops.remove(id).is_some() {
            self.rows.nexthops.put(Arc::new(object));
        }
    }

    /// A row is about to go or to be replaced: it need not be told again.
    /// O(log n).
    pub(super) fn goes(&mut self, writer: &Writer, change: &Change) {
        let rows = &mut self.rows;
        match change {
            Change::PutRoute(row, Placement::InsteadOfFirst) => {
                self.routes.replaced(&writer.tables.routes, row);
            }
            Change::DeleteRoute(row) => {
                let row = row.with_body(&*row.body);
                self.routes.gone(&writer.interner, &row);
            }
            Change::DeleteOtherRoute(key) => self.routes.told_other(key),
            Change::DeleteNexthop(id) => drop(rows.nexthops.remove(*id)),
            Change::DeleteLink(index) => drop(rows.links.remove(*index)),
            Change::DeleteAddress(key) => drop(rows.addresses.remove(key)),
            Change::DeleteNeighbour(key) => drop(rows.neighbours.remove(key)),
            Change::DeleteRule(row) => drop(rows.rules.remove(row)),
            Change::DeleteFdb(key) => drop(rows.fdb.remove(key)),
            _ => {}
        }
    }

    /// Deletes the rows that were not told again; how many there were.
    pub(super) fn sweep(mut self, writer: &mut Writer) -> usize {
        let tables = Refused::default().by_table().map(|(table, _)| table);
        let swept = tables.map(|table| {
            let mut swept = 0;
            while self.make_room(table, writer) {
                swept += 1;
            }
            swept
        });
        swept.into_iter().sum()
    }

    /// Deletes one row of a table that was not told again; false if there
    /// is none. O(log n), and as much for each that is gone already.
    pub(super) fn make_room(&mut self, table: &str, writer: &mut Writer) -> bool {
        while let Some(deletion) = self.take(table, &writer.tables) {
            let before = writer.tables.rows();
            // A deletion needs no room.
            let _ = writer.apply(deletion);
            if writer.tables.rows() < before {
                return true;
            }
        }
        false
    }

    /// Takes a row of a table out; what deletes it, if it is still there.
    fn take(&mut self, table: &str, now: &Tables) -> Option<Change> {
        let rows = &mut self.rows;
        match table {
            "links" => {
                let row = rows.links.iter().next()?.index;
                rows.links.remove(row);
                Some(Change::DeleteLink(row))
            }
            "addresses" => {
                let row = rows.addresses.iter().next()?.key();
                rows.addresses.remove(&row);
                Some(Change::DeleteAddress(row))
            }
            "neighbours" => {
                let row = rows.neighbours.iter().next()?.key();
                rows.neighbours.remove(&row);
                Some(Change::DeleteNeighbour(row))
            }
            "routes" => self.routes.take(&now.routes),
            "nexthops" => {
                let row = rows.nexthops.iter().next()?.id;
                rows.nexthops.remove(row);
                Some(Change::DeleteNexthop(row))
            }
            "rules" => {
                let row = rows.rules.iter().next()?.as_ref().clone();
                rows.rules.remove(&row);
                Some(Change::DeleteRule(row))
            }
            "fdb" => {
                let row = rows.fdb.iter().next()?.key();
                rows.fdb.remove(&row);
                Some(Change::DeleteFdb(row))
            }
            _ => None,
        }
    }
}
