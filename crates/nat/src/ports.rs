//! Which alias ports may be free: how many a destination uses, and for the
//! crowded ones which.
//!
//! For the engine's port choice. A *group* is what may not share a port: an
//! alias address and protocol, and of the remote what the mapping depends
//! on. Most groups have a few flows, and the first random port is free. A
//! group that comes to use half of the range gets a map with a bit for each
//! port, learned by looking [`LEARN`] ports up with each new flow, so that it
//! is known whole long before the range is full: then a free port costs a
//! look into the map, and "none" costs nothing.
//!
//! A map has a queue as well, of ports whose flows may give them up: each
//! one's when it is made (nobody has answered yet) and when it is over. What
//! stands there is a hint, and looked at before it is believed.
//!
//! ```text
//!   group ──hash──> counter            exact, or too high where two groups meet
//!              └──> map  [known used bits] [words full] looked-up-to ─ used
//!                        queue: oldest ... latest
//! ```

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher as StdHasher};

use crate::key::Random;
use crate::shards::PortSlice;

/// Ports looked up with each new flow of a group until its map is whole.
pub const LEARN: u32 = 64;
/// Ports tried for a new flow at most, before "none" where the map is not
/// whole yet: after a rule was changed, or two maps were wanted too many.
pub const MOST_TRIES: u32 = 512;
/// A range up to this is tried port by port; it needs no map.
pub const SMALL_RANGE: u32 = 64;
/// Flows for each counter, on average at the cap.
const FLOWS_PER_COUNTER: usize = 64;
/// Memory of all maps, bytes for each flow of the cap.
const MAP_BYTES_PER_FLOW: usize = 6;

/// Alias ports that were given back by what holds them against every group
/// (one-shot redirects): the last few. A map that fell behind by more learns
/// anew.
#[derive(Debug, Clone, Default)]
pub struct Released {
    ports: [u16; RELEASED_KEPT],
    count: u64,
}

/// Ports kept in [`Released`].
const RELEASED_KEPT: usize = 32;

impl Released {
    /// `ports` ports from one on (host order) were given back; 0: all.
    pub fn note(&mut self, port: u16, ports: u16) {
        let most = RELEASED_KEPT as u64 + 1;
        let steps = match ports {
            0 => most,
            ports => u64::from(ports).min(most),
        };
        for step in 0..steps {
            let at = (self.count + step) as usize % RELEASED_KEPT;
            if let Some(place) = self.ports.get_mut(at) {
                *place = port.wrapping_add(step as u16);
            }
        }
        self.count += steps;
    }

    /// Those since a count; `None`: they are not known any more.
    fn since(&self, seen: u64) -> Option<impl Iterator<Item = u16>> {
        let kept = self.count - seen <= RELEASED_KEPT as u64;
        let all = (seen..self.count).map(|count| count as usize % RELEASED_KEPT);
        kept.then(|| all.filter_map(|at| self.ports.get(at).copied()))
    }
}

/// A group, by its hash: seeded, 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Group(pub u64);

/// The hash is one already.
#[derive(Debug, Default)]
struct Through(u64);

impl StdHasher for Through {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// Which ports of the range a group uses, as far as known.
#[derive(Debug)]
pub struct Map {
    /// A bit for each port of the range, set: known to be used.
    words: Vec<u64>,
    /// A bit for each word, set: it is full.
    full: Vec<u64>,
    /// Ports from the first on that were looked up.
    learned: u32,
    /// Where it is looked next for ports of expired flows.
    doubted: u32,
    used: u32,
    ports: u32,
    /// How much of [`Released`] it has seen.
    released: u64,
    givers: Queue,
}

/// Places of ports whose flows may give them up, each once, the oldest first.
#[derive(Debug)]
struct Queue {
    places: VecDeque<u16>,
    /// A bit for each place that stands in it.
    within: Vec<u64>,
}

impl Queue {
    fn new(ports: u32) -> Self {
        Self {
            places: VecDeque::with_capacity(ports as usize),
            within: vec![0; ports.div_ceil(64) as usize],
        }
    }

