//! The pool: one piece of memory cut into slots, and the depot of those that
//! no worker has.
//!
//! In the depot slots lie in magazines of up to 256, which are pushed and
//! popped as one: a [`Cache`] trades with it by one atomic operation for 256
//! buffers, whoever freed them, and nobody holds a lock.
//!
//! The memory holds packets and nothing else. What is kept of a slot lies in
//! an array aside, by the slot's number; whose a slot is, a handle says by
//! the pool's number ([`numbers`]).
//!
//! The memory goes when nothing of the pool is left, handles included.
//! Nobody counts buffers on the way: each cache keeps an account of its own
//! of what it took from the depot and gave to it, and settles it now and
//! then and at its end. [`Shared::users`] is the sum: so many units for each
//! `Pool` and `Cache`, and one for each buffer away from the depot.

#![allow(
    unsafe_code,
    reason = "one piece of memory is cut into slots that change hands"
)]

use std::io;
use std::num::NonZero;
use std::process;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};

use memory::{Reserved, Stack};

use super::moves::{self, Range};
use super::numbers::{self, MOST_POOLS};
use super::slot::{ADDRESS_BITS, Head, MAGAZINE, OwnSlot, Slot, most_in_magazine};
use super::word::{self, LINE_BITS, Word};
use super::{Cache, HEADROOM, LINE_BYTES, TAILROOM};

/// Most buffers that a cache keeps back.
pub const MOST_CACHED: usize = 512;
/// What a `Pool` or `Cache` counts among the users. Accounts are settled
/// long before they come near it.
pub const OWNER: i64 = 1 << 40;
/// Most owners; so many are a leak that would soon overflow the count.
const MOST_OWNERS: i64 = 1 << 20;

/// One cache line of the pool's memory, which begins on a page.
type Line = [u8; LINE_BYTES];

/// Why there is no pool.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// More than can be numbered.
    #[error(
        "a pool of {buffers} buffers for packets of {packet_bytes} bytes: at most {most_buffers} buffers of 511 KiB, 16 GiB in all; ask for fewer"
    )]
    Size {
        /// Buffers asked for.
        buffers: usize,
        /// Bytes of a packet asked for.
        packet_bytes: usize,
        /// Most buffers of a pool.
        most_buffers: u32,
    },
    /// The process has as many pools as can be numbered.
    #[error("a process has at most {MOST_POOLS} pools at a time; share one or drop one")]
    TooMany,
    /// The system has not enough memory or address space.
    #[error("memory for {buffers} buffers of {slot_bytes} bytes: {source}")]
    Memory {
        /// Buffers asked for.
        buffers: usize,
        /// Bytes of each, with its room.
        slot_bytes: usize,
        /// Why.
        source: io::Error,
    },
}

/// A pool of buffers of one size. Workers take theirs through a
/// [`Pool::cache`] of their own.
#[derive(Debug)]
pub struct Pool {
    shared: NonNull<Shared>,
}

/// What belongs to all users of a pool.
#[derive(Debug)]
pub struct Shared {
    /// Magazines, by the number of their first slot.
    depot: Stack,
    /// See the module's head.
    users: AtomicI64,
    /// Buffers that were dropped instead of given to a cache.
    late_frees: AtomicU64,
    /// Read only from here on.
    base: NonNull<u8>,
    /// From one slot to the next.
    slot_bytes: usize,
    /// Of those, what a packet and its room may take.
    room_bytes: usize,
    count: usize,
    /// What is kept of each slot, by its number.
    heads: Box<[Head]>,
    /// See [`numbers`].
    number: u16,
    /// The memory behind `base`; never looked at as lines.
    _memory: Reserved<Line>,
}

// SAFETY: what changes in it is atomic; `base` leads to slots, which change
// hands through the depot.
unsafe impl Sync for Shared {}
// SAFETY: as above, and the memory is freed by whoever is last.
unsafe impl Send for Shared {}
// SAFETY: a counted owner of `Shared`, which is `Sync` and `Send`.
unsafe impl Send for Pool {}
// SAFETY: as above; it has no methods that change it.
unsafe impl Sync for Pool {}

impl Pool {
    /// Room for `buffers` packets of up to `packet_bytes` each, with headroom
    /// and tailroom. All memory is made ready at once, on huge pages where
    /// the kernel grants them: some 0.1 ms for each MiB.
    pub fn new(buffers: usize, packet_bytes: usize) -> Result<Self, PoolError> {
        Self::of_slots(buffers, packet_bytes, slot_lines(packet_bytes))
    }

    /// The same with slots of 2,048 or 4,096 bytes, one behind the other: the
    /// frames of a device's memory (UMEM of `AF_XDP`), which may then be the
    /// pool's. The longest packet is what headroom and tailroom leave of one.
    ///
    /// The same part of many slots is in the same place of a core's cache, so
    /// this is for pools that a device asks it of.
    pub fn aligned(buffers: usize, slot_bytes: usize) -> Result<Self, PoolError> {
        let lines = [2_048, 4_096].contains(&slot_bytes);
        let lines = lines.then_some(slot_bytes / LINE_BYTES);
        Self::of_slots(
            buffers,
            slot_bytes.saturating_sub(HEADROOM + TAILROOM),
            lines,
        )
    }

