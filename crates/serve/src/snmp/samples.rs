//! How answers get what the kernel does not announce: counters and ages,
//! no older than a second, or as old as they say.
//!
//! What an answer reads is wanted of the source, and nothing else. Where it
//! is too old the request is put off until a sample came ([`Manner::PutOff`],
//! for who answers many), or the thread waits ([`Manner::Wait`], for who
//! answers one), within a bound that grows with the table. Behind that it is
//! answered from what there is ([`Manner::Take`]); FINGERPOST-MIB tells how
//! old that is. Counters that are older than a second are not told to who
//! asks again: rates would be made of them (an AgentX master is told of an
//! error instead); those that nobody has read yet have no instance until
//! somebody has. Called by [`super::contexts`].

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use mib::{Reads, SampleTimes};
use table::{CountedBeside, Fresh, LinkRanges, Sampled, Samples, Source, Tables};

/// How old a sample may be in an answer.
const FRESH: Duration = Duration::from_secs(1);
/// Counters of links are read at little cost, and rates are made of them:
/// they are no older than this, or so many times as old as it takes to read
/// those of all links, a second at most. So they take a tenth of the time.
const FRESH_COUNTERS: Duration = Duration::from_millis(100);
const COUNTERS_SHARE: u32 = 10;
/// A sample is waited for so long, at most: this, and for each link so much
/// more, up to the last.
const PATIENCE: Duration = Duration::from_millis(250);
/// For the first of its kind, without which a table has no rows.
const FIRST_PATIENCE: Duration = Duration::from_millis(800);
const PATIENCE_OF_LINK: Duration = Duration::from_micros(50);
const MOST_PATIENCE: Duration = Duration::from_secs(2);
/// Where counters are so old that they are not told, it is waited for long
/// enough that most managers have asked again, and get the answer then.
const STALE_PATIENCE: Duration = Duration::from_secs(5);
/// Of two readings the later was begun so much later at least.
const SHORTEST: Duration = Duration::from_nanos(1);
/// Links behind those that were read whose counters are taken with them.
const AHEAD: u32 = 256;

/// What is done where a sample is too old.
#[derive(Debug, Clone)]
pub enum Manner {
    /// The request is put off, and whoever put it off is woken.
    PutOff(Waker),
    /// It is waited for.
    Wait,
    /// What is there is taken.
    Take,
}

/// When a link's counters were read: `None`: never; `Some(None)`: that is not
/// known.
type When = Option<Option<Instant>>;

/// The samples of one source, as a request needs them.
#[derive(Debug)]
pub struct Freshness {
    manner: Manner,
    now: Instant,
    /// How old counters of links may be.
    fresh_counters: Duration,
    /// When those that are there were begun: asked before the snapshot was
    /// taken, which is then as new at least.
    begun: Cell<[Option<Instant>; Sampled::ALL.len()]>,
    /// Counters that are not in the tables.
    beside: RefCell<Option<Arc<CountedBeside>>>,
    /// One that is waited for is the first of its kind.
    is_first: Cell<bool>,
    reads: Reads,
    waits: RefCell<Vec<Fresh>>,
    is_old: Cell<bool>,
    /// Counters were read that are too old to be told.
    is_stale: Cell<bool>,
}

impl Freshness {
    /// To be made before the snapshot is taken.
    pub fn new(manner: Manner, source: &dyn Source) -> Self {
        let cost = source.samples().and_then(|one| one.cost(Sampled::Counters));
        let share = COUNTERS_SHARE * cost.unwrap_or_default();
        let fresh_counters = match manner {
            // All are read for whoever waits, which is done once a second.
            Manner::Wait => FRESH,
            Manner::PutOff(_) | Manner::Take => share.clamp(FRESH_COUNTERS, FRESH),
        };
        let needed = Self {
            manner,
            now: Instant::now(),
            fresh_counters,
            begun: Cell::default(),
            beside: RefCell::default(),
            is_first: Cell::new(false),
            reads: Reads::default(),
            waits: RefCell::default(),
            is_old: Cell::new(false),
            is_stale: Cell::new(false),
        };
        needed.look(source);
        needed
    }

