//! What changed, for those who watch.

mod budget;
mod flaps;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use ipnet::IpNet;

use budget::Budget;

use crate::row::address::Address;
use crate::row::fdb::FdbEntry;
use crate::row::heap_bytes::OWN;
use crate::row::link::Link;
use crate::row::neighbour::Neighbour;
use crate::row::nexthop::Nexthop;
use crate::row::route::{OtherRoute, SharedRoute};
use crate::row::rule::Rule;
pub use flaps::{Flaps, RouteFlaps};

/// A moment of the tables; grows by one with each commit that changed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It is new.
    Added,
    /// It replaced one of the same key.
    Changed,
    /// It is gone; the row tells what it was.
    Deleted,
}

/// A row of any table.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each is the row it names")]
pub enum Row {
    Link(Arc<Link>),
    Address(Arc<Address>),
    Neighbour(Arc<Neighbour>),
    Route(SharedRoute),
    OtherRoute(Arc<OtherRoute>),
    Nexthop(Arc<Nexthop>),
    Rule(Arc<Rule>),
    Fdb(Arc<FdbEntry>),
}

/// A change as watchers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What happened.
    pub operation: Operation,
    /// To which row: as it is now, or as it was when deleted.
    pub row: Row,
    /// Of one that changed: as it was before.
    pub before: Option<Box<Row>>,
}

impl Event {
    /// One that is new, or gone.
    pub fn new(operation: Operation, row: Row) -> Self {
        Self {
            operation,
            row,
            before: None,
        }
    }

    /// One that stands in the place of another.
    pub fn changed(before: Row, row: Row) -> Self {
        Self {
            operation: Operation::Changed,
            row,
            before: Some(Box::new(before)),
        }
    }

    /// What it takes beside itself, about, where the event before does not
    /// have it too.
    fn heap_bytes(&self, before: Option<&Self>) -> usize {
        let former = self.before.as_deref();
        let former = former.map(|row| OWN + size_of::<Row>() + row.heap_bytes(Some(&self.row)));
        self.row.heap_bytes(before.map(|one| &one.row)) + former.unwrap_or_default()
    }
}

/// What changed in a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct EventBatch {
    /// The generation.
    pub generation: Generation,
    /// When, in milliseconds since the UNIX epoch.
    pub at_millis: u64,
    /// What, in order.
    pub events: Arc<[Event]>,
}

/// Events from a generation on.
#[derive(Debug, Clone, PartialEq)]
pub enum Events {
    /// The batches of the generations after the one asked for, oldest
    /// first; none when nothing happened.
    Batches(Vec<EventBatch>),
    /// Too much happened since: take a snapshot and go on from there.
    FellBehind,
}

/// Events kept for watchers at most. Those who fall further behind take a
/// snapshot instead.
const MAX_EVENTS: usize = 1 << 17;
/// Octets of them at most, about, of one owner's tables: events of links are
/// large.
const MAX_EVENT_BYTES: usize = 24 << 20;
/// What a batch takes beside its events: its place in a chunk, and the
/// allocator's.
const BATCH_BYTES: usize = size_of::<Batch>() + 32;
/// A chunk is closed at this many batches or events.
const CHUNK: usize = 256;

/// The events of one generation.
#[derive(Debug, Clone)]
struct Batch {
    generation: Generation,
    at_millis: u64,
    events: Arc<[Event]>,
    /// Octets that it takes, about.
    bytes: usize,
}

impl Batch {
    /// Counts what it takes, about. A body that the event before has too is
    /// not counted again; `before` is the event before the first.
    fn count(&mut self, before: Option<&Event>) {
        let befores = std::iter::once(before).chain(self.events.iter().map(Some));
        let rows = befores.zip(&*self.events);
        let rows = rows.map(|(before, event)| event.heap_bytes(before));
        self.bytes = BATCH_BYTES + size_of_val(&*self.events) + rows.sum::<usize>();
    }
}

