//! The writer's side: all routes in a plain exact form, from which a /29's
//! record is made anew whenever a route beneath it changes.
//!
//! Routes up to /16 lie in an array as a heap does, those up to /29 in such
//! an array of their /16's, the others in the list of their /29.

use std::sync::Arc;

use memory::quiescent::Domain;

use super::{BLOCK, BLOCK_BITS, FIRST, TOP_BITS, TOPS};
use crate::keys;
use crate::route::{Change, Change6, Config, Error, Route6, Stats, check};
use crate::store::{Place, Shared, Store};

/// Changes that are made before their records are made anew, once each.
const SLICE: usize = 4_096;

/// The one that changes an IPv6 table.
#[derive(Debug)]
pub struct Writer6 {
    store: Store,
    max_routes: usize,
    max_bytes: usize,
    routes: usize,
    /// Next hops of routes up to /16, 0 where there is none.
    short: Vec<u16>,
    tops: Vec<Top>,
    /// For each next hop, the record with that answer alone, and the block
    /// whose slots all lead there.
    uniform: Vec<Option<u32>>,
    uniform_blocks: Vec<Option<u32>>,
    /// What is to be made anew: a /16, and which of its /29s.
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
    place: Option<Place>,
    /// Next hops of routes from /17 to /29.
    short: Vec<u16>,
    chunks: Vec<Chunk>,
}

/// What the writer knows of a /29.
#[derive(Debug, Clone, Default)]
struct Chunk {
    /// Routes longer than /29, by prefix and length.
    long: Vec<Route6>,
    /// The next hop of the longest route up to /29.
    cover: u16,
    is_dirty: bool,
    /// Its record, unless it shares one.
    place: Option<Place>,
}

impl Chunk {
    /// The answer of a chunk without a record.
    fn one_answer(&self) -> u16 {
        // Routes that all say the same leave no record.
        let first = self.long.first();
        first.map_or(self.cover, |_| {
            keys::record(FIRST, &self.long, self.cover).unwrap_or(self.cover)
        })
    }
}

impl Block {
    fn new(cover: u16) -> Self {
        let chunk = Chunk {
            cover,
            ..Chunk::default()
        };
        Self {
            routes: 0,
            place: None,
            short: vec![0; 2 * BLOCK],
            chunks: vec![chunk; BLOCK],
        }
    }
}

fn top_of(prefix: u128) -> usize {
    (prefix >> (128 - TOP_BITS)) as usize
}

fn chunk_of(prefix: u128) -> usize {
    (prefix >> (128 - FIRST)) as usize % BLOCK
}

impl Writer6 {
    pub(super) fn new(config: Config, domain: &Arc<Domain>) -> Result<Self, Error> {
        let bytes = config.max_bytes;
        // Slots of zero lead to a zeroed block, whose slots lead to a
        // zeroed record: no route.
        let block_units = (BLOCK * 4 / crate::store::UNIT) as u32;
        let store = Store::new(TOPS, bytes, block_units, domain);
        let mut uniform = vec![None; usize::from(crate::MAX_NEXT_HOP) + 1];
        uniform[0] = Some(0);
        Ok(Self {
            store: store.map_err(|source| Error::Memory { bytes, source })?,
            max_routes: config.max_routes,
            max_bytes: bytes,
            routes: 0,
            short: vec![0; 2 * TOPS],
            tops: (0..TOPS).map(|_| Top::default()).collect(),
            uniform_blocks: uniform.clone(),
            uniform,
            dirty: Vec::new(),
            dirty_tops: Vec::new(),
        })
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        self.store.shared()
    }

    /// Makes changes, in order. Readers see each address's old answer or
    /// its new one, all new ones when the call returns; nobody waits.
    ///
    /// Some 1 µs for a route longer than /29, and 10 ns for each other
    /// such route of its /29; a shorter one costs as much for each /29
    /// beneath it with routes of its own. The first route of a /16 that is
    /// longer than that takes 300 KiB of the writer's memory and 32 KiB of
    /// the table's.
    pub fn apply(&mut self, changes: &[Change6]) -> Result<(), Error> {
        for (at, change) in changes.iter().enumerate() {
            check(at, change)?;
        }
        let mut flushed = Ok(());
        for (number, slice) in changes.chunks(SLICE).enumerate() {
            let noted = slice.iter().position(|change| !self.note(change));
            // What finds no space waits for the next flush.
            flushed = self.flush();
            if let Some(at) = noted {
                return Err(Error::Full {
                    at: number * SLICE + at,
                    max_routes: self.max_routes,
                });
            }
        }
        flushed
    }

