//! Samples on demand: who reads says so, the source takes a sample, and
//! whoever waits for it is told. The one place where freshness is asked for.
//!
//! Readers call [`Samples::want`] and [`Samples::wait`] (or
//! [`Samples::fresh`], for a future); the source asks [`Samples::wanted`]
//! when it has been woken, and says [`Samples::took`]. Where it is kept from
//! that, another thread reads counters beside it ([`Samples::wait_late`],
//! [`Samples::took_beside`]).

mod ranges;

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

pub use ranges::LinkRanges;

use crate::sample::{Counted, Sample};

/// Counters that were not told so long after they were wanted, or twice as
/// long as reading those of all links takes, are late.
const LATE: Duration = Duration::from_millis(25);

/// What a source samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// Counters of links, those of IP, in all and by link, and what is not
    /// announced of links.
    Links,
    /// Counters of links alone: of all, or of those that somebody reads.
    Counters,
    /// Addresses that were not announced.
    Addresses,
    /// Ages of neighbours, and what is not announced of them.
    Neighbours,
    /// Forwarding entries that were not announced.
    Fdb,
    /// Sockets of TCP and UDP.
    Sockets,
    /// The machine: load, memory, processors, file systems.
    Machine,
    /// How IP is set on links.
    IpInterfaces,
    /// VLANs of bridges.
    BridgeVlans,
    /// Timers of bridges and their ports, which are of use only while they
    /// are new: one is taken for each wish, and none of its own accord.
    BridgeTimers,
}

/// How many kinds there are.
const KINDS: usize = Sampled::ALL.len();

impl Sampled {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Links,
        Self::Counters,
        Self::Addresses,
        Self::Neighbours,
        Self::Fdb,
        Self::Sockets,
        Self::Machine,
        Self::IpInterfaces,
        Self::BridgeVlans,
        Self::BridgeTimers,
    ];
}

/// What is sampled while somebody reads it. Cheap to clone; all clones are
/// the same.
#[derive(Clone)]
pub struct Samples(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Who looks whether counters are late.
    late: Condvar,
    /// Wakes the source.
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Debug, Default)]
struct State {
    kinds: [Kind; KINDS],
    /// Links whose counters somebody reads.
    links: LinkRanges,
    /// Since when counters are wanted that were not told.
    counters_due: Option<Instant>,
    /// Counters that were read beside the source.
    beside: Option<Arc<CountedBeside>>,
    /// Tells those who wait apart.
    next: u64,
    ended: bool,
}

/// Counters of links that were read beside the source, while it was kept
/// from reading them: not in its tables.
#[derive(Debug)]
pub struct CountedBeside {
    /// When reading was begun.
    pub begun: Instant,
    /// What the links had counted.
    pub links: Sample<u32, Counted>,
    /// Links whose single errors are not known: nobody has told them yet, and
    /// they are some.
    pub sums_alone: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct Kind {
    /// When somebody last read it.
    wanted: Option<Instant>,
    /// When the last sample that readers see was begun.
    taken: Option<Instant>,
    /// How long it took.
    cost: Option<Duration>,
    waiting: Vec<(u64, Waker)>,
}

impl State {
    fn is_fresh(&self, what: Sampled, since: Instant) -> bool {
        let beside = self.beside.as_ref().filter(|_| what == Sampled::Counters);
        let beside = beside.map(|beside| beside.begun);
        self.kinds[what as usize].taken.max(beside) >= Some(since)
    }

    /// What was wanted meanwhile is due from now on.
    fn told_counters(&mut self) {
        let is_wanted = !self.links.is_empty();
        self.counters_due = is_wanted.then(Instant::now);
    }
}

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Samples").field(&*self.state()).finish()
    }
}

impl Samples {
    /// Of a source that `wake` wakes. It may be called from any thread, and
    /// returns at once.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            late: Condvar::new(),
            wake: Box::new(wake),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that somebody reads it now. Returns at once.
    pub fn want(&self, what: Sampled, now: Instant) {
        let mut state = self.state();
        state.kinds[what as usize].wanted = Some(now);
        if what == Sampled::Counters {
            self.note_due(&mut state);
        }
        drop(state);
        (self.0.wake)();
    }

