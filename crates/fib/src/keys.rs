//! Records of sorted keys: for IPv6, where prefixes are too far apart for a
//! bit for each place.
//!
//! A node looks at 32 bits of the address, its window. A word says which
//! words of the node are keys (0 to 15 of them, after that word), where its
//! leaves begin, where its window begins, and a scale; then come the keys in
//! order, then one leaf more than keys. The leaf of an address
//! is the one after as many leaves as there are keys not above its window.
//! A leaf is a next hop, or, with its highest bit set, how far behind this
//! node's start the next one lies: units, times two to the power of the
//! scale. The next node looks at the same window, if there are more than 15
//! keys, or at the bits after it.
//!
//! A node that takes at most a line lies in one; one that takes more starts
//! at a line, and its keys are all in that.

use crate::node::DEEP;
use crate::route::Route6;
use crate::store::UNIT;

/// The first bit that a record looks at.
pub(crate) const FIRST: u8 = 32;
/// Bits of a window.
const WINDOW: u8 = 32;
/// Where the last window begins.
const LAST_WINDOW: u8 = 128 - WINDOW;
/// Most leaves of a node.
const MOST_LEAVES: usize = 16;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Where windows begin.
const WINDOWS: [u8; 4] = [FIRST, FIRST + WINDOW, FIRST + 2 * WINDOW, LAST_WINDOW];

/// A node's first word: from the low bits, sixteen that say which words are
/// keys, eight for the byte at which the leaves begin, two for the window,
/// five for the scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head(pub u32);

impl Head {
    fn new(keys: usize, first: u8, scale: u32) -> Self {
        let words = ((1 << keys) - 1) << 1;
        let leaves = 4 + 4 * keys as u32;
        let window = WINDOWS.iter().position(|window| *window == first);
        let window = window.unwrap_or(WINDOWS.len() - 1) as u32;
        Self(words | leaves << 16 | window << 24 | scale << 26)
    }

    /// A bit for each word of the node that is a key: bits 1 to 15, from
    /// bit 1 on.
    #[inline(always)]
    pub fn words(self) -> u32 {
        self.0 & 0xffff
    }

    /// Where the leaves begin, in bytes.
    #[inline(always)]
    pub fn leaves(self) -> usize {
        (self.0 >> 16 & 0xff) as usize
    }

    /// The address's bits that this node looks at.
    #[inline(always)]
    pub fn window(self, address: u128) -> u32 {
        window(address, WINDOWS[(self.0 >> 24 & 3) as usize])
    }

    /// How far behind this node's start a leaf leads, in bytes.
    #[inline(always)]
    pub fn distance(self, leaf: u16) -> usize {
        (usize::from(leaf & !DEEP) << (self.0 >> 26)) * UNIT
    }
}

/// 32 bits of an address from a bit on.
#[inline(always)]
fn window(address: u128, first: u8) -> u32 {
    (address >> (LAST_WINDOW - first)) as u32
}

/// What a window's values from a start on have.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Leaf {
    Hop(u16),
    /// Another node and what lies behind it.
    Node(Vec<u8>),
}

/// The answer for all addresses of a slot, or the record that tells them
/// apart. Routes come by prefix and length; `first` is the first bit that
/// is looked at, and all routes agree in those before.
pub(crate) fn record(first: u8, routes: &[Route6], cover: u16) -> Result<u16, Vec<u8>> {
    let mut leaves = sweep(first, routes, cover);
    if leaves.len() == 1
        && let Some((_, Leaf::Hop(next_hop))) = leaves.first()
    {
        return Ok(*next_hop);
    }
    Err(node(first, &mut leaves))
}

/// The record of one answer.
pub(crate) fn uniform(first: u8, next_hop: u16) -> Vec<u8> {
    node(first, &mut [(0, Leaf::Hop(next_hop))])
}