    /// Changes whether a place stands in it; whether that was new.
    fn mark(&mut self, place: u32, is_within: bool) -> bool {
        let Some(word) = self.within.get_mut((place / 64) as usize) else {
            return false;
        };
        let bit = 1 << (place % 64);
        let was = *word & bit != 0;
        *word = if is_within { *word | bit } else { *word & !bit };
        was != is_within
    }

    fn push(&mut self, place: u32) {
        if self.mark(place, true) {
            self.places.push_back(place as u16);
        }
    }

    fn push_first(&mut self, place: u32) {
        if self.mark(place, true) {
            self.places.push_front(place as u16);
        }
    }

    fn pop(&mut self) -> Option<u32> {
        let place = u32::from(self.places.pop_front()?);
        self.mark(place, false);
        Some(place)
    }
}

impl Map {
    fn new(ports: u32) -> Self {
        let words = ports.div_ceil(64) as usize;
        let mut map = Self {
            words: vec![0; words],
            full: vec![0; words.div_ceil(64)],
            learned: 0,
            doubted: 0,
            used: 0,
            ports,
            released: 0,
            givers: Queue::new(ports),
        };
        map.bound();
        map
    }

    /// What lies behind the range is used for ever.
    fn bound(&mut self) {
        let words = self.words.len();
        for port in self.ports..words as u32 * 64 {
            self.set(port);
        }
        for word in words..words.div_ceil(64) * 64 {
            if let Some(full) = self.full.get_mut(word / 64) {
                *full |= 1 << (word % 64);
            }
        }
        self.used = 0;
    }

    /// Knows nothing any more.
    fn reset(&mut self) {
        self.words.fill(0);
        self.full.fill(0);
        self.learned = 0;
        self.bound();
    }

    fn bytes(ports: u32) -> usize {
        let words = ports.div_ceil(64) as usize;
        (2 * words + words.div_ceil(64)) * 8 + ports as usize * 2
    }

    /// A port may be given up, after all those that may already.
    pub fn may_give(&mut self, port: u32) {
        self.givers.push(port);
    }

    /// The same, before all others.
    pub fn may_give_first(&mut self, port: u32) {
        self.givers.push_first(port);
    }

    /// The first port that may be given up; it is none of them any more.
    pub fn next_giver(&mut self) -> Option<u32> {
        self.givers.pop()
    }

    /// Marks a port as used.
    pub fn set(&mut self, port: u32) {
        let word = (port / 64) as usize;
        let Some(bits) = self.words.get_mut(word) else {
            return;
        };
        let bit = 1 << (port % 64);
        self.used += u32::from(*bits & bit == 0);
        *bits |= bit;
        if *bits == u64::MAX
            && let Some(full) = self.full.get_mut(word / 64)
        {
            *full |= 1 << (word % 64);
        }
    }

    fn clear(&mut self, port: u32) {
        let word = (port / 64) as usize;
        let Some(bits) = self.words.get_mut(word) else {
            return;
        };
        let bit = 1 << (port % 64);
        self.used -= u32::from(*bits & bit != 0);
        *bits &= !bit;
        if let Some(full) = self.full.get_mut(word / 64) {
            *full &= !(1 << (word % 64));
        }
    }

    /// Whether every used port is marked.
    pub fn is_whole(&self) -> bool {
        self.learned >= self.ports
    }

    /// Whether no port is free, for sure or as far as known.
    pub fn is_full(&self) -> bool {
        self.used >= self.ports
    }

    /// A port not known to be used: the first from a random one on.
    pub fn candidate(&self, random: &mut Random) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        let start = random.below(self.ports);
        let (word, bit) = ((start / 64) as usize, start % 64);
        let own = self.words.get(word).copied().unwrap_or(u64::MAX);
        let rest = !own & (u64::MAX << bit);
        if rest != 0 {
            return Some(word as u32 * 64 + rest.trailing_zeros());
        }
        let word = self.word_with_room(word + 1)?;
        let bits = !self.words.get(word).copied().unwrap_or(u64::MAX);
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// The first word with a free bit from `from` on, around the end.
    fn word_with_room(&self, from: usize) -> Option<usize> {
        let groups = self.full.len();
        let mut at = from / 64;
        let mut mask = u64::MAX << (from % 64);
        for _ in 0..=groups {
            if at >= groups {
                (at, mask) = (0, u64::MAX);
            }
            let room = !self.full.get(at).copied().unwrap_or(u64::MAX) & mask;
            if room != 0 {
                return Some(at * 64 + room.trailing_zeros() as usize);
            }
            (at, mask) = (at + 1, u64::MAX);
        }
        None
    }

