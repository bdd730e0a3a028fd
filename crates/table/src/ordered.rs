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

use std::ops::Bound;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::cost;

/// Rows in a leaf. 64 rows of 20 bytes are one copy of 1.3 KiB.
const LEAF: usize = 64;
/// Children of an inner node; half of [`LEAF`], so that a node's size is
/// that of its leaf.
const INNER: usize = 32;
/// A leaf with fewer rows than this is joined or evened out with a neighbour.
const LEAF_LOW: usize = LEAF / 4;
const INNER_LOW: usize = INNER / 4;
/// Levels of the tree at most: 16^12 rows are out of reach.
const DEPTH: usize = 12;

/// An ordered map with O(1) clones. `K` and `V` are small; larger rows
/// belong behind an `Arc`.
#[derive(Debug)]
pub struct Ordered<K, V> {
    root: Option<Arc<Node<K, V>>>,
    len: usize,
}

#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "sized alike on purpose; see INNER"
)]
enum Node<K, V> {
    Leaf(Leaf<K, V>),
    Inner(Inner<K, V>),
}

#[derive(Debug, Clone)]
struct Leaf<K, V> {
    keys: ArrayVec<K, LEAF>,
    values: ArrayVec<V, LEAF>,
    /// Where the row after the last inserted one would go: a run of
    /// ascending insertions splits there and leaves full leaves behind.
    next: u32,
}

#[derive(Debug, Clone)]
struct Inner<K, V> {
    /// `separators[i]` is above every key of child `i` and at or below
    /// every key of child `i + 1`.
    separators: ArrayVec<K, INNER>,
    children: ArrayVec<Arc<Node<K, V>>, INNER>,
    /// How many rows are below each child.
    counts: ArrayVec<u32, INNER>,
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
            let mut leaf = Leaf::empty();
            leaf.put(0, key, value);
            self.root = Some(Arc::new(Node::Leaf(leaf)));
            self.len = 1;
            return None;
        };
        let (old, split) = insert_below(root, key, value);
        if let Some((separator, right)) = split {
            let left = Arc::clone(root);
            let mut inner = Inner {
                separators: ArrayVec::new(),
                children: ArrayVec::new(),
                counts: ArrayVec::new(),
            };
            inner.separators.push(separator);
            for child in [left, right] {
                inner.counts.push(child.count());
                inner.children.push(child);
            }
            *root = Arc::new(Node::Inner(inner));
        }
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

impl<K, V> Leaf<K, V> {
    fn empty() -> Self {
        Self {
            keys: ArrayVec::new(),
            values: ArrayVec::new(),
            next: 0,
        }
    }

    fn put(&mut self, at: usize, key: K, value: V) {
        self.keys.insert(at, key);
        self.values.insert(at, value);
        self.next = at as u32 + 1;
    }

    /// Moves the rows from `at` on into a new leaf.
    fn split_off(&mut self, at: usize) -> Self {
        Self {
            keys: self.keys.drain(at..).collect(),
            values: self.values.drain(at..).collect(),
            next: 0,
        }
    }
}

impl<K, V> Inner<K, V> {
    /// Puts a child behind another, where there is room.
    fn put(&mut self, child: usize, separator: K, right: Arc<Node<K, V>>) {
        self.separators.insert(child, separator);
        self.counts.insert(child + 1, right.count());
        self.children.insert(child + 1, right);
    }
}

impl<K: Ord, V> Inner<K, V> {
    /// Rows that come in order, as those of a dump do, belong to the last
    /// child: one comparison tells.
    #[inline]
    fn child_of(&self, key: &K) -> usize {
        match self.separators.last() {
            Some(last) if last <= key => self.separators.len(),
            _ => rank(&self.separators, |s| s <= key),
        }
    }
}

impl<K: Ord, V> Leaf<K, V> {
    /// Where a key is, or would be put; the end is looked at first, for
    /// the same reason.
    #[inline]
    fn find(&self, key: &K) -> Result<usize, usize> {
        match self.keys.last() {
            Some(last) if last < key => Err(self.keys.len()),
            _ => {
                let at = rank(&self.keys, |k| k < key);
                match self.keys.get(at) {
                    Some(found) if found == key => Ok(at),
                    _ => Err(at),
                }
            }
        }
    }
}

