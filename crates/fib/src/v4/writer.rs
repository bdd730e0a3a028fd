//! The writer's side: all routes in a plain exact form, from which a slot's
//! record is made anew whenever a route beneath it changes.
//!
//! Routes up to /18 lie in an array as a heap does: the children of entry
//! *n* are 2*n* and 2*n* + 1. Longer ones lie in the list of their slot, in
//! the order of prefix and length, so that each comes after those that hold
//! it.

use std::sync::Arc;

use memory::prefetch;
use memory::quiescent::Domain;

use super::{REST_BITS, SLOT_BITS, SLOTS};
use crate::node::Draft;
use crate::route::{Change, Change4, Config, Error, Route4, Stats, check};
use crate::store::{Place, Shared, Store, UNIT};

/// Changes that are made before their slots are made anew, once each.
const SLICE: usize = 4_096;
/// Changes ahead whose slot is asked for.
const AHEAD: usize = 8;

/// Bytes that are looked up in, above which lookups ask for lines ahead:
/// between those of 100,000 routes, where it is a tenth slower, and of a
/// million, where it is a tenth faster (second-level caches of 1 MiB).
const LARGE: usize = 3 << 20;

/// The one that changes an IPv4 table.
#[derive(Debug)]
pub struct Writer4 {
    store: Store,
    max_routes: usize,
    max_bytes: usize,
    routes: usize,
    /// Next hops of routes up to /18, 0 where there is none.
    short: Vec<u16>,
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

    /// By prefix and length.
    fn key(self) -> u32 {
        u32::from(self.rest) << 8 | u32::from(self.len)
    }
}

impl Writer4 {
    pub(super) fn new(config: Config, domain: &Arc<Domain>) -> Result<Self, Error> {
        let bytes = config.max_bytes;
        // Slots of zero lead to a zeroed record: no route.
        let store = Store::new(SLOTS, bytes, 1, domain);
        Ok(Self {
            store: store.map_err(|source| Error::Memory { bytes, source })?,
            max_routes: config.max_routes,
            max_bytes: bytes,
            routes: 0,
            short: vec![0; 2 * SLOTS],
            chunks: vec![Chunk::default(); SLOTS],
            uniform: vec![0; usize::from(crate::MAX_NEXT_HOP) + 1],
            dirty: Vec::new(),
            draft: Draft::new(),
        })
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        self.store.shared()
    }

    /// Makes changes, in order. Readers see each address's old answer or
    /// its new one, all new ones when the call returns; nobody waits.
    ///
    /// Up to 1 µs for a route longer than /18 in a slice of many, 2 alone;
    /// a route of length *n* up to /18 costs as much for each of the 2^(18 −
    /// *n*) slots beneath it that has routes of its own and whose answer it
    /// changes. A slot with thousands of host routes is made anew whole:
    /// some 5 ns for each of them.
    pub fn apply(&mut self, changes: &[Change4]) -> Result<(), Error> {
        for (at, change) in changes.iter().enumerate() {
            check(at, change)?;
        }
        let mut flushed = Ok(());
        for (number, slice) in changes.chunks(SLICE).enumerate() {
            let noted = self.note_all(slice);
            // What finds no space waits for the next flush.
            flushed = self.flush();
            if let Err(at) = noted {
                return Err(Error::Full {
                    at: number * SLICE + at,
                    max_routes: self.max_routes,
                });
            }
        }
        flushed
    }

