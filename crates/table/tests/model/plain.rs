//! The tables as plain maps and lists; every question is a filter.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use table::{
    Address, AddressKey, Change, Event, FdbEntry, FdbKey, Limits, Link, Neighbour, NeighbourKey,
    Nexthop, Operation, OtherRoute, OtherRouteKey, Placement, Refused, Route, RouteRef, Row, Rule,
    TableFull, Tables,
};

use crate::changes::{self, Aimed};

#[derive(Debug, Clone)]
pub struct Plain {
    pub limits: Limits,
    refused: Refused,
    links: BTreeMap<u32, Link>,
    addresses: BTreeMap<AddressKey, Address>,
    /// Their keys; those of a link and kind in the kernel's order.
    address_order: Vec<AddressKey>,
    neighbours: BTreeMap<NeighbourKey, Neighbour>,
    /// In the order of making.
    routes: Vec<Route>,
    other: BTreeMap<OtherRouteKey, OtherRoute>,
    nexthops: BTreeMap<u32, Nexthop>,
    /// In the order of making.
    rules: Vec<Rule>,
    fdb: BTreeMap<FdbKey, FdbEntry>,
}

type Outcome = (Result<(), TableFull>, Vec<Event>);

fn event(operation: Operation, row: Row) -> Vec<Event> {
    vec![Event::new(operation, row)]
}

fn changed(before: Row, row: Row) -> Vec<Event> {
    vec![Event::changed(before, row)]
}

fn full(table: &'static str, limit: usize, count: &mut u64) -> Outcome {
    *count += 1;
    (Err(TableFull { table, limit }), Vec::new())
}

/// Whether it is IPv6, secondary, how narrow: what the kernel lists by
/// before it lists by age.
fn kind(row: &Address) -> (bool, bool, u8) {
    match row.local {
        IpAddr::V4(_) if row.flags & 1 != 0 => (false, true, 0),
        IpAddr::V4(_) => (false, false, 255 - row.scope),
        IpAddr::V6(v6) => (true, false, u8::from(v6.is_unicast_link_local())),
    }
}

