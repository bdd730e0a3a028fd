//! How a row comes, and where it goes when its leaf is full.
//!
//! Rows that come in order fill up the leaf that they leave behind, or
//! split theirs where they are. Else a full leaf evens itself out with the
//! neighbour that has fewer rows, while that one has room; then both become
//! three (a B*-tree's rule). So leaves are full after a load in order,
//! whichever, and five sixths full after one in random order, where halving
//! them would leave two thirds.

use std::sync::Arc;

use super::node::{INNER, Inner, LEAF, Leaf, Node, Run, own};
use crate::cost;

/// Fewer rows than this are not moved: the leaf would be full again at once.
const ROOM: usize = 3;

/// What became of a row below a node.
pub(super) enum Inserted<K, V> {
    /// It is in its place; the value that it replaced.
    Done(Option<V>),
    /// It is new, and the node has become two: this one goes behind it.
    Split(K, Arc<Node<K, V>>),
    /// The node is a full leaf, as it was: its parent makes room.
    Full(K, V),
}

pub(super) fn insert_below<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
) -> Inserted<K, V> {
    cost::touch();
    match own(node) {
        Node::Leaf(leaf) => insert_in_leaf(leaf, key, value),
        Node::Inner(inner) => {
            let child = inner.child_of(&key);
            match insert_below(&mut inner.children[child], key, value) {
                Inserted::Done(old) => {
                    inner.counts[child] += u32::from(old.is_none());
                    Inserted::Done(old)
                }
                Inserted::Split(separator, right) => {
                    inner.counts[child] = inner.counts[child] + 1 - right.count();
                    insert_child(inner, child, separator, right)
                }
                // In a leaf only: this node is above it.
                Inserted::Full(key, value) => insert_beside(inner, child, key, value),
            }
        }
    }
}

#[inline(always)]
fn insert_in_leaf<K: Ord + Clone, V: Clone>(
    leaf: &mut Leaf<K, V>,
    key: K,
    value: V,
) -> Inserted<K, V> {
    let at = match leaf.find(&key) {
        Ok(at) => return Inserted::Done(Some(std::mem::replace(&mut leaf.values[at], value))),
        Err(at) => at,
    };
    if leaf.keys.is_full() {
        return Inserted::Full(key, value);
    }
    leaf.put(at, key, value);
    Inserted::Done(None)
}

/// Parts a full leaf and puts a row in the half that it belongs to; one
/// between the two in the larger, where a run goes on, while that has room.
fn split<K: Ord + Clone, V>(
    leaf: &mut Leaf<K, V>,
    middle: usize,
    key: K,
    value: V,
) -> (K, Arc<Node<K, V>>) {
    let at = leaf.find(&key).unwrap_or_else(|at| at);
    let mut right = leaf.split_off(middle);
    let (before, behind) = (leaf.keys.len(), right.keys.len());
    let in_left = before < LEAF && (before >= behind || behind == LEAF);
    if at < middle || (at == middle && in_left) {
        leaf.put(at, key, value);
    } else {
        right.put(at - middle, key, value);
    }
    (right.keys[0].clone(), Arc::new(Node::Leaf(right)))
}

/// Halves a full leaf that is the whole tree.
pub(super) fn halve<K: Ord + Clone, V: Clone>(
    root: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
) -> Option<(K, Arc<Node<K, V>>)> {
    let leaf = own(root).leaf_mut()?;
    let at = leaf.find(&key).unwrap_or_else(|at| at);
    let middle = leaf.run(at).map_or(LEAF / 2, |_| at);
    Some(split(leaf, middle, key, value))
}

/// Puts a new row where its leaf is full: one in ten. Out of the way of the
/// others, whose code stays small.
#[cold]
#[inline(never)]
fn insert_beside<K: Ord + Clone, V: Clone>(
    inner: &mut Inner<K, V>,
    child: usize,
    key: K,
    value: V,
) -> Inserted<K, V> {
    let Node::Leaf(leaf) = &*inner.children[child] else {
        // Inner nodes are split by who fills them.
        return Inserted::Full(key, value);
    };
    let at = leaf.find(&key).unwrap_or_else(|at| at);
    let run = leaf.run(at);
    if let Some((left, stay)) = left_behind(inner, child, run, at) {
        return share(inner, left, stay, key, value);
    }
    let splits = match run {
        Some(Run::Up) => at > LEAF / 2,
        Some(Run::Down) => at < LEAF / 2,
        None => false,
    };
    let neighbour = neighbour(inner, child).filter(|_| !splits);
    let Some(neighbour) = neighbour else {
        let middle = if splits { at } else { LEAF / 2 };
        return split_child(inner, child, middle, key, value);
    };
    let (left, rows) = (child.min(neighbour), inner.counts[neighbour] as usize);
    if LEAF - rows >= ROOM {
        return share(inner, left, (LEAF + rows) / 2, key, value);
    }
    three_of_two(inner, left, key, value)
}

