//! A place that records go to: a bounded ring, and a thread that empties it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tracing::warn;

use super::record::Record;

/// Records that wait for a place at most.
const RING: usize = 1 << 16;
/// Records written in one go.
const AT_ONCE: usize = 512;
/// How long a place that has nothing to write is left alone.
const IDLE: Duration = Duration::from_millis(500);
/// How long an end is waited for where nothing is written any more, and room
/// for what must not be lost.
pub const END: Duration = Duration::from_secs(3);
/// How long an end or a start waits at most.
pub const MOST: Duration = Duration::from_secs(30);
/// How often it is looked whether there is room.
const LOOKS: Duration = Duration::from_millis(1);
/// How often it is said that something is wrong.
const COMPLAINS: Duration = Duration::from_secs(60);

/// What writes records somewhere.
pub trait Writer: Send {
    /// Writes some records in order. An error says why; it is told how many
    /// of them are done, and the others are tried again.
    fn write(&mut self, records: &[Record]) -> Result<(), Failed>;

    /// Does what time asks for: called about twice a second.
    fn tick(&mut self) -> Result<(), String>;
}

/// Records were not written.
pub struct Failed {
    /// How many were, before.
    pub written: usize,
    pub error: String,
}

#[derive(Debug, Default)]
struct Counts {
    handed: AtomicU64,
    lost: AtomicU64,
    written: AtomicU64,
    failures: AtomicU64,
}

impl Counts {
    fn told(&self, name: &str) -> Told {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Told {
            name: name.to_owned(),
            handed: of(&self.handed),
            written: of(&self.written),
            lost: of(&self.lost),
            failures: of(&self.failures),
        }
    }
}

/// What became of a place's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The place.
    pub name: String,
    /// Records that were for it.
    pub handed: u64,
    /// Those that were written or sent.
    pub written: u64,
    /// Those that found its ring full, or were in it at the end.
    pub lost: u64,
    /// Attempts that failed.
    pub failures: u64,
}

impl Told {
    /// It as JSON.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "handed": self.handed,
            "written": self.written,
            "lost": self.lost,
            "failures": self.failures,
        })
    }
}

impl fmt::Display for Told {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}: {} records, {} written, {} lost, {} failures",
            self.name, self.handed, self.written, self.lost, self.failures
        )
    }
}

/// See the module.
#[derive(Debug)]
pub struct Place {
    name: String,
    ring: SyncSender<Record>,
    counts: Arc<Counts>,
    thread: JoinHandle<()>,
}

impl Place {
    /// Starts its thread.
    pub fn start(name: String, writer: Box<dyn Writer>) -> std::io::Result<Self> {
        let (ring, records) = sync_channel(RING);
        let counts = Arc::new(Counts::default());
        let (shared, said) = (Arc::clone(&counts), name.clone());
        let thread = thread::Builder::new()
            .name("nat-log".to_owned())
            .spawn(move || Emptying::new(said, writer, shared).run(&records))?;
        Ok(Self {
            name,
            ring,
            counts,
            thread,
        })
    }