    /// The next port to be looked up again, all in turn.
    pub fn next_to_doubt(&mut self) -> u32 {
        self.doubted += 1;
        if self.doubted >= self.ports {
            self.doubted = 0;
        }
        self.doubted
    }

    /// The next ports to be looked up.
    pub fn next_to_learn(&mut self) -> std::ops::Range<u32> {
        let from = self.learned;
        self.learned = (from + LEARN).min(self.ports);
        from..self.learned
    }
}

/// Counters and maps of all groups.
#[derive(Debug)]
pub struct Ports {
    counters: Vec<u32>,
    maps: HashMap<Group, Map, BuildHasherDefault<Through>>,
    most_maps_bytes: usize,
    maps_bytes: usize,
    span: Span,
}

/// The ports of the range, or those of one part of it.
#[derive(Debug, Clone, Copy)]
struct Span {
    first: u16,
    last: u16,
    slice: Option<PortSlice>,
    /// Ports of the part below the range.
    below: u32,
    ports: u32,
}

impl Span {
    fn new(first: u16, last: u16, slice: Option<PortSlice>) -> Self {
        let (from, to) = (u32::from(first), u32::from(last.max(first)) + 1);
        let (below, end) = match slice {
            None => (from, to),
            Some(slice) => (slice.below(from), slice.below(to)),
        };
        Self {
            first,
            last,
            slice,
            below,
            ports: end - below,
        }
    }

    /// A port by its place, host order.
    #[inline]
    fn port(&self, place: u32) -> u16 {
        match self.slice {
            None => self.first.wrapping_add(place as u16),
            Some(slice) => slice.port(self.below + place),
        }
    }

    /// The place of a port.
    #[inline]
    fn place(&self, port: u16) -> Option<u32> {
        let before = match self.slice {
            None => u32::from(port),
            Some(slice) => {
                let before = slice.below(port.into());
                (slice.port(before) == port).then_some(before)?
            }
        };
        let place = before.checked_sub(self.below)?;
        (place < self.ports).then_some(place)
    }
}

impl Ports {
    pub fn new(first: u16, last: u16, max_flows: usize) -> Self {
        let counters = (max_flows / FLOWS_PER_COUNTER).next_power_of_two().max(64);
        Self {
            counters: vec![0; counters],
            maps: HashMap::default(),
            most_maps_bytes: max_flows * MAP_BYTES_PER_FLOW + 2 * Map::bytes(1 << 16),
            maps_bytes: 0,
            span: Span::new(first, last, None),
        }
    }

    /// Another range: what was learned is forgotten.
    pub fn set_range(&mut self, first: u16, last: u16) {
        self.forget();
        self.span = Span::new(first, last, self.span.slice);
    }

    /// Only the ports of a part: what was learned is forgotten.
    pub fn set_port_slice(&mut self, slice: PortSlice) {
        self.forget();
        self.span = Span::new(self.span.first, self.span.last, Some(slice));
    }

    /// Forgets what was learned: a rule took or gave ports.
    pub fn forget(&mut self) {
        self.maps.clear();
        self.maps_bytes = 0;
    }

    /// Ports of the range.
    pub fn count(&self) -> u32 {
        self.span.ports
    }

    /// A port of the range by its place, host order.
    #[inline]
    pub fn port(&self, place: u32) -> u16 {
        self.span.port(place)
    }

    /// Whether a port (host order) is of the range.
    pub fn has(&self, port: u16) -> bool {
        self.span.place(port).is_some()
    }

    pub fn memory_bytes(&self) -> usize {
        self.counters.len() * 4 + self.maps_bytes
    }

