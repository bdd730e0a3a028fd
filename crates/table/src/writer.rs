//! The one writer, those who feed rows of their own beside it, and the
//! readers that nobody waits for.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipnet::IpNet;
use memory::Published;

use crate::event::{
    Bell, Event, EventBatch, Events, Generation, Log, RouteChanges, RouteFlaps, RouteHistory,
};
use crate::host::Host;
use crate::route_bodies::Interner;
use crate::routes::RouteLoad;
use crate::row::counters::{IpCounters, IpPlace, IpSettings};
use crate::row::neighbour::NeighbourKey;
use crate::row::route::{NextHop, SharedRoute, hop_flag};
use crate::sample::{Counted, NeighbourSample, Sample};

mod change;
mod feeder;
mod limits;
mod owners;
mod put;
mod rewrite;
mod stale;
mod tables;

pub use change::Change;
pub use feeder::{Feeder, Feeders};
pub use limits::{Limits, Refused, TableFull};
pub(crate) use owners::Owners;
pub use owners::{JoinError, KERNEL, MAX_FEEDERS, Owner};
use owners::{Registry, locked};
pub use stale::Unconfirmed;
pub use tables::{Routing, Tables};

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
    /// When the changes since the last commit happened.
    at_millis: u64,
    /// What readers know to have been refused.
    published_refused: Refused,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    published: Published<Tables>,
    log: Log,
    /// Held by whoever publishes: there are more than one.
    registry: Mutex<Registry>,
}

/// Reads what the writer publishes. Cheap to clone; as many as you like.
#[derive(Debug, Clone)]
pub struct Reader {
    shared: Arc<Shared>,
    /// For the rows of a feeder: the first owner's, whose links have names.
    first: Option<Arc<Shared>>,
}

impl Reader {
    /// The tables as of the last commit, for as long as you keep them.
    /// Wait-free, some 20 ns; for the rows of a feeder one allocation more.
    pub fn snapshot(&self) -> Arc<Tables> {
        let tables = self.shared.published.load();
        match &self.first {
            None => tables,
            Some(first) => Arc::new(tables.named_by(&first.published.load())),
        }
    }

    /// A reader of one owner's rows, the first one's by the name
    /// [`KERNEL`]; `None`: there is no such owner.
    pub fn of(&self, owner: &str) -> Option<Self> {
        let first = self.first.as_ref().unwrap_or(&self.shared);
        if owner == KERNEL {
            return Some(Self {
                shared: Arc::clone(first),
                first: None,
            });
        }
        let owner = first.published.load().owner(owner)?.reader(first);
        Some(owner)
    }

    /// What changed after a generation, waiting up to `patience` for the
    /// first event. Takes a short lock shared with the writer's commits:
    /// for watchers, not for packet paths.
    pub fn events_after(&self, seen: Generation, patience: Duration) -> Events {
        self.shared.log.after(seen, usize::MAX, patience)
    }

    /// The same, of so many generations at most: for who takes them little
    /// by little, and holds no more than that.
    pub fn some_events_after(&self, seen: Generation, most: usize, patience: Duration) -> Events {
        self.shared.log.after(seen, most, patience)
    }

    /// All events that are kept, the oldest first: for questions about what
    /// happened. O(batches kept); the events themselves are shared.
    pub fn kept_events(&self) -> Vec<EventBatch> {
        self.shared.log.kept()
    }

    /// Octets that the events kept for watchers take, about: 24 MiB at most.
    pub fn events_bytes(&self) -> usize {
        self.shared.log.bytes()
    }

    /// When which routes changed, as far back as events are kept.
    /// O(events kept), some ten milliseconds at most: for questions.
    pub fn route_changes(&self) -> RouteChanges {
        self.shared.log.route_changes()
    }

    /// How often routes changed since a moment (milliseconds since the UNIX
    /// epoch), as far back as events are kept. O(events kept).
    pub fn route_flaps(
        &self,
        since_millis: u64,
        is_wanted: &dyn Fn(u32, IpNet) -> bool,
    ) -> RouteFlaps {
        self.shared.log.route_flaps(since_millis, is_wanted)
    }

