//! Mappings made and ended, kept in a ring until the caller takes them.

use std::collections::VecDeque;

use crate::FlowView;
use crate::view::Seen;

/// Why a mapping ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Its timeout passed.
    Expired,
    /// It made room at the cap.
    Evicted,
    /// The caller removed it, its rule or all flows.
    Removed,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A mapping was made.
    Made,
    /// A mapping ended.
    Ended(Why),
}

/// A mapping made or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// When, by the caller's clock as of that call.
    pub at_millis: u64,
    /// The flow that made the mapping, or was its last.
    pub flow: FlowView,
}

/// An [`Event`] as the ring keeps it: made into one when it is read.
#[derive(Debug, Clone, Copy)]
struct StoredEvent {
    kind: EventKind,
    at_millis: u64,
    flow: Seen,
}

const _: () = assert!(size_of::<StoredEvent>() <= 48);

/// Events in the order they happened; holds what its capacity says, 48 bytes
/// each.
#[derive(Debug)]
pub struct Events {
    ring: VecDeque<StoredEvent>,
    capacity: usize,
    lost: u64,
}

impl Events {
    pub fn new(capacity: usize) -> Self {
        let ring = VecDeque::with_capacity(capacity);
        Self {
            ring,
            capacity,
            lost: 0,
        }
    }

    pub fn wanted(&self) -> bool {
        self.capacity > 0
    }

    pub fn push(&mut self, kind: EventKind, at_millis: u64, flow: Seen) {
        if self.ring.len() < self.capacity {
            self.ring.push_back(StoredEvent {
                kind,
                at_millis,
                flow,
            });
        } else {
            self.lost += 1;
        }
    }

    pub fn pop(&mut self) -> Option<Event> {
        self.ring.pop_front().map(|row| Event {
            kind: row.kind,
            at_millis: row.at_millis,
            flow: row.flow.into(),
        })
    }

    /// When the next one happened.
    pub fn next_millis(&self) -> Option<u64> {
        self.ring.front().map(|row| row.at_millis)
    }

    pub fn lost(&self) -> u64 {
        self.lost
    }
}
