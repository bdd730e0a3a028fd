//! What is counted for each subscriber where that is asked for
//! ([`super::SubscriberConfig::counted`]): beside the table of subscribers,
//! whose lines are full. Without it no packet looks here.

use std::io;

use memory::Reserved;

/// What was counted for a subscriber since it became one. It is none any
/// more when it has nothing for a while, and begins anew then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriberCounts {
    /// When that was, by the engine's own clock: milliseconds since its first
    /// packet.
    pub since_millis: u64,
    /// Packets translated in batches, both ways.
    pub translated: u64,
    /// How often it got an alias address for itself.
    pub addresses_made: u64,
    /// Mappings made.
    pub mappings_made: u64,
    /// Its packets that began nothing because it could have no alias address.
    pub addresses_exhausted: u64,
    /// Those that began nothing for want of a port or of quota.
    pub refused: u64,
}

/// By the subscribers' places.
#[derive(Debug)]
pub struct Counted(Reserved<SubscriberCounts>);

impl Counted {
    /// For so many subscribers. Takes address space, no memory.
    pub fn new(most: usize) -> io::Result<Self> {
        Reserved::new(most).map(Self)
    }

    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    pub fn get(&self, name: u32) -> Option<&SubscriberCounts> {
        self.0.get(name as usize)
    }

    pub fn get_mut(&mut self, name: u32) -> Option<&mut SubscriberCounts> {
        self.0.get_mut(name as usize)
    }

    /// A place has another subscriber from now on.
    pub fn begin(&mut self, name: u32, since_millis: u64) {
        while self.0.len() <= name as usize {
            if !self.0.push(SubscriberCounts::default()) {
                return;
            }
        }
        if let Some(counts) = self.get_mut(name) {
            *counts = SubscriberCounts {
                since_millis,
                ..SubscriberCounts::default()
            };
        }
    }
}
