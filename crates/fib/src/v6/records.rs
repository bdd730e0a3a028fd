//! The writer's side: all routes in a plain exact form, from which a /32's
//! record is made anew whenever a route beneath it changes.
//!
//! Routes up to /16 lie in a heap ([`crate::heap`]), those up to /32 in a
//! heap of their /16's, the others in the list of their /32.

use std::collections::BTreeMap;

use super::{BLOCK, BLOCK_BITS, MOST_ANSWER, TOP_BITS, TOPS};
use crate::compiled::{Compiled, Listed, Noted, note_listed};
use crate::heap::{self, Heap};
use crate::keys::{self, FIRST};
use crate::route::{Change, Change6, Route6};
use crate::store::{Extent, LINE, Store, UNIT};

/// The routes of an IPv6 table, and where their records lie.
#[derive(Debug)]
pub struct Records {
    /// Routes up to /16.
    short: Heap,
    tops: Vec<Top>,
    /// What is to be made anew: a /16, and which of its /32s.
    dirty: Vec<(u16, u16)>,
    /// /16s whose block is to come or go.
    dirty_tops: Vec<u16>,
}

/// What the writer knows of a /16.
#[derive(Debug, Default)]
struct Top {
    /// The next hop of the longest route up to /16.
    cover: u16,
    is_dirty: bool,
    block: Option<Box<Block>>,
}

/// What the writer knows of a /16 that has longer routes.
#[derive(Debug)]
struct Block {
    routes: usize,
    /// Its slots, once readers find them.
    place: Option<Extent>,
    /// Routes from /17 to /32.
    short: Heap,
    /// The /32s that have longer routes.
    chunks: BTreeMap<u16, Chunk>,
    /// A bit for each /32 that is among `chunks`.
    is_chunk: Vec<u64>,
}

/// What the writer knows of a /32 that has longer routes, or had some when
/// its record was made.
#[derive(Debug, Default)]
struct Chunk {
    /// By prefix and length.
    long: Vec<Route6>,
    /// Its record, unless it shares one.
    place: Option<Extent>,
}

impl Listed for Route6 {
    type Key = (u128, u8);

    fn key(&self) -> (u128, u8) {
        (self.prefix, self.len)
    }

    fn next_hop(&mut self) -> &mut u16 {
        &mut self.next_hop
    }
}

impl Block {
    fn new() -> Self {
        Self {
            routes: 0,
            place: None,
            short: Heap::new(BLOCK_BITS),
            chunks: BTreeMap::new(),
            is_chunk: vec![0; BLOCK / 64],
        }
    }

    /// The next hop of the longest route that holds all beneath a node of
    /// the heap; `above` is that of the whole block.
    fn cover(&self, node: usize, above: u16) -> u16 {
        match self.short.cover(node) {
            0 => above,
            cover => cover,
        }
    }

    fn has_chunk(&self, at: usize) -> bool {
        self.is_chunk[at / 64] >> (at % 64) & 1 != 0
    }

    /// Notes a change of a route longer than /32.
    fn note_long(&mut self, change: &Change6, may_grow: bool) -> Noted {
        let at = chunk_of(change.prefix);
        if !self.has_chunk(at.into()) {
            match change.next_hop {
                None => return Noted::Same,
                Some(_) if !may_grow => return Noted::Refused,
                Some(_) => self.is_chunk[usize::from(at) / 64] |= 1 << (at % 64),
            }
        }
        let route = Route6 {
            prefix: change.prefix,
            len: change.len,
            next_hop: 0,
        };
        let chunk = self.chunks.entry(at).or_default();
        note_listed(&mut chunk.long, route, change.next_hop, may_grow)
    }
}

fn top_of(prefix: u128) -> usize {
    (prefix >> (128 - TOP_BITS)) as usize
}

fn chunk_of(prefix: u128) -> u16 {
    (prefix >> (128 - FIRST)) as u16
}

impl Compiled for Records {
    type Address = u128;
    const SLOTS: usize = TOPS;
    // Zeros lie where what a slot says is an answer, as far as a node
    // would. Slots of zero say that there is no route.
    const RESERVED_UNITS: u32 = ((MOST_ANSWER as usize + 1 + LINE) / UNIT) as u32;
    // Lookups always ask ahead.
    const LARGE: usize = usize::MAX;