    /// Has the table hold these routes and no others; of several for one
    /// prefix the last counts. /29s whose routes are the same stay as they
    /// are, the others change one after the other while readers go on.
    pub fn build(&mut self, routes: impl Iterator<Item = Route6>) -> Result<(), Error> {
        let mut sorted: Vec<Route6> = Vec::with_capacity(routes.size_hint().0);
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
            sorted.push(route);
        }
        // The last of equals first, which is the one that stays.
        sorted.reverse();
        sorted.sort_by_key(|route| (route.prefix, route.len));
        sorted.dedup_by_key(|route| (route.prefix, route.len));
        if sorted.len() > self.max_routes {
            return Err(Error::Full {
                at: self.max_routes,
                max_routes: self.max_routes,
            });
        }
        self.withdraw_others(&sorted);
        for route in &sorted {
            self.note(&Change {
                prefix: route.prefix,
                len: route.len,
                next_hop: Some(route.next_hop),
            });
        }
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

    /// Notes the withdrawal of all routes that are not among these.
    fn withdraw_others(&mut self, sorted: &[Route6]) {
        let mut gone = Vec::new();
        let mut see = |prefix, len| {
            let key = |route: &Route6| (route.prefix, route.len);
            if sorted.binary_search_by_key(&(prefix, len), key).is_err() {
                gone.push(Change {
                    prefix,
                    len,
                    next_hop: None,
                });
            }
        };
        each_of_heap(&self.short, 0, &mut see);
        for (top, block) in self.tops.iter().enumerate() {
            let Some(block) = &block.block else {
                continue;
            };
            let above = (top as u128) << (128 - TOP_BITS);
            each_of_heap(&block.short, TOP_BITS, |bits, len| see(above | bits, len));
            for route in block.chunks.iter().flat_map(|chunk| &chunk.long) {
                see(route.prefix, route.len);
            }
        }
        for change in gone {
            self.note(&change);
        }
    }

    /// Notes a change in the plain form; `false` where it is a route too
    /// many.
    fn note(&mut self, change: &Change6) -> bool {
        let is_new = change.next_hop.is_some() && !self.holds(change);
        if is_new && self.routes == self.max_routes {
            return false;
        }
        if change.len <= TOP_BITS {
            self.note_top(change);
        } else if change.next_hop.is_some() || self.holds(change) {
            self.note_within(change);
        }
        true
    }

    fn holds(&self, change: &Change6) -> bool {
        if change.len <= TOP_BITS {
            return self.short[heap_node(change.prefix, change.len)] != 0;
        }
        let Some(block) = &self.tops[top_of(change.prefix)].block else {
            return false;
        };
        if change.len <= FIRST {
            return block.short[block_node(change.prefix, change.len)] != 0;
        }
        let long = &block.chunks[chunk_of(change.prefix)].long;
        let key = |route: &Route6| (route.prefix, route.len);
        long.binary_search_by_key(&(change.prefix, change.len), key)
            .is_ok()
    }

    fn note_top(&mut self, change: &Change6) {
        let node = heap_node(change.prefix, change.len);
        let new = change.next_hop.unwrap_or(0);
        let old = std::mem::replace(&mut self.short[node], new);
        self.routes = self.routes + usize::from(new != 0) - usize::from(old != 0);
        if old == new {
            return;
        }
        let above = std::iter::successors(Some(node), |node| Some(node / 2));
        let above = above.take_while(|node| *node > 0);
        let cover = above.map(|node| self.short[node]).find(|cover| *cover != 0);
        self.cover_tops(node, cover.unwrap_or(0));
    }

    /// Has the /16s beneath a node know the route that covers them.
    fn cover_tops(&mut self, node: usize, cover: u16) {
        if let Some(at) = node.checked_sub(TOPS) {
            let top = &mut self.tops[at];
            top.cover = cover;
            match &mut top.block {
                Some(block) => cover_chunks(block, at as u16, 1, cover, &mut self.dirty),
                None => self.mark_top(at),
            }
            return;
        }
        for child in [2 * node, 2 * node + 1] {
            if self.short[child] == 0 {
                self.cover_tops(child, cover);
            }
        }
    }

