//! What a worker has at hand: buffers taken from the pool and given back to
//! it without a word to anybody.

#![allow(
    unsafe_code,
    reason = "numbers of slots that are its own become handles"
)]

use std::fmt;
use std::ptr::NonNull;

use super::pool::{Shared, join, leave};
use super::slot::Slot;
use super::{Batch, Buffer, LINE_BYTES};

/// An account is settled when it comes to this.
const SETTLED_AT: i64 = 1 << 20;

/// A worker's own stock of buffers, last in, first out. It holds at most 512,
/// or a quarter of a small pool; what comes above goes to the pool in
/// magazines of 64, and what is missing comes from there the same way.
///
/// A buffer may be given to any cache of its pool, whichever it came from.
pub struct Cache {
    shared: NonNull<Shared>,
    base: NonNull<u8>,
    /// First lines of slots that are ours.
    stock: Vec<u32>,
    most: usize,
    magazine: usize,
    /// Lines of the pool.
    lines: usize,
    slot_lines: u16,
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
            base: shared.base(),
            stock: Vec::with_capacity(2 * shared.most_cached() + shared.magazine()),
            most: shared.most_cached(),
            magazine: shared.magazine(),
            lines: shared.lines(),
            slot_lines: shared.slot_lines(),
            account: 0,
            counters: CacheCounters::default(),
        }
    }

    /// Adds up to `count` empty buffers to the batch, as far as it has room;
    /// says how many came. What the pool does not have is counted as refused.
    /// O(count); below 1 ns each from the stock.
    #[inline]
    pub fn fill(&mut self, batch: &mut Batch, count: usize) -> usize {
        let wanted = count.min(batch.room());
        let count = self.stocked(wanted);
        let rest = self.stock.len() - count;
        let (base, lines) = (self.base, self.slot_lines);
        let taken = self.stock.get(rest..).unwrap_or_default();
        batch.add(taken.iter().map(|line| {
            // SAFETY: the stock names slots that are ours, and they are
            // struck off it below.
            unsafe { buffer(base, *line, lines) }
        }));
        self.stock.truncate(rest);
        count
    }

    /// One empty buffer; `None`, and counted, when the pool has none.
    #[inline]
    pub fn take(&mut self) -> Option<Buffer> {
        self.stocked(1);
        let line = self.stock.pop()?;
        // SAFETY: the stock names slots that are ours, and this one is
        // struck off it.
        Some(unsafe { buffer(self.base, line, self.slot_lines) })
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
        self.give_all(batch.drain());
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
        while self.stock.len() < wanted {
            // SAFETY: we are one of its owners.
            let came = unsafe { self.shared.as_ref() }.pop(&mut self.stock);
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
        let line = buffer.slot.offset(self.base) / LINE_BYTES;
        // One of another pool is dropped, which sends it home.
        if line < self.lines {
            let _ = buffer.into_slot();
            self.stock.push(line as u32);
        }
    }

    #[inline]
    fn flush(&mut self) {
        if self.stock.len() > self.most {
            self.give_to_depot(self.most / 2);
        }
    }

    /// Gives all but `rest` to the depot, the ones longest here first.
    #[cold]
    fn give_to_depot(&mut self, rest: usize) {
        let given = self.stock.len() - rest;
        for magazine in self
            .stock
            .get(..given)
            .unwrap_or_default()
            .chunks(self.magazine)
        {
            // SAFETY: we are one of its owners, and the slots are ours; they
            // are struck off the stock below.
            unsafe { self.shared.as_ref().push(magazine) };
            self.counters.flushes += 1;
        }
        self.stock.drain(..given);
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
        self.give_to_depot(0);
        self.settle();
        // SAFETY: our unit as an owner, given back once, here.
        unsafe { leave(self.shared, super::pool::OWNER) };
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

/// A handle on a slot.
///
/// # Safety
/// The line must be the first of a slot of the pool with this base and slot
/// size, and the slot the caller's own.
#[inline(always)]
unsafe fn buffer(base: NonNull<u8>, line: u32, slot_lines: u16) -> Buffer {
    // SAFETY: the caller's.
    let slot = unsafe { Slot::at(base, line as usize * LINE_BYTES) };
    Buffer::new(slot, slot_lines)
}
