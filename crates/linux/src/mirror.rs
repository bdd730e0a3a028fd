//! A live copy of a namespace's tables.
//!
//! [`Mirror::start`] subscribes to the kernel's events, then lists every
//! table, then applies what came meanwhile, and from then on follows the
//! events. Readers take snapshots ([`Mirror::reader`]) and are never
//! waited for.
//!
//! - [`model`]: what an event does to the tables (pure).
//! - `silent`: what the kernel does without an event (pure).
//! - [`difference`]: what a resync or a scan found (pure).
//! - `machine`: the state machine of all that (pure), fed by the worker or
//!   by a recording.
//! - `limits`: what a limit means to a listing (pure).
//! - `load`: lists tables for the machine.
//! - `ip_statistics`: what IP counted.
//! - `schedule`: when to scan (pure).
//! - `speeds`: how fast links are.
//! - `worker`: the thread that does it all.

pub mod difference;
pub(crate) mod ip_statistics;
mod limits;
mod load;
pub(crate) mod machine;
pub mod model;
mod normalise;
mod schedule;
pub(crate) mod silent;
mod speeds;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::event::{EventfdFlags, eventfd};
use table::{Limits, Reader, Writer};

use crate::error::Error;
use crate::namespace::Namespace;
use crate::recording::Tap;

/// How a mirror is kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// Rows that each table may have.
    pub limits: Limits,
    /// Receive buffer for events, bytes; the host's limit holds without
    /// privileges.
    pub receive_buffer_bytes: usize,
    /// Between two scans for drift.
    pub scan_interval: Duration,
    /// Where to record what the mirror is fed with.
    pub tap: Option<Tap>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            receive_buffer_bytes: 32 << 20,
            scan_interval: Duration::from_secs(600),
            tap: None,
        }
    }
}

/// What a mirror is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// It lists the tables for the first time; readers see nothing yet.
    #[default]
    Loading,
    /// It follows the kernel.
    Live,
    /// It follows the kernel and lists the tables again, because events
    /// were lost or a listing was interrupted.
    Resyncing,
    /// It ended; the tables stay as they were. Why.
    Ended(String),
}

/// How a mirror fares.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// What it is doing.
    pub phase: Phase,
    /// How long the first listing took.
    pub load_time: Duration,
    /// Listings done again after a loss.
    pub resyncs: u64,
    /// Times that the kernel said that events were lost (`ENOBUFS`).
    pub overruns: u64,
    /// Listings that the kernel called interrupted.
    pub interrupted_dumps: u64,
    /// Scans for drift done.
    pub scans: u64,
    /// Rows that a scan found different from the kernel's: should stay 0.
    pub drift: u64,
    /// The first few rows of the last drift, as the kernel has them.
    pub drift_examples: Vec<String>,
    /// Events applied.
    pub events: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// What could not be stored, if a table is full.
    pub full: Option<String>,
    /// Rows that had no place, by table, since the mirror began.
    pub refused: BTreeMap<&'static str, u64>,
    /// Tables that miss rows of the kernel's now, because they had no
    /// place; until a whole listing finds that none is missing.
    pub incomplete: BTreeSet<&'static str>,
    /// Datagrams that another process sent, which were dropped.
    pub foreign: u64,
    /// When the last scan for drift ended, milliseconds since the UNIX
    /// epoch; 0: there was none.
    pub last_scan_millis: u64,
    /// How long it took.
    pub last_scan_time: Duration,
    /// Rows that it found different.
    pub last_scan_drift: u64,
    /// The receive buffer as the host granted it, bytes.
    pub receive_buffer_bytes: usize,
    /// The last trouble, in words.
    pub last_trouble: Option<String>,
}

impl Status {
    /// Whether it follows the kernel and misses nothing.
    pub fn is_whole(&self) -> bool {
        self.phase == Phase::Live && self.incomplete.is_empty()
    }

    /// What it is doing, in words: `live`, `degraded: neighbours miss
    /// rows`, …
    pub fn in_words(&self) -> String {
        let incomplete: Vec<&str> = self.incomplete.iter().copied().collect();
        match &self.phase {
            Phase::Loading => "loading".to_owned(),
            Phase::Live if incomplete.is_empty() => "live".to_owned(),
            Phase::Live => format!("degraded: {} miss rows", incomplete.join(", ")),
            Phase::Resyncing => "resyncing".to_owned(),
            Phase::Ended(why) => format!("ended: {why}"),
        }
    }
}

/// A running mirror, or one that a recording is replayed into. Ends when
/// dropped.
#[derive(Debug)]
pub struct Mirror {
    of: Of,
    reader: Reader,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What a mirror is of.
#[derive(Debug)]
enum Of {
    Namespace(Namespace),
    /// A namespace that had this inode when it was recorded.
    Recording(u64),
}

/// What the worker, or the player of a recording, and its owner share.
#[derive(Debug)]
pub(crate) struct Shared {
    status: Mutex<Status>,
    changed: Condvar,
    stop: AtomicBool,
    rescan: AtomicBool,
    /// Limits that the worker has not taken yet.
    limits: Mutex<Option<Limits>>,
    /// When somebody last wanted what links, addresses, neighbours and
    /// forwarding entries do silently, milliseconds since the epoch.
    wanted: [AtomicU64; 4],
    /// Wakes the worker from its wait; a recording has none.
    wake: Option<rustix::fd::OwnedFd>,
    /// The time of a recording, microseconds since the epoch; 0: the
    /// host's clock.
    clock_micros: AtomicU64,
}

impl Shared {
    fn new(wake: Option<rustix::fd::OwnedFd>) -> Self {
        Self {
            status: Mutex::default(),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            rescan: AtomicBool::new(false),
            limits: Mutex::default(),
            wanted: Default::default(),
            wake,
            clock_micros: AtomicU64::new(0),
        }
    }

