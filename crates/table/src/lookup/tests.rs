//! What this host's kernel may lack (VRF), made by hand. The rest is
//! compared with the kernel in `crates/view/tests/route_get.rs`.

use super::*;
use crate::row::attributes::RawAttributes;
use crate::row::route::{NextHops, Route, RouteBody, protocol};
use crate::{Address, Change, Limits, Placement, Writer};

fn link(index: u32, name: &str, master: Option<u32>, vrf_table: Option<u32>) -> Change {
    Change::PutLink(Link {
        index,
        name: name.into(),
        flags: link::flag::UP | if index == 1 { link::flag::LOOPBACK } else { 0 },
        master,
        vrf_table,
        ..Link::default()
    })
}

fn route(table: u32, prefix: &str, of: u8, over: u32) -> Change {
    let body = RouteBody {
        kind: of,
        protocol: protocol::STATIC,
        scope: if of == kind::LOCAL {
            scope::HOST
        } else {
            scope::LINK
        },
        flags: 0,
        preferred_source: None,
        source: None,
        nexthop_id: None,
        next_hops: NextHops::One(NextHop {
            link: over,
            weight: 1,
            ..NextHop::default()
        }),
        metrics: None,
        preference: None,
        error: 0,
        expires_at_millis: None,
        rest: RawAttributes::default(),
        path: Default::default(),
    };
    let route = Route {
        table,
        prefix: prefix.parse().unwrap(),
        tos: 0,
        metric: 0,
        body,
    };
    Change::PutRoute(route, Placement::Last)
}

fn rule(priority: u32, table: u32, l3mdev: bool) -> Change {
    Change::PutRule(Rule {
        family: AF_INET,
        priority,
        table,
        action: action::TO_TABLE,
        l3mdev,
        suppress_prefix_len: Some(u32::MAX),
        suppress_group: Some(u32::MAX),
        ..Rule::default()
    })
}

fn address(link: u32, local: &str) -> Change {
    Change::PutAddress(Address::new(link, local.parse().unwrap(), 24))
}

fn tables() -> Tables {
    let mut writer = Writer::new(Limits::default());
    let changes = [
        link(1, "lo", None, None),
        link(2, "red", None, Some(10)),
        link(3, "em1", Some(2), None),
        link(4, "em2", None, None),
        rule(0, 255, false),
        rule(1000, 0, true),
        rule(32766, 254, false),
        route(10, "10.0.0.0/24", kind::UNICAST, 3),
        route(10, "10.0.0.1/32", kind::LOCAL, 3),
        route(254, "10.0.0.0/8", kind::UNICAST, 4),
        address(3, "10.0.0.1"),
        address(4, "10.9.0.1"),
    ];
    writer.commit(changes).unwrap();
    writer.tables().clone()
}

fn towards(oif: Option<u32>, iif: Option<u32>, to: [u8; 4]) -> Result<(u8, u32, u32), NoRoute> {
    let tables = tables();
    let packet = Packet {
        oif,
        iif,
        ..Packet::to(to.into())
    };
    let decision = tables.route_of(&packet)?;
    Ok((decision.kind, decision.table, decision.hops[0].link))
}

#[test]
fn a_packet_in_a_vrf_is_looked_up_in_the_vrf_s_table() {
    assert_eq!(
        towards(None, None, [10, 0, 0, 7]),
        Ok((kind::UNICAST, 254, 4))
    );
    // Named by the VRF, by a link in it, or come in by one.
    assert_eq!(
        towards(Some(2), None, [10, 0, 0, 7]),
        Ok((kind::UNICAST, 10, 3))
    );
    assert_eq!(
        towards(Some(3), None, [10, 0, 0, 7]),
        Ok((kind::UNICAST, 10, 3))
    );
    assert_eq!(
        towards(None, Some(3), [10, 0, 0, 7]),
        Ok((kind::UNICAST, 10, 3))
    );
    // The VRF's own address is the VRF's, not the loopback's.
    assert_eq!(
        towards(Some(2), None, [10, 0, 0, 1]),
        Ok((kind::LOCAL, 10, 2))
    );
    // What the VRF does not know, the tables behind it may.
    assert_eq!(
        towards(Some(2), None, [10, 5, 0, 1]),
        Ok((kind::UNICAST, 254, 4))
    );
    assert_eq!(
        towards(Some(2), None, [11, 0, 0, 1]),
        Err(NoRoute::Unreachable)
    );
    assert_eq!(
        towards(Some(9), None, [11, 0, 0, 1]),
        Err(NoRoute::NoSuchLink)
    );
}

#[test]
fn the_source_is_of_the_link_that_is_taken() {
    let tables = tables();
    let source = |packet: Packet| {
        tables
            .route_of(&packet)
            .unwrap()
            .source
            .unwrap()
            .to_string()
    };
    let packet = Packet::to([10, 0, 0, 7].into());
    assert_eq!(source(packet), "10.9.0.1");
    let inside = Packet {
        oif: Some(2),
        ..packet
    };
    assert_eq!(source(inside), "10.0.0.1");
}