    fn look(&self, source: &dyn Source) {
        let begun = |what| source.samples().and_then(|samples| samples.begun(what));
        self.begun.set(Sampled::ALL.map(begun));
        *self.beside.borrow_mut() = source.samples().and_then(Samples::beside);
    }

    fn begun(&self, what: Sampled) -> Option<Instant> {
        self.begun.get()[what as usize]
    }

    /// Counters that the answer is made of beside those in the tables.
    pub fn beside(&self) -> Option<Arc<CountedBeside>> {
        self.beside.borrow().clone()
    }

    /// When the request was begun to be answered.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// When the samples that it is answered from were begun.
    pub fn times(&self) -> SampleTimes {
        SampleTimes {
            counters: self.begun(Sampled::Counters),
            neighbours: self.begun(Sampled::Neighbours),
        }
    }

    /// Where it is noted which counters an answer reads.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Whether the answer has something older than it should be.
    pub fn is_old(&self) -> bool {
        self.is_old.get()
    }

    /// Whether the answer has counters that are too old to be told: whoever
    /// asks again gets later ones.
    pub fn is_stale(&self) -> bool {
        self.is_stale.get()
    }

    /// The same of what was answered since this was last asked: for who
    /// answers several questions with one of these.
    pub fn take_stale(&self) -> bool {
        self.is_stale.take()
    }

    /// Whether the request is put off.
    pub fn is_waiting(&self) -> bool {
        !self.waits.borrow().is_empty()
    }

    /// What a request that is put off waits for, and for how long in a table
    /// of so many links. It is woken as long as this is held.
    pub fn into_waits(self, links: usize) -> (Vec<Fresh>, Duration) {
        let patience = match self.is_stale.get() {
            true => STALE_PATIENCE,
            false => self.patience(links),
        };
        (self.waits.into_inner(), patience)
    }

    fn patience(&self, links: usize) -> Duration {
        let of_links = PATIENCE_OF_LINK.saturating_mul(links.try_into().unwrap_or(u32::MAX));
        let least = if self.is_first.get() {
            FIRST_PATIENCE
        } else {
            PATIENCE
        };
        (least + of_links).min(MOST_PATIENCE)
    }

    /// Samples of one kind that were begun then or later are fresh.
    fn since(&self, what: Sampled) -> Instant {
        self.before_now(match what {
            Sampled::Counters => self.fresh_counters,
            _ => FRESH,
        })
    }

    fn before_now(&self, age: Duration) -> Instant {
        // A host that is younger than that has nothing that is fresh.
        self.now.checked_sub(age).unwrap_or(self.now)
    }

    fn is_fresh(&self, what: Sampled, begun: Option<Instant>) -> bool {
        begun.is_some_and(|begun| begun >= self.since(what))
    }

    /// Before names are answered for that need these samples: whether to
    /// answer now. After a wait the snapshot is to be taken again
    /// (`waited`).
    pub fn before(&self, needed: mib::Needed, source: &dyn Source) -> Before {
        let Some(samples) = source.samples() else {
            return Before::Answer;
        };
        // Which counters are needed is known behind the answer; who waits
        // for them does so for all.
        let waits = matches!(self.manner, Manner::Wait);
        let kinds = needed
            .iter()
            .filter(|what| waits || *what != Sampled::Counters);
        let mut before = Before::Answer;
        for what in kinds {
            if !self.is_fresh(what, self.begun(what)) {
                before = before.max(self.get(what, samples, source));
            }
        }
        if before == Before::TakeAgain {
            self.look(source);
        }
        before
    }