impl Row {
    /// What it takes beside itself, about, where another does not have it
    /// too.
    fn heap_bytes(&self, before: Option<&Row>) -> usize {
        match self {
            Self::Link(row) => OWN + size_of::<Link>() + row.heap_bytes(),
            Self::Address(row) => {
                OWN + size_of::<Address>() + row.label.as_ref().map_or(0, |label| label.len())
            }
            Self::Neighbour(_) => OWN + size_of::<Neighbour>(),
            Self::Route(row) => match before {
                Some(Self::Route(before)) if Arc::ptr_eq(&before.body, &row.body) => 0,
                _ => OWN + size_of_val(&*row.body) + row.body.heap_bytes(),
            },
            Self::OtherRoute(row) => OWN + size_of::<OtherRoute>() + row.heap_bytes(),
            Self::Nexthop(row) => OWN + size_of::<Nexthop>() + row.heap_bytes(),
            Self::Rule(row) => OWN + size_of::<Rule>() + row.heap_bytes(),
            Self::Fdb(row) => OWN + size_of::<FdbEntry>() + row.rest.bytes().len(),
        }
    }
}

/// When routes of one owner changed, as far back as its events are kept.
#[derive(Debug, Clone, Default)]
pub struct RouteChanges {
    /// Changes up to this moment may be forgotten; milliseconds since the
    /// UNIX epoch, 0: none is.
    pub forgotten_at_millis: u64,
    changes: HashMap<(u32, IpNet), Changed>,
}

/// How the routes of one prefix changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// The last time, milliseconds since the UNIX epoch.
    pub at_millis: u64,
    /// How often.
    pub times: u32,
}

/// How the routes of one prefix changed, as far back as events are kept.
#[derive(Debug, Clone, Default)]
pub struct RouteHistory {
    /// Changes up to this moment may be forgotten; milliseconds since the
    /// UNIX epoch, 0: none is.
    pub forgotten_at_millis: u64,
    /// How often they changed since.
    pub times: usize,
    /// The newest changes, oldest first, each with its moment.
    pub newest: Vec<(u64, Event)>,
}

impl RouteChanges {
    /// How the routes of a prefix in a table changed; `None`: not at all
    /// since [`RouteChanges::forgotten_at_millis`]. O(1).
    pub fn of(&self, table: u32, prefix: IpNet) -> Option<Changed> {
        self.changes.get(&(table, prefix)).copied()
    }

    fn count(&mut self, batch: &Batch) {
        let at_millis = batch.at_millis;
        for event in &*batch.events {
            if let Row::Route(route) = &event.row {
                let none = Changed {
                    at_millis,
                    times: 0,
                };
                let place = (route.table, route.prefix);
                let changed = self.changes.entry(place).or_insert(none);
                changed.at_millis = at_millis;
                changed.times = changed.times.saturating_add(1);
            }
        }
    }
}

/// Rung when one of some tables changes: for who follows many of them with
/// one thread.
#[derive(Debug, Default)]
pub struct Bell {
    is_rung: AtomicBool,
    lock: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Rings it. One atomic operation where nobody has heard the last ring
    /// yet.
    pub fn ring(&self) {
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.rung.notify_all();
        }
    }

    /// Waits until it rings, up to `patience`, or not at all if it rang
    /// since the last wait; whether it rang.
    pub fn wait(&self, patience: Duration) -> bool {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_silent = |(): &mut ()| !self.is_rung.load(Ordering::Acquire);
        drop(self.rung.wait_timeout_while(guard, patience, is_silent));
        self.is_rung.swap(false, Ordering::AcqRel)
    }
}

/// The latest batches, shared between the writer and the watchers. Under
/// the lock there is a push, a pop, or the clone of at most some hundred
/// pointers to chunks; readers of snapshots never take it.
#[derive(Debug)]
pub(crate) struct Log {
    kept: Mutex<Kept>,
    grown: Condvar,
    /// Shared with other logs.
    budget: &'static Budget,
}

impl Default for Log {
    fn default() -> Self {
        Self::within(&budget::OF_PROCESS)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.budget.moved(kept.bytes, 0);
    }
}

#[derive(Debug, Default)]
struct Kept {
    /// Older batches, in chunks that are shared with watchers whole.
    closed: VecDeque<Arc<[Batch]>>,
    /// The newest, fewer than [`CHUNK`].
    open: Vec<Batch>,
    /// Events in `open`.
    open_events: usize,
    /// Events in all, and the octets that they take, about.
    events: usize,
    bytes: usize,
    /// Everything up to here may be gone.
    forgotten: Generation,
    /// When that was, milliseconds since the UNIX epoch.
    forgotten_at_millis: u64,
    latest: Generation,
    /// Watchers that wait for the next batch.
    waiting: usize,
    /// Rung with each batch.
    bells: Vec<Weak<Bell>>,
}

