//! What an IPv6 table says of a packet (`fib6_table_lookup`). Called by the
//! lookup.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

use super::{InTable, Lookup, NoRoute, Open};
use crate::AF_INET6;
use crate::row::neighbour::{NeighbourKey, state};
use crate::row::route::{NextHop, RouteRef, kind};

/// What a route of a node says that is good enough.
struct Matched<'a> {
    score: u8,
    said: InTable<'a>,
}

impl<'a> Lookup<'a> {
    /// The best route of the longest prefix that has one: first of those
    /// whose gateways are not known to fail, then, if there is none at all,
    /// of any. A router does not look at that.
    pub(super) fn in_routes_v6(&self, routes: impl Iterator<Item = RouteRef<'a>>) -> InTable<'a> {
        let nodes = self.nodes(&routes.collect::<Vec<_>>());
        let passes: &[bool] = match self.tables.forwards_v6() {
            true => &[false],
            false => &[true, false],
        };
        let mut tried = passes.iter().flat_map(|reachable| {
            let nodes = nodes.iter();
            nodes.filter_map(|node| self.in_node(node, *reachable))
        });
        tried.next().unwrap_or(InTable::Nothing)
    }

    /// The routes for this packet, node by node as they are tried: of a
    /// prefix those for some sources before those for all. Where a prefix
    /// has the former, but none for this source, its others are hidden
    /// (`fib6_node_lookup_1`), until a longer prefix was found and did not
    /// do (`fib6_backtrack`), and but for the default routes.
    fn nodes(&self, routes: &[RouteRef<'a>]) -> Vec<Vec<RouteRef<'a>>> {
        let mut nodes: Vec<Vec<RouteRef<'a>>> = Vec::new();
        for prefix in routes.chunk_by(|a, b| a.prefix == b.prefix) {
            let has_source = |route: &RouteRef<'a>| source_len(route) > 0;
            let fits = prefix.iter().filter(|route| self.is_from(route));
            let mut fitting: Vec<RouteRef<'a>> = fits.copied().collect();
            let is_hidden = prefix.iter().any(has_source) && !fitting.iter().any(has_source);
            let is_default = prefix.iter().any(|route| route.prefix.prefix_len() == 0);
            if is_hidden && nodes.is_empty() && !is_default {
                continue;
            }
            fitting.sort_by_key(|route| Reverse(source_len(route)));
            let of_prefix = fitting.chunk_by(|a, b| source_len(a) == source_len(b));
            nodes.extend(of_prefix.map(<[RouteRef<'a>]>::to_vec));
        }
        nodes
    }

    /// The best of the routes of the lowest metric, else the best of all
    /// others, whatever their metric (`find_rr_leaf`).
    fn in_node(&self, node: &[RouteRef<'a>], reachable: bool) -> Option<InTable<'a>> {
        let lowest = node.first()?.metric;
        let others = node.partition_point(|route| route.metric == lowest);
        let (first, rest) = node.split_at(others);
        let best = |routes: &[RouteRef<'a>]| {
            let matched = routes
                .iter()
                .filter_map(|route| self.matched(*route, reachable));
            // Of equal ones the first.
            matched.reduce(|best, next| if next.score > best.score { next } else { best })
        };
        Some(best(first).or_else(|| best(rest))?.said)
    }

    fn matched(&self, route: RouteRef<'a>, reachable: bool) -> Option<Matched<'a>> {
        let refusal = match route.body.kind {
            kind::BLACKHOLE => Some(InTable::Refused(NoRoute::Blackhole)),
            kind::UNREACHABLE => Some(InTable::Refused(NoRoute::HostUnreachable)),
            kind::PROHIBIT => Some(InTable::Refused(NoRoute::Prohibited)),
            // It ends the table.
            kind::THROW => Some(InTable::Nothing),
            _ => None,
        };
        if let Some(said) = refusal {
            // What refuses is a route over the loopback.
            let score = self.score(&route, self.first_loopback())?;
            return Some(Matched { score, said });
        }
        let Some(hops) = self.tables.nexthops.hops_of(route.body) else {
            let said = InTable::Refused(NoRoute::Blackhole);
            let score = u8::MAX;
            return Some(Matched { score, said });
        };
        let several = hops.len() > 1;
        let score_of = |hop: &NextHop| {
            let is_good = self.is_alive_v6(&route, hop) && !(reachable && self.fails(hop));
            is_good.then(|| self.score(&route, hop.link))?
        };
        // Of a feed's rows each hop is looked at, as of those without one.
        let is_object = route.body.nexthop_id.is_some() && self.tables.named.is_none();
        // Of an object the first that will do at all, else the best.
        let mut scores = hops.iter().filter_map(score_of);
        let score = if is_object {
            scores.next()
        } else {
            scores.max()
        }?;
        let members = hops
            .iter()
            .filter(|hop| is_object || score_of(hop).is_some());
        let mut found = self.found(route, members.cloned().collect());
        found.open = several.then_some(Open::Member);
        let said = InTable::Found(found);
        Some(Matched { score, said })
    }

    fn is_alive_v6(&self, route: &RouteRef<'a>, hop: &NextHop) -> bool {
        let ends_here = matches!(route.body.kind, kind::LOCAL | kind::ANYCAST);
        ends_here || self.tables.is_usable(hop, AF_INET6)
    }

    /// Whether a gateway is known not to answer (`rt6_check_neigh`).
    fn fails(&self, hop: &NextHop) -> bool {
        let Some(address) = hop.gateway else {
            return false;
        };
        let key = NeighbourKey {
            link: hop.link,
            address,
            proxy: false,
        };
        let neighbour = self.tables.neighbours.get(&key);
        neighbour.is_some_and(|row| row.state & state::FAILED != 0)
    }

    /// What the kernel prefers among routes of one metric
    /// (`rt6_score_route`): the higher preference, then the link named;
    /// `None` for one by a link that the packet must not leave by.
    fn score(&self, route: &RouteRef<'a>, link: u32) -> Option<u8> {
        let wanted = self.packet.iif.or(self.oif.map(|oif| oif.index));
        let is_wanted = wanted.is_none_or(|wanted| wanted == link);
        if !is_wanted && self.is_strict() {
            return None;
        }
        let preference = match route.body.preference {
            Some(1) => 3,
            Some(3) => 1,
            _ => 2,
        };
        Some(preference << 2 | u8::from(is_wanted) << 1)
    }

    /// Whether the link that is named is an order: not where the source is
    /// given as well, unless the destination has a meaning on a link only
    /// (`rt6_need_strict`).
    /// Of a feed's rows it always is.
    fn is_strict(&self) -> bool {
        if self.tables.named.is_some() {
            return true;
        }
        let IpAddr::V6(to) = self.packet.destination else {
            return true;
        };
        let on_link = to.is_multicast() || to.is_unicast_link_local() || to.is_loopback();
        let is_open = |from: IpAddr| from.is_unspecified();
        on_link || self.packet.iif.is_none() && self.packet.source.is_none_or(is_open)
    }

    /// Whether a route for some sources is for this packet's.
    fn is_from(&self, route: &RouteRef<'a>) -> bool {
        let unspecified = Ipv6Addr::UNSPECIFIED.into();
        let from = self.packet.source.unwrap_or(unspecified);
        let net = route.body.source.map(IpNet::from);
        net.is_none_or(|net| net.contains(&from))
    }
}

fn source_len(route: &RouteRef<'_>) -> u8 {
    route.body.source.map_or(0, |net| net.prefix_len())
}
