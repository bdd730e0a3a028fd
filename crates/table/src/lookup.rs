//! Which route a packet would take: the kernel's decision, taken from a
//! snapshot.
//!
//! Rules in order (`fib_rules_lookup`), then longest match, type of
//! service and metric in each table, dead next hops passed over, then the
//! source address. What the kernel decides by hashing a flow (which member
//! of a multipath group) is left open: all usable members are told.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::IpNet;
use thiserror::Error;

use crate::row::link::{self, Link};
use crate::row::route::{NextHop, RouteRef, kind, scope, table_id};
use crate::row::rule::{Rule, action, flag};
use crate::source_address;
use crate::writer::Tables;
use crate::{AF_INET, AF_INET6};

/// Rules that one lookup tries at most. `goto` leads forward only, so it
/// ends by itself; this bounds it whatever the rules say.
const MAX_RULES: usize = 1 << 20;

/// A packet of which only the header counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Where it goes.
    pub destination: IpAddr,
    /// Where it comes from; `None`: the route decides.
    pub source: Option<IpAddr>,
    /// The link it came in by; `None`: it is the host's own.
    pub iif: Option<u32>,
    /// The link it must leave by; a VRF: inside that VRF.
    pub oif: Option<u32>,
    /// Its firewall mark.
    pub mark: u32,
    /// Its type of service.
    pub tos: u8,
    /// Whose it is: for rules with a range of users.
    pub uid: u32,
}

impl Packet {
    /// A packet of the host's own to an address.
    pub fn to(destination: IpAddr) -> Self {
        Self {
            destination,
            source: None,
            iif: None,
            oif: None,
            mark: 0,
            tos: 0,
            uid: 0,
        }
    }
}

/// The decision.
#[derive(Debug, Clone)]
pub struct Decision<'a> {
    /// `RTN_…`: unicast, local, broadcast, multicast, …
    pub kind: u8,
    /// The route; `None` where the kernel goes without: an `oif` without a
    /// route is taken to have the destination on it.
    pub route: Option<RouteRef<'a>>,
    /// Where the packet goes: the usable members, in the route's order;
    /// for the host's own addresses the loopback (or the VRF).
    pub hops: Vec<NextHop>,
    /// The source address it gets; `None` when it has one, or is not the
    /// host's own, or there is none.
    pub source: Option<IpAddr>,
    /// The table that decided.
    pub table: u32,
}

/// Why there is no way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoRoute {
    /// No route, or a rule that says so (`ENETUNREACH`).
    #[error("Network is unreachable")]
    Unreachable,
    /// An `unreachable` route (`EHOSTUNREACH`).
    #[error("No route to host")]
    HostUnreachable,
    /// A `prohibit` route or rule (`EACCES`).
    #[error("Permission denied")]
    Prohibited,
    /// A `blackhole` route or rule (`EINVAL`).
    #[error("Invalid argument")]
    Blackhole,
    /// There is no such link (`ENODEV`).
    #[error("No such device")]
    NoSuchLink,
}

/// What one table says.
enum InTable<'a> {
    Found(RouteRef<'a>, Vec<NextHop>),
    Refused(NoRoute),
    Nothing,
}

impl Tables {
    /// The route a packet would take. Costs O(rules), O(log n) for each
    /// table asked, O(members of the group), and for the source address
    /// O(addresses of the link), for IPv6 O(addresses).
    pub fn route_of(&self, packet: &Packet) -> Result<Decision<'_>, NoRoute> {
        let lookup = Lookup::new(self, packet)?;
        if packet.destination.is_unspecified() {
            return Ok(lookup.to_self());
        }
        if let Some(source) = packet.source
            && packet.iif.is_none()
            && source.is_ipv4()
            && !self.is_own_address(source)
        {
            return Err(NoRoute::Unreachable);
        }
        if let Some(decision) = lookup.directly_out() {
            return Ok(decision);
        }
        match lookup.by_rules() {
            Ok((route, hops)) => Ok(lookup.decision(route, hops)),
            Err(refused) => lookup.on_link().ok_or(refused),
        }
    }
}

