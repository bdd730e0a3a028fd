//! The tables at one moment, as a fill looks at them: a namespace's, or a
//! namespace's with the routes of a feed or a file in the place of its own.
//!
//! A feed knows routes and next-hop objects. Links, neighbours, addresses and
//! rules stay the namespace's, and so do the routes that a kernel makes of
//! its addresses (`RTPROT_KERNEL`): without them nothing would be for the
//! router itself, nor for those beside it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use table::row::route::{kind, protocol, table_id};
use table::{
    AF_INET, AF_INET6, Generation, NextHop, Nexthop, RouteRef, Routes, Tables, longest_first,
};

use super::decide;

type Each<'a> = Box<dyn Iterator<Item = RouteRef<'a>> + 'a>;

/// The tables at one moment.
#[derive(Debug)]
pub struct Known {
    tables: Arc<Tables>,
    /// The namespace's tables, where those above have another's routes.
    own: Option<Arc<Tables>>,
    /// Of the namespace, and of the feed.
    generations: (Generation, Generation),
}

impl Known {
    /// A namespace's tables.
    pub fn new(tables: Arc<Tables>) -> Self {
        Self {
            generations: (tables.generation, Generation::default()),
            tables,
            own: None,
        }
    }

    /// The same with the routes of a feed.
    pub fn with_routes(tables: Arc<Tables>, feed: &Tables) -> Self {
        Self {
            tables: Arc::new(tables.with_routes_of(feed)),
            generations: (tables.generation, feed.generation),
            own: Some(tables),
        }
    }

    /// All routes of the namespace, where the tables have another's.
    fn own(&self) -> Option<&Routes> {
        self.own.as_ref().map(|tables| &tables.routes)
    }

    /// Which moment it is of the namespace, and of the feed.
    pub fn generations(&self) -> (Generation, Generation) {
        self.generations
    }

