//! Fragments (RFC 791 §3.2): later ones carry no ports, so what was decided
//! for the first is kept for them, and those that come before it are held.
//!
//! For the engine ([`Fragments`]) and for libalias's pointers
//! ([`Pointers`]). Nothing is put together again: what a fragment says of
//! its place is looked at for one thing only, whether it could overwrite
//! the ports of the first (RFC 3128), so that overlapping and lying offsets
//! harm nobody but their receiver.
//!
//! Bounds: a table of datagrams ([`Limits::datagrams`]), a ring of bytes for
//! what is held, [`Limits::per_datagram`] fragments of one datagram, and one
//! time limit for all, so that the ring is in the order of its ends.

mod held;
mod pointers;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use hashbrown::HashMap;
use packet::{Ipv4, protocol};

use crate::{Direction, Verdict};
use held::Held;

pub use pointers::Pointers;

/// How much is remembered of fragments, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Datagrams whose translation is remembered, or whose fragments wait.
    pub datagrams: usize,
    /// Bytes of fragments that wait for their first one; one in eight more
    /// for their book-keeping. 0: none wait.
    pub held_bytes: usize,
    /// Fragments that wait of one datagram.
    pub per_datagram: usize,
    /// After how long a datagram is forgotten (RFC 791: 15 s; RFC 1122
    /// §3.3.2: 60 to 120 s; RFC 6146 §3.4: at least 2 s).
    pub timeout_millis: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            datagrams: 4_096,
            held_bytes: 1 << 20,
            per_datagram: 64,
            timeout_millis: 30_000,
        }
    }
}

/// What all fragments of a datagram have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Datagram {
    /// Which way it goes.
    pub direction: Direction,
    /// Protocol.
    pub protocol: u8,
    /// Identification.
    pub identification: u16,
    /// Source, as it came.
    pub source: Ipv4Addr,
    /// Destination, as it came.
    pub destination: Ipv4Addr,
}

impl Datagram {
    /// Of a packet as it came.
    pub fn of<B: AsRef<[u8]>>(direction: Direction, ip: &Ipv4<B>) -> Self {
        Self {
            direction,
            protocol: ip.protocol(),
            identification: ip.identification(),
            source: ip.source(),
            destination: ip.destination(),
        }
    }
}

/// Which of a datagram's fragments a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// The first, with the ports.
    First,
    /// A later one.
    Later,
    /// One that would overwrite the first one's ports or flags (RFC 3128),
    /// or reaches past the longest datagram: to be dropped.
    Lying,
}

impl Part {
    /// Of a packet.
    pub fn of<B: AsRef<[u8]>>(ip: &Ipv4<B>) -> Self {
        if !ip.is_fragment() {
            return Self::Whole;
        }
        let offset = ip.fragment_offset_bytes();
        let end = offset + ip.payload().len();
        let header = if ip.protocol() == protocol::TCP {
            16
        } else {
            8
        };
        match offset {
            0 => Self::First,
            _ if offset < header || end > usize::from(u16::MAX) => Self::Lying,
            _ => Self::Later,
        }
    }
}

/// What was decided for the first fragment of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    /// Its source afterwards.
    pub source: Ipv4Addr,
    /// Its destination afterwards.
    pub destination: Ipv4Addr,
    /// The verdict.
    pub verdict: Verdict,
}

impl Translation {
    /// Writes the addresses into a later fragment.
    pub fn apply<B: AsRef<[u8]> + AsMut<[u8]>>(&self, ip: &mut Ipv4<B>) {
        ip.set_source(self.source);
        ip.set_destination(self.destination);
    }
}

/// What becomes of a later fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Later<T = Translation> {
    /// What was decided for the first one is for it as well.
    Known(T),
    /// The first one was refused, and so is this.
    Refused,
    /// It is kept here until the first one comes; the packet's bytes are the
    /// caller's again.
    Held,
    /// There is no room to keep it: the caller keeps it, or drops it.
    NoRoom,
}

#[derive(Debug, Clone, Copy)]
enum State<T> {
    Decided(T),
    Refused,
    /// Fragments wait: the first and the last of their chain, and how many.
    Waiting {
        first: u32,
        last: u32,
        count: u32,
    },
}

#[derive(Debug, Clone, Copy)]
struct Known<T> {
    state: State<T>,
    until_millis: u64,
}

/// What is known of the datagrams under way, and the fragments that wait.
/// What is decided for a first fragment is its translation, or of several
/// engines the one that it is for.
#[derive(Debug)]
pub struct Fragments<T = Translation> {
    known: HashMap<Datagram, Known<T>>,
    /// Keys in the order they came, for the oldest to go first.
    order: VecDeque<(Datagram, u64)>,
    held: Held,
    /// The chain of fragments whose first one has come: to be handed out.
    ready: VecDeque<(Datagram, u32)>,
    limits: Limits,
    /// Later ones that found no room.
    refused: u64,
}

/// Old datagrams that one call forgets at most.
const FORGOTTEN_A_CALL: usize = 4;

impl<T: Copy> Fragments<T> {
    /// Nothing known. Allocates nothing until the first fragment comes.
    pub fn new(limits: Limits) -> Self {
        Self {
            known: HashMap::default(),
            order: VecDeque::new(),
            held: Held::new(limits.held_bytes),
            ready: VecDeque::new(),
            limits,
            refused: 0,
        }
    }