    /// For what no worker keeps.
    pub(crate) fn of_recording() -> Self {
        Self::new(None)
    }

    /// The time that a replay has reached.
    pub(crate) fn set_clock(&self, micros: u64) {
        self.clock_micros.store(micros, Ordering::Relaxed);
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits(&self) -> MutexGuard<'_, Option<Limits>> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status());
        self.changed.notify_all();
    }

    fn wake(&self) {
        if let Some(wake) = &self.wake {
            // A counter that is full wakes as well.
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
    }
}

impl Mirror {
    /// Starts to mirror a namespace; returns at once. Needs no privileges.
    pub fn start(namespace: Namespace, options: Options) -> Result<Self, Error> {
        let writer = Writer::new(options.limits);
        let reader = writer.reader();
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(Error::errno("make an event descriptor"))?;
        let shared = Arc::new(Shared::new(Some(wake)));
        let worker = worker::Worker::new(namespace.clone(), options, writer, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new()
            .name("mirror".into())
            .spawn(move || worker.run())
            .map_err(Error::system("start the mirror's thread"))?;
        Ok(Self {
            of: Of::Namespace(namespace),
            reader,
            shared,
            thread: Some(thread),
        })
    }

    /// One that a player of a recording keeps.
    pub(crate) fn of_recording(inode: u64, reader: Reader, shared: Arc<Shared>) -> Self {
        Self {
            of: Of::Recording(inode),
            reader,
            shared,
            thread: None,
        }
    }

    /// The namespace that is mirrored; `None`: a recording is.
    pub fn namespace(&self) -> Option<&Namespace> {
        match &self.of {
            Of::Namespace(namespace) => Some(namespace),
            Of::Recording(_) => None,
        }
    }

    /// The inode of the namespace that is, or was, mirrored.
    pub fn inode(&self) -> u64 {
        match &self.of {
            Of::Namespace(namespace) => namespace.inode(),
            Of::Recording(inode) => *inode,
        }
    }

    /// Whether what led to the namespace still does; a recording stays.
    pub fn still_there(&self) -> bool {
        match &self.of {
            Of::Namespace(namespace) => namespace.still_there(),
            Of::Recording(_) => true,
        }
    }

    /// Whether it is a recording: nothing can be sampled.
    pub fn is_recording(&self) -> bool {
        matches!(self.of, Of::Recording(_))
    }

    /// The time that its tables are of, milliseconds since the UNIX epoch:
    /// the host's clock, or how far a recording is replayed.
    pub fn now_millis(&self) -> u64 {
        match self.shared.clock_micros.load(Ordering::Relaxed) {
            0 => now_millis(),
            micros => micros / 1000,
        }
    }

    /// A reader of the tables.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// How it fares.
    pub fn status(&self) -> Status {
        self.shared.status().clone()
    }

    /// Waits until the first listing is done, or the mirror ended, or
    /// `patience` is over; gives the phase then.
    pub fn wait_ready(&self, patience: Duration) -> Phase {
        let status = self.shared.status();
        let (status, _) = self
            .shared
            .changed
            .wait_timeout_while(status, patience, |status| status.phase == Phase::Loading)
            .unwrap_or_else(PoisonError::into_inner);
        status.phase.clone()
    }

    /// Says that somebody reads links: the writer samples their counters,
    /// those of IP, in all and by link, and what the kernel does not announce of them, at most once a
    /// second. Returns at once.
    pub fn want_links(&self) {
        self.want(0);
    }

    /// Says that somebody reads addresses: the writer samples those that
    /// the kernel has not announced yet, at most once a second.
    pub fn want_addresses(&self) {
        self.want(1);
    }

    /// Says that somebody reads neighbours: the writer samples their ages
    /// and what the kernel does not announce of them, at most once a
    /// second.
    pub fn want_neighbours(&self) {
        self.want(2);
    }

    /// Says that somebody reads forwarding tables: the writer samples what
    /// the kernel does not announce of them, at most once a second.
    pub fn want_fdb(&self) {
        self.want(3);
    }

    fn want(&self, which: usize) {
        if let Some(wanted) = self.shared.wanted.get(which) {
            wanted.store(now_millis(), Ordering::Relaxed);
            self.shared.wake();
        }
    }

    /// Lists all tables again now, as the periodic scan does.
    pub fn scan_now(&self) {
        self.shared.rescan.store(true, Ordering::Release);
        self.shared.wake();
    }

    /// Takes other limits. Rows that are there stay; where rows had no
    /// place, all tables are listed again. Returns at once.
    pub fn set_limits(&self, limits: Limits) {
        *self.shared.limits() = Some(limits);
        self.shared.wake();
    }

    /// Ends the mirror and waits for its thread.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // A worker that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The host's clock, milliseconds since the UNIX epoch.
pub fn now_millis() -> u64 {
    now_micros() / 1000
}

/// The host's clock, microseconds since the UNIX epoch.
pub fn now_micros() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as u64)
}
