//! The container under every table: an ordered map whose copy costs one
//! pointer.
//!
//! A B+-tree with shared nodes. [`Ordered::clone`] shares the whole tree;
//! a later change copies the nodes on its path that are still shared, and
//! only those. A reader that holds a clone therefore sees one moment for
//! as long as it likes, and neither waits for the writer nor makes it wait.
//!
//! Why not a ready-made container: `docs/decisions/001-ordered-container.md`.
//! Oracle: `std::collections::BTreeMap`, in this module's property test.

mod build;
mod insert;
mod iter;
mod node;
mod remove;
#[cfg(test)]
mod tests;

use std::ops::Bound;
use std::sync::Arc;

pub(crate) use self::build::Build;
use self::insert::{Inserted, insert_below};
pub use self::iter::Iter;
use self::node::{Inner, Leaf, Node, rank};
use self::remove::remove_below;
use crate::cost;

/// An ordered map with O(1) clones. `K` and `V` are small; larger rows
/// belong behind an `Arc`.
#[derive(Debug)]
pub struct Ordered<K, V> {
    root: Option<Arc<Node<K, V>>>,
    len: usize,
}

impl<K, V> Clone for Ordered<K, V> {
    fn clone(&self) -> Self {
        Self {
            root: self.root.clone(),
            len: self.len,
        }
    }
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

impl<K, V> Ordered<K, V> {
    /// Number of rows. O(1).
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row. O(1).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of heap held by the nodes, shared ones included; what keys and
    /// values point to is not counted. O(nodes).
    pub fn heap_bytes(&self) -> usize {
        fn nodes<K, V>(node: &Node<K, V>) -> usize {
            match node {
                Node::Leaf(_) => 1,
                Node::Inner(inner) => 1 + inner.children.iter().map(|c| nodes(c)).sum::<usize>(),
            }
        }
        let node_bytes = size_of::<Node<K, V>>() + 2 * size_of::<usize>();
        self.root.as_deref().map_or(0, nodes) * node_bytes
    }
}

impl<K: Ord + Clone, V: Clone> Ordered<K, V> {
    /// The value of a key. O(log n), no allocation.
    pub fn get(&self, key: &K) -> Option<&V> {
        let mut node = self.root.as_deref()?;
        loop {
            cost::touch();
            match node {
                Node::Inner(inner) => node = &inner.children[inner.child_of(key)],
                Node::Leaf(leaf) => {
                    let at = leaf.find(key).ok()?;
                    return Some(&leaf.values[at]);
                }
            }
        }
    }