    fn mark_top(&mut self, at: usize) {
        if !std::mem::replace(&mut self.tops[at].is_dirty, true) {
            self.dirty_tops.push(at as u16);
        }
    }

    /// Notes a change of a route longer than /16, which is new or there.
    fn note_within(&mut self, change: &Change6) {
        let at = top_of(change.prefix);
        let top = &mut self.tops[at];
        let cover = top.cover;
        let is_first = top.block.is_none();
        let block = top.block.get_or_insert_with(|| Box::new(Block::new(cover)));
        let before = block.routes;
        if change.len <= FIRST {
            let node = block_node(change.prefix, change.len);
            let new = change.next_hop.unwrap_or(0);
            let old = std::mem::replace(&mut block.short[node], new);
            block.routes = before + usize::from(new != 0) - usize::from(old != 0);
            if old != new {
                let above = std::iter::successors(Some(node), |node| Some(node / 2));
                let above = above.take_while(|node| *node > 1);
                let own = above
                    .map(|node| block.short[node])
                    .find(|cover| *cover != 0);
                cover_chunks(
                    block,
                    at as u16,
                    node,
                    own.unwrap_or(cover),
                    &mut self.dirty,
                );
            }
        } else {
            let chunk = chunk_of(change.prefix);
            if note_long(block, chunk, change) {
                mark(block, at as u16, chunk, &mut self.dirty);
            }
        }
        let after = block.routes;
        self.routes = self.routes + after - before;
        if is_first || after == 0 {
            self.mark_top(at);
        }
    }

    /// Makes the marked records anew, then the marked blocks.
    fn flush(&mut self) -> Result<(), Error> {
        let (dirty, tops) = (
            std::mem::take(&mut self.dirty),
            std::mem::take(&mut self.dirty_tops),
        );
        for (top, chunk) in dirty {
            if !self.make(usize::from(top), usize::from(chunk)) {
                self.dirty.push((top, chunk));
            }
        }
        for top in tops {
            if !self.make_top(usize::from(top)) {
                self.dirty_tops.push(top);
            }
        }
        match self.dirty.len() + self.dirty_tops.len() {
            0 => Ok(()),
            waiting => Err(Error::NoSpace {
                waiting,
                max_bytes: self.max_bytes,
            }),
        }
    }

    /// Makes a /29's record anew and has its slot lead there; `false`
    /// without space.
    fn make(&mut self, top: usize, at: usize) -> bool {
        let Self {
            store,
            tops,
            uniform,
            ..
        } = self;
        let Some(block) = &mut tops[top].block else {
            return true;
        };
        let chunk = &mut block.chunks[at];
        let (unit, place) = match keys::record(FIRST, &chunk.long, chunk.cover) {
            Ok(next_hop) => match uniform_record(store, uniform, next_hop) {
                Some(unit) => (unit, None),
                None => return false,
            },
            Err(record) => match store.write(&record) {
                Some(place) => (place.at, Some(place)),
                None => return false,
            },
        };
        let old = std::mem::replace(&mut chunk.place, place);
        chunk.is_dirty = false;
        if let Some(slots) = block.place {
            store.publish_within(slots, at, unit);
        }
        if let Some(old) = old {
            store.retire(old);
        }
        true
    }

    /// Has a /16's slot lead to a block of its own, if it has routes, or to
    /// the one that all with its answer share; `false` without space.
    fn make_top(&mut self, at: usize) -> bool {
        let Self {
            store,
            tops,
            uniform,
            uniform_blocks,
            ..
        } = self;
        let top = &mut tops[at];
        if top.block.as_ref().is_some_and(|block| block.routes > 0) {
            // What could not be made yet has no place and no record: all
            // of it comes when there is space.
            let Some(block) = &mut top.block else {
                return true;
            };
            if block.place.is_none() && block.chunks.iter().any(|chunk| chunk.is_dirty) {
                return false;
            }
            if block.place.is_none() {
                let mut slots = Vec::with_capacity(4 * BLOCK);
                for chunk in &block.chunks {
                    let own = chunk.place.map(|place| place.at);
                    let mut shared = |next_hop| uniform_record(store, uniform, next_hop);
                    let Some(unit) = own.or_else(|| shared(chunk.one_answer())) else {
                        return false;
                    };
                    slots.extend_from_slice(&unit.to_ne_bytes());
                }
                let Some(place) = store.write(&slots) else {
                    return false;
                };
                block.place = Some(place);
                store.publish(at, place.at);
            }
        } else {
            let cover = top.cover;
            let Some(unit) = uniform_block(store, uniform, uniform_blocks, cover) else {
                return false;
            };
            store.publish(at, unit);
            if let Some(block) = top.block.take() {
                let places = block.chunks.iter().filter_map(|chunk| chunk.place);
                for place in places.chain(block.place) {
                    store.retire(place);
                }
            }
        }
        top.is_dirty = false;
        true
    }
}

