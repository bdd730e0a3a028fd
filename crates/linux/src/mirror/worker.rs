//! The thread that keeps a mirror: it feeds the machine with what the
//! kernel says, and decides when to ask. What it feeds is recorded, if so
//! wanted.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netlink::message::Message;
use table::{Limits, Sample, Sampled, Samples, TableFull, Writer};
use tracing::{debug, info, warn};

use super::kept::{Kept, WantsAll};
use super::load::{Listener, Load};
use super::machine::{Applied, Found, Machine, Refused};
use super::sampler::{self, Done, Job, Sampler};
use super::schedule::Schedule;
use super::{Options, Phase, Shared, host_samples, ip_statistics, now_micros, now_millis, speeds};
use super::{counters, counters_beside};
use crate::error::Error;
use crate::namespace::{Namespace, Whereabouts};
use crate::recording::format::{self, kind};
use crate::recording::{Listed, Outcome, Purpose, Which};
use crate::socket::{DATAGRAM_BYTES, Received, Socket, is_nudge};

/// Why a mirror ends by itself.
const GONE: &str = "its namespace is gone";

/// `RTNLGRP_…`: links, neighbours (and forwarding entries), addresses,
/// routes, rules, settings of links, MPLS routes, multicast routes,
/// next-hop objects.
const GROUPS: [u32; 13] = [1, 3, 5, 6, 7, 8, 9, 10, 11, 19, 24, 25, 32];
/// `RTNLGRP_MPLS_ROUTE`, of younger kernels.
const MPLS_GROUP: u32 = 27;

/// Datagrams handled before readers see them: 0.2 ms or so.
const BATCH: usize = 256;
/// Samples are no older than this while somebody reads.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Speeds of links, which change when a cable does, are no older than this
/// while somebody reads counters.
const SPEED_INTERVAL: Duration = Duration::from_secs(10);
/// For so long after a question somebody is taken to read.
const INTEREST: Duration = Duration::from_secs(1);
/// Between two looks at whether the namespace is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Pauses between resyncs: from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How many kinds of samples there are.
const KINDS: usize = Sampled::ALL.len();
/// After a sample of what stands beside the tables none for so many times as
/// long as it took.
const HOST_SHARE: u32 = 4;
/// Sockets that nobody asked for for so long are let go.
const KEPT: Duration = Duration::from_secs(60);

pub(super) struct Worker {
    at: Whereabouts,
    options: Options,
    shared: Arc<Shared>,
    feed: Feed,
    next_scan: Instant,
    next_look: Instant,
    /// When to list everything again, because something was lost.
    resync_at: Option<Instant>,
    pause: Duration,
    /// When each kind of sample was last taken, in the order of
    /// [`Sampled::ALL`].
    sampled: [Option<Instant>; KINDS],
    /// When timers of bridges may be read that somebody waits for.
    timers_at: Option<Instant>,
    /// When speeds were last sampled.
    sampled_speeds: Option<Instant>,
    schedule: Schedule,
    /// When rows that the mirror is unsure of may be listed again, in the
    /// order of [`Sampled::ALL`].
    unsure_at: [Instant; KINDS],
    /// The pause after the next of them that fails.
    unsure_pause: Duration,
    /// Takes what may keep this thread waiting; `None`: nobody has asked for
    /// any of it yet.
    sampler: Option<Sampler>,
    /// Reads counters while this thread is kept from it; `None`: nobody has
    /// read any yet.
    beside: Option<JoinHandle<()>>,
}

/// After a listing of rows that the mirror was unsure of none for so many
/// times as long as it took.
const LISTING_SHARE: u32 = 20;
/// And none for so long at least: what makes it unsure comes in bursts.
const UNSURE_PAUSE: Duration = Duration::from_millis(100);

/// Links that are asked for singly behind a listing of counters, because
/// they came or went under it, at most.
const MOST_MISSED: usize = 1_024;

/// How late an announcement may be.
const LATENESS: Duration = Duration::from_millis(300);
/// A recording with a gap is made whole by a listing, not sooner than
/// this: the mirror's work comes first.
const AFTER_GAP: Duration = Duration::from_secs(10);
/// What a scan found is listed again for a history so long after it.
const AFTER_SCAN: Duration = Duration::from_secs(1);

/// The events and the tables that they keep.
struct Feed {
    machine: Machine,
    events: Arc<Socket>,
    buffer: Vec<u8>,
    shared: Arc<Shared>,
    /// Where it is recorded.
    kept: Kept,
    /// Announcements of rows so far.
    events_seen: u64,
}

