//! A walk over the rows of an [`Ordered`](super::Ordered).

use std::iter;

use arrayvec::ArrayVec;

use super::node::{DEPTH, Inner, Leaf, Node};
use crate::cost;

/// So many rows ahead are fetched: as many as are written into a packet
/// while memory answers once.
const AHEAD: usize = 8;

/// The rows of an [`Ordered`](super::Ordered) in order, from where it was sought.
#[derive(Debug, Clone)]
pub struct Iter<'a, K, V> {
    pub(super) path: ArrayVec<(&'a Inner<K, V>, usize), DEPTH>,
    pub(super) leaf: Option<&'a Leaf<K, V>>,
    pub(super) at: usize,
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        cost::touch();
        loop {
            let leaf = self.leaf?;
            if let Some(key) = leaf.keys.get(self.at) {
                let value = &leaf.values[self.at];
                self.at += 1;
                return Some((key, value));
            }
            self.leaf = self.next_leaf();
            self.at = 0;
        }
    }
}

impl<'a, K, V> Iter<'a, K, V> {
    /// Behind the last row.
    pub(super) const END: Self = Self {
        path: ArrayVec::new_const(),
        leaf: None,
        at: 0,
    };

    /// The same walk for values that point to their rows (`row` follows the
    /// pointer without looking behind it): rows ahead are fetched while
    /// others are looked at. After tables have come and gone, rows lie
    /// anywhere, and each would be waited for.
    pub fn fetching<R: 'a>(
        mut self,
        row: impl Fn(&'a V) -> &'a R,
    ) -> impl Iterator<Item = (&'a K, &'a V)> {
        iter::from_fn(move || {
            if let Some(ahead) = self.leaf.and_then(|leaf| leaf.values.get(self.at + AHEAD)) {
                memory::prefetch(row(ahead));
            }
            self.next()
        })
    }

    /// The key that comes next.
    #[inline(always)]
    pub(crate) fn key(&self) -> Option<&'a K> {
        self.leaf?.keys.get(self.at)
    }

    /// The key before the one that comes next, where one look tells it.
    #[inline(always)]
    pub(crate) fn key_before(&self) -> Option<&'a K> {
        self.leaf?.keys.get(self.at.checked_sub(1)?)
    }

    fn next_leaf(&mut self) -> Option<&'a Leaf<K, V>> {
        let mut node = loop {
            let (inner, child) = self.path.pop()?;
            if let Some(next) = inner.children.get(child + 1) {
                self.path.push((inner, child + 1));
                break &**next;
            }
        };
        loop {
            match node {
                Node::Leaf(leaf) => return Some(leaf),
                Node::Inner(inner) => {
                    self.path.push((inner, 0));
                    node = inner.children.first()?;
                }
            }
        }
    }
}
