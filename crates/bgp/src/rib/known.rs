//! The attributes of a peer's paths that were met, by their bytes: a dump
//! writes them out for each path, and they are read once.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
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

#[derive(Debug)]
struct Slot {
    hash: u64,
    at: u32,
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
    slots: HashTable<Slot>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl AllKnown {
    /// The number of what was made of some attributes.
    #[inline]
    pub fn find(&self, attributes: &[u8], path_id: Option<u32>) -> Option<u32> {
        let hash = self.hash(attributes, path_id);
        let found = self.slots.find(hash, |slot| {
            slot.hash == hash && self.is(slot.at, attributes, path_id)
        });
        found.map(|slot| slot.at)
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
        let hash = self.hash(attributes, path_id);
        // Fewer than the bodies of a table, whose numbers have 32 bits.
        let at = self.entries.len() as u32;
        self.entries.push(Entry {
            known,
            path_id,
            start: self.bytes.len(),
            len: attributes.len() as u16,
        });
        self.bytes.extend_from_slice(attributes);
        self.slots
            .insert_unique(hash, Slot { hash, at }, |slot| slot.hash);
        at
    }

    #[inline]
    fn hash(&self, attributes: &[u8], path_id: Option<u32>) -> u64 {
        match path_id {
            None => self.hasher.hash_one(attributes),
            Some(id) => self.hasher.hash_one((attributes, id)),
        }
    }

    #[inline]
    fn is(&self, at: u32, attributes: &[u8], path_id: Option<u32>) -> bool {
        self.entries.get(at as usize).is_some_and(|entry| {
            let end = entry.start + usize::from(entry.len);
            entry.path_id == path_id && self.bytes.get(entry.start..end) == Some(attributes)
        })
    }
}