    /// Links, neighbours, addresses, rules, next-hop objects. Routes are to
    /// be taken from the methods here.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The routes of a table that cover a prefix, the longest first.
    pub fn covering(&self, table: u32, prefix: IpNet) -> Each<'_> {
        let routes = self.tables.routes.covering(table, prefix);
        match self.own() {
            None => routes,
            Some(own) => longest_first(own.covering(table, prefix).filter(is_own), routes),
        }
    }

    /// The same of two tables, as if they were one.
    pub fn covering_in_both(&self, [first, second]: [u32; 2], prefix: IpNet) -> Each<'_> {
        longest_first(self.covering(first, prefix), self.covering(second, prefix))
    }

    /// The routes of a table inside a prefix, in no order.
    pub fn within(&self, table: u32, prefix: IpNet) -> Each<'_> {
        let own = self
            .own()
            .into_iter()
            .flat_map(move |own| own.within(table, prefix));
        Box::new(
            own.filter(is_own)
                .chain(self.tables.routes.within(table, prefix)),
        )
    }

    /// Whether a table has a route of exactly this prefix.
    pub fn has(&self, table: u32, prefix: IpNet) -> bool {
        let mut own = self
            .own()
            .into_iter()
            .flat_map(|own| own.exact(table, prefix));
        own.any(|route| is_own(&route)) || self.tables.routes.exact(table, prefix).next().is_some()
    }

    /// All routes of a family in a table, in the order of prefixes.
    pub fn all(&self, table: u32, family: u8) -> Each<'_> {
        let routes = of_family(&self.tables.routes, table, family);
        match self.own() {
            None => routes,
            Some(own) => {
                let place = |route: &RouteRef<'_>| {
                    let prefix = route.prefix;
                    (prefix.network(), prefix.prefix_len())
                };
                let mut own = of_family(own, table, family).filter(is_own).peekable();
                let mut routes = routes.peekable();
                Box::new(std::iter::from_fn(move || {
                    match (own.peek().map(place), routes.peek().map(place)) {
                        (Some(first), Some(second)) if first > second => routes.next(),
                        (None, _) => routes.next(),
                        _ => own.next(),
                    }
                }))
            }
        }
    }

    /// The prefixes of the feed's own routes of a family in a table.
    pub fn of_feed(&self, table: u32, family: u8) -> impl Iterator<Item = IpNet> {
        of_family(&self.tables.routes, table, family).map(|route| route.prefix)
    }

    /// The routes over a link.
    pub fn over_link(&self, link: u32) -> Each<'_> {
        let own = self
            .own()
            .into_iter()
            .flat_map(move |own| own.over_link(link));
        Box::new(own.filter(is_own).chain(self.tables.routes.over_link(link)))
    }

    /// The namespace's own tables, whosever routes packets go by.
    pub fn namespace(&self) -> &Tables {
        self.own.as_ref().unwrap_or(&self.tables)
    }

    /// Whether a next hop is through the host itself, or was
    /// ([`Tables::is_through_host`]).
    pub fn is_through_host(&self, hop: &NextHop) -> bool {
        self.namespace().is_through_host(hop)
    }

    /// Whether an IPv4 gateway is the host itself now.
    pub fn is_host(&self, gateway: Ipv4Addr) -> bool {
        let gateway = Some(gateway.into());
        self.is_through_host(&NextHop {
            gateway,
            ..NextHop::default()
        })
    }

    /// Whether a default route of IPv4 is local, in the tables that say what the
    /// host itself is.
    pub fn has_local_default(&self) -> bool {
        let all = IpNet::V4(Ipv4Net::default());
        let tables = [table_id::LOCAL, table_id::MAIN].into_iter();
        let mut defaults = tables.flat_map(|table| self.namespace().routes.exact(table, all));
        defaults.any(|route| route.body.kind == kind::LOCAL)
    }

    /// The routes by a gateway, whether they name it or a next-hop object does.
    /// O(next-hop objects), and of the routes.
    pub fn via(&self, gateway: IpAddr) -> Each<'_> {
        let of_own = self.own().into_iter().flat_map(move |own| own.via(gateway));
        let routes = &self.tables.routes;
        let objects = self.objects_via(gateway).flat_map(move |object| {
            let groups = self.tables.nexthops.groups_with(object.id);
            let ids = groups.map(|group| group.id).chain([object.id]);
            ids.flat_map(move |id| routes.of_nexthop(id))
        });
        Box::new(
            of_own
                .filter(is_own)
                .chain(routes.via(gateway))
                .chain(objects),
        )
    }

    /// Whether any route or next-hop object has a gateway.
    pub fn has_gateway(&self, gateway: IpAddr) -> bool {
        let mut of_own = self.own().into_iter().flat_map(|own| own.via(gateway));
        of_own.next().is_some()
            || self.tables.routes.via(gateway).next().is_some()
            || self.objects_via(gateway).next().is_some()
    }

    fn objects_via(&self, gateway: IpAddr) -> impl Iterator<Item = &Arc<Nexthop>> {
        let objects = self.tables.nexthops.iter();
        objects.filter(move |object| object.gateway == Some(gateway))
    }

    /// The next hop by which packets get to the gateway of one that names no
    /// link: by the longest match in the namespace's own main table that has
    /// a next hop which can be used. `None` where there is none, or the match
    /// refuses, or both ends of the way put packets into a tunnel.
    pub fn toward(&self, gateway: IpAddr, hop: &NextHop) -> Option<NextHop> {
        let tables = self.namespace();
        let family = family_of(gateway);
        let routes = tables.routes.matching(table_id::MAIN, gateway);
        for route in routes.filter(decide::counts) {
            if route.body.kind != kind::UNICAST {
                return None;
            }
            let mut ways = tables.nexthops.hops_of(route.body)?;
            ways.retain(|way| way.link != 0 && tables.is_usable(way, family));
            let Some(way) = ways.into_iter().next() else {
                continue;
            };
            if way.encap.is_some() && hop.encap.is_some() {
                return None;
            }
            return Some(NextHop {
                gateway: way.gateway.or(Some(gateway)),
                weight: hop.weight,
                encap: way.encap.or_else(|| hop.encap.clone()),
                ..way
            });
        }
        None
    }
}

fn family_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => AF_INET,
        IpAddr::V6(_) => AF_INET6,
    }
}

/// Whether the kernel made a route of one of its addresses: no such route
/// has a next-hop object.
fn is_own(route: &RouteRef<'_>) -> bool {
    route.body.protocol == protocol::KERNEL && route.body.nexthop_id.is_none()
}

fn of_family(routes: &Routes, table: u32, family: u8) -> Each<'_> {
    let first = match family {
        AF_INET => IpNet::V4(Ipv4Net::default()),
        _ => IpNet::V6(Ipv6Net::default()),
    };
    routes.from(table, first)
}