    /// Has the table hold these routes and no others; of several for one
    /// prefix the last counts. Slots whose routes are the same stay as they
    /// are, the others change one after the other while readers go on.
    ///
    /// Some 60 ns a route, and half of that when they come in order.
    pub fn build(&mut self, routes: impl Iterator<Item = Route4>) -> Result<(), Error> {
        let mut sorted = Vec::with_capacity(routes.size_hint().0);
        for (at, route) in routes.enumerate() {
            let (prefix, len) = (route.prefix, route.len);
            let next_hop = Some(route.next_hop);
            check(
                at,
                &Change {
                    prefix,
                    len,
                    next_hop,
                },
            )?;
            let key = u64::from(prefix) << 6 | u64::from(len);
            sorted.push(key << 16 | u64::from(route.next_hop));
        }
        sorted.sort_by_key(|route| route >> 16);
        let mut kept = 0;
        for at in 0..sorted.len() {
            let same = kept > 0 && sorted[kept - 1] >> 16 == sorted[at] >> 16;
            kept -= usize::from(same);
            sorted[kept] = sorted[at];
            kept += 1;
        }
        sorted.truncate(kept);
        if kept > self.max_routes {
            return Err(Error::Full {
                at: self.max_routes,
                max_routes: self.max_routes,
            });
        }
        self.routes = kept;
        self.replace(&sorted);
        self.flush()
    }

    /// Takes back the space that readers have passed, without a change. The
    /// next change does so as well.
    pub fn reclaim(&mut self) {
        self.store.begin_grace();
        self.store.reclaim();
    }

    /// What it holds. O(1).
    pub fn stats(&self) -> Stats {
        let (lookup_bytes, spread_bytes, retired_bytes) = self.store.bytes();
        Stats {
            routes: self.routes,
            lookup_bytes,
            spread_bytes,
            retired_bytes,
        }
    }

    /// Notes changes; which one was too many.
    fn note_all(&mut self, changes: &[Change4]) -> Result<(), usize> {
        for (at, change) in changes.iter().enumerate() {
            if let Some(ahead) = changes.get(at + AHEAD) {
                prefetch(&self.chunks[(ahead.prefix >> REST_BITS) as usize]);
            }
            if let Some(ahead) = changes.get(at + AHEAD / 2) {
                let chunk = &self.chunks[(ahead.prefix >> REST_BITS) as usize];
                if let Some(first) = chunk.long.first() {
                    prefetch(first);
                }
            }
            if !self.note(change) {
                return Err(at);
            }
        }
        Ok(())
    }

    /// Notes a change in the plain form; `false` where it is a route too
    /// many.
    fn note(&mut self, change: &Change4) -> bool {
        if change.len <= SLOT_BITS {
            self.note_short(change)
        } else {
            self.note_long(change)
        }
    }

    fn note_long(&mut self, change: &Change4) -> bool {
        let slot = (change.prefix >> REST_BITS) as usize;
        let chunk = &mut self.chunks[slot];
        let long = Long::new(change.prefix, change.len, change.next_hop.unwrap_or(0));
        match (
            chunk
                .long
                .binary_search_by_key(&long.key(), |long| long.key()),
            change.next_hop,
        ) {
            (Ok(at), Some(next_hop)) => {
                if chunk.long[at].next_hop == next_hop {
                    return true;
                }
                chunk.long[at].next_hop = next_hop;
            }
            (Ok(at), None) => {
                chunk.long.remove(at);
                self.routes -= 1;
            }
            (Err(_), None) => return true,
            (Err(at), Some(_)) => {
                if self.routes == self.max_routes {
                    return false;
                }
                chunk.long.insert(at, long);
                self.routes += 1;
            }
        }
        self.mark(slot);
        true
    }

    fn note_short(&mut self, change: &Change4) -> bool {
        let node = heap_node(change.prefix, change.len);
        let old = self.short[node];
        let new = change.next_hop.unwrap_or(0);
        if old == 0 && new != 0 {
            if self.routes == self.max_routes {
                return false;
            }
            self.routes += 1;
        }
        if old != 0 && new == 0 {
            self.routes -= 1;
        }
        self.short[node] = new;
        if old != new {
            let above = std::iter::successors(Some(node), |node| Some(node / 2));
            let above = above.take_while(|node| *node > 0);
            let cover = above.map(|node| self.short[node]).find(|cover| *cover != 0);
            self.cover(node, cover.unwrap_or(0));
        }
        true
    }

