//! What the writer samples while somebody reads it, with its age.

use std::time::Instant;

use crate::row::counters::{LinkCounters, NeighbourAges};

/// Rows sampled at one moment, ordered by key. Replaced whole.
#[derive(Debug, Clone)]
pub struct Sample<K, V> {
    /// When it was taken, milliseconds since the UNIX epoch; `None`: never.
    pub taken_at_millis: Option<u64>,
    rows: Vec<(K, V)>,
}

impl<K, V> Default for Sample<K, V> {
    fn default() -> Self {
        Self {
            taken_at_millis: None,
            rows: Vec::new(),
        }
    }
}

impl<K: Ord, V> Sample<K, V> {
    /// From rows in any order. O(n log n), once a sample.
    pub fn new(taken_at_millis: u64, mut rows: Vec<(K, V)>) -> Self {
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self {
            taken_at_millis: Some(taken_at_millis),
            rows,
        }
    }

    /// The sampled value of a key. O(log n).
    pub fn get(&self, key: &K) -> Option<&V> {
        let at = self.rows.binary_search_by(|(k, _)| k.cmp(key)).ok()?;
        Some(&self.rows[at].1)
    }

    /// The rows from a key on (itself included), in order. A seek, then
    /// O(1) a row.
    pub fn from<'a>(&'a self, key: &K) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let first = self.rows.partition_point(|(k, _)| k < key);
        self.rows
            .iter()
            .skip(first)
            .map(|(key, value)| (key, value))
    }

    /// Milliseconds since it was taken; `None`: never taken.
    pub fn age_millis(&self, now_millis: u64) -> Option<u64> {
        self.taken_at_millis
            .map(|taken| now_millis.saturating_sub(taken))
    }
}

/// What a link has counted, and when: rates are made of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// What it counted.
    pub counters: LinkCounters,
    /// When the kernel had just read it; `None`: it told of its own accord,
    /// with the link, or that is not known.
    pub at: Option<Instant>,
}

impl From<LinkCounters> for Counted {
    /// Of an unknown time.
    fn from(counters: LinkCounters) -> Self {
        Self { counters, at: None }
    }
}

/// What a sample knows of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourSample {
    /// Its ages.
    pub ages: NeighbourAges,
}