impl Kept {
    fn push(&mut self, mut batch: Batch) {
        let newest = self.closed.back().and_then(|chunk| chunk.last());
        let newest = self.open.last().or(newest);
        batch.count(newest.and_then(|batch| batch.events.last()));
        self.events += batch.events.len();
        self.bytes += batch.bytes;
        self.open_events += batch.events.len();
        self.open.push(batch);
        if self.open.len() >= CHUNK || self.open_events >= CHUNK {
            self.closed.push_back(std::mem::take(&mut self.open).into());
            self.open_events = 0;
        }
    }

    /// Takes out the oldest chunk if there are too many events, or they take
    /// more octets than are allowed. The newest batch stays.
    fn pop(&mut self, allowed: usize) -> Option<Arc<[Batch]>> {
        if self.events <= MAX_EVENTS && self.bytes <= allowed {
            return None;
        }
        let oldest = self.closed.pop_front().or_else(|| self.older_half())?;
        self.events -= oldest.iter().map(|batch| batch.events.len()).sum::<usize>();
        self.bytes -= oldest.iter().map(|batch| batch.bytes).sum::<usize>();
        if let Some(last) = oldest.last() {
            self.forgotten = last.generation;
            self.forgotten_at_millis = last.at_millis;
        }
        Some(oldest)
    }

    /// The older half of the batches in no chunk, but never the newest: for
    /// whoever may keep little.
    fn older_half(&mut self) -> Option<Arc<[Batch]>> {
        let older = self.open.len() / 2;
        let older: Vec<Batch> = self.open.drain(..older).collect();
        self.open_events = self.open.iter().map(|batch| batch.events.len()).sum();
        (!older.is_empty()).then(|| older.into())
    }

    /// Takes out all; nothing before a generation is known any more.
    fn forget(
        &mut self,
        generation: Generation,
        at_millis: u64,
    ) -> (VecDeque<Arc<[Batch]>>, Vec<Batch>) {
        self.forgotten = generation;
        self.forgotten_at_millis = at_millis;
        (self.events, self.bytes) = (0, 0);
        self.open_events = 0;
        (
            std::mem::take(&mut self.closed),
            std::mem::take(&mut self.open),
        )
    }

    /// The chunks that hold what came after `seen`, and the newest batches.
    fn after(&self, seen: Generation) -> (Vec<Arc<[Batch]>>, Vec<Batch>) {
        let is_seen =
            |chunk: &Arc<[Batch]>| chunk.last().is_none_or(|last| last.generation <= seen);
        let first = self.closed.partition_point(is_seen);
        (
            self.closed.range(first..).cloned().collect(),
            self.open.clone(),
        )
    }
}

impl Log {
    /// An empty one that keeps within a bound with others.
    fn within(budget: &'static Budget) -> Self {
        Self {
            kept: Mutex::default(),
            grown: Condvar::new(),
            budget,
        }
    }

    /// Appends a batch of a moment in milliseconds since the UNIX epoch;
    /// `None` stands for one too large to keep.
    pub(crate) fn push(&self, generation: Generation, at_millis: u64, batch: Option<Vec<Event>>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.latest = generation;
        let before = kept.bytes;
        let mut forgotten = (VecDeque::new(), Vec::new());
        match batch {
            Some(events) => kept.push(Batch {
                generation,
                at_millis,
                events: events.into(),
                bytes: 0,
            }),
            None => forgotten = kept.forget(generation, at_millis),
        }
        self.budget.moved(before, kept.bytes);
        let (before, allowed) = (kept.bytes, self.budget.allowed(kept.bytes));
        while let Some(oldest) = kept.pop(allowed.min(MAX_EVENT_BYTES)) {
            forgotten.0.push_back(oldest);
        }
        self.budget.moved(before, kept.bytes);
        let is_awaited = kept.waiting > 0;
        for bell in kept.bells.iter().filter_map(Weak::upgrade) {
            bell.ring();
        }
        drop(kept);
        // Freed without the lock.
        drop(forgotten);
        if is_awaited {
            self.grown.notify_all();
        }
    }

    /// Rings a bell with each batch from now on, as long as somebody has
    /// it.
    pub(crate) fn ring(&self, bell: &Arc<Bell>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bells.retain(|one| one.strong_count() > 0);
        kept.bells.push(Arc::downgrade(bell));
    }

