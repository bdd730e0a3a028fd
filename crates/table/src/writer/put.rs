//! How rows are put: what equals the row that is there changes nothing,
//! what replaces one needs no room, what is new does.

use std::sync::Arc;

use super::limits::{Limited, TableFull};
use super::{Change, Writer};
use crate::AF_INET;
use crate::addresses::Addresses;
use crate::event::{Event, Operation, Row};
use crate::routes::{Placement, Put};
use crate::row::address::Address;
use crate::row::fdb::FdbEntry;
use crate::row::link::Link;
use crate::row::neighbour::Neighbour;
use crate::row::nexthop::Nexthop;
use crate::row::route::{OtherRoute, Route, RouteBody};
use crate::row::rule::Rule;

/// Puts an address in one of two ways ([`Change::PutAddress`],
/// [`Change::AddAddress`]).
type PutAddress = fn(&mut Addresses, Arc<Address>) -> Option<Arc<Address>>;

impl Writer {
    /// Applies one change; readers see it after [`Writer::publish`].
    /// O(log n).
    pub fn apply(&mut self, change: Change) -> Result<(), TableFull> {
        match change {
            Change::PutLink(row) => self.put_link(row)?,
            Change::PutAddress(row) => self.put_address(row, Addresses::put)?,
            Change::AddAddress(row) => self.put_address(row, Addresses::add)?,
            Change::OrderAddresses(link, keys) => {
                self.changed |= self.tables.addresses.order(link, &keys);
            }
            Change::PutNeighbour(row) => self.put_neighbour(row)?,
            Change::PutRoute(row, placement) => self.put_route(row, placement)?,
            Change::PutOtherRoute(row) => self.put_other_route(row)?,
            Change::PutNexthop(row) => self.put_nexthop(row)?,
            Change::PutRule(row) => self.put_rule(row)?,
            Change::ReplaceRule(old, new) => self.replace_rule(&old, new),
            Change::PutFdb(row) => self.put_fdb(row)?,
            Change::DeleteRoute(route) => self.delete_route(route),
            Change::DeleteLink(index) => {
                let old = self.tables.links.remove(index);
                self.tables.counted_alone.remove(&index);
                self.deleted(old.map(Row::Link));
            }
            Change::DeleteAddress(key) => {
                let old = self.tables.addresses.remove(&key);
                self.deleted(old.map(Row::Address));
            }
            Change::DeleteNeighbour(key) => {
                let old = self.tables.neighbours.remove(&key);
                self.deleted(old.map(Row::Neighbour));
            }
            Change::DeleteOtherRoute(key) => {
                let old = self.tables.routes.remove_other(&key);
                self.deleted(old.map(Row::OtherRoute));
            }
            Change::DeleteNexthop(id) => {
                let old = self.tables.nexthops.remove(id);
                self.deleted(old.map(Row::Nexthop));
            }
            Change::DeleteRule(rule) => {
                self.tables.routing.is_unmerged |= rule.family == AF_INET;
                let old = self.tables.rules.remove(&rule);
                self.deleted(old.map(Row::Rule));
            }
            Change::DeleteFdb(key) => {
                let old = self.tables.fdb.remove(&key);
                self.deleted(old.map(Row::Fdb));
            }
        }
        Ok(())
    }

    fn admit(&mut self, table: Limited, rows: usize) -> Result<(), TableFull> {
        self.limits.admit(table, rows, &mut self.tables.refused)
    }

    fn put_link(&mut self, row: Link) -> Result<(), TableFull> {
        match self.tables.links.get(row.index) {
            Some(old) if **old == row => return Ok(()),
            Some(_) => {}
            None => self.admit(Limited::Links, self.tables.links.len())?,
        }
        let row = Arc::new(row);
        let old = self.tables.links.put(Arc::clone(&row));
        self.put(old.map(Row::Link), Row::Link(row));
        Ok(())
    }

    fn put_address(&mut self, row: Address, put: PutAddress) -> Result<(), TableFull> {
        match self.tables.addresses.get(&row.key()) {
            Some(old) if **old == row => return Ok(()),
            Some(_) => {}
            None => self.admit(Limited::Addresses, self.tables.addresses.len())?,
        }
        let row = Arc::new(row);
        let old = put(&mut self.tables.addresses, Arc::clone(&row));
        self.put(old.map(Row::Address), Row::Address(row));
        Ok(())
    }

