//! The nodes of an [`Ordered`](super::Ordered), and how a key is found in
//! one. For the files beside this one.

use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::cost;

/// Rows in a leaf. 64 rows of 20 bytes are one copy of 1.3 KiB.
pub(super) const LEAF: usize = 64;
/// Children of an inner node: as many as make it no larger than a leaf of
/// routes, and a search of it no longer than that of one level more.
pub(super) const INNER: usize = 40;
/// A leaf with fewer rows than this is joined or evened out with a neighbour.
pub(super) const LEAF_LOW: usize = LEAF / 4;
pub(super) const INNER_LOW: usize = INNER / 4;
/// Levels of the tree at most: 16^12 rows are out of reach.
pub(super) const DEPTH: usize = 12;

#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "sized alike on purpose; see INNER"
)]
pub(super) enum Node<K, V> {
    Leaf(Leaf<K, V>),
    Inner(Inner<K, V>),
}

#[derive(Debug, Clone)]
pub(super) struct Leaf<K, V> {
    pub(super) keys: ArrayVec<K, LEAF>,
    pub(super) values: ArrayVec<V, LEAF>,
    /// Where the row after the last inserted one would go, 0 if unknown:
    /// a run of ascending or descending insertions splits there and
    /// leaves full leaves behind.
    pub(super) next: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Inner<K, V> {
    /// `separators[i]` is above every key of child `i` and at or below
    /// every key of child `i + 1`.
    pub(super) separators: ArrayVec<K, INNER>,
    pub(super) children: ArrayVec<Arc<Node<K, V>>, INNER>,
    /// How many rows are below each child.
    pub(super) counts: ArrayVec<u32, INNER>,
}

/// A run of rows that come in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    Up,
    Down,
}

impl<K, V> Leaf<K, V> {
    pub(super) fn empty() -> Self {
        Self {
            keys: ArrayVec::new(),
            values: ArrayVec::new(),
            next: 0,
        }
    }

    pub(super) fn of_one(key: K, value: V) -> Self {
        let mut leaf = Self::empty();
        leaf.put(0, key, value);
        leaf
    }

    #[inline(always)]
    pub(super) fn put(&mut self, at: usize, key: K, value: V) {
        self.keys.insert(at, key);
        self.values.insert(at, value);
        self.next = at as u32 + 1;
    }

    /// Moves the rows from `at` on into a new leaf.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        Self {
            keys: self.keys.drain(at..).collect(),
            values: self.values.drain(at..).collect(),
            next: 0,
        }
    }
}

impl<K: Ord, V> Leaf<K, V> {
    /// The run of rows in order that a row at a place goes on with.
    pub(super) fn run(&self, at: usize) -> Option<Run> {
        match self.next as usize {
            next if next == at && at > 0 => Some(Run::Up),
            next if next == at + 1 => Some(Run::Down),
            _ => None,
        }
    }

    /// Puts a new row where it belongs; there is room.
    pub(super) fn place(&mut self, key: K, value: V) {
        if let Err(at) = self.find(&key) {
            self.put(at, key, value);
        }
    }

    /// Moves the first rows of the leaf behind to the end of this one.
    pub(super) fn take_from(&mut self, behind: &mut Self, rows: usize) {
        self.keys.extend(behind.keys.drain(..rows));
        self.values.extend(behind.values.drain(..rows));
        (self.next, behind.next) = (0, 0);
    }

    /// Moves the last rows to the front of the leaf behind.
    fn give_to(&mut self, behind: &mut Self, rows: usize) {
        let at = self.keys.len() - rows;
        behind.keys.extend(self.keys.drain(at..));
        behind.values.extend(self.values.drain(at..));
        behind.keys.rotate_right(rows);
        behind.values.rotate_right(rows);
        (self.next, behind.next) = (0, 0);
    }

    /// Moves rows between this leaf and the one behind it, so that so many
    /// are in this one.
    pub(super) fn level(&mut self, behind: &mut Self, rows: usize) {
        match self.keys.len().checked_sub(rows) {
            Some(more) => self.give_to(behind, more),
            None => self.take_from(behind, rows - self.keys.len()),
        }
    }
}

