//! Between the mirrors and the recorder's thread: bounded, and never
//! waited for by a mirror.
//!
//! Records lie in pieces of memory of some 256 KiB, so that none is ever
//! copied to make room. A mirror takes the lock for the length of a copy;
//! the recorder takes it to carry the full pieces off.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::format::{FRAME_BYTES, MAX_PAYLOAD_BYTES, Record, kind, put};
use super::gauge::Counters;

/// Bytes of a piece, but for a record that is longer.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes that may wait to be written.
const QUEUE_BYTES: usize = 64 << 20;
/// With so many bytes waiting, the recorder is woken; before, it looks now
/// and then. A call of the system for each record would cost more than all
/// the rest.
const WAKE_BYTES: usize = 1 << 20;
/// Empty pieces kept for later.
const SPARE: usize = 8;

/// What mirrors hand over, until it is written.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    called: Condvar,
    /// Bytes that may wait.
    limit: usize,
    pub gauge: Counters,
}

#[derive(Debug, Default)]
struct Waiting {
    pieces: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    bytes: usize,
    /// Records and bytes that had no place, by namespace.
    lost: BTreeMap<u32, (u64, u64)>,
    /// Time of the newest record.
    newest_micros: u64,
    /// Namespaces and feeds that were given a number.
    namespaces: u32,
    ends: bool,
}

/// By which a mirror hands over what it is fed with: to a recording, to a
/// history, or to both. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tap {
    places: Vec<Place>,
}

/// Where records of a namespace or a feed go.
#[derive(Debug, Clone)]
struct Place {
    queue: Arc<Queue>,
    namespace: u32,
    keeps: Keeps,
}

/// What is kept of what a mirror is fed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// All of it: a recording.
    Everything,
    /// What changes tables, and counters of links now and then: a history.
    Changes {
        /// Between two times that counters are kept; `None`: they are not.
        counters: Option<Duration>,
    },
}

impl Queue {
    pub(super) fn new() -> Self {
        Self::with_limit(QUEUE_BYTES)
    }

    pub(super) fn with_limit(limit: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            called: Condvar::new(),
            limit,
            gauge: Counters::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What waits, after up to `patience`; and whether that was the last.
    pub(super) fn take(&self, patience: Duration) -> (VecDeque<Vec<u8>>, bool) {
        let waiting = self.lock();
        let idle = |waiting: &mut Waiting| waiting.bytes < WAKE_BYTES && !waiting.ends;
        let (mut waiting, _) = self
            .called
            .wait_timeout_while(waiting, patience, idle)
            .unwrap_or_else(PoisonError::into_inner);
        if waiting.ends {
            waiting.confess_all(&self.gauge);
        }
        waiting.bytes = 0;
        (std::mem::take(&mut waiting.pieces), waiting.ends)
    }

    /// Takes pieces back that were written.
    pub(super) fn give_back(&self, pieces: VecDeque<Vec<u8>>) {
        let mut waiting = self.lock();
        for mut piece in pieces {
            if waiting.spare.len() < SPARE && piece.capacity() <= 2 * PIECE_BYTES {
                piece.clear();
                waiting.spare.push(piece);
            }
        }
    }

    /// No more will come.
    pub(super) fn end(&self) {
        self.lock().ends = true;
        self.called.notify_all();
    }

    /// Whether records had no place and nothing says so yet.
    pub(super) fn has_lost(&self) -> bool {
        !self.lock().lost.is_empty()
    }

    /// A tap for one more namespace.
    pub(super) fn tap(
        self: &Arc<Self>,
        keeps: Keeps,
        inode: u64,
        name: &str,
        at_micros: u64,
    ) -> Tap {
        let tap = Tap {
            places: vec![self.numbered(keeps)],
        };
        tap.put(
            kind::NAMESPACE,
            at_micros,
            &[&inode.to_le_bytes(), name.as_bytes()],
        );
        tap
    }

    /// A place with a number that no other has.
    fn numbered(self: &Arc<Self>, keeps: Keeps) -> Place {
        let mut waiting = self.lock();
        waiting.namespaces += 1;
        Place {
            queue: Arc::clone(self),
            namespace: waiting.namespaces,
            keeps,
        }
    }
}

impl Waiting {
    /// Appends a record made of several pieces of payload.
    fn append(&mut self, record: &Record<'_>, more: &[&[u8]], len: usize) {
        let needed = FRAME_BYTES + len;
        let fits = |piece: &Vec<u8>| piece.capacity() - piece.len() >= needed;
        if !self.pieces.back().is_some_and(fits) {
            let spare = self.spare.pop().filter(fits);
            let piece = spare.unwrap_or_else(|| Vec::with_capacity(PIECE_BYTES.max(needed)));
            self.pieces.push_back(piece);
        }
        let Some(piece) = self.pieces.back_mut() else {
            return;
        };
        let begin = piece.len();
        put(piece, record);
        more.iter().for_each(|bytes| piece.extend_from_slice(bytes));
        if let Some(place) = piece.get_mut(begin..begin + 4) {
            place.copy_from_slice(&(len as u32).to_le_bytes());
        }
        self.bytes += needed;
        self.newest_micros = record.at_micros;
    }

