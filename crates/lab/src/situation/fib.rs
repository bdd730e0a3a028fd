//! What a packet path looks up: a full table as plain numbers, its next
//! hops alike where prefixes are near one another, and streams of addresses
//! to ask it for. Called by the benchmarks of `fib` and `dataplane`.
//!
//! Made up, like [`super::routes`], but with every length: a million IPv4
//! routes have 3 % longer than /24, as networks keep inside, so that 3 to 4
//! % of the addresses inside prefixes need more than 24 bits.

use std::collections::HashSet;

use crate::Random;

/// A prefix, left-aligned in 128 bits for both families, its length and its
/// next hop, from 1.
pub type Route = (u128, u8, u16);

/// Next hops of a table; few of them have most of the routes.
pub const NEXT_HOPS: u16 = 200;
/// Addresses of a stream.
pub const ADDRESSES: usize = 1 << 20;
const SEED: u64 = 6;
/// So many of 100 prefixes lie inside a shorter one.
const NESTED_OF_100: usize = 80;
/// So many of 100 prefixes share the next hop of what they lie in, or next
/// to.
const ALIKE_OF_100: usize = 45;
/// Prefixes of a length that lie beside one another, at most.
const BESIDE: usize = 4;

/// Prefix lengths and how many of 1,000,000 have them.
const LENGTHS_V4: &[(u8, usize)] = &[
    (8, 16),
    (9, 14),
    (10, 40),
    (11, 100),
    (12, 290),
    (13, 570),
    (14, 1_200),
    (15, 2_000),
    (16, 13_500),
    (17, 8_200),
    (18, 13_800),
    (19, 25_500),
    (20, 44_000),
    (21, 50_500),
    (22, 108_000),
    (23, 97_000),
    (24, 605_270),
    (25, 5_000),
    (26, 4_400),
    (27, 3_600),
    (28, 3_400),
    (29, 4_800),
    (30, 3_800),
    (31, 500),
    (32, 4_500),
];

/// Likewise for IPv6. What is longer than /48 lies inside networks.
const LENGTHS_V6: &[(u8, usize)] = &[
    (19, 20),
    (20, 200),
    (22, 100),
    (24, 400),
    (26, 200),
    (28, 2_500),
    (29, 26_000),
    (30, 6_000),
    (31, 3_000),
    (32, 115_000),
    (33, 13_000),
    (34, 11_000),
    (35, 6_000),
    (36, 56_000),
    (37, 4_000),
    (38, 16_000),
    (39, 8_000),
    (40, 88_000),
    (41, 4_000),
    (42, 35_000),
    (43, 4_000),
    (44, 90_000),
    (45, 15_000),
    (46, 33_000),
    (47, 30_000),
    (48, 390_000),
    (52, 3_000),
    (56, 12_000),
    (60, 3_000),
    (64, 16_000),
    (72, 500),
    (80, 700),
    (96, 900),
    (112, 1_000),
    (120, 1_000),
    (124, 800),
    (126, 1_500),
    (127, 1_500),
    (128, 3_000),
];

/// First bits of IPv6 prefixes: the /12s of the five registries and what
/// was given out before them.
const BLOCKS_V6: &[(u16, u8)] = &[
    (0x2400, 12),
    (0x2600, 12),
    (0x2800, 12),
    (0x2a00, 12),
    (0x2a00, 12),
    (0x2c00, 12),
    (0x2001, 16),
];

/// Which family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Where the addresses of a stream lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Anywhere (IPv6: in `2000::/3`).
    Uniform,
    /// In a prefix picked at random, anywhere in it.
    Inside,
    /// As [`Stream::Inside`], of prefixes whose popularity follows Zipf's
    /// law with the exponent 1.
    Zipf,
}

impl Stream {
    /// All, in the order of the reports.
    pub const ALL: [Self; 3] = [Self::Uniform, Self::Inside, Self::Zipf];

    /// Its name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Inside => "inside",
            Self::Zipf => "zipf",
        }
    }
}

/// A table of about `count` distinct prefixes, the shorter ones first.
pub fn table(family: Family, count: usize) -> Vec<Route> {
    let mut random = Random::new(SEED);
    let mut seen = HashSet::with_capacity(count);
    let mut routes: Vec<Route> = Vec::with_capacity(count);
    let lengths = family.lengths();
    let total: usize = lengths.iter().map(|(_, share)| share).sum();
    let (mut shares, mut shorter) = (0, 0);
    for (len, share) in lengths {
        shares += share;
        let wanted = shares * count / total;
        let mut tries = 0;
        // Few prefixes of a short length exist: what finds no place is left
        // out.
        while routes.len() < wanted && tries < 50 * count {
            tries += 1;
            let (first, next_hop) = draw(family, &mut random, &routes, shorter, *len);
            for step in 0..1 + random.below(BESIDE) {
                let beside = (step as u128) << (128 - len);
                let prefix = first.wrapping_add(beside);
                let is_new = routes.len() < wanted && seen.insert((prefix, *len));
                if !is_new {
                    break;
                }
                let alike = step == 0 || random.below(100) < ALIKE_OF_100;
                let own = if alike {
                    next_hop
                } else {
                    any_next_hop(&mut random)
                };
                routes.push((prefix, *len, own));
            }
        }
        shorter = routes.len();
    }
    routes
}

