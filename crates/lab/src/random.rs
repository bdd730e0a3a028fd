//! Numbers that look random and are the same in every run. Called by the
//! situations and by benchmarks.

/// SplitMix64: one multiplication chain a number, no state but a counter.
/// Not for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound` (0 when `bound` is 0), biased by less than
    /// `bound / 2^64`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.number()) * bound as u128) >> 64) as usize
    }

    /// Puts a slice in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        for at in (1..slice.len()).rev() {
            slice.swap(at, self.below(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_stays_in_bounds_and_keeps_every_element() {
        let mut random = Random::new(7);
        assert_eq!(random.clone().number(), random.number());
        assert!((0..1_000).all(|_| random.below(10) < 10));
        assert_eq!(random.below(0), 0);
        let mut deck: Vec<u32> = (0..100).collect();
        random.shuffle(&mut deck);
        assert_ne!(deck, (0..100).collect::<Vec<_>>());
        deck.sort_unstable();
        assert_eq!(deck, (0..100).collect::<Vec<_>>());
    }
}