    /// Says that records of a namespace are missing here.
    fn confess(&mut self, namespace: u32, at_micros: u64, gauge: &Counters) {
        let Some((records, bytes)) = self.lost.remove(&namespace) else {
            return;
        };
        gauge.gaps.fetch_add(1, Ordering::Relaxed);
        let (records, bytes) = (records.to_le_bytes(), bytes.to_le_bytes());
        let record = Record {
            kind: kind::GAP,
            namespace,
            at_micros,
            payload: &[],
        };
        self.append(&record, &[&records, &bytes], 16);
    }

    fn confess_all(&mut self, gauge: &Counters) {
        let all: Vec<u32> = self.lost.keys().copied().collect();
        for namespace in all {
            self.confess(namespace, self.newest_micros, gauge);
        }
    }
}

impl Place {
    /// Hands a record over, its payload in pieces. Never waits for the
    /// disk: when there is no room the record is lost and counted, and the
    /// place is marked. Some 50 ns and a copy.
    fn put(&self, kind: u16, at_micros: u64, payload: &[&[u8]]) {
        let gauge = &self.queue.gauge;
        // Who is recorded is known, whatever else has no place.
        let names = matches!(kind, kind::NAMESPACE | kind::FEED | kind::ENDED);
        if gauge.is_off.load(Ordering::Relaxed) && !names {
            gauge.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let len = payload.iter().map(|bytes| bytes.len()).sum::<usize>();
        let mut waiting = self.queue.lock();
        // Where something was lost before, there must be room to say so.
        let needed = 2 * FRAME_BYTES + 16 + len;
        let has_place = waiting.bytes + needed <= self.queue.limit || names;
        if !has_place || len > MAX_PAYLOAD_BYTES {
            let (records, bytes) = waiting.lost.entry(self.namespace).or_default();
            *records += 1;
            *bytes += len as u64;
            gauge.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.confess(self.namespace, at_micros, gauge);
        let record = Record {
            kind,
            namespace: self.namespace,
            at_micros,
            payload: &[],
        };
        let before = waiting.bytes;
        waiting.append(&record, payload, len);
        let wakes = before < WAKE_BYTES && waiting.bytes >= WAKE_BYTES;
        drop(waiting);
        if wakes {
            self.queue.called.notify_one();
        }
    }

    fn has_room(&self) -> bool {
        let gauge = &self.queue.gauge;
        gauge.is_off.load(Ordering::Relaxed) || self.queue.lock().bytes < self.queue.limit / 4
    }
}

impl Tap {
    /// One that hands over to the places of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.places.extend(other.places);
        self
    }

    /// Hands a record over to all places.
    pub(crate) fn put(&self, kind: u16, at_micros: u64, payload: &[&[u8]]) {
        for place in &self.places {
            place.put(kind, at_micros, payload);
        }
    }

    /// Hands one over to those that keep everything, and only to these.
    pub(crate) fn put_where_all_is_kept(&self, kind: u16, at_micros: u64, payload: &[&[u8]]) {
        let all = self.places.iter();
        for place in all.filter(|place| place.keeps == Keeps::Everything) {
            place.put(kind, at_micros, payload);
        }
    }

    /// Hands one over to those that keep changes, and only to these.
    pub(crate) fn put_where_changes_are_kept(&self, kind: u16, at_micros: u64, payload: &[&[u8]]) {
        let all = self.places.iter();
        for place in all.filter(|place| place.keeps != Keeps::Everything) {
            place.put(kind, at_micros, payload);
        }
    }

    /// Whether changes alone are kept somewhere.
    pub(crate) fn keeps_changes(&self) -> bool {
        let mut places = self.places.iter();
        places.any(|place| place.keeps != Keeps::Everything)
    }

    /// Between two times that counters of links are kept.
    pub(crate) fn counters(&self) -> Option<Duration> {
        self.places.iter().find_map(|place| match place.keeps {
            Keeps::Changes { counters } => counters,
            Keeps::Everything => None,
        })
    }

    /// A tap for a feed whose rows stand beside this namespace's. `said` is
    /// which feed it is.
    pub fn feed(&self, at_micros: u64, said: &[u8]) -> Self {
        let places = self.places.iter().map(|beside| {
            let place = beside.queue.numbered(beside.keeps);
            let number = beside.namespace.to_le_bytes();
            place.put(kind::FEED, at_micros, &[&number, said]);
            place
        });
        Self {
            places: places.collect(),
        }
    }

    /// Hands over what a feed heard, as `Tap::put` does.
    pub fn feed_heard(&self, at_micros: u64, payload: &[&[u8]]) {
        self.put(kind::FEED_HEARD, at_micros, payload);
    }

    /// Says that a feed's state begins to be told, or was told whole.
    pub fn feed_state(&self, at_micros: u64, is_whole: bool) {
        self.put(kind::FEED_STATE, at_micros, &[&[u8::from(is_whole)]]);
    }

    /// Says that a feed ended.
    pub fn feed_ended(&self, at_micros: u64, why: &str) {
        self.put(kind::ENDED, at_micros, &[why.as_bytes()]);
    }

    /// Whether there is room for much more: for who tells much at once, and
    /// may wait.
    pub fn has_room(&self) -> bool {
        self.places.iter().all(Place::has_room)
    }

    /// Which parts are being written, and the gaps so far: when either
    /// changes, a listing makes the recording whole again.
    pub fn wants_listing(&self) -> (u32, u64) {
        let gauges = self.places.iter().map(|place| &place.queue.gauge);
        gauges.fold((0, 0), |(parts, gaps), gauge| {
            (
                gauge.part.load(Ordering::Relaxed).wrapping_add(parts),
                gauge.gaps.load(Ordering::Relaxed).wrapping_add(gaps),
            )
        })
    }
}

/// A queue whose records a test looks at.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct TestQueue(Arc<Queue>);

#[cfg(test)]
impl TestQueue {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Queue::new()))
    }

    pub(crate) fn tap(&self, keeps: Keeps) -> Tap {
        self.0.tap(keeps, 7, "blue", 1)
    }

    /// The kinds of the records that came since the last look.
    pub(crate) fn kinds(&self) -> Vec<u16> {
        let mut kinds = Vec::new();
        self.each(&mut |record| kinds.push(record.kind));
        kinds
    }

    /// What some of them say.
    pub(crate) fn with_inputs<T>(
        &self,
        mut of: impl FnMut(super::format::Input<'_>) -> Option<T>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        self.each(&mut |record| found.extend(of(record.input().unwrap())));
        found
    }

    fn each(&self, to: &mut dyn FnMut(&Record<'_>)) {
        let (pieces, _) = self.0.take(Duration::ZERO);
        for mut piece in pieces {
            super::format::seal(&mut piece, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{Input, framed};
    use super::*;

    fn inputs(pieces: &VecDeque<Vec<u8>>) -> Vec<String> {
        let mut said = Vec::new();
        for piece in pieces {
            let mut rest = &piece[..];
            while let Some((frame, after)) = rest.split_first_chunk() {
                let (record, len) = framed(frame);
                let payload = &after[..len];
                let record = Record { payload, ..record };
                said.push(match record.input().unwrap() {
                    Input::Event(bytes) => format!("event {}", bytes.len()),
                    other => format!("{other:?}"),
                });
                rest = &after[len..];
            }
        }
        said
    }

    #[test]
    fn what_has_no_place_is_counted_and_the_place_marked() {
        let queue = Arc::new(Queue::with_limit(4_096));
        let tap = queue.tap(Keeps::Everything, 7, "blue", 1);
        tap.put(kind::EVENT, 2, &[&[0; 1_000], &[0; 500]]);
        for _ in 0..3 {
            tap.put(kind::EVENT, 3, &[&[0; 3_000]]);
        }
        let (pieces, ended) = queue.take(Duration::ZERO);
        assert!(!ended);
        let named = format!(
            "{:?}",
            Input::Namespace {
                inode: 7,
                name: "blue"
            }
        );
        assert_eq!(inputs(&pieces), [named, "event 1500".to_owned()]);
        queue.give_back(pieces);
        assert_eq!(tap.wants_listing(), (0, 0));
        tap.put(kind::EVENT, 4, &[b"x"]);
        assert_eq!(tap.wants_listing(), (0, 1));
        let (pieces, _) = queue.take(Duration::ZERO);
        let gap = format!(
            "{:?}",
            Input::Gap {
                records: 3,
                bytes: 9_000
            }
        );
        assert_eq!(inputs(&pieces), [gap, "event 1".to_owned()]);
        assert_eq!(queue.gauge.lost.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_gap_at_the_end_is_marked_too() {
        let queue = Arc::new(Queue::with_limit(256));
        let tap = queue.tap(Keeps::Everything, 7, "", 1);
        tap.put(kind::EVENT, 2, &[&[0; 3_000]]);
        queue.end();
        let (pieces, ended) = queue.take(Duration::from_secs(60));
        assert!(ended);
        assert!(inputs(&pieces)[1].contains("records: 1"), "{pieces:?}");
    }

    #[test]
    fn after_the_end_nothing_is_kept() {
        let queue = Arc::new(Queue::new());
        let tap = queue.tap(Keeps::Everything, 7, "", 1);
        queue.take(Duration::ZERO);
        queue.gauge.stop("full".into());
        tap.put(kind::EVENT, 2, &[b"x"]);
        let (pieces, _) = queue.take(Duration::ZERO);
        assert!(pieces.is_empty());
        assert_eq!(queue.gauge.lost.load(Ordering::Relaxed), 1);
    }
}
