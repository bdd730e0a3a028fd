//! The records of one feed, as the feeds' thread makes them.
//!
//! How a feed stands is told to each part of a recording once, so that the
//! part can be replayed alone. A table of a million routes takes longer
//! than a peer is to be kept waiting, so that is done by a thread of its
//! own, from rows that do not change any more; what the feed hears meanwhile
//! is recorded between. A replay takes that in behind the state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::heard::{Heard, What};
use super::tape::Tape;
use crate::now::Now;

/// How long after a gap the state is told again.
const AFTER_GAP: Duration = Duration::from_secs(10);
/// Between two looks whether there is room.
const LOOK: Duration = Duration::from_millis(2);
/// Bytes of a state that are handed over at once.
const PIECE: usize = 64 << 10;

/// Records a feed, or nothing where nobody wants it.
#[derive(Debug, Default)]
pub(crate) struct Taping(Option<Inner>);

#[derive(Debug)]
struct Inner {
    tape: Arc<dyn Tape>,
    /// The number of the newest connection.
    connections: u32,
    /// What was wanted when the state was told last.
    told: Option<(u32, u64)>,
    /// When a gap was seen first.
    gap_since: Option<Duration>,
    telling: Option<Telling>,
    now: Now,
}

/// A state that is being told.
#[derive(Debug)]
struct Telling {
    is_to_end: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Tells how a feed stands.
pub(crate) trait State: Send + 'static {
    /// Tells it as a peer would tell it; not on once `tell` says so.
    fn tell(self, tell: &mut Teller<'_>) -> Option<()>;
}

/// Takes what a state has to tell.
pub(crate) struct Teller<'a> {
    tape: &'a dyn Tape,
    is_to_end: &'a AtomicBool,
    now: Now,
    connection: u32,
    /// Bytes of the connection that were not handed over.
    said: Vec<u8>,
}

impl Teller<'_> {
    /// The connection that speaks from here on.
    pub(crate) fn connected(&mut self, connection: u32, peer: &str) -> Option<()> {
        self.flush()?;
        self.connection = connection;
        self.hand_over(What::Connected(peer))
    }

    /// One that has spoken before speaks on.
    pub(crate) fn again(&mut self, connection: u32) -> Option<()> {
        self.flush()?;
        self.connection = connection;
        Some(())
    }

    /// It says what `say` appends.
    pub(crate) fn said(&mut self, say: impl FnOnce(&mut Vec<u8>)) -> Option<()> {
        say(&mut self.said);
        match self.said.len() < PIECE {
            true => Some(()),
            false => self.flush(),
        }
    }

    /// All was told: of a table, where it has several.
    pub(crate) fn settled(&mut self, table: &str) -> Option<()> {
        self.flush()?;
        self.hand_over(What::Settled(table))
    }

    /// It is gone.
    pub(crate) fn closed(&mut self, why: &str) -> Option<()> {
        self.flush()?;
        let is_lie = false;
        self.hand_over(What::Closed { is_lie, why })
    }

    fn flush(&mut self) -> Option<()> {
        let said = std::mem::take(&mut self.said);
        if !said.is_empty() {
            self.hand_over(What::Said(&said))?;
        }
        self.said = said;
        self.said.clear();
        Some(())
    }

    /// Waits for room: what is lost of a state makes all of it worthless.
    fn hand_over(&self, what: What<'_>) -> Option<()> {
        while !self.tape.has_room() {
            if self.is_to_end.load(Ordering::Relaxed) {
                return None;
            }
            std::thread::sleep(LOOK);
        }
        if self.is_to_end.load(Ordering::Relaxed) {
            return None;
        }
        let heard = Heard {
            monotonic: self.now.monotonic,
            is_state: true,
            connection: self.connection,
            what,
        };
        heard.put(&mut |pieces| self.tape.heard(micros(self.now), pieces));
        Some(())
    }
}

fn micros(now: Now) -> u64 {
    now.millis.saturating_mul(1_000)
}

impl Taping {
    /// Records to a tape.
    pub(crate) fn new(tape: Option<Arc<dyn Tape>>) -> Self {
        Self(tape.map(|tape| Inner {
            tape,
            connections: 0,
            told: None,
            gap_since: None,
            telling: None,
            now: Now::default(),
        }))
    }

