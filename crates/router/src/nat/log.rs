//! What a translation writes for the record: who had which alias port when
//! (RFC 6888 §4), to collectors and to a journal of its own.
//!
//! The thread that translates hands records to a bounded ring for each
//! place, and never waits: what finds a ring full is counted and lost. Each
//! place has a thread of its own, so that none waits for another's collector
//! or disk.
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

/// Milliseconds since 1970.
pub use linux::mirror::now_millis as wall_millis;
use nat::Nat;

pub use options::Options;
use place::Place;
pub use place::Told;
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

    /// Hands over what the engine has to tell; `now_millis` is the engine's
    /// time. Bounded, and never waits. Returns how much it was.
    pub fn take(&self, nat: &mut Nat, now_millis: u64) -> usize {
        if self.is_empty() {
            return 0;
        }
        let wall = wall_millis();
        let when = |at: u64| wall.saturating_sub(now_millis.saturating_sub(at));
        let mut taken = 0;
        for _ in 0..AT_ONCE {
            let Some(event) = nat.next_block_event() else {
                break;
            };
            self.write(&Record::of_block(when(event.at_millis), &event));
            taken += 1;
        }
        for _ in 0..AT_ONCE {
            let Some(event) = nat.next_event() else {
                break;
            };
            self.write(&Record::of_session(when(event.at_millis), &event));
            taken += 1;
        }
        taken
    }

    /// Hands over all that is left, at the end: at most what the engine's
    /// rings hold.
    pub fn take_all(&self, nat: &mut Nat, now_millis: u64) {
        while self.take(nat, now_millis) > 0 {}
    }

    /// The translation begins or ends: what was before it holds no more.
    pub fn mark(&self, what: What) {
        self.write(&Record::mark(wall_millis(), what));
    }

    /// A block of which a record tells is nobody's any more.
    pub fn give_back(&self, record: &Record) {
        self.write(&Record {
            at_millis: wall_millis(),
            what: What::GivenBack,
            ..*record
        });
    }

    fn write(&self, record: &Record) {
        for place in &self.places {
            place.hand(*record);
        }
    }

    /// Ends all places: what is in their rings is written, but for what
    /// takes longer than a few seconds. What became of all records.
    pub fn end(self) -> Vec<Told> {
        self.places.into_iter().map(Place::end).collect()
    }
}
