//! What an IPv4 table says of a packet (`fib_table_lookup`). Called by the
//! lookup.

use std::cmp::Reverse;
use std::net::IpAddr;

use super::{InTable, LEGACY_TOS, Lookup, MERGED, NoRoute, Open};
use crate::AF_INET;
use crate::row::route::{NextHop, RouteRef, hop_flag, kind, table_id};

/// What one route says.
enum Said<'a> {
    Is(InTable<'a>),
    /// Not by this route; perhaps by the next.
    Next,
    /// A route by an object that leads nowhere ends its leaf of the trie:
    /// all prefixes that begin with the same address.
    Miss,
}

impl<'a> Lookup<'a> {
    /// In the table that holds the routes of local and main: it is called
    /// the main one.
    pub(super) fn in_merged_table(&self) -> InTable<'a> {
        let to = self.packet.destination.into();
        let routes = &self.tables.routes;
        match self.in_routes_v4(routes.covering_in_both(MERGED, to)) {
            InTable::Found(mut found) => {
                found.route.table = table_id::MAIN;
                InTable::Found(found)
            }
            other => other,
        }
    }

    /// The first usable route of the longest prefix that has one.
    pub(super) fn in_routes_v4(&self, routes: impl Iterator<Item = RouteRef<'a>>) -> InTable<'a> {
        let mut routes = routes.peekable();
        let mut run: Vec<RouteRef<'a>> = Vec::new();
        let mut missed: Option<IpAddr> = None;
        while let Some(route) = routes.next() {
            let ends = routes.peek().is_none_or(|next| next.prefix != route.prefix);
            run.push(route);
            if !ends {
                continue;
            }
            let leaf = route.prefix.network();
            let mut tried = std::mem::take(&mut run);
            if missed == Some(leaf) {
                continue;
            }
            self.in_order(&mut tried);
            for (at, route) in tried.iter().enumerate() {
                match self.said(*route, &tried[at + 1..]) {
                    Said::Is(decided) => return decided,
                    Said::Next => {}
                    Said::Miss => {
                        missed = Some(leaf);
                        break;
                    }
                }
            }
        }
        InTable::Nothing
    }

    /// Those of a prefix that fit the packet, in the order in which they
    /// are tried.
    fn in_order(&self, run: &mut Vec<RouteRef<'a>>) {
        let tos = self.packet.tos & LEGACY_TOS;
        run.retain(|route| route.tos == 0 || route.tos == tos);
        run.sort_by_key(|route| (Reverse(route.table), Reverse(route.tos), route.metric));
    }

    fn said(&self, route: RouteRef<'a>, behind: &[RouteRef<'a>]) -> Said<'a> {
        let refusal = match route.body.kind {
            kind::BLACKHOLE => Some(NoRoute::Blackhole),
            kind::UNREACHABLE => Some(NoRoute::HostUnreachable),
            kind::PROHIBIT => Some(NoRoute::Prohibited),
            kind::THROW => return Said::Is(InTable::Nothing),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return Said::Is(InTable::Refused(refusal));
        }
        let Some(mut hops) = self.tables.nexthops.hops_of(route.body) else {
            return Said::Is(InTable::Refused(NoRoute::Blackhole));
        };
        let several = hops.len() > 1;
        let must = self.oif.map(|oif| oif.index);
        hops.retain(|hop| {
            let fits = must.is_none_or(|out| out == hop.link);
            fits && self.is_alive(hop, route.body.kind)
        });
        if hops.is_empty() {
            // That is the kernel's trie, and no feed has one.
            let ends_leaf = route.body.nexthop_id.is_some() && self.tables.named.is_none();
            return if ends_leaf { Said::Miss } else { Said::Next };
        }
        let mut found = self.found(route, hops);
        if must.is_some() {
            // With a link that is named it is the first over it.
            found.hops.truncate(1);
        } else if several {
            found.open = Some(Open::Member);
        } else if route.prefix.prefix_len() == 0 && behind.iter().any(|other| rivals(&route, other))
        {
            found.open = Some(Open::Gateway);
        }
        if found.hops.iter().any(|hop| self.is_through_us(hop)) {
            found.open = found.open.or(Some(Open::Scope));
        }
        Said::Is(InTable::Found(found))
    }

    /// Whether a gateway is an address of the host's own, or was: the kernel
    /// passes it over where it was that when the route was made
    /// (`fib_check_nh_v4_gw`), and does not tell.
    fn is_through_us(&self, hop: &NextHop) -> bool {
        let is_own = |gateway: IpAddr| {
            hop.flags & hop_flag::OWN_ONCE != 0 || self.tables.is_own_address(gateway)
        };
        hop.flags & hop_flag::ONLINK == 0 && hop.gateway.is_some_and(is_own)
    }

    fn is_alive(&self, hop: &NextHop, kind: u8) -> bool {
        kind == kind::LOCAL || self.tables.is_usable(hop, AF_INET)
    }
}

/// Whether two default routes are ones between which the kernel goes by
/// neighbours, and by what it took last (`fib_select_default`).
fn rivals(a: &RouteRef<'_>, b: &RouteRef<'_>) -> bool {
    let is_plain = |route: &RouteRef<'_>| route.body.kind == kind::UNICAST;
    (a.table, a.tos, a.metric) == (b.table, b.tos, b.metric) && is_plain(a) && is_plain(b)
}
