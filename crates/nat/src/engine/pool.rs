//! The pool of alias addresses.

use crate::Nat;
use crate::key::Key;

impl Nat {
    /// Whether an address is one of the alias addresses.
    pub(super) fn is_own(&self, address: u32) -> bool {
        match self.pool.as_slice() {
            [only] => *only == address,
            own => own.binary_search(&address).is_ok(),
        }
    }

    /// The alias address of an inside host: always the same while the pool
    /// is ("paired", RFC 4787 REQ-2); a subscriber's, where it has one.
    pub(super) fn own_for(&self, inside: u32) -> Option<u32> {
        if let Some(tracked) = &self.tracked
            && let Some(address) = tracked.address_of(inside)
        {
            return Some(address);
        }
        self.usual_for(inside)
    }

    /// The alias address of an inside one by its hash alone.
    pub(super) fn usual_for(&self, inside: u32) -> Option<u32> {
        if let [only] = self.pool.as_slice() {
            return Some(*only);
        }
        let key = Key::new(inside, 0, [0, 0], 0);
        let hash = self.table.hasher.hash(key) >> 32;
        let at = (hash * self.pool.len() as u64) >> 32;
        self.pool.get(at as usize).copied()
    }

    pub(super) fn next_own(&self, address: u32) -> u32 {
        let at = self.pool.binary_search(&address).map_or(0, |at| at + 1);
        let next = self.pool.get(at).or_else(|| self.pool.first());
        next.copied().unwrap_or(address)
    }
}
