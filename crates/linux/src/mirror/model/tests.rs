//! What this host's kernel may lack (VRF), by announcements made by hand.

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
