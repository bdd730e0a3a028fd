//! Which route a packet would take: the kernel's decision, taken from a
//! snapshot.
//!
//! Rules in order (`fib_rules_lookup`), then longest match, type of
//! service and metric in each table, dead next hops passed over, then the
//! source address. What the kernel decides by hashing a flow (which member
//! of a multipath group) is left open: all usable members are told.

mod fib4;
mod fib6;
mod rules;
mod source;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::IpNet;
use thiserror::Error;

use crate::row::link::{self, Link};
use crate::row::route::{NextHop, RouteRef, hop_flag, kind, scope, table_id};
use crate::row::rule::{Rule, action};
use crate::source_address;
use crate::writer::Tables;
use crate::{AF_INET, AF_INET6};

/// Rules that one lookup tries at most. `goto` leads forward only, so it
/// ends by itself; this bounds it whatever the rules say.
const MAX_RULES: usize = 1 << 20;

/// The IPv4 tables that the kernel keeps as one, the first asked first.
const MERGED: [u32; 2] = [table_id::LOCAL, table_id::MAIN];

/// What of a type of service routes and rules of old compare
/// (`INET_DSCP_LEGACY_TOS_MASK`).
const LEGACY_TOS: u8 = 0x1c;

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
    /// Its protocol (`IPPROTO_…`), 0 where nothing is known: for rules.
    pub ip_protocol: u8,
    /// Its ports, 0 where it has none: for rules.
    pub source_port: u16,
    /// See `source_port`.
    pub destination_port: u16,
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
            ip_protocol: 0,
            source_port: 0,
            destination_port: 0,
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
    /// for the host's own addresses the loopback, or the VRF that they are in.
    pub hops: Vec<NextHop>,
    /// The source address it gets; `None` when it has one, or is not the
    /// host's own, or there is none.
    pub source: Option<IpAddr>,
    /// The table that decided.
    pub table: u32,
    /// What of it only the kernel can tell; `None`: nothing.
    pub open: Option<Open>,
}

/// What the kernel decides by what it neither tells nor shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Which member of a group: by a hash with a secret, and by states of
    /// members as they were (`fib_select_multipath`, `fib6_select_path`).
    Member,
    /// Which of several default routes: by neighbours, and by what it took
    /// last (`fib_select_default`).
    Gateway,
    /// Whether by a gateway that is the host's own address now, and may not
    /// have been when the route was made (`fib_check_nh_v4_gw`).
    Scope,
    /// Which source: whether it heeds home addresses depends on how it was
    /// built (`CONFIG_IPV6_MIP6`); by a next-hop object it may have chosen it
    /// earlier (`fib_result_prefsrc`).
    Source,
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
    /// No packet has such addresses, or not there (`EINVAL`).
    #[error("Invalid argument")]
    Martian,
    /// There is no such link (`ENODEV`).
    #[error("No such device")]
    NoSuchLink,
}

/// What one table says.
enum InTable<'a> {
    Found(Found<'a>),
    Refused(NoRoute),
    Nothing,
}

/// A route that a packet takes, by these members.
struct Found<'a> {
    route: RouteRef<'a>,
    hops: Vec<NextHop>,
    open: Option<Open>,
}

impl Tables {
    /// The route a packet would take. Costs O(rules), O(log n) for each
    /// table asked, O(members of the group), and for the source address
    /// O(addresses of the link), for IPv6 O(addresses).
    pub fn route_of(&self, packet: &Packet) -> Result<Decision<'_>, NoRoute> {
        let lookup = Lookup::new(self, packet)?;
        match packet.destination {
            IpAddr::V4(to) if packet.iif.is_none() => lookup.v4_out(to),
            IpAddr::V4(to) => lookup.v4_in(to),
            IpAddr::V6(_) => {
                let found = lookup.by_rules()?;
                Ok(lookup.decision(found))
            }
        }
    }
}

impl Tables {
    /// The route of one table that a packet would take by the longest
    /// match, without what only a kernel has: rules, addresses of its own,
    /// neighbours. For the rows of a feed or a file, which are routes alone.
    /// Of the packet its destination counts, its type of service, for
    /// routes of some sources its source, and the link it must leave by;
    /// next hops whose link is down are passed over. Nothing of it is open,
    /// and no source is chosen. O(log n + members of the group).
    pub fn longest_match(&self, packet: &Packet, table: u32) -> Result<Decision<'_>, NoRoute> {
        let link = |index| self.named_links().get(index).ok_or(NoRoute::NoSuchLink);
        let lookup = Lookup {
            tables: self,
            packet: *packet,
            family: if packet.destination.is_ipv4() {
                AF_INET
            } else {
                AF_INET6
            },
            oif: packet.oif.map(link).transpose()?,
            vrf: None,
        };
        match lookup.in_table(table) {
            InTable::Found(Found { route, hops, .. }) => Ok(Decision {
                kind: route.body.kind,
                hops,
                source: None,
                table,
                route: Some(route),
                open: None,
            }),
            InTable::Refused(why) => Err(why),
            InTable::Nothing => Err(NoRoute::Unreachable),
        }
    }
}

