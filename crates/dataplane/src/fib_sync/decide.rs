//! What the tables say about a prefix: the kernel's decision for packets
//! that come in, compiled ahead.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use table::row::route::{hop_flag, kind, protocol};
use table::row::rule::{action, flag};
use table::{NextHop, RouteBody, RouteRef, Rule};

use super::gateways::Gateways;
use super::known::Known;
use crate::forward::Ports;

/// Where packets go, before it has a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Spec {
    /// Nowhere: there is no route.
    None,
    /// To the kernel: local, by a link that is no port here, or by a gateway
    /// that is the host itself.
    Host,
    /// Dropped.
    Blackhole,
    /// Refused.
    Unreachable,
    /// Refused.
    Prohibit,
    /// Out by one of these, which are in the route's order.
    Hops(Vec<Hop>),
}

/// A next hop of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hop {
    /// The port.
    pub port: u16,
    /// The neighbour; `None`: each destination is one.
    pub gateway: Option<IpAddr>,
    /// Weight, from 1.
    pub weight: u16,
}

/// What a single route says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteDecision {
    /// It decides.
    Goes(Arc<Spec>),
    /// Nothing: all its next hops are dead. The next best route is asked.
    Nothing,
    /// The table is left (`RTN_THROW`).
    LeaveTable,
}

/// The tables that are asked in turn, and rules that could not be taken
/// into account: those that look at more than the destination.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chain {
    /// Tables, in their order.
    pub tables: Vec<u32>,
    /// The first two of them are one: the longest match of both decides
    /// ([`Tables::has_merged_tables`]).
    pub is_merged: bool,
    /// Priorities of the rules passed over.
    pub ignored: Vec<u32>,
}

/// The chain of a family's rules; `vrf` is the table of the VRF whose ports
/// it is for.
pub fn chain<'a>(rules: impl Iterator<Item = &'a Arc<Rule>>, vrf: Option<u32>) -> Chain {
    let mut chain = Chain::default();
    for rule in rules {
        let table = match (rule.l3mdev, vrf) {
            (true, None) => continue,
            (true, Some(table)) => table,
            (false, _) => rule.table,
        };
        if rule.action == action::NOP {
            continue;
        }
        if !is_plain(rule) {
            chain.ignored.push(rule.priority);
            continue;
        }
        if !chain.tables.contains(&table) {
            chain.tables.push(table);
        }
    }
    chain
}

/// Whether a rule holds for every packet and names a table.
fn is_plain(rule: &Rule) -> bool {
    let is_all = |net: Option<IpNet>| net.is_none_or(|net| net.prefix_len() == 0);
    let unset = |value: Option<u32>| value.is_none_or(|value| value == u32::MAX);
    rule.action == action::TO_TABLE
        && rule.flags & flag::INVERT == 0
        && is_all(rule.source)
        && is_all(rule.destination)
        && rule.tos == 0
        && rule.iif.is_none()
        && rule.oif.is_none()
        && rule.fwmark.is_none()
        && rule.uids.is_none()
        && rule.ip_protocol.is_none()
        && rule.source_ports.is_none()
        && rule.destination_ports.is_none()
        && rule.tunnel_id.is_none()
        && unset(rule.suppress_prefix_len)
        && unset(rule.suppress_group)
}

/// What is decided about a prefix, and whether a route of just this prefix
/// in the first table that has one decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Where packets go that match no longer prefix.
    pub spec: Arc<Spec>,
    /// Whether other prefixes have no part in it.
    pub is_own: bool,
    /// The table whose route for just this prefix decides, if it is one
    /// that a routing daemon has made and that packets go by here.
    pub by_daemon: Option<u32>,
}