impl<K, V> Inner<K, V> {
    pub(super) fn of_two(left: Arc<Node<K, V>>, separator: K, right: Arc<Node<K, V>>) -> Self {
        let mut inner = Self {
            separators: ArrayVec::new(),
            children: ArrayVec::new(),
            counts: ArrayVec::new(),
        };
        inner.counts.push(left.count());
        inner.children.push(left);
        inner.put(0, separator, right);
        inner
    }

    /// Moves the children from `at` on into a new node; gives the key
    /// between the two.
    pub(super) fn split_off(&mut self, at: usize) -> (K, Self) {
        let upper = Self {
            separators: self.separators.drain(at..).collect(),
            children: self.children.drain(at..).collect(),
            counts: self.counts.drain(at..).collect(),
        };
        (self.separators.remove(at - 1), upper)
    }

    /// Puts a child behind another, where there is room.
    pub(super) fn put(&mut self, child: usize, separator: K, right: Arc<Node<K, V>>) {
        self.separators.insert(child, separator);
        self.counts.insert(child + 1, right.count());
        self.children.insert(child + 1, right);
    }
}

/// A node to change: copied first, where a clone of the tree shares it.
#[inline(always)]
pub(super) fn own<K: Clone, V: Clone>(node: &mut Arc<Node<K, V>>) -> &mut Node<K, V> {
    if cfg!(debug_assertions) && Arc::strong_count(node) > 1 {
        cost::copy(size_of::<Node<K, V>>());
    }
    Arc::make_mut(node)
}

/// A leaf and the one behind it.
type Pair<'a, K, V> = (&'a mut Leaf<K, V>, &'a mut Leaf<K, V>);

impl<K: Clone, V: Clone> Inner<K, V> {
    /// A leaf and the one behind it, no longer shared with a clone.
    pub(super) fn leaves(&mut self, left: usize) -> Option<Pair<'_, K, V>> {
        let (before, behind) = self.children.split_at_mut(left + 1);
        let one = own(before.last_mut()?).leaf_mut()?;
        let two = own(behind.first_mut()?).leaf_mut()?;
        Some((one, two))
    }

    /// Says anew what is between a leaf and the one behind it, and how many
    /// rows they have.
    pub(super) fn set_pair(&mut self, left: usize) {
        for child in [left, left + 1] {
            self.counts[child] = self.children[child].count();
        }
        if let Node::Leaf(behind) = &*self.children[left + 1]
            && let Some(first) = behind.keys.first()
        {
            self.separators[left] = first.clone();
        }
    }
}

impl<K: Ord, V> Inner<K, V> {
    /// Rows that come in order, as those of a dump do, belong to the last
    /// child: one comparison tells.
    #[inline]
    pub(super) fn child_of(&self, key: &K) -> usize {
        match self.separators.last() {
            Some(last) if last <= key => self.separators.len(),
            _ => rank(&self.separators, |s| s <= key),
        }
    }
}

impl<K: Ord, V> Leaf<K, V> {
    /// Where a key is, or would be put; the end is looked at first, for
    /// the same reason.
    #[inline(always)]
    pub(super) fn find(&self, key: &K) -> Result<usize, usize> {
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
#[inline(always)]
pub(super) fn rank<K>(keys: &[K], is_before: impl Fn(&K) -> bool) -> usize {
    let (strides, _) = keys.as_chunks::<STRIDE>();
    let before = STRIDE
        * strides
            .iter()
            .map(|stride| usize::from(is_before(&stride[STRIDE - 1])))
            .sum::<usize>();
    let within = keys.iter().skip(before).take(STRIDE - 1);
    before + within.map(|key| usize::from(is_before(key))).sum::<usize>()
}

impl<K, V> Node<K, V> {
    pub(super) fn leaf_mut(&mut self) -> Option<&mut Leaf<K, V>> {
        match self {
            Self::Leaf(leaf) => Some(leaf),
            Self::Inner(_) => None,
        }
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.keys.len(),
            Node::Inner(inner) => inner.children.len(),
        }
    }

    /// Rows below, all levels together.
    pub(super) fn count(&self) -> u32 {
        match self {
            Node::Leaf(leaf) => leaf.keys.len() as u32,
            Node::Inner(inner) => inner.counts.iter().sum(),
        }
    }

    pub(super) fn is_low(&self) -> bool {
        match self {
            Node::Leaf(_) => self.rows() < LEAF_LOW,
            Node::Inner(_) => self.rows() < INNER_LOW,
        }
    }
}
