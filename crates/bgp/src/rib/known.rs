//! The attributes of a peer's paths that were met, by their bytes: a dump
//! writes them out for each path, and they are read once.
//!
//! Twenty peers have met gigabytes of them, and to find some is to wait for
//! memory three times. So the paths to a prefix are looked for together:
//! [`AllKnown::look`] asks for the first place of each, [`AllKnown::near`]
//! for the second and the third, and [`AllKnown::find`] finds them there.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use memory::{prefetch, prefetch_bytes};
use table::BodyId;

use super::best::Rank;

/// What was made of some bytes.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The body in the peer's table.
    pub body: BodyId,
    /// What the path is compared by.
    pub rank: Rank,
    /// The body in the table of the best, once it was one.
    pub best: Option<BodyId>,
}

/// Where attributes may be.
#[derive(Debug, Clone, Copy)]
pub enum Look {
    /// They are those of the path before.
    Last,
    /// By this tag.
    Tag(u32),
}

#[derive(Debug)]
struct Entry {
    known: Known,
    path_id: Option<u32>,
    start: usize,
    len: u16,
}

/// All that were met.
#[derive(Debug, Default)]
pub struct AllKnown {
    hasher: RandomState,
    /// A power of two of them, at most half in use: a tag, and above it the
    /// number of the entry counted from 1; 0 is free.
    slots: Vec<u64>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// What was found or put last: prefixes of one origin stand behind each
    /// other, with the same attributes.
    last: u32,
}

/// Slots at the beginning.
const SLOTS: usize = 64;

impl AllKnown {
    /// Where some attributes may be.
    #[inline]
    pub fn look(&self, attributes: &[u8], path_id: Option<u32>) -> Look {
        if self.is(self.last, attributes, path_id) {
            return Look::Last;
        }
        let tag = self.tag(attributes, path_id);
        if let Some(slot) = self.slots.get(self.place(tag)) {
            prefetch(slot);
        }
        Look::Tag(tag)
    }

    /// Goes to where they may be: `step` 0, then 1.
    #[inline]
    pub fn near(&self, look: Look, step: u8) {
        let Look::Tag(tag) = look else {
            return;
        };
        let slot = self.slots.get(self.place(tag)).copied().unwrap_or(0);
        let entry = self.entries.get(((slot >> 32) as usize).wrapping_sub(1));
        match (entry, step) {
            (Some(entry), 0) => prefetch(entry),
            (Some(entry), _) => {
                let bytes = self.bytes.get(entry.start..);
                prefetch_bytes(bytes.unwrap_or_default());
            }
            (None, _) => {}
        }
    }

    /// The number of what was made of some attributes.
    #[inline]
    pub fn find(&mut self, attributes: &[u8], path_id: Option<u32>, look: Look) -> Option<u32> {
        let tag = match look {
            // Others may have been found since.
            Look::Last if self.is(self.last, attributes, path_id) => return Some(self.last),
            Look::Last => self.tag(attributes, path_id),
            Look::Tag(tag) => tag,
        };
        let mut place = self.place(tag);
        loop {
            let slot = self.slots.get(place).copied().unwrap_or(0);
            if slot == 0 {
                return None;
            }
            let at = ((slot >> 32) as u32).wrapping_sub(1);
            if slot as u32 == tag && self.is(at, attributes, path_id) {
                self.last = at;
                return Some(at);
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    /// What has a number.
    #[inline]
    pub fn get(&self, at: u32) -> Option<&Known> {
        self.entries.get(at as usize).map(|entry| &entry.known)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, at: u32) -> Option<&mut Known> {
        self.entries
            .get_mut(at as usize)
            .map(|entry| &mut entry.known)
    }

    /// What was made of attributes that were not met before; its number.
    pub fn put(&mut self, attributes: &[u8], path_id: Option<u32>, known: Known) -> u32 {
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow();
        }
        // Fewer than the bodies of a table, whose numbers have 32 bits.
        let at = self.entries.len() as u32;
        self.entries.push(Entry {
            known,
            path_id,
            start: self.bytes.len(),
            len: attributes.len() as u16,
        });
        self.bytes.extend_from_slice(attributes);
        self.last = at;
        let tag = self.tag(attributes, path_id);
        self.enter(u64::from(at + 1) << 32 | u64::from(tag));
        at
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            self.enter(slot);
        }
    }

    /// Puts a slot where it is found.
    fn enter(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut place = self.place(slot as u32);
        while let Some(taken) = self.slots.get_mut(place) {
            if *taken == 0 {
                *taken = slot;
                return;
            }
            place = (place + 1) & mask;
        }
    }

    #[inline]
    fn place(&self, tag: u32) -> usize {
        tag as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    fn tag(&self, attributes: &[u8], path_id: Option<u32>) -> u32 {
        let hash = match path_id {
            None => self.hasher.hash_one(attributes),
            Some(id) => self.hasher.hash_one((attributes, id)),
        };
        hash as u32
    }

    #[inline]
    fn is(&self, at: u32, attributes: &[u8], path_id: Option<u32>) -> bool {
        self.entries.get(at as usize).is_some_and(|entry| {
            let end = entry.start + usize::from(entry.len);
            entry.path_id == path_id && self.bytes.get(entry.start..end) == Some(attributes)
        })
    }
}
