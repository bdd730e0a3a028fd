//! Next hops and neighbours for the packet path: from a next hop's number,
//! or a port and an address, to a rewritten header in one load.
//!
//! [`Table`] is shared: workers read it inside a section of the table's
//! [`Domain`], one [`Writer`] (of [`crate::fib_sync`]) changes it. Readers take
//! no lock, write nothing and never try twice.
//!
//! - Next hops have numbers below [`MAX_NEXT_HOPS`], which FIBs give out; 0
//!   is none. Several FIBs share them.
//! - Neighbours that are resolved are found by port and address, for
//!   destinations on the link.
//! - A [`Kind::Group`] is a table of [`BUCKETS`] next hops, indexed by the
//!   flow's hash: a flow keeps its path while the group stays.

mod adjacency;
mod group;
mod writer;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use memory::prefetch;
use memory::quiescent::{Domain, Section};

use adjacency::Line;
pub use adjacency::{Adjacency, Key, Kind};
pub use group::{BUCKETS, MAX_MEMBERS, Member, buckets};
pub use writer::{Full, Writer};

/// Next hops of a table, number 0 included.
pub const MAX_NEXT_HOPS: usize = 32_768;

/// Neighbours whose place is found by one cache line of the index.
const WAYS: usize = 8;

/// How many there may be. At a limit the new one is refused and what was
/// there stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most neighbours on links of ports. 96 bytes for each.
    pub neighbours: usize,
    /// Most groups of next hops. 512 bytes for each.
    pub groups: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            neighbours: 1 << 16,
            groups: 1 << 11,
        }
    }
}

/// A bucket of the index: for each place the neighbour's number from 1 in
/// the upper half, a tag in the lower; 0: free.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket([AtomicU64; WAYS]);

/// Next hops and neighbours, shared by the workers.
#[derive(Debug)]
pub struct Table {
    domain: Arc<Domain>,
    next_hops: Box<[Line]>,
    neighbours: Box<[Line]>,
    index: Box<[Bucket]>,
    groups: Box<[AtomicU16]>,
    hasher: foldhash::fast::FixedState,
    changes: AtomicU64,
}

/// The two buckets where a neighbour may stand, and its tag.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    buckets: [u32; 2],
    tag: u32,
}

/// What the bucket of a place says: the line to look at, from 1; 0: there is
/// none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spot(u32);

impl Table {
    fn new(domain: &Arc<Domain>, limits: Limits) -> Self {
        let lines = |count: usize| (0..count).map(|_| Line::default()).collect();
        // Half full at most, each key with sixteen places to choose from.
        let buckets = (limits.neighbours / (WAYS / 2)).next_power_of_two().max(2);
        let members = (usize::from(limits.groups) + 1) * BUCKETS;
        Self {
            domain: Arc::clone(domain),
            next_hops: lines(MAX_NEXT_HOPS),
            neighbours: lines(limits.neighbours),
            index: (0..buckets).map(|_| Bucket::default()).collect(),
            groups: (0..members).map(|_| AtomicU16::new(0)).collect(),
            // Strangers choose addresses: they shall not choose buckets.
            hasher: foldhash::fast::FixedState::with_seed(RandomState::new().hash_one(0)),
            changes: AtomicU64::new(0),
        }
    }

    /// The domain whose sections protect it.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Grows with each change: who holds packets for a neighbour looks
    /// again then.
    #[inline(always)]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Asks for a next hop's line ahead of [`Table::next_hop`].
    #[inline(always)]
    pub fn prefetch(&self, next_hop: u16) {
        if let Some(line) = self.next_hops.get(usize::from(next_hop)) {
            prefetch(line);
        }
    }

    /// A next hop. One load of a line; a number beyond the table is none.
    #[inline(always)]
    pub fn next_hop(&self, _section: &Section<'_>, next_hop: u16) -> Adjacency {
        let line = self.next_hops.get(usize::from(next_hop));
        line.map_or_else(Adjacency::default, Line::read)
    }