    fn of_slots(
        buffers: usize,
        packet_bytes: usize,
        lines: Option<usize>,
    ) -> Result<Self, PoolError> {
        let all = lines.and_then(|lines| lines.checked_mul(buffers));
        let fits = buffers <= Stack::MOST_PLACES as usize;
        // A place is written as a number of lines.
        let all = all.filter(|all| fits && all >> LINE_BITS == 0);
        let (Some(lines), Some(all)) = (lines, all) else {
            return Err(PoolError::Size {
                buffers,
                packet_bytes,
                most_buffers: Stack::MOST_PLACES,
            });
        };
        let slot_bytes = lines * LINE_BYTES;
        let memory = ready(all).map_err(|source| PoolError::Memory {
            buffers,
            slot_bytes,
            source,
        })?;
        let number = numbers::take().ok_or(PoolError::TooMany)?;
        let room_bytes = slot_bytes / word::ROOM_UNIT * word::ROOM_UNIT;
        Ok(Self::cut(memory, slot_bytes, room_bytes, buffers, number))
    }

    /// Cuts the memory into slots and puts them into the depot.
    fn cut(
        mut memory: Reserved<Line>,
        slot_bytes: usize,
        room_bytes: usize,
        count: usize,
        number: u16,
    ) -> Self {
        let base = NonNull::from(&mut *memory).cast::<u8>();
        let shared = Box::new(Shared {
            depot: Stack::new(),
            users: AtomicI64::new(OWNER),
            late_frees: AtomicU64::new(0),
            base,
            slot_bytes,
            room_bytes,
            count,
            heads: (0..count).map(|_| Head::default()).collect(),
            number,
            _memory: memory,
        });
        let pool = Self {
            shared: NonNull::from(Box::leak(shared)),
        };
        numbers::set(number, pool.shared);
        let shared = pool.shared();
        let origin = shared.range().origin;
        let starts: Vec<usize> = (0..count).step_by(shared.magazine()).collect();
        // The last first, so that the first ones are on top.
        for start in starts.into_iter().rev() {
            let end = count.min(start + shared.magazine());
            let slots = (start..end).map(|place| {
                // SAFETY: each slot is made once, here, for the depot.
                unsafe { OwnSlot::at(origin, place * slot_bytes) }
            });
            shared.push(origin, slots);
        }
        pool
    }

    /// A cache for one worker.
    pub fn cache(&self) -> Cache {
        Cache::new(self.shared)
    }

    /// Buffers of the pool.
    pub fn capacity(&self) -> usize {
        self.shared().count
    }

    /// The longest packet that a port puts into a buffer.
    pub fn packet_bytes(&self) -> usize {
        (self.shared().room_bytes - HEADROOM - TAILROOM).min(word::MOST_BYTES)
    }

    /// From one buffer to the next. An odd number of cache lines, so that the
    /// same part of all buffers is not in the same place of a core's cache
    /// (of [`Pool::aligned`] as asked).
    pub fn stride_bytes(&self) -> usize {
        self.shared().slot_bytes
    }

    /// Bytes of memory behind the buffers.
    pub fn memory_bytes(&self) -> usize {
        self.shared().slot_bytes * self.shared().count
    }

    /// Buffers that are neither in the depot nor with a cache, once every
    /// cache is dropped: packets in batches and rings, and leaks. (A living
    /// cache has not settled its account yet.)
    pub fn outstanding(&self) -> usize {
        let users = self.shared().users.load(Ordering::Acquire);
        usize::try_from(users & (OWNER - 1)).unwrap_or(0)
    }

    /// Buffers that were dropped one by one, the slow way, so far.
    pub fn late_frees(&self) -> u64 {
        self.shared().late_frees.load(Ordering::Relaxed)
    }

    /// Its slots.
    pub(super) fn range(&self) -> Range {
        self.shared().range()
    }

