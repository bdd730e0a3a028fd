//! The memory that a table's writer and readers share, and the one way to
//! change it while it is read.
//!
//! At its head lie slots of four bytes, each the place of a record, or of
//! something the slots' user knows; then the arena that the records lie in,
//! counted in units of 16 bytes. A record never changes while a slot leads
//! to it: the writer writes a new one, stores the slot once, and uses the
//! old one's place again when every reader has passed (a grace of
//! [`memory::quiescent`]).

#![allow(
    unsafe_code,
    reason = "a record is written where no reader looks, in memory that readers share"
)]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use memory::Pages;
use memory::quiescent::{Domain, Grace};

use crate::space::Space;

/// Bytes of a unit.
pub(crate) const UNIT: usize = 16;
/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// Bytes after the last unit that a wide load of a record may touch.
const MARGIN: usize = 64;
/// Places that wait for one grace together, so that readers see the epoch
/// change only so often.
const RETIRED_TOGETHER: usize = 64;

/// What readers see.
#[derive(Debug)]
pub struct Shared {
    pages: Pages,
    slots: usize,
    domain: Arc<Domain>,
    /// A hint to readers, nothing more.
    is_large: AtomicBool,
}

/// Where to look, within a section.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    /// The slots.
    pub slots: &'a [AtomicU32],
    /// The first unit of the arena.
    pub arena: *const u8,
    /// Whether it is more than lies near a core.
    pub is_large: bool,
}

impl Table<'_> {
    /// Where a place lies, by what a slot says of it.
    #[inline(always)]
    pub fn place(self, offset: u32) -> *const u8 {
        self.arena.wrapping_add(offset as usize)
    }
}

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first unit.
    pub at: u32,
    /// How many.
    pub units: u32,
}

impl Extent {
    /// Bytes from the arena's start: what a slot says of it.
    pub fn offset(self) -> u32 {
        self.at * UNIT as u32
    }
}

/// The writer's end.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    space: Space,
    /// Not reachable for new readers; no grace begun yet.
    young: Vec<Extent>,
    /// Free once their grace is over, oldest first.
    retired: VecDeque<(Grace, Vec<Extent>)>,
    /// Emptied lists of `retired`, to be used again.
    spare: Vec<Vec<Extent>>,
    retired_units: usize,
}

impl Shared {
    /// The domain whose sections protect what is found here.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Whether what is looked up in is more than lies near a core, as its
    /// writer saw it last.
    #[inline(always)]
    pub fn is_large(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
    }

    /// Where to look. Good within a section of [`Shared::domain`].
    #[inline(always)]
    pub fn table(&self) -> Table<'_> {
        Table {
            slots: self.slots(),
            arena: self.arena(),
            is_large: self.is_large(),
        }
    }

    /// The slots: zero at first.
    #[inline(always)]
    pub fn slots(&self) -> &[AtomicU32] {
        let first = self.pages.base().as_ptr().cast::<AtomicU32>();
        // SAFETY: the pages begin with this many slots (`Store::new`),
        // zeroed, aligned, alive as long as `self`, and never looked at but
        // as atomics.
        unsafe { std::slice::from_raw_parts(first, self.slots) }
    }

    /// The first unit of the arena, on a cache line's border. Zero at
    /// first. Good to read through within a section, where a slot led.
    #[inline(always)]
    pub fn arena(&self) -> *const u8 {
        // SAFETY: the arena begins in the pages, after the slots.
        unsafe {
            self.pages
                .base()
                .as_ptr()
                .add(self.slots * size_of::<u32>())
        }
    }
}

impl Store {
    /// Memory for a number of slots (a multiple of 16) and at most
    /// `max_bytes` in all. The first `reserved_units` of the arena are
    /// the caller's and stay zero: a slot of zero leads there.
    pub fn new(
        slots: usize,
        max_bytes: usize,
        reserved_units: u32,
        domain: &Arc<Domain>,
    ) -> io::Result<Self> {
        let least = slots * size_of::<u32>() + reserved_units as usize * UNIT + MARGIN;
        let pages = Pages::new(max_bytes.max(least))?;
        let arena_bytes = pages.len_bytes() - slots * size_of::<u32>() - MARGIN;
        // Slots count bytes: 4 GiB are the most.
        let lines = (arena_bytes / LINE).min(u32::MAX as usize / LINE);
        let mut space = Space::new(lines as u32);
        if reserved_units > 0 {
            space.take(reserved_units);
        }
        Ok(Self {
            shared: Arc::new(Shared {
                pages,
                slots,
                domain: Arc::clone(domain),
                is_large: AtomicBool::new(false),
            }),
            space,
            young: Vec::new(),
            retired: VecDeque::new(),
            spare: Vec::new(),
            retired_units: 0,
        })
    }

