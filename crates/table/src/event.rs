//! What changed, for those who watch.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::row::address::Address;
use crate::row::fdb::FdbEntry;
use crate::row::link::Link;
use crate::row::neighbour::Neighbour;
use crate::row::nexthop::Nexthop;
use crate::row::route::{OtherRoute, SharedRoute};
use crate::row::rule::Rule;

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
}

/// Events from a generation on.
#[derive(Debug, Clone, PartialEq)]
pub enum Events {
    /// The batches of the generations after the one asked for, oldest
    /// first; none when nothing happened.
    Batches(Vec<(Generation, Arc<[Event]>)>),
    /// Too much happened since: take a snapshot and go on from there.
    FellBehind,
}

/// Events kept for watchers at most. Those who fall further behind take a
/// snapshot instead.
const MAX_EVENTS: usize = 1 << 17;

/// The latest batches, shared between the writer and the watchers. The
/// lock is held for a push, a pop or a clone of a few pointers; readers of
/// snapshots never take it.
#[derive(Debug, Default)]
pub(crate) struct Log {
    kept: Mutex<Kept>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    batches: VecDeque<(Generation, Arc<[Event]>)>,
    events: usize,
    /// Everything up to here may be gone from `batches`.
    forgotten: Generation,
    latest: Generation,
}

impl Log {
    /// Appends a batch; `None` stands for one too large to keep.
    pub(crate) fn push(&self, generation: Generation, batch: Option<Vec<Event>>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.latest = generation;
        match batch {
            Some(batch) => {
                kept.events += batch.len();
                kept.batches.push_back((generation, batch.into()));
            }
            None => {
                kept.batches.clear();
                kept.events = 0;
                kept.forgotten = generation;
            }
        }
        while kept.events > MAX_EVENTS {
            if let Some((generation, batch)) = kept.batches.pop_front() {
                kept.events -= batch.len();
                kept.forgotten = generation;
            }
        }
        drop(kept);
        self.grown.notify_all();
    }

    pub(crate) fn max_batch() -> usize {
        MAX_EVENTS
    }

    /// The events after `seen`; waits up to `patience` for the first.
    pub(crate) fn after(&self, seen: Generation, patience: Duration) -> Events {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, _) = self
            .grown
            .wait_timeout_while(kept, patience, |kept| kept.latest <= seen)
            .unwrap_or_else(PoisonError::into_inner);
        if seen < kept.forgotten {
            return Events::FellBehind;
        }
        let first = kept.batches.partition_point(|(g, _)| *g <= seen);
        Events::Batches(kept.batches.range(first..).cloned().collect())
    }
}
