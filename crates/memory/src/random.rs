//! Numbers that look random and are the same in every run of a seed. The one
//! generator of the house: for tests, situations, benchmarks, and for choices
//! whose seed nobody outside knows.

/// SplitMix64: one multiplication chain a number, no state but a counter.
/// Not for secrets.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The seed of the rest of the sequence: what goes on by it goes on as
    /// this one.
    pub fn rest(&self) -> u64 {
        self.state
    }

    /// The next 64 bits.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.state)
    }

    /// A number below `bound` (0 when `bound` is 0), biased by less than
    /// `bound / 2^64`.
    #[inline]
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

/// Spreads a number over 64 bits, each of which depends on all (the finish of
/// SplitMix64).
#[inline]
pub fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_splitmix64_s() {
        // As Java's SplittableRandom and the reference in C have them.
        let mut random = Random::new(1_234_567);
        let numbers = [(); 3].map(|()| random.number());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn repeats_stays_in_bounds_and_keeps_every_element() {
        let mut random = Random::new(7);
        let mut again = random;
        assert_eq!(again.number(), random.number());
        assert!((0..1_000).all(|_| random.below(10) < 10));
        assert_eq!(random.below(0), 0);
        let mut deck: Vec<u32> = (0..100).collect();
        random.shuffle(&mut deck);
        assert_ne!(deck, (0..100).collect::<Vec<_>>());
        deck.sort_unstable();
        assert_eq!(deck, (0..100).collect::<Vec<_>>());
    }
}
