//! How a row goes, and how nodes with few rows are joined.

use std::sync::Arc;

use super::node::{INNER, Inner, LEAF, Leaf, Node, own};
use crate::cost;

pub(super) fn remove_below<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: &K,
) -> Option<V> {
    cost::touch();
    match own(node) {
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
    let split = match (own(&mut inner.children[left]), own(&mut right)) {
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
