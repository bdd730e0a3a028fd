//! Takes out of rows what changes without a change: what follows from a
//! link's state.

use ipnet::IpNet;
use table::row::route::hop_flag;
use table::{AF_INET, AF_INET6, Links, NextHop, Nexthop, RouteBody};

/// What the marks of a route's hops depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Over<'a> {
    /// The route's family.
    pub family: u8,
    /// The links that it may lead over.
    pub links: &'a Links,
}

impl<'a> Over<'a> {
    /// For a route to `prefix`.
    pub(crate) fn of(prefix: IpNet, links: &'a Links) -> Self {
        let family = match prefix {
            IpNet::V4(_) => AF_INET,
            IpNet::V6(_) => AF_INET6,
        };
        Self { family, links }
    }

    /// Whether the kernel tells of a hop over a link whether it is dead by
    /// itself, and not because of the link's state.
    pub(crate) fn tells(self, link: u32) -> bool {
        self.links.get(link).is_some_and(|link| match self.family {
            AF_INET6 => link.is_usable(AF_INET6),
            _ => link.has_carrier(),
        })
    }

    /// Whether the kernel has not noticed of a hop by an IPv6 gateway, as it
    /// tells it, that its link has no carrier ([`hop_flag::UNMARKED`]). Of
    /// others it may only be late: `linkwatch` looks later.
    fn is_unmarked(self, hop: &NextHop) -> bool {
        let by_v6 = hop.gateway.is_some_and(|gateway| gateway.is_ipv6());
        let is_marked = hop.flags & (hop_flag::LINKDOWN | hop_flag::DEAD) != 0;
        let link = self.links.get(hop.link).filter(|link| link.is_up());
        by_v6 && !is_marked && link.is_some_and(|link| !link.has_carrier())
    }
}

/// A body as the kernel tells it just now, made as [`body`] has it. Hops of
/// objects are never marked.
pub(crate) fn told(told: &mut RouteBody, over: Over<'_>) {
    if over.family == AF_INET && told.nexthop_id.is_none() {
        for hop in told.next_hops.as_mut_slice() {
            if over.is_unmarked(hop) {
                hop.flags |= hop_flag::UNMARKED;
            }
        }
    }
    body(told, over);
}

/// A body whose hops' `DEAD` and `LINKDOWN` say only what their links'
/// states do not: a hop is dead on a living link after the link has lost
/// its last address (IPv4), or while IPv6 is not ready on it.
pub(crate) fn body(body: &mut RouteBody, over: Over<'_>) {
    for hop in body.next_hops.as_mut_slice() {
        hop.flags &= !(hop_flag::LINKDOWN | hop_flag::OWN_ONCE);
        if !over.tells(hop.link) {
            hop.flags &= !hop_flag::DEAD;
        }
    }
}

/// A next-hop object without what follows from its link's state.
pub(crate) fn nexthop(nexthop: &mut Nexthop) {
    nexthop.flags &= !(hop_flag::DEAD | hop_flag::LINKDOWN);
}
