//! Takes out of rows what changes without a change: what follows from a
//! link's state.

use ipnet::IpNet;
use table::row::route::hop_flag;
use table::{AF_INET, AF_INET6, Link, NextHop, Nexthop, RouteBody, Tables};

/// What the marks of a route's hops depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Over<'a> {
    /// The route's family.
    pub family: u8,
    /// The links that it may lead over, and their addresses.
    pub tables: &'a Tables,
}

impl<'a> Over<'a> {
    /// For a route to `prefix`.
    pub(crate) fn of(prefix: IpNet, tables: &'a Tables) -> Self {
        let family = match prefix {
            IpNet::V4(_) => AF_INET,
            IpNet::V6(_) => AF_INET6,
        };
        Self { family, tables }
    }

    /// Whether the kernel tells of a hop over a link whether it is dead by
    /// itself, and not because of the link's state.
    pub(crate) fn tells(self, link: u32) -> bool {
        let link = self.tables.links.get(link);
        link.is_some_and(|link| link.is_usable(self.family))
    }

    /// Whether a hop, as the kernel tells it, is dead for its link alone, or may
    /// be: without a carrier those are that are not used then. The link may
    /// tell of its carrier later.
    fn is_dead_by_link(self, hop: &NextHop) -> bool {
        let is_down = hop.flags & hop_flag::LINKDOWN != 0;
        let ignored = |link: &Link| link.ignores_linkdown(self.family) && self.is_in_use(link);
        let link = self.tables.links.get(hop.link);
        !self.tells(hop.link) || is_down && link.is_some_and(|link| ignored(link))
    }

    /// Whether a link is used, so that no hop over it is dead by itself. What
    /// is dead by itself has both marks as well (`fib_sync_down_dev`,
    /// `fib6_ifdown`).
    fn is_in_use(self, link: &Link) -> bool {
        if self.family != AF_INET {
            return link.is_ready_for_v6();
        }
        let mut addresses = self.tables.addresses.of_link(link.index);
        addresses.any(|row| row.local.is_ipv4())
    }

    /// Whether the kernel has not noticed of a hop by an IPv6 gateway, as it
    /// tells it, that its link has no carrier ([`hop_flag::UNMARKED`]). Of
    /// others it may only be late: `linkwatch` looks later.
    fn is_unmarked(self, hop: &NextHop) -> bool {
        let by_v6 = hop.gateway.is_some_and(|gateway| gateway.is_ipv6());
        let is_marked = hop.flags & (hop_flag::LINKDOWN | hop_flag::DEAD) != 0;
        let link = self.tables.links.get(hop.link).filter(|link| link.is_up());
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
    use table::row::link::{V6_MIN_MTU, flag, linkdown};
    use table::{Address, Change, NextHops, Writer};

    use super::*;

    /// The kernel shows a hop as dead where its link has no carrier and that
    /// counts; the link says so later. One that is dead by itself has the same
    /// marks, and its link no address, or no IPv6.
    #[test]
    fn a_hop_is_not_dead_because_its_link_will_have_no_carrier() {
        let mut writer = Writer::default();
        let both = linkdown::V4 | linkdown::V6;
        for (index, ignores, v6_disabled) in [(1, both, false), (2, 0, false), (3, both, true)] {
            let link = Link {
                index,
                name: format!("v{index}").into(),
                flags: flag::UP | flag::LOWER_UP,
                mtu: V6_MIN_MTU,
                ignores_linkdown: ignores,
                v6_disabled,
                ..Link::default()
            };
            writer.apply(Change::PutLink(link)).unwrap();
        }
        for index in [1, 2] {
            let address = Address::new(index, [10, 0, 0, 1].into(), 24);
            writer.apply(Change::PutAddress(address)).unwrap();
        }
        let told = |family, link, flags| {
            let hop = NextHop {
                link,
                flags,
                ..NextHop::default()
            };
            let mut route = RouteBody {
                next_hops: NextHops::One(hop),
                ..RouteBody::default()
            };
            let tables = writer.tables();
            body(&mut route, Over { family, tables });
            route.next_hops.as_slice()[0].flags
        };
        let both = hop_flag::DEAD | hop_flag::LINKDOWN;
        for family in [AF_INET, AF_INET6] {
            assert_eq!(told(family, 1, both), 0);
            assert_eq!(told(family, 1, hop_flag::DEAD), hop_flag::DEAD);
            assert_eq!(told(family, 2, both), hop_flag::DEAD);
            assert_eq!(told(family, 3, both), hop_flag::DEAD);
        }
    }
}
