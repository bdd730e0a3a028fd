//! The writer's side: all routes in a plain exact form, from which a /32's
//! record is made anew whenever a route beneath it changes.
//!
//! Routes up to /16 lie in an array as a heap does, those up to /32 in such
//! an array of their /16's, the others in the list of their /32.

use std::collections::BTreeMap;
use std::sync::Arc;

use memory::quiescent::Domain;

use super::{BLOCK, MOST_ANSWER, TOP_BITS, TOPS};
use crate::keys::{self, FIRST};
use crate::route::{Change, Change6, Config, Error, Route6, Stats, check};
use crate::store::{LINE, Place, Shared, Store, UNIT};

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
    place: Option<Place>,
    /// Next hops of routes from /17 to /32.
    short: Vec<u16>,
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
    place: Option<Place>,
}

impl Block {
    fn new() -> Self {
        Self {
            routes: 0,
            place: None,
            short: vec![0; 2 * BLOCK],
            chunks: BTreeMap::new(),
            is_chunk: vec![0; BLOCK / 64],
        }
    }

    /// The next hop of the longest route that holds all beneath a node of
    /// the heap; `above` is that of the whole block.
    fn cover(&self, node: usize, above: u16) -> u16 {
        let nodes = std::iter::successors(Some(node), |node| Some(node / 2));
        let own = nodes
            .take_while(|node| *node > 1)
            .map(|node| self.short[node]);
        own.into_iter().find(|cover| *cover != 0).unwrap_or(above)
    }

    /// The answers that the /32s beneath a node have by shorter routes.
    fn covers(&self, node: usize, above: u16, out: &mut [u16]) {
        let own = self.short[node];
        let cover = if own == 0 { above } else { own };
        match node.checked_sub(BLOCK) {
            Some(at) => out[at] = cover,
            None => {
                self.covers(2 * node, cover, out);
                self.covers(2 * node + 1, cover, out);
            }
        }
    }
}

fn top_of(prefix: u128) -> usize {
    (prefix >> (128 - TOP_BITS)) as usize
}

fn chunk_of(prefix: u128) -> u16 {
    (prefix >> (128 - FIRST)) as u16
}

impl Writer6 {
    pub(super) fn new(config: Config, domain: &Arc<Domain>) -> Result<Self, Error> {
        let bytes = config.max_bytes;
        // Zeros lie where what a slot says is an answer, as far as a node
        // would. Slots of zero say that there is no route.
        let zeros = MOST_ANSWER as usize + 1 + LINE;
        let store = Store::new(TOPS, bytes, (zeros / UNIT) as u32, domain);
        Ok(Self {
            store: store.map_err(|source| Error::Memory { bytes, source })?,
            max_routes: config.max_routes,
            max_bytes: bytes,
            routes: 0,
            short: vec![0; 2 * TOPS],
            tops: (0..TOPS).map(|_| Top::default()).collect(),
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
    /// Some 1 µs for a route longer than /32, and 10 ns for each other
    /// such route of its /32; a shorter one costs as much for each /32
    /// beneath it with routes of its own. The first route of a /16 that is
    /// longer than that takes 300 KiB of the writer's memory and 256 KiB of
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
    /// prefix the last counts. /32s whose routes are the same stay as they
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
            for route in block.chunks.values().flat_map(|chunk| &chunk.long) {
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
        let chunk = block.chunks.get(&chunk_of(change.prefix));
        let key = |route: &Route6| (route.prefix, route.len);
        chunk.is_some_and(|chunk| {
            let found = chunk
                .long
                .binary_search_by_key(&(change.prefix, change.len), key);
            found.is_ok()
        })
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
            match &top.block {
                Some(_) => self.cover_within(at, 1),
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
        let is_first = top.block.is_none();
        let block = top.block.get_or_insert_with(|| Box::new(Block::new()));
        let before = block.routes;
        let after = if change.len <= FIRST {
            let node = block_node(change.prefix, change.len);
            let new = change.next_hop.unwrap_or(0);
            let old = std::mem::replace(&mut block.short[node], new);
            block.routes = before + usize::from(new != 0) - usize::from(old != 0);
            let after = block.routes;
            if old != new {
                self.cover_within(at, node);
            }
            after
        } else {
            if note_long(block, change) {
                self.dirty.push((at as u16, chunk_of(change.prefix)));
            }
            block.routes
        };
        self.routes = self.routes + after - before;
        if is_first || after == 0 {
            self.mark_top(at);
        }
    }

    /// Has the /32s beneath a node of a block answer by the route that
    /// covers them now: at once where they have none of their own.
    fn cover_within(&mut self, at: usize, node: usize) {
        let Top { cover, block, .. } = &self.tops[at];
        let Some(block) = block else {
            return;
        };
        let cover = block.cover(node, *cover);
        let beneath = Beneath {
            block,
            top: at as u16,
            cover,
        };
        beneath.cover(node, &mut self.store, &mut self.dirty);
    }

    /// Makes the marked records anew, then the marked blocks.
    fn flush(&mut self) -> Result<(), Error> {
        let (mut dirty, tops) = (
            std::mem::take(&mut self.dirty),
            std::mem::take(&mut self.dirty_tops),
        );
        dirty.sort_unstable();
        dirty.dedup();
        for (top, chunk) in dirty {
            if !self.make(usize::from(top), chunk) {
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

    /// Makes a /32's record anew and has its slot lead there; `false`
    /// without space.
    fn make(&mut self, top: usize, at: u16) -> bool {
        let Self { store, tops, .. } = self;
        let Top { cover, block, .. } = &mut tops[top];
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
    fn make_top(&mut self, at: usize) -> bool {
        let Self { store, tops, .. } = self;
        let top = &mut tops[at];
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

/// The /32s of a block that another route covers.
struct Beneath<'a> {
    block: &'a Block,
    top: u16,
    /// That route's next hop.
    cover: u16,
}

impl Beneath<'_> {
    /// Those beneath a node, but for those that a longer route covers.
    fn cover(&self, node: usize, store: &mut Store, dirty: &mut Vec<(u16, u16)>) {
        if let Some(at) = node.checked_sub(BLOCK) {
            let has_own = self.block.is_chunk[at / 64] >> (at % 64) & 1 != 0;
            match self.block.place {
                _ if has_own => dirty.push((self.top, at as u16)),
                Some(slots) => store.publish_within(slots, at, self.cover.into()),
                // A block that is not published yet is made whole.
                None => {}
            }
            return;
        }
        for child in [2 * node, 2 * node + 1] {
            if self.block.short[child] == 0 {
                self.cover(child, store, dirty);
            }
        }
    }
}

/// Writes a block's slots; `None` where there is no space for them, or was
/// none for a record that one of them leads to.
fn write_block(store: &mut Store, block: &Block, above: u16) -> Option<Place> {
    let mut answers = vec![0; BLOCK];
    block.covers(1, above, &mut answers);
    let mut entries: Vec<u32> = answers.into_iter().map(u32::from).collect();
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

/// Puts a route into the list of its /32, or takes it out; whether that
/// changed anything.
fn note_long(block: &mut Block, change: &Change6) -> bool {
    let at = chunk_of(change.prefix);
    let chunk = block.chunks.entry(at).or_default();
    block.is_chunk[usize::from(at) / 64] |= 1 << (at % 64);
    let long = &mut chunk.long;
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

/// The place of a prefix among those up to /16.
fn heap_node(prefix: u128, len: u8) -> usize {
    1 << len | prefix.checked_shr(128 - u32::from(len)).unwrap_or(0) as usize
}

/// The place of a prefix from /17 to /32 in its block's heap.
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
