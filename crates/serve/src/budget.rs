//! Memory for those who are answered: one budget for all of them, at the
//! control socket and over HTTP. A connection counts, what is made for it,
//! and what it has not taken; and so do the changes that are kept for those
//! who watch.
//!
//! A quarter is root's alone. Of the rest a source (a user of this host, an
//! address of elsewhere) may take no more than it leaves free: one by itself
//! half of it, two a third each. Sources that come one after another find
//! half of what the one before left.
//! Whoever would take more than that takes less, or tells its client so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::source::Source;

/// Octets that may be taken, and those that are.
#[derive(Debug)]
pub struct Budget {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Of it by each source that has some.
    of: HashMap<Source, usize>,
    /// Leases that were refused.
    refusals: u64,
}

impl Budget {
    /// So many octets for all.
    pub fn new(most: usize) -> Arc<Self> {
        let taken = Mutex::default();
        Arc::new(Self { most, taken })
    }

    /// All that may be taken.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Octets that are taken.
    pub fn taken(&self) -> usize {
        self.lock().all
    }

    /// How often there was no room for somebody.
    pub fn refusals(&self) -> u64 {
        self.lock().refusals
    }

    /// Octets that a source may still take.
    pub fn room(&self, source: Source) -> usize {
        self.room_in(&self.lock(), source)
    }

    /// Octets for a source, as long as the lease lives; `None`: there is no
    /// room for it.
    pub fn lease(self: &Arc<Self>, source: Source, octets: usize) -> Option<Lease> {
        let mut lease = Lease {
            budget: Arc::clone(self),
            source,
            octets: 0,
        };
        lease.resize(octets).then_some(lease)
    }

    /// One of so many parts of what a source may still take.
    pub fn lease_part(self: &Arc<Self>, source: Source, of: usize) -> Lease {
        let mut taken = self.lock();
        let octets = self.room_in(&taken, source) / of.max(1);
        taken.count(source, 0, octets);
        Lease {
            budget: Arc::clone(self),
            source,
            octets,
        }
    }

    /// A piece of an answer to a source that counts until it is sent or
    /// dropped; where there is no room for it, it is given back.
    pub fn keep(self: &Arc<Self>, source: Source, piece: Vec<u8>) -> Result<Bytes, Vec<u8>> {
        match self.lease(source, piece.capacity()) {
            Some(lease) => Ok(Bytes::from_owner(Kept {
                piece,
                _lease: lease,
            })),
            None => Err(piece),
        }
    }

    /// Room after what a source would take now: no more than it leaves.
    fn room_in(&self, taken: &Taken, source: Source) -> usize {
        if source == Source::ROOT {
            return self.most.saturating_sub(taken.all);
        }
        let free = (self.most / 4 * 3).saturating_sub(taken.all);
        let own = taken.of.get(&source).copied().unwrap_or(0);
        free.saturating_sub(own) / 2
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Counts other `octets` than `before`.
    fn count(&mut self, source: Source, before: usize, octets: usize) {
        self.all = self.all + octets - before;
        let own = self.of.entry(source).or_default();
        *own = *own + octets - before;
        if *own == 0 {
            self.of.remove(&source);
        }
    }
}

/// A source's part of the budget; given back when dropped.
#[derive(Debug)]
pub struct Lease {
    budget: Arc<Budget>,
    source: Source,
    octets: usize,
}

impl Lease {
    /// Octets of it.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Octets that it may grow by.
    pub fn room(&self) -> usize {
        self.budget.room(self.source)
    }

    /// Makes it so large, if there is room; a smaller one always is.
    pub fn resize(&mut self, octets: usize) -> bool {
        let mut taken = self.budget.lock();
        let more = octets.saturating_sub(self.octets);
        if more > self.budget.room_in(&taken, self.source) {
            taken.refusals += 1;
            return false;
        }
        taken.count(self.source, self.octets, octets);
        self.octets = octets;
        true
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut taken = self.budget.lock();
        taken.count(self.source, self.octets, 0);
    }
}

/// A piece that counts.
struct Kept {
    piece: Vec<u8>,
    _lease: Lease,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Source = Source::User(1);
    const OTHER: Source = Source::User(2);

    #[test]
    fn what_is_kept_counts_until_it_is_gone() {
        let budget = Budget::new(400);
        let first = budget.keep(ONE, vec![1; 100]).unwrap();
        let part = first.slice(..5);
        drop(first);
        assert_eq!(budget.taken(), 100, "a part of it is on its way");
        drop(part);
        assert_eq!(budget.taken(), 0);
        assert!(budget.lock().of.is_empty());
    }

    #[test]
    fn a_source_takes_no_more_than_it_leaves_free() {
        let budget = Budget::new(400);
        // Of 300: root has a quarter.
        let half = budget.lease(ONE, 150).unwrap();
        assert!(budget.lease(ONE, 1).is_none());
        assert_eq!(budget.refusals(), 1);
        let quarter = budget.lease(OTHER, 75).unwrap();
        assert_eq!(budget.keep(OTHER, vec![2; 1]), Err(vec![2; 1]));
        for others in 3..9 {
            assert!(budget.room(Source::User(others)) > 0, "{others}");
        }
        drop(half);
        assert_eq!(budget.room(OTHER), 75, "150 of 300 again");
        drop(quarter);
        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn a_part_is_of_what_a_source_has_left() {
        let budget = Budget::new(400);
        let first = budget.lease_part(ONE, 3);
        assert_eq!((first.octets(), budget.taken()), (50, 50));
        assert_eq!(budget.lease_part(ONE, 4).octets(), 25);
        assert_eq!(budget.taken(), 50, "given back");
        let all = budget.lease_part(ONE, 1);
        assert_eq!(budget.lease_part(ONE, 4).octets(), 0, "{all:?}");
    }

    #[test]
    fn root_has_room_whatever_others_take() {
        let budget = Budget::new(400);
        let of_others: Vec<_> = (1..100)
            .map_while(|user| {
                let source = Source::User(user);
                budget.lease(source, budget.room(source).max(1))
            })
            .collect();
        assert!(of_others.len() > 5, "{}", of_others.len());
        assert!(budget.room(Source::ROOT) >= 100);
        assert!(budget.lease(Source::ROOT, 100).is_some());
    }

    #[test]
    fn a_lease_grows_while_there_is_room_and_shrinks_always() {
        let budget = Budget::new(400);
        let mut lease = budget.lease(ONE, 10).unwrap();
        assert!(lease.resize(150));
        assert!(!lease.resize(151));
        assert_eq!(lease.octets(), 150);
        let _other = budget.lease(OTHER, budget.room(OTHER)).unwrap();
        assert!(lease.resize(140), "less, with more than its share");
        assert_eq!(budget.taken(), 140 + 75);
    }
}