struct Lookup<'a> {
    tables: &'a Tables,
    packet: Packet,
    family: u8,
    /// The link it must leave by, when that is no VRF.
    oif: Option<&'a Arc<Link>>,
    /// The VRF it is in.
    vrf: Option<&'a Arc<Link>>,
}

impl<'a> Lookup<'a> {
    fn new(tables: &'a Tables, packet: &Packet) -> Result<Self, NoRoute> {
        let link = |index: u32| tables.links.get(index).ok_or(NoRoute::NoSuchLink);
        let oif = packet.oif.map(link).transpose()?;
        let iif = packet.iif.map(link).transpose()?;
        if oif.is_some_and(|oif| !oif.is_up()) {
            return Err(NoRoute::Unreachable);
        }
        let is_vrf = |link: &&Arc<Link>| link.vrf_table.is_some();
        let vrf_of = |link: &'a Arc<Link>| {
            let master = || tables.links.get(link.master?);
            Some(link)
                .filter(is_vrf)
                .or_else(|| master().filter(is_vrf))
        };
        let v4 = packet.destination.is_ipv4();
        Ok(Self {
            tables,
            packet: *packet,
            family: if v4 { AF_INET } else { AF_INET6 },
            oif: oif.filter(|oif| !is_vrf(oif)),
            vrf: oif.or(iif).and_then(vrf_of),
        })
    }

    /// The index by which the host's own packets come in, and to which
    /// those for it go: the VRF's or the loopback's.
    fn loopback(&self) -> u32 {
        let loopback = || {
            let mut links = self.tables.links.iter();
            links.find(|link| link.flags & link::flag::LOOPBACK != 0)
        };
        self.vrf
            .or_else(loopback)
            .map_or(1, |loopback| loopback.index)
    }

    fn over(link: u32) -> Vec<NextHop> {
        vec![NextHop {
            link,
            weight: 1,
            ..NextHop::default()
        }]
    }

    /// To the unspecified address: to the host itself.
    fn to_self(&self) -> Decision<'a> {
        let own: IpAddr = match self.packet.destination {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        Decision {
            kind: kind::LOCAL,
            route: None,
            hops: Self::over(self.loopback()),
            source: self.packet.source.is_none().then_some(own),
            table: table_id::MAIN,
        }
    }

    /// IPv4 multicast of the link's own scope and limited broadcast leave
    /// by the link that is named, without a route.
    fn directly_out(&self) -> Option<Decision<'a>> {
        let oif = self.oif?;
        let IpAddr::V4(destination) = self.packet.destination else {
            return None;
        };
        let local_multicast = destination.octets()[..3] == [224, 0, 0];
        if !local_multicast && !destination.is_broadcast() {
            return None;
        }
        Some(self.without_route(oif.index))
    }

    /// The kernel takes a destination to be on the link that is named when
    /// the tables know no way (`ip_route_output_key_hash_rcu`).
    fn on_link(&self) -> Option<Decision<'a>> {
        let oif = self.oif?;
        let inside_vrf = self.vrf.is_some() && !self.packet.destination.is_multicast();
        let is_out = self.packet.destination.is_ipv4() && self.packet.iif.is_none();
        (is_out && !inside_vrf).then(|| self.without_route(oif.index))
    }

    fn without_route(&self, link: u32) -> Decision<'a> {
        Decision {
            kind: self.kind_of(kind::UNICAST),
            route: None,
            hops: Self::over(link),
            source: self.source(None, link, None, scope::LINK),
            table: table_id::MAIN,
        }
    }

    /// The type, where the destination decides it.
    fn kind_of(&self, of_route: u8) -> u8 {
        match self.packet.destination {
            IpAddr::V4(v4) if v4.is_broadcast() => kind::BROADCAST,
            IpAddr::V4(v4) if v4.is_multicast() => kind::MULTICAST,
            _ => of_route,
        }
    }

    fn decision(&self, route: RouteRef<'a>, hops: Vec<NextHop>) -> Decision<'a> {
        let body = route.body;
        let of_hop =
            |hop: &NextHop| self.source(body.preferred_source, hop.link, hop.gateway, body.scope);
        if body.kind == kind::LOCAL {
            let own = body.preferred_source.unwrap_or(self.packet.destination);
            return Decision {
                kind: body.kind,
                route: Some(route),
                hops: Self::over(self.loopback()),
                source: self.wants_source().then_some(own),
                table: route.table,
            };
        }
        let kind = self.kind_of(body.kind);
        let source = hops.first().and_then(of_hop);
        let hops = match hops.first() {
            // Not through a gateway, whatever the route says.
            Some(hop) if kind != body.kind => Self::over(hop.link),
            _ => hops,
        };
        Decision {
            kind,
            route: Some(route),
            hops,
            source,
            table: route.table,
        }
    }

    fn wants_source(&self) -> bool {
        let v6 = self.packet.destination.is_ipv6();
        self.packet.iif.is_none() && (self.packet.source.is_none() || v6)
    }

    fn source(
        &self,
        preferred: Option<IpAddr>,
        link: u32,
        gateway: Option<IpAddr>,
        scope: u8,
    ) -> Option<IpAddr> {
        if !self.wants_source() {
            return None;
        }
        preferred.or_else(|| match self.packet.destination {
            IpAddr::V4(_) => {
                let gateway = gateway.filter(IpAddr::is_ipv4);
                source_address::v4(self.tables, link, gateway, scope)
            }
            IpAddr::V6(to) => source_address::v6(self.tables, link, to),
        })
    }

    fn by_rules(&self) -> Result<(RouteRef<'a>, Vec<NextHop>), NoRoute> {
        let rules: Vec<&Arc<Rule>> = self.tables.rules.of_family(self.family).collect();
        let mut at = 0;
        for _ in 0..MAX_RULES {
            let Some(rule) = rules.get(at) else {
                break;
            };
            at += 1;
            if !self.matches(rule) {
                continue;
            }
            match rule.action {
                action::GOTO => {
                    let target = rule.goto.unwrap_or(0);
                    // Unresolved, or back: passed over.
                    if target > rule.priority
                        && let Some(found) = rules.iter().position(|r| r.priority == target)
                    {
                        at = found;
                    }
                }
                action::NOP => {}
                action::TO_TABLE => match self.in_table(self.table_of(rule)) {
                    InTable::Found(route, hops) if !self.suppressed(rule, &route, &hops) => {
                        return Ok((route, hops));
                    }
                    InTable::Refused(why) => return Err(why),
                    _ => {}
                },
                action::UNREACHABLE => return Err(NoRoute::Unreachable),
                action::PROHIBIT => return Err(NoRoute::Prohibited),
                _ => return Err(NoRoute::Blackhole),
            }
        }
        Err(NoRoute::Unreachable)
    }

    fn table_of(&self, rule: &Rule) -> u32 {
        match self.vrf {
            Some(vrf) if rule.l3mdev => vrf.vrf_table.unwrap_or(0),
            _ => rule.table,
        }
    }

    fn matches(&self, rule: &Rule) -> bool {
        let packet = &self.packet;
        let named = |name: &Option<Box<str>>, index: Option<u32>| match name {
            None => true,
            Some(name) => {
                let named = self.tables.links.by_name(name).map(|link| link.index);
                named.is_some() && named == index
            }
        };
        let within = |net: Option<IpNet>, address: Option<IpAddr>| match (net, address) {
            (None, _) => true,
            (Some(net), Some(address)) => net.contains(&address),
            (Some(net), None) => net.prefix_len() == 0,
        };
        let iif = packet.iif.or_else(|| Some(self.loopback()));
        let fits = named(&rule.iif, iif)
            && named(&rule.oif, packet.oif)
            && rule
                .fwmark
                .is_none_or(|(mark, mask)| (mark ^ packet.mark) & mask == 0)
            && within(rule.source, packet.source)
            && within(rule.destination, Some(packet.destination))
            && (rule.tos == 0 || rule.tos == packet.tos)
            && (!rule.l3mdev || self.vrf.is_some())
            && rule
                .uids
                .is_none_or(|(first, last)| (first..=last).contains(&packet.uid))
            // A packet of which nothing but the IP header is known.
            && rule.ip_protocol.is_none()
            && rule.source_ports.is_none()
            && rule.destination_ports.is_none()
            && rule.tunnel_id.is_none();
        fits != (rule.flags & flag::INVERT != 0)
    }

    fn suppressed(&self, rule: &Rule, route: &RouteRef<'_>, hops: &[NextHop]) -> bool {
        let set = |value: Option<u32>| value.filter(|value| *value != u32::MAX);
        let too_short = set(rule.suppress_prefix_len)
            .is_some_and(|len| u32::from(route.prefix.prefix_len()) <= len);
        let by_group = set(rule.suppress_group).is_some_and(|group| {
            let link = hops.first().and_then(|hop| self.tables.links.get(hop.link));
            link.is_some_and(|link| link.group == group)
        });
        too_short || by_group
    }

    /// The first usable route of the longest prefix that has one.
    fn in_table(&self, table: u32) -> InTable<'a> {
        let mut routes = self
            .tables
            .routes
            .matching(table, self.packet.destination)
            .peekable();
        let mut run: Vec<RouteRef<'a>> = Vec::new();
        while let Some(route) = routes.next() {
            let ends = routes.peek().is_none_or(|next| next.prefix != route.prefix);
            run.push(route);
            if !ends {
                continue;
            }
            self.prefer(&mut run);
            for route in run.drain(..) {
                match self.usable(route) {
                    InTable::Nothing => {}
                    // Routes that say `throw` end the table.
                    decided => return decided,
                }
                if route.body.kind == kind::THROW {
                    return InTable::Nothing;
                }
            }
        }
        InTable::Nothing
    }

    /// Those of a prefix that fit the packet, the best first: its own type
    /// of service before any, a source of its own before any.
    fn prefer(&self, run: &mut Vec<RouteRef<'a>>) {
        let packet = &self.packet;
        run.retain(|route| {
            (route.tos == 0 || route.tos == packet.tos)
                && match (route.body.source, packet.source) {
                    (Some(net), Some(source)) => IpNet::from(net).contains(&source),
                    _ => true,
                }
        });
        run.sort_by_key(|route| {
            let source_len = route.body.source.map_or(0, |net| net.prefix_len());
            (
                std::cmp::Reverse(source_len),
                std::cmp::Reverse(route.tos),
                route.metric,
            )
        });
    }

    fn usable(&self, route: RouteRef<'a>) -> InTable<'a> {
        match route.body.kind {
            kind::BLACKHOLE => return InTable::Refused(NoRoute::Blackhole),
            kind::UNREACHABLE => return InTable::Refused(NoRoute::HostUnreachable),
            kind::PROHIBIT => return InTable::Refused(NoRoute::Prohibited),
            kind::THROW => return InTable::Nothing,
            _ => {}
        }
        let Some(mut hops) = self.tables.nexthops.hops_of(route.body) else {
            return InTable::Refused(NoRoute::Blackhole);
        };
        hops.retain(|hop| self.is_alive(hop, route.body.kind));
        if hops.is_empty() {
            InTable::Nothing
        } else {
            InTable::Found(route, hops)
        }
    }

    /// Not over a link that is not usable, nor over another than the one
    /// named.
    fn is_alive(&self, hop: &NextHop, kind: u8) -> bool {
        let is_named = || match self.oif {
            None => true,
            Some(oif) => oif.index == hop.link,
        };
        (kind == kind::LOCAL || self.tables.is_usable(hop, self.family)) && is_named()
    }
}

#[cfg(test)]
mod tests;