/// Puts a route into the list of its /29, or takes it out; whether that
/// changed anything.
fn note_long(block: &mut Block, chunk: usize, change: &Change6) -> bool {
    let long = &mut block.chunks[chunk].long;
    let key = |route: &Route6| (route.prefix, route.len);
    let found = long.binary_search_by_key(&(change.prefix, change.len), key);
    match (found, change.next_hop) {
        (Ok(at), Some(next_hop)) => {
            return std::mem::replace(&mut long[at].next_hop, next_hop) != next_hop;
        }
        (Ok(at), None) => {
            long.remove(at);
            block.routes -= 1;
        }
        (Err(at), Some(next_hop)) => {
            let route = Route6 {
                prefix: change.prefix,
                len: change.len,
                next_hop,
            };
            long.insert(at, route);
            block.routes += 1;
        }
        (Err(_), None) => return false,
    }
    true
}

/// Has the /29s beneath a node of a block know the route that covers them.
fn cover_chunks(block: &mut Block, top: u16, node: usize, cover: u16, dirty: &mut Vec<(u16, u16)>) {
    if let Some(at) = node.checked_sub(BLOCK) {
        if block.chunks[at].cover != cover {
            block.chunks[at].cover = cover;
            mark(block, top, at, dirty);
        }
        return;
    }
    for child in [2 * node, 2 * node + 1] {
        if block.short[child] == 0 {
            cover_chunks(block, top, child, cover, dirty);
        }
    }
}

fn mark(block: &mut Block, top: u16, chunk: usize, dirty: &mut Vec<(u16, u16)>) {
    if !std::mem::replace(&mut block.chunks[chunk].is_dirty, true) {
        dirty.push((top, chunk as u16));
    }
}

/// The record with one answer, shared by all /29s that have no other.
fn uniform_record(store: &mut Store, known: &mut [Option<u32>], next_hop: u16) -> Option<u32> {
    let known = &mut known[usize::from(next_hop)];
    if known.is_none() {
        *known = Some(store.write(&keys::uniform(FIRST, next_hop))?.at);
    }
    *known
}

/// The block whose slots all have one answer.
fn uniform_block(
    store: &mut Store,
    records: &mut [Option<u32>],
    blocks: &mut [Option<u32>],
    next_hop: u16,
) -> Option<u32> {
    let known = &mut blocks[usize::from(next_hop)];
    if known.is_none() {
        let record = uniform_record(store, records, next_hop)?;
        let slots = record.to_ne_bytes().repeat(BLOCK);
        *known = Some(store.write(&slots)?.at);
    }
    *known
}

/// The place of a prefix among those up to /16.
fn heap_node(prefix: u128, len: u8) -> usize {
    1 << len | prefix.checked_shr(128 - u32::from(len)).unwrap_or(0) as usize
}

/// The place of a prefix from /17 to /29 in its block's heap.
fn block_node(prefix: u128, len: u8) -> usize {
    let bits = len - TOP_BITS;
    (1 << bits) | ((prefix >> (128 - len)) as usize % (1 << bits))
}

/// The routes of a heap: prefix and length. The heap's own bits come after
/// `before` others.
fn each_of_heap(heap: &[u16], before: u8, mut see: impl FnMut(u128, u8)) {
    for (node, next_hop) in heap.iter().enumerate().skip(1) {
        if *next_hop != 0 {
            let bits = node.ilog2() as u8;
            let len = before + bits;
            let prefix = (node as u128 - (1 << bits)).checked_shl(128 - u32::from(len));
            see(prefix.unwrap_or(0), len);
        }
    }
}

/// A block's heap has as many levels as a block has bits.
const _: () = assert!(BLOCK == 1 << BLOCK_BITS);