/// Where the answer changes in a window, and to what.
fn sweep(first: u8, routes: &[Route6], cover: u16) -> Vec<(u32, Leaf)> {
    let end_of_window = first + WINDOW;
    let mut out = Leaves(vec![(0, Leaf::Hop(cover))]);
    // What holds the place where we are: last value and next hop.
    let mut open: Vec<(u32, u16)> = Vec::new();
    let mut at = 0;
    while let Some(route) = routes.get(at) {
        let start = window(route.prefix, first);
        out.close(&mut open, cover, Some(start));
        let around = open.last().map_or(cover, |(_, next_hop)| *next_hop);
        if route.len <= end_of_window {
            let last = start
                | u32::MAX
                    .checked_shr((route.len - first).into())
                    .unwrap_or(0);
            out.put(start, Leaf::Hop(route.next_hop));
            open.push((last, route.next_hop));
            at += 1;
            continue;
        }
        // All that lies within one value of the window.
        let rest = &routes[at..];
        let same = rest.partition_point(|route| window(route.prefix, first) == start);
        let next = end_of_window.min(LAST_WINDOW);
        let leaf = match record(next, &rest[..same], around) {
            Ok(next_hop) => Leaf::Hop(next_hop),
            Err(node) => Leaf::Node(node),
        };
        out.put(start, leaf);
        open.push((start, around));
        at += same;
    }
    out.close(&mut open, cover, None);
    out.0
}

struct Leaves(Vec<(u32, Leaf)>);

impl Leaves {
    /// From a value on there is another leaf, whatever was said before.
    fn put(&mut self, start: u32, leaf: Leaf) {
        if self.0.last().is_some_and(|(last, _)| *last == start) {
            self.0.pop();
        }
        if self.0.last().is_none_or(|(_, last)| *last != leaf) {
            self.0.push((start, leaf));
        }
    }

    /// Ends what ends before a value, or all.
    fn close(&mut self, open: &mut Vec<(u32, u16)>, cover: u16, before: Option<u32>) {
        while let Some((last, _)) = open.last().copied() {
            if before.is_some_and(|before| last >= before) {
                return;
            }
            open.pop();
            let around = open.last().map_or(cover, |(_, next_hop)| *next_hop);
            if let Some(after) = last.checked_add(1) {
                self.put(after, Leaf::Hop(around));
            }
        }
    }
}

/// A node over these leaves, and behind it all that it leads to.
fn node(first: u8, leaves: &mut [(u32, Leaf)]) -> Vec<u8> {
    if leaves.len() <= MOST_LEAVES {
        return lay_out(first, leaves);
    }
    let groups = leaves.len().div_ceil(MOST_LEAVES).min(MOST_LEAVES);
    let each = leaves.len().div_ceil(groups);
    let mut above: Vec<(u32, Leaf)> = leaves
        .chunks_mut(each)
        .map(|group| (group[0].0, Leaf::Node(node(first, group))))
        .collect();
    lay_out(first, &mut above)
}

fn lay_out(first: u8, leaves: &mut [(u32, Leaf)]) -> Vec<u8> {
    let keys = leaves.len() - 1;
    let head = 4 + 4 * keys + 2 * leaves.len();
    let behind = leaves.iter().map(|(_, leaf)| match leaf {
        Leaf::Hop(_) => 0,
        Leaf::Node(node) => node.len().next_multiple_of(LINE) + LINE,
    });
    // No child lies further behind than this, alignment included.
    let most = |scale: u32| (head + behind.clone().sum::<usize>()) / UNIT + (leaves.len() << scale);
    let scale = (0..16).find(|scale| most(*scale) >> scale < usize::from(DEEP));
    let scale = scale.unwrap_or(16);
    let step = UNIT << scale;
    let mut bytes = vec![0; head.next_multiple_of(UNIT)];
    for (at, (start, leaf)) in leaves.iter_mut().enumerate() {
        if at > 0 {
            bytes[4 * at..4 * at + 4].copy_from_slice(&start.to_ne_bytes());
        }
        let value = match leaf {
            Leaf::Hop(next_hop) => *next_hop,
            Leaf::Node(node) => {
                let mut place = bytes.len().next_multiple_of(step);
                if place % LINE + node.len() > LINE {
                    place = place.next_multiple_of(step.max(LINE));
                }
                bytes.resize(place, 0);
                bytes.append(node);
                bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
                DEEP | (place / step) as u16
            }
        };
        let to = 4 + 4 * keys + 2 * at;
        bytes[to..to + 2].copy_from_slice(&value.to_ne_bytes());
    }
    bytes[..4].copy_from_slice(&Head::new(keys, first, scale).0.to_ne_bytes());
    bytes
}