    /// A record for it, that waits for room until then, if it may wait at
    /// all. Whether there was some.
    pub fn hand(&self, record: Record, until: Option<Instant>) -> bool {
        self.counts.handed.fetch_add(1, Ordering::Relaxed);
        loop {
            let is_full = match self.ring.try_send(record) {
                Ok(()) => return true,
                Err(TrySendError::Full(_)) => true,
                Err(TrySendError::Disconnected(_)) => false,
            };
            if !is_full || until.is_none_or(|until| Instant::now() >= until) {
                self.counts.lost.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            thread::sleep(LOOKS);
        }
    }

    /// Ends its thread; one that does not end soon is left to the process's
    /// end.
    pub fn end(self) -> Told {
        let Self {
            name,
            ring,
            counts,
            thread,
        } = self;
        drop(ring);
        let most = Instant::now() + MOST;
        let mut until = Instant::now() + END;
        let mut before = 0;
        while !thread.is_finished() && Instant::now() < until.min(most) {
            thread::sleep(Duration::from_millis(5));
            let written = counts.written.load(Ordering::Relaxed);
            if written > before {
                before = written;
                until = Instant::now() + END;
            }
        }
        let told = counts.told(&name);
        // What it has still is written no more.
        Told {
            lost: told.handed.saturating_sub(told.written),
            ..told
        }
    }
}

/// The thread of a place.
struct Emptying {
    name: String,
    writer: Box<dyn Writer>,
    counts: Arc<Counts>,
    complained: Option<Instant>,
    /// Beside it: a place that fails all the time loses as well.
    told_lost: Option<Instant>,
    lost_before: u64,
    /// How long is waited after a failure.
    pause: Duration,
}

impl Emptying {
    fn new(name: String, writer: Box<dyn Writer>, counts: Arc<Counts>) -> Self {
        Self {
            name,
            writer,
            counts,
            complained: None,
            told_lost: None,
            lost_before: 0,
            pause: Duration::ZERO,
        }
    }

    fn run(mut self, records: &Receiver<Record>) {
        if let Err(error) = privileges::give_up() {
            warn!("{}: giving up privileges: {error}", self.name);
        }
        let mut batch = Vec::with_capacity(AT_ONCE);
        let mut ticked = Instant::now();
        let mut is_over = false;
        while !is_over || !batch.is_empty() {
            if !is_over && batch.is_empty() {
                match records.recv_timeout(IDLE) {
                    Ok(record) => batch.push(record),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => is_over = true,
                }
            }
            batch.extend(records.try_iter().take(AT_ONCE - batch.len()));
            let failed = !batch.is_empty() && !self.write(&mut batch);
            if failed && is_over {
                // Nobody will take them any more.
                let left = batch.len() as u64;
                self.counts.lost.fetch_add(left, Ordering::Relaxed);
                return;
            }
            if failed {
                thread::sleep(self.pause);
            }
            if ticked.elapsed() >= IDLE {
                ticked = Instant::now();
                if let Err(error) = self.writer.tick() {
                    self.complain(&error);
                }
                self.complain_of_lost();
            }
        }
    }

    /// Whether all were written; else those that were leave the batch.
    fn write(&mut self, batch: &mut Vec<Record>) -> bool {
        let (written, error) = match self.writer.write(batch) {
            Ok(()) => (batch.len(), None),
            Err(failed) => (failed.written.min(batch.len()), Some(failed.error)),
        };
        self.counts
            .written
            .fetch_add(written as u64, Ordering::Relaxed);
        batch.drain(..written);
        let Some(error) = error else {
            self.pause = Duration::ZERO;
            return true;
        };
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
        let longer = self.pause * 2 + Duration::from_millis(100);
        self.pause = longer.min(Duration::from_secs(5));
        self.complain(&error);
        false
    }

    fn complain(&mut self, error: &str) {
        if is_due(self.complained) {
            self.complained = Some(Instant::now());
            warn!("{}: {error}", self.name);
        }
    }