    /// Has the slots beneath a node know the route that covers them.
    fn cover(&mut self, node: usize, cover: u16) {
        if let Some(slot) = node.checked_sub(SLOTS) {
            if self.chunks[slot].cover != cover {
                self.chunks[slot].cover = cover;
                self.mark(slot);
            }
            return;
        }
        for child in [2 * node, 2 * node + 1] {
            if self.short[child] == 0 {
                self.cover(child, cover);
            }
        }
    }

    fn mark(&mut self, slot: usize) {
        let was = std::mem::replace(&mut self.chunks[slot].is_dirty, true);
        if !was {
            self.dirty.push(slot as u32);
        }
    }

    /// All routes, by prefix and length, in place of those there are.
    fn replace(&mut self, sorted: &[u64]) {
        let prefix = |route: u64| (route >> 22) as u32;
        let len = |route: u64| (route >> 16 & 63) as u8;
        self.short.fill(0);
        for route in sorted.iter().filter(|route| len(**route) <= SLOT_BITS) {
            self.short[heap_node(prefix(*route), len(*route))] = *route as u16;
        }
        self.cover_all(1, 0);
        let mut rest = sorted;
        for slot in 0..SLOTS {
            let end = rest
                .iter()
                .take_while(|route| (prefix(**route) >> REST_BITS) as usize <= slot);
            let (these, after) = rest.split_at(end.count());
            rest = after;
            let long = these.iter().filter(|route| len(**route) > SLOT_BITS);
            let long = long.map(|route| Long::new(prefix(*route), len(*route), *route as u16));
            let known = &mut self.chunks[slot].long;
            if !long.clone().eq(known.iter().copied()) {
                known.clear();
                known.reserve_exact(these.len());
                known.extend(long);
                self.mark(slot);
            }
        }
    }

    /// As `cover`, of all nodes with their own routes.
    fn cover_all(&mut self, node: usize, above: u16) {
        let own = self.short[node];
        let cover = if own == 0 { above } else { own };
        if let Some(slot) = node.checked_sub(SLOTS) {
            if self.chunks[slot].cover != cover {
                self.chunks[slot].cover = cover;
                self.mark(slot);
            }
            return;
        }
        self.cover_all(2 * node, cover);
        self.cover_all(2 * node + 1, cover);
    }

    /// Makes the marked slots' records anew.
    fn flush(&mut self) -> Result<(), Error> {
        let dirty = std::mem::take(&mut self.dirty);
        for slot in &dirty {
            if self.make(*slot as usize) {
                self.chunks[*slot as usize].is_dirty = false;
            } else {
                self.dirty.push(*slot);
            }
        }
        self.store.tell_whether_larger(LARGE);
        match self.dirty.len() {
            0 => {
                // The list's memory, for the next changes.
                self.dirty = dirty;
                self.dirty.clear();
                Ok(())
            }
            waiting => Err(Error::NoSpace {
                waiting,
                max_bytes: self.max_bytes,
            }),
        }
    }

    /// Makes a slot's record anew and publishes it; `false` without space.
    fn make(&mut self, slot: usize) -> bool {
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
        let old = Place {
            at: self.store.slot(slot) / UNIT as u32,
            units: chunk.units.into(),
        };
        let old = Some(old).filter(|old| old.units > 0);
        let (offset, units) = match self.draft.finish() {
            Ok(next_hop) => match uniform(&mut self.store, &mut self.uniform, next_hop) {
                Some(offset) => (offset, 0),
                None => return false,
            },
            Err(record) => match self.store.write(record) {
                Some(place) => (place.offset(), place.units as u16),
                None => return false,
            },
        };
        self.store.publish(slot, offset);
        if let Some(old) = old {
            self.store.retire(old);
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

/// The place of a prefix among those up to /18.
fn heap_node(prefix: u32, len: u8) -> usize {
    1 << len | prefix.checked_shr(32 - u32::from(len)).unwrap_or(0) as usize
}