/// Puts a row of a table with keys.
fn put<K: Ord, T: Clone + PartialEq>(
    rows: &mut BTreeMap<K, T>,
    (key, row): (K, T),
    (table, limit, count): (&'static str, usize, &mut u64),
    name: fn(Arc<T>) -> Row,
) -> Outcome {
    let old = rows.get(&key);
    if old == Some(&row) {
        return (Ok(()), Vec::new());
    }
    if old.is_none() && rows.len() >= limit {
        return full(table, limit, count);
    }
    let old = rows.insert(key, row.clone());
    let row = name(Arc::new(row));
    let told = match old {
        Some(old) => changed(name(Arc::new(old)), row),
        None => event(Operation::Added, row),
    };
    (Ok(()), told)
}

fn delete<K: Ord, T>(rows: &mut BTreeMap<K, T>, key: &K, name: fn(Arc<T>) -> Row) -> Outcome {
    let gone = rows.remove(key);
    let events = gone.map(|row| event(Operation::Deleted, name(Arc::new(row))));
    (Ok(()), events.unwrap_or_default())
}

fn same_place(a: &Route, b: &Route) -> bool {
    (a.table, a.prefix, a.tos, a.metric) == (b.table, b.prefix, b.tos, b.metric)
}

impl Plain {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            refused: Refused::default(),
            links: BTreeMap::new(),
            addresses: BTreeMap::new(),
            address_order: Vec::new(),
            neighbours: BTreeMap::new(),
            routes: Vec::new(),
            other: BTreeMap::new(),
            nexthops: BTreeMap::new(),
            rules: Vec::new(),
            fdb: BTreeMap::new(),
        }
    }

    /// A change aimed at what is there.
    pub fn aimed(&self, change: Aimed) -> Change {
        let rule = |at: usize| match self.rules.len() {
            0 => changes::rule(0, 0),
            rules => self.rules[at % rules].clone(),
        };
        match change {
            Aimed::Put(change) | Aimed::Delete(change) => change,
            Aimed::DeleteRoute(_) if self.routes.is_empty() => Change::DeleteLink(0),
            Aimed::DeleteRoute(at) => {
                let route = &self.routes[at % self.routes.len()];
                Change::DeleteRoute(route.with_body(Arc::new(route.body.clone())))
            }
            Aimed::DeleteRule(at) => Change::DeleteRule(rule(at)),
            Aimed::ReplaceRule(at, tos) => {
                let old = rule(at);
                let new = Rule {
                    tos: tos + 10,
                    ..old.clone()
                };
                Change::ReplaceRule(old, new)
            }
        }
    }

    /// What a change does, and what is told of it.
    pub fn apply(&mut self, change: Change) -> Outcome {
        if let Change::PutFdb(row) = &change
            && let Some(old) = self.elsewhere(row)
        {
            return self.move_station(old, row.clone());
        }
        let (limits, refused) = (self.limits, &mut self.refused);
        let has = |table, limit, count| (table, limit, count);
        match change {
            Change::PutLink(row) => {
                let limit = has("links", limits.links, &mut refused.links);
                put(&mut self.links, (row.index, row), limit, Row::Link)
            }
            Change::PutAddress(row) => self.put_address(row, false),
            Change::AddAddress(row) => self.put_address(row, true),
            Change::OrderAddresses(..) => unreachable!("no random change orders addresses"),
            Change::PutNeighbour(row) => {
                let limit = has("neighbours", limits.neighbours, &mut refused.neighbours);
                put(
                    &mut self.neighbours,
                    (row.key(), row),
                    limit,
                    Row::Neighbour,
                )
            }
            Change::PutNexthop(row) => {
                let limit = has("nexthops", limits.nexthops, &mut refused.nexthops);
                put(&mut self.nexthops, (row.id, row), limit, Row::Nexthop)
            }
            Change::PutFdb(row) => {
                let limit = has("fdb", limits.fdb, &mut refused.fdb);
                put(&mut self.fdb, (row.key(), row), limit, Row::Fdb)
            }
            Change::PutOtherRoute(row) => {
                let room = limits.routes.saturating_sub(self.routes.len());
                let limit = has("routes", room, &mut refused.routes);
                let key = row.key.clone();
                let (told, events) = put(&mut self.other, (key, row), limit, Row::OtherRoute);
                (
                    told.map_err(|full| TableFull {
                        limit: limits.routes,
                        ..full
                    }),
                    events,
                )
            }
            Change::PutRoute(row, placement) => self.put_route(row, placement),
            Change::PutRule(row) => self.put_rule(row),
            Change::ReplaceRule(old, new) => match self.rules.iter_mut().find(|row| **row == old) {
                Some(row) => {
                    let before = std::mem::replace(row, new.clone());
                    let told = changed(Row::Rule(before.into()), Row::Rule(new.into()));
                    (Ok(()), told)
                }
                None => (Ok(()), Vec::new()),
            },
            Change::DeleteLink(index) => delete(&mut self.links, &index, Row::Link),
            Change::DeleteAddress(key) => {
                self.address_order.retain(|other| *other != key);
                delete(&mut self.addresses, &key, Row::Address)
            }
            Change::DeleteNeighbour(key) => delete(&mut self.neighbours, &key, Row::Neighbour),
            Change::DeleteOtherRoute(key) => delete(&mut self.other, &key, Row::OtherRoute),
            Change::DeleteNexthop(id) => delete(&mut self.nexthops, &id, Row::Nexthop),
            Change::DeleteFdb(key) => delete(&mut self.fdb, &key, Row::Fdb),
            Change::DeleteRule(rule) => {
                let at = self.rules.iter().position(|row| *row == rule);
                let gone = at.map(|at| self.rules.remove(at));
                let told = gone.map(|row| event(Operation::Deleted, Row::Rule(row.into())));
                (Ok(()), told.unwrap_or_default())
            }
            Change::DeleteRoute(route) => {
                let row = route.with_body((*route.body).clone());
                let at = self.routes.iter().position(|old| *old == row);
                let gone = at.map(|at| self.routes.remove(at));
                let told = gone.map(|_| event(Operation::Deleted, Row::Route(route)));
                (Ok(()), told.unwrap_or_default())
            }
        }
    }

    fn put_address(&mut self, row: Address, is_announced: bool) -> Outcome {
        let (key, limit) = (row.key(), self.limits.addresses);
        let same_place = |old: &Address| {
            kind(old) == kind(&row) && old.created_centisecs == row.created_centisecs
        };
        let keeps_place = self.addresses.get(&key).is_some_and(same_place);
        let limit = ("addresses", limit, &mut self.refused.addresses);
        let put = put(&mut self.addresses, (key, row.clone()), limit, Row::Address);
        if put.0.is_err() || keeps_place {
            return put;
        }
        self.address_order.retain(|other| *other != key);
        let is_older = |other: &AddressKey| {
            let other = &self.addresses[other];
            (other.link, kind(other)) == (row.link, kind(&row))
                && other.created_centisecs <= row.created_centisecs
        };
        let older = self.address_order.iter().position(is_older);
        let older = older.filter(|_| is_announced && row.local.is_ipv6());
        let at = older.unwrap_or(self.address_order.len());
        self.address_order.insert(at, key);
        put
    }

    /// The addresses as they are to be listed.
    fn listed_addresses(&self) -> Vec<&Address> {
        let there = self
            .address_order
            .iter()
            .filter_map(|key| self.addresses.get(key));
        let mut listed: Vec<&Address> = there.collect();
        listed.sort_by_key(|row| (row.link, kind(row)));
        listed
    }

    /// The key of the entry of a station at another port than the row's.
    fn elsewhere(&self, row: &FdbEntry) -> Option<FdbKey> {
        if self.fdb.contains_key(&row.key()) {
            return None;
        }
        let station = row.station()?;
        let mut all = self.fdb.values();
        let old = all.find(|old| old.station() == Some(station))?;
        Some(old.key())
    }

    fn move_station(&mut self, old: FdbKey, row: FdbEntry) -> Outcome {
        let left = self.fdb.remove(&old);
        let left = left.map(|old| event(Operation::Deleted, Row::Fdb(old.into())));
        self.fdb.insert(row.key(), row.clone());
        let came = event(Operation::Added, Row::Fdb(row.into()));
        (Ok(()), left.into_iter().flatten().chain(came).collect())
    }

    fn put_route(&mut self, row: Route, placement: Placement) -> Outcome {
        if self.routes.contains(&row) {
            return (Ok(()), Vec::new());
        }
        let told = Row::Route(row.with_body(Arc::new(row.body.clone())));
        let first = self.routes.iter().position(|old| same_place(old, &row));
        if let (Placement::InsteadOfFirst, Some(at)) = (placement, first) {
            let before = std::mem::replace(&mut self.routes[at], row);
            let before = before.with_body(Arc::new(before.body.clone()));
            return (Ok(()), changed(Row::Route(before), told));
        }
        let limit = self.limits.routes;
        if self.routes.len() + self.other.len() >= limit {
            return full("routes", limit, &mut self.refused.routes);
        }
        match (placement, first) {
            (Placement::First, Some(at)) => self.routes.insert(at, row),
            _ => self.routes.push(row),
        }
        (Ok(()), event(Operation::Added, told))
    }

    fn put_rule(&mut self, row: Rule) -> Outcome {
        if self.rules.contains(&row) {
            return (Ok(()), Vec::new());
        }
        if self.rules.len() >= self.limits.rules {
            return full("rules", self.limits.rules, &mut self.refused.rules);
        }
        self.rules.push(row.clone());
        (Ok(()), event(Operation::Added, Row::Rule(row.into())))
    }

    /// Compares every walk of every index.
    pub fn same_as(&self, tables: &Tables) -> Result<(), TestCaseError> {
        prop_assert_eq!(tables.refused, self.refused);
        self.same_links(tables)?;
        self.same_addresses(tables)?;
        self.same_neighbours(tables)?;
        self.same_nexthops(tables)?;
        self.same_fdb(tables)?;
        self.same_rules(tables)?;
        self.same_routes(tables)
    }

    fn same_links(&self, tables: &Tables) -> Result<(), TestCaseError> {
        let links = &tables.links;
        prop_assert_eq!(links.len(), self.links.len());
        equal(links.iter(), self.links.values())?;
        for index in 0..5 {
            equal(links.get(index), self.links.get(&index))?;
            equal(
                links.from(index),
                self.links.range(index..).map(|(_, row)| row),
            )?;
            for name in 0..5 {
                for name in [format!("e{index}.{name}"), format!("alt{index}.{name}")] {
                    let named = |link: &&Link| {
                        let mut names = link.alt_names.iter().chain([&link.name]);
                        names.any(|of| **of == *name)
                    };
                    equal(links.by_name(&name), self.links.values().find(named))?;
                }
            }
        }
        for above in 100..210 {
            let enslaved = self.links.values().filter(|row| row.master == Some(above));
            equal(links.of_master(above), enslaved)?;
            let stacked = self.links.values().filter(|row| row.below() == Some(above));
            equal(links.on_top_of(above), stacked)?;
        }
        Ok(())
    }

    fn same_addresses(&self, tables: &Tables) -> Result<(), TestCaseError> {
        let addresses = &tables.addresses;
        prop_assert_eq!(addresses.len(), self.addresses.len());
        equal(addresses.by_key(), self.addresses.values())?;
        let listed = self.listed_addresses();
        equal(addresses.iter(), listed.iter().copied())?;
        for link in 0..5 {
            let of_link = listed.iter().copied().filter(|row| row.link == link);
            equal(addresses.of_link(link), of_link)?;
        }
        for row in self.addresses.values() {
            equal(addresses.get(&row.key()), Some(row))?;
            let same = self
                .addresses
                .values()
                .filter(|other| other.local == row.local);
            equal(addresses.by_address(row.local), same)?;
            prop_assert!(tables.is_own_address(row.local));
        }
        for net in ["10.0.0.0/23", "fe80::/10", "::/0"] {
            let net: ipnet::IpNet = net.parse().unwrap();
            let inside = |row: &&Address| net.contains(&row.local);
            let mut inside: Vec<&Address> = self.addresses.values().filter(inside).collect();
            inside.sort_by_key(|row| (row.local, row.link));
            equal(addresses.inside(net), inside)?;
        }
        Ok(())
    }

    fn same_neighbours(&self, tables: &Tables) -> Result<(), TestCaseError> {
        let (ours, all) = (&tables.neighbours, &self.neighbours);
        prop_assert_eq!(ours.len(), all.len());
        equal(ours.iter(), all.values())?;
        for link in 0..5 {
            equal(
                ours.of_link(link),
                all.values().filter(|row| row.link == link),
            )?;
        }
        let by_address = |of: &dyn Fn(&IpAddr) -> bool| {
            let mut rows: Vec<_> = all.values().filter(|row| of(&row.address)).collect();
            rows.sort_by_key(|row| (row.address, row.link, row.proxy));
            rows
        };
        for row in all.values() {
            equal(ours.get(&row.key()), Some(row))?;
            equal(
                ours.by_address(row.address),
                by_address(&|to| *to == row.address),
            )?;
            equal(
                ours.from(&row.key()),
                all.range(row.key()..).map(|(_, row)| row),
            )?;
        }
        for net in ["10.0.1.0/24", "fc00::/7"] {
            let net: ipnet::IpNet = net.parse().unwrap();
            equal(ours.inside(net), by_address(&|to| net.contains(to)))?;
        }
        for last in 1..4 {
            let mac = changes::mac(last);
            equal(
                ours.by_lladdr(mac),
                all.values().filter(|row| row.lladdr == mac),
            )?;
        }
        Ok(())
    }

    fn same_nexthops(&self, tables: &Tables) -> Result<(), TestCaseError> {
        let (ours, all) = (&tables.nexthops, &self.nexthops);
        prop_assert_eq!(ours.len(), all.len());
        equal(ours.iter(), all.values())?;
        for id in 0..6 {
            equal(ours.get(id), all.get(&id))?;
            equal(ours.from(id), all.range(id..).map(|(_, row)| row))?;
            equal(
                ours.of_link(id),
                all.values().filter(|row| row.link == Some(id)),
            )?;
            let with = |row: &&Nexthop| row.group.iter().any(|member| member.id == id);
            equal(ours.groups_with(id), all.values().filter(with))?;
        }
        Ok(())
    }

    fn same_fdb(&self, tables: &Tables) -> Result<(), TestCaseError> {
        let (ours, all) = (&tables.fdb, &self.fdb);
        prop_assert_eq!(ours.len(), all.len());
        equal(ours.iter(), all.values())?;
        for link in 0..5 {
            equal(
                ours.of_link(link),
                all.values().filter(|row| row.link == link),
            )?;
        }
        for row in all.values() {
            equal(ours.get(&row.key()), Some(row))?;
            equal(
                ours.from(&row.key()),
                all.range(row.key()..).map(|(_, row)| row),
            )?;
            let same = all.values().filter(|other| other.lladdr == row.lladdr);
            equal(ours.by_lladdr(row.lladdr), same)?;
        }
        Ok(())
    }

    fn same_rules(&self, tables: &Tables) -> Result<(), TestCaseError> {
        let mut rules: Vec<&Rule> = self.rules.iter().collect();
        rules.sort_by_key(|row| (row.family, row.priority));
        equal(tables.rules.iter(), rules.iter().copied())?;
        for family in [2, 10] {
            let of_family = rules.iter().copied().filter(|row| row.family == family);
            equal(tables.rules.of_family(family), of_family)?;
        }
        prop_assert_eq!(tables.rules.len(), rules.len());
        Ok(())
    }

    fn same_routes(&self, tables: &Tables) -> Result<(), TestCaseError> {
        let ours = &tables.routes;
        let mut all: Vec<&Route> = self.routes.iter().collect();
        all.sort_by_key(|row| {
            let (network, len) = (row.prefix.network(), row.prefix.prefix_len());
            (
                network.is_ipv6(),
                row.table,
                network,
                len,
                row.tos,
                row.metric,
            )
        });
        prop_assert_eq!(ours.len(), all.len() + self.other.len());
        equal(ours.other(), self.other.values())?;
        routes(ours.iter(), all.iter().copied())?;
        // What an index gives comes in its own order: as sets.
        let some = |of: &dyn Fn(&Route) -> bool| {
            let mut rows: Vec<Route> = all.iter().copied().filter(|row| of(row)).cloned().collect();
            rows.sort_by_key(|row| format!("{row:?}"));
            rows
        };
        for link in 1..5 {
            let over = |row: &Route| row.body.next_hops.as_slice().iter().any(|h| h.link == link);
            prop_assert_eq!(sorted(ours.over_link(link)), some(&over));
            let of = |row: &Route| row.body.nexthop_id == Some(link);
            prop_assert_eq!(sorted(ours.of_nexthop(link)), some(&of));
        }
        for last in 1..4 {
            let via = IpAddr::from([10, 0, 1, last]);
            let through = |row: &Route| {
                let mut hops = row.body.next_hops.as_slice().iter();
                hops.any(|hop| hop.gateway == Some(via))
            };
            prop_assert_eq!(sorted(ours.via(via)), some(&through));
            let prefers = |row: &Route| row.body.preferred_source == Some(via);
            prop_assert_eq!(sorted(ours.preferring(via)), some(&prefers));
        }
        for row in &all {
            let same = |other: &&&Route| (other.table, other.prefix) == (row.table, row.prefix);
            routes(
                ours.exact(row.table, row.prefix),
                all.iter().filter(same).copied(),
            )?;
        }
        Ok(())
    }
}

