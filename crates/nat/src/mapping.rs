//! Mappings that several flows share: endpoint and address dependent
//! mapping (RFC 4787 §4.1), and the permits of address-dependent filtering
//! (RFC 4787 §5).
//!
//! For the engine. Where mapping is address and port dependent each flow is
//! its own mapping, and this table is empty.

use std::io;

use memory::Reserved;

use crate::flow::Ends;
use crate::index::Index;
use crate::key::{Hasher, Key};
use crate::saved::free_order;
use crate::work::Work;

/// A shared mapping or permit.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(32))]
pub struct Mapping {
    /// Memory order, as in a flow.
    pub inside: u32,
    pub alias: u32,
    /// The remote address it is for; 0: any.
    pub remote: u32,
    pub inside_port: u16,
    pub alias_port: u16,
    pub protocol: u8,
    pub kind: Kind,
    /// Of which epoch, as a flow.
    pub epoch: u8,
    /// `mark::*`.
    pub marks: u8,
    /// Until which tick it lives: as long as the flow of its that would live
    /// the longest. For a free place, the next one.
    pub dies: u32,
    /// Flows that belong to it; 0: the place is free.
    pub flows: u32,
    /// How many of them are in a state that lives long. When the last of
    /// those is not any more, the mapping lives no longer than the others.
    pub long: u32,
}

/// Bits of [`Mapping::marks`].
pub mod mark {
    /// It is in no index any more; its flows still hold the place.
    pub const DETACHED: u8 = 1;
    /// Its port counts as its subscriber's.
    pub const COUNTED: u8 = 1 << 1;
    /// And it is of a block.
    pub const IN_BLOCK: u8 = 1 << 2;
}

/// What an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Kind {
    /// It says which outside endpoint an inside one has.
    #[default]
    Mapping,
    /// It admits a remote address to an outside endpoint.
    Permit,
}

impl Mapping {
    /// Its ends; of the remote the address at most.
    pub fn ends(&self) -> Ends {
        Ends {
            inside: self.inside,
            inside_port: self.inside_port,
            remote: self.remote,
            remote_port: 0,
            alias: self.alias,
            alias_port: self.alias_port,
            protocol: self.protocol,
        }
    }

    /// Whether it serves no new flow any more.
    pub fn is_detached(&self) -> bool {
        self.has(mark::DETACHED)
    }

    /// Whether a mark is set.
    pub fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    /// By inside endpoint (and remote address); of mappings only.
    fn inside_key(&self) -> Key {
        inside_key(self.inside, self.inside_port, self.remote, self.protocol)
    }

    fn alias_key(&self) -> Key {
        alias_key(
            self.alias,
            self.alias_port,
            self.remote,
            self.protocol,
            self.kind,
        )
    }
}

fn inside_key(inside: u32, port: u16, remote: u32, protocol: u8) -> Key {
    Key::new(inside, remote, [port, 0], protocol)
}

/// Permits stand in the same index under keys of their own.
fn alias_key(alias: u32, port: u16, remote: u32, protocol: u8, kind: Kind) -> Key {
    Key::new(remote, alias, [kind as u16, port], protocol)
}

/// All shared mappings of an engine.
#[derive(Debug)]
pub struct Mappings {
    entries: Reserved<Mapping>,
    by_inside: Index,
    by_alias: Index,
    hasher: Hasher,
    /// The first free place, one up; 0: none.
    free: u32,
    live: usize,
}

impl Mappings {
    /// Takes address space for `max` mappings and as many permits; no
    /// memory worth naming until they come.
    pub fn new(max: usize, seed: u64) -> io::Result<Self> {
        Ok(Self {
            entries: Reserved::new(max.saturating_mul(2).min(1 << 24))?,
            by_inside: Index::new(0, max)?,
            by_alias: Index::new(0, max.saturating_mul(2))?,
            hasher: Hasher::new(!seed),
            free: 0,
            live: 0,
        })
    }

    pub fn len(&self) -> usize {
        self.live
    }

