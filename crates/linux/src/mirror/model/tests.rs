//! What this host's kernel may lack (VRF), does no more (Linux 6.1) or not when
//! it is asked to, by announcements made by hand.

use table::row::link::flag;
use table::row::route::scope;

use super::*;

const RED: u32 = 2;
const PORT: u32 = 3;

fn link(index: u32, flags: u32, master: Option<u32>) -> Announcement {
    let link = Link {
        index,
        name: format!("e{index}").into(),
        flags,
        master,
        vrf_table: (index == RED).then_some(10),
        ..Link::default()
    };
    new(Item::Link(link))
}

fn new(item: Item) -> Announcement {
    Announcement {
        operation: Operation::New,
        flags: 0,
        is_requested: false,
        item,
    }
}

fn own_route(link: u32) -> Announcement {
    let body = RouteBody {
        kind: kind::LOCAL,
        protocol: protocol::KERNEL,
        scope: scope::HOST,
        next_hops: NextHops::One(NextHop {
            link,
            weight: 1,
            ..NextHop::default()
        }),
        ..RouteBody::default()
    };
    new(Item::Route(Route {
        table: table_id::LOCAL,
        prefix: "10.0.0.1/32".parse().unwrap(),
        tos: 0,
        metric: 0,
        body,
    }))
}

/// Of a link that is down, whose VRF does not take it down and up again.
#[test]
fn a_link_that_joins_a_vrf_or_leaves_it_loses_its_v4_routes() {
    for (before, after) in [(None, Some(RED)), (Some(RED), None)] {
        let mut model = Model::default();
        let events = [
            link(RED, flag::UP, None),
            link(PORT, flag::UP, before),
            own_route(PORT),
            link(PORT, 0, before),
        ];
        for event in events {
            model.event(event).unwrap();
        }
        assert_eq!(model.tables().routes.len(), 1, "of host scope");
        model.event(link(PORT, 0, after)).unwrap();
        assert_eq!(model.tables().routes.len(), 0, "{after:?}");
    }
}

/// A link without a carrier, of which the kernel may have looked at that.
fn without_carrier(mtu: u32) -> Announcement {
    let link = Link {
        index: PORT,
        name: "e3".into(),
        flags: flag::UP,
        mtu,
        ..Link::default()
    };
    new(Item::Link(link))
}

/// An IPv4 route by an IPv6 gateway, as the kernel tells it that has not
/// marked its hop.
fn by_v6_gateway() -> Route {
    let body = RouteBody {
        kind: kind::UNICAST,
        next_hops: NextHops::One(NextHop {
            link: PORT,
            gateway: Some("2001:db8::1".parse().unwrap()),
            weight: 1,
            ..NextHop::default()
        }),
        ..RouteBody::default()
    };
    Route {
        table: table_id::MAIN,
        prefix: "192.0.2.0/24".parse().unwrap(),
        tos: 0,
        metric: 0,
        body,
    }
}

/// An event that changes nothing, as the row has it that was listed: either
/// the listing was quicker, and what changed is another thing, or the kernel
/// has looked at the carrier. Who had the rows before can tell.
#[test]
fn an_event_that_a_listing_overtook_is_no_look_at_a_carrier() {
    for (mtu, is_marked) in [(1_400, false), (1_500, true)] {
        let mut current = Model::default();
        current.event(without_carrier(1_500)).unwrap();
        current.event(new(Item::Route(by_v6_gateway()))).unwrap();
        current.note_looks();
        let mut fresh = current.beside(Writer::default());
        let Item::Link(link) = without_carrier(mtu).item else {
            unreachable!("it is a link");
        };
        fresh.dumped(Item::Link(link)).unwrap();
        fresh.dumped(Item::Route(by_v6_gateway())).unwrap();
        current.event(without_carrier(mtu)).unwrap();
        fresh.replay(current.take_looks());
        fresh.event(without_carrier(mtu)).unwrap();
        for model in [&current, &fresh] {
            let mut routes = model.tables().routes.iter_v4();
            let hop = routes.next().unwrap().body.next_hops.as_slice()[0].clone();
            let is_unmarked = hop.flags & hop_flag::UNMARKED != 0;
            assert_eq!(is_unmarked, !is_marked, "an MTU of {mtu}");
        }
    }
}

/// Linux 6.1 does not announce that a link uses no routes without a carrier.
#[test]
fn a_new_ipv6_route_tells_whether_its_link_uses_routes_without_a_carrier() {
    for (flags, ignores) in [(hop_flag::DEAD, true), (0, false)] {
        let mut model = Model::default();
        model.event(without_carrier(1_500)).unwrap();
        let mut route = by_v6_gateway();
        route.prefix = "2001:db8:1::/48".parse().unwrap();
        route.body.next_hops.as_mut_slice()[0].flags = flags;
        model.event(new(Item::Route(route))).unwrap();
        let tables = model.tables();
        let link = tables.links.get(PORT).unwrap();
        assert_eq!(link.ignores_linkdown(AF_INET6), ignores);
        // The hop is dead for that reason alone.
        let mut routes = tables.routes.iter_v6();
        let is_dead = |hop: &NextHop| hop.flags & hop_flag::DEAD != 0;
        assert!(!routes.any(|row| row.body.next_hops.as_slice().iter().any(is_dead)));
    }
}
