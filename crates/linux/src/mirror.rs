//! A live copy of a namespace's tables.
//!
//! [`Mirror::start`] subscribes to the kernel's events, then lists every
//! table, then applies what came meanwhile, and from then on follows the
//! events. Readers take snapshots ([`Mirror::reader`]) and are never
//! waited for.
//!
//! - [`model`]: what an event does to the tables (pure).
//! - `silent`: what the kernel does without an event (pure).
//! - `echo`: announcements that copy a request (pure).
//! - [`difference`]: what a resync or a scan found (pure).
//! - `machine`: the state machine of all that (pure), fed by the worker or
//!   by a recording.
//! - `kept`: what of it is recorded.
//! - `limits`: what a limit means to a listing (pure).
//! - `load`: lists tables for the machine.
//! - `ip_statistics`: what IP counted.
//! - `schedule`: when to scan (pure).
//! - `speeds`: how fast links are.
//! - `counters`, `counters_beside`: what links have counted, and the same
//!   while the kernel keeps the mirror waiting.
//! - `worker`: the thread that does it all, but for `sampler`: samples that
//!   may keep it waiting.

mod bridge_timers;
mod bridge_vlans;
mod counters;
mod counters_beside;
pub mod difference;
mod echo;
mod host_samples;
mod ip_interfaces;
pub(crate) mod ip_statistics;
mod kept;
mod limits;
mod load;
pub(crate) mod machine;
pub mod model;
mod normalise;
mod protocol_statistics;
mod sampler;
mod sampling;
mod schedule;
pub(crate) mod siblings;
pub(crate) mod silent;
mod sockets;
mod speeds;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use table::{Feeders, Limits, Reader, Sampled, Samples, Source, Writer};
pub use table::{Phase, Status};

use crate::error::Error;
use crate::namespace::{Namespace, Whereabouts};
use crate::recording::Tap;
use crate::socket::Socket;

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

/// A running mirror. Ends when dropped.
#[derive(Debug)]
pub struct Mirror {
    at: Whereabouts,
    reader: Reader,
    feeders: Feeders,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the worker and its owner share.
#[derive(Debug)]
struct Shared {
    status: Mutex<Status>,
    changed: Condvar,
    stop: AtomicBool,
    rescan: AtomicBool,
    /// Limits that the worker has not taken yet.
    limits: Mutex<Option<Limits>>,
    samples: Samples,
    wake: Arc<Wake>,
}

/// Wakes the worker from its wait for events: by an acknowledgement that
/// comes to the socket that they come to, so that a mirror has no other
/// descriptor.
#[derive(Debug)]
struct Wake {
    events: Arc<Socket>,
    /// An acknowledgement is under way: no other is needed.
    is_called: AtomicBool,
}

impl Wake {
    fn wake(&self) {
        if self.is_called.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.events.nudge() {
            self.is_called.store(false, Ordering::Release);
            tracing::warn!("could not wake a mirror: {error}");
        }
    }

    /// The worker is about to look at what it may have been called for.
    fn looks(&self) {
        self.is_called.store(false, Ordering::Release);
    }
}

impl Shared {
    fn new(events: Arc<Socket>) -> Self {
        let wake = Arc::new(Wake {
            events,
            is_called: AtomicBool::new(false),
        });
        let woken = Arc::clone(&wake);
        Self {
            status: Mutex::default(),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            rescan: AtomicBool::new(false),
            limits: Mutex::default(),
            samples: Samples::new(move || woken.wake()),
            wake,
        }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits(&self) -> MutexGuard<'_, Option<Limits>> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status());
        self.changed.notify_all();
    }

    fn wake(&self) {
        self.wake.wake();
    }
}

impl Mirror {
    /// Starts to mirror a namespace; returns at once. Needs no privileges.
    pub fn start(namespace: Namespace, options: Options) -> Result<Self, Error> {
        let writer = Writer::new(options.limits);
        let (reader, feeders) = (writer.reader(), writer.feeders());
        let events = Arc::new(Socket::open(&namespace)?);
        let shared = Arc::new(Shared::new(Arc::clone(&events)));
        let at = Whereabouts::of(namespace);
        let worker = worker::Worker::new(at.clone(), options, writer, events, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new()
            .name("mirror".into())
            .spawn(move || worker.run())
            .map_err(Error::system("start the mirror's thread"))?;
        Ok(Self {
            at,
            reader,
            feeders,
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// The namespace that is mirrored. One with a name is opened anew.
    pub fn namespace(&self) -> Result<Namespace, Error> {
        self.at.open()
    }

    /// The inode of the namespace.
    pub fn inode(&self) -> u64 {
        self.at.inode()
    }

    /// Whether what led to the namespace still does.
    pub fn still_there(&self) -> bool {
        self.at.still_there()
    }

    /// A reader of the tables.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// Where others join, to feed rows of their own beside the kernel's.
    pub fn feeders(&self) -> Feeders {
        self.feeders.clone()
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

    /// Says that somebody reads what is sampled: the writer samples it, at
    /// most once a second. Returns at once.
    pub fn want(&self, what: Sampled) {
        self.shared.samples.want(what, Instant::now());
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
    pub fn stop(&self) {
        if let Some(thread) = self.ends() {
            // A worker that panicked has nothing left to end.
            let _ = thread.join();
        }
    }

    /// Tells the mirror to end and does not wait: for a process that ends, and
    /// takes its thread along. To compare a full table takes long where others
    /// have the processor. Not where something is recorded, whose end would be
    /// missing.
    pub fn abandon(&self) {
        drop(self.ends());
    }

    fn ends(&self) -> Option<JoinHandle<()>> {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.take()
    }
}

impl Source for Mirror {
    fn reader(&self) -> Reader {
        self.reader()
    }

    fn status(&self) -> Status {
        self.status()
    }

    fn samples(&self) -> Option<&Samples> {
        Some(&self.shared.samples)
    }

    fn now_millis(&self) -> u64 {
        now_millis()
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