    fn counter(&mut self, group: Group) -> Option<&mut u32> {
        let mask = self.counters.len() - 1;
        self.counters.get_mut((group.0 >> 20) as usize & mask)
    }

    /// The map of a group that is crowded, or was when it got one.
    pub fn map(&mut self, group: Group) -> Option<&mut Map> {
        if self.span.ports <= SMALL_RANGE {
            return None;
        }
        let half = self.span.ports / 2;
        let crowded = self.counter(group).is_some_and(|count| *count >= half);
        if self.maps.is_empty() && !crowded {
            return None;
        }
        if crowded && !self.maps.contains_key(&group) {
            let bytes = Map::bytes(self.span.ports);
            if self.maps_bytes + bytes <= self.most_maps_bytes {
                self.maps_bytes += bytes;
                self.maps.insert(group, Map::new(self.span.ports));
            }
        }
        self.maps.get_mut(&group)
    }

    /// Takes what was given back into account, if a group has a map. O(1).
    pub fn catch_up(&mut self, group: Group, released: &Released) {
        let span = self.span;
        let Some(map) = self.map(group) else {
            return;
        };
        let seen = std::mem::replace(&mut map.released, released.count);
        match released.since(seen) {
            Some(given) => {
                for place in given.filter_map(|port| span.place(port)) {
                    map.clear(place);
                }
            }
            None => map.reset(),
        }
    }

    /// A flow of a group takes a port that is known to be free, unless the
    /// group is crowded or any group has a map: whether it did.
    #[inline(always)]
    pub fn took_of_many(&mut self, group: Group) -> bool {
        let half = self.span.ports / 2;
        let mapped = (self.span.ports <= SMALL_RANGE) | !self.maps.is_empty();
        match self.counter(group) {
            Some(count) if !mapped & (*count < half) => {
                *count += 1;
                true
            }
            _ => false,
        }
    }

    /// A flow took a port (host order).
    pub fn took(&mut self, group: Group, port: u16) {
        if let Some(count) = self.counter(group) {
            *count = count.saturating_add(1);
        }
        if !self.maps.is_empty()
            && let Some(place) = self.span.place(port)
            && let Some(map) = self.maps.get_mut(&group)
        {
            map.set(place);
            map.may_give(place);
        }
    }

    /// A flow that was counted has a port (host order): where its group is
    /// crowded, that is known.
    pub fn know(&mut self, group: Group, port: u16) {
        let place = self.span.place(port);
        if let (Some(map), Some(place)) = (self.map(group), place) {
            map.set(place);
            map.may_give(place);
        }
    }

    /// The flow of a port (host order) may give it up.
    pub fn may_give(&mut self, group: Group, port: u16) {
        let place = self.span.place(port);
        if let Some(place) = place
            && let Some(map) = self.maps.get_mut(&group)
        {
            map.may_give(place);
        }
    }

    /// Whether any group has a map.
    pub fn has_maps(&self) -> bool {
        !self.maps.is_empty()
    }

    /// A port (host order) that a group's map may know as used, but which
    /// one of another group used, may be free.
    pub fn freed(&mut self, group: Group, port: u16) {
        let place = self.span.place(port);
        if let Some(map) = self.maps.get_mut(&group)
            && let Some(place) = place
        {
            map.clear(place);
        }
    }

    /// A flow gave a port (host order) back.
    pub fn gave(&mut self, group: Group, port: u16) {
        let quarter = self.span.ports / 4;
        let Some(count) = self.counter(group) else {
            return;
        };
        *count = count.saturating_sub(1);
        let few = *count < quarter;
        if self.maps.is_empty() {
            return;
        }
        let place = self.span.place(port);
        if let Some(map) = self.maps.get_mut(&group) {
            if let Some(place) = place {
                map.clear(place);
            }
            if few {
                self.maps.remove(&group);
                self.maps_bytes -= Map::bytes(self.span.ports);
            }
        }
    }
}

#[cfg(test)]
impl Ports {
    /// Ports that all groups use.
    pub fn counted(&self) -> u32 {
        self.counters.iter().sum()
    }
}

#[cfg(test)]
mod tests;
