//! Which of its addresses the host uses towards a destination.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;

use crate::row::address::{Address, flag, reach};
use crate::row::link::Link;
use crate::row::route::scope;
use crate::writer::Tables;

/// IPv4, as the kernel's `inet_select_addr`: the first primary address of
/// the link in the gateway's network whose scope suffices; else the first
/// such at all; else one of another link of the VRF, or of none.
pub(crate) fn v4(
    tables: &Tables,
    link: u32,
    gateway: Option<IpAddr>,
    within: u8,
) -> Option<IpAddr> {
    let is_primary = |row: &&Arc<Address>| row.local.is_ipv4() && row.flags & flag::SECONDARY == 0;
    let of_link = || {
        let rows = tables.addresses.of_link(link).filter(is_primary);
        rows.filter(|row| row.scope.min(scope::HOST) <= within)
    };
    let towards = |gateway: IpAddr| of_link().find(|row| network(row).contains(&gateway));
    let of_other = |link: &Arc<Link>| {
        let mut rows = tables.addresses.of_link(link.index).filter(is_primary);
        rows.find(|row| row.scope != scope::LINK && row.scope <= within)
    };
    let vrf = vrf_of(tables, link);
    let of_vrf = || vrf.and_then(|vrf| of_other(tables.links.get(vrf)?));
    let elsewhere = || {
        let links = tables.links.by_arrival();
        let mut beside = links.filter(|of| vrf_of(tables, of.index) == vrf);
        beside.find_map(of_other)
    };
    gateway
        .and_then(towards)
        .or_else(|| of_link().next())
        .or_else(of_vrf)
        .or_else(elsewhere)
        .map(|row| row.local)
}

/// The VRF that a link is in, or is (`l3mdev_master_ifindex_rcu`).
pub(crate) fn vrf_of(tables: &Tables, link: u32) -> Option<u32> {
    let link = tables.links.get(link)?;
    let is_vrf = |link: &&Arc<Link>| link.vrf_table.is_some();
    let master = || tables.links.get(link.master?).filter(is_vrf);
    let vrf = Some(link).filter(is_vrf).or_else(master)?;
    Some(vrf.index)
}

/// The network an address is in: its peer's, on a point-to-point link.
fn network(row: &Address) -> IpNet {
    let address = row.peer.unwrap_or(row.local);
    IpNet::new(address, row.prefix_len)
        .unwrap_or_else(|_| IpNet::from(address))
        .trunc()
}

/// The source of an IPv6 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub address: IpAddr,
    /// A kernel without mobile IPv6 (`CONFIG_IPV6_MIP6`), which nothing
    /// tells apart, takes another.
    pub by_home_address: bool,
}

/// IPv6, RFC 6724 section 5 as the kernel applies it
/// (`ipv6_dev_get_saddr`): the best of the usable addresses by the rules
/// in order; of those equal in all, the first. In a VRF those of the link
/// and of the VRF stand before the others.
pub(crate) fn v6(tables: &Tables, link: u32, to: Ipv6Addr) -> Option<Chosen> {
    let on_this_link_only = to.is_multicast() || reach(to) <= 2;
    let vrf = vrf_of(tables, link);
    let near = [Some(link), vrf.filter(|_| !on_this_link_only)];
    let near = near.into_iter().flatten();
    let near = near.filter_map(|index| tables.links.get(index));
    let beside = |of: &&Arc<Link>| !on_this_link_only && vrf_of(tables, of.index) == vrf;
    let links = near.chain(tables.links.by_arrival().filter(beside));
    let rows = links.flat_map(|of| tables.addresses.of_link(of.index));
    let ranked = rows.filter_map(|row| Some((rank(row, link, to)?, row.local)));
    let ranked: Vec<([u32; 10], IpAddr)> = ranked.collect();
    let best = |without: Option<usize>| {
        let key = |(rank, _): &&([u32; 10], IpAddr)| {
            let mut rank = *rank;
            without.into_iter().for_each(|rule| rank[rule] = 0);
            rank
        };
        ranked.iter().min_by_key(key).map(|(_, address)| *address)
    };
    let address = best(None)?;
    Some(Chosen {
        address,
        by_home_address: best(Some(HOME)) != Some(address),
    })
}

/// The place of the rule of home addresses among the rules.
const HOME: usize = 3;

/// In the place of the scope: it does not reach the destination.
const TOO_NARROW: u32 = 0x100;

/// How good a source is for a destination: less is better; `None` for one
/// that is not usable. Each place is a rule of RFC 6724 section 5.
fn rank(row: &Address, link: u32, to: Ipv6Addr) -> Option<[u32; 10]> {
    let IpAddr::V6(from) = row.local else {
        return None;
    };
    let has = |bit| row.flags & bit != 0;
    let optimistic = has(flag::OPTIMISTIC);
    if has(flag::TENTATIVE) && !optimistic {
        return None;
    }
    let (of_from, of_to) = (u32::from(reach(from)), u32::from(reach(to)));
    // Those that only look like IPv6 are never avoided.
    let always = from.is_loopback() || matches!(from.segments(), [0, 0, 0, 0, 0, 0 | 0xffff, ..]);
    let common = (u128::from(from) ^ u128::from(to)).leading_zeros();
    Some([
        // Rule 1: the destination itself.
        u32::from(from != to),
        // Rule 2: the smallest scope that reaches the destination.
        if of_from >= of_to {
            of_from - of_to
        } else {
            TOO_NARROW + of_to - of_from
        },
        // Rule 3: neither deprecated nor optimistic.
        u32::from(!always && (has(flag::DEPRECATED) || optimistic)),
        // Rule 4: a home address ([`HOME`]).
        u32::from(!has(flag::HOMEADDRESS)),
        // Rule 5: of the outgoing link.
        u32::from(row.link != link),
        // Rule 6: the same label.
        u32::from(label(from) != label(to)),
        // Rule 7: not temporary, the kernel's default (`use_tempaddr`).
        u32::from(has(flag::SECONDARY)),
        // Rule 8 begins with: both ORCHID, or neither.
        u32::from((label(from) == ORCHID) != (label(to) == ORCHID)),
        // Rule 8: the longest common prefix, no longer than the source's.
        128 - common.min(row.prefix_len.into()),
        u32::from(optimistic),
    ])
}

/// The label of ORCHIDs (RFC 4843).
const ORCHID: u32 = 7;

/// The label of RFC 6724's default policy table, with the kernel's
/// additions (Teredo, ORCHID, site-local, 6bone): what `ip addrlabel` shows
/// unless somebody changed it.
fn label(address: Ipv6Addr) -> u32 {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => 0,
        [0, 0, 0, 0, 0, 0xffff, ..] => 4,
        [0, 0, 0, 0, 0, 0, ..] => 3,
        [0x2001, 0, ..] => 6,
        [0x2001, 0x10..=0x1f, ..] => 7,
        [0x2002, ..] => 2,
        [0x3ffe, ..] => 12,
        [0xfec0..=0xfeff, ..] => 11,
        [0xfc00..=0xfdff, ..] => 5,
        _ => 1,
    }
}
