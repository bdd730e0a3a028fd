//! Which route a packet would take: the kernel's decision, taken from a
//! snapshot.
//!
//! Rules in order (`fib_rules_lookup`), then longest match, type of
//! service and metric in each table, dead next hops passed over, then the
//! source address. What the kernel decides by hashing a flow (which member
//! of a multipath group) is left open: all usable members are told.

mod rules;

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;
use thiserror::Error;

use crate::row::link::{self, Link};
use crate::row::route::{NextHop, RouteRef, hop_flag, kind, scope, table_id};
use crate::row::rule::{Rule, action, flag};
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
    /// No packet has such addresses, or not there (`EINVAL`).
    #[error("Invalid argument")]
    Martian,
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
        match packet.destination {
            IpAddr::V4(to) if packet.iif.is_none() => lookup.v4_out(to),
            IpAddr::V4(to) => lookup.v4_in(to),
            IpAddr::V6(_) => {
                let (route, hops) = lookup.by_rules()?;
                Ok(lookup.decision(route, hops))
            }
        }
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
            let master = || tables.links.get(link.master?);
            Some(link)
                .filter(is_vrf)
                .or_else(|| master().filter(is_vrf))
        };
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
                Ok((route, hops)) => self.decision(route, hops),
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
    /// one that forwards takes it and checks no reverse path.
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
            let here = (!comes_from_here()).then(|| self.without_route(self.loopback()));
            return here.ok_or(NoRoute::Martian);
        }
        // Whose source is not known is taken to have a good one.
        let is_martian = |at: Ipv4Addr| at.is_loopback() || at.is_unspecified();
        if to.is_multicast() || is_martian(to) || from.is_some_and(is_martian) {
            return Err(NoRoute::Martian);
        }
        let (route, hops) = self.by_rules()?;
        let ends_here = matches!(route.body.kind, kind::LOCAL | kind::BROADCAST);
        if !ends_here && route.body.kind != kind::UNICAST || comes_from_here() {
            return Err(NoRoute::Martian);
        }
        let mut decision = self.decision(route, hops);
        if ends_here {
            decision.hops = Self::over(self.loopback());
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
        let packet = Packet {
            destination: from.into(),
            source: Some(self.packet.destination),
            ..self.packet
        };
        let back = Lookup { packet, ..*self };
        let found = back.by_rules();
        found.is_ok_and(|(route, _)| route.body.kind != kind::UNICAST)
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
                InTable::Found(route, hops) if route.body.kind == kind::LOCAL => {
                    hops.first().map(|hop| hop.link)
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
            hops: Self::over(self.loopback()),
            source: self.packet.source.is_none().then_some(own),
            table: table_id::MAIN,
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

    fn decision(&self, route: RouteRef<'a>, mut hops: Vec<NextHop>) -> Decision<'a> {
        let body = route.body;
        let v4 = self.family == AF_INET;
        let kind = self.kind_of(body.kind);
        // Not through a gateway, whatever the route says.
        let is_plain = kind == kind::BROADCAST && body.kind != kind
            || v4 && kind == kind::MULTICAST && route.prefix.prefix_len() < 4;
        let source = self.source_by(&route, hops.first());
        for hop in &mut hops {
            // Nor through one that is the host itself.
            let out = self.link(hop.link);
            let is_here = |gateway: &IpAddr| {
                let over_loopback = out.is_some_and(|out| out.flags & link::flag::LOOPBACK != 0);
                over_loopback || self.tables.is_own_address(*gateway)
            };
            let own = hop
                .gateway
                .as_ref()
                .filter(|gateway| v4 && hop.flags & hop_flag::ONLINK == 0 && is_here(gateway));
            if is_plain {
                *hop = Self::over(hop.link).remove(0);
            } else if own.is_some() {
                hop.gateway = None;
            }
        }
        let ends_here = body.kind == kind::LOCAL || !v4 && kind == kind::ANYCAST;
        Decision {
            kind,
            hops: if ends_here {
                Self::over(self.loopback())
            } else {
                hops
            },
            source,
            table: route.table,
            route: Some(route),
        }
    }

    /// The source of a packet that takes a route.
    fn source_by(&self, route: &RouteRef<'a>, hop: Option<&NextHop>) -> Option<IpAddr> {
        let body = route.body;
        let (link, gateway) = hop.map_or((0, None), |hop| (hop.link, hop.gateway));
        match self.packet.destination {
            // Told for what comes in as well, where the route sets it.
            IpAddr::V6(_) if self.packet.iif.is_some() => body.preferred_source,
            IpAddr::V4(to) if body.kind == kind::LOCAL && self.wants_source() => {
                Some(body.preferred_source.unwrap_or(to.into()))
            }
            _ => self.source(body.preferred_source, link, gateway, body.scope),
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
        let of_group = self.source_of_group();
        of_group
            .or(preferred)
            .or_else(|| match self.packet.destination {
                IpAddr::V4(_) => {
                    let gateway = gateway.filter(IpAddr::is_ipv4);
                    source_address::v4(self.tables, link, gateway, scope)
                }
                IpAddr::V6(to) => source_address::v6(self.tables, link, to),
            })
    }

    /// IPv4 multicast by a link that is named is of that link's first address
    /// of universe scope, whatever the route says.
    fn source_of_group(&self) -> Option<IpAddr> {
        let oif = self.oif?;
        let IpAddr::V4(to) = self.packet.destination else {
            return None;
        };
        if !to.is_multicast() || to.octets()[..3] == [224, 0, 0] {
            return None;
        }
        source_address::v4(self.tables, oif.index, None, scope::UNIVERSE)
    }

    fn by_rules(&self) -> Result<(RouteRef<'a>, Vec<NextHop>), NoRoute> {
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

    /// By the rules that each namespace begins with.
    fn by_default_rules(&self) -> Result<(RouteRef<'a>, Vec<NextHop>), NoRoute> {
        for found in [Self::in_merged_table, Self::in_default_table] {
            match found(self) {
                InTable::Found(route, hops) => return Ok((route, hops)),
                InTable::Refused(why) => return Err(why),
                InTable::Nothing => {}
            }
        }
        Err(NoRoute::Unreachable)
    }

    /// In the table that holds the routes of local and main: it is called
    /// the main one.
    fn in_merged_table(&self) -> InTable<'a> {
        let to = self.packet.destination.into();
        let routes = &self.tables.routes;
        match self.in_routes(routes.covering_in_both(MERGED, to)) {
            InTable::Found(mut route, hops) => {
                route.table = table_id::MAIN;
                InTable::Found(route, hops)
            }
            other => other,
        }
    }

    fn in_default_table(&self) -> InTable<'a> {
        self.in_table(table_id::DEFAULT)
    }

    fn in_table(&self, table: u32) -> InTable<'a> {
        let routes = &self.tables.routes;
        self.in_routes(routes.matching(table, self.packet.destination))
    }

    /// The first usable route of the longest prefix that has one.
    fn in_routes(&self, routes: impl Iterator<Item = RouteRef<'a>>) -> InTable<'a> {
        let mut routes = routes.peekable();
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
    /// of service before any, a source of its own before any, and in IPv6
    /// the link that is named and the preferred router.
    fn prefer(&self, run: &mut Vec<RouteRef<'a>>) {
        let tos = self.packet.tos & LEGACY_TOS;
        run.retain(|route| (route.tos == 0 || route.tos == tos) && self.is_from(route));
        run.sort_by_key(|route| {
            let source_len = route.body.source.map_or(0, |net| net.prefix_len());
            (
                Reverse(route.table),
                Reverse(source_len),
                Reverse(route.tos),
                route.metric,
                Reverse(self.score(route)),
            )
        });
    }

    /// Whether a route of IPv6 for some sources is for this packet's.
    fn is_from(&self, route: &RouteRef<'a>) -> bool {
        let unspecified = Ipv6Addr::UNSPECIFIED.into();
        let from = self.packet.source.unwrap_or(unspecified);
        let net = route.body.source.map(IpNet::from);
        net.is_none_or(|net| net.contains(&from))
    }

    /// What the kernel prefers among IPv6 routes of one metric
    /// (`rt6_score_route`): the higher preference, then the link named.
    fn score(&self, route: &RouteRef<'a>) -> (u8, bool) {
        let preference = match route.body.preference {
            Some(1) => 3,
            Some(3) => 1,
            _ => 2,
        };
        let wanted = self.packet.iif.or(self.packet.oif);
        let is_wanted = |hop: &NextHop| wanted.is_none_or(|link| link == hop.link);
        let hops = route.body.next_hops.as_slice();
        (
            preference,
            self.family == AF_INET6 && hops.iter().any(is_wanted),
        )
    }

    /// The link that a packet must leave by, if it must: in IPv6 one that is
    /// named only prefers its routes when the source is given, unless the
    /// destination has a meaning on a link only (`rt6_need_strict`).
    fn must_leave_by(&self) -> Option<u32> {
        let IpAddr::V6(to) = self.packet.destination else {
            return self.oif.map(|oif| oif.index);
        };
        let on_link = to.is_multicast() || to.is_unicast_link_local() || to.is_loopback();
        let out = self.oif.map(|oif| oif.index);
        match self.packet.iif {
            Some(iif) => on_link.then_some(iif),
            None => out.filter(|_| on_link || self.packet.source.is_none()),
        }
    }

    fn usable(&self, route: RouteRef<'a>) -> InTable<'a> {
        let must = self.must_leave_by();
        let refusal = match route.body.kind {
            kind::BLACKHOLE => Some(NoRoute::Blackhole),
            kind::UNREACHABLE => Some(NoRoute::HostUnreachable),
            kind::PROHIBIT => Some(NoRoute::Prohibited),
            _ => None,
        };
        // In IPv6 what refuses is a route over the loopback.
        let refuses = self.family == AF_INET || must.is_none_or(|out| out == self.loopback());
        match refusal {
            Some(refusal) if refuses => return InTable::Refused(refusal),
            Some(_) => return InTable::Nothing,
            None if route.body.kind == kind::THROW => return InTable::Nothing,
            None => {}
        }
        let Some(mut hops) = self.tables.nexthops.hops_of(route.body) else {
            return InTable::Refused(NoRoute::Blackhole);
        };
        hops.retain(|hop| self.is_alive(hop, route.body.kind));
        let fits = |hop: &NextHop| must.is_none_or(|out| out == hop.link);
        if !hops.iter().any(fits) {
            return InTable::Nothing;
        }
        // Of an IPv6 object's members any may be taken.
        if self.family == AF_INET || route.body.nexthop_id.is_none() {
            hops.retain(fits);
        }
        // With a link that is named, IPv4 takes the first over it.
        if self.family == AF_INET && must.is_some() {
            hops.truncate(1);
        }
        InTable::Found(route, hops)
    }

    fn is_alive(&self, hop: &NextHop, kind: u8) -> bool {
        kind == kind::LOCAL || self.tables.is_usable(hop, self.family)
    }
}

impl Tables {
    /// Whether the kernel keeps the IPv4 tables local and main as one
    /// (`fib_trie_unmerge`), as far as rules tell: until there are others
    /// than those that each namespace begins with. The longest match of
    /// both decides then. O(log n).
    pub fn has_merged_tables(&self) -> bool {
        let rules = self.rules.of_family(AF_INET);
        are_defaults(&rules.take(4).collect::<Vec<_>>())
    }
}

/// Whether rules are those that each namespace begins with.
fn are_defaults(rules: &[&Arc<Rule>]) -> bool {
    let plain = |rule: &&Arc<Rule>| {
        let default = Rule {
            family: rule.family,
            priority: rule.priority,
            table: rule.table,
            action: action::TO_TABLE,
            protocol: rule.protocol,
            suppress_prefix_len: rule.suppress_prefix_len,
            suppress_group: rule.suppress_group,
            flags: rule.flags & flag::PERMANENT,
            ..Rule::default()
        };
        (***rule == default).then_some((rule.priority, rule.table))
    };
    let known: Option<Vec<(u32, u32)>> = rules.iter().map(plain).collect();
    let (local, main) = ((0, table_id::LOCAL), (32_766, table_id::MAIN));
    known.is_some_and(|rules| rules == [local, main, (32_767, table_id::DEFAULT)])
}

#[cfg(test)]
mod tests;
