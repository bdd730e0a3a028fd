//! The writer's side: all routes in a plain exact form, from which a slot's
//! record is made anew whenever a route beneath it changes.
//!
//! Routes up to /18 lie in a heap ([`crate::heap`]). Longer ones lie in the
//! list of their slot, in the order of prefix and length, so that each comes
//! after those that hold it.

use memory::prefetch;

use super::{REST_BITS, SLOT_BITS, SLOTS};
use crate::compiled::{Compiled, Listed, Noted, note_listed};
use crate::heap::{self, Heap};
use crate::node::Draft;
use crate::route::{Change4, Route4};
use crate::store::{Extent, Store, UNIT};

/// The routes of an IPv4 table, and where their records lie.
#[derive(Debug)]
pub struct Records {
    /// Routes up to /18.
    short: Heap,
    chunks: Vec<Chunk>,
    /// Where the records with one answer lie, as slots say it; 0 for those
    /// not made yet, and that of no route, which is 0.
    uniform: Vec<u32>,
    /// Slots to be made anew.
    dirty: Vec<u32>,
    draft: Draft,
}

/// What the writer knows of a slot.
#[derive(Debug, Clone, Default)]
struct Chunk {
    /// Routes longer than /18, by prefix and length.
    long: Vec<Long>,
    /// The next hop of the longest route up to /18.
    cover: u16,
    /// Units of its record; 0 for one with one answer, which is shared.
    units: u16,
    is_dirty: bool,
}

/// A route within a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Long {
    /// The prefix's bits after the slot's.
    rest: u16,
    len: u8,
    next_hop: u16,
}

impl Long {
    fn new(prefix: u32, len: u8, next_hop: u16) -> Self {
        Self {
            rest: (prefix & ((1 << REST_BITS) - 1)) as u16,
            len,
            next_hop,
        }
    }
}

impl Listed for Long {
    type Key = u32;

    /// By prefix and length.
    fn key(&self) -> u32 {
        u32::from(self.rest) << 8 | u32::from(self.len)
    }

    fn next_hop(&mut self) -> &mut u16 {
        &mut self.next_hop
    }
}

impl Chunk {
    /// Has the slot be made anew.
    fn mark(&mut self, slot: usize, dirty: &mut Vec<u32>) {
        if !std::mem::replace(&mut self.is_dirty, true) {
            dirty.push(slot as u32);
        }
    }

    /// Has the slot know the route that covers it.
    fn cover(&mut self, slot: usize, cover: u16, dirty: &mut Vec<u32>) {
        if self.cover != cover {
            self.cover = cover;
            self.mark(slot, dirty);
        }
    }
}

impl Compiled for Records {
    type Address = u32;
    const SLOTS: usize = SLOTS;
    // Slots of zero lead to a zeroed record: no route.
    const RESERVED_UNITS: u32 = 1;
    // Between those of 100,000 routes, where it is a tenth slower, and of a
    // million, where it is a tenth faster (second-level caches of 1 MiB).
    const LARGE: usize = 3 << 20;

    fn new() -> Self {
        Self {
            short: Heap::new(SLOT_BITS),
            chunks: vec![Chunk::default(); SLOTS],
            uniform: vec![0; usize::from(crate::MAX_NEXT_HOP) + 1],
            dirty: Vec::new(),
            draft: Draft::new(),
        }
    }

    #[inline]
    fn ask_first(&self, change: &Change4) {
        prefetch(&self.chunks[slot_of(change.prefix)]);
    }

    #[inline]
    fn ask_second(&self, change: &Change4) {
        if let Some(first) = self.chunks[slot_of(change.prefix)].long.first() {
            prefetch(first);
        }
    }

    #[inline]
    fn note(&mut self, _store: &mut Store, change: &Change4, may_grow: bool) -> Noted {
        if change.len <= SLOT_BITS {
            self.note_short(change, may_grow)
        } else {
            self.note_long(change, may_grow)
        }
    }

