//! The thread that keeps a mirror.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use netlink::decode::Decoded;
use netlink::message::messages;
use rustix::event::{PollFd, PollFlags};
use table::{NeighbourSample, Sample, TableFull, Writer};
use tracing::{debug, info, warn};

use super::difference::difference;
use super::load::{Ages, Load, Loaded, Which, counters};
use super::model::Model;
use super::{Options, Phase, Shared, now_millis};
use crate::error::Error;
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket, wait_for};

/// `RTNLGRP_…`: links, neighbours (and forwarding entries), addresses,
/// routes, rules, MPLS routes, multicast routes, next-hop objects.
const GROUPS: [u32; 11] = [1, 3, 5, 6, 7, 8, 9, 10, 11, 19, 32];
/// `RTNLGRP_MPLS_ROUTE`, of younger kernels.
const MPLS_GROUP: u32 = 27;

/// Datagrams handled before readers see them: 0.2 ms or so.
const BATCH: usize = 256;
/// Events kept beside a listing at most; beyond, the listing is void.
const MAX_STASH_BYTES: usize = 64 << 20;
/// Samples are no older than this while somebody reads.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// For so long after a question somebody is taken to read.
const INTEREST_MILLIS: u64 = 1_000;
/// Between two looks at whether the namespace is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Pauses between resyncs: from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Worker {
    namespace: Namespace,
    options: Options,
    shared: Arc<Shared>,
    feed: Feed,
    next_scan: Instant,
    next_look: Instant,
    /// When to list everything again, because something was lost.
    resync_at: Option<Instant>,
    pause: Duration,
    sampled: Sampled,
}

/// When each kind of sample was last taken.
#[derive(Default)]
struct Sampled {
    counters: Option<Instant>,
    addresses: Option<Instant>,
    neighbours: Option<Instant>,
    fdb: Option<Instant>,
}

/// What a listing beside the tables found.
#[derive(Default)]
struct Refreshed {
    changes: usize,
    /// How many of them the mirror should have known.
    drift: usize,
    examples: Vec<String>,
}

/// The events and the tables that they keep.
struct Feed {
    model: Model,
    events: Socket,
    buffer: Vec<u8>,
    shared: Arc<Shared>,
    /// Events since a listing began, to be applied to it as well.
    stash: Option<Vec<u8>>,
    /// Something was lost: the tables must be listed again.
    lost: bool,
}

impl Worker {
    pub(super) fn new(
        namespace: Namespace,
        options: Options,
        writer: Writer,
        shared: Arc<Shared>,
    ) -> Result<Self, Error> {
        let events = Socket::open(&namespace)?;
        let granted = events.set_receive_buffer(options.receive_buffer_bytes)?;
        shared.update(|status| status.receive_buffer_bytes = granted);
        events.join(&GROUPS)?;
        if events.join(&[MPLS_GROUP]).is_err() {
            debug!("this kernel announces no MPLS routes");
        }
        let now = Instant::now();
        Ok(Self {
            namespace,
            next_scan: now + options.scan_interval,
            next_look: now + LOOK_INTERVAL,
            options,
            shared: Arc::clone(&shared),
            feed: Feed {
                model: Model::new(writer),
                events,
                buffer: vec![0; DATAGRAM_BYTES],
                shared,
                stash: None,
                lost: false,
            },
            resync_at: None,
            pause: FIRST_PAUSE,
            sampled: Sampled::default(),
        })
    }

    pub(super) fn run(mut self) {
        let end = match self.first_load().and_then(|()| self.follow()) {
            Ok(why) => why,
            Err(error) => {
                warn!("the mirror ends: {error}");
                error.to_string()
            }
        };
        self.shared
            .update(|status| status.phase = Phase::Ended(end));
    }

    /// Follows the kernel until told to stop; gives the reason of the end.
    fn follow(&mut self) -> Result<String, Error> {
        loop {
            if self.shared.stop.load(Ordering::Acquire) {
                return Ok("stopped".into());
            }
            if !self.feed.take_batch()? {
                self.feed.model.writer().publish();
                self.rest()?;
            }
            self.feed.model.writer().publish();
            if let Some(why) = self.chores()? {
                return Ok(why);
            }
        }
    }