    /// Behind an answer: whether the counters that it read were fresh is
    /// looked at, and those that were not are wanted.
    pub fn behind(&self, tables: &Tables, source: &dyn Source) {
        let read = self.reads.take();
        if read.is_empty() || self.is_fresh(Sampled::Counters, self.begun(Sampled::Counters)) {
            return;
        }
        let Some(samples) = source.samples() else {
            return;
        };
        let is_fresh = |at: When| at.flatten() >= Some(self.since(Sampled::Counters));
        if self.read_at(&read, tables).all(is_fresh) {
            return;
        }
        // Of a link whose counters nobody has read yet none are told.
        let is_stale = |at: When| at.is_some_and(|at| at < Some(self.before_now(FRESH)));
        let is_stale = self.read_at(&read, tables).any(is_stale);
        let is_stale = is_stale && !samples.has_ended();
        // A request may read counters in several parts.
        self.is_stale.set(self.is_stale.get() || is_stale);
        match self.manner(samples) {
            Manner::PutOff(waker) => {
                // First: what comes in between wakes already.
                self.put_off(samples, Sampled::Counters, self.not_yet_seen(), waker);
                samples.want_counters(&read.with_next(AHEAD));
            }
            Manner::Wait | Manner::Take => {
                samples.want_counters(&read.with_next(AHEAD));
                self.is_old.set(true);
            }
        }
    }

    /// Counters that were begun then or later are fresh and may be of use to
    /// an answer that lacks some: what was read beside the source was looked
    /// at, and lacks them however new it is.
    fn not_yet_seen(&self) -> Instant {
        let beside = self.beside.borrow();
        let seen = beside.as_ref().map(|seen| seen.begun + SHORTEST);
        let since = self.since(Sampled::Counters);
        seen.map_or(since, |seen| seen.max(since))
    }

    /// When the counters of some links were read: of each link there is.
    fn read_at<'a>(
        &self,
        read: &'a LinkRanges,
        tables: &'a Tables,
    ) -> impl Iterator<Item = When> + use<'a> {
        let beside = self.beside();
        let all = self.begun(Sampled::Counters);
        let links = read.iter().flat_map(|range| {
            let links = tables.links.from(*range.start()).map(|link| link.index);
            links.take_while(|link| link <= range.end())
        });
        links.map(move |link| {
            let told = match tables.counted_alone.get(&link) {
                Some(alone) => Some(alone.at),
                // One that a listing passed over has no counters, as fresh.
                None => {
                    let told = tables.link_counters.get(&link).map(|told| told.at);
                    told.flatten().max(all).map(Some).or(told)
                }
            };
            let beside = beside.as_ref().and_then(|one| one.links.get(&link));
            told.max(beside.map(|beside| beside.at))
        })
    }

    fn get(&self, what: Sampled, samples: &Samples, source: &dyn Source) -> Before {
        self.is_first
            .set(self.is_first.get() || self.begun(what).is_none());
        match self.manner(samples) {
            Manner::PutOff(waker) => {
                self.put_off(samples, what, self.since(what), waker);
                samples.want(what, self.now);
                Before::PutOff
            }
            Manner::Wait => {
                samples.want(what, self.now);
                let patience = self.patience(source.reader().snapshot().links.len());
                let came = samples.wait(what, self.since(what), patience);
                self.is_old.set(self.is_old.get() || !came);
                Before::TakeAgain
            }
            Manner::Take => {
                samples.want(what, self.now);
                self.is_old.set(true);
                Before::Answer
            }
        }
    }

    /// Nobody is put off until a sample comes where none will.
    fn manner(&self, samples: &Samples) -> &Manner {
        match &self.manner {
            Manner::PutOff(_) if samples.has_ended() => &Manner::Take,
            manner => manner,
        }
    }

    fn put_off(&self, samples: &Samples, what: Sampled, since: Instant, waker: &Waker) {
        let mut fresh = samples.fresh(what, since);
        if Pin::new(&mut fresh)
            .poll(&mut Context::from_waker(waker))
            .is_ready()
        {
            // It came meanwhile, or none will: who asks again sees that.
            waker.wake_by_ref();
        }
        self.waits.borrow_mut().push(fresh);
    }
}

/// What is to be done before an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Before {
    /// It can be given.
    Answer,
    /// A snapshot is to be taken first: samples came.
    TakeAgain,
    /// The request is put off.
    PutOff,
}

#[cfg(test)]
mod tests;