/// Keys between two that are looked at first.
const STRIDE: usize = 8;

/// How many of the ordered keys are before a place: first by every eighth
/// key, then within eight. A binary search of a node waits for memory at
/// each of its six steps, and guesses each branch wrong half the time;
/// here all loads of a round are under way at once and nothing branches.
#[inline]
fn rank<K>(keys: &[K], is_before: impl Fn(&K) -> bool) -> usize {
    let strides = keys.iter().skip(STRIDE - 1).step_by(STRIDE);
    let before = STRIDE
        * strides
            .map(|key| usize::from(is_before(key)))
            .sum::<usize>();
    let within = keys.iter().skip(before).take(STRIDE - 1);
    before + within.map(|key| usize::from(is_before(key))).sum::<usize>()
}

type Split<K, V> = Option<(K, Arc<Node<K, V>>)>;

fn insert_below<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
) -> (Option<V>, Split<K, V>) {
    cost::touch();
    match Arc::make_mut(node) {
        Node::Leaf(leaf) => match leaf.find(&key) {
            Ok(at) => (Some(std::mem::replace(&mut leaf.values[at], value)), None),
            Err(at) => (None, insert_in_leaf(leaf, at, key, value)),
        },
        Node::Inner(inner) => {
            let child = inner.child_of(&key);
            let (old, split) = insert_below(&mut inner.children[child], key, value);
            inner.counts[child] += u32::from(old.is_none());
            let above =
                split.and_then(|(separator, right)| insert_child(inner, child, separator, right));
            (old, above)
        }
    }
}

fn insert_in_leaf<K: Ord + Clone, V: Clone>(
    leaf: &mut Leaf<K, V>,
    at: usize,
    key: K,
    value: V,
) -> Split<K, V> {
    if !leaf.keys.is_full() {
        leaf.put(at, key, value);
        return None;
    }
    let ascending = leaf.next as usize == at && at > LEAF / 2;
    let middle = if ascending { at } else { LEAF / 2 };
    let mut right = leaf.split_off(middle);
    if at < middle || (at == middle && !leaf.keys.is_full()) {
        leaf.put(at, key, value);
    } else {
        right.put(at - middle, key, value);
    }
    let separator = right.keys[0].clone();
    Some((separator, Arc::new(Node::Leaf(right))))
}

fn insert_child<K: Ord + Clone, V>(
    inner: &mut Inner<K, V>,
    child: usize,
    separator: K,
    right: Arc<Node<K, V>>,
) -> Split<K, V> {
    // What the child was parted into counts as one so far.
    inner.counts[child] -= right.count();
    if !inner.children.is_full() {
        inner.put(child, separator, right);
        return None;
    }
    // Ascending loads leave full nodes behind, as in leaves.
    let middle = if child + 1 == INNER {
        INNER - 1
    } else {
        INNER / 2
    };
    let mut upper = Inner {
        separators: inner.separators.drain(middle..).collect(),
        children: inner.children.drain(middle..).collect(),
        counts: inner.counts.drain(middle..).collect(),
    };
    // The separator between the halves moves up.
    let between = inner.separators.pop()?;
    if child < middle {
        inner.put(child, separator, right);
    } else {
        upper.put(child - middle, separator, right);
    }
    Some((between, Arc::new(Node::Inner(upper))))
}

fn remove_below<K: Ord + Clone, V: Clone>(node: &mut Arc<Node<K, V>>, key: &K) -> Option<V> {
    cost::touch();
    match Arc::make_mut(node) {
        Node::Leaf(leaf) => {
            let at = leaf.find(key).ok()?;
            leaf.keys.remove(at);
            leaf.next = 0;
            Some(leaf.values.remove(at))
        }
        Node::Inner(inner) => {
            let child = inner.child_of(key);
            let old = remove_below(&mut inner.children[child], key);
            inner.counts[child] -= u32::from(old.is_some());
            if old.is_some() && inner.children[child].is_low() && inner.children.len() > 1 {
                join_children(inner, child);
            }
            old
        }
    }
}