    /// Waits for events, a wake-up, or the next chore.
    fn rest(&mut self) -> Result<(), Error> {
        let mut until = self.next_scan.min(self.next_look);
        if let Some(at) = self.resync_at {
            until = until.min(at);
        }
        let patience = until.saturating_duration_since(Instant::now());
        let mut fds = [
            PollFd::new(&self.feed.events, PollFlags::IN),
            PollFd::new(&self.shared.wake, PollFlags::IN),
        ];
        wait_for(&mut fds, patience)?;
        // Nothing to read means nobody called.
        let _ = rustix::io::read(&self.shared.wake, &mut [0u8; 8]);
        Ok(())
    }

    /// What is due; gives the reason if it is the end.
    fn chores(&mut self) -> Result<Option<String>, Error> {
        let now = Instant::now();
        if now >= self.next_look {
            self.next_look = now + LOOK_INTERVAL;
            if !self.namespace.still_there() {
                return Ok(Some("its namespace is gone".into()));
            }
        }
        if self.feed.lost {
            self.feed.lost = false;
            self.schedule_resync();
        }
        if self.resync_at.is_some_and(|at| now >= at) {
            self.resync_at = None;
            self.resync();
        } else if now >= self.next_scan || self.shared.rescan.swap(false, Ordering::AcqRel) {
            self.next_scan = now + self.options.scan_interval;
            self.scan();
        }
        self.samples(now);
        Ok(None)
    }