/// A prefix of a length: inside one of those before, or anywhere; one that
/// is longer than a network announces often near another such.
fn draw(
    family: Family,
    random: &mut Random,
    routes: &[Route],
    shorter: usize,
    len: u8,
) -> (u128, u16) {
    let host_bits = u128::from(random.number()) << 64 | u128::from(random.number());
    let is_internal = len > family.announced();
    let near = is_internal && routes.len() > shorter && random.below(100) < 40;
    let nested = shorter > 0 && (is_internal || random.below(100) < NESTED_OF_100);
    let (prefix, fixed, next_hop) = if near {
        let (prefix, _, next_hop) = routes[shorter + random.below(routes.len() - shorter)];
        let fixed = family.announced();
        (prefix & mask(fixed), fixed, next_hop)
    } else if nested {
        let (prefix, fixed, next_hop) = routes[random.below(shorter)];
        (prefix, fixed, next_hop)
    } else {
        let (prefix, fixed) = family.block(random);
        (prefix, fixed, 0)
    };
    let alike = next_hop > 0 && random.below(100) < ALIKE_OF_100;
    let next_hop = if alike {
        next_hop
    } else {
        any_next_hop(random)
    };
    ((prefix | host_bits & !mask(fixed)) & mask(len), next_hop)
}

fn any_next_hop(random: &mut Random) -> u16 {
    let of = usize::from(NEXT_HOPS);
    let most = random.below(of) + 1;
    let most = random.below(most) + 1;
    1 + random.below(most) as u16
}

/// A stream of addresses, left-aligned in 128 bits.
pub fn stream(family: Family, stream: Stream, routes: &[Route]) -> Vec<u128> {
    let mut random = Random::new(SEED + 1);
    let mut ranks: Vec<usize> = (0..routes.len()).collect();
    random.shuffle(&mut ranks);
    let mut weight = 0.0;
    let weights: Vec<f64> = (1..=ranks.len())
        .map(|rank| {
            weight += 1.0 / rank as f64;
            weight
        })
        .collect();
    let mut address = || {
        let bits = u128::from(random.number()) << 64 | u128::from(random.number());
        let inside = |at: usize| {
            let (prefix, len, _) = routes[at];
            prefix | bits & !mask(len)
        };
        match stream {
            _ if routes.is_empty() => family.anywhere(bits),
            Stream::Uniform => family.anywhere(bits),
            Stream::Inside => inside(random.below(routes.len())),
            Stream::Zipf => {
                let share = (random.number() >> 11) as f64 / (1_u64 << 53) as f64;
                let rank = weights.partition_point(|sum| *sum < share * weight);
                inside(ranks[rank.min(ranks.len() - 1)])
            }
        }
    };
    (0..ADDRESSES).map(|_| address()).collect()
}

fn mask(len: u8) -> u128 {
    !u128::MAX.checked_shr(len.into()).unwrap_or(0)
}

impl Family {
    fn lengths(self) -> &'static [(u8, usize)] {
        match self {
            Self::V4 => LENGTHS_V4,
            Self::V6 => LENGTHS_V6,
        }
    }

    /// The longest prefixes that networks announce to each other.
    fn announced(self) -> u8 {
        match self {
            Self::V4 => 24,
            Self::V6 => 48,
        }
    }

    fn anywhere(self, bits: u128) -> u128 {
        match self {
            Self::V4 => bits,
            Self::V6 => bits >> 3 | 1 << 125,
        }
    }

    /// Where a prefix that lies in no other begins.
    fn block(self, random: &mut Random) -> (u128, u8) {
        match self {
            Self::V4 => loop {
                let first = random.below(224) as u8;
                if !matches!(first, 0 | 10 | 127) {
                    return (u128::from(first) << 120, 8);
                }
            },
            Self::V6 => {
                let (block, len) = BLOCKS_V6[random.below(BLOCKS_V6.len())];
                (u128::from(block) << 112, len)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_distinct_nested_and_the_same_each_time() {
        for (family, width) in [(Family::V4, 32), (Family::V6, 128)] {
            let routes = table(family, 20_000);
            assert_eq!(routes, table(family, 20_000));
            assert!(routes.len() > 19_800);
            let keys: HashSet<(u128, u8)> = routes.iter().map(|(p, l, _)| (*p, *l)).collect();
            assert_eq!(keys.len(), routes.len());
            for (prefix, len, next_hop) in &routes {
                assert!(*len <= width && prefix & !mask(*len) == 0);
                assert!((1..=NEXT_HOPS).contains(next_hop));
            }
            let addresses = stream(family, Stream::Zipf, &routes);
            assert_eq!(addresses.len(), ADDRESSES);
        }
        assert_eq!(stream(Family::V4, Stream::Inside, &[]).len(), ADDRESSES);
    }
}