/// What all packets to a prefix get that no longer prefix of any table of
/// the chain covers. Some seeks a table.
///
/// Longest match over these decisions is the kernel's answer: let *p* be
/// the longest prefix of any table that covers an address. All routes that
/// cover the address cover *p* too, for there are none longer.
pub fn decide(
    known: &Known,
    chain: &Chain,
    prefix: IpNet,
    mut says: impl FnMut(&RouteRef<'_>) -> RouteDecision,
) -> Decided {
    let mut is_own = true;
    let (both, single) = match chain.tables.as_slice() {
        [first, second, rest @ ..] if chain.is_merged => (Some([*first, *second]), rest),
        all => (None, all),
    };
    let both = both.map(|both| known.covering_in_both(both, prefix));
    let single = single.iter().map(|table| known.covering(*table, prefix));
    for routes in both.into_iter().chain(single) {
        for route in routes {
            is_own &= route.prefix == prefix;
            if !counts(&route) {
                is_own = false;
                continue;
            }
            match says(&route) {
                RouteDecision::Goes(spec) => {
                    return Decided {
                        is_own,
                        by_daemon: by_daemon(&route, &spec).filter(|_| route.prefix == prefix),
                        spec,
                    };
                }
                RouteDecision::Nothing => is_own = false,
                RouteDecision::LeaveTable => {
                    is_own = false;
                    break;
                }
            }
        }
    }
    Decided {
        spec: Arc::new(Spec::None),
        is_own: false,
        by_daemon: None,
    }
}

/// The table of a route that decides, if a routing daemon has made it and
/// packets go by it here: not where they are the kernel's to forward.
pub fn by_daemon(route: &RouteRef<'_>, spec: &Spec) -> Option<u32> {
    let is_ours = !matches!(spec, Spec::None | Spec::Host);
    (is_ours && route.body.protocol > protocol::STATIC).then_some(route.table)
}

/// Whether a route is for all packets: of every type of service, and from
/// every source.
pub fn counts(route: &RouteRef<'_>) -> bool {
    route.tos == 0 && route.body.source.is_none_or(|net| net.prefix_len() == 0)
}

/// The gateway of a next hop that names no link, as those out of files do.
pub fn far_gateway(hop: &NextHop) -> Option<IpAddr> {
    hop.gateway.filter(|_| hop.link == 0)
}

/// What a route says. O(its next hops).
pub fn says(
    known: &Known,
    ports: &Ports,
    gateways: &mut Gateways,
    family: u8,
    body: &RouteBody,
) -> RouteDecision {
    let tables = known.tables();
    let goes = |spec| RouteDecision::Goes(Arc::new(spec));
    match body.kind {
        kind::THROW => return RouteDecision::LeaveTable,
        kind::BLACKHOLE => return goes(Spec::Blackhole),
        kind::UNREACHABLE => return goes(Spec::Unreachable),
        kind::PROHIBIT => return goes(Spec::Prohibit),
        kind::UNICAST => {}
        kind::LOCAL => return goes(Spec::Host),
        // To all or to a group: as long as the link is there.
        _ => {
            return match tables.nexthops.hops_of(body) {
                Some(hops) if !hops.iter().any(|hop| tables.is_usable(hop, family)) => {
                    RouteDecision::Nothing
                }
                _ => goes(Spec::Host),
            };
        }
    }
    let Some(mut hops) = tables.nexthops.hops_of(body) else {
        return goes(Spec::Blackhole);
    };
    for hop in &mut hops {
        let Some(gateway) = far_gateway(hop) else {
            continue;
        };
        match known.toward(gateway, hop) {
            Some(way) => *hop = way,
            None => hop.flags |= hop_flag::DEAD,
        }
    }
    hops.retain(|hop| tables.is_usable(hop, family));
    if hops.is_empty() {
        return RouteDecision::Nothing;
    }
    // Of all, so that all are followed.
    let through_host = hops
        .iter()
        .filter(|hop| gateways.is_through_host(known, hop))
        .count();
    if through_host > 0 {
        // What is made of them the kernel alone knows.
        return goes(Spec::Host);
    }
    let ours = |hop: &NextHop| {
        Some(Hop {
            port: ports.of_link(hop.link).filter(|_| hop.encap.is_none())?,
            gateway: hop.gateway,
            weight: hop.weight.max(1),
        })
    };
    let mut found: Option<Vec<Hop>> = hops.iter().map(ours).collect();
    // The weight of an only hop says nothing.
    if let Some([only]) = found.as_deref_mut() {
        only.weight = 1;
    }
    goes(found.map_or(Spec::Host, Spec::Hops))
}