    /// Octets that the events kept take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .bytes
    }

    pub(crate) fn max_batch() -> usize {
        MAX_EVENTS
    }

    /// The events after `seen`, of so many batches at most; waits up to
    /// `patience` for the first.
    pub(crate) fn after(&self, seen: Generation, most: usize, patience: Duration) -> Events {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.latest <= seen && !patience.is_zero() {
            kept.waiting += 1;
            kept = self
                .grown
                .wait_timeout_while(kept, patience, |kept| kept.latest <= seen)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            kept.waiting -= 1;
        }
        if seen < kept.forgotten {
            return Events::FellBehind;
        }
        if kept.latest <= seen {
            return Events::Batches(Vec::new());
        }
        let (closed, open) = kept.after(seen);
        drop(kept);
        let closed = closed.iter().flat_map(|chunk| chunk.iter().cloned());
        let batches = closed.chain(open);
        let unseen = batches.filter(|batch| batch.generation > seen).take(most);
        let told = unseen.map(|of| EventBatch {
            generation: of.generation,
            at_millis: of.at_millis,
            events: of.events,
        });
        Events::Batches(told.collect())
    }

    /// All batches that are kept. O(batches), outside of the lock.
    pub(crate) fn kept(&self) -> Vec<EventBatch> {
        let (_, closed, open) = self.all();
        let batches = closed.iter().flat_map(|chunk| &**chunk).chain(&open);
        let told = batches.map(|of| EventBatch {
            generation: of.generation,
            at_millis: of.at_millis,
            events: Arc::clone(&of.events),
        });
        told.collect()
    }

    /// When which routes changed. O(events kept), outside of the lock.
    pub(crate) fn route_changes(&self) -> RouteChanges {
        let (forgotten_at_millis, closed, open) = self.all();
        let mut changes = RouteChanges {
            forgotten_at_millis,
            changes: HashMap::new(),
        };
        for batch in closed.iter().flat_map(|chunk| &**chunk).chain(&open) {
            changes.count(batch);
        }
        changes
    }

    /// How the routes of a prefix in a table changed. O(events kept),
    /// outside of the lock.
    pub(crate) fn history_of(&self, table: u32, prefix: IpNet, most: usize) -> RouteHistory {
        let (forgotten_at_millis, closed, open) = self.all();
        let batches = closed.iter().flat_map(|chunk| &**chunk).chain(&open);
        let about = batches.flat_map(|batch| {
            let events = batch.events.iter();
            let about = events.filter(|event| is_about(event, table, prefix));
            about.map(|event| (batch.at_millis, event))
        });
        let all: Vec<_> = about.collect();
        let newest = all.len().saturating_sub(most)..;
        let newest = all.get(newest).unwrap_or_default().iter();
        RouteHistory {
            forgotten_at_millis,
            times: all.len(),
            newest: newest.map(|(at, event)| (*at, (*event).clone())).collect(),
        }
    }

    fn all(&self) -> (u64, Vec<Arc<[Batch]>>, Vec<Batch>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (closed, open) = kept.after(kept.forgotten);
        (kept.forgotten_at_millis, closed, open)
    }
}

