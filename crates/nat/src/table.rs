//! The flows and their two indexes: by what goes out and by what comes in.
//!
//! For the engine. A flow's name is its place; places of ended flows are
//! taken again, the last one first.

use std::io;

use memory::Reserved;

use crate::flow::{Flow, flag};
use crate::index::{First, Index};
use crate::key::{Hasher, Key};
use crate::saved::free_order;
use crate::work::Work;

/// The hashes of a flow's two keys.
#[derive(Debug, Clone, Copy)]
pub struct Hashes {
    pub out: u64,
    pub incoming: u64,
}

/// All flows of an engine.
#[derive(Debug)]
pub struct Table {
    flows: Reserved<Flow>,
    out: Index,
    incoming: Index,
    pub hasher: Hasher,
    /// The first free place, one up; 0: none.
    free: u32,
    live: usize,
}

impl Table {
    pub fn new(initial: usize, max: usize, seed: u64) -> io::Result<Self> {
        let mut flows = Reserved::new(max)?;
        flows.prepare(initial);
        Ok(Self {
            flows,
            out: Index::new(initial, max)?,
            incoming: Index::new(initial, max)?,
            hasher: Hasher::new(seed),
            free: 0,
            live: 0,
        })
    }

    pub fn len(&self) -> usize {
        self.live
    }

    /// Places that were ever taken.
    pub fn places(&self) -> usize {
        self.flows.len()
    }

    pub fn is_full(&self) -> bool {
        self.live >= self.flows.max()
    }

    /// Whether it is in its last eighth.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.live >= self.flows.max() - self.flows.max() / 8
    }

    pub fn memory_bytes(&self) -> usize {
        self.flows.memory_bytes() + self.out.memory_bytes() + self.incoming.memory_bytes()
    }

    /// Makes memory ready ahead of growth: a huge page at most.
    pub fn prepare_ahead(&mut self) -> bool {
        self.flows.prepare_ahead() || self.out.prepare_ahead() || self.incoming.prepare_ahead()
    }

    #[inline(always)]
    pub fn get(&self, name: u32) -> Option<&Flow> {
        self.flows.get(name as usize)
    }

    #[inline(always)]
    pub fn get_mut(&mut self, name: u32) -> Option<&mut Flow> {
        self.flows.get_mut(name as usize)
    }

    #[inline(always)]
    pub fn prefetch(&self, name: u32) {
        self.flows.prefetch(name as usize);
    }

    #[inline(always)]
    pub fn index<const OUT: bool>(&self) -> &Index {
        if OUT { &self.out } else { &self.incoming }
    }

    /// Asks for the buckets that a flow is entered in.
    pub fn prefetch_end(&self, name: u32) {
        if let Some(flow) = self.get(name) {
            self.out.prefetch(self.hasher.hash(flow.out_key()));
            self.incoming.prefetch(self.hasher.hash(flow.in_key()));
        }
    }

    /// The first name that may be a key's.
    #[inline(always)]
    pub fn first<const OUT: bool>(&self, hash: u64) -> First {
        self.index::<OUT>().first(hash)
    }

    /// The flow of a key.
    #[inline]
    pub fn find<const OUT: bool>(&self, hash: u64, key: Key) -> Option<u32> {
        self.index::<OUT>().find(hash, |name| {
            self.get(name).is_some_and(|flow| flow.key::<OUT>() == key)
        })
    }

    /// Enters a flow whose keys, of these hashes, are in neither index;
    /// `None` if an index cannot take it. The caller has asked
    /// [`Table::is_full`].
    #[inline(always)]
    pub fn insert(&mut self, flow: Flow, hashes: Hashes, work: &mut Work) -> Option<u32> {
        let name = self.take_place(flow)?;
        if self.enter(name, hashes, work) {
            return Some(name);
        }
        self.free_place(name);
        None
    }

    /// Enters a name into both indexes; whether they took it.
    #[inline(never)]
    fn enter(&mut self, name: u32, hashes: Hashes, work: &mut Work) -> bool {
        let (hasher, flows) = (self.hasher, &self.flows);
        let out_hash = |name: u32| key_hash::<true>(flows, &hasher, name);
        let in_hash = |name: u32| key_hash::<false>(flows, &hasher, name);
        let Hashes { out, incoming } = hashes;
        let line_of = |name: u32| flows.prefetch(name as usize);
        if !self.out.insert(out, name, (out_hash, line_of), work) {
            return false;
        }
        if !self
            .incoming
            .insert(incoming, name, (in_hash, line_of), work)
        {
            self.out.remove(out, name, work);
            return false;
        }
        true
    }

    #[inline(always)]
    fn take_place(&mut self, flow: Flow) -> Option<u32> {
        let name = match self.free {
            0 => {
                let name = self.flows.len() as u32;
                // The place that is taken next is on its way.
                self.flows.prefetch(name as usize + 1);
                self.flows.push(flow).then_some(name)?
            }
            free => {
                let name = free - 1;
                let place = self.flows.get_mut(name as usize)?;
                self.free = place.mapping;
                *place = flow;
                name
            }
        };
        self.live += 1;
        Some(name)
    }

    fn free_place(&mut self, name: u32) {
        let free = self.free;
        if let Some(place) = self.flows.get_mut(name as usize) {
            *place = Flow {
                mapping: free,
                ..Flow::FREE
            };
            self.free = name + 1;
            self.live -= 1;
        }
    }

    /// Takes a flow out and gives it back. `None`: the place is free.
    pub fn remove(&mut self, name: u32, work: &mut Work) -> Option<Flow> {
        let flow = *self.get(name).filter(|flow| flow.has(flag::LIVE))?;
        let (out, incoming) = (
            self.hasher.hash(flow.out_key()),
            self.hasher.hash(flow.in_key()),
        );
        self.out.remove(out, name, work);
        self.incoming.remove(incoming, name, work);
        self.free_place(name);
        Some(flow)
    }
}