    fn new() -> Self {
        Self {
            short: Heap::new(TOP_BITS),
            tops: (0..TOPS).map(|_| Top::default()).collect(),
            dirty: Vec::new(),
            dirty_tops: Vec::new(),
        }
    }

    fn note(&mut self, store: &mut Store, change: &Change6, may_grow: bool) -> Noted {
        if change.len <= TOP_BITS {
            self.note_top(store, change, may_grow)
        } else {
            self.note_within(store, change, may_grow)
        }
    }

    fn replace(&mut self, store: &mut Store, sorted: &[Route6]) {
        for gone in self.others(sorted) {
            self.note(store, &gone, true);
        }
        for route in sorted {
            self.note(store, &(*route).into(), true);
        }
    }

    /// Makes the marked records anew, then the marked blocks.
    fn flush(&mut self, store: &mut Store) -> usize {
        let mut dirty = std::mem::take(&mut self.dirty);
        let tops = std::mem::take(&mut self.dirty_tops);
        dirty.sort_unstable();
        dirty.dedup();
        for (top, chunk) in dirty {
            if !self.make(store, usize::from(top), chunk) {
                self.dirty.push((top, chunk));
            }
        }
        for top in tops {
            if !self.make_top(store, usize::from(top)) {
                self.dirty_tops.push(top);
            }
        }
        self.dirty.len() + self.dirty_tops.len()
    }
}

impl Records {
    /// The withdrawal of all routes that are not among these.
    fn others(&self, sorted: &[Route6]) -> Vec<Change6> {
        let mut others = Vec::new();
        let mut see = |prefix, len| {
            let found = sorted.binary_search_by_key(&(prefix, len), Listed::key);
            if found.is_err() {
                others.push(Change {
                    prefix,
                    len,
                    next_hop: None,
                });
            }
        };
        for (bits, len) in self.short.prefixes() {
            see(prefix_of(bits, len), len);
        }
        for (top, block) in self.tops.iter().enumerate() {
            let Some(block) = &block.block else {
                continue;
            };
            for (bits, len) in block.short.prefixes() {
                let len = TOP_BITS + len;
                see(prefix_of(top, TOP_BITS) | prefix_of(bits, len), len);
            }
            for route in block.chunks.values().flat_map(|chunk| &chunk.long) {
                see(route.prefix, route.len);
            }
        }
        others
    }

    fn note_top(&mut self, store: &mut Store, change: &Change6, may_grow: bool) -> Noted {
        let node = top_node(change.prefix, change.len);
        let noted = self.short.note(node, change.next_hop, may_grow);
        if noted.is_change() {
            let cover = self.short.cover(node);
            let mut covered = Vec::new();
            self.short.each_covered(node, &mut |top| covered.push(top));
            for at in covered {
                self.cover_top(store, at, cover);
            }
        }
        noted
    }

    /// Has a /16 know the route that covers it.
    fn cover_top(&mut self, store: &mut Store, at: usize, cover: u16) {
        let top = &mut self.tops[at];
        top.cover = cover;
        match &top.block {
            Some(_) => self.cover_within(store, at, WHOLE),
            None => self.mark_top(at),
        }
    }

    fn mark_top(&mut self, at: usize) {
        if !std::mem::replace(&mut self.tops[at].is_dirty, true) {
            self.dirty_tops.push(at as u16);
        }
    }

    /// Notes a change of a route longer than /16.
    fn note_within(&mut self, store: &mut Store, change: &Change6, may_grow: bool) -> Noted {
        let at = top_of(change.prefix);
        let top = &mut self.tops[at];
        let is_first = top.block.is_none();
        match change.next_hop {
            None if is_first => return Noted::Same,
            Some(_) if is_first && !may_grow => return Noted::Refused,
            _ => {}
        }
        let block = top.block.get_or_insert_with(|| Box::new(Block::new()));
        let node = block_node(change.prefix, change.len);
        let noted = match node {
            Some(node) => block.short.note(node, change.next_hop, may_grow),
            None => block.note_long(change, may_grow),
        };
        block.routes = noted.count(block.routes);
        let is_last = noted == Noted::Removed && block.routes == 0;
        if noted.is_change() {
            match node {
                Some(node) => self.cover_within(store, at, node),
                None => self.dirty.push((at as u16, chunk_of(change.prefix))),
            }
        }
        if is_first || is_last {
            self.mark_top(at);
        }
        noted
    }

