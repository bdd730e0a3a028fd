//! A full BGP table, made up: the length mix and the nesting of the real
//! one, a few hundred next hops, prefixes that nobody announced.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Result, bail};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink::encode;
use table::row::route::{kind, protocol, scope, table_id};
use table::{NextHop, NextHops, RawAttributes, Route, RouteBody};

use crate::{Netns, Random};

/// Links towards the next hops: `up0`…
pub const UPLINKS: u32 = 4;
/// Distinct next hops, evenly spread over the links.
pub const NEXT_HOPS: u32 = 320;
const SEED: u64 = 2_026;
/// One in so many prefixes lies inside a shorter one that is there.
const NESTED_OF_100: usize = 55;

/// Prefix lengths and how many of 10,000 have them: the global IPv4 table
/// of 2025, and a few longer ones as networks keep inside.
const LENGTHS_V4: &[(u8, usize)] = &[
    (8, 1),
    (9, 1),
    (10, 1),
    (11, 2),
    (12, 3),
    (13, 6),
    (14, 12),
    (15, 20),
    (16, 133),
    (17, 83),
    (18, 138),
    (19, 250),
    (20, 430),
    (21, 500),
    (22, 1_060),
    (23, 960),
    (24, 6_340),
    (25, 12),
    (26, 10),
    (27, 8),
    (28, 8),
    (29, 10),
    (30, 8),
    (32, 4),
];

/// Likewise the global IPv6 table.
const LENGTHS_V6: &[(u8, usize)] = &[
    (20, 2),
    (24, 3),
    (28, 20),
    (29, 260),
    (30, 60),
    (31, 30),
    (32, 1_150),
    (33, 130),
    (34, 110),
    (35, 60),
    (36, 560),
    (38, 160),
    (39, 80),
    (40, 880),
    (42, 350),
    (44, 900),
    (45, 150),
    (46, 330),
    (47, 300),
    (48, 4_415),
    (56, 20),
    (64, 30),
];

/// First bits of IPv6 prefixes: the blocks of the five registries.
const BLOCKS_V6: &[u16] = &[0x2400, 0x2600, 0x2800, 0x2a00, 0x2c00];
/// Those blocks are /12s.
const BLOCK_BITS_V6: u8 = 12;

/// Which family's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Makes the uplinks and loads `count` synthetic routes of protocol `bgp`
/// into the main table, in random order. Some 3 µs each (IPv6: 5).
pub fn build(netns: &Netns, family: Family, count: usize) -> Result<()> {
    let mut links = Vec::new();
    for uplink in 0..UPLINKS {
        let name = format!("up{uplink}");
        super::wire(netns, &name)?;
        let own = match family {
            Family::V4 => format!("198.18.{uplink}.254/24"),
            Family::V6 => format!("2001:2:0:{uplink:x}::ffff/64"),
        };
        let mut words = vec!["addr", "add", &own, "dev", &name];
        if family == Family::V6 {
            words.push("nodad");
        }
        netns.ip(&words)?;
        links.push(super::link_index(netns, &name)?);
    }
    let rows = rows(family, count, &links)?;
    super::load(netns, "routes", &rows, encode::route)
}

/// The rows, in random order, over these links.
pub fn rows(family: Family, count: usize, links: &[u32]) -> Result<Vec<Route>> {
    let mut random = Random::new(SEED ^ 0x5eed);
    let mut prefixes = prefixes(family, count)?;
    random.shuffle(&mut prefixes);
    let hops: Vec<NextHop> = next_hops(family, links).collect();
    Ok(prefixes
        .into_iter()
        .map(|prefix| {
            // Some peers are chosen far more often than others.
            let most = random.below(hops.len()) + 1;
            let hop = hops[random.below(most)].clone();
            route(prefix, hop)
        })
        .collect())
}

fn route(prefix: IpNet, hop: NextHop) -> Route {
    // The kernel gives IPv6 routes a metric when they come without.
    let metric = if prefix.addr().is_ipv6() { 1_024 } else { 0 };
    Route {
        table: table_id::MAIN,
        prefix,
        tos: 0,
        metric,
        body: RouteBody {
            kind: kind::UNICAST,
            protocol: protocol::BGP,
            scope: scope::UNIVERSE,
            flags: 0,
            preferred_source: None,
            source: None,
            nexthop_id: None,
            next_hops: NextHops::One(hop),
            metrics: None,
            preference: prefix.addr().is_ipv6().then_some(0),
            error: 0,
            expires_at_millis: None,
            rest: RawAttributes::default(),
            path: Default::default(),
        },
    }
}

fn next_hops(family: Family, links: &[u32]) -> impl Iterator<Item = NextHop> {
    let per_link = NEXT_HOPS / UPLINKS;
    (0_u8..).zip(links).flat_map(move |(uplink, &link)| {
        (1..=per_link).map(move |host| {
            let gateway = match family {
                Family::V4 => IpAddr::V4(Ipv4Addr::new(198, 18, uplink, host as u8)),
                Family::V6 => {
                    let segments = [0x2001, 2, 0, uplink.into(), 0, 0, 0, host as u16];
                    IpAddr::V6(Ipv6Addr::from(segments))
                }
            };
            NextHop {
                link,
                gateway: Some(gateway),
                weight: 1,
                ..NextHop::default()
            }
        })
    })
}

