//! What a statement is answered from, and what it took: one moment of the
//! tables, from its first row to its last.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;
use table::{Reader, Tables};
use view::Context;
use words::Names;

/// A moment of a namespace.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Its tables.
    pub tables: Arc<Tables>,
    /// Names of numbers.
    pub names: Arc<Names>,
    /// The time of it, milliseconds since the UNIX epoch.
    pub now_millis: u64,
    /// For what happened before.
    pub reader: Reader,
}

impl Moment {
    /// For showing rows of some of its tables.
    pub(crate) fn context<'m>(&'m self, tables: &'m Tables) -> Context<'m> {
        Context {
            links: tables.named_links(),
            tables: Some(tables),
            now_millis: self.now_millis,
            names: &self.names,
        }
    }
}

/// Rows that get a number at most, where a statement wants rows numbered.
const MAX_NUMBERED: usize = 200_000;

/// What tells a route from all others of a moment: whose it is, its table,
/// prefix, TOS, metric, and which of those.
pub(crate) type RouteKey = (usize, u32, IpNet, u8, u32, u32);

/// A statement under way.
#[derive(Debug)]
pub(crate) struct Running {
    moment: Mutex<Arc<Moment>>,
    /// Nobody waits for its rows any more, or its time is over.
    pub is_over: AtomicBool,
    visited: AtomicU64,
    scans: Mutex<BTreeMap<Scanned, Counts>>,
    numbers: Mutex<HashMap<RouteKey, i64>>,
}

/// How a table was looked up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scanned {
    pub table: &'static str,
    /// The conditions that were handed on.
    pub conditions: String,
    /// The way to the rows.
    pub way: &'static str,
}

/// How often, and how many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub times: u64,
    pub visited: u64,
}

impl Running {
    pub(crate) fn new(moment: Moment) -> Self {
        Self {
            moment: Mutex::new(Arc::new(moment)),
            is_over: AtomicBool::new(false),
            visited: AtomicU64::new(0),
            scans: Mutex::default(),
            numbers: Mutex::default(),
        }
    }

    pub(crate) fn moment(&self) -> Arc<Moment> {
        let moment = self.moment.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&moment)
    }

    /// Takes a newer moment, before the first row.
    pub(crate) fn renew(&self, moment: Moment) {
        let mut now = self.moment.lock().unwrap_or_else(PoisonError::into_inner);
        *now = Arc::new(moment);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Counts what a cursor did.
    pub(crate) fn count(&self, scanned: Scanned, counts: Counts) {
        self.visited.fetch_add(counts.visited, Ordering::Relaxed);
        let mut scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        let all = scans.entry(scanned).or_default();
        all.times += counts.times;
        all.visited += counts.visited;
    }

    /// Rows that were looked at.
    pub(crate) fn visited(&self) -> u64 {
        self.visited.load(Ordering::Relaxed)
    }

    /// How tables were looked up.
    pub(crate) fn scans(&self) -> Vec<(Scanned, Counts)> {
        let scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        let scans = scans.iter();
        scans
            .map(|(scanned, counts)| (scanned.clone(), *counts))
            .collect()
    }

    /// The number of a route, its own as long as the statement runs; `None`:
    /// too many have one.
    pub(crate) fn number_of(&self, key: RouteKey) -> Option<i64> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.get(&key) {
            return Some(*number);
        }
        if numbers.len() >= MAX_NUMBERED {
            return None;
        }
        let number = numbers.len() as i64 + 1;
        numbers.insert(key, number);
        Some(number)
    }
}