    fn schedule_resync(&mut self) {
        if self.resync_at.is_none() {
            self.resync_at = Some(Instant::now() + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            self.shared.update(|status| status.phase = Phase::Resyncing);
        }
    }

    /// Lists everything for the first time, straight into the tables.
    fn first_load(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let mut model = std::mem::take(&mut self.feed.model);
        model.writer().without_events();
        self.feed.stash = Some(Vec::new());
        let loaded = {
            let feed = &mut self.feed;
            let shared = Arc::clone(&self.shared);
            let mut load = Load {
                namespace: &self.namespace,
                model: &mut model,
                ages: None,
                meanwhile: &mut || {
                    if shared.stop.load(Ordering::Acquire) {
                        return Err(Error::Stopped);
                    }
                    feed.stash_waiting()
                },
                full: None,
            };
            let loaded = load.run(Which::All);
            note_full(&self.shared, load.full.take());
            loaded?
        };
        self.feed.model = model;
        self.feed.stash_waiting()?;
        let stash = self.feed.stash.take().unwrap_or_default();
        self.feed.replay(&stash);
        self.feed.model.writer().publish();
        let rows = self.feed.model.tables().rows();
        let load_time = start.elapsed();
        self.note_interrupted(&loaded);
        self.shared.update(|status| {
            status.load_time = load_time;
            status.phase = Phase::Live;
        });
        info!(rows, ?load_time, "mirrored");
        Ok(())
    }

    fn note_interrupted(&mut self, loaded: &Loaded) {
        if loaded.interrupted > 0 {
            self.shared
                .update(|status| status.interrupted_dumps += loaded.interrupted);
        }
        if !loaded.complete {
            self.schedule_resync();
        }
    }

    /// Lists everything again after a loss; readers get the difference as
    /// one change.
    fn resync(&mut self) {
        match self.refresh(Which::All) {
            Ok(Refreshed { changes, .. }) => {
                info!(changes, "resynchronised after a loss of events");
                self.shared.update(|status| status.resyncs += 1);
            }
            Err(error) => self.trouble("resynchronise", &error),
        }
        if self.resync_at.is_none() && !self.feed.lost {
            self.pause = FIRST_PAUSE;
            self.shared.update(|status| status.phase = Phase::Live);
        }
    }

    /// Lists everything to see whether the mirror is true.
    fn scan(&mut self) {
        match self.refresh(Which::All) {
            Ok(found) => {
                self.note_drift(found);
                self.shared.update(|status| status.scans += 1);
            }
            Err(error) => self.trouble("scan for drift", &error),
        }
    }

    fn note_drift(&self, found: Refreshed) {
        let Refreshed {
            drift, examples, ..
        } = found;
        if drift == 0 {
            return;
        }
        warn!(drift, ?examples, "the mirror had drifted from the kernel");
        self.shared.update(|status| {
            status.drift += drift as u64;
            status.drift_examples = examples;
        });
    }

    fn trouble(&mut self, what: &str, error: &Error) {
        warn!("could not {what}: {error}");
        self.shared
            .update(|status| status.last_trouble = Some(format!("could not {what}: {error}")));
        self.schedule_resync();
    }

    /// Lists tables beside the mirrored ones and applies the difference.
    fn refresh(&mut self, which: Which) -> Result<Refreshed, Error> {
        let (mut fresh, loaded, ages) = self.load_beside(which)?;
        // What the kernel announced before the listing ended has arrived.
        while self.feed.take_batch()? {}
        let stash = self.feed.stash.take();
        if self.feed.lost {
            // The listing cannot be set beside the present any more.
            self.feed.model.writer().publish();
            return Ok(Refreshed::default());
        }
        replay(&mut fresh, &stash.unwrap_or_default());
        let found = difference(self.feed.model.tables(), fresh.tables(), loaded.whole);
        let examples: Vec<String> = found.examples.iter().map(|c| format!("{c:?}")).collect();
        let changes = found.changes.len();
        let writer = self.feed.model.writer();
        let applied = found.changes.into_iter().try_for_each(|c| writer.apply(c));
        note_full(&self.shared, applied.err());
        writer.publish();
        if loaded.whole.neighbours {
            self.publish_ages(ages);
        }
        self.note_interrupted(&loaded);
        Ok(Refreshed {
            changes,
            drift: found.drift,
            examples,
        })
    }

    fn load_beside(&mut self, which: Which) -> Result<(Model, Loaded, Ages), Error> {
        let mut fresh = Model::new(Writer::new(self.options.limits));
        fresh.writer().without_events();
        let mut ages = Vec::new();
        self.feed.stash = Some(Vec::new());
        let feed = &mut self.feed;
        let shared = Arc::clone(&self.shared);
        let mut load = Load {
            namespace: &self.namespace,
            model: &mut fresh,
            ages: Some(&mut ages),
            meanwhile: &mut || {
                if shared.stop.load(Ordering::Acquire) {
                    return Err(Error::Stopped);
                }
                feed.take_batch()?;
                feed.model.writer().publish();
                Ok(())
            },
            full: None,
        };
        let loaded = load.run(which);
        note_full(&self.shared, load.full.take());
        if loaded.is_err() {
            self.feed.stash = None;
        }
        Ok((fresh, loaded?, ages))
    }

    fn publish_ages(&mut self, ages: Ages) {
        let rows = ages
            .into_iter()
            .map(|(key, ages)| (key, NeighbourSample { ages }))
            .collect();
        self.feed
            .model
            .writer()
            .publish_neighbour_samples(Sample::new(now_millis(), rows));
    }

    /// Takes the samples that somebody reads and that are not fresh.
    fn samples(&mut self, now: Instant) {
        if due(&self.shared.counters_wanted, self.sampled.counters, now) {
            self.sampled.counters = Some(now);
            match counters(&self.namespace) {
                Ok(rows) => self
                    .feed
                    .model
                    .writer()
                    .publish_link_counters(Sample::new(now_millis(), rows)),
                Err(error) => warn!("could not sample counters: {error}"),
            }
        }
        if due(&self.shared.addresses_wanted, self.sampled.addresses, now) {
            self.sampled.addresses = Some(now);
            self.sample_rows(Which::Addresses);
        }
        if due(&self.shared.neighbours_wanted, self.sampled.neighbours, now) {
            self.sampled.neighbours = Some(now);
            self.sample_rows(Which::Neighbours);
        }
        if due(&self.shared.fdb_wanted, self.sampled.fdb, now) {
            self.sampled.fdb = Some(now);
            self.sample_rows(Which::Fdb);
        }
    }

    fn sample_rows(&mut self, which: Which) {
        match self.refresh(which) {
            Ok(found) => self.note_drift(found),
            Err(error) => warn!("could not sample {which:?}: {error}"),
        }
    }
}

fn due(wanted: &AtomicU64, last: Option<Instant>, now: Instant) -> bool {
    let wanted_since = now_millis().saturating_sub(wanted.load(Ordering::Relaxed));
    wanted_since < INTEREST_MILLIS && last.is_none_or(|last| now - last >= SAMPLE_INTERVAL)
}

fn note_full(shared: &Shared, full: Option<TableFull>) {
    if let Some(full) = full {
        let words = full.to_string();
        if shared.status().full.as_ref() != Some(&words) {
            warn!("{words}");
            shared.update(|status| status.full = Some(words));
        }
    }
}

impl Feed {
    /// Applies up to a batch of waiting events; true if there were any.
    fn take_batch(&mut self) -> Result<bool, Error> {
        for taken in 0..BATCH {
            match self.events.try_receive(&mut self.buffer)? {
                Received::Nothing => return Ok(taken > 0),
                Received::Overrun => self.overrun(),
                Received::Bytes(len) => {
                    if let Some(stash) = &mut self.stash {
                        stash.extend_from_slice(&self.buffer[..len]);
                    }
                    let result = apply(&mut self.model, &self.buffer[..len]);
                    self.note(result);
                }
            }
        }
        self.check_stash();
        Ok(true)
    }

