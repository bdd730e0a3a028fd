//! What a statement is answered from, and what it took: one moment of the
//! tables, from its first row to its last.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ipnet::IpNet;
use table::{Event, Reader, Tables};
use view::Context;
use words::Names;

use crate::nat::MOST_WALKS;

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
pub(crate) struct Running {
    moment: Mutex<Arc<Moment>>,
    /// Nobody waits for its rows any more, or its time is over.
    pub is_over: AtomicBool,
    visited: AtomicU64,
    /// When its time is over.
    pub deadline: Instant,
    translation: Translation,
    earlier: Option<Arc<dyn Earlier>>,
    walks: AtomicUsize,
    scans: Mutex<BTreeMap<Scanned, Counts>>,
    numbers: Mutex<HashMap<RouteKey, i64>>,
}

/// What happened before, as files tell it.
pub trait Earlier: Send + Sync {
    /// What happened between two times (milliseconds since the UNIX epoch,
    /// both with what happened then), the oldest first. The error is for
    /// whoever asks.
    fn between(&self, from_millis: u64, until_millis: u64) -> EarlierEvents;
}

/// Events of before, generation by generation.
pub type EarlierEvents = Box<dyn Iterator<Item = Result<EarlierBatch, String>>>;

/// Events of one generation, and the tables behind it.
#[derive(Debug)]
pub struct EarlierBatch {
    /// When, in milliseconds since the UNIX epoch.
    pub at_millis: u64,
    /// What, in order; nothing now and then, for who looks at the time.
    pub events: Arc<[Event]>,
    /// For names of links.
    pub tables: Arc<Tables>,
}

/// Where a translation is asked; else why it is not, for whoever asks.
pub type Translation = Result<Arc<Path>, String>;

/// The right to walk through a table of a translation.
#[derive(Debug)]
pub(crate) struct WalkRight(Arc<Running>);

impl WalkRight {
    pub(crate) fn take(running: &Arc<Running>) -> Result<Self, String> {
        let right = Self(Arc::clone(running));
        match running.walks.fetch_add(1, Ordering::Relaxed) < MOST_WALKS {
            true => Ok(right),
            false => Err(format!(
                "a statement reads {MOST_WALKS} tables of a translation at a time at most"
            )),
        }
    }
}

impl Drop for WalkRight {
    fn drop(&mut self) {
        self.0.walks.fetch_sub(1, Ordering::Relaxed);
    }
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

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

impl Running {
    pub(crate) fn new(
        moment: Moment,
        translation: Translation,
        earlier: Option<Arc<dyn Earlier>>,
        deadline: Instant,
    ) -> Self {
        Self {
            moment: Mutex::new(Arc::new(moment)),
            is_over: AtomicBool::new(false),
            visited: AtomicU64::new(0),
            deadline,
            translation,
            earlier,
            walks: AtomicUsize::new(0),
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

    /// Where the translation is asked; else why it is not.
    pub(crate) fn translation(&self) -> Result<Arc<Path>, String> {
        self.translation.clone()
    }

    /// Who knows what happened before the events that are kept in memory.
    pub(crate) fn earlier(&self) -> Option<&dyn Earlier> {
        self.earlier.as_deref()
    }

    /// Whether it is to end: for who works long between two steps of SQLite.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || Instant::now() >= self.deadline
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