    fn complain_of_lost(&mut self) {
        let lost = self.counts.lost.load(Ordering::Relaxed);
        if lost > self.lost_before && is_due(self.told_lost) {
            let more = lost - self.lost_before;
            self.lost_before = lost;
            self.told_lost = Some(Instant::now());
            warn!(
                "{}: {more} records were lost: it is too slow, or away",
                self.name
            );
        }
    }
}

fn is_due(said: Option<Instant>) -> bool {
    said.is_none_or(|at| at.elapsed() >= COMPLAINS)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::record::What;
    use super::*;

    fn record() -> Record {
        Record::mark(1, What::Taken)
    }

    /// Takes as many records as it is allowed to, and then fails.
    struct Allowed {
        allowed: Receiver<usize>,
        taken: mpsc::Sender<usize>,
    }

    impl Writer for Allowed {
        fn write(&mut self, records: &[Record]) -> Result<(), Failed> {
            let allowed = self.allowed.recv().unwrap_or(usize::MAX);
            let written = allowed.min(records.len());
            let _ = self.taken.send(written);
            if written == records.len() {
                return Ok(());
            }
            let error = "no room".to_owned();
            Err(Failed { written, error })
        }

        fn tick(&mut self) -> Result<(), String> {
            Ok(())
        }
    }

    fn place() -> (Place, mpsc::Sender<usize>, Receiver<usize>) {
        let (allow, allowed) = mpsc::channel();
        let (taken, seen) = mpsc::channel();
        let writer = Box::new(Allowed { allowed, taken });
        let place = Place::start("a test".to_owned(), writer).unwrap();
        (place, allow, seen)
    }

    #[test]
    fn who_hands_a_record_never_waits_and_what_finds_no_room_is_counted() {
        let (place, allow, _seen) = place();
        // The thread waits in its first write: one batch is with it.
        let many = RING + 10 * AT_ONCE;
        for _ in 0..many {
            place.hand(record(), None);
        }
        drop(allow);
        let told = place.end();
        assert_eq!(told.handed, many as u64);
        assert!(told.lost >= 9 * AT_ONCE as u64, "{told:?}");
        assert_eq!(told.written + told.lost, told.handed);
    }

    #[test]
    fn what_must_not_be_lost_waits_for_room_and_not_for_ever() {
        let (place, allow, seen) = place();
        let soon = || Some(Instant::now() + Duration::from_millis(20));
        // Until it is full, and a batch is with the thread, which waits.
        while place.hand(record(), soon()) {}
        let lost = place.counts.lost.load(Ordering::Relaxed);
        allow.send(usize::MAX).unwrap();
        seen.recv().unwrap();
        let long = Instant::now() + Duration::from_secs(60);
        assert!(place.hand(record(), Some(long)));
        drop(allow);
        let told = place.end();
        assert_eq!(told.lost, lost, "{told:?}");
    }

    #[test]
    fn what_failed_is_tried_again_from_where_it_stopped() {
        let (place, allow, seen) = place();
        for _ in 0..10 {
            place.hand(record(), None);
        }
        let mut taken = 0;
        for allowed in [0, 0, usize::MAX] {
            allow.send(allowed).unwrap();
            taken += seen.recv().unwrap();
        }
        while taken < 10 {
            allow.send(1).unwrap();
            taken += seen.recv().unwrap();
        }
        drop(allow);
        let told = place.end();
        assert_eq!((told.written, told.lost), (10, 0), "{told:?}");
        assert!(told.failures >= 2, "{told:?}");
    }

    #[test]
    fn what_is_lost_is_told_beside_why() {
        let (_, allowed) = mpsc::channel();
        let (taken, _) = mpsc::channel();
        let counts = Arc::new(Counts::default());
        let writer = Box::new(Allowed { allowed, taken });
        let mut emptying = Emptying::new("a test".to_owned(), writer, Arc::clone(&counts));
        counts.lost.store(5, Ordering::Relaxed);
        emptying.complain("nobody listens");
        emptying.complain_of_lost();
        assert_eq!(emptying.lost_before, 5);
        // And not again at once.
        counts.lost.store(6, Ordering::Relaxed);
        emptying.complain_of_lost();
        assert_eq!(emptying.lost_before, 5);
    }

    #[test]
    fn at_the_end_nobody_waits_for_a_place_that_is_away() {
        let (place, allow, seen) = place();
        place.hand(record(), None);
        place.hand(record(), None);
        for _ in 0..200 {
            let _ = allow.send(0);
        }
        seen.recv().unwrap();
        let told = place.end();
        assert_eq!(told.written, 0);
        assert_eq!(told.lost, 2, "{told:?}");
    }
}