    /// Places, free ones included.
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    pub fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes() + self.by_inside.memory_bytes() + self.by_alias.memory_bytes()
    }

    pub fn get(&self, name: u32) -> Option<&Mapping> {
        self.entries.get(name as usize)
    }

    /// The mapping of an inside endpoint.
    pub fn by_inside(&self, inside: u32, port: u16, remote: u32, protocol: u8) -> Option<u32> {
        if self.live == 0 {
            return None;
        }
        let key = inside_key(inside, port, remote, protocol);
        self.by_inside.find(self.hasher.hash(key), |name| {
            let entry = self.get(name);
            entry.is_some_and(|entry| entry.inside_key() == key)
        })
    }

    /// The mapping or permit of an outside endpoint.
    pub fn by_alias(
        &self,
        alias: u32,
        port: u16,
        remote: u32,
        protocol: u8,
        kind: Kind,
    ) -> Option<u32> {
        if self.live == 0 {
            return None;
        }
        let key = alias_key(alias, port, remote, protocol, kind);
        self.by_alias.find(self.hasher.hash(key), |name| {
            let entry = self.get(name);
            entry.is_some_and(|entry| entry.alias_key() == key)
        })
    }

    /// Enters a mapping or permit with one flow; the caller has looked that
    /// its keys are not in. `None`: there is no room.
    pub fn insert(&mut self, entry: Mapping, work: &mut Work) -> Option<u32> {
        let name = match self.free {
            0 => {
                let name = self.entries.len() as u32;
                self.entries.push(entry).then_some(name)?
            }
            free => {
                let place = self.entries.get_mut(free as usize - 1)?;
                self.free = place.dies;
                *place = entry;
                free - 1
            }
        };
        if !self.enter(name, work) {
            self.free_place(name);
            return None;
        }
        self.live += 1;
        Some(name)
    }

    /// Enters an entry into its indexes; whether they took it.
    fn enter(&mut self, name: u32, work: &mut Work) -> bool {
        let is_mapping = self
            .get(name)
            .is_some_and(|entry| entry.kind == Kind::Mapping);
        let (hasher, entries) = (self.hasher, &self.entries);
        let entry_of = |name: u32| entries.get(name as usize).copied().unwrap_or_default();
        let inside = |name: u32| hasher.hash(entry_of(name).inside_key());
        let alias = |name: u32| hasher.hash(entry_of(name).alias_key());
        let line_of = |name: u32| entries.prefetch(name as usize);
        let mut entered = self
            .by_alias
            .insert(alias(name), name, (alias, line_of), work);
        if entered && is_mapping {
            entered = self
                .by_inside
                .insert(inside(name), name, (inside, line_of), work);
            if !entered {
                self.by_alias.remove(alias(name), name, work);
            }
        }
        entered
    }

    fn free_place(&mut self, name: u32) {
        let dies = self.free;
        if let Some(place) = self.entries.get_mut(name as usize) {
            *place = Mapping {
                dies,
                ..Mapping::default()
            };
            self.free = name + 1;
        }
    }

    /// A flow of it was used and would live until a tick.
    pub fn refresh(&mut self, name: u32, dies: u32) {
        if let Some(entry) = self.entries.get_mut(name as usize) {
            entry.dies = entry.dies.max(dies);
        }
    }

    /// A flow of it lives long now.
    pub fn lengthen(&mut self, name: u32) {
        if let Some(entry) = self.entries.get_mut(name as usize) {
            entry.long += 1;
        }
    }

    /// A flow of it lives long no more, and no other flow that does not
    /// lives beyond a tick. Returns whether none lives long.
    pub fn shorten(&mut self, name: u32, dies: u32) -> bool {
        let Some(entry) = self.entries.get_mut(name as usize) else {
            return false;
        };
        entry.long = entry.long.saturating_sub(1);
        if entry.long == 0 {
            entry.dies = entry.dies.min(dies);
        }
        entry.long == 0
    }

    /// A flow of it had the one answer that it waited for, and lives until a
    /// tick: so does the mapping, if that is all it has.
    pub fn answered(&mut self, name: u32, dies: u32) {
        if let Some(entry) = self.entries.get_mut(name as usize)
            && entry.flows == 1
        {
            entry.dies = dies;
        }
    }

    /// Takes an entry out of the indexes that has expired or whose address went;
    /// its place stays with its flows.
    pub fn detach(&mut self, name: u32, work: &mut Work) {
        let Some(entry) = self.entries.get_mut(name as usize) else {
            return;
        };
        if !entry.is_detached() {
            entry.marks |= mark::DETACHED;
            let entry = *entry;
            self.leave(name, &entry, work);
        }
    }

    fn leave(&mut self, name: u32, entry: &Mapping, work: &mut Work) {
        let alias = self.hasher.hash(entry.alias_key());
        self.by_alias.remove(alias, name, work);
        if entry.kind == Kind::Mapping {
            let inside = self.hasher.hash(entry.inside_key());
            self.by_inside.remove(inside, name, work);
        }
    }

    /// One flow more.
    pub fn hold(&mut self, name: u32) {
        if let Some(entry) = self.entries.get_mut(name as usize) {
            entry.flows += 1;
        }
    }

    /// One flow less; the last one ends the entry. Returns whether it did.
    pub fn release(&mut self, name: u32, work: &mut Work) -> bool {
        let Some(entry) = self.entries.get_mut(name as usize) else {
            return false;
        };
        entry.flows = entry.flows.saturating_sub(1);
        if entry.flows > 0 {
            return false;
        }
        let entry = *entry;
        if !entry.is_detached() {
            self.leave(name, &entry, work);
        }
        self.free_place(name);
        self.live -= 1;
        true
    }
}

