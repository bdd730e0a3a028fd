//! Puts routes in the order in which a table is built. Called by the writer
//! alone.

use crate::address::Address;
use crate::route::Route;

/// First bits of a prefix by which routes are told apart before they are
/// compared.
const FIRST_BITS: u8 = 18;
/// Routes from which on that is worth a count for each value of these bits.
const MANY: usize = 1 << 14;

/// The routes by prefix, the shorter of two with the same first address
/// first; of several for one prefix the last stays.
///
/// A million BGP-like routes in random order take a third of the
/// instructions that sorting them by comparison alone takes.
pub fn ordered<A: Address>(mut routes: Vec<Route<A>>) -> Vec<Route<A>> {
    if !routes.is_sorted_by_key(key) {
        if routes.len() >= MANY {
            routes = by_first_bits(&routes);
        } else {
            routes.sort_by_key(key);
        }
    }
    keep_last(&mut routes);
    routes
}

fn key<A: Address>(route: &Route<A>) -> A::Key {
    route.prefix.key(route.len)
}

/// Counts the routes of each value of the first bits, puts each where its
/// value begins, and sorts what is left: a few with the same first bits.
fn by_first_bits<A: Address>(routes: &[Route<A>]) -> Vec<Route<A>> {
    let value = |route: &Route<A>| route.prefix.first_bits(FIRST_BITS);
    let mut ends = vec![0; 1 << FIRST_BITS];
    for route in routes {
        ends[value(route)] += 1;
    }
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    // Equals stay in the order in which they came.
    let mut placed = routes.to_vec();
    for route in routes {
        let end = &mut ends[value(route)];
        placed[*end] = *route;
        *end += 1;
    }
    let mut start = 0;
    for end in ends {
        placed[start..end].sort_by_key(key);
        start = end;
    }
    placed
}

/// Of neighbours for one prefix, the last stays.
fn keep_last<A: Address>(sorted: &mut Vec<Route<A>>) {
    let mut kept = 0;
    for at in 0..sorted.len() {
        let same = kept > 0 && key(&sorted[kept - 1]) == key(&sorted[at]);
        kept -= usize::from(same);
        sorted[kept] = sorted[at];
        kept += 1;
    }
    sorted.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::Random;

    /// By a map, which keeps the last of several as well.
    fn expected<A: Address>(routes: &[Route<A>]) -> Vec<Route<A>> {
        let by_key = routes.iter().map(|route| (key(route), *route));
        let map: std::collections::BTreeMap<A::Key, Route<A>> = by_key.collect();
        map.into_values().collect()
    }

    #[test]
    fn of_few_and_many_and_of_both_families() {
        let mut random = Random::new(1);
        for (count, places) in [
            (0, 1),
            (1, 1),
            (1_000, 300),
            (MANY, 9_000),
            (3 * MANY, MANY),
        ] {
            let four: Vec<Route<u32>> = (0..count)
                .map(|_| {
                    // Many beneath few first bits, and several for a prefix.
                    let len = 8 + random.below(25) as u8;
                    let bits = (random.below(places) as u32).wrapping_mul(0x9E37_79B9);
                    Route {
                        prefix: bits & u32::MAX << (32 - len),
                        len,
                        next_hop: 1 + random.below(200) as u16,
                    }
                })
                .collect();
            let six: Vec<Route<u128>> = four
                .iter()
                .map(|route| Route {
                    prefix: u128::from(route.prefix) << 77 | 1 << 125,
                    len: route.len + 19,
                    next_hop: route.next_hop,
                })
                .collect();
            let sorted = ordered(four.clone());
            assert_eq!(sorted, expected(&four), "{count} of IPv4");
            assert_eq!(ordered(sorted.clone()), sorted);
            assert_eq!(ordered(six.clone()), expected(&six), "{count} of IPv6");
        }
    }
}
