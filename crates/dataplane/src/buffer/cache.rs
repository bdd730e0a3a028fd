//! What a worker has at hand: buffers taken from the pool and given back to
//! it without a word to anybody.

#![allow(unsafe_code, reason = "it is a counted owner of what all share")]

use std::fmt;
use std::ptr::NonNull;

use super::moves::Range;
use super::pool::{MOST_CACHED, OWNER, Shared, join, leave};
use super::slot::OwnSlot;
use super::{Batch, Buffer};

/// An account is settled when it comes to this.
const SETTLED_AT: i64 = 1 << 20;

/// A worker's own stock of buffers, last in, first out. It holds at most 512,
/// or a quarter of a small pool; what comes above goes to the pool in
/// magazines of 256 (of less from a pool that is small or has short buffers),
/// and what is missing comes from there the same way.
///
/// A buffer may be given to any cache of its pool, whichever it came from.
pub struct Cache {
    shared: NonNull<Shared>,
    pub(super) pool: Range,
    pub(super) stock: Vec<OwnSlot>,
    most: usize,
    magazine: usize,
    /// Buffers taken from the depot less those given to it, not yet told.
    account: i64,
    counters: CacheCounters,
}

/// What went through a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Buffers that were asked for and could not be had: the pool is empty.
    pub refused: u64,
    /// Magazines taken from the pool.
    pub refills: u64,
    /// Magazines given to the pool.
    pub flushes: u64,
}

// SAFETY: a counted owner of `Shared`, and of the slots in its stock.
unsafe impl Send for Cache {}

impl Cache {
    /// For [`super::Pool`], which is an owner itself.
    pub(super) fn new(owner: NonNull<Shared>) -> Self {
        // SAFETY: the caller is a user, and so are we from here on.
        let shared = unsafe {
            join(owner);
            owner.as_ref()
        };
        Self {
            shared: owner,
            pool: shared.range(),
            stock: Vec::with_capacity(2 * MOST_CACHED),
            most: shared.most_cached(),
            magazine: shared.magazine(),
            account: 0,
            counters: CacheCounters::default(),
        }
    }

    /// Adds up to `count` empty buffers to the batch, as far as it has room;
    /// says how many came. What the pool does not have is counted as refused.
    /// O(count); below 1 ns each from the stock.
    #[inline]
    pub fn fill(&mut self, batch: &mut Batch, count: usize) -> usize {
        let count = self.stocked(count.min(batch.room()));
        batch.alloc_bulk(&mut self.stock, count, self.pool);
        count
    }

    /// One empty buffer; `None`, and counted, when the pool has none.
    #[inline]
    pub fn take(&mut self) -> Option<Buffer> {
        self.stocked(1);
        let empty = self.pool.empty;
        self.stock.pop().map(|slot| Buffer::new(slot, empty))
    }

    /// Takes a buffer back. (One of another pool goes home to that.)
    #[inline]
    pub fn give(&mut self, buffer: Buffer) {
        self.stock_up(buffer);
        self.flush();
    }

    /// Takes all buffers of a batch back, which is empty then. O(buffers);
    /// below 1 ns each.
    #[inline]
    pub fn clear(&mut self, batch: &mut Batch) {
        if !batch.free_bulk(&mut self.stock, self.pool) {
            self.clear_slowly(batch);
        }
        self.flush();
    }

    /// Takes many buffers back.
    #[inline]
    pub fn give_all(&mut self, buffers: impl Iterator<Item = Buffer>) {
        for buffer in buffers {
            self.stock_up(buffer);
        }
        self.flush();
    }

    /// What went through it so far.
    pub fn counters(&self) -> CacheCounters {
        self.counters
    }

    /// A batch of more than a cache holds, or with buffers of another pool.
    #[cold]
    #[inline(never)]
    fn clear_slowly(&mut self, batch: &mut Batch) {
        self.give_all(batch.drain());
    }

    /// Sees that as many are in stock as can be had; how many of the wanted.
    #[inline]
    fn stocked(&mut self, wanted: usize) -> usize {
        if self.stock.len() < wanted {
            self.refill(wanted);
        }
        wanted.min(self.stock.len())
    }

    #[cold]
    fn refill(&mut self, wanted: usize) {
        // SAFETY: we are one of its owners.
        let shared = unsafe { self.shared.as_ref() };
        while self.stock.len() < wanted {
            let came = shared.pop(self.pool.origin, &mut self.stock);
            if came == 0 {
                self.counters.refused += (wanted - self.stock.len()) as u64;
                break;
            }
            self.counters.refills += 1;
            self.account += came as i64;
        }
        if self.account >= SETTLED_AT {
            self.settle();
        }
    }

    #[inline(always)]
    fn stock_up(&mut self, buffer: Buffer) {
        // One of another pool is dropped, which sends it home.
        if self.pool.has(&buffer.slot) {
            self.stock.push(buffer.into_slot());
        }
    }

    #[inline]
    fn flush(&mut self) {
        if self.stock.len() > self.most {
            // Whole magazines, and about a half is kept.
            let given = self.stock.len() - self.most / 2;
            let given = given / self.magazine * self.magazine;
            self.give_to_depot(given.max(1));
        }
    }

    /// Gives so many of those in stock to the depot, the ones longest here
    /// first.
    #[cold]
    fn give_to_depot(&mut self, given: usize) {
        // SAFETY: we are one of its owners.
        let shared = unsafe { self.shared.as_ref() };
        let mut left = given;
        let mut slots = self.stock.drain(..given);
        while left > 0 {
            let magazine = left.min(self.magazine);
            shared.push(self.pool.origin, slots.by_ref().take(magazine));
            self.counters.flushes += 1;
            left -= magazine;
        }
        drop(slots);
        self.account -= given as i64;
        if self.account <= -SETTLED_AT {
            self.settle();
        }
    }

    /// Tells the account to the others.
    fn settle(&mut self) {
        // SAFETY: our own unit as an owner stays.
        unsafe { leave(self.shared, -self.account) };
        self.account = 0;
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.give_to_depot(self.stock.len());
        self.settle();
        // SAFETY: our unit as an owner, given back once, here.
        unsafe { leave(self.shared, OWNER) };
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("stock", &self.stock.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