impl<K, V> Node<K, V> {
    fn rows(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.keys.len(),
            Node::Inner(inner) => inner.children.len(),
        }
    }

    /// Rows below, all levels together.
    fn count(&self) -> u32 {
        match self {
            Node::Leaf(leaf) => leaf.keys.len() as u32,
            Node::Inner(inner) => inner.counts.iter().sum(),
        }
    }

    fn is_low(&self) -> bool {
        match self {
            Node::Leaf(_) => self.rows() < LEAF_LOW,
            Node::Inner(_) => self.rows() < INNER_LOW,
        }
    }
}

/// Joins a low child with a neighbour, or evens the two out when they do
/// not fit in one node. Keeps every node but the root above its low mark.
fn join_children<K: Ord + Clone, V: Clone>(inner: &mut Inner<K, V>, child: usize) {
    let left = if child + 1 < inner.children.len() {
        child
    } else {
        child - 1
    };
    let mut right = inner.children.remove(left + 1);
    let separator = inner.separators.remove(left);
    inner.counts.remove(left + 1);
    let split = match (
        Arc::make_mut(&mut inner.children[left]),
        Arc::make_mut(&mut right),
    ) {
        (Node::Leaf(into), Node::Leaf(from)) => join_leaves(into, from),
        (Node::Inner(into), Node::Inner(from)) => join_inners(into, from, separator),
        // All leaves are on one level: two children are of one kind.
        (Node::Leaf(_), Node::Inner(_)) | (Node::Inner(_), Node::Leaf(_)) => None,
    };
    inner.counts[left] = inner.children[left].count();
    if let Some(separator) = split {
        inner.put(left, separator, right);
    }
}

/// Moves all of `right` to `left` if it fits, else half of both to each;
/// gives the separator of a `right` that remains.
fn join_leaves<K: Clone, V>(left: &mut Leaf<K, V>, right: &mut Leaf<K, V>) -> Option<K> {
    let mut keys: Vec<K> = left.keys.drain(..).chain(right.keys.drain(..)).collect();
    let mut values: Vec<V> = left
        .values
        .drain(..)
        .chain(right.values.drain(..))
        .collect();
    left.next = 0;
    right.next = 0;
    let middle = if keys.len() <= LEAF {
        keys.len()
    } else {
        keys.len() / 2
    };
    right.keys.extend(keys.drain(middle..));
    right.values.extend(values.drain(middle..));
    left.keys.extend(keys);
    left.values.extend(values);
    right.keys.first().cloned()
}