fn is_about(event: &Event, table: u32, prefix: IpNet) -> bool {
    matches!(&event.row, Row::Route(route) if route.table == table && route.prefix == prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::route::{Route, RouteBody};
    use crate::row::rule::Rule;

    fn events(count: usize) -> Vec<Event> {
        let row = Row::Rule(Arc::new(Rule::default()));
        let operation = Operation::Added;
        vec![Event::new(operation, row); count]
    }

    fn generations(events: Events) -> Vec<u64> {
        match events {
            Events::Batches(batches) => batches.iter().map(|of| of.generation.0).collect(),
            Events::FellBehind => panic!("fell behind"),
        }
    }

    #[test]
    fn every_batch_after_the_one_seen_is_told_whatever_the_chunks() {
        let log = Log::default();
        let mut at = 0;
        for size in (0..300).map(|at| [1, 3, 300][at % 3]) {
            at += 1;
            log.push(Generation(at), 0, Some(events(size)));
            for seen in [0, at / 2, at - 1, at] {
                let told = generations(log.after(Generation(seen), usize::MAX, Duration::ZERO));
                assert!(told.into_iter().eq(seen + 1..=at), "after {seen} of {at}");
            }
        }
    }

    #[test]
    fn the_oldest_are_forgotten_and_who_missed_them_is_told_so() {
        let log = Log::default();
        for at in 1..=MAX_EVENTS as u64 + 10 {
            log.push(Generation(at), 0, Some(events(1)));
        }
        assert_eq!(
            log.after(Generation(0), usize::MAX, Duration::ZERO),
            Events::FellBehind
        );
        let last = MAX_EVENTS as u64 + 10;
        let told = generations(log.after(Generation(last - 1_000), usize::MAX, Duration::ZERO));
        assert!(told.into_iter().eq(last - 999..=last));
        log.push(Generation(last + 1), 0, None);
        assert_eq!(
            log.after(Generation(last), usize::MAX, Duration::ZERO),
            Events::FellBehind
        );
        let told = log.after(Generation(last + 1), usize::MAX, Duration::ZERO);
        assert_eq!(told, Events::Batches(Vec::new()));
    }

    #[test]
    fn large_events_are_forgotten_sooner() {
        let log = Log::default();
        let row = Row::Link(Arc::new(Link::default()));
        let event = Event::new(Operation::Changed, row);
        let links = MAX_EVENT_BYTES / size_of::<Link>();
        assert!(links < MAX_EVENTS, "as many as may be kept by number");
        for at in 1..=links as u64 {
            log.push(Generation(at), 0, Some(vec![event.clone()]));
            assert!(log.bytes() <= MAX_EVENT_BYTES, "{at}");
        }
        let all = log.after(Generation(0), usize::MAX, Duration::ZERO);
        assert_eq!(all, Events::FellBehind);
        assert!(log.bytes() > MAX_EVENT_BYTES / 2);
        log.push(Generation(links as u64 + 1), 0, None);
        assert_eq!(log.bytes(), 0);
    }

    #[test]
    fn many_logs_stay_within_one_bound_and_each_tells_its_newest() {
        const MOST: usize = 1 << 20;
        let budget: &'static Budget = Box::leak(Box::new(Budget::new(MOST)));
        let logs: Vec<Log> = (0..40).map(|_| Log::within(budget)).collect();
        let sum = || logs.iter().map(Log::bytes).sum::<usize>();
        let newest = 2_000;
        for at in 1..=newest {
            for log in &logs {
                log.push(Generation(at), 0, Some(events(3)));
                assert!(sum() <= MOST + BATCH_BYTES * logs.len(), "{}", sum());
            }
        }
        for log in &logs {
            let told = generations(log.after(Generation(newest - 1), usize::MAX, Duration::ZERO));
            assert_eq!(told, [newest]);
            // Each has about what the others have.
            assert!(log.bytes() > MOST / 41 / 4, "{}", log.bytes());
        }
        // One that goes leaves its part to the others, and one alone half.
        let mut logs = logs;
        logs.truncate(1);
        for at in newest + 1..20_000 {
            logs[0].push(Generation(at), 0, Some(events(3)));
        }
        let alone = logs[0].bytes();
        assert!(alone <= MOST / 2 && alone > MOST / 4, "{alone}");
        logs.clear();
        assert_eq!(budget.allowed(0), MOST / 2);
    }

    #[test]
    fn what_is_large_in_a_row_counts_and_a_body_that_is_shared_once() {
        let bytes = |events: Vec<Event>| {
            let log = Log::default();
            let generations = 1..=events.len() as u64;
            for (at, event) in generations.zip(events) {
                log.push(Generation(at), 0, Some(vec![event]));
            }
            log.bytes()
        };
        let link = |names: usize| Link {
            alt_names: (0..names).map(|_| "x".repeat(100).into()).collect(),
            ..Link::default()
        };
        let named = |names| Event::new(Operation::Changed, Row::Link(Arc::new(link(names))));
        assert!(bytes(vec![named(1_000)]) > bytes(vec![named(0)]) + 100_000);
        let own: Vec<_> = (0..100).map(|at| route(at, "10.0.0.0/8")).collect();
        let Row::Route(first) = &own[0].row else {
            panic!("a route")
        };
        let shared = own.iter().map(|event| {
            let mut event = event.clone();
            if let Row::Route(route) = &mut event.row {
                route.body = Arc::clone(&first.body);
            }
            event
        });
        let shared = bytes(shared.collect());
        assert!(bytes(own) >= shared + 99 * size_of::<RouteBody>());
    }

    #[test]
    fn who_takes_them_little_by_little_gets_all() {
        let log = Log::default();
        for at in 1..=1_000 {
            log.push(Generation(at), 0, Some(events(1)));
        }
        let (mut seen, mut told) = (Generation(0), Vec::new());
        loop {
            let some = generations(log.after(seen, 300, Duration::ZERO));
            let Some(last) = some.last() else { break };
            assert!(some.len() <= 300);
            seen = Generation(*last);
            told.extend(some);
        }
        assert!(told.into_iter().eq(1..=1_000));
    }

    #[test]
    fn a_watcher_far_behind_holds_the_writer_up_for_some_hundred_pointers() {
        let log = Log::default();
        for at in 1..=MAX_EVENTS as u64 {
            log.push(Generation(at), 0, Some(events(1)));
        }
        let kept = log.kept.lock().unwrap();
        let (closed, open) = kept.after(Generation(0));
        assert!(closed.len() + open.len() <= MAX_EVENTS / CHUNK + CHUNK);
    }

    #[test]
    fn a_bell_rings_with_each_batch_of_any_log() {
        let (first, second, bell) = (Log::default(), Log::default(), Arc::new(Bell::default()));
        first.ring(&bell);
        second.ring(&bell);
        assert!(!bell.wait(Duration::ZERO));
        first.push(Generation(1), 0, Some(events(1)));
        second.push(Generation(1), 0, Some(events(1)));
        assert!(bell.wait(Duration::ZERO) && !bell.wait(Duration::ZERO));
        let waits = std::thread::spawn({
            let bell = Arc::clone(&bell);
            move || bell.wait(Duration::from_secs(60))
        });
        second.push(Generation(2), 0, None);
        assert!(waits.join().unwrap());
        // A bell that nobody has is not kept.
        drop(bell);
        first.ring(&Arc::new(Bell::default()));
        assert_eq!(first.kept.lock().unwrap().bells.len(), 1);
    }

    fn route(table: u32, prefix: &str) -> Event {
        let body = Arc::new(RouteBody {
            kind: 1,
            protocol: 4,
            ..RouteBody::default()
        });
        let route = Route {
            table,
            prefix: prefix.parse().unwrap(),
            tos: 0,
            metric: 0,
            body,
        };
        Event::new(Operation::Added, Row::Route(route))
    }

    #[test]
    fn it_is_known_when_and_how_often_a_route_changed_until_it_is_forgotten() {
        let (log, [one, other]) = (Log::default(), ["10.0.0.0/8", "10.1.0.0/16"]);
        let prefix = |text: &str| text.parse().unwrap();
        log.push(
            Generation(1),
            100,
            Some(vec![route(254, one), route(7, one)]),
        );
        log.push(Generation(2), 200, Some(events(3)));
        log.push(
            Generation(3),
            300,
            Some(vec![route(254, one), route(254, other)]),
        );
        let changed = |at_millis, times| Some(Changed { at_millis, times });
        let told = log.route_changes();
        assert_eq!(told.forgotten_at_millis, 0);
        assert_eq!(told.of(254, prefix(one)), changed(300, 2));
        assert_eq!(told.of(7, prefix(one)), changed(100, 1));
        assert_eq!(told.of(254, prefix(other)), changed(300, 1));
        assert_eq!(told.of(7, prefix(other)), None);
        let history = |most| {
            let history = log.history_of(254, prefix(one), most);
            let newest = history.newest.into_iter().map(|(at, _)| at);
            (history.times, newest.collect::<Vec<_>>())
        };
        assert_eq!(history(9), (2, vec![100, 300]));
        assert_eq!(history(1), (2, vec![300]));
        assert_eq!(history(0), (2, vec![]));
        log.push(Generation(4), 400, None);
        log.push(Generation(5), 500, Some(vec![route(254, one)]));
        let told = log.route_changes();
        assert_eq!(told.forgotten_at_millis, 400);
        assert_eq!(told.of(254, prefix(one)), changed(500, 1));
        assert_eq!(told.of(254, prefix(other)), None);
    }

    #[test]
    fn one_that_waits_is_woken_by_the_next_batch() {
        let log = Arc::new(Log::default());
        let waits = std::thread::spawn({
            let log = Arc::clone(&log);
            move || log.after(Generation(0), usize::MAX, Duration::from_secs(60))
        });
        while log.kept.lock().unwrap().waiting == 0 {
            std::thread::yield_now();
        }
        log.push(Generation(1), 0, Some(events(1)));
        assert_eq!(generations(waits.join().unwrap()), [1]);
        assert_eq!(log.kept.lock().unwrap().waiting, 0);
    }
}
