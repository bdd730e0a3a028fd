//! Which ports a block of an alias address has: the same for all addresses.
//!
//! ```text
//!   port_range  |fixed 0|fixed 1| … |fixed C-1|dynamic 0|dynamic 1| … |rest|
//!   blocks          0       1           C-1        C        C+1
//! ```
//! Without deterministic blocks there are no fixed ones. With a key the
//! ports of the fixed part are shuffled; its blocks are as large, and none
//! has a port of another.

use std::ops::RangeInclusive;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{Blocks, BlocksError, Key};

/// A block of an address, and which of its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    pub block: u32,
    pub place: u32,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    first: u32,
    /// The last port of the range and one more.
    end: u32,
    fixed_size: u32,
    fixed: u32,
    size: u32,
    dynamic: u32,
    shuffled: Option<Arc<Shuffled>>,
    /// Dynamic blocks that have a reserved port, in order.
    holes: Arc<[u32]>,
}

/// The ports of the fixed part in another order, both ways.
#[derive(Debug, PartialEq, Eq)]
struct Shuffled {
    to: Vec<u16>,
    from: Vec<u16>,
}

impl Layout {
    /// `ratio`: fixed blocks of an address, 0 without deterministic ones.
    pub fn new(
        ports: &RangeInclusive<u16>,
        blocks: &Blocks,
        ratio: u32,
    ) -> Result<Self, BlocksError> {
        let (first, end) = (u32::from(*ports.start()), u32::from(*ports.end()) + 1);
        let count = end - first;
        let size = u32::from(blocks.size);
        let wrong_size = || BlocksError::Size {
            size: blocks.size,
            ports: ports.clone(),
        };
        if blocks.size < Blocks::LEAST_SIZE {
            return Err(wrong_size());
        }
        if blocks.most == 0 || blocks.most > Blocks::MOST {
            return Err(BlocksError::Most { most: blocks.most });
        }
        let mut fixed_size = 0;
        let mut key = None;
        if let Some(deterministic) = &blocks.deterministic {
            let dynamic = deterministic.dynamic;
            fixed_size = count / ratio.saturating_add(dynamic).max(1);
            if fixed_size < u32::from(Blocks::LEAST_SIZE) {
                let ports = fixed_size;
                return Err(BlocksError::Thin {
                    ratio,
                    dynamic,
                    ports,
                });
            }
            if !blocks.reserved.is_empty() {
                return Err(BlocksError::Reserved);
            }
            key = deterministic.key;
        }
        let shared = count - fixed_size * ratio;
        let wants_dynamic = blocks
            .deterministic
            .as_ref()
            .is_none_or(|of| of.dynamic > 0);
        let dynamic = if wants_dynamic { shared / size } else { 0 };
        if wants_dynamic && dynamic == 0 {
            return Err(wrong_size());
        }
        let dynamic_first = first + fixed_size * ratio;
        let hole = |block: &u32| {
            let from = dynamic_first + block * size;
            let to = from + size - 1;
            let mut reserved = blocks.reserved.iter();
            reserved.any(|(low, high)| u32::from(*low) <= to && from <= u32::from(*high))
        };
        let holes: Arc<[u32]> = (0..dynamic)
            .filter(hole)
            .map(|block| ratio + block)
            .collect();
        if wants_dynamic && holes.len() as u32 == dynamic {
            return Err(wrong_size());
        }
        Ok(Self {
            first,
            end,
            fixed_size,
            fixed: ratio,
            size,
            dynamic,
            shuffled: key.map(|key| Arc::new(Shuffled::new(fixed_size * ratio, key))),
            holes,
        })
    }

    /// Blocks of an address, those with reserved ports included.
    pub fn blocks(&self) -> u32 {
        self.fixed + self.dynamic
    }

    /// How many of them are fixed: the first ones.
    pub fn fixed(&self) -> u32 {
        self.fixed
    }

    /// Whether a block may be given to anybody.
    pub fn may_be_given(&self, block: u32) -> bool {
        block >= self.fixed && self.holes.binary_search(&block).is_err()
    }

    /// Ports of a block.
    pub fn size(&self, block: u32) -> u32 {
        if block < self.fixed {
            self.fixed_size
        } else {
            self.size
        }
    }

    /// Where the dynamic blocks begin.
    fn dynamic_first(&self) -> u32 {
        self.first + self.fixed * self.fixed_size
    }

    /// A port by its place in a block, host order.
    #[inline]
    pub fn port(&self, at: At) -> u16 {
        if at.block >= self.fixed {
            let before = (at.block - self.fixed) * self.size + at.place;
            return (self.dynamic_first() + before) as u16;
        }
        let before = at.block * self.fixed_size + at.place;
        let moved = match &self.shuffled {
            None => before,
            Some(shuffled) => u32::from(shuffled.to.get(before as usize).copied().unwrap_or(0)),
        };
        (self.first + moved) as u16
    }

    /// Where a port (host order) is; `None`: in no block.
    #[inline]
    pub fn at(&self, port: u16) -> Option<At> {
        let port = u32::from(port);
        if port < self.first || port >= self.end {
            return None;
        }
        let dynamic_first = self.dynamic_first();
        if port >= dynamic_first {
            let before = port - dynamic_first;
            let block = before / self.size;
            return (block < self.dynamic).then_some(At {
                block: self.fixed + block,
                place: before % self.size,
            });
        }
        let moved = port - self.first;
        let before = match &self.shuffled {
            None => moved,
            Some(shuffled) => u32::from(shuffled.from.get(moved as usize).copied().unwrap_or(0)),
        };
        Some(At {
            block: before / self.fixed_size,
            place: before % self.fixed_size,
        })
    }