/// `count` distinct prefixes, the shorter ones first.
pub fn prefixes(family: Family, count: usize) -> Result<Vec<IpNet>> {
    let mut random = Random::new(SEED);
    let mut seen = HashSet::with_capacity(count);
    let mut made: Vec<(u128, u8)> = Vec::with_capacity(count);
    let mut shorter = 0;
    for (len, wanted) in shares(family.lengths(), count) {
        let mut tries = 0;
        while made.len() < shorter + wanted {
            let bits = family.draw(&mut random, &made[..shorter], len);
            if seen.insert((bits, len)) {
                made.push((bits, len));
            }
            tries += 1;
            if tries > 100 * wanted + 1_000 {
                bail!("there are no {wanted} synthetic prefixes of length {len}");
            }
        }
        shorter = made.len();
    }
    Ok(made
        .into_iter()
        .map(|(bits, len)| family.prefix(bits, len))
        .collect())
}

/// How many prefixes of each length, `count` in all.
fn shares(lengths: &[(u8, usize)], count: usize) -> Vec<(u8, usize)> {
    let total: usize = lengths.iter().map(|(_, share)| share).sum();
    let (mut share_so_far, mut given) = (0, 0);
    let mut shares = Vec::with_capacity(lengths.len());
    for (len, share) in lengths {
        share_so_far += share;
        let upto = share_so_far * count / total;
        shares.push((*len, upto - given));
        given = upto;
    }
    shares
}

impl Family {
    fn lengths(self) -> &'static [(u8, usize)] {
        match self {
            Family::V4 => LENGTHS_V4,
            Family::V6 => LENGTHS_V6,
        }
    }

    fn width(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// The network bits of a prefix of `len`, left-aligned in 128 bits:
    /// inside a shorter prefix, or anywhere.
    fn draw(self, random: &mut Random, shorter: &[(u128, u8)], len: u8) -> u128 {
        let low = u128::from(random.number()) << 64 | u128::from(random.number());
        let nested = !shorter.is_empty() && random.below(100) < NESTED_OF_100;
        let (bits, fixed) = if nested {
            shorter[random.below(shorter.len())]
        } else {
            self.block(random)
        };
        (bits | low >> fixed) & u128::MAX << (128 - u32::from(len))
    }

    /// Where a prefix that lies in no other begins.
    fn block(self, random: &mut Random) -> (u128, u8) {
        match self {
            Family::V4 => loop {
                let first = random.below(224) as u8;
                // This network, private, loopback, and the uplinks' own.
                if !matches!(first, 0 | 10 | 127 | 198) {
                    return (u128::from(first) << 120, 8);
                }
            },
            Family::V6 => {
                let block = BLOCKS_V6[random.below(BLOCKS_V6.len())];
                (u128::from(block) << 112, BLOCK_BITS_V6)
            }
        }
    }

    fn prefix(self, bits: u128, len: u8) -> IpNet {
        let len = len.min(self.width());
        match self {
            Family::V4 => {
                let address = Ipv4Addr::from((bits >> 96) as u32);
                IpNet::V4(Ipv4Net::new_assert(address, len))
            }
            Family::V6 => IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::from(bits), len)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;

    #[test]
    fn distinct_masked_nested_and_mixed_like_the_real_table() {
        for family in [Family::V4, Family::V6] {
            let prefixes = prefixes(family, 20_000).unwrap();
            assert_eq!(prefixes.len(), 20_000);
            let distinct: HashSet<&IpNet> = prefixes.iter().collect();
            assert_eq!(distinct.len(), prefixes.len());
            assert!(prefixes.iter().all(|prefix| *prefix == prefix.trunc()));
            let nested = prefixes
                .iter()
                .filter(|prefix| {
                    (0..prefix.prefix_len()).any(|len| {
                        let shorter = IpNet::new(prefix.addr(), len).unwrap().trunc();
                        distinct.contains(&shorter)
                    })
                })
                .count();
            assert!(nested > 10_000, "{nested}");
        }
        let longest = prefixes(Family::V4, 10_000).unwrap();
        let of_24 = longest.iter().filter(|p| p.prefix_len() == 24).count();
        assert!((6_000..6_500).contains(&of_24), "{of_24}");
    }

    #[test]
    fn the_shares_add_up() {
        for count in [0, 1, 7, 1_000, 1_000_000] {
            let sum: usize = shares(LENGTHS_V4, count).iter().map(|(_, n)| n).sum();
            assert_eq!(sum, count);
        }
    }

    #[test]
    fn every_run_makes_the_same_rows() {
        let rows = || rows(Family::V4, 500, &[1, 2, 3, 4]).unwrap();
        assert_eq!(rows(), rows());
    }

    #[test]
    fn the_kernel_holds_them() {
        for family in [Family::V4, Family::V6] {
            let Some(netns) = skip::unless(Netns::new("routes")) else {
                return;
            };
            build(&netns, family, 2_000).unwrap();
            let family = if family == Family::V4 { "-4" } else { "-6" };
            let routes = netns
                .ip(&[family, "route", "show", "proto", "bgp"])
                .unwrap();
            assert_eq!(routes.lines().count(), 2_000);
        }
    }
}
