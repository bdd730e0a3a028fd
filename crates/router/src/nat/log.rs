//! What a translation writes for the record: who had which alias port when
//! (RFC 6888 §4), to collectors and to a journal of its own.
//!
//! The thread that translates hands records to a bounded ring for each
//! place, and never waits: what finds a ring full is counted and lost. Before
//! it translates, and when it does no more, it waits for room, within bounds.
//! Each place has a thread of its own, so that none waits for another's
//! collector or disk.
//!
//! - `record`: what is written, as plain data.
//! - `place`: a place's ring and its thread.
//! - `syslog`, `ipfix`: the two protocols; `stream`: their connections.
//! - `journal`: files, and `who`, which reads them.

mod ipfix;
pub mod journal;
mod options;
mod place;
pub mod record;
mod stream;
mod syslog;

use std::time::Instant;

/// Milliseconds since 1970.
pub use linux::mirror::now_millis as wall_millis;
use nat::Nat;
use rustix::time::{ClockId, clock_gettime};

pub use options::Options;
pub use place::Told;
use place::{END, MOST, Place};
use record::{Record, What};

/// Records taken from the engine in one go.
const AT_ONCE: usize = 4_096;

/// All places that something is written to.
#[derive(Debug, Default)]
pub struct Log {
    places: Vec<Place>,
}

impl Log {
    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Hands over what the engine has to tell, in the order it happened;
    /// `now_millis` is the engine's time. Bounded, and never waits. Returns
    /// how much it was.
    pub fn take(&self, nat: &mut Nat, now_millis: u64) -> usize {
        self.take_until(nat, now_millis, None)
    }

    fn take_until(&self, nat: &mut Nat, now_millis: u64, until: Option<Instant>) -> usize {
        if self.is_empty() {
            return 0;
        }
        let wall = wall_millis();
        let when = |at: u64| wall.saturating_sub(now_millis.saturating_sub(at));
        for taken in 0..AT_ONCE {
            let Some(record) = next_record(nat, when) else {
                return taken;
            };
            self.write(&record, until);
        }
        AT_ONCE
    }

    /// Hands over all that is left, at the end: at most what the engines'
    /// rings hold. Waits a few seconds for room.
    pub fn take_all(&self, engines: &mut [Nat], now_millis: u64) {
        let until = Instant::now() + END;
        for nat in engines {
            while self.take_until(nat, now_millis, Some(until)) > 0 {}
        }
    }

    /// The translation begins or ends: what was before it holds no more.
    /// Waits a few seconds for room: without it the next start would not
    /// believe what was kept.
    pub fn mark(&self, what: What) {
        let mark = Record::mark(wall_millis(), what);
        self.write(&mark, Some(Instant::now() + END));
    }

    /// The blocks of which records tell are nobody's any more. Waits for room
    /// as long as a place takes any, within a bound: nothing is translated yet.
    pub fn give_back(&self, records: &[Record]) {
        let at_millis = wall_millis();
        for place in &self.places {
            let most = Instant::now() + MOST;
            let mut takes = true;
            for record in records {
                let record = Record {
                    at_millis,
                    what: What::GivenBack,
                    ..*record
                };
                let until = takes.then(|| most.min(Instant::now() + END));
                takes = place.hand(record, until) && takes;
            }
        }
    }

    fn write(&self, record: &Record, until: Option<Instant>) {
        for place in &self.places {
            place.hand(*record, until);
        }
    }

    /// Ends all places: what is in their rings is written, as long as a place
    /// writes any, within a bound. What became of all records.
    pub fn end(self) -> Vec<Told> {
        self.places.into_iter().map(Place::end).collect()
    }
}

/// Milliseconds since the machine was started, sleep included.
pub fn boot_millis() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

/// What happened next in an engine, a session or something about a block;
/// `when` makes time of day of the engine's.
fn next_record(nat: &mut Nat, when: impl Fn(u64) -> u64) -> Option<Record> {
    let is_session = match nat.next_events_at() {
        (Some(session), Some(block)) => session < block,
        (session, _) => session.is_some(),
    };
    if is_session {
        let event = nat.next_event()?;
        return Some(Record::of_session(when(event.at_millis), &event));
    }
    let event = nat.next_block_event()?;
    Some(Record::of_block(when(event.at_millis), &event))
}

#[cfg(test)]
mod tests;