fn join_inners<K, V>(left: &mut Inner<K, V>, right: &mut Inner<K, V>, separator: K) -> Option<K> {
    let mut separators: Vec<K> = left.separators.drain(..).collect();
    separators.push(separator);
    separators.extend(right.separators.drain(..));
    let mut children: Vec<_> = left
        .children
        .drain(..)
        .chain(right.children.drain(..))
        .collect();
    let mut counts: Vec<_> = left
        .counts
        .drain(..)
        .chain(right.counts.drain(..))
        .collect();
    if children.len() <= INNER {
        left.separators.extend(separators);
        left.children.extend(children);
        left.counts.extend(counts);
        return None;
    }
    let middle = children.len() / 2;
    right.children.extend(children.drain(middle..));
    right.counts.extend(counts.drain(middle..));
    right.separators.extend(separators.drain(middle..));
    left.children.extend(children);
    left.counts.extend(counts);
    let between = separators.pop();
    left.separators.extend(separators);
    between
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

/// The rows of an [`Ordered`] in order, from where it was sought.
#[derive(Debug, Clone)]
pub struct Iter<'a, K, V> {
    path: ArrayVec<(&'a Inner<K, V>, usize), DEPTH>,
    leaf: Option<&'a Leaf<K, V>>,
    at: usize,
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
    const END: Self = Self {
        path: ArrayVec::new_const(),
        leaf: None,
        at: 0,
    };

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u16, u32),
        Remove(u16),
        Run(u16, u8),
        RemoveRun(u16, u8),
        Share,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u16..2000, any::<u32>()).prop_map(|(k, v)| Step::Insert(k, v)),
            3 => (0u16..2000).prop_map(Step::Remove),
            1 => (0u16..2000, any::<u8>()).prop_map(|(k, n)| Step::Run(k, n)),
            1 => (0u16..2000, any::<u8>()).prop_map(|(k, n)| Step::RemoveRun(k, n)),
            1 => Just(Step::Share),
        ]
    }

    fn same(ours: &Ordered<u16, u32>, oracle: &BTreeMap<u16, u32>, probe: u16) {
        assert_eq!(ours.len(), oracle.len());
        assert!(ours.iter().eq(oracle.iter()));
        assert!(ours.from(&probe).eq(oracle.range(probe..)));
        let after = (Bound::Excluded(probe), Bound::Unbounded);
        assert!(ours.after(&probe).eq(oracle.range(after)));
        let rank = ours.rank(&probe);
        assert_eq!(rank, oracle.range(..probe).count());
        assert!(ours.from_rank(rank).eq(oracle.range(probe..)));
        let far = usize::from(probe) * 7;
        assert!(ours.from_rank(far).eq(oracle.iter().skip(far)));
        assert_eq!(ours.last_to(&probe), oracle.range(..=probe).next_back());
        assert_eq!(ours.get(&probe), oracle.get(&probe));
        assert_eq!(ours.first(), oracle.first_key_value());
        assert_eq!(ours.last(), oracle.last_key_value());
    }

    fn apply(step: &Step, ours: &mut Ordered<u16, u32>, oracle: &mut BTreeMap<u16, u32>) {
        match *step {
            Step::Insert(k, v) => assert_eq!(ours.insert(k, v), oracle.insert(k, v)),
            Step::Remove(k) => assert_eq!(ours.remove(&k), oracle.remove(&k)),
            Step::Run(k, n) => {
                for k in k..k + u16::from(n) {
                    assert_eq!(ours.insert(k, 0), oracle.insert(k, 0));
                }
            }
            Step::RemoveRun(k, n) => {
                for k in k..k + u16::from(n) {
                    assert_eq!(ours.remove(&k), oracle.remove(&k));
                }
            }
            Step::Share => {}
        }
    }

    proptest! {
        #[test]
        fn behaves_as_a_btree_map_and_leaves_clones_alone(
            steps in proptest::collection::vec(step(), 1..200),
            probe in 0u16..2300,
        ) {
            let mut ours = Ordered::default();
            let mut oracle = BTreeMap::new();
            let mut shared = Vec::new();
            for step in &steps {
                apply(step, &mut ours, &mut oracle);
                if matches!(step, Step::Share) {
                    shared.push((ours.clone(), oracle.clone()));
                }
                same(&ours, &oracle, probe);
            }
            for (ours, oracle) in &shared {
                same(ours, oracle, probe);
            }
        }
    }

    #[test]
    fn an_ascending_load_fills_its_leaves() {
        let mut ours = Ordered::default();
        for k in 0..100_000u32 {
            ours.insert(k, k);
        }
        let full = 100_000usize.div_ceil(LEAF) * (size_of::<Node<u32, u32>>() + 16);
        assert!(
            ours.heap_bytes() < full + full / 16,
            "{} bytes",
            ours.heap_bytes()
        );
    }

    #[test]
    fn a_hundred_thousand_random_rows_come_and_go() {
        let mut ours = Ordered::default();
        let mut oracle = BTreeMap::new();
        let mut random = memory::Random::new(1);
        for _ in 0..300_000 {
            let key = random.below(100_000) as u32;
            if random.below(2) == 0 {
                assert_eq!(ours.insert(key, key), oracle.insert(key, key));
            } else {
                assert_eq!(ours.remove(&key), oracle.remove(&key));
            }
        }
        assert!(ours.iter().eq(oracle.iter()));
        for (skip, row) in oracle.iter().enumerate().step_by(97) {
            assert_eq!(ours.from_rank(skip).next(), Some(row));
            assert_eq!(ours.rank(row.0), skip);
        }
        assert_eq!(ours.from_rank(oracle.len()).next(), None);
        assert_eq!(ours.from_rank(usize::MAX).next(), None);
    }
}