    fn shared(&self) -> &Shared {
        // SAFETY: this is one of its counted owners.
        unsafe { self.shared.as_ref() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the owner's unit is given back once, here.
        unsafe { leave(self.shared, OWNER) };
    }
}

/// Cache lines of a slot for packets of this length: those of its room, which
/// is told in units of four, and one more, so that it is an odd number.
fn slot_lines(packet_bytes: usize) -> Option<usize> {
    let bytes = packet_bytes.checked_add(HEADROOM + TAILROOM)?;
    let units = bytes.div_ceil(word::ROOM_UNIT);
    (units <= word::MOST_UNITS).then_some(units * (word::ROOM_UNIT / LINE_BYTES) + 1)
}

/// So many lines of memory, written to.
fn ready(lines: usize) -> io::Result<Reserved<Line>> {
    let mut memory: Reserved<Line> = Reserved::new(lines)?;
    // A handle keeps the pool's number above a slot's address.
    if memory.as_ptr().addr().saturating_add(lines * LINE_BYTES) >> ADDRESS_BITS != 0 {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    memory.prepare(lines);
    while memory.push([0; LINE_BYTES]) {}
    Ok(memory)
}

impl Shared {
    /// All slots.
    pub fn range(&self) -> Range {
        Range {
            origin: OwnSlot::origin(self.base, self.number),
            empty: Word::empty(self.room_bytes),
            is_wide: moves::is_wide(),
        }
    }

    /// Most buffers that a cache keeps back: of a small pool a quarter.
    pub fn most_cached(&self) -> usize {
        (self.count / 4).min(MOST_CACHED)
    }

    /// Buffers that are pushed to the depot as one.
    pub fn magazine(&self) -> usize {
        let most = most_in_magazine(self.slot_bytes);
        (self.most_cached() / 2).clamp(1, most.max(1))
    }

    /// The slot of a number below `count`, which everything in the depot is.
    fn slot(&self, place: u32) -> Slot {
        // SAFETY: the offset of a slot.
        unsafe { Slot::at(self.base, place as usize * self.slot_bytes) }
    }

    /// What is kept of a slot, by its number, which is as for `slot`.
    fn head(&self, place: u32) -> &Head {
        &self.heads[place as usize]
    }

    /// What is kept of a slot of this pool.
    pub fn head_of(&self, slot: &OwnSlot) -> &Head {
        let offset = slot.offset(self.range().origin);
        self.head((offset / self.slot_bytes) as u32)
    }

    /// Puts slots of this pool into the depot as one magazine of at most
    /// [`Shared::magazine`]. The first one keeps the list of all.
    pub fn push(&self, origin: NonZero<usize>, slots: impl Iterator<Item = OwnSlot>) {
        let mut lines = [0; MAGAZINE];
        let mut count = 0;
        let places = lines.iter_mut().take(self.magazine());
        for (line, slot) in places.zip(slots) {
            *line = (slot.offset(origin) / LINE_BYTES) as u32;
            count += 1;
        }
        let (lines, _) = lines.split_at(count);
        let Some(first) = lines.first() else {
            return;
        };
        let place = (*first as usize * LINE_BYTES / self.slot_bytes) as u32;
        // SAFETY: the slots are given away by the caller, and in no handle.
        unsafe { self.slot(place).write_magazine(self.head(place), lines) };
        self.depot.push(place, |place| &self.head(place).link);
    }

    /// Takes a magazine out of the depot; how many slots came, 0 when it is
    /// empty.
    pub fn pop(&self, origin: NonZero<usize>, slots: &mut Vec<OwnSlot>) -> usize {
        let Some(place) = self.depot.pop(|place| &self.head(place).link) else {
            return 0;
        };
        // SAFETY: it was popped by us, so the magazine is ours, and nobody
        // has a handle on its slots before we are done.
        let lines = unsafe { self.slot(place).magazine(self.head(place)) };
        slots.extend(lines.iter().map(|line| {
            // SAFETY: lines in a magazine are those of slots given away.
            unsafe { OwnSlot::at(origin, *line as usize * LINE_BYTES) }
        }));
        lines.len()
    }
}

/// One more owner.
///
/// # Safety
/// The caller must be a user of it.
pub unsafe fn join(shared: NonNull<Shared>) {
    // SAFETY: it lives as long as it has users.
    let before = unsafe { shared.as_ref() }
        .users
        .fetch_add(OWNER, Ordering::Relaxed);
    if before > OWNER * MOST_OWNERS {
        process::abort();
    }
}

/// Takes units from the users; the last one frees the memory.
///
/// # Safety
/// The units must be the caller's own, who does not touch it any more unless
/// it has others.
pub unsafe fn leave(shared: NonNull<Shared>, units: i64) {
    // SAFETY: it lives as long as it has users.
    let before = unsafe { shared.as_ref() }
        .users
        .fetch_sub(units, Ordering::Release);
    if before == units {
        // All that others did with it comes before.
        fence(Ordering::Acquire);
        // SAFETY: it came from a box, and nothing of the pool is left.
        let shared = unsafe { Box::from_raw(shared.as_ptr()) };
        numbers::free(shared.number);
    }
}

/// The pool of a slot that the caller owns.
///
/// # Safety
/// The slot must be a user of it as long as the result is looked at.
#[inline]
pub unsafe fn of<'a>(slot: &OwnSlot) -> Option<&'a Shared> {
    // SAFETY: it lives as long as it has users, and so long it is the one of
    // its number.
    numbers::pool(slot.pool()).map(|shared| unsafe { shared.as_ref() })
}

/// A buffer that was dropped: straight to the depot.
pub fn free_slow(slot: OwnSlot) {
    // There is one: the buffer is a user until it leaves, below.
    let Some(owner) = numbers::pool(slot.pool()) else {
        return debug_assert!(false, "a buffer of no pool");
    };
    // SAFETY: as above.
    let shared = unsafe { owner.as_ref() };
    shared.late_frees.fetch_add(1, Ordering::Relaxed);
    let origin = shared.range().origin;
    shared.push(origin, std::iter::once(slot));
    // SAFETY: the buffer's unit among the users goes with it.
    unsafe { leave(owner, 1) };
}