    fn record(&mut self, connection: u32, what: What<'_>, now: Now) {
        let Some(inner) = &mut self.0 else { return };
        inner.now = now;
        let heard = Heard {
            monotonic: now.monotonic,
            is_state: false,
            connection,
            what,
        };
        heard.put(&mut |pieces| inner.tape.heard(micros(now), pieces));
    }

    /// Somebody feeds it from here on, and has said so much. Gives the
    /// number of the connection.
    pub(crate) fn connected(&mut self, peer: &str, said: &[u8], now: Now) -> u32 {
        let connection = self.next_connection();
        self.record(connection, What::Connected(peer), now);
        self.said(connection, said, now);
        connection
    }

    /// A number for a connection that no other has.
    pub(crate) fn next_connection(&mut self) -> u32 {
        let Some(inner) = &mut self.0 else { return 0 };
        inner.connections = inner.connections.wrapping_add(1);
        inner.connections
    }

    /// It said so much more.
    pub(crate) fn said(&mut self, connection: u32, bytes: &[u8], now: Now) {
        self.record(connection, What::Said(bytes), now);
    }

    /// It is gone.
    pub(crate) fn closed(&mut self, connection: u32, why: &str, is_lie: bool, now: Now) {
        self.record(connection, What::Closed { is_lie, why }, now);
    }

    /// All was told, as far as is known: of a table, where it has several.
    pub(crate) fn settled(&mut self, table: &str, now: Now) {
        self.record(0, What::Settled(table), now);
    }

    /// Whether the state is to be told. To be asked now and then.
    pub(crate) fn wants_state(&mut self, now: Now) -> bool {
        let Some(inner) = &mut self.0 else {
            return false;
        };
        inner.now = now;
        if inner.is_telling() {
            return false;
        }
        let wanted = inner.tape.wanted();
        let Some(told) = inner.told else { return true };
        if told.0 != wanted.0 {
            return true;
        }
        if told.1 == wanted.1 {
            inner.gap_since = None;
            return false;
        }
        let since = *inner.gap_since.get_or_insert(now.monotonic);
        now.monotonic.saturating_sub(since) >= AFTER_GAP
    }

    /// Begins to tell it. `pending`: of each connection what it has said and
    /// was not whole.
    pub(crate) fn tell<'a>(
        &mut self,
        state: impl State,
        pending: impl Iterator<Item = (u32, &'a [u8])>,
        now: Now,
    ) {
        let Some(inner) = &mut self.0 else { return };
        inner.told = Some(inner.tape.wanted());
        inner.gap_since = None;
        inner.tape.state(micros(now), false);
        for (connection, bytes) in pending {
            let heard = Heard {
                monotonic: now.monotonic,
                is_state: true,
                connection,
                what: What::Pending(bytes),
            };
            heard.put(&mut |pieces| inner.tape.heard(micros(now), pieces));
        }
        inner.telling = tell(Arc::clone(&inner.tape), state, now);
    }
}

/// Tells a state on a thread of its own. Where none can be had, nothing is
/// told: the recording's part is not one to be replayed alone.
fn tell(tape: Arc<dyn Tape>, state: impl State, now: Now) -> Option<Telling> {
    let is_to_end = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_to_end);
    let thread = std::thread::Builder::new()
        .name("feed state".into())
        .spawn(move || {
            let mut teller = Teller {
                tape: &*tape,
                is_to_end: &ends,
                now,
                connection: 0,
                said: Vec::new(),
            };
            let told = state.tell(&mut teller).and_then(|()| teller.flush());
            if told.is_some() {
                tape.state(micros(now), true);
            }
        });
    match thread {
        Ok(thread) => Some(Telling { is_to_end, thread }),
        Err(error) => {
            tracing::warn!("how a feed stands cannot be recorded: {error}");
            None
        }
    }
}

impl Inner {
    fn is_telling(&self) -> bool {
        let telling = self.telling.as_ref();
        telling.is_some_and(|telling| !telling.thread.is_finished())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(telling) = self.telling.take() {
            telling.is_to_end.store(true, Ordering::Relaxed);
            // One that panicked has nothing left to tell.
            let _ = telling.thread.join();
        }
        self.tape.ended(micros(self.now), "the feed ended");
    }
}
