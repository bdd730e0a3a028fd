//! Which of its addresses the host uses towards a destination.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

use crate::row::address::{Address, flag, reach};
use crate::row::link::Link;
use crate::row::route::scope;
use crate::writer::Tables;

/// IPv4, as the kernel's `inet_select_addr`: a primary address of the link
/// whose scope suffices, one in the gateway's network before others; else
/// such an address of another link. Where the kernel would take the first
/// that was made, which no row tells, the lowest address is taken.
pub(crate) fn v4(
    tables: &Tables,
    link: u32,
    gateway: Option<IpAddr>,
    within: u8,
) -> Option<IpAddr> {
    let is_primary =
        |row: &&std::sync::Arc<Address>| row.local.is_ipv4() && row.flags & flag::SECONDARY == 0;
    let of_link = || {
        tables
            .addresses
            .of_link(link)
            .filter(is_primary)
            .filter(|row| row.scope.min(scope::LINK) <= within)
    };
    let towards = |gateway: IpAddr| of_link().find(|row| network(row).contains(&gateway));
    // The kernel keeps addresses of a wider reach behind narrower ones.
    let first = || of_link().max_by_key(|row| (row.scope, std::cmp::Reverse(row.local)));
    let elsewhere = || {
        tables
            .links
            .iter()
            .flat_map(|link| tables.addresses.of_link(link.index))
            .filter(is_primary)
            .find(|row| row.scope != scope::LINK && row.scope <= within)
    };
    gateway
        .and_then(towards)
        .or_else(first)
        .or_else(elsewhere)
        .map(|row| row.local)
}

/// The network an address is in: its peer's, on a point-to-point link.
fn network(row: &Address) -> IpNet {
    let address = row.peer.unwrap_or(row.local);
    IpNet::new(address, row.prefix_len)
        .unwrap_or_else(|_| IpNet::from(address))
        .trunc()
}

/// IPv6, RFC 6724 section 5 as the kernel applies it
/// (`ipv6_dev_get_saddr`): the best of the usable addresses by the rules
/// in order; of those equal in all, the lowest.
pub(crate) fn v6(tables: &Tables, link: u32, to: Ipv6Addr) -> Option<IpAddr> {
    let on_this_link_only = to.is_multicast() || to.is_unicast_link_local();
    let domain = |link: &Link| link.master;
    let out = tables.links.get(link);
    let candidates = tables
        .links
        .iter()
        .filter(|of| of.index == link || !on_this_link_only)
        .filter(|of| of.index == link || out.is_none_or(|out| domain(of) == domain(out)))
        .filter(|of| of.is_up())
        .flat_map(|of| tables.addresses.of_link(of.index));
    let unusable = flag::DADFAILED | flag::TENTATIVE;
    candidates
        .filter(|row| row.flags & unusable == 0 || row.flags & flag::OPTIMISTIC != 0)
        .filter_map(|row| match row.local {
            IpAddr::V6(from) => Some((rank(row, from, link, to), row.local)),
            IpAddr::V4(_) => None,
        })
        .min()
        .map(|(_, from)| from)
}

/// How good a source is for a destination: less is better. Each place is
/// a rule of RFC 6724 section 5.
fn rank(row: &Address, from: Ipv6Addr, link: u32, to: Ipv6Addr) -> [u32; 7] {
    let (of_from, of_to) = (u32::from(reach(from)), u32::from(reach(to)));
    [
        // Rule 1: the destination itself.
        u32::from(from != to),
        // Rule 2: the smallest scope that reaches the destination.
        if of_from >= of_to {
            of_from - of_to
        } else {
            0x100 + of_to - of_from
        },
        // Rule 3: not deprecated.
        u32::from(row.flags & flag::DEPRECATED != 0),
        // Rule 5: of the outgoing link.
        u32::from(row.link != link),
        // Rule 6: the same label.
        u32::from(label(from) != label(to)),
        // Rule 7: not temporary, the kernel's default (`use_tempaddr`).
        u32::from(row.flags & flag::SECONDARY != 0),
        // Rule 8: the longest common prefix, no longer than the source's.
        128 - (u128::from(from) ^ u128::from(to))
            .leading_zeros()
            .min(row.prefix_len.into()),
    ]
}

/// The label of RFC 6724's default policy table, with the kernel's
/// additions (Teredo, ORCHID).
fn label(address: Ipv6Addr) -> u32 {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => 0,
        [0, 0, 0, 0, 0, 0xffff, ..] => 4,
        [0, 0, 0, 0, 0, 0, ..] => 3,
        [0x2001, 0, ..] => 6,
        [0x2001, 0x10..=0x1f, ..] => 7,
        [0x2002, ..] => 2,
        [0xfc00..=0xfdff, ..] => 5,
        _ => 1,
    }
}
