//! The one writer, and the readers it never waits for.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use memory::Published;
use thiserror::Error;

use crate::event::{Event, Events, Generation, Log, Operation, Row};
use crate::route_bodies::Interner;
use crate::routes::{Placement, Put};
use crate::row::address::{Address, AddressKey};
use crate::row::counters::{IpCounters, IpPlace, IpSettings, LinkCounters};
use crate::row::fdb::{FdbEntry, FdbKey};
use crate::row::link::Link;
use crate::row::neighbour::{Neighbour, NeighbourKey};
use crate::row::nexthop::Nexthop;
use crate::row::route::{OtherRoute, OtherRouteKey, Route, RouteBody};
use crate::row::rule::Rule;
use crate::sample::{NeighbourSample, Sample};
use crate::tables::Tables;

/// A change to a table. Deleting what is not there changes nothing.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each names its row; see the row's own docs")]
pub enum Change {
    PutLink(Link),
    DeleteLink(u32),
    PutAddress(Address),
    DeleteAddress(AddressKey),
    PutNeighbour(Neighbour),
    DeleteNeighbour(NeighbourKey),
    PutRoute(Route, Placement),
    /// The route that equals this one, body and all.
    DeleteRoute(Route<Arc<RouteBody>>),
    PutOtherRoute(OtherRoute),
    DeleteOtherRoute(OtherRouteKey),
    PutNexthop(Nexthop),
    DeleteNexthop(u32),
    PutRule(Rule),
    /// The second in the place of the first, which is of the same family
    /// and priority.
    ReplaceRule(Rule, Rule),
    DeleteRule(Rule),
    PutFdb(FdbEntry),
    DeleteFdb(FdbKey),
}

/// How many rows each table may have. A row beyond is refused, the table
/// stays as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each names its table")]
pub struct Limits {
    pub links: usize,
    pub addresses: usize,
    pub neighbours: usize,
    pub routes: usize,
    pub nexthops: usize,
    pub rules: usize,
    pub fdb: usize,
}

impl Default for Limits {
    /// Four times what the largest router of 2026 holds.
    fn default() -> Self {
        Self {
            links: 1 << 20,
            addresses: 1 << 22,
            neighbours: 1 << 23,
            routes: 1 << 24,
            nexthops: 1 << 22,
            rules: 1 << 20,
            fdb: 1 << 23,
        }
    }
}

/// A table has as many rows as it may have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the table of {table} is full: it may have {limit} rows; raise `limits.{table}`")]
pub struct TableFull {
    /// Which table.
    pub table: &'static str,
    /// Its limit.
    pub limit: usize,
}

/// Changes the tables. There is one.
#[derive(Debug)]
pub struct Writer {
    tables: Tables,
    interner: Interner,
    limits: Limits,
    /// Events since the last commit; `None` once there are too many to
    /// keep for watchers.
    pending: Option<Vec<Event>>,
    changed: bool,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    published: Published<Tables>,
    log: Log,
}

/// Reads what the writer publishes. Cheap to clone; as many as you like.
#[derive(Debug, Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

impl Reader {
    /// The tables as of the last commit, for as long as you keep them.
    /// Wait-free, some 20 ns.
    pub fn snapshot(&self) -> Arc<Tables> {
        self.shared.published.load()
    }

    /// What changed after a generation, waiting up to `patience` for the
    /// first event. Takes a short lock shared with the writer's commits:
    /// for watchers, not for packet paths.
    pub fn events_after(&self, seen: Generation, patience: Duration) -> Events {
        self.shared.log.after(seen, patience)
    }
}

impl Default for Writer {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Writer {
    /// Empty tables, published as generation 0.
    pub fn new(limits: Limits) -> Self {
        Self {
            tables: Tables::default(),
            interner: Interner::default(),
            limits,
            pending: Some(Vec::new()),
            changed: false,
            shared: Arc::new(Shared {
                published: Published::new(Tables::default()),
                log: Log::default(),
            }),
        }
    }

    /// Takes other limits, for rows to come: those that are there stay.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// A reader of what this writer publishes.
    pub fn reader(&self) -> Reader {
        Reader {
            shared: Arc::clone(&self.shared),
        }
    }

