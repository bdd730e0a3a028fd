//! Nodes of sorted keys: for IPv6, where prefixes are too far apart for a
//! bit for each place.
//!
//! A node is one cache line and looks at some bits of the address, its
//! window: 16 of them while the address names networks (after /32, after
//! /48), and all 64 that remain after that. First come the keys in order,
//! then a leaf more than keys, then the head. The leaf of an address is the
//! one after as many leaves as there are keys not above its window. Places
//! that are not needed hold the largest key and the last leaf again, so
//! that all keys of a line are compared at once and none is masked.
//!
//! A leaf is a next hop, or, with its highest bit set, how far behind this
//! node's start the next one lies: lines, times two to the power of the
//! scale, which the head says. The next node looks at the same window, if
//! there are more leaves than a line has places for, or at the bits after
//! it.

use crate::node::DEEP;
use crate::route::Route6;
use crate::store::LINE;

/// The first bit that a record looks at.
pub(crate) const FIRST: u8 = 32;
/// Where windows begin, and after the last one.
const WINDOWS: [u8; 4] = [FIRST, 48, 64, 128];
/// The window that has all bits that are left.
pub(crate) const WIDE: usize = 2;
/// Keys of a node whose window has 16 bits.
pub(crate) const NARROW_KEYS: usize = 15;
/// Keys of a node whose window has 64 bits.
pub(crate) const WIDE_KEYS: usize = 6;
/// Where a node has its head: its last two bytes.
pub(crate) const HEAD: usize = LINE - 2;

/// The end of a node: in the low two bits its window, above them the scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head(pub u16);

impl Head {
    /// Which window the node looks at: 0, 1 or [`WIDE`].
    #[inline(always)]
    pub fn window(self) -> usize {
        usize::from(self.0 & 3)
    }

    /// How far behind this node's start a leaf leads, in bytes.
    #[inline(always)]
    pub fn distance(self, leaf: u16) -> usize {
        (usize::from(leaf & !DEEP) * LINE) << (self.0 >> 2)
    }
}

/// What an address has in a window.
fn window(address: u128, which: usize) -> u64 {
    (address >> (128 - WINDOWS[which + 1])) as u64 & last(which)
}

/// The largest value of a window.
fn last(which: usize) -> u64 {
    u64::MAX >> (64 - (WINDOWS[which + 1] - WINDOWS[which]))
}

/// Most leaves of a node.
fn most_leaves(which: usize) -> usize {
    match which {
        WIDE => WIDE_KEYS + 1,
        _ => NARROW_KEYS + 1,
    }
}

/// What a window's values from a start on have.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Leaf {
    Hop(u16),
    /// Another node and what lies behind it.
    Node(Vec<u8>),
}

/// The answer for all addresses of a /32, or the record that tells them
/// apart. Routes come by prefix and length and agree in their first 32
/// bits; `cover` answers where none of them does.
pub(crate) fn record(routes: &[Route6], cover: u16) -> Result<u16, Vec<u8>> {
    record_from(0, routes, cover)
}

/// As `record`, from a window on; routes agree in the bits before it.
fn record_from(which: usize, routes: &[Route6], cover: u16) -> Result<u16, Vec<u8>> {
    let leaves = sweep(which, routes, cover);
    if leaves.len() == 1
        && let Some((_, Leaf::Hop(next_hop))) = leaves.first()
    {
        return Ok(*next_hop);
    }
    Err(node(which, leaves))
}

/// Where the answer changes in a window, and to what.
fn sweep(which: usize, routes: &[Route6], cover: u16) -> Vec<(u64, Leaf)> {
    let (first, end) = (WINDOWS[which], WINDOWS[which + 1]);
    let mut out = Leaves {
        leaves: vec![(0, Leaf::Hop(cover))],
        last: last(which),
    };
    // What holds the place where we are: last value and next hop.
    let mut open: Vec<(u64, u16)> = Vec::new();
    let mut at = 0;
    while let Some(route) = routes.get(at) {
        let start = window(route.prefix, which);
        out.close(&mut open, cover, Some(start));
        let around = open.last().map_or(cover, |(_, next_hop)| *next_hop);
        if route.len <= end {
            let rest = out.last.checked_shr((route.len - first).into());
            out.put(start, Leaf::Hop(route.next_hop));
            open.push((start | rest.unwrap_or(0), route.next_hop));
            at += 1;
            continue;
        }
        // All that lies within one value of the window.
        let rest = &routes[at..];
        let same = rest.partition_point(|route| window(route.prefix, which) == start);
        let leaf = match record_from(which + 1, &rest[..same], around) {
            Ok(next_hop) => Leaf::Hop(next_hop),
            Err(node) => Leaf::Node(node),
        };
        out.put(start, leaf);
        open.push((start, around));
        at += same;
    }
    out.close(&mut open, cover, None);
    out.leaves
}