    /// Keeps what waits for later, while the tables are first listed.
    fn stash_waiting(&mut self) -> Result<(), Error> {
        loop {
            match self.events.try_receive(&mut self.buffer)? {
                Received::Nothing => break,
                Received::Overrun => self.overrun(),
                Received::Bytes(len) => {
                    if let Some(stash) = &mut self.stash {
                        stash.extend_from_slice(&self.buffer[..len]);
                    }
                }
            }
        }
        self.check_stash();
        Ok(())
    }

    fn check_stash(&mut self) {
        if self
            .stash
            .as_ref()
            .is_some_and(|stash| stash.len() > MAX_STASH_BYTES)
        {
            self.stash = Some(Vec::new());
            self.lost = true;
        }
    }

    fn overrun(&mut self) {
        self.lost = true;
        self.shared.update(|status| status.overruns += 1);
    }

    fn replay(&mut self, stash: &[u8]) {
        let result = apply(&mut self.model, stash);
        self.note(result);
    }

    fn note(&mut self, applied: Applied) {
        if applied.malformed > 0 {
            // Whatever it said is unknown: ask the kernel.
            self.lost = true;
        }
        note_full(&self.shared, applied.full);
        self.shared.update(|status| {
            status.events += applied.events;
            status.malformed += applied.malformed;
        });
    }
}

#[derive(Default)]
struct Applied {
    events: u64,
    malformed: u64,
    full: Option<TableFull>,
}

fn replay(model: &mut Model, stash: &[u8]) {
    // What it would say of them was said when they came.
    let _ = apply(model, stash);
}

/// Applies the messages of a datagram, or of several in a row.
fn apply(model: &mut Model, datagram: &[u8]) -> Applied {
    let now = now_millis();
    let mut applied = Applied::default();
    for message in messages(datagram) {
        let decoded = match message {
            Ok(message) => netlink::decode::decode(&message, now),
            Err(malformed) => {
                warn!("{malformed}");
                applied.malformed += 1;
                break;
            }
        };
        match decoded {
            Ok(Decoded::Announcement(announcement)) => {
                applied.events += 1;
                if let Err(full) = model.event(announcement) {
                    applied.full = Some(full);
                }
            }
            Ok(_) => {}
            Err(malformed) => {
                warn!("{malformed}");
                applied.malformed += 1;
            }
        }
    }
    applied
}
