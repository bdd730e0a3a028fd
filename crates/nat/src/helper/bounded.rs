//! A map that never holds more than it may, and makes room by what is out
//! of use. For the helpers' tables.

use std::hash::Hash;

use hashbrown::HashMap;

/// How many entries are looked at for one that is out of use.
const LOOKED_AT: usize = 8;

/// At most `limit` entries. A hand goes round their keys. Room for all of
/// them is reserved with the first one, so that it never grows; what the map
/// does now and then about places that were given back is O(`limit`), and
/// small where values are.
#[derive(Debug)]
pub struct Bounded<K, V> {
    entries: HashMap<K, V>,
    /// The keys, and some of entries that are gone.
    keys: Vec<K>,
    hand: usize,
    limit: usize,
}

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            keys: Vec::new(),
            hand: 0,
            limit: 0,
        }
    }
}

impl<K: Hash + Eq + Copy, V> Bounded<K, V> {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    #[cfg(test)]
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// All entries, in the order of their keys.
    pub fn all(&self) -> impl Iterator<Item = (&K, &V)> {
        let known = self.keys.iter();
        known.filter_map(|key| Some((key, self.entries.get(key)?)))
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.entries.remove(key);
        // Keys of what is gone go when they are as many as the others.
        if self.keys.len() > 2 * self.entries.len() + LOOKED_AT {
            self.keys.retain(|key| self.entries.contains_key(key));
        }
        value
    }

    /// An entry more, or another in the place of one; `false`: there is no
    /// room, and none of some was idle. O(1), amortised over removals.
    pub fn insert(&mut self, key: K, value: V, is_idle: impl Fn(&V) -> bool) -> bool {
        if let Some(known) = self.entries.get_mut(&key) {
            *known = value;
            return true;
        }
        if self.entries.len() >= self.limit && self.evict(is_idle).is_none() {
            return false;
        }
        if self.entries.capacity() == 0 {
            self.entries.reserve(self.limit);
            self.keys.reserve(2 * self.limit + LOOKED_AT);
        }
        self.keys.push(key);
        self.entries.insert(key, value);
        true
    }

    /// Takes one away that is idle, and says which.
    pub fn evict(&mut self, is_idle: impl Fn(&V) -> bool) -> Option<(K, V)> {
        for _ in 0..LOOKED_AT.min(self.keys.len()) {
            self.hand = if self.hand + 1 < self.keys.len() {
                self.hand + 1
            } else {
                0
            };
            let key = *self.keys.get(self.hand)?;
            if self.entries.get(&key).is_none_or(&is_idle) {
                self.keys.swap_remove(self.hand);
                if let Some(value) = self.entries.remove(&key) {
                    return Some((key, value));
                }
            }
        }
        None
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_by_the_idle_only() {
        let mut bounded = Bounded::new(3);
        for number in 0..3 {
            assert!(bounded.insert(number, number, |_| false));
        }
        assert!(!bounded.insert(9, 9, |_| false));
        assert!(bounded.insert(9, 9, |value| *value == 1));
        assert!(bounded.get(&1).is_none() && bounded.len() == 3);
        for round in 0..100 {
            bounded.remove(&9);
            assert!(bounded.insert(9, round, |_| false));
            assert!(bounded.keys.len() < 20);
        }
        assert_eq!(bounded.get(&9), Some(&99));
        assert!(!Bounded::new(0).insert(1, 1, |_| true));
    }

    #[test]
    fn nothing_grows_once_there_is_one() {
        let mut bounded = Bounded::new(1_000);
        bounded.insert(0, 0, |_| false);
        let room = (bounded.entries.allocation_size(), bounded.keys.capacity());
        for number in 1..20_000 {
            bounded.insert(number, number, |_| false);
            bounded.remove(&(number / 2));
        }
        let now = (bounded.entries.allocation_size(), bounded.keys.capacity());
        assert_eq!(now, room);
    }
}