    fn note_due(&self, state: &mut State) {
        if state.counters_due.is_none() {
            state.counters_due = Some(Instant::now());
            self.0.late.notify_one();
        }
    }

    /// Says that somebody reads the counters of these links now. Returns at
    /// once.
    pub fn want_counters(&self, links: &LinkRanges) {
        let mut state = self.state();
        state.links.add_all(links);
        self.note_due(&mut state);
        drop(state);
        (self.0.wake)();
    }

    /// The links whose counters somebody has wanted since this was last
    /// asked: for the source.
    pub fn wanted_counters(&self) -> LinkRanges {
        std::mem::take(&mut self.state().links)
    }

    /// Whether somebody wants counters that were not told yet: for the source.
    pub fn are_counters_due(&self) -> bool {
        self.state().counters_due.is_some()
    }

    /// Counters of some links were taken: for the source. Tells all who wait
    /// for counters, who look whether those are theirs.
    pub fn took_some_counters(&self) {
        let mut state = self.state();
        state.told_counters();
        self.tell(state, Sampled::Counters);
    }

    /// Waits until counters are late; false: no further sample will be
    /// taken. For who reads them beside the source, and does it now.
    pub fn wait_late(&self) -> bool {
        let mut state = self.state();
        loop {
            if state.ended {
                return false;
            }
            let cost = state.kinds[Sampled::Counters as usize].cost;
            let late = LATE.max(2 * cost.unwrap_or_default());
            let now = Instant::now();
            let waits = &self.0.late;
            state = match state.counters_due.map(|due| due + late) {
                Some(at) if at <= now => {
                    state.counters_due = None;
                    return true;
                }
                Some(at) => {
                    let waited = waits.wait_timeout(state, at - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => waits.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Counters were read beside the source. Tells all who wait for them.
    pub fn took_beside(&self, counted: CountedBeside) {
        let mut state = self.state();
        state.beside = Some(Arc::new(counted));
        self.tell(state, Sampled::Counters);
    }

    /// The counters that were read beside the source last; `None`: it was
    /// never kept from reading them.
    pub fn beside(&self) -> Option<Arc<CountedBeside>> {
        self.state().beside.clone()
    }

    /// Tells all who wait for a kind.
    fn tell(&self, mut state: MutexGuard<'_, State>, what: Sampled) {
        let waiting = std::mem::take(&mut state.kinds[what as usize].waiting);
        drop(state);
        self.0.changed.notify_all();
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// When somebody last read it: for the source.
    pub fn wanted(&self, what: Sampled) -> Option<Instant> {
        self.state().kinds[what as usize].wanted
    }

    /// Readers see a sample that was begun then and is there now: for the
    /// source. Tells all who wait.
    pub fn took(&self, what: Sampled, begun: Instant, now: Instant) {
        let mut state = self.state();
        let kind = &mut state.kinds[what as usize];
        kind.taken = Some(begun);
        kind.cost = Some(now.saturating_duration_since(begun));
        if what == Sampled::Counters {
            state.told_counters();
        }
        self.tell(state, what);
    }

    /// No further sample will be taken: nobody waits any more.
    pub fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        let kinds = state.kinds.iter_mut();
        let waiting: Vec<_> = kinds.flat_map(|kind| kind.waiting.drain(..)).collect();
        drop(state);
        self.0.changed.notify_all();
        self.0.late.notify_all();
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// How long the last sample took; `None`: there was none yet.
    pub fn cost(&self, what: Sampled) -> Option<Duration> {
        self.state().kinds[what as usize].cost
    }

    /// When the last sample that readers see was begun, counters beside the
    /// source left out; `None`: there was none yet.
    pub fn begun(&self, what: Sampled) -> Option<Instant> {
        self.state().kinds[what as usize].taken
    }

    /// Whether no further sample will be taken.
    pub fn has_ended(&self) -> bool {
        self.state().ended
    }

    /// Whether a sample was begun at a time or later.
    pub fn is_fresh(&self, what: Sampled, since: Instant) -> bool {
        self.state().is_fresh(what, since)
    }

    /// Waits for a sample that was begun at a time or later, for so long at
    /// most; whether there is one.
    pub fn wait(&self, what: Sampled, since: Instant, patience: Duration) -> bool {
        let lacks = |state: &mut State| !state.ended && !state.is_fresh(what, since);
        let (state, _) = self
            .0
            .changed
            .wait_timeout_while(self.state(), patience, lacks)
            .unwrap_or_else(PoisonError::into_inner);
        state.is_fresh(what, since)
    }

    /// The same as a future; whoever polls it bounds it.
    pub fn fresh(&self, what: Sampled, since: Instant) -> Fresh {
        Fresh {
            samples: self.clone(),
            what,
            since,
            ticket: None,
        }
    }
}

/// Ready when a sample is fresh, or none will be: whether one is.
#[derive(Debug)]
pub struct Fresh {
    samples: Samples,
    what: Sampled,
    since: Instant,
    ticket: Option<u64>,
}

impl Future for Fresh {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let samples = self.samples.clone();
        let mut state = samples.state();
        let is_fresh = state.is_fresh(self.what, self.since);
        if state.ended || is_fresh {
            return Poll::Ready(is_fresh);
        }
        let State { kinds, next, .. } = &mut *state;
        let kind = &mut kinds[self.what as usize];
        let ticket = *self.ticket.get_or_insert_with(|| {
            *next += 1;
            *next
        });
        kind.waiting.retain(|(other, _)| *other != ticket);
        kind.waiting.push((ticket, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut state = self.samples.state();
            let waiting = &mut state.kinds[self.what as usize].waiting;
            waiting.retain(|(other, _)| *other != ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn samples() -> (Samples, Arc<AtomicUsize>) {
        let woken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&woken);
        let samples = Samples::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        (samples, woken)
    }

    #[test]
    fn a_wish_wakes_the_source_and_is_of_its_kind() {
        let (samples, woken) = samples();
        let now = Instant::now();
        samples.want(Sampled::Neighbours, now);
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        assert_eq!(samples.wanted(Sampled::Neighbours), Some(now));
        assert_eq!(samples.wanted(Sampled::Links), None);
    }

    #[test]
    fn who_waits_is_told_and_an_older_sample_is_none() {
        let (samples, _) = samples();
        let before = Instant::now();
        let now = before + Duration::from_secs(1);
        assert_eq!(samples.cost(Sampled::Links), None);
        samples.took(Sampled::Links, before, now);
        assert_eq!(samples.cost(Sampled::Links), Some(now - before));
        assert!(samples.is_fresh(Sampled::Links, before));
        assert!(!samples.wait(Sampled::Links, now, Duration::ZERO));
        let source = samples.clone();
        let taking = thread::spawn(move || source.took(Sampled::Links, now, now));
        assert!(samples.wait(Sampled::Links, now, LONG));
        taking.join().unwrap();
    }

    #[test]
    fn the_end_of_a_source_ends_all_waiting() {
        let (samples, _) = samples();
        let source = samples.clone();
        let ending = thread::spawn(move || source.end());
        assert!(!samples.wait(Sampled::Fdb, Instant::now(), LONG));
        ending.join().unwrap();
    }

    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_future_is_woken_once_and_one_that_is_dropped_leaves_nothing() {
        let (samples, _) = samples();
        let counted = Arc::new(Counted(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&counted));
        let mut cx = Context::from_waker(&waker);
        let now = Instant::now();
        let mut waits = samples.fresh(Sampled::Links, now);
        let mut left = samples.fresh(Sampled::Links, now);
        for fresh in [&mut waits, &mut left] {
            assert!(Pin::new(&mut *fresh).poll(&mut cx).is_pending());
            assert!(Pin::new(fresh).poll(&mut cx).is_pending());
        }
        drop(left);
        assert_eq!(samples.state().kinds[0].waiting.len(), 1);
        samples.took(Sampled::Links, now, now);
        assert_eq!(counted.0.load(Ordering::Relaxed), 1);
        assert_eq!(Pin::new(&mut waits).poll(&mut cx), Poll::Ready(true));
        assert!(samples.state().kinds[0].waiting.is_empty());
    }
}