    /// The tables with all changes so far, published or not.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Applies changes and publishes them: what readers see next.
    /// On [`TableFull`] the rows before it stand and are published.
    pub fn commit(
        &mut self,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<Generation, TableFull> {
        let applied = changes
            .into_iter()
            .try_for_each(|change| self.apply(change));
        let generation = self.publish();
        applied.map(|()| generation)
    }

    /// Says that the changes up to the next [`Writer::publish`] are not to
    /// be kept for watchers, who will take a snapshot: a first load.
    pub fn without_events(&mut self) {
        self.pending = None;
    }

    /// Publishes what was applied since, if it changed anything.
    /// Two allocations, whatever the size of the tables.
    pub fn publish(&mut self) -> Generation {
        if self.changed {
            self.tables.generation.0 += 1;
            self.shared.published.store(self.tables.clone());
            let batch = self.pending.replace(Vec::new());
            self.shared.log.push(self.tables.generation, batch);
            self.changed = false;
        }
        self.tables.generation
    }

    /// Publishes sampled counters, without a new generation.
    pub fn publish_link_counters(&mut self, sample: Sample<u32, LinkCounters>) {
        self.tables.link_counters = Arc::new(sample);
        self.publish_samples();
    }

    /// Publishes sampled speeds of links, Mb/s, without a new generation.
    pub fn publish_link_speeds(&mut self, sample: Sample<u32, u32>) {
        self.tables.link_speeds = Arc::new(sample);
        self.publish_samples();
    }

    /// Publishes what IP counted and how it is set, without a new
    /// generation.
    pub fn publish_ip(&mut self, sample: Sample<IpPlace, IpCounters>, settings: IpSettings) {
        self.tables.ip_counters = Arc::new(sample);
        self.tables.ip_settings = Some(settings);
        self.publish_samples();
    }

    /// Publishes sampled ages of neighbours, without a new generation.
    pub fn publish_neighbour_samples(&mut self, sample: Sample<NeighbourKey, NeighbourSample>) {
        self.tables.neighbour_samples = Arc::new(sample);
        self.publish_samples();
    }

    /// Samples may come between changes that are not yet to be seen.
    fn publish_samples(&mut self) {
        let mut seen = (*self.shared.published.load()).clone();
        seen.link_counters = Arc::clone(&self.tables.link_counters);
        seen.link_speeds = Arc::clone(&self.tables.link_speeds);
        seen.ip_counters = Arc::clone(&self.tables.ip_counters);
        seen.ip_settings = self.tables.ip_settings;
        seen.neighbour_samples = Arc::clone(&self.tables.neighbour_samples);
        self.shared.published.store(seen);
    }

    /// Applies one change; readers see it after [`Writer::publish`].
    /// O(log n).
    pub fn apply(&mut self, change: Change) -> Result<(), TableFull> {
        match change {
            Change::PutLink(row) => self.put_link(row)?,
            Change::PutAddress(row) => self.put_address(row)?,
            Change::PutNeighbour(row) => self.put_neighbour(row)?,
            Change::PutRoute(row, placement) => self.put_route(row, placement)?,
            Change::PutOtherRoute(row) => self.put_other_route(row)?,
            Change::PutNexthop(row) => self.put_nexthop(row)?,
            Change::PutRule(row) => self.put_rule(row)?,
            Change::ReplaceRule(old, new) => {
                let new = Arc::new(new);
                if self.tables.rules.replace(&old, Arc::clone(&new)).is_some() {
                    self.put(true, Row::Rule(new));
                }
            }
            Change::PutFdb(row) => self.put_fdb(row)?,
            Change::DeleteRoute(route) => self.delete_route(route),
            Change::DeleteLink(index) => {
                let old = self.tables.links.remove(index);
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

    fn put_link(&mut self, row: Link) -> Result<(), TableFull> {
        if self
            .tables
            .links
            .get(row.index)
            .is_some_and(|old| **old == row)
        {
            return Ok(());
        }
        check("links", self.tables.links.len(), self.limits.links)?;
        let row = Arc::new(row);
        let old = self.tables.links.put(Arc::clone(&row));
        self.put(old.is_some(), Row::Link(row));
        Ok(())
    }

    fn put_address(&mut self, row: Address) -> Result<(), TableFull> {
        let old = self.tables.addresses.get(&row.key());
        if old.is_some_and(|old| **old == row) {
            return Ok(());
        }
        check(
            "addresses",
            self.tables.addresses.len(),
            self.limits.addresses,
        )?;
        let row = Arc::new(row);
        let old = self.tables.addresses.put(Arc::clone(&row));
        self.put(old.is_some(), Row::Address(row));
        Ok(())
    }

    fn put_neighbour(&mut self, row: Neighbour) -> Result<(), TableFull> {
        let old = self.tables.neighbours.get(&row.key());
        if old.is_some_and(|old| **old == row) {
            return Ok(());
        }
        check(
            "neighbours",
            self.tables.neighbours.len(),
            self.limits.neighbours,
        )?;
        let row = Arc::new(row);
        let old = self.tables.neighbours.put(Arc::clone(&row));
        self.put(old.is_some(), Row::Neighbour(row));
        Ok(())
    }

    fn put_route(&mut self, row: Route, placement: Placement) -> Result<(), TableFull> {
        check("routes", self.tables.routes.len(), self.limits.routes)?;
        let event = self.pending.is_some().then(|| row.clone());
        let put = self.tables.routes.put(&mut self.interner, row, placement);
        if put == Put::Same {
            return Ok(());
        }
        self.changed = true;
        if let Some(row) = event {
            let body = self.shared_body(&row.body);
            self.put(
                matches!(put, Put::Replaced(_)),
                Row::Route(row.with_body(body)),
            );
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
        check("routes", self.tables.routes.len(), self.limits.routes)?;
        let row = Arc::new(row);
        let old = self.tables.routes.put_other(Arc::clone(&row));
        if old.as_ref() != Some(&row) {
            self.put(old.is_some(), Row::OtherRoute(row));
        }
        Ok(())
    }

    fn put_nexthop(&mut self, row: Nexthop) -> Result<(), TableFull> {
        if self
            .tables
            .nexthops
            .get(row.id)
            .is_some_and(|old| **old == row)
        {
            return Ok(());
        }
        check("nexthops", self.tables.nexthops.len(), self.limits.nexthops)?;
        let row = Arc::new(row);
        let old = self.tables.nexthops.put(Arc::clone(&row));
        self.put(old.is_some(), Row::Nexthop(row));
        Ok(())
    }

    fn put_rule(&mut self, row: Rule) -> Result<(), TableFull> {
        check("rules", self.tables.rules.len(), self.limits.rules)?;
        let row = Arc::new(row);
        if self.tables.rules.put(Arc::clone(&row)).is_none() {
            self.put(false, Row::Rule(row));
        }
        Ok(())
    }

    fn put_fdb(&mut self, row: FdbEntry) -> Result<(), TableFull> {
        if self
            .tables
            .fdb
            .get(&row.key())
            .is_some_and(|old| **old == row)
        {
            return Ok(());
        }
        check("fdb", self.tables.fdb.len(), self.limits.fdb)?;
        let row = Arc::new(row);
        let old = self.tables.fdb.put(Arc::clone(&row));
        self.put(old.is_some(), Row::Fdb(row));
        Ok(())
    }

    fn put(&mut self, replaced: bool, row: Row) {
        let operation = if replaced {
            Operation::Changed
        } else {
            Operation::Added
        };
        self.record(Event { operation, row });
    }

    fn deleted(&mut self, row: Option<Row>) {
        if let Some(row) = row {
            self.record(Event {
                operation: Operation::Deleted,
                row,
            });
        }
    }

    fn record(&mut self, event: Event) {
        self.changed = true;
        if let Some(pending) = &mut self.pending {
            pending.push(event);
            if pending.len() > Log::max_batch() {
                self.pending = None;
            }
        }
    }
}

fn check(table: &'static str, rows: usize, limit: usize) -> Result<(), TableFull> {
    if rows < limit {
        Ok(())
    } else {
        Err(TableFull { table, limit })
    }
}

impl Tables {
    /// Whether an address is one of the host's own.
    pub fn is_own_address(&self, address: IpAddr) -> bool {
        self.addresses.by_address(address).next().is_some()
    }
}