    /// The readers' end.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Writes a record where no reader looks; `None` where there is no
    /// space. It is the caller's until it is published.
    pub fn write(&mut self, record: &[u8]) -> Option<Extent> {
        let units = record.len().div_ceil(UNIT) as u32;
        let at = match self.space.take(units) {
            Some(at) => at,
            None => {
                self.begin_grace();
                self.reclaim();
                self.space.take(units)?
            }
        };
        // SAFETY: `Space` gave these units, which lie in the arena. They
        // were never published, or a grace has passed since they were taken
        // out (`reclaim`): no reader reads them. No slice of them exists.
        unsafe {
            let to = self.shared.arena().cast_mut().add(at as usize * UNIT);
            std::ptr::copy_nonoverlapping(record.as_ptr(), to, record.len());
        }
        Some(Extent { at, units })
    }

    /// Readers find a value in a slot from now on. Release: with it comes
    /// what was written before.
    #[inline]
    pub fn publish(&mut self, slot: usize, value: u32) {
        self.shared.slots()[slot].store(value, Ordering::Release);
    }

    /// What a slot says.
    #[inline]
    pub fn slot(&self, slot: usize) -> u32 {
        self.shared.slots()[slot].load(Ordering::Relaxed)
    }

    /// Readers find a value in a record of slots, which stays where it is
    /// (IPv6's blocks). Release, as for [`Store::publish`].
    pub fn publish_within(&mut self, block: Extent, index: usize, value: u32) {
        let slots = block.units as usize * UNIT / size_of::<AtomicU32>();
        assert!(index < slots, "slot {index} of {slots}");
        let at = block.at as usize * UNIT;
        // SAFETY: the slot lies in a place that `Store::write` gave, whole
        // and aligned. As long as the block is published, its bytes are
        // looked at as atomics only.
        let slot = unsafe {
            let first = self.shared.arena().add(at).cast::<AtomicU32>();
            &*first.add(index)
        };
        slot.store(value, Ordering::Release);
    }

    /// A record that no slot leads to any more. Its place is used again
    /// after a grace.
    pub fn retire(&mut self, place: Extent) {
        self.retired_units += place.units as usize;
        self.young.push(place);
        if self.young.len() >= RETIRED_TOGETHER {
            self.begin_grace();
            self.reclaim();
        }
    }

    /// Takes back what no reader can be reading any more. Never waits.
    pub fn reclaim(&mut self) {
        while let Some((grace, _)) = self.retired.front() {
            if !self.shared.domain.is_over(*grace) {
                return;
            }
            let Some((_, mut places)) = self.retired.pop_front() else {
                return;
            };
            for place in places.drain(..) {
                self.retired_units -= place.units as usize;
                self.space.give(place.at, place.units);
            }
            self.spare.push(places);
        }
    }

    /// Has all that was retired wait for a grace from now on.
    pub fn begin_grace(&mut self) {
        if self.young.is_empty() {
            return;
        }
        let places = std::mem::replace(&mut self.young, self.spare.pop().unwrap_or_default());
        self.retired.push_back((self.shared.domain.begin(), places));
    }

    /// Has readers know whether there is more to look up in than some bytes.
    pub fn tell_whether_larger(&self, bytes: usize) {
        let is_large = self.bytes().0 > bytes;
        // The line is one that all readers read: written only if it changes.
        if self.shared.is_large() != is_large {
            self.shared.is_large.store(is_large, Ordering::Relaxed);
        }
    }

    /// Bytes: of records and slots that readers find; from the first to the
    /// last; that wait for a grace.
    pub fn bytes(&self) -> (usize, usize, usize) {
        let slots = self.shared.slots * size_of::<u32>();
        let spread = self.space.spread_units() as usize;
        let free = self.space.free_units() as usize;
        let used = spread - free - self.retired_units;
        let of = |units| units * UNIT;
        (slots + of(used), slots + of(spread), of(self.retired_units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_told_whether_there_is_much() {
        let domain = Domain::new(1);
        let mut store = Store::new(16, 1 << 20, 1, &domain).unwrap();
        assert!(!store.shared().is_large());
        store.write(&[1; 64]).unwrap();
        for (bytes, is_large) in [(64, true), (1 << 10, false)] {
            store.tell_whether_larger(bytes);
            assert_eq!(store.shared().is_large(), is_large);
        }
    }

    #[test]
    fn a_place_is_used_again_only_when_readers_have_passed() {
        let domain = Domain::new(1);
        let mut store = Store::new(16, 1 << 20, 1, &domain).unwrap();
        let mut reader = domain.register().unwrap();
        let first = store.write(&[1; 16]).unwrap();
        store.publish(0, first.at);
        let section = reader.enter();
        let second = store.write(&[2; 16]).unwrap();
        store.publish(0, second.at);
        store.retire(first);
        store.begin_grace();
        store.reclaim();
        assert_eq!(store.bytes().2, UNIT);
        assert_ne!(store.write(&[3; 16]).unwrap(), first);
        drop(section);
        store.reclaim();
        assert_eq!(store.bytes().2, 0);
        assert_eq!(store.write(&[4; 16]).unwrap(), first);
    }
}