impl Tables {
    /// Whether a next hop is by an IPv4 gateway that is the host itself, by an
    /// address or by a prefix that is local as a whole, or was while the route
    /// was there. Whether the kernel passes such a gateway over depends on what
    /// it was when the route was made (`fib_check_nh_v4_gw`), which nothing
    /// tells ([`Open::Scope`]). O(log n).
    pub fn is_through_host(&self, hop: &NextHop) -> bool {
        let Some(IpAddr::V4(gateway)) = hop.gateway else {
            return false;
        };
        let lookup = Lookup {
            tables: self,
            packet: Packet::to(gateway.into()),
            family: AF_INET,
            oif: None,
            vrf: None,
        };
        hop.flags & hop_flag::ONLINK == 0
            && (hop.flags & hop_flag::OWN_ONCE != 0 || lookup.link_of_own(gateway).is_some())
    }
}

#[derive(Clone, Copy)]
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
        let v4 = packet.destination.is_ipv4();
        if v4 && oif.is_some_and(|oif| !oif.is_up()) {
            return Err(NoRoute::Unreachable);
        }
        let is_vrf = |link: &&Arc<Link>| link.vrf_table.is_some();
        let vrf_of = |link: &'a Arc<Link>| {
            tables
                .links
                .get(source_address::vrf_of(tables, link.index)?)
        };
        Ok(Self {
            tables,
            packet: *packet,
            family: if v4 { AF_INET } else { AF_INET6 },
            oif: oif.filter(|oif| !is_vrf(oif)),
            vrf: oif.or(iif).and_then(vrf_of),
        })
    }

    /// The link to which packets for the host itself go by a route: the VRF
    /// that its link is in, or the loopback (`ip_rt_get_dev`,
    /// `ip6_rt_get_dev_rcu`). For IPv6 addresses that count on their link
    /// alone it is the loopback, but for those of the VRF's own.
    fn here(&self, hop: Option<&NextHop>, to: IpNet) -> Vec<NextHop> {
        let of_link = hop.and_then(|hop| {
            let vrf = source_address::vrf_of(self.tables, hop.link)?;
            let is_strict = match to {
                IpNet::V6(to) => {
                    let to = to.addr();
                    to.is_unicast_link_local() || to.is_multicast() || to.is_loopback()
                }
                IpNet::V4(_) => false,
            };
            (vrf == hop.link || !is_strict).then_some(vrf)
        });
        Self::over(of_link.unwrap_or_else(|| self.first_loopback()))
    }

    /// The index by which the host's own packets come in: the VRF's or the
    /// loopback's.
    fn loopback(&self) -> u32 {
        self.vrf
            .map_or_else(|| self.first_loopback(), |vrf| vrf.index)
    }

    /// The namespace's own loopback.
    fn first_loopback(&self) -> u32 {
        let mut links = self.tables.links.iter();
        let loopback = links.find(|link| link.flags & link::flag::LOOPBACK != 0);
        loopback.map_or(1, |loopback| loopback.index)
    }

    fn over(link: u32) -> Vec<NextHop> {
        vec![NextHop {
            link,
            weight: 1,
            ..NextHop::default()
        }]
    }

    /// An IPv4 packet of the host's own (`ip_route_output_key_hash_rcu`).
    fn v4_out(&self, to: Ipv4Addr) -> Result<Decision<'a>, NoRoute> {
        let from = match self.packet.source {
            Some(IpAddr::V4(from)) => Some(from).filter(|from| !from.is_unspecified()),
            _ => None,
        };
        if from.is_some_and(|from| from.is_multicast() || from.is_broadcast()) {
            return Err(NoRoute::Martian);
        }
        let of_source = from.map(|from| self.link_of_own(from).ok_or(NoRoute::Unreachable));
        let of_source = of_source.transpose()?;
        if to.is_unspecified() {
            return Ok(self.delivered_here());
        }
        let decision = if let Some(link) = self.directly_out(to, of_source) {
            self.without_route(link)
        } else {
            match self.by_rules() {
                Ok(found) => self.decision(found),
                Err(refused) => self.on_link().ok_or(refused)?,
            }
        };
        let out = decision.hops.first().and_then(|hop| self.link(hop.link));
        let leaves = out.is_some_and(|out| out.flags & link::flag::LOOPBACK == 0);
        let source = decision.source.or(self.packet.source);
        if leaves && source.is_some_and(|source| source.is_loopback()) {
            return Err(NoRoute::Martian);
        }
        Ok(decision)
    }

    /// An IPv4 packet that came in by a link (`ip_route_input_slow`), as
    /// one that checks no reverse path takes it.
    fn v4_in(&self, to: Ipv4Addr) -> Result<Decision<'a>, NoRoute> {
        let from = match self.packet.source {
            Some(IpAddr::V4(from)) => Some(from),
            _ => None,
        };
        let is_any = from.is_none_or(|from| from.is_unspecified());
        let comes_from_here = || from.is_some_and(|from| !is_any && self.comes_from_here(from));
        if from.is_some_and(|from| from.is_multicast() || from.is_broadcast()) {
            return Err(NoRoute::Martian);
        }
        // Of multicast groups only the one that all hosts are in is known.
        let joined = to == Ipv4Addr::new(224, 0, 0, 1);
        if to.is_broadcast() || to.is_unspecified() && is_any || joined {
            let here = (!comes_from_here()).then(|| self.without_route(self.first_loopback()));
            return here.ok_or(NoRoute::Martian);
        }
        // Whose source is not known is taken to have a good one.
        let is_martian = |at: Ipv4Addr| at.is_loopback() || at.is_unspecified();
        if to.is_multicast() || is_martian(to) || from.is_some_and(is_martian) {
            return Err(NoRoute::Martian);
        }
        let forwards = self.packet.iif.and_then(|iif| self.link(iif));
        let forwards = forwards.is_some_and(|link| link.forwards_v4);
        let found = match self.by_rules() {
            Err(_) if !forwards => return Err(NoRoute::HostUnreachable),
            found => found?,
        };
        let of_route = found.route.body.kind;
        let ends_here = matches!(of_route, kind::LOCAL | kind::BROADCAST);
        if !ends_here && !forwards {
            return Err(NoRoute::HostUnreachable);
        }
        if !ends_here && of_route != kind::UNICAST || comes_from_here() {
            return Err(NoRoute::Martian);
        }
        let mut decision = self.decision(found);
        if ends_here {
            decision.hops = self.here(decision.hops.first(), IpAddr::from(to).into());
        }
        Ok(decision)
    }

    /// Whether the source of a packet that came in is the host's own, or
    /// with rules of somebody's own one that an answer would not leave for
    /// (`fib_validate_source`).
    fn comes_from_here(&self, from: Ipv4Addr) -> bool {
        if self.tables.has_merged_tables() {
            return self.link_of_own(from).is_some();
        }
        // Marks count with `src_valid_mark` alone.
        let packet = Packet {
            destination: from.into(),
            source: Some(self.packet.destination),
            iif: None,
            mark: 0,
            source_port: self.packet.destination_port,
            destination_port: self.packet.source_port,
            ..self.packet
        };
        let back = Lookup { packet, ..*self };
        let found = back.by_rules();
        found.is_ok_and(|found| found.route.body.kind != kind::UNICAST)
    }

    fn link(&self, index: u32) -> Option<&'a Arc<Link>> {
        self.tables.links.get(index)
    }

    /// The link that one of the host's own IPv4 addresses is on, or a
    /// prefix that is local as a whole (`__ip_dev_find`).
    fn link_of_own(&self, address: Ipv4Addr) -> Option<u32> {
        let rows = self.tables.addresses.by_address(address.into());
        let of_row = rows.map(|row| row.link).next();
        of_row.or_else(|| {
            let towards = Lookup {
                packet: Packet::to(address.into()),
                oif: None,
                ..*self
            };
            let found = if self.tables.has_merged_tables() {
                towards.in_merged_table()
            } else {
                towards.in_table(table_id::LOCAL)
            };
            match found {
                InTable::Found(found) if found.route.body.kind == kind::LOCAL => {
                    found.hops.first().map(|hop| hop.link)
                }
                _ => None,
            }
        })
    }

    /// To the unspecified address: to the host itself.
    fn delivered_here(&self) -> Decision<'a> {
        let of_link = self.oif.and_then(|oif| {
            let within = scope::HOST;
            source_address::v4(self.tables, oif.index, None, within)
        });
        let own = of_link.unwrap_or(Ipv4Addr::LOCALHOST.into());
        Decision {
            kind: kind::LOCAL,
            route: None,
            hops: Self::over(self.first_loopback()),
            source: self.packet.source.is_none().then_some(own),
            table: table_id::MAIN,
            open: None,
        }
    }

    /// The link by which IPv4 packets leave without a route: multicast of
    /// the link's own scope and limited broadcast by the one that is named,
    /// any multicast by the one that the source is on.
    fn directly_out(&self, to: Ipv4Addr, of_source: Option<u32>) -> Option<u32> {
        let Some(oif) = self.packet.oif else {
            return of_source.filter(|_| to.is_multicast() || to.is_broadcast());
        };
        let is_local = to.octets()[..3] == [224, 0, 0];
        (is_local || to.is_broadcast()).then_some(oif)
    }

    /// The kernel takes a destination to be on the link that is named when
    /// the tables know no way.
    fn on_link(&self) -> Option<Decision<'a>> {
        let oif = self.oif?;
        let inside_vrf = self.vrf.is_some() && !self.packet.destination.is_multicast();
        (!inside_vrf).then(|| self.without_route(oif.index))
    }

    fn without_route(&self, link: u32) -> Decision<'a> {
        Decision {
            kind: self.kind_of(kind::UNICAST),
            route: None,
            hops: Self::over(link),
            source: self.source(None, link, None, scope::LINK).address,
            table: table_id::MAIN,
            open: None,
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

    fn found(&self, route: RouteRef<'a>, hops: Vec<NextHop>) -> Found<'a> {
        Found {
            route,
            hops,
            open: None,
        }
    }

    fn decision(&self, found: Found<'a>) -> Decision<'a> {
        let Found {
            route,
            mut hops,
            mut open,
        } = found;
        let body = route.body;
        let v4 = self.family == AF_INET;
        let kind = self.kind_of(body.kind);
        // Not through a gateway, whatever the route says.
        let is_plain = kind == kind::BROADCAST && body.kind != kind
            || v4 && kind == kind::MULTICAST && route.prefix.prefix_len() < 4;
        let source = self.source_by(&route, hops.first());
        for hop in &mut hops {
            // Nor through one that is the host itself, by an address or by a
            // prefix that is local as a whole (`fib_check_nh_v4_gw`).
            let is_here = |gateway: &IpAddr| match gateway {
                IpAddr::V4(gateway) => self.link_of_own(*gateway).is_some(),
                IpAddr::V6(_) => self.tables.is_own_address(*gateway),
            };
            let own = hop
                .gateway
                .as_ref()
                .filter(|gateway| v4 && hop.flags & hop_flag::ONLINK == 0 && is_here(gateway));
            if is_plain {
                *hop = Self::over(hop.link).remove(0);
            } else if own.is_some() {
                // As of when the route was made, which nothing tells.
                open = open.or(Some(Open::Scope));
                hop.gateway = None;
            }
        }
        let ends_here = body.kind == kind::LOCAL || !v4 && kind == kind::ANYCAST;
        Decision {
            kind,
            hops: if ends_here {
                self.here(hops.first(), route.prefix)
            } else {
                hops
            },
            source: source.address,
            table: route.table,
            route: Some(route),
            open: open.or(source.open),
        }
    }

    fn by_rules(&self) -> Result<Found<'a>, NoRoute> {
        if self.family == AF_INET && self.tables.has_merged_tables() {
            return self.by_default_rules();
        }
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
                    InTable::Found(found) if !self.suppressed(rule, &found) => {
                        return Ok(found);
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

    /// By the rules that each namespace begins with.
    fn by_default_rules(&self) -> Result<Found<'a>, NoRoute> {
        for found in [Self::in_merged_table, Self::in_default_table] {
            match found(self) {
                InTable::Found(found) => return Ok(found),
                InTable::Refused(why) => return Err(why),
                InTable::Nothing => {}
            }
        }
        Err(NoRoute::Unreachable)
    }

    fn in_default_table(&self) -> InTable<'a> {
        self.in_table(table_id::DEFAULT)
    }

    fn in_table(&self, table: u32) -> InTable<'a> {
        let routes = &self.tables.routes;
        let routes = routes.matching(table, self.packet.destination);
        match self.family {
            AF_INET => self.in_routes_v4(routes),
            _ => self.in_routes_v6(routes),
        }
    }
}

impl Tables {
    /// Whether the kernel keeps the IPv4 tables local and main as one
    /// (`fib_trie_unmerge`), as far as is known: until there are other rules
    /// than those that each namespace begins with. The longest match of
    /// both decides then. O(log n).
    pub fn has_merged_tables(&self) -> bool {
        if self.routing.is_unmerged {
            return false;
        }
        // No two of them are equal.
        let mut rules = self.rules.of_family(AF_INET).take(4);
        rules
            .by_ref()
            .take(3)
            .filter(|rule| rule.is_default())
            .count()
            == 3
            && rules.next().is_none()
    }
}

#[cfg(test)]
mod tests;