    fn put_neighbour(&mut self, row: Neighbour) -> Result<(), TableFull> {
        match self.tables.neighbours.get(&row.key()) {
            Some(old) if **old == row => return Ok(()),
            Some(_) => {}
            None => self.admit(Limited::Neighbours, self.tables.neighbours.len())?,
        }
        let row = Arc::new(row);
        let old = self.tables.neighbours.put(Arc::clone(&row));
        self.put(old.map(Row::Neighbour), Row::Neighbour(row));
        Ok(())
    }

    fn put_route(&mut self, row: Route, placement: Placement) -> Result<(), TableFull> {
        let rows = self.tables.routes.len();
        if rows >= self.limits.routes
            && self
                .tables
                .routes
                .would_add(&self.interner, &row, placement)
        {
            self.admit(Limited::Routes, rows)?;
        }
        let event = self.pending.is_some().then(|| row.clone());
        let put = self.tables.routes.put(&mut self.interner, row, placement);
        if put == Put::Same {
            return Ok(());
        }
        self.changed = true;
        if let Some(row) = event {
            let body = self.shared_body(&row.body);
            let old = match put {
                Put::Replaced(old) => Some(Row::Route(old)),
                Put::Added | Put::Same => None,
            };
            self.put(old, Row::Route(row.with_body(body)));
        }
        Ok(())
    }

    fn shared_body(&self, body: &RouteBody) -> Arc<RouteBody> {
        self.interner
            .shared(body)
            .unwrap_or_else(|| Arc::new(body.clone()))
    }

    fn delete_route(&mut self, route: Route<Arc<RouteBody>>) {
        let removed = self
            .tables
            .routes
            .remove(&mut self.interner, &route.with_body(&*route.body));
        self.deleted(removed.then_some(Row::Route(route)));
    }

    fn put_other_route(&mut self, row: OtherRoute) -> Result<(), TableFull> {
        match self.tables.routes.get_other(&row.key) {
            Some(old) if **old == row => return Ok(()),
            Some(_) => {}
            None => self.admit(Limited::Routes, self.tables.routes.len())?,
        }
        let row = Arc::new(row);
        let old = self.tables.routes.put_other(Arc::clone(&row));
        self.put(old.map(Row::OtherRoute), Row::OtherRoute(row));
        Ok(())
    }

    fn put_nexthop(&mut self, row: Nexthop) -> Result<(), TableFull> {
        match self.tables.nexthops.get(row.id) {
            Some(old) if **old == row => return Ok(()),
            Some(_) => {}
            None => self.admit(Limited::Nexthops, self.tables.nexthops.len())?,
        }
        let row = Arc::new(row);
        let old = self.tables.nexthops.put(Arc::clone(&row));
        self.put(old.map(Row::Nexthop), Row::Nexthop(row));
        Ok(())
    }

    fn put_rule(&mut self, row: Rule) -> Result<(), TableFull> {
        if self.tables.rules.contains(&row) {
            return Ok(());
        }
        self.admit(Limited::Rules, self.tables.rules.len())?;
        self.tables.routing.is_unmerged |= row.family == AF_INET && !row.is_default();
        let row = Arc::new(row);
        self.tables.rules.put(Arc::clone(&row));
        self.put(None, Row::Rule(row));
        Ok(())
    }

    fn replace_rule(&mut self, old: &Rule, new: Rule) {
        let new = Arc::new(new);
        let old = self.tables.rules.replace(old, Arc::clone(&new));
        if let Some(old) = old {
            self.put(Some(Row::Rule(old)), Row::Rule(new));
        }
    }

    /// A station that stands at another port moves: the kernel says where
    /// it is now and not that it has left.
    fn put_fdb(&mut self, row: FdbEntry) -> Result<(), TableFull> {
        let fdb = &mut self.tables.fdb;
        let key = row.key();
        match fdb.get(&key) {
            Some(old) if **old == row => return Ok(()),
            Some(_) => {}
            None => {
                let elsewhere = row.station().and_then(|station| fdb.of_station(&station));
                match elsewhere.map(|old| old.key()) {
                    Some(old) => {
                        let left = fdb.remove(&old);
                        self.deleted(left.map(Row::Fdb));
                    }
                    None => self.admit(Limited::Fdb, self.tables.fdb.len())?,
                }
            }
        }
        let row = Arc::new(row);
        let old = self.tables.fdb.put(Arc::clone(&row));
        self.put(old.map(Row::Fdb), Row::Fdb(row));
        Ok(())
    }

    pub(super) fn put(&mut self, old: Option<Row>, row: Row) {
        self.record(match old {
            Some(old) => Event::changed(old, row),
            None => Event::new(Operation::Added, row),
        });
    }

    fn deleted(&mut self, row: Option<Row>) {
        if let Some(row) = row {
            self.record(Event::new(Operation::Deleted, row));
        }
    }
}