    /// Whether the key is there. O(log n).
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Puts a row, and gives the value it replaced. O(log n); copies the
    /// nodes on the path that a clone still shares.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some(root) = self.root.as_mut() else {
            let leaf = Leaf::of_one(key, value);
            self.root = Some(Arc::new(Node::Leaf(leaf)));
            self.len = 1;
            return None;
        };
        let old = match insert_below(root, key, value) {
            Inserted::Done(old) => old,
            Inserted::Split(separator, right) => {
                grow(root, separator, right);
                None
            }
            Inserted::Full(key, value) => {
                if let Some((separator, right)) = insert::halve(root, key, value) {
                    grow(root, separator, right);
                }
                None
            }
        };
        self.len += usize::from(old.is_none());
        old
    }

    /// Takes a row out. O(log n); copies as [`Ordered::insert`] does, and
    /// copies nothing when the key is not there.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        if !self.contains_key(key) {
            return None;
        }
        let root = self.root.as_mut()?;
        let old = remove_below(root, key);
        self.len -= usize::from(old.is_some());
        let only_child = match &**root {
            Node::Leaf(leaf) if leaf.keys.is_empty() => {
                self.root = None;
                return old;
            }
            Node::Inner(inner) if inner.children.len() == 1 => inner.children.first().cloned(),
            _ => None,
        };
        if let Some(child) = only_child {
            *root = child;
        }
        old
    }

    /// All rows in order. Reaching the first is O(log n), each next O(1).
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.seek(Bound::Unbounded)
    }

    /// The rows from a key on (itself included), in order: a seek and a run.
    pub fn from(&self, key: &K) -> Iter<'_, K, V> {
        self.seek(Bound::Included(key))
    }

    /// The rows after a key, in order.
    pub fn after(&self, key: &K) -> Iter<'_, K, V> {
        self.seek(Bound::Excluded(key))
    }

    /// The last row at or before a key. O(log n).
    pub fn last_to(&self, key: &K) -> Option<(&K, &V)> {
        last_to(self.root.as_deref()?, key)
    }

    /// The rows from the last one at or before a key on. O(log n).
    pub fn from_last_to(&self, key: &K) -> Option<Iter<'_, K, V>> {
        let mut iter = self.after(key);
        if iter.at > 0 {
            iter.at -= 1;
            return Some(iter);
        }
        let (last, _) = self.last_to(key)?;
        Some(self.from(last))
    }

    /// The first row.
    pub fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// The last row. O(log n).
    pub fn last(&self) -> Option<(&K, &V)> {
        last(self.root.as_deref()?)
    }

    /// How many rows are before a key. O(log n).
    pub fn rank(&self, key: &K) -> usize {
        let mut before = 0;
        let mut next = self.root.as_deref();
        while let Some(node) = next.take() {
            cost::touch();
            match node {
                Node::Inner(inner) => {
                    let child = inner.child_of(key);
                    let left = inner.counts.iter().take(child);
                    before += left.map(|rows| *rows as usize).sum::<usize>();
                    next = Some(&inner.children[child]);
                }
                Node::Leaf(leaf) => before += rank(&leaf.keys, |k| k < key),
            }
        }
        before
    }

    /// The rows in order without the first `skip`. Reaching the first of
    /// them is O(log n), whatever `skip` is.
    pub fn from_rank(&self, mut skip: usize) -> Iter<'_, K, V> {
        let mut iter = Iter::END;
        let mut next = self.root.as_deref().filter(|_| skip < self.len);
        while let Some(node) = next.take() {
            cost::touch();
            match node {
                Node::Inner(inner) => {
                    let mut child = 0;
                    while let Some(rows) = inner.counts.get(child)
                        && *rows as usize <= skip
                    {
                        skip -= *rows as usize;
                        child += 1;
                    }
                    iter.path.push((inner, child));
                    next = inner.children.get(child).map(|child| &**child);
                }
                Node::Leaf(leaf) => (iter.leaf, iter.at) = (Some(leaf), skip),
            }
        }
        iter
    }

    fn seek(&self, start: Bound<&K>) -> Iter<'_, K, V> {
        let mut iter = Iter::END;
        let mut next = self.root.as_deref();
        while let Some(node) = next.take() {
            cost::touch();
            match node {
                Node::Inner(inner) => {
                    let child = match start {
                        Bound::Unbounded => 0,
                        Bound::Included(key) | Bound::Excluded(key) => inner.child_of(key),
                    };
                    iter.path.push((inner, child));
                    next = Some(&inner.children[child]);
                }
                Node::Leaf(leaf) => {
                    iter.leaf = Some(leaf);
                    iter.at = match start {
                        Bound::Unbounded => 0,
                        Bound::Included(key) => rank(&leaf.keys, |k| k < key),
                        Bound::Excluded(key) => rank(&leaf.keys, |k| k <= key),
                    };
                }
            }
        }
        iter
    }
}

/// Puts a root above two nodes.
fn grow<K, V>(root: &mut Arc<Node<K, V>>, separator: K, right: Arc<Node<K, V>>) {
    let left = Arc::clone(root);
    *root = Arc::new(Node::Inner(Inner::of_two(left, separator, right)));
}

fn last_to<'a, K: Ord, V>(node: &'a Node<K, V>, key: &K) -> Option<(&'a K, &'a V)> {
    cost::touch();
    match node {
        Node::Leaf(leaf) => {
            let at = match leaf.find(key) {
                Ok(at) => at,
                Err(at) => at.checked_sub(1)?,
            };
            Some((&leaf.keys[at], &leaf.values[at]))
        }
        Node::Inner(inner) => {
            let child = inner.child_of(key);
            last_to(&inner.children[child], key)
                .or_else(|| last(&inner.children[child.checked_sub(1)?]))
        }
    }
}

fn last<K, V>(node: &Node<K, V>) -> Option<(&K, &V)> {
    match node {
        Node::Leaf(leaf) => Some((leaf.keys.last()?, leaf.values.last()?)),
        Node::Inner(inner) => last(inner.children.last()?),
    }
}
