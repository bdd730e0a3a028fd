//! Sets of IPv4 addresses as ranges: the subscribers' addresses, and the
//! destinations that are left alone. For the engine and its callers.

use std::fmt;
use std::net::Ipv4Addr;

/// Addresses in a row, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressRange {
    /// The first one.
    pub first: Ipv4Addr,
    /// The last one, not below the first.
    pub last: Ipv4Addr,
}

impl AddressRange {
    /// One of a prefix's length that holds an address.
    pub fn of_prefix(address: Ipv4Addr, bits: u8) -> Self {
        let hosts = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
        let first = address.to_bits() & !hosts;
        Self {
            first: Ipv4Addr::from_bits(first),
            last: Ipv4Addr::from_bits(first | hosts),
        }
    }

    /// How many addresses it has.
    pub fn count(self) -> u64 {
        u64::from(self.last.to_bits() - self.first.to_bits()) + 1
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(out),
            false => write!(out, "{}-{}", self.first, self.last),
        }
    }
}

/// Ranges in order, none touching another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    /// Of ranges in any order. O(ranges, and their logarithm).
    pub fn new(ranges: &[AddressRange]) -> Self {
        let bits = |range: &AddressRange| (range.first.to_bits(), range.last.to_bits());
        let mut sorted: Vec<(u32, u32)> = ranges.iter().map(bits).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (first, last) in sorted {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an address (host order) is in one. O(log ranges).
    pub fn has(&self, address: u32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= address);
        let range = after.checked_sub(1).and_then(|at| self.0.get(at));
        range.is_some_and(|(_, last)| address <= *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u32, last: u32) -> AddressRange {
        let [first, last] = [first, last].map(Ipv4Addr::from_bits);
        AddressRange { first, last }
    }

    #[test]
    fn an_address_is_in_a_set_if_it_is_in_one_of_its_ranges() {
        let mut random = crate::key::Random::new(3);
        for _ in 0..500 {
            let base = if random.below(2) == 0 {
                0
            } else {
                u32::MAX - 60
            };
            let mut drawn = Vec::new();
            for _ in 0..random.below(6) {
                let first = base + random.below(40);
                drawn.push(range(first, first + random.below(20)));
            }
            let set = Ranges::new(&drawn);
            assert_eq!(set.is_empty(), drawn.is_empty());
            for address in base..=base + 60 {
                let expected = drawn
                    .iter()
                    .any(|range| (range.first.to_bits()..=range.last.to_bits()).contains(&address));
                assert_eq!(set.has(address), expected, "{drawn:?} {address}");
            }
        }
    }

    #[test]
    fn a_prefix_is_a_range() {
        let of = |bits| AddressRange::of_prefix(Ipv4Addr::new(10, 1, 2, 3), bits).to_string();
        assert_eq!(of(32), "10.1.2.3");
        assert_eq!(of(29), "10.1.2.0-10.1.2.7");
        assert_eq!(of(0), "0.0.0.0-255.255.255.255");
        assert_eq!(
            AddressRange::of_prefix(Ipv4Addr::LOCALHOST, 0).count(),
            1 << 32
        );
    }
}
