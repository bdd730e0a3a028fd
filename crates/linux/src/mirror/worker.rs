//! The thread that keeps a mirror.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use netlink::decode::{Decoded, Ipv6Statistics};
use netlink::message::messages;
use rustix::event::{PollFd, PollFlags};
use table::{Change, Sample, TableFull, Writer};
use tracing::{debug, info, warn};

use super::difference::{Difference, difference};
use super::load::{Load, Loaded, Samples, Which};
use super::model::Model;
use super::{Options, Phase, Shared, ip_statistics, now_millis, speeds};
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
/// Speeds of links, which change when a cable does, are no older than this
/// while somebody reads counters.
const SPEED_INTERVAL: Duration = Duration::from_secs(10);
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
    suspects: Option<Suspects>,
    /// When each kind of sample was last taken, in the order of
    /// [`Shared::wanted`].
    sampled: [Option<Instant>; 4],
    /// When speeds were last sampled.
    sampled_speeds: Option<Instant>,
}

/// What a scan could not explain, until a later one shows whether the
/// kernel's announcement was only late: some come from a work queue of the
/// kernel (an address without duplicate detection, a carrier).
struct Suspects {
    changes: Vec<Change>,
    again_at: Instant,
    round: u32,
}

/// How late an announcement may be.
const LATENESS: Duration = Duration::from_millis(300);
/// Scans in a row that may find something new before all of it counts.
const ROUNDS: u32 = 5;
/// With more suspects than this at once, no lateness explains them.
const MANY: usize = 1_000;

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
            suspects: None,
            sampled: [None; 4],
            sampled_speeds: None,
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
        let again_at = self.suspects.as_ref().map(|suspects| suspects.again_at);
        for at in [self.resync_at, again_at].into_iter().flatten() {
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
        } else if self.scan_is_due(now) {
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
                samples: None,
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

    /// Suspects are looked at again before anything else is scanned for.
    fn scan_is_due(&self, now: Instant) -> bool {
        match &self.suspects {
            Some(suspects) => now >= suspects.again_at,
            None => now >= self.next_scan || self.shared.rescan.swap(false, Ordering::AcqRel),
        }
    }

    /// Lists everything again after a loss; readers get the difference as
    /// one change.
    fn resync(&mut self) {
        self.suspects = None;
        match self.compare(Which::All) {
            Ok(Some(found)) => {
                let changes = found.silent.len() + found.unexplained.len();
                self.apply(found.silent.into_iter().chain(found.unexplained));
                info!(changes, "resynchronised after a loss of events");
                self.shared.update(|status| status.resyncs += 1);
            }
            Ok(None) => {}
            Err(error) => self.trouble("resynchronise", &error),
        }
        if self.resync_at.is_none() && !self.feed.lost {
            self.pause = FIRST_PAUSE;
            self.shared.update(|status| status.phase = Phase::Live);
        }
    }

    /// Lists everything to see whether the mirror is true.
    fn scan(&mut self) {
        let found = match self.compare(Which::All) {
            Ok(Some(found)) => found,
            // A resync follows.
            Ok(None) => return self.suspects = None,
            Err(error) => return self.trouble("scan for drift", &error),
        };
        self.apply(found.silent);
        let before = self.suspects.take();
        let round = before.as_ref().map_or(0, |before| before.round);
        let (drift, new) = confirmed(before, found.unexplained, round);
        if !drift.is_empty() {
            self.note_drift(drift.len(), found.examples);
            self.apply(drift);
        }
        if new.is_empty() {
            return self.shared.update(|status| status.scans += 1);
        }
        self.suspects = Some(Suspects {
            changes: new,
            again_at: Instant::now() + LATENESS,
            round: round + 1,
        });
    }

    fn note_drift(&self, drift: usize, examples: Vec<String>) {
        warn!(drift, ?examples, "the mirror had drifted from the kernel");
        self.shared.update(|status| {
            status.drift += drift as u64;
            status.drift_examples = examples;
        });
    }

    fn trouble(&mut self, what: &str, error: &Error) {
        self.suspects = None;
        if matches!(error, Error::Stopped) {
            return;
        }
        warn!("could not {what}: {error}");
        self.shared
            .update(|status| status.last_trouble = Some(format!("could not {what}: {error}")));
        self.schedule_resync();
    }

    fn apply(&mut self, changes: impl IntoIterator<Item = Change>) {
        let writer = self.feed.model.writer();
        let mut changes = changes.into_iter();
        let applied = changes.try_for_each(|change| writer.apply(change));
        writer.publish();
        note_full(&self.shared, applied.err());
    }

    /// Lists tables beside the mirrored ones; `None` when events were lost
    /// meanwhile, so that the two cannot be compared.
    fn compare(&mut self, which: Which) -> Result<Option<Difference>, Error> {
        let (mut fresh, loaded, samples) = self.load_beside(which)?;
        // What the kernel announced before the listing ended has arrived.
        while self.feed.take_batch()? {}
        self.feed.model.writer().publish();
        let stash = self.feed.stash.take().unwrap_or_default();
        if self.feed.lost {
            return Ok(None);
        }
        replay(&mut fresh, &stash);
        let found = difference(self.feed.model.tables(), fresh.tables(), loaded.whole);
        self.publish_samples(which, samples);
        self.note_interrupted(&loaded);
        Ok(Some(found))
    }

    fn load_beside(&mut self, which: Which) -> Result<(Model, Loaded, Samples), Error> {
        let mut fresh = Model::new(Writer::new(self.options.limits));
        fresh.writer().without_events();
        let mut samples = Samples::default();
        self.feed.stash = Some(Vec::new());
        let feed = &mut self.feed;
        let shared = Arc::clone(&self.shared);
        let mut load = Load {
            namespace: &self.namespace,
            model: &mut fresh,
            samples: Some(&mut samples),
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
        Ok((fresh, loaded?, samples))
    }

    fn publish_samples(&mut self, which: Which, samples: Samples) {
        let now = now_millis();
        let writer = self.feed.model.writer();
        if matches!(which, Which::Neighbours | Which::All) {
            writer.publish_neighbour_samples(Sample::new(now, samples.ages));
        }
        if which == Which::Links {
            writer.publish_link_counters(Sample::new(now, samples.counters));
            self.publish_ip(now, &samples.ipv6);
        }
    }

    /// What IP counted in all, and IPv6 by link.
    fn publish_ip(&mut self, now: u64, links: &[(u32, Ipv6Statistics)]) {
        match ip_statistics::read(&self.namespace) {
            Ok((mut counters, settings)) => {
                counters.extend(ip_statistics::by_link(links));
                let sample = Sample::new(now, counters);
                self.feed.model.writer().publish_ip(sample, settings);
            }
            Err(error) => warn!("could not sample what IP counted: {error}"),
        }
    }

    /// Takes the samples that somebody reads and that are not fresh.
    fn samples(&mut self, now: Instant) {
        let wanted = [
            Which::Links,
            Which::Addresses,
            Which::Neighbours,
            Which::Fdb,
        ];
        for (at, which) in wanted.into_iter().enumerate() {
            let due = due(&self.shared.wanted[at], self.sampled[at], now);
            if due {
                self.sampled[at] = Some(now);
                if which == Which::Links {
                    // First, so that who waits for counters has them too.
                    self.sample_speeds(now);
                }
                self.sample_rows(which);
            }
        }
    }

    fn sample_speeds(&mut self, now: Instant) {
        let is_fresh = |last| now - last < SPEED_INTERVAL;
        if self.sampled_speeds.is_some_and(is_fresh) {
            return;
        }
        self.sampled_speeds = Some(now);
        let (feed, shared) = (&mut self.feed, &self.shared);
        let known = speeds::read(&self.namespace, &mut || {
            if shared.stop.load(Ordering::Acquire) {
                return Err(Error::Stopped);
            }
            feed.take_batch()?;
            feed.model.writer().publish();
            Ok(())
        });
        match known {
            Ok(known) => {
                let sample = Sample::new(now_millis(), known);
                self.feed.model.writer().publish_link_speeds(sample);
            }
            // Told to end meanwhile: `follow` sees it next.
            Err(Error::Stopped) => {}
            Err(error) => warn!("could not sample how fast links are: {error}"),
        }
    }

    /// Takes in what the kernel never announces. What it should have
    /// announced is left to a scan.
    fn sample_rows(&mut self, which: Which) {
        match self.compare(which) {
            Ok(found) => self.apply(found.map(|found| found.silent).unwrap_or_default()),
            // Told to end meanwhile: `follow` sees it next.
            Err(Error::Stopped) => {}
            Err(error) => warn!("could not sample {which:?}: {error}"),
        }
    }
}

/// Which of the unexplained changes a scan before had found too, and which
/// are new.
fn confirmed(
    before: Option<Suspects>,
    found: Vec<Change>,
    round: u32,
) -> (Vec<Change>, Vec<Change>) {
    if round >= ROUNDS || found.len() > MANY {
        return (found, Vec::new());
    }
    let before = before.map(|before| before.changes).unwrap_or_default();
    found
        .into_iter()
        .partition(|change| before.contains(change))
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
                    self.keep(len);
                    let result = apply(&mut self.model, &self.buffer[..len]);
                    self.note(result);
                }
            }
        }
        Ok(true)
    }

    /// Keeps what waits for later, while the tables are first listed.
    fn stash_waiting(&mut self) -> Result<(), Error> {
        loop {
            match self.events.try_receive(&mut self.buffer)? {
                Received::Nothing => return Ok(()),
                Received::Overrun => self.overrun(),
                Received::Bytes(len) => self.keep(len),
            }
        }
    }

    /// Keeps the datagram just received beside a listing, as far as there
    /// is room; beyond, the listing is void.
    fn keep(&mut self, len: usize) {
        let Some(stash) = &mut self.stash else { return };
        stash.extend_from_slice(&self.buffer[..len]);
        if stash.len() > MAX_STASH_BYTES {
            *stash = Vec::new();
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