    /// Has the /32s beneath a node of a block answer by the route that
    /// covers them now: at once where they have none of their own.
    fn cover_within(&mut self, store: &mut Store, at: usize, node: usize) {
        let Self { tops, dirty, .. } = self;
        let Top { cover, block, .. } = &tops[at];
        let Some(block) = block else {
            return;
        };
        let cover = block.cover(node, *cover);
        block
            .short
            .each_covered(node, &mut |within| match block.place {
                _ if block.has_chunk(within) => dirty.push((at as u16, within as u16)),
                Some(slots) => store.publish_within(slots, within, cover.into()),
                // A block that is not published yet is made whole.
                None => {}
            });
    }

    /// Makes a /32's record anew and has its slot lead there; `false`
    /// without space.
    fn make(&mut self, store: &mut Store, top: usize, at: u16) -> bool {
        let Top { cover, block, .. } = &mut self.tops[top];
        let Some(block) = block else {
            return true;
        };
        let cover = block.cover(BLOCK + usize::from(at), *cover);
        let long = block.chunks.get(&at).map_or(&[][..], |chunk| &chunk.long);
        let is_empty = long.is_empty();
        let (entry, place) = match keys::record(long, cover) {
            Ok(next_hop) => (next_hop.into(), None),
            Err(record) => match store.write(&record) {
                Some(place) => (place.offset(), Some(place)),
                None => return false,
            },
        };
        if let Some(slots) = block.place {
            store.publish_within(slots, at.into(), entry);
        }
        let known = block.chunks.get_mut(&at);
        if let Some(old) = known.and_then(|chunk| std::mem::replace(&mut chunk.place, place)) {
            store.retire(old);
        }
        if is_empty {
            block.chunks.remove(&at);
            block.is_chunk[usize::from(at) / 64] &= !(1 << (at % 64));
        }
        true
    }

    /// Has a /16's slot lead to a block of its own, if it has routes, or say
    /// its answer; `false` without space.
    fn make_top(&mut self, store: &mut Store, at: usize) -> bool {
        let top = &mut self.tops[at];
        match &mut top.block {
            Some(block) if block.routes > 0 => {
                if block.place.is_none() {
                    let Some(place) = write_block(store, block, top.cover) else {
                        return false;
                    };
                    block.place = Some(place);
                    store.publish(at, place.offset());
                }
            }
            _ => {
                store.publish(at, top.cover.into());
                if let Some(block) = top.block.take() {
                    let places = block.chunks.values().filter_map(|chunk| chunk.place);
                    for place in places.chain(block.place) {
                        store.retire(place);
                    }
                }
            }
        }
        top.is_dirty = false;
        true
    }
}

/// Writes a block's slots; `None` where there is no space for them, or was
/// none for a record that one of them leads to.
fn write_block(store: &mut Store, block: &Block, above: u16) -> Option<Extent> {
    let mut entries = Vec::with_capacity(BLOCK);
    block
        .short
        .each_cover(above, &mut |_, cover| entries.push(u32::from(cover)));
    for (at, chunk) in &block.chunks {
        let entry = &mut entries[usize::from(*at)];
        *entry = match chunk.place {
            Some(place) => place.offset(),
            None => keys::record(&chunk.long, *entry as u16).ok()?.into(),
        };
    }
    let bytes: Vec<u8> = entries.into_iter().flat_map(u32::to_ne_bytes).collect();
    store.write(&bytes)
}

/// The node of a block's heap that stands for all of it.
const WHOLE: usize = 1;

/// The node of a prefix up to /16.
fn top_node(prefix: u128, len: u8) -> usize {
    let bits = prefix.checked_shr(128 - u32::from(len)).unwrap_or(0);
    heap::node(bits as usize, len)
}

/// The node of a prefix from /17 to /32 in its block's heap; `None` for a
/// longer one.
fn block_node(prefix: u128, len: u8) -> Option<usize> {
    let bits = len - TOP_BITS;
    let within = (prefix >> (128 - len)) as usize % (1 << bits.min(BLOCK_BITS));
    (len <= FIRST).then(|| heap::node(within, bits))
}

/// The prefix whose first bits these are.
fn prefix_of(bits: usize, len: u8) -> u128 {
    (bits as u128)
        .checked_shl(128 - u32::from(len))
        .unwrap_or(0)
}
