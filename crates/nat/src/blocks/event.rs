//! What is told of subscribers and blocks, kept in a ring until the caller
//! takes it.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use crate::AddressRange;

/// Of which quota a subscriber wanted more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaKind {
    /// Mappings.
    Ports,
    /// Sessions.
    Sessions,
    /// Sessions without an answer.
    HalfOpen,
    /// New mappings a second.
    NewMappings,
    /// Blocks.
    Blocks,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockEventKind {
    /// The subscriber has the block from now on.
    Taken,
    /// It has it no more: some time ago its last flow ended.
    GivenBack,
    /// It has it still; told from time to time.
    Held,
    /// No block of its alias address is free; once in 64 s a subscriber.
    Exhausted,
    /// It wanted more than its quota; once in 64 s a subscriber.
    Quota(QuotaKind),
}

/// Something about a subscriber, and a block where it is about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEvent {
    /// What happened.
    pub kind: BlockEventKind,
    /// When, by the caller's clock as of that call.
    pub at_millis: u64,
    /// Who.
    pub subscriber: AddressRange,
    /// The alias address; unspecified where none was found.
    pub alias: Ipv4Addr,
    /// First and last port of the block; zeros where it is about none.
    pub ports: (u16, u16),
}

/// Events in the order they happened, 40 bytes each.
#[derive(Debug)]
pub struct BlockEvents {
    ring: VecDeque<BlockEvent>,
    capacity: usize,
    lost: u64,
}

impl BlockEvents {
    pub fn new(capacity: usize) -> Self {
        Self {
            ring: VecDeque::with_capacity(capacity),
            capacity,
            lost: 0,
        }
    }

    pub fn push(&mut self, event: BlockEvent) {
        if self.ring.len() < self.capacity {
            self.ring.push_back(event);
        } else {
            // Nobody asked for events of a ring without places.
            self.lost += u64::from(self.capacity > 0);
        }
    }

    pub fn pop(&mut self) -> Option<BlockEvent> {
        self.ring.pop_front()
    }

    /// When the next one happened.
    pub fn next_millis(&self) -> Option<u64> {
        self.ring.front().map(|event| event.at_millis)
    }

    pub fn lost(&self) -> u64 {
        self.lost
    }
}