    /// When routes changed since a moment, as far back as events are kept:
    /// their table, prefix and the time, the oldest first. O(events kept).
    pub fn route_times(&self, since_millis: u64, each: &mut dyn FnMut(u32, IpNet, u64)) {
        self.shared.log.route_times(since_millis, each);
    }

    /// How the routes of a prefix in a table changed, with so many of the
    /// newest changes. O(events kept).
    pub fn history_of(&self, table: u32, prefix: IpNet, most: usize) -> RouteHistory {
        self.shared.log.history_of(table, prefix, most)
    }

    /// Rings a bell with each change from now on: for who follows many
    /// tables.
    pub fn ring(&self, bell: &Arc<Bell>) {
        self.shared.log.ring(bell);
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
            at_millis: 0,
            published_refused: Refused::default(),
            shared: Arc::new(Shared {
                published: Published::new(Tables::default()),
                log: Log::default(),
                registry: Mutex::default(),
            }),
        }
    }

    /// Takes other limits, for rows to come: those that are there stay.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Says when the changes that come now happen, milliseconds since the
    /// UNIX epoch: what [`Reader::route_changes`] tells of them.
    pub fn set_time(&mut self, now_millis: u64) {
        self.at_millis = now_millis;
    }

    /// A reader of what this writer publishes.
    pub fn reader(&self) -> Reader {
        Reader {
            shared: Arc::clone(&self.shared),
            first: None,
        }
    }

    /// Where others join, to feed rows of their own beside these.
    pub fn feeders(&self) -> Feeders {
        Feeders {
            first: Arc::clone(&self.shared),
        }
    }

    /// The tables with all changes so far, published or not.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Applies all changes and publishes them: what readers see next.
    /// A full table refuses its new rows and stops none of the others; the
    /// first refusal is told, and all are counted ([`Tables::refused`]).
    pub fn commit(
        &mut self,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<Generation, TableFull> {
        let refused = first_refused(changes, |change| self.apply(change));
        let generation = self.publish();
        refused.map_or(Ok(generation), Err)
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
            self.shared.show(self.tables.clone());
            let batch = self.pending.replace(Vec::new());
            let generation = self.tables.generation;
            self.shared.log.push(generation, self.at_millis, batch);
            self.changed = false;
        } else if self.tables.refused != self.published_refused {
            self.publish_samples();
        }
        self.published_refused = self.tables.refused;
        self.tables.generation
    }

    /// Publishes sampled counters, without a new generation.
    /// Of what was counted alone before, only links that it does not know
    /// remain: those that came meanwhile.
    pub fn publish_link_counters(&mut self, sample: Sample<u32, Counted>) {
        let alone = std::mem::take(&mut self.tables.counted_alone);
        for (link, counted) in alone.iter() {
            if sample.get(link).is_none() && self.tables.links.get(*link).is_some() {
                self.tables.counted_alone.insert(*link, *counted);
            }
        }
        self.tables.link_counters = Arc::new(sample);
        self.publish_samples();
    }

    /// Notes counters of single links, taken after all links' were. Readers
    /// see them after [`Writer::publish_counted`], or with the next change
    /// that is published. O(log links) each.
    pub fn count_alone(&mut self, counted: impl IntoIterator<Item = (u32, Counted)>) {
        for (link, counted) in counted {
            self.tables.counted_alone.insert(link, counted);
        }
    }

    /// Publishes counters of single links, without a new generation.
    pub fn publish_counted(&mut self) {
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

    /// Publishes what the host tells beside its tables, without a new
    /// generation: `change` is given what was published last.
    pub fn publish_host(&mut self, change: impl FnOnce(&mut Host)) {
        change(&mut self.tables.host);
        self.publish_samples();
    }

    /// Where the route stands that equals this one, body and all, so that
    /// another can take its place ([`Placement::At`](crate::Placement::At)). O(log n).
    pub fn ordinal_of(&self, route: &SharedRoute) -> Option<u32> {
        let route = route.with_body(&*route.body);
        self.tables.routes.ordinal_of(&self.interner, &route)
    }

    /// Says in which order links came into the namespace
    /// ([`Links::by_arrival`](crate::Links::by_arrival)); of those that are
    /// not named, after the others. O(n log n).
    pub fn order_links(&mut self, came: impl Iterator<Item = u32>) {
        self.changed |= self.tables.links.order(came);
    }

    /// Says what holds for routing as a whole. Readers see it after
    /// [`Writer::publish`].
    pub fn set_routing(&mut self, routing: Routing) {
        self.changed |= self.tables.routing != routing;
        self.tables.routing = routing;
    }

    /// The tables have all that their source has again: a whole listing was
    /// taken in. Readers see it after [`Writer::publish`].
    pub fn forget_refused(&mut self) {
        self.tables.refused = Refused::default();
    }

    /// Samples and refusals may come between changes that are not yet to be seen.
    fn publish_samples(&mut self) {
        let registry = locked(&self.shared.registry);
        let mut seen = (*self.shared.published.load()).clone();
        seen.link_counters = Arc::clone(&self.tables.link_counters);
        seen.counted_alone = self.tables.counted_alone.clone();
        seen.link_speeds = Arc::clone(&self.tables.link_speeds);
        seen.ip_counters = Arc::clone(&self.tables.ip_counters);
        seen.ip_settings = self.tables.ip_settings;
        seen.refused = self.tables.refused;
        seen.host = self.tables.host.clone();
        seen.neighbour_samples = Arc::clone(&self.tables.neighbour_samples);
        self.shared.published.store(seen);
        drop(registry);
    }

    /// Puts the routes of a load in the place of all that are there, at
    /// once; readers see them after [`Writer::publish`], and watchers take
    /// a snapshot. What the load refused is counted ([`Tables::refused`]).
    pub fn replace_routes(&mut self, load: RouteLoad) {
        let (routes, interner, refused) = load.finish();
        (self.tables.routes, self.interner) = (routes, interner);
        let all = &mut self.tables.refused.routes;
        *all = all.saturating_add(refused);
        self.without_events();
        self.changed = true;
    }

    /// Takes all rows out in one step. Watchers take a snapshot.
    fn clear(&mut self) -> Generation {
        self.tables = Tables {
            generation: self.tables.generation,
            routing: self.tables.routing,
            ..Tables::default()
        };
        self.interner = Interner::default();
        self.without_events();
        self.changed = true;
        self.publish()
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

/// Applies all changes; what was refused first.
fn first_refused(
    changes: impl IntoIterator<Item = Change>,
    mut apply: impl FnMut(Change) -> Result<(), TableFull>,
) -> Option<TableFull> {
    let mut first = None;
    for change in changes {
        let applied = apply(change);
        first = first.or(applied.err());
    }
    first
}

impl Shared {
    /// Shows readers tables of the first owner, beside the others' as they
    /// are.
    fn show(&self, mut tables: Tables) {
        let registry = locked(&self.registry);
        tables.owners = registry.owners.clone();
        self.published.store(tables);
        drop(registry);
    }

    /// Shows readers the others' tables, beside the first owner's as they
    /// are.
    fn show_owners(&self, registry: &Registry) {
        let mut seen = (*self.published.load()).clone();
        seen.owners = registry.owners.clone();
        self.published.store(seen);
    }
}

impl Tables {
    /// Whether the kernel would use a next hop of a route of a family
    /// (`AF_INET`, `AF_INET6`): it is not dead, and its link is usable.
    pub fn is_usable(&self, hop: &NextHop, family: u8) -> bool {
        let link = self.named_links().get(hop.link);
        let is_unmarked = hop.flags & hop_flag::UNMARKED != 0;
        hop.flags & hop_flag::DEAD == 0
            && link.is_none_or(|link| link.is_usable(family) || is_unmarked && link.is_up())
    }

    /// Whether an address is one of the host's own.
    pub fn is_own_address(&self, address: IpAddr) -> bool {
        self.addresses.by_address(address).next().is_some()
    }
}