impl Table {
    /// Free places, the one that is taken next first.
    pub fn free_places(&self) -> impl Iterator<Item = u32> {
        let after = |one_up: u32| one_up.checked_sub(1);
        std::iter::successors(after(self.free), move |name| {
            after(self.get(*name)?.mapping)
        })
    }

    /// Makes so many free places, in a table that has none yet; not more
    /// than there may be.
    pub fn restore_places(&mut self, places: usize) {
        self.flows.prepare(places);
        for _ in 0..places {
            if !self.flows.push(Flow::FREE) {
                return;
            }
        }
    }

    /// Asks for what [`Table::restore`] looks into.
    pub fn prefetch_restore(&self, flow: &Flow) {
        self.out.prefetch(self.hasher.hash(flow.out_key()));
        self.incoming.prefetch(self.hasher.hash(flow.in_key()));
    }

    /// Enters a flow at its place. Whether it could be: the place is free,
    /// and nobody has one of its keys.
    pub fn restore(&mut self, name: u32, flow: Flow) -> bool {
        let (out, incoming) = (
            self.hasher.hash(flow.out_key()),
            self.hasher.hash(flow.in_key()),
        );
        let is_free = self.get(name).is_some_and(|flow| !flow.has(flag::LIVE));
        let is_known = self.find::<true>(out, flow.out_key()).is_some()
            || self.find::<false>(incoming, flow.in_key()).is_some();
        if !is_free || is_known {
            return false;
        }
        if let Some(place) = self.flows.get_mut(name as usize) {
            *place = flow;
        }
        let hashes = Hashes { out, incoming };
        if self.enter(name, hashes, &mut Work::default()) {
            self.live += 1;
            return true;
        }
        if let Some(place) = self.flows.get_mut(name as usize) {
            *place = Flow::FREE;
        }
        false
    }

    /// Says in which order the free places are taken again, the first one
    /// first; those that it does not name come behind.
    pub fn restore_free(&mut self, order: &[u32]) {
        let is_taken = |name: u32| self.get(name).is_none_or(|flow| flow.has(flag::LIVE));
        let order = free_order(self.flows.len(), order, is_taken);
        self.free = 0;
        for name in order.into_iter().rev() {
            let next = std::mem::replace(&mut self.free, name + 1);
            if let Some(place) = self.flows.get_mut(name as usize) {
                place.mapping = next;
            }
        }
    }
}

fn key_hash<const OUT: bool>(flows: &[Flow], hasher: &Hasher, name: u32) -> u64 {
    let flow = flows.get(name as usize);
    flow.map_or(0, |flow| hasher.hash(flow.key::<OUT>()))
}