impl Mappings {
    /// Free places, the one that is taken next first.
    pub fn free_places(&self) -> impl Iterator<Item = u32> {
        let after = |one_up: u32| one_up.checked_sub(1);
        std::iter::successors(after(self.free), move |name| after(self.get(*name)?.dies))
    }

    /// Makes so many free places, in a table that has none yet; not more
    /// than there may be.
    pub fn restore_places(&mut self, places: usize) {
        for _ in 0..places {
            if !self.entries.push(Mapping::default()) {
                return;
            }
        }
    }

    /// Lays an entry down at its place, without flows and in no index: it
    /// begins with [`Mappings::restore_flow`] and [`Mappings::restore_ends`].
    pub fn restore(&mut self, name: u32, entry: Mapping) {
        if let Some(place) = self.entries.get_mut(name as usize) {
            *place = Mapping {
                flows: 0,
                long: 0,
                ..entry
            };
        }
    }

    /// A flow belongs to an entry that was laid down.
    pub fn restore_flow(&mut self, name: u32, lives_long: bool) {
        if let Some(entry) = self.entries.get_mut(name as usize) {
            entry.flows += 1;
            entry.long += u32::from(lives_long);
        }
    }

    /// Enters those that were laid down and have flows; the others go. Free
    /// places are taken again in an order, as far as that names them. `kept`
    /// is told of each that stays.
    pub fn restore_ends(&mut self, free: &[u32], kept: &mut dyn FnMut(&Mapping)) {
        for name in 0..self.entries.len() as u32 {
            let Some(mut entry) = self.get(name).copied() else {
                continue;
            };
            if entry.flows == 0 {
                self.restore(name, Mapping::default());
                continue;
            }
            self.live += 1;
            if !entry.is_detached() && !self.restore_enter(name, &entry) {
                // Somebody has its key: it serves its own flows alone.
                entry.marks |= mark::DETACHED;
                if let Some(place) = self.entries.get_mut(name as usize) {
                    place.marks = entry.marks;
                }
            }
            kept(&entry);
        }
        let is_taken = |name: u32| self.get(name).is_none_or(|entry| entry.flows > 0);
        let order = free_order(self.entries.len(), free, is_taken);
        self.free = 0;
        for name in order.into_iter().rev() {
            let dies = std::mem::replace(&mut self.free, name + 1);
            if let Some(place) = self.entries.get_mut(name as usize) {
                place.dies = dies;
            }
        }
    }

    fn restore_enter(&mut self, name: u32, entry: &Mapping) -> bool {
        let Mapping {
            inside,
            alias,
            remote,
            inside_port,
            alias_port,
            protocol,
            kind,
            ..
        } = *entry;
        let is_mapping = kind == Kind::Mapping;
        let is_known = self
            .by_alias(alias, alias_port, remote, protocol, kind)
            .is_some()
            || is_mapping
                && self
                    .by_inside(inside, inside_port, remote, protocol)
                    .is_some();
        !is_known && self.enter(name, &mut Work::default())
    }
}

#[cfg(test)]
impl Mappings {
    /// Names of the places that are taken, by the list of the free ones.
    pub fn taken(&self) -> Vec<u32> {
        let mut free = std::collections::BTreeSet::new();
        let mut next = self.free;
        while next != 0 {
            assert!(free.insert(next - 1), "a place is free twice");
            next = self.entries[next as usize - 1].dies;
        }
        let all = 0..self.entries.len() as u32;
        all.filter(|name| !free.contains(name)).collect()
    }
}