impl Worker {
    pub(super) fn new(
        at: Whereabouts,
        options: Options,
        writer: Writer,
        events: Arc<Socket>,
        shared: Arc<Shared>,
    ) -> Result<Self, Error> {
        let granted = events.set_receive_buffer(options.receive_buffer_bytes)?;
        shared.update(|status| status.receive_buffer_bytes = granted);
        events.join(&GROUPS)?;
        if events.join(&[MPLS_GROUP]).is_err() {
            debug!("this kernel announces no MPLS routes");
        }
        let now = Instant::now();
        Ok(Self {
            at,
            next_scan: now + options.scan_interval,
            next_look: now + LOOK_INTERVAL,
            shared: Arc::clone(&shared),
            feed: Feed {
                machine: Machine::new(writer, options.limits),
                events,
                buffer: vec![0; DATAGRAM_BYTES],
                shared,
                kept: Kept::new(options.tap.clone(), now),
                events_seen: 0,
            },
            options,
            resync_at: None,
            pause: FIRST_PAUSE,
            sampled: [None; KINDS],
            timers_at: None,
            sampled_speeds: None,
            schedule: Schedule::new(now),
            unsure_at: [now; KINDS],
            unsure_pause: UNSURE_PAUSE,
            sampler: None,
            beside: None,
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
        self.feed
            .kept
            .put(kind::ENDED, now_micros(), end.as_bytes());
        self.shared
            .update(|status| status.phase = Phase::Ended(end));
        self.shared.samples.end();
        if let Some(beside) = self.beside.take() {
            // One that panicked has nothing left to end.
            let _ = beside.join();
        }
    }

    /// Follows the kernel until told to stop; gives the reason of the end.
    fn follow(&mut self) -> Result<String, Error> {
        loop {
            self.shared.wake.looks();
            if self.shared.stop.load(Ordering::Acquire) {
                // Who stops a mirror may have seen first that there is
                // nothing left to mirror.
                let is_gone = !self.at.still_there();
                return Ok(if is_gone { GONE } else { "stopped" }.into());
            }
            if !self.feed.take_batch()? {
                self.feed.machine.writer().publish();
                self.rest()?;
            }
            self.feed.machine.writer().publish();
            if let Some(why) = self.chores()? {
                return Ok(why);
            }
        }
    }

    /// Waits for events, a wake-up, or the next chore.
    fn rest(&mut self) -> Result<(), Error> {
        let mut until = self.next_look;
        for (what, at) in Sampled::ALL.into_iter().zip(self.unsure_at) {
            if self.feed.is_wanted(what) {
                until = until.min(at);
            }
        }
        // Nothing is scanned for before what was lost is listed.
        until = until.min(self.resync_at.unwrap_or_else(|| self.scan_at()));
        let times = [self.timers_at, self.feed.kept.counters_at()];
        for at in times.into_iter().flatten() {
            until = until.min(at);
        }
        let patience = until.saturating_duration_since(Instant::now());
        self.feed.events.wait(patience)?;
        Ok(())
    }

    /// What is due; gives the reason if it is the end.
    fn chores(&mut self) -> Result<Option<String>, Error> {
        let now = Instant::now();
        if now >= self.next_look {
            self.next_look = now + LOOK_INTERVAL;
            if !self.at.still_there() {
                return Ok(Some(GONE.into()));
            }
        }
        if self.feed.machine.take_lost() {
            self.schedule_resync();
        }
        self.schedule.note(self.feed.events_seen, now);
        if self.shared.rescan.swap(false, Ordering::AcqRel) {
            self.schedule.asked(now);
        }
        if self.resync_at.is_none()
            && self.schedule.may_list(now)
            && self.feed.machine.could_be_whole()
        {
            self.resync_at = Some(now);
        }
        let limits = self.shared.limits().take();
        if let Some(limits) = limits {
            self.take_limits(limits);
        }
        self.look_at_recording(now);
        if self.resync_at.is_some_and(|at| now >= at) {
            self.resync_at = None;
            self.resync();
            self.schedule.listed(now, Instant::now());
        } else if self.resync_at.is_none() && now >= self.scan_at() {
            self.next_scan = now + self.options.scan_interval;
            self.scan();
            self.schedule.listed(now, Instant::now());
        }
        for what in Sampled::ALL {
            let at = self.unsure_at[what as usize];
            if now >= at && self.feed.is_wanted(what) {
                let begun = Instant::now();
                self.unsure_pause = match self.sample_rows(what) {
                    true => UNSURE_PAUSE,
                    false => (self.unsure_pause * 2).min(LONGEST_PAUSE),
                };
                let pause = self.unsure_pause.max(LISTING_SHARE * begun.elapsed());
                self.unsure_at[what as usize] = Instant::now() + pause;
            }
        }
        self.samples(now);
        if self.feed.kept.counters_at().is_some_and(|at| now >= at) {
            self.sample_counters(now);
            let feed = &mut self.feed;
            feed.kept.counters(feed.machine.tables(), now);
        }
        Ok(None)
    }

    /// Takes other limits; rows that had no place may have one now.
    fn take_limits(&mut self, limits: Limits) {
        self.feed.machine.set_limits(limits);
        let mut was_full = false;
        self.shared
            .update(|status| was_full = status.full.take().is_some());
        if was_full {
            self.schedule_resync();
        }
    }

    fn schedule_resync(&mut self) {
        if self.resync_at.is_none() {
            self.resync_at = Some(Instant::now() + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            self.shared.update(|status| status.phase = Phase::Resyncing);
        }
    }

    /// Lists everything soon where the recording needs it: a part begins,
    /// or something is missing in it.
    fn look_at_recording(&mut self, now: Instant) {
        match self.feed.kept.look() {
            Some(WantsAll::Now) => self.next_scan = now,
            Some(WantsAll::Soon) => self.next_scan = self.next_scan.min(now + AFTER_GAP),
            None => {}
        }
    }

    /// Lists everything for the first time, straight into the tables.
    fn first_load(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let found = self.list(Purpose::Load, Which::All)?;
        self.feed
            .note(found.map(|found| found.applied).unwrap_or_default());
        let rows = self.feed.machine.tables().rows();
        let load_time = start.elapsed();
        self.schedule.loaded(start, Instant::now());
        self.shared.update(|status| {
            status.load_time = load_time;
            status.phase = Phase::Live;
        });
        info!(rows, ?load_time, "mirrored");
        Ok(())
    }

    /// Lists tables; `None` when events were lost meanwhile, so that the
    /// listing is of no use.
    fn list(&mut self, purpose: Purpose, which: Which) -> Result<Option<Found>, Error> {
        let namespace = self.at.open()?;
        self.feed.begin(purpose, which);
        let mut lister = Lister {
            feed: &mut self.feed,
            only_stash: purpose == Purpose::Load,
        };
        let mut load = Load {
            namespace: &namespace,
            to: &mut lister,
        };
        let ended = load.run(which).and_then(|listed| {
            // What the kernel announced before the listing ended has
            // arrived.
            self.feed.drain(purpose)?;
            Ok(listed)
        });
        let listed = match ended {
            // A first load stands, whatever was lost: a resync follows.
            Ok(listed) if purpose == Purpose::Load || !self.feed.machine.is_lost() => listed,
            other => {
                self.feed.void();
                return other.map(|_| None);
            }
        };
        let found = self.feed.end(&listed);
        if self.feed.kept.listed(found.changes).is_some() {
            // Not at once: a scan that finds something may be followed by
            // another, and both are one listing's work for the history.
            self.next_scan = self.next_scan.min(Instant::now() + AFTER_SCAN);
        }
        self.feed.note_refused(found.full.as_ref(), &found.refused);
        if which == Which::Links {
            self.sample_ip();
        }
        self.note_interrupted(&listed);
        Ok(Some(found))
    }

    fn note_interrupted(&mut self, listed: &Listed) {
        if listed.interrupted > 0 {
            self.shared
                .update(|status| status.interrupted_dumps += listed.interrupted);
        }
        if !listed.complete {
            self.schedule_resync();
        }
    }

    /// When to scan next. A recording would hold each listing that follows a
    /// burst: then only the periodic ones are made.
    fn scan_at(&self) -> Instant {
        let is_recorded = self.feed.kept.is_kept();
        self.schedule.scan_at(self.next_scan, is_recorded)
    }

    /// Lists everything again after a loss; readers get the difference as
    /// one change.
    fn resync(&mut self) {
        self.schedule.forget_suspects();
        match self.list(Purpose::Resync, Which::All) {
            Ok(Some(found)) => {
                let changes = found.changes;
                info!(changes, "resynchronised after a loss of events");
                self.shared.update(|status| status.resyncs += 1);
            }
            Ok(None) => {}
            Err(error) => self.trouble("resynchronise", &error),
        }
        if self.resync_at.is_none() && !self.feed.machine.is_lost() {
            self.pause = FIRST_PAUSE;
            self.shared.update(|status| status.phase = Phase::Live);
        }
    }

    /// Lists everything to see whether the mirror is true.
    fn scan(&mut self) {
        self.schedule.forget_suspects();
        let start = Instant::now();
        match self.list(Purpose::Scan, Which::All) {
            Ok(Some(found)) => {
                let took = start.elapsed();
                self.shared.update(|status| {
                    status.last_scan_millis = now_millis();
                    status.last_scan = Some(Instant::now());
                    status.last_scan_time = took;
                    status.last_scan_drift = found.drift as u64;
                });
                if found.drift > 0 {
                    self.note_drift(found.drift, found.examples);
                }
            }
            // A resync follows.
            Ok(None) => return,
            Err(error) => return self.trouble("scan for drift", &error),
        }
        if self.feed.machine.has_suspects() {
            self.schedule.look_again(Instant::now() + LATENESS);
        } else {
            self.schedule.scanned();
            self.shared.update(|status| status.scans += 1);
        }
    }

    fn note_drift(&self, drift: usize, examples: Vec<String>) {
        warn!(drift, ?examples, "the mirror had drifted from the kernel");
        self.shared.update(|status| {
            status.drift += drift as u64;
            status.drift_examples = examples;
        });
    }

    fn trouble(&mut self, what: &str, error: &Error) {
        if matches!(error, Error::Stopped) {
            return;
        }
        warn!("could not {what}: {error}");
        self.shared
            .update(|status| status.last_trouble = Some(format!("could not {what}: {error}")));
        self.schedule_resync();
    }

    /// What IP counted in all, and IPv6 by link.
    fn sample_ip(&mut self) {
        match self.at.open().and_then(|at| ip_statistics::read(&at)) {
            Ok(texts) => {
                let now = now_micros();
                if self.feed.kept.is_kept() {
                    let payload = format::texts_payload(&texts);
                    self.feed
                        .kept
                        .put_where_all_is_kept(kind::IP, now, &payload);
                }
                self.feed.machine.ip(&texts, now / 1000);
            }
            Err(error) => warn!("could not sample what IP counted: {error}"),
        }
    }

    /// Takes the samples that somebody reads and that are not fresh.
    fn samples(&mut self, now: Instant) {
        while let Some(done) = self.sampler.as_mut().and_then(Sampler::done) {
            self.publish_sample(done);
        }
        if self.shared.samples.are_counters_due() {
            // Before anything that may be kept waiting.
            self.read_beside();
        }
        for what in Sampled::ALL {
            let last = &mut self.sampled[what as usize];
            if what == Sampled::BridgeTimers {
                self.sample_bridge_timers(now);
                continue;
            }
            let is_of_host = host_samples::is_of_host(what);
            let mut pause = SAMPLE_INTERVAL;
            if is_of_host {
                let cost = self.shared.samples.cost(what).unwrap_or_default();
                pause = pause.max(HOST_SHARE * cost);
            }
            if !due(self.shared.samples.wanted(what), *last, pause, now) {
                continue;
            }
            *last = Some(now);
            if is_of_host {
                self.have_sampled(Job::Host(what));
                continue;
            }
            match what {
                Sampled::Counters => self.sample_counters(now),
                _ => drop(self.sample_rows(what)),
            }
        }
        self.sample_some_counters(now);
        self.let_go_of_sockets(now);
    }

    /// Has timers read that were wanted since they last were. However many
    /// ask, the kernel's lock of links is free for most of the time.
    fn sample_bridge_timers(&mut self, now: Instant) {
        let samples = &self.shared.samples;
        let wanted = samples.wanted(Sampled::BridgeTimers);
        let cost = samples.cost(Sampled::BridgeTimers).unwrap_or_default();
        let last = &mut self.sampled[Sampled::BridgeTimers as usize];
        let job = Job::Host(Sampled::BridgeTimers);
        let is_free = self.sampler.as_ref().is_none_or(|one| !one.is_at(job));
        self.timers_at = None;
        if wanted > *last && is_free {
            let free_at = last.map(|last| last + HOST_SHARE * cost);
            if let Some(at) = free_at.filter(|at| now < *at) {
                self.timers_at = Some(at);
                return;
            }
            *last = Some(now);
            self.have_sampled(job);
        }
    }

    /// Takes the counters of all links.
    fn sample_counters(&mut self, now: Instant) {
        let begun = Instant::now();
        let counted = self.beside_events(counters::read_all);
        let taken = counted.and_then(|counted| {
            self.feed.machine.counted(counted, now_millis());
            // Those that came or went under the listing.
            let tables = self.feed.machine.tables();
            let lacks = |link: &u32| tables.counters_of(*link).is_none();
            let missed = tables.links.iter().map(|link| link.index).filter(lacks);
            let missed: Vec<u32> = missed.take(MOST_MISSED).collect();
            self.count_alone(&missed)
        });
        match taken {
            Ok(()) => self.with_speeds(now, |samples| {
                samples.took(Sampled::Counters, begun, Instant::now());
            }),
            // Told to end meanwhile: `follow` sees it next.
            Err(Error::Stopped) => {}
            Err(error) => warn!("could not sample the counters of links: {error}"),
        }
    }

    /// Tells that counters are there, and takes speeds: behind them, since
    /// some drivers take long to tell; but who is the first to ask waits for
    /// both.
    fn with_speeds(&mut self, now: Instant, tell: impl FnOnce(&Samples)) {
        if self.sampled_speeds.is_none() {
            self.sample_speeds(now);
            return tell(&self.shared.samples);
        }
        tell(&self.shared.samples);
        let is_fresh = |last| now - last < SPEED_INTERVAL;
        if !self.sampled_speeds.is_some_and(is_fresh) {
            self.sampled_speeds = Some(now);
            self.have_sampled(Job::Speeds);
        }
    }

    /// Takes the counters of the links that somebody reads, where those of
    /// all are not fresh.
    fn sample_some_counters(&mut self, now: Instant) {
        let wanted = self.shared.samples.wanted_counters();
        if wanted.is_empty() {
            return;
        }
        match counters::in_ranges(&self.feed.machine.tables().links, &wanted) {
            Some(links) => match self.count_alone(&links) {
                Ok(()) => self.with_speeds(now, Samples::took_some_counters),
                Err(error) => warn!("could not sample the counters of some links: {error}"),
            },
            None => self.sample_counters(now),
        }
    }

    /// From now on counters are read beside this thread where it is kept
    /// waiting.
    fn read_beside(&mut self) {
        if self.beside.is_some() {
            return;
        }
        let (reader, samples) = (
            self.feed.machine.writer().reader(),
            self.shared.samples.clone(),
        );
        let started = self.at.open();
        let started = started.and_then(|at| counters_beside::start(&at, reader, samples));
        self.beside = started.map_err(|error| debug!("{error}")).ok();
    }

    /// Asks for the counters of some links, and publishes them.
    fn count_alone(&mut self, links: &[u32]) -> Result<(), Error> {
        let counted = counters::read_some(&self.at.open()?, links)?;
        let writer = self.feed.machine.writer();
        writer.count_alone(counted);
        writer.publish_counted();
        Ok(())
    }

    /// Asks the kernel for something long, and takes in its events
    /// meanwhile.
    fn beside_events<T>(
        &mut self,
        read: impl FnOnce(&Namespace, &mut dyn FnMut() -> Result<(), Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (feed, shared) = (&mut self.feed, &self.shared);
        let namespace = self.at.open()?;
        read(&namespace, &mut || feed.take_meanwhile(shared))
    }

    /// Has a sample taken that may take long; it is published when it came.
    fn have_sampled(&mut self, job: Job) {
        if self.sampler.is_none() {
            let started = Sampler::start(Arc::clone(&self.shared));
            self.sampler = started.map_err(|error| warn!("no samples: {error}")).ok();
        }
        match (&mut self.sampler, self.at.open()) {
            (Some(sampler), Ok(namespace)) => sampler.ask(job, namespace),
            (_, Err(error)) => warn!("could not sample {job:?}: {error}"),
            (None, _) => {}
        }
    }

    fn publish_sample(&mut self, done: Done) {
        match (done.job, done.outcome) {
            (Job::Host(what), Ok(sampler::Outcome::Host(taken))) => {
                let links = self.feed.machine.tables().links.clone();
                let writer = self.feed.machine.writer();
                writer.publish_host(|host| taken.put(&links, host));
                self.shared.samples.took(what, done.begun, done.ended);
            }
            (_, Ok(sampler::Outcome::Speeds(known))) => self.feed.speeds(known, now_micros()),
            // It is to end: `follow` sees it next.
            (_, Ok(_) | Err(Error::Stopped)) => {}
            (job, Err(error)) => warn!("could not sample {job:?}: {error}"),
        }
    }

    fn let_go_of_sockets(&mut self, now: Instant) {
        let wanted = self.shared.samples.wanted(Sampled::Sockets);
        let is_read = wanted.is_some_and(|at| now.saturating_duration_since(at) < KEPT);
        let host = &self.feed.machine.tables().host;
        if !is_read && host.sockets.taken_at_millis.is_some() {
            let writer = self.feed.machine.writer();
            writer.publish_host(|host| host.sockets = Arc::default());
        }
    }

    fn sample_speeds(&mut self, now: Instant) {
        self.sampled_speeds = Some(now);
        match self.beside_events(speeds::read) {
            Ok(known) => self.feed.speeds(known, now_micros()),
            // Told to end meanwhile: `follow` sees it next.
            Err(Error::Stopped) => {}
            Err(error) => warn!("could not sample how fast links are: {error}"),
        }
    }

    /// Takes in what the kernel never announces. What it should have
    /// announced is left to a scan. Whether the kernel could be asked.
    fn sample_rows(&mut self, what: Sampled) -> bool {
        let which = match what {
            Sampled::Links | Sampled::Counters => Which::Links,
            Sampled::Addresses => Which::Addresses,
            Sampled::Neighbours => Which::Neighbours,
            Sampled::Fdb => Which::Fdb,
            Sampled::Sockets
            | Sampled::Machine
            | Sampled::IpInterfaces
            | Sampled::BridgeVlans
            | Sampled::BridgeTimers => return true,
        };
        let begun = Instant::now();
        match self.list(Purpose::Sample, which) {
            Ok(Some(_)) => {
                // Readers see it before they are told.
                self.feed.machine.writer().publish();
                match what {
                    // Counters are in the links as well.
                    Sampled::Links => self.with_speeds(begun, |samples| {
                        let now = Instant::now();
                        samples.took(Sampled::Counters, begun, now);
                        samples.took(Sampled::Links, begun, now);
                    }),
                    _ => self.shared.samples.took(what, begun, Instant::now()),
                }
            }
            // Of no use; the next is taken when somebody still reads.
            Ok(None) => {}
            // Told to end meanwhile: `follow` sees it next.
            Err(Error::Stopped) => {}
            Err(error) => {
                warn!("could not sample {which:?}: {error}");
                return false;
            }
        }
        true
    }
}

fn due(wanted: Option<Instant>, last: Option<Instant>, pause: Duration, now: Instant) -> bool {
    let is_read = |wanted| now.saturating_duration_since(wanted) < INTEREST;
    wanted.is_some_and(is_read) && last.is_none_or(|last| now - last >= pause)
}

/// Takes a listing in, and the events that come meanwhile.
struct Lister<'a> {
    feed: &'a mut Feed,
    /// The tables are not there yet: events are only kept.
    only_stash: bool,
}

impl Listener for Lister<'_> {
    fn asked(&mut self, request: &[u8]) {
        let now = now_micros();
        self.feed.kept.put_of_listing(kind::REQUEST, now, request);
        self.feed.machine.request(now / 1000);
    }

    fn datagram(&mut self, datagram: &[u8], written: Instant) {
        self.feed.machine.datagram(written);
        if self.feed.kept.is_kept() {
            let now = now_micros();
            self.feed.kept.put_of_listing(kind::ANSWER, now, datagram);
        }
    }

    fn message(&mut self, message: &Message<'_>) -> Result<(), Error> {
        Ok(self.feed.machine.row(message)?)
    }

    fn own_address(&self) -> Option<Ipv4Addr> {
        self.feed.machine.own_address()
    }

    fn meanwhile(&mut self) -> Result<(), Error> {
        if self.feed.shared.stop.load(Ordering::Acquire) {
            return Err(Error::Stopped);
        }
        if self.only_stash {
            while self.feed.take_batch()? {}
        } else {
            self.feed.take_batch()?;
            self.feed.machine.writer().publish();
        }
        Ok(())
    }
}

impl Feed {
    /// Whether rows are to be listed: the machine is unsure of them, or a
    /// history lacks what a listing found.
    fn is_wanted(&mut self, what: Sampled) -> bool {
        self.machine.is_unsure_of(what) || self.kept.wants(what)
    }

    /// Publishes how fast links are.
    fn speeds(&mut self, known: speeds::Known, at_micros: u64) {
        if self.kept.is_kept() {
            let payload = format::speeds_payload(&known.speeds);
            self.kept
                .put_where_all_is_kept(kind::SPEEDS, at_micros, &payload);
        }
        self.machine.speeds(known.speeds, at_micros / 1000);
        let duplex = Sample::new(at_micros / 1000, known.duplex);
        let writer = self.machine.writer();
        writer.publish_host(|host| host.duplex = duplex.into());
    }

    /// Takes waiting events while a sample is taken.
    fn take_meanwhile(&mut self, shared: &Shared) -> Result<(), Error> {
        if shared.stop.load(Ordering::Acquire) {
            return Err(Error::Stopped);
        }
        self.take_batch()?;
        self.machine.writer().publish();
        Ok(())
    }

    fn begin(&mut self, purpose: Purpose, which: Which) {
        let is_unsure = match which {
            Which::All => false,
            Which::Links => self.machine.is_unsure_of(Sampled::Links),
            Which::Addresses => self.machine.is_unsure_of(Sampled::Addresses),
            Which::Neighbours => self.machine.is_unsure_of(Sampled::Neighbours),
            Which::Fdb => self.machine.is_unsure_of(Sampled::Fdb),
        };
        self.kept.begin(purpose, which, is_unsure);
        self.machine.begin(purpose, which);
    }

    /// Takes all events that wait.
    fn drain(&mut self, purpose: Purpose) -> Result<(), Error> {
        while self.take_batch()? {}
        if purpose != Purpose::Load {
            self.machine.writer().publish();
        }
        Ok(())
    }

    fn end(&mut self, listed: &Listed) -> Found {
        let now = now_micros();
        let outcome = Outcome::Listed(*listed).payload();
        self.kept.put_of_listing(kind::LISTED, now, &outcome);
        self.machine.end(listed, now / 1000)
    }

    fn void(&mut self) {
        let outcome = Outcome::Void.payload();
        self.kept
            .put_of_listing(kind::LISTED, now_micros(), &outcome);
        self.kept.void();
        self.machine.fail();
    }

    /// Applies up to a batch of waiting events; true if there were any.
    fn take_batch(&mut self) -> Result<bool, Error> {
        for taken in 0..BATCH {
            match self.events.try_receive(&mut self.buffer)? {
                Received::Nothing => return Ok(taken > 0),
                Received::Overrun => self.overrun(),
                Received::Bytes(len) if is_nudge(&self.buffer[..len]) => {}
                Received::Bytes(len) => self.event(len),
            }
        }
        Ok(true)
    }

    /// Applies the datagram just received.
    fn event(&mut self, len: usize) {
        let now = now_micros();
        let datagram = &self.buffer[..len];
        self.kept.put(kind::EVENT, now, datagram);
        let applied = self.machine.event(datagram, now / 1000);
        self.note(applied);
    }

    fn overrun(&mut self) {
        self.kept.put(kind::OVERRUN, now_micros(), &[]);
        self.machine.overrun();
        self.shared.update(|status| status.overruns += 1);
    }

    fn note(&mut self, applied: Applied) {
        self.events_seen += applied.events;
        self.note_refused(applied.full.as_ref(), &applied.refused);
        let foreign = self.events.foreign();
        self.shared.update(|status| {
            status.events += applied.events;
            status.malformed += applied.malformed;
            status.foreign = foreign;
        });
    }

    /// Says which tables miss rows, and which no more do.
    fn note_refused(&self, full: Option<&TableFull>, refused: &Refused) {
        let incomplete = self.machine.incomplete();
        let words = full.map(TableFull::to_string);
        let mut is_new = false;
        self.shared.update(|status| {
            for (table, rows) in refused {
                *status.refused.entry(table).or_default() += rows;
            }
            if status.incomplete != *incomplete {
                status.incomplete = incomplete.clone();
            }
            is_new = words.is_some() && status.full != words;
            if incomplete.is_empty() {
                status.full = None;
            } else if is_new {
                status.full = words.clone();
            }
        });
        if let Some(words) = words.filter(|_| is_new) {
            warn!("{words}");
        }
    }
}