fn equal<'a, T: Debug + PartialEq + 'a>(
    ours: impl IntoIterator<Item = &'a Arc<T>>,
    plain: impl IntoIterator<Item = &'a T>,
) -> Result<(), TestCaseError> {
    let ours: Vec<&T> = ours.into_iter().map(|row| &**row).collect();
    let plain: Vec<&T> = plain.into_iter().collect();
    prop_assert_eq!(ours, plain);
    Ok(())
}

fn routes<'a>(
    ours: impl Iterator<Item = RouteRef<'a>>,
    plain: impl Iterator<Item = &'a Route>,
) -> Result<(), TestCaseError> {
    let ours: Vec<Route> = ours
        .map(|row| row.with_body((**row.body).clone()))
        .collect();
    prop_assert_eq!(ours, plain.cloned().collect::<Vec<_>>());
    Ok(())
}

fn sorted<'a>(rows: impl Iterator<Item = RouteRef<'a>>) -> Vec<Route> {
    let mut rows: Vec<Route> = rows
        .map(|row| row.with_body((**row.body).clone()))
        .collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

impl Plain {
    /// Every row, as what puts it.
    pub fn rows(&self) -> Vec<Change> {
        let mut rows: Vec<Change> = Vec::new();
        rows.extend(self.links.values().cloned().map(Change::PutLink));
        rows.extend(self.addresses.values().cloned().map(Change::PutAddress));
        rows.extend(self.neighbours.values().cloned().map(Change::PutNeighbour));
        let routes = self.routes.iter().cloned();
        rows.extend(routes.map(|row| Change::PutRoute(row, Placement::Last)));
        rows.extend(self.other.values().cloned().map(Change::PutOtherRoute));
        rows.extend(self.nexthops.values().cloned().map(Change::PutNexthop));
        rows.extend(self.rules.iter().cloned().map(Change::PutRule));
        rows.extend(self.fdb.values().cloned().map(Change::PutFdb));
        rows
    }

    /// How many rows a table with a limit has.
    pub fn len_of(&self, table: &str) -> usize {
        match table {
            "links" => self.links.len(),
            "addresses" => self.addresses.len(),
            "neighbours" => self.neighbours.len(),
            "routes" => self.routes.len() + self.other.len(),
            "nexthops" => self.nexthops.len(),
            "rules" => self.rules.len(),
            _ => self.fdb.len(),
        }
    }

    pub fn forget_refused(&mut self) {
        self.refused = Refused::default();
    }
}

/// What deletes the row that a change puts.
pub fn deletion_of(change: &Change) -> Option<Change> {
    Some(match change {
        Change::PutLink(row) => Change::DeleteLink(row.index),
        Change::PutAddress(row) | Change::AddAddress(row) => Change::DeleteAddress(row.key()),
        Change::PutNeighbour(row) => Change::DeleteNeighbour(row.key()),
        Change::PutRoute(row, _) => Change::DeleteRoute(row.with_body(Arc::new(row.body.clone()))),
        Change::PutOtherRoute(row) => Change::DeleteOtherRoute(row.key.clone()),
        Change::PutNexthop(row) => Change::DeleteNexthop(row.id),
        Change::PutRule(row) | Change::ReplaceRule(_, row) => Change::DeleteRule(row.clone()),
        Change::PutFdb(row) => Change::DeleteFdb(row.key()),
        _ => return None,
    })
}

/// What deletes a row that an event tells of, and its table.
pub fn deletion_of_row(row: &Row) -> Change {
    match row {
        Row::Link(row) => Change::DeleteLink(row.index),
        Row::Address(row) => Change::DeleteAddress(row.key()),
        Row::Neighbour(row) => Change::DeleteNeighbour(row.key()),
        Row::Route(row) => Change::DeleteRoute(row.clone()),
        Row::OtherRoute(row) => Change::DeleteOtherRoute(row.key.clone()),
        Row::Nexthop(row) => Change::DeleteNexthop(row.id),
        Row::Rule(row) => Change::DeleteRule((**row).clone()),
        Row::Fdb(row) => Change::DeleteFdb(row.key()),
    }
}

/// The table of a deletion.
pub fn table_of(deletion: &Change) -> &'static str {
    match deletion {
        Change::DeleteLink(_) => "links",
        Change::DeleteAddress(_) => "addresses",
        Change::DeleteNeighbour(_) => "neighbours",
        Change::DeleteRoute(_) | Change::DeleteOtherRoute(_) => "routes",
        Change::DeleteNexthop(_) => "nexthops",
        Change::DeleteRule(_) => "rules",
        _ => "fdb",
    }
}
