//! Takes out of rows what changes without a change: what follows from a
//! link's state.

use ipnet::IpNet;
use table::row::route::hop_flag;
use table::{AF_INET, AF_INET6, Link, Links, NextHop, Nexthop, RouteBody};

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
        let link = self.links.get(link);
        link.is_some_and(|link| link.is_usable(self.family))
    }

    /// Whether a hop, as the kernel tells it, is dead for its link alone, or may
    /// be: without a carrier those are that are not used then. The link may
    /// tell of its carrier later.
    fn is_dead_by_link(self, hop: &NextHop) -> bool {
        let ignores = |link: &Link| link.ignores_linkdown(self.family);
        let is_down = hop.flags & hop_flag::LINKDOWN != 0;
        let link = self.links.get(hop.link);
        !self.tells(hop.link) || is_down && link.is_some_and(|link| ignores(link))
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
        if over.is_dead_by_link(hop) {
            hop.flags &= !hop_flag::DEAD;
        }
        hop.flags &= !(hop_flag::LINKDOWN | hop_flag::OWN_ONCE);
    }
}

/// A next-hop object without what follows from its link's state.
pub(crate) fn nexthop(nexthop: &mut Nexthop) {
    nexthop.flags &= !(hop_flag::DEAD | hop_flag::LINKDOWN);
}

#[cfg(test)]
mod tests {
    use table::row::link::{flag, linkdown};
    use table::{Change, NextHops, Writer};

    use super::*;

    /// The kernel shows a hop as dead where its link has no carrier and that
    /// counts; the link says so later.
    #[test]
    fn a_hop_is_not_dead_because_its_link_will_have_no_carrier() {
        let mut writer = Writer::default();
        for (index, ignores) in [(1, linkdown::V6), (2, 0)] {
            let link = Link {
                index,
                name: format!("v{index}").into(),
                flags: flag::UP | flag::LOWER_UP,
                ignores_linkdown: ignores,
                ..Link::default()
            };
            writer.apply(Change::PutLink(link)).unwrap();
        }
        let told = |link, flags| {
            let hop = NextHop {
                link,
                flags,
                ..NextHop::default()
            };
            let mut route = RouteBody {
                next_hops: NextHops::One(hop),
                ..RouteBody::default()
            };
            let links = &writer.tables().links;
            body(
                &mut route,
                Over {
                    family: AF_INET6,
                    links,
                },
            );
            route.next_hops.as_slice()[0].flags
        };
        let both = hop_flag::DEAD | hop_flag::LINKDOWN;
        assert_eq!(told(1, both), 0);
        assert_eq!(told(1, hop_flag::DEAD), hop_flag::DEAD);
        assert_eq!(told(2, both), hop_flag::DEAD);
    }
}