struct Leaves {
    leaves: Vec<(u64, Leaf)>,
    /// The largest value.
    last: u64,
}

impl Leaves {
    /// From a value on there is another leaf, whatever was said before.
    fn put(&mut self, start: u64, leaf: Leaf) {
        if self.leaves.last().is_some_and(|(last, _)| *last == start) {
            self.leaves.pop();
        }
        if self.leaves.last().is_none_or(|(_, last)| *last != leaf) {
            self.leaves.push((start, leaf));
        }
    }

    /// Ends what ends before a value, or all.
    fn close(&mut self, open: &mut Vec<(u64, u16)>, cover: u16, before: Option<u64>) {
        while let Some((last, _)) = open.last().copied() {
            if before.is_some_and(|before| last >= before) {
                return;
            }
            open.pop();
            let around = open.last().map_or(cover, |(_, next_hop)| *next_hop);
            if last < self.last {
                self.put(last + 1, Leaf::Hop(around));
            }
        }
    }
}

/// A node over these leaves, and behind it all that it leads to.
fn node(which: usize, leaves: Vec<(u64, Leaf)>) -> Vec<u8> {
    let most = most_leaves(which);
    if leaves.len() <= most {
        return lay_out(which, leaves);
    }
    // As many nodes beneath this one as it takes, and the other leaves here:
    // those that are found at once are the ones with the most addresses.
    let mut beneath = most;
    while beneath * most < leaves.len() {
        beneath *= most;
    }
    let nodes = (leaves.len() - most).div_ceil(beneath - 1);
    let direct = most - nodes;
    let grouped = leaves.len() - direct;
    let first = narrowest(which, &leaves, grouped);
    let mut rest = leaves.into_iter();
    let mut above: Vec<(u64, Leaf)> = rest.by_ref().take(first).collect();
    for at in 0..nodes {
        let count = grouped * (at + 1) / nodes - grouped * at / nodes;
        let group: Vec<(u64, Leaf)> = rest.by_ref().take(count).collect();
        above.push((group[0].0, Leaf::Node(node(which, group))));
    }
    above.extend(rest);
    lay_out(which, above)
}

/// Where among the leaves so many of them lie that have the fewest values.
fn narrowest(which: usize, leaves: &[(u64, Leaf)], count: usize) -> usize {
    let end = |at: usize| match leaves.get(at) {
        Some((start, _)) => *start - 1,
        None => last(which),
    };
    let values = |at: &usize| end(at + count) - leaves[*at].0;
    (0..=leaves.len() - count).min_by_key(values).unwrap_or(0)
}

fn lay_out(which: usize, mut leaves: Vec<(u64, Leaf)>) -> Vec<u8> {
    let behind = leaves.iter().map(|(_, leaf)| match leaf {
        Leaf::Hop(_) => 0,
        Leaf::Node(node) => node.len(),
    });
    let lines = 1 + behind.sum::<usize>() / LINE;
    // No child lies further behind than this, alignment included.
    let most = |scale: u32| (lines >> scale) + leaves.len() + 1;
    let scale = (0..16).find(|scale| most(*scale) < usize::from(DEEP));
    let scale = scale.unwrap_or(16);
    let step = LINE << scale;
    let mut bytes = vec![0; LINE];
    let mut values = Vec::with_capacity(leaves.len());
    for (_, leaf) in &mut leaves {
        values.push(match leaf {
            Leaf::Hop(next_hop) => *next_hop,
            Leaf::Node(node) => {
                let place = bytes.len().next_multiple_of(step);
                bytes.resize(place, 0);
                bytes.append(node);
                DEEP | (place / step) as u16
            }
        });
    }
    let most = most_leaves(which);
    values.resize(most, values[values.len() - 1]);
    let keys = leaves.iter().skip(1).map(|(start, _)| *start);
    let keys = keys.chain(std::iter::repeat(last(which))).take(most - 1);
    let mut line = Vec::with_capacity(LINE);
    for key in keys {
        match which {
            WIDE => line.extend_from_slice(&key.to_ne_bytes()),
            _ => line.extend_from_slice(&(key as u16).to_ne_bytes()),
        }
    }
    for value in values {
        line.extend_from_slice(&value.to_ne_bytes());
    }
    line.extend_from_slice(&(which as u16 | (scale as u16) << 2).to_ne_bytes());
    bytes[..LINE].copy_from_slice(&line);
    bytes
}
