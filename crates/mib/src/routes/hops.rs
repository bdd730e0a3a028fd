//! The next hops of a route in the order of their names.

use std::net::IpAddr;

use smallvec::SmallVec;
use snmp::oid::Name;
use table::NextHop;

use crate::index::{IPV4, IPV6, IPV6Z, UNKNOWN, put_zoned};

/// Next hops of a route whose order is kept without allocation.
pub(super) const INLINE: usize = 32;

/// `InetAddressType` of a next hop. One that is no address but a link is
/// `unknown(0)` of no length (RFC 4292, inetCidrRouteNextHopType).
pub(super) fn kind(hop: Option<&NextHop>) -> u32 {
    match hop.and_then(|hop| hop.gateway) {
        None => UNKNOWN,
        Some(IpAddr::V4(_)) => IPV4,
        Some(IpAddr::V6(v6)) if v6.is_unicast_link_local() => IPV6Z,
        Some(IpAddr::V6(_)) => IPV6,
    }
}

/// Appends type, length and octets of a next hop.
#[inline]
pub(super) fn put(name: &mut Name, hop: Option<&NextHop>) {
    match hop.and_then(|hop| Some((hop.gateway?, hop.link))) {
        None => name.extend([UNKNOWN, 0]),
        Some((gateway, link)) => put_zoned(name, gateway, link),
    }
}

/// The order of [`put`]'s names.
fn order(hop: &NextHop) -> (u32, Option<IpAddr>, u32) {
    let kind = kind(Some(hop));
    let zone = if kind == IPV6Z { hop.link } else { 0 };
    (kind, hop.gateway, zone)
}

/// A next hop, and whether its name is another's of the same route.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranked {
    /// Its place in the route.
    pub at: u16,
    /// 0, or one more than its place where an equal name came before it.
    pub repeat: u32,
}

/// The hops in the order of their names: those named for the first time,
/// then the repeated ones. A route without hops has one row all the same.
/// O(n log n) in the hops of one route.
pub(super) fn ranked(hops: &[NextHop]) -> SmallVec<[Ranked; INLINE]> {
    let name_of = |ranked: &Ranked| hops.get(usize::from(ranked.at)).map(order);
    let places = (0..=u16::MAX).take(hops.len().max(1));
    let mut all: SmallVec<[Ranked; INLINE]> = places.map(|at| Ranked { at, repeat: 0 }).collect();
    all.sort_unstable_by_key(|ranked| (name_of(ranked), ranked.at));
    let mut before = None;
    for ranked in &mut all {
        let name = name_of(ranked);
        if before == Some(name) {
            ranked.repeat = u32::from(ranked.at) + 1;
        }
        before = Some(name);
    }
    all.sort_unstable_by_key(|ranked| (ranked.repeat, name_of(ranked)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranked_by_name_and_repeats_last() {
        let hop = |link, gateway: &str| NextHop {
            link,
            gateway: gateway.parse().ok(),
            ..NextHop::default()
        };
        let hops = [
            hop(3, "10.0.0.9"),
            hop(3, ""),
            hop(2, "10.0.0.9"),
            hop(2, "fe80::1"),
            hop(1, "fe80::1"),
            hop(1, "2001:db8::1"),
            hop(2, ""),
        ];
        let ranked = ranked(&hops);
        let order: Vec<_> = ranked.iter().map(|r| (r.at, r.repeat)).collect();
        assert_eq!(
            order,
            [(1, 0), (0, 0), (5, 0), (4, 0), (3, 0), (2, 3), (6, 7)]
        );
    }
}
