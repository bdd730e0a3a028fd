//! Records of equal steps: which of 64, or 256, places have another answer
//! than the next one, and the answers.
//!
//! A record begins with a bit for each place: set where the next place has
//! another leaf. So the leaves after a place are as many as the bits from
//! its own on, and leaves lie last first: one shift and one count find the
//! leaf of a place, with nothing to mask. A record of 256 places has four
//! words of bits and, behind them, for each word the leaves of the words
//! after it.
//!
//! A leaf is a next hop, or, with its highest bit set, how far behind the
//! record's start, in units, a record lies that tells the place's own places
//! apart.

use crate::store::UNIT;

/// In a leaf: it leads to a record of 256 places.
pub(crate) const DEEP: u16 = 0x8000;
/// Where a record of 64 places has its leaves.
pub(crate) const LEAVES_64: usize = 8;
/// Where a record of 256 places counts the leaves after each word.
pub(crate) const AFTER_256: usize = 32;
/// Where a record of 256 places has its leaves.
pub(crate) const LEAVES_256: usize = 36;

/// Sixty-four answers and the records behind them, in the making.
#[derive(Debug)]
pub(crate) struct Draft {
    leaves: [u16; 64],
    /// A bit for each place after which the answer may change.
    edges: u64,
    /// The places in order that have a record of their own, and its answers.
    deep: Vec<(u8, [u16; 256])>,
    /// The record's bytes, and those of the deep ones behind it.
    bytes: Vec<u8>,
    tail: Vec<u8>,
}

impl Draft {
    /// Nothing but a next hop, or none.
    pub fn new() -> Self {
        Self {
            leaves: [0; 64],
            edges: 0,
            deep: Vec::new(),
            bytes: Vec::new(),
            tail: Vec::new(),
        }
    }

    /// Begins again, with one answer everywhere.
    pub fn clear(&mut self, next_hop: u16) {
        self.leaves = [next_hop; 64];
        self.edges = 0;
        self.deep.clear();
    }

    /// An answer for places from one on; prefixes come with the shorter
    /// before those inside, so it stands over what was there.
    pub fn fill(&mut self, first: usize, count: usize, next_hop: u16) {
        self.leaves[first..first + count].fill(next_hop);
        self.edges |= 1_u64 << (first + count - 1);
        if first > 0 {
            self.edges |= 1 << (first - 1);
        }
    }

    /// An answer for addresses within one place.
    pub fn fill_deep(&mut self, place: usize, first: usize, count: usize, next_hop: u16) {
        let known = self.deep.last().map(|(place, _)| usize::from(*place));
        if known != Some(place) {
            self.deep.push((place as u8, [self.leaves[place]; 256]));
        }
        if let Some((_, leaves)) = self.deep.last_mut() {
            leaves[first..first + count].fill(next_hop);
        }
    }

    /// The one answer everywhere, if it is one; else the record's bytes.
    pub fn finish(&mut self) -> Result<u16, &[u8]> {
        let mut deep = std::mem::take(&mut self.deep);
        // A deep place that turns out to be of one answer is a plain leaf.
        deep.retain(|(place, leaves)| {
            let place = usize::from(*place);
            let uniform = leaves.iter().all(|leaf| *leaf == leaves[0]);
            self.leaves[place] = leaves[0];
            self.edges |= 1 << place | if place > 0 { 1 << (place - 1) } else { 0 };
            !uniform
        });
        let bits = self.changes(&deep);
        let uniform = bits == 0 && deep.is_empty();
        if !uniform {
            self.write(bits, &deep);
        }
        self.deep = deep;
        match uniform {
            true => Ok(self.leaves[0]),
            false => Err(&self.bytes),
        }
    }

    /// A bit for each place whose next one has another leaf.
    fn changes(&self, deep: &[(u8, [u16; 256])]) -> u64 {
        let mut around = 0_u64;
        for (place, _) in deep {
            around |= 1 << place
                | 1_u64
                    .checked_shl(u32::from(*place).wrapping_sub(1))
                    .unwrap_or(0);
        }
        let mut bits = around;
        let mut edges = self.edges & !around;
        while edges != 0 {
            let at = edges.trailing_zeros() as usize;
            edges &= edges - 1;
            if at < 63 && self.leaves[at] != self.leaves[at + 1] {
                bits |= 1 << at;
            }
        }
        // After the last place comes nothing.
        bits & (u64::MAX >> 1)
    }

    fn write(&mut self, bits: u64, deep: &[(u8, [u16; 256])]) {
        let (bytes, tail) = (&mut self.bytes, &mut self.tail);
        let leaves = bits.count_ones() as usize + 1;
        let head = (LEAVES_64 + 2 * leaves).next_multiple_of(UNIT);
        tail.clear();
        for (place, answers) in deep {
            let at = push_256(tail, head, answers);
            self.leaves[usize::from(*place)] = DEEP | (at / UNIT) as u16;
        }
        bytes.clear();
        bytes.extend_from_slice(&bits.to_ne_bytes());
        bytes.extend_from_slice(&self.leaves[63].to_ne_bytes());
        let mut left = bits;
        while left != 0 {
            let at = 63 - left.leading_zeros() as usize;
            left &= !(1 << at);
            bytes.extend_from_slice(&self.leaves[at].to_ne_bytes());
        }
        if !tail.is_empty() {
            bytes.resize(head, 0);
            bytes.extend_from_slice(tail);
        }
    }
}

/// Appends a record of 256 places to the tail that follows a head; its
/// distance from the head's start. It crosses a line only if it must: the
/// whole starts at a line as soon as it is longer than one.
fn push_256(tail: &mut Vec<u8>, head: usize, answers: &[u16; 256]) -> usize {
    let mut words = [0_u64; 4];
    for at in 0..255 {
        let differs = answers[at] != answers[at + 1];
        words[at / 64] |= u64::from(differs) << (at % 64);
    }
    let counts = words.map(u64::count_ones);
    let leaves = counts.iter().sum::<u32>() as usize + 1;
    let len = LEAVES_256 + 2 * leaves;
    let start = (head + tail.len()).next_multiple_of(UNIT);
    let crosses = start % 64 + len > 64 && !start.is_multiple_of(64) && len <= 64;
    let start = if crosses {
        start.next_multiple_of(64)
    } else {
        start
    };
    tail.resize(start - head, 0);
    for word in words {
        tail.extend_from_slice(&word.to_ne_bytes());
    }
    let after = |word: usize| counts[word + 1..].iter().sum::<u32>() as u8;
    tail.extend_from_slice(&std::array::from_fn::<u8, 4, _>(after));
    tail.extend_from_slice(&answers[255].to_ne_bytes());
    for at in (0..255).rev() {
        if answers[at] != answers[at + 1] {
            tail.extend_from_slice(&answers[at].to_ne_bytes());
        }
    }
    start
}