/// Where a run leaves a leaf behind that has room: the left one of that and
/// its own, and how many rows that one is to have.
fn left_behind<K, V>(
    inner: &Inner<K, V>,
    child: usize,
    run: Option<Run>,
    at: usize,
) -> Option<(usize, usize)> {
    let room = |rows: &u32| LEAF - *rows as usize;
    let (left, stay, moved) = match run? {
        Run::Up => {
            let left = child.checked_sub(1)?;
            let rows = inner.counts.get(left)?;
            let moved = room(rows).min(at - 1);
            (left, *rows as usize + moved, moved)
        }
        Run::Down => {
            let moved = room(inner.counts.get(child + 1)?).min(LEAF - at);
            (child, LEAF - moved, moved)
        }
    };
    (moved >= ROOM).then_some((left, stay))
}

/// The neighbour with fewer rows.
fn neighbour<K, V>(inner: &Inner<K, V>, child: usize) -> Option<usize> {
    let behind = Some(child + 1).filter(|n| *n < inner.children.len());
    let both = [child.checked_sub(1), behind].into_iter().flatten();
    both.min_by_key(|n| inner.counts[*n])
}

/// Moves rows between a leaf and the one behind it, so that `stay` are in
/// the first, and puts a row in one of them.
fn share<K: Ord + Clone, V: Clone>(
    inner: &mut Inner<K, V>,
    left: usize,
    stay: usize,
    key: K,
    value: V,
) -> Inserted<K, V> {
    cost::touch();
    let Some((one, two)) = inner.leaves(left) else {
        return Inserted::Full(key, value);
    };
    one.level(two, stay);
    let into = if key < two.keys[0] { one } else { two };
    into.place(key, value);
    inner.set_pair(left);
    Inserted::Done(None)
}

/// Makes three leaves of two, and puts a row in one of them.
fn three_of_two<K: Ord + Clone, V: Clone>(
    inner: &mut Inner<K, V>,
    left: usize,
    key: K,
    value: V,
) -> Inserted<K, V> {
    cost::touch();
    let Some((one, three)) = inner.leaves(left) else {
        return Inserted::Full(key, value);
    };
    let mut two = one.split_off(LEAF * 2 / 3);
    two.take_from(three, LEAF / 3);
    let into = if key < two.keys[0] {
        one
    } else if key < three.keys[0] {
        &mut two
    } else {
        three
    };
    into.place(key, value);
    inner.set_pair(left);
    let separator = two.keys[0].clone();
    insert_child(inner, left, separator, Arc::new(Node::Leaf(two)))
}

fn split_child<K: Ord + Clone, V: Clone>(
    inner: &mut Inner<K, V>,
    child: usize,
    middle: usize,
    key: K,
    value: V,
) -> Inserted<K, V> {
    let Some(leaf) = own(&mut inner.children[child]).leaf_mut() else {
        return Inserted::Full(key, value);
    };
    let (separator, right) = split(leaf, middle, key, value);
    inner.counts[child] = leaf.keys.len() as u32;
    insert_child(inner, child, separator, right)
}

fn insert_child<K: Ord + Clone, V>(
    inner: &mut Inner<K, V>,
    child: usize,
    separator: K,
    right: Arc<Node<K, V>>,
) -> Inserted<K, V> {
    if !inner.children.is_full() {
        inner.put(child, separator, right);
        return Inserted::Done(None);
    }
    // Loads in order leave full nodes behind, as in leaves.
    let middle = if child + 1 == INNER {
        INNER - 1
    } else {
        INNER / 2
    };
    let (between, mut upper) = inner.split_off(middle);
    if child < middle {
        inner.put(child, separator, right);
    } else {
        upper.put(child - middle, separator, right);
    }
    Inserted::Split(between, Arc::new(Node::Inner(upper)))
}