    /// Which neighbour a next hop goes through, for one that is not
    /// resolved.
    pub fn gateway(&self, _section: &Section<'_>, next_hop: u16) -> Key {
        let line = self.next_hops.get(usize::from(next_hop));
        line.map_or_else(Key::default, Line::key)
    }

    /// The member of a group that a flow takes.
    #[inline(always)]
    pub fn member(&self, _section: &Section<'_>, group: u16, flow_hash: u32) -> u16 {
        let bucket = (u64::from(flow_hash) * BUCKETS as u64) >> 32;
        let at = usize::from(group) * BUCKETS + bucket as usize;
        let member = self.groups.get(at);
        member.map_or(0, |member| member.load(Ordering::Relaxed))
    }

    /// Where a neighbour stands if it is there; asks for its first bucket.
    #[inline(always)]
    pub fn place(&self, key: Key) -> Place {
        let (high, low) = ((key.address >> 64) as u64, key.address as u64);
        let hash = self.hasher.hash_one((high, low, key.port));
        let mask = self.index.len() as u32 - 1;
        let first = (hash >> 32) as u32;
        // The other bucket is far off and never the same one.
        let second = first ^ ((hash as u32 >> 16) | 1);
        let place = Place {
            buckets: [first & mask, second & mask],
            tag: hash as u32,
        };
        if let Some(bucket) = self.index.get(place.buckets[0] as usize) {
            prefetch(bucket);
        }
        place
    }

    /// Which line a place leads to; asks for it. For a batch: first all
    /// places, then all spots, then [`Table::neighbour_at`] finds what it
    /// reads near.
    #[inline(always)]
    pub fn spot(&self, _section: &Section<'_>, place: Place) -> Spot {
        let spot = self.candidate(place);
        if let Some(line) = self.line_of(spot) {
            prefetch(line);
        }
        spot
    }

    /// The resolved neighbour of this key, of which the place and the spot
    /// are. One load of a line mostly.
    #[inline(always)]
    pub fn neighbour_at(
        &self,
        section: &Section<'_>,
        key: Key,
        place: Place,
        spot: Spot,
    ) -> Option<Adjacency> {
        let line = self.line_of(spot)?;
        if line.key() == key {
            return Some(line.read());
        }
        // Another one with the same tag.
        self.neighbour(section, key, place)
    }

    /// The resolved neighbour of this key. Two loads mostly: a bucket, the
    /// neighbour's line.
    pub fn neighbour(&self, _section: &Section<'_>, key: Key, place: Place) -> Option<Adjacency> {
        self.find(key, place).map(|(_, line)| line.read())
    }

    /// The first entry with a place's tag.
    #[inline(always)]
    fn candidate(&self, place: Place) -> Spot {
        for bucket in place.buckets {
            let Some(bucket) = self.index.get(bucket as usize) else {
                continue;
            };
            // All eight: where it stands is nothing that a processor could
            // foresee.
            let mut tags = 0;
            for (at, entry) in bucket.0.iter().enumerate() {
                let is_it = entry.load(Ordering::Relaxed) as u32 == place.tag;
                tags |= u32::from(is_it) << at;
            }
            if tags != 0 {
                let at = tags.trailing_zeros() as usize % WAYS;
                // Acquire: the line's key was there before the entry.
                let entry = bucket.0[at].load(Ordering::Acquire);
                return Spot((entry >> 32) as u32);
            }
        }
        Spot(0)
    }

    #[inline(always)]
    fn line_of(&self, spot: Spot) -> Option<&Line> {
        self.neighbours.get((spot.0 as usize).checked_sub(1)?)
    }

    fn find(&self, key: Key, place: Place) -> Option<(u32, &Line)> {
        for bucket in place.buckets {
            let bucket = self.index.get(bucket as usize)?;
            for entry in &bucket.0 {
                // Acquire: the line's key was there before the entry.
                let entry = entry.load(Ordering::Acquire);
                let number = (entry >> 32) as u32;
                if entry as u32 != place.tag || number == 0 {
                    continue;
                }
                let line = self.neighbours.get(number as usize - 1)?;
                if line.key() == key {
                    return Some((number - 1, line));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