    fn replace(&mut self, _store: &mut Store, sorted: &[Route4]) {
        let Self {
            short,
            chunks,
            dirty,
            ..
        } = self;
        short.clear();
        for route in sorted.iter().filter(|route| route.len <= SLOT_BITS) {
            short.set(short_node(route.prefix, route.len), route.next_hop);
        }
        short.each_cover(0, &mut |slot, cover| {
            chunks[slot].cover(slot, cover, dirty);
        });
        let mut rest = sorted;
        for (slot, chunk) in chunks.iter_mut().enumerate() {
            let end = rest
                .iter()
                .take_while(|route| slot_of(route.prefix) <= slot);
            let (these, after) = rest.split_at(end.count());
            rest = after;
            let long = these.iter().filter(|route| route.len > SLOT_BITS);
            let long = long.map(|route| Long::new(route.prefix, route.len, route.next_hop));
            if !long.clone().eq(chunk.long.iter().copied()) {
                chunk.long.clear();
                chunk.long.reserve_exact(these.len());
                chunk.long.extend(long);
                chunk.mark(slot, dirty);
            }
        }
    }

    fn flush(&mut self, store: &mut Store) -> usize {
        let dirty = std::mem::take(&mut self.dirty);
        for slot in &dirty {
            if self.make(store, *slot as usize) {
                self.chunks[*slot as usize].is_dirty = false;
            } else {
                self.dirty.push(*slot);
            }
        }
        if self.dirty.is_empty() {
            // The list's memory, for the next changes.
            self.dirty = dirty;
            self.dirty.clear();
        }
        self.dirty.len()
    }
}

impl Records {
    fn note_long(&mut self, change: &Change4, may_grow: bool) -> Noted {
        let slot = slot_of(change.prefix);
        let chunk = &mut self.chunks[slot];
        let long = Long::new(change.prefix, change.len, 0);
        let noted = note_listed(&mut chunk.long, long, change.next_hop, may_grow);
        if noted.is_change() {
            chunk.mark(slot, &mut self.dirty);
        }
        noted
    }

    fn note_short(&mut self, change: &Change4, may_grow: bool) -> Noted {
        let node = short_node(change.prefix, change.len);
        let noted = self.short.note(node, change.next_hop, may_grow);
        if noted.is_change() {
            let cover = self.short.cover(node);
            let (chunks, dirty) = (&mut self.chunks, &mut self.dirty);
            self.short.each_covered(node, &mut |slot| {
                chunks[slot].cover(slot, cover, dirty);
            });
        }
        noted
    }

    /// Makes a slot's record anew and publishes it; `false` without space.
    fn make(&mut self, store: &mut Store, slot: usize) -> bool {
        let chunk = &self.chunks[slot];
        self.draft.clear(chunk.cover);
        for long in &chunk.long {
            let (rest, len) = (usize::from(long.rest), long.len);
            if len <= 24 {
                self.draft.fill(rest >> 8, 1 << (24 - len), long.next_hop);
            } else {
                let count = 1 << (32 - len);
                self.draft
                    .fill_deep(rest >> 8, rest & 0xff, count, long.next_hop);
            }
        }
        let old = Extent {
            at: store.slot(slot) / UNIT as u32,
            units: chunk.units.into(),
        };
        let old = Some(old).filter(|old| old.units > 0);
        let (offset, units) = match self.draft.finish() {
            Ok(next_hop) => match uniform(store, &mut self.uniform, next_hop) {
                Some(offset) => (offset, 0),
                None => return false,
            },
            Err(record) => match store.write(record) {
                Some(place) => (place.offset(), place.units as u16),
                None => return false,
            },
        };
        store.publish(slot, offset);
        if let Some(old) = old {
            store.retire(old);
        }
        self.chunks[slot].units = units;
        true
    }
}

/// The record with one answer, shared by all slots that have no other.
fn uniform(store: &mut Store, known: &mut [u32], next_hop: u16) -> Option<u32> {
    let known = &mut known[usize::from(next_hop)];
    if *known == 0 && next_hop != 0 {
        let mut record = [0; 10];
        record[8..].copy_from_slice(&next_hop.to_ne_bytes());
        *known = store.write(&record)?.offset();
    }
    Some(*known)
}

/// The slot of an address.
fn slot_of(address: u32) -> usize {
    (address >> REST_BITS) as usize
}

/// The node of a prefix up to /18.
fn short_node(prefix: u32, len: u8) -> usize {
    let bits = prefix.checked_shr(32 - u32::from(len)).unwrap_or(0);
    heap::node(bits as usize, len)
}