    /// Datagrams under way.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is under way.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Bytes of fragments that wait.
    pub fn held_bytes(&self) -> usize {
        self.held.len_bytes()
    }

    /// How many later fragments were given up: without room, or in vain held
    /// for as long as they are. (Where none is held that is the caller's
    /// to count.)
    pub fn dropped(&self) -> u64 {
        self.refused + self.held.lost()
    }

    /// The first fragment of a datagram was decided about, or refused
    /// (`None`). Those that waited for it are ready, or gone. O(1).
    pub fn first(&mut self, datagram: Datagram, decided: Option<T>, now_millis: u64) {
        let state = decided.map_or(State::Refused, State::Decided);
        let until_millis = now_millis.saturating_add(self.limits.timeout_millis);
        match self.known.get_mut(&datagram) {
            Some(known) => {
                let former = std::mem::replace(
                    known,
                    Known {
                        state,
                        until_millis,
                    },
                );
                if let State::Waiting { first, .. } = former.state
                    && decided.is_some()
                {
                    self.ready.push_back((datagram, first));
                }
            }
            None => {
                if self.make_room(now_millis) {
                    self.known.insert(
                        datagram,
                        Known {
                            state,
                            until_millis,
                        },
                    );
                }
            }
        }
        // With an identification used again the later end counts.
        self.order.push_back((datagram, until_millis));
        if self.order.len() > 2 * self.limits.datagrams {
            self.forget_oldest();
        }
        self.forget(now_millis);
    }

    /// A later fragment. `bytes` is the packet, no room behind it. O(its
    /// length when it is held, else O(1)).
    pub fn later(&mut self, datagram: Datagram, bytes: &[u8], now_millis: u64) -> Later<T> {
        let became = self.held_or_known(datagram, bytes, now_millis);
        let is_refused = matches!(became, Later::NoRoom) && self.limits.held_bytes > 0;
        self.refused += u64::from(is_refused);
        became
    }

    fn held_or_known(&mut self, datagram: Datagram, bytes: &[u8], now_millis: u64) -> Later<T> {
        self.forget(now_millis);
        let until_millis = now_millis.saturating_add(self.limits.timeout_millis);
        let alive = |known: &&mut Known<T>| known.until_millis > now_millis;
        match self.known.get_mut(&datagram).filter(alive) {
            Some(known) => match &mut known.state {
                State::Decided(decided) => Later::Known(*decided),
                State::Refused => Later::Refused,
                State::Waiting { last, count, .. } => {
                    if *count as usize >= self.limits.per_datagram {
                        return Later::NoRoom;
                    }
                    let Some(place) = self.held.keep(bytes, known.until_millis, now_millis) else {
                        return Later::NoRoom;
                    };
                    self.held.chain(*last, place);
                    (*last, *count) = (place, *count + 1);
                    Later::Held
                }
            },
            None => {
                if self.limits.per_datagram == 0 || !self.make_room(now_millis) {
                    return Later::NoRoom;
                }
                let Some(place) = self.held.keep(bytes, until_millis, now_millis) else {
                    return Later::NoRoom;
                };
                let state = State::Waiting {
                    first: place,
                    last: place,
                    count: 1,
                };
                self.known.insert(
                    datagram,
                    Known {
                        state,
                        until_millis,
                    },
                );
                self.order.push_back((datagram, until_millis));
                Later::Held
            }
        }
    }

    /// Hands out a fragment whose first one has come since, not translated
    /// yet: copies it to `buffer` and says how long it is and which way it
    /// goes. One that is longer than the buffer is dropped. O(its length).
    pub fn next_ready(&mut self, buffer: &mut [u8]) -> Option<(Datagram, usize)> {
        while let Some((datagram, place)) = self.ready.pop_front() {
            let taken = self.held.take(place, buffer);
            if let Some(next) = taken.and_then(|taken| taken.next) {
                self.ready.push_front((datagram, next));
            }
            if let Some(len) = taken.and_then(|taken| taken.len) {
                return Some((datagram, len));
            }
        }
        None
    }

    /// Whether [`Self::next_ready`] has something to hand out.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Forgets a few datagrams whose time is over. A bounded number, each
    /// O(1); called by all others, and once a batch.
    pub fn forget(&mut self, now_millis: u64) {
        for _ in 0..FORGOTTEN_A_CALL {
            match self.order.front() {
                Some((_, until)) if *until <= now_millis => self.forget_oldest(),
                _ => return,
            }
        }
    }

    /// The oldest goes; what waits of it lies in the ring until its own end.
    fn forget_oldest(&mut self) {
        let Some((datagram, until)) = self.order.pop_front() else {
            return;
        };
        let known = self.known.get(&datagram);
        // One that was renewed has a later place in the order.
        if known.is_some_and(|known| known.until_millis <= until) {
            self.known.remove(&datagram);
        }
    }

    /// Room for one more: the oldest of all goes when there is none.
    fn make_room(&mut self, now_millis: u64) -> bool {
        self.forget(now_millis);
        // The order holds renewed ones twice; it is bounded as well.
        while self.known.len() >= self.limits.datagrams
            || self.order.len() >= 2 * self.limits.datagrams
        {
            if self.order.is_empty() {
                return false;
            }
            self.forget_oldest();
        }
        true
    }
}

#[cfg(test)]
mod tests;
