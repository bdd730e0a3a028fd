//! When the routes of owners changed, gathered once for many questions: it
//! is a pass over all events that are kept, some ten milliseconds. For
//! `owners`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use table::RouteChanges;

use crate::namespace::Namespace;

/// How old what was gathered may be.
const FRESH: Duration = Duration::from_secs(1);
/// Owners whose times are kept: some 8 MiB each at most.
const MOST: usize = 8;

/// When the routes of the owners that were asked for last changed.
#[derive(Debug, Default)]
pub struct RouteTimes(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    inode: u64,
    owner: String,
    feeder: Option<u64>,
    gathered: Instant,
    changes: Arc<RouteChanges>,
}

impl RouteTimes {
    /// Does something that is such a pass too, while no other is under way:
    /// what it gathers takes some 10 MiB for a while.
    pub fn alone<T>(&self, gather: impl FnOnce() -> T) -> T {
        let _kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gather()
    }

    /// When the routes of an owner changed, up to a second ago. Who comes
    /// while they are gathered waits for them.
    pub fn of(&self, namespace: &Namespace, owner: &str) -> Arc<RouteChanges> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &Kept| {
            one.owner == owner && one.inode == namespace.inode && one.feeder == namespace.feeder
        };
        if let Some(one) = kept.iter().find(|one| is_it(one))
            && one.gathered.elapsed() < FRESH
        {
            return Arc::clone(&one.changes);
        }
        kept.retain(|one| !is_it(one));
        if kept.len() >= MOST {
            // The oldest: they stand in the order in which they came.
            kept.remove(0);
        }
        let changes = Arc::new(namespace.source.reader().route_changes());
        kept.push(Kept {
            inode: namespace.inode,
            owner: owner.to_owned(),
            feeder: namespace.feeder,
            gathered: Instant::now(),
            changes: Arc::clone(&changes),
        });
        changes
    }
}
