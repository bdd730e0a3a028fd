//! A tree built from rows that come in order: each leaf is filled once and
//! never looked at again, where an insertion goes down the tree.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::Ordered;
use super::node::{INNER, Inner, LEAF_LOW, Leaf, Node};

/// Rows taken in order, and the tree of them in the end.
#[derive(Debug)]
pub(crate) struct Build<K, V> {
    /// Full leaves, each with its first key.
    leaves: Level<K, V>,
    leaf: Leaf<K, V>,
    len: usize,
}

/// The nodes of one level, each with its first key.
type Level<K, V> = Vec<(K, Arc<Node<K, V>>)>;

impl<K, V> Default for Build<K, V> {
    fn default() -> Self {
        Self {
            leaves: Vec::new(),
            leaf: Leaf::empty(),
            len: 0,
        }
    }
}

impl<K: Ord + Clone, V: Clone> Build<K, V> {
    /// Rows so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The last row's key.
    pub(crate) fn last(&self) -> Option<&K> {
        self.leaf.keys.last()
    }

    /// Takes the next row; false, and nothing is taken, if its key is not
    /// behind the last one.
    #[inline]
    pub(crate) fn push(&mut self, key: K, value: V) -> bool {
        if self.last().is_some_and(|last| *last >= key) {
            return false;
        }
        if self.leaf.keys.is_full() {
            let full = std::mem::replace(&mut self.leaf, Leaf::empty());
            close(full, &mut self.leaves);
        }
        self.leaf.keys.push(key);
        self.leaf.values.push(value);
        self.len += 1;
        true
    }

    /// The tree.
    pub(crate) fn finish(mut self) -> Ordered<K, V> {
        self.even_out();
        close(self.leaf, &mut self.leaves);
        let mut level = self.leaves;
        while level.len() > 1 {
            level = above(level);
        }
        Ordered {
            root: level.pop().map(|(_, root)| root),
            len: self.len,
        }
    }

    /// The last leaf has no fewer rows than any other may have.
    fn even_out(&mut self) {
        if self.leaf.keys.len() >= LEAF_LOW {
            return;
        }
        if let Some((_, before)) = self.leaves.last_mut()
            && let Some(before) = Arc::get_mut(before).and_then(Node::leaf_mut)
        {
            let rows = before.keys.len() + self.leaf.keys.len();
            before.level(&mut self.leaf, rows / 2);
        }
    }
}

/// Puts a leaf behind the others, if it has a row.
fn close<K: Clone, V>(leaf: Leaf<K, V>, leaves: &mut Level<K, V>) {
    if let Some(first) = leaf.keys.first().cloned() {
        leaves.push((first, Arc::new(Node::Leaf(leaf))));
    }
}

/// The nodes above those of a level, each with as many children as the
/// others, or one less.
fn above<K: Clone, V>(level: Level<K, V>) -> Level<K, V> {
    let nodes = level.len().div_ceil(INNER);
    let (each, more) = (level.len() / nodes, level.len() % nodes);
    let mut children = level.into_iter();
    let mut above = Vec::with_capacity(nodes);
    for at in 0..nodes {
        let mut of_one = children.by_ref().take(each + usize::from(at < more));
        let Some((first, child)) = of_one.next() else {
            break;
        };
        let mut inner = Inner {
            separators: ArrayVec::new(),
            counts: ArrayVec::new(),
            children: ArrayVec::new(),
        };
        inner.counts.push(child.count());
        inner.children.push(child);
        for (key, child) in of_one {
            inner.separators.push(key);
            inner.counts.push(child.count());
            inner.children.push(child);
        }
        above.push((first, Arc::new(Node::Inner(inner))));
    }
    above
}