    /// The first and the last port of a block that lies in a row; `None`: its
    /// ports are shuffled.
    pub fn row(&self, block: u32) -> Option<(u16, u16)> {
        if block < self.fixed && self.shuffled.is_some() {
            return None;
        }
        let last = self.size(block) - 1;
        let port = |place| self.port(At { block, place });
        Some((port(0), port(last)))
    }
}

impl Layout {
    /// First and last port of the block that may be given and has a port
    /// (host order).
    pub fn row_at(&self, port: u16) -> Option<(u16, u16)> {
        let block = self.at(port)?.block;
        self.row(block).filter(|_| self.may_be_given(block))
    }

    /// Whether these are the first and last port of a block that may be
    /// given.
    pub fn is_block(&self, ports: (u16, u16)) -> bool {
        self.row_at(ports.0) == Some(ports)
    }
}

impl Shuffled {
    /// So many ports in an order that only who has the key can tell: Fisher
    /// and Yates's shuffle by SHA-256 of the key and a counter.
    fn new(count: u32, key: Key) -> Self {
        let mut stream = Stream::new(key);
        let mut to: Vec<u16> = (0..count).map(|at| at as u16).collect();
        for left in (1..to.len()).rev() {
            to.swap(left, stream.below(left as u32 + 1) as usize);
        }
        let mut from = vec![0; to.len()];
        for (at, moved) in to.iter().enumerate() {
            if let Some(place) = from.get_mut(usize::from(*moved)) {
                *place = at as u16;
            }
        }
        Self { to, from }
    }
}

/// Numbers of a key: the same ones in every version.
struct Stream {
    key: Key,
    counter: u64,
    words: [u64; 4],
    left: usize,
}

impl Stream {
    fn new(key: Key) -> Self {
        Self {
            key,
            counter: 0,
            words: [0; 4],
            left: 0,
        }
    }

    fn number(&mut self) -> u64 {
        if self.left == 0 {
            let mut hash = Sha256::new();
            hash.update(self.key.0);
            hash.update(self.counter.to_be_bytes());
            let digest: [u8; 32] = hash.finalize().into();
            let (chunks, _) = digest.as_chunks::<8>();
            for (word, bytes) in self.words.iter_mut().zip(chunks) {
                *word = u64::from_be_bytes(*bytes);
            }
            self.counter += 1;
            self.left = self.words.len();
        }
        self.left -= 1;
        self.words.get(self.left).copied().unwrap_or(0)
    }

    fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::Deterministic;
    use super::*;

    fn every_port_is_in_one_block(layout: &Layout) {
        let mut seen = vec![false; 1 << 16];
        for block in 0..layout.blocks() {
            for place in 0..layout.size(block) {
                let at = At { block, place };
                let port = layout.port(at);
                assert_eq!(layout.at(port), Some(at));
                assert!(!std::mem::replace(&mut seen[usize::from(port)], true));
            }
        }
        for (port, is_seen) in seen.into_iter().enumerate() {
            assert_eq!(layout.at(port as u16).is_some(), is_seen, "{port}");
        }
    }

    #[test]
    fn every_port_is_in_one_block_of_any_layout() {
        let mut random = crate::key::Random::new(11);
        let mut made = 0;
        for _ in 0..150 {
            let first = 1 + random.below(60_000);
            let last = first + random.below(65_536 - first);
            let ports = first as u16..=last as u16;
            let deterministic = (random.below(2) == 0).then(|| Deterministic {
                ratio: 0,
                dynamic: random.below(3),
                key: (random.below(2) == 0).then(|| Key([random.below(256) as u8; 16])),
            });
            let ratio = match deterministic {
                Some(_) => 1 + random.below(40),
                None => 0,
            };
            let blocks = Blocks {
                size: 1 + random.below(600) as u16,
                deterministic,
                ..Blocks::default()
            };
            if let Ok(layout) = Layout::new(&ports, &blocks, ratio) {
                every_port_is_in_one_block(&layout);
                made += 1;
            }
        }
        assert!(made > 60, "{made}");
    }

    #[test]
    fn a_key_tells_the_order_and_another_key_another_one() {
        let of = |key| {
            let blocks = Blocks {
                size: 64,
                deterministic: Some(Deterministic {
                    dynamic: 0,
                    key: Some(Key([key; 16])),
                    ..Deterministic::default()
                }),
                ..Blocks::default()
            };
            let layout = Layout::new(&(1_024..=65_535), &blocks, 16).unwrap();
            let ports: Vec<u16> = (0..4)
                .map(|place| layout.port(At { block: 1, place }))
                .collect();
            ports
        };
        // What a key says must never change: it is what old questions are
        // answered by.
        assert_eq!(of(7), [31_493, 53_110, 29_110, 23_941]);
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn a_block_with_a_reserved_port_is_given_to_nobody() {
        let blocks = Blocks {
            size: 100,
            reserved: vec![(1_299, 1_300), (5_000, 5_000)],
            ..Blocks::default()
        };
        let layout = Layout::new(&(1_000..=1_999), &blocks, 0).unwrap();
        let given: Vec<u32> = (0..10)
            .filter(|block| layout.may_be_given(*block))
            .collect();
        assert_eq!(given, [0, 1, 4, 5, 6, 7, 8, 9]);
        let all = Blocks {
            reserved: vec![(1, 65_535)],
            ..blocks
        };
        assert!(Layout::new(&(1_000..=1_999), &all, 0).is_err());
    }
}
