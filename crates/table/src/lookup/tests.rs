//! What this host's kernel may lack (VRF), made by hand. The rest is
//! compared with the kernel in `crates/view/tests/route_get.rs`.

use super::*;
use crate::row::address::flag as address_flag;
use crate::row::attributes::RawAttributes;
use crate::row::neighbour::state;
use crate::row::route::{NextHops, Route, RouteBody, protocol};
use crate::{
    Address, Change, Limits, LinkLayerAddress, Neighbour, Nexthop, Placement, Routing, Writer,
};

fn link(index: u32, name: &str, master: Option<u32>, vrf_table: Option<u32>) -> Change {
    Change::PutLink(Link {
        index,
        name: name.into(),
        flags: link::flag::UP | if index == 1 { link::flag::LOOPBACK } else { 0 },
        forwards_v4: index == 3,
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

fn v6_rule_of_vrfs() -> Change {
    let Change::PutRule(row) = rule(1_000, 0, true) else {
        unreachable!()
    };
    let family = crate::AF_INET6;
    Change::PutRule(Rule { family, ..row })
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

/// As Linux 6.1 answers.
#[test]
fn packets_for_the_host_go_to_the_vrf_of_the_address_or_to_the_loopback() {
    let writer = written([
        link(1, "lo", None, None),
        link(2, "red", None, Some(77)),
        link(3, "em1", Some(2), None),
        link(4, "em2", None, None),
        address(3, "10.3.0.9"),
        rule(1_000, 0, true),
        v6_rule_of_vrfs(),
        route(255, "10.9.9.0/24", kind::LOCAL, 4),
        route(77, "10.9.8.0/24", kind::LOCAL, 3),
        route(255, "2001:db8:f::/64", kind::LOCAL, 4),
        route(77, "2001:db8:e::/64", kind::LOCAL, 3),
        route(77, "fe80::9/128", kind::LOCAL, 3),
        route(77, "fe80::2/128", kind::LOCAL, 2),
    ]);
    let (out, came) = ((Some(2), None), (None, Some(3)));
    for (to, (oif, iif), over) in [
        ("10.9.9.5", out, 1),
        ("10.9.8.5", out, 2),
        ("0.0.0.0", out, 1),
        ("2001:db8:f::5", out, 1),
        ("2001:db8:e::5", out, 2),
        ("fe80::9", (Some(3), None), 1),
        ("fe80::2", out, 2),
        ("10.9.9.5", came, 1),
        ("10.9.8.5", came, 2),
        ("224.0.0.1", came, 1),
        ("255.255.255.255", came, 1),
        ("2001:db8:f::5", came, 1),
        ("2001:db8:e::5", came, 2),
        ("fe80::9", came, 1),
    ] {
        let packet = Packet {
            oif,
            iif,
            ..Packet::to(to.parse().unwrap())
        };
        let decision = writer.tables().route_of(&packet).unwrap();
        assert_eq!(decision.hops[0].link, over, "{to} {oif:?} {iif:?}");
    }
}

#[test]
fn an_ipv6_answer_tells_the_source_of_the_route_s_link_also_where_it_leaves_a_vrf() {
    let writer = written([
        link(1, "lo", None, None),
        link(2, "red", None, Some(77)),
        link(3, "em1", Some(2), None),
        link(4, "em2", None, None),
        address(3, "2001:db8:3::9"),
        address(4, "2001:db8:1::5"),
        v6_rule_of_vrfs(),
        route(254, "2001:db8:1::/64", kind::UNICAST, 4),
    ]);
    let source = source_towards(&writer, "2001:db8:1::2", Some(2));
    assert_eq!(source.as_deref(), Some("2001:db8:1::5"));
}

#[test]
fn what_leaves_a_vrf_has_a_source_of_the_vrf_s() {
    let tables = tables();
    let source = |oif| {
        let packet = Packet {
            oif,
            ..Packet::to([10, 5, 0, 1].into())
        };
        tables.route_of(&packet).unwrap().source
    };
    assert_eq!(source(Some(2)), Some([10, 0, 0, 1].into()));
    assert_eq!(source(None), Some([10, 9, 0, 1].into()));
}

#[test]
fn by_an_object_the_source_is_open_where_its_scope_counts() {
    let mut writer = Writer::new(Limits::default());
    let mut of_link = Address::new(4, [10, 9, 0, 9].into(), 24);
    of_link.scope = scope::LINK;
    let mut by_object = route(254, "10.1.0.0/16", kind::UNICAST, 4);
    let mut plain = route(254, "10.2.0.0/16", kind::UNICAST, 4);
    for (change, object) in [(&mut by_object, Some(7)), (&mut plain, None)] {
        if let Change::PutRoute(route, _) = change {
            route.body.scope = scope::UNIVERSE;
            route.body.nexthop_id = object;
        }
    }
    let object = Nexthop {
        id: 7,
        link: Some(4),
        ..Nexthop::default()
    };
    let changes = [
        link(4, "em2", None, None),
        link(5, "em3", None, None),
        rule(0, 255, false),
        rule(32766, 254, false),
        Change::PutAddress(of_link),
        address(5, "10.8.0.1"),
        Change::PutNexthop(object),
        by_object,
        plain,
    ];
    writer.commit(changes).unwrap();
    let decided = |to: [u8; 4]| {
        let decision = writer.tables().route_of(&Packet::to(to.into())).unwrap();
        (decision.source, decision.open)
    };
    let of_route = Some([10, 8, 0, 1].into());
    assert_eq!(decided([10, 1, 0, 1]), (of_route, Some(Open::Source)));
    assert_eq!(decided([10, 2, 0, 1]), (of_route, None));
}

/// The object tells that its gateway was the host itself when it was made.
#[test]
fn by_an_object_of_host_scope_the_gateway_is_open() {
    let object = |id: u32, scope: u8| {
        Change::PutNexthop(Nexthop {
            id,
            scope,
            link: Some(4),
            gateway: Some([10, 3, 0, 3].into()),
            ..Nexthop::default()
        })
    };
    let by_object = |prefix: &str, id: u32, repeats: bool| {
        let Change::PutRoute(mut row, placement) = route(254, prefix, kind::UNICAST, 4) else {
            unreachable!()
        };
        row.body.nexthop_id = Some(id);
        row.body.next_hops = match repeats {
            true => NextHops::One(NextHop {
                link: 4,
                weight: 1,
                gateway: Some([10, 3, 0, 3].into()),
                ..NextHop::default()
            }),
            false => NextHops::None,
        };
        Change::PutRoute(row, placement)
    };
    let writer = written([
        link(4, "em2", None, None),
        object(7, scope::HOST),
        object(8, scope::LINK),
        by_object("10.1.0.0/16", 7, false),
        by_object("10.2.0.0/16", 7, true),
        by_object("10.3.0.0/16", 8, false),
        by_object("10.4.0.0/16", 8, true),
    ]);
    let open = |to: [u8; 4]| {
        let packet = Packet::to(to.into());
        writer.tables().route_of(&packet).unwrap().open
    };
    for (second, expected) in [(1, true), (2, true), (3, false), (4, false)] {
        let open = open([10, second, 0, 1]);
        assert_eq!(open == Some(Open::Scope), expected, "10.{second}: {open:?}");
    }
}

/// One that came in by a link that does not forward ends here, or nowhere.
#[test]
fn what_comes_in_is_for_the_host_where_the_link_does_not_forward() {
    assert_eq!(
        towards(None, Some(4), [10, 0, 0, 7]),
        Err(NoRoute::HostUnreachable)
    );
    let mut writer = Writer::new(Limits::default());
    let rows = [
        link(1, "lo", None, None),
        link(4, "em2", None, None),
        rule(0, 255, false),
        route(255, "10.9.0.1/32", kind::LOCAL, 4),
        address(4, "10.9.0.1"),
    ];
    writer.commit(rows).unwrap();
    let packet = Packet {
        iif: Some(4),
        ..Packet::to([10, 9, 0, 1].into())
    };
    let decision = writer.tables().route_of(&packet);
    assert_eq!(decision.map(|found| found.kind), Ok(kind::LOCAL));
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

/// Tables with these rows and the rules that each namespace begins with.
fn written(changes: impl IntoIterator<Item = Change>) -> Writer {
    let mut writer = Writer::new(Limits::default());
    let rules = [(0, 255), (32_766, 254)].map(|(priority, table)| {
        let Change::PutRule(row) = rule(priority, table, false) else {
            unreachable!()
        };
        let family = crate::AF_INET6;
        [
            Change::PutRule(row.clone()),
            Change::PutRule(Rule { family, ..row }),
        ]
    });
    let rules = rules.into_iter().flatten();
    let last = rule(32_767, 253, false);
    let rules = rules.chain([last]);
    writer.commit(rules.chain(changes)).unwrap();
    writer
}

fn source_towards(writer: &Writer, to: &str, oif: Option<u32>) -> Option<String> {
    let packet = Packet {
        oif,
        ..Packet::to(to.parse().unwrap())
    };
    let decision = writer.tables().route_of(&packet).unwrap();
    decision.source.map(|source| source.to_string())
}

#[test]
fn of_other_links_the_one_that_came_first_lends_its_address() {
    let mut writer = written([
        link(1, "lo", None, None),
        link(2, "em1", None, None),
        link(3, "em2", None, None),
        link(4, "bare", None, None),
        address(2, "10.0.0.1"),
        address(3, "10.0.1.1"),
        address(2, "2001:db8::1"),
        address(3, "2001:db8::2"),
        route(254, "2001:db8:9::/48", kind::UNICAST, 4),
    ]);
    let both = |writer: &Writer| {
        let v4 = source_towards(writer, "192.0.2.1", Some(4));
        (v4, source_towards(writer, "2001:db8:9::1", None))
    };
    let of = |v4: &str, v6: &str| (Some(v4.to_owned()), Some(v6.to_owned()));
    assert_eq!(both(&writer), of("10.0.0.1", "2001:db8::1"));
    // It leaves the namespace, and comes back with its index.
    writer.commit([Change::DeleteLink(2)]).unwrap();
    writer.commit([link(2, "em1", None, None)]).unwrap();
    assert_eq!(both(&writer), of("10.0.1.1", "2001:db8::2"));
    // A listing tells how it is.
    writer.order_links([1, 2, 4, 3].into_iter());
    assert_eq!(both(&writer), of("10.0.0.1", "2001:db8::1"));
    writer.order_links([3, 9, 3, 2].into_iter());
    // A change moves none.
    writer.commit([link(3, "named", None, None)]).unwrap();
    assert_eq!(both(&writer), of("10.0.1.1", "2001:db8::2"));
}

#[test]
fn a_vrf_is_in_its_own_domain() {
    let writer = written([
        link(1, "lo", None, None),
        link(2, "red", None, Some(10)),
        link(3, "em1", Some(2), None),
        link(4, "em2", None, None),
        address(2, "2001:db8::5"),
        address(4, "2001:db8:9::4"),
        address(2, "10.0.0.5"),
        address(4, "10.0.0.4"),
        route(254, "2001:db8:9::/48", kind::UNICAST, 3),
        route(254, "2001:db8:7::/48", kind::UNICAST, 2),
    ]);
    let source = |to| source_towards(&writer, to, None);
    assert_eq!(source("2001:db8:9::1").as_deref(), Some("2001:db8::5"));
    assert_eq!(source("2001:db8:7::1").as_deref(), Some("2001:db8::5"));
}

#[test]
fn whether_a_home_address_counts_only_the_kernel_knows() {
    let home = |flags| {
        let mut row = Address::new(2, "2001:db8:7::7".parse().unwrap(), 64);
        row.flags = flags;
        Change::PutAddress(row)
    };
    let mut writer = written([
        link(1, "lo", None, None),
        link(2, "em1", None, None),
        Change::PutAddress(Address::new(2, "2001:db8:9::1".parse().unwrap(), 64)),
        home(address_flag::HOMEADDRESS),
        route(254, "2001:db8:9::/48", kind::UNICAST, 2),
    ]);
    let open = |writer: &Writer| {
        let packet = Packet::to("2001:db8:9::9".parse().unwrap());
        writer.tables().route_of(&packet).unwrap().open
    };
    assert_eq!(open(&writer), Some(Open::Source));
    writer.commit([home(0)]).unwrap();
    assert_eq!(open(&writer), None);
}

fn v6_route(prefix: &str, metric: u32, gateway: &str, over: u32, preference: u8) -> Change {
    let Change::PutRoute(mut row, placement) = route(254, prefix, kind::UNICAST, over) else {
        unreachable!()
    };
    row.metric = metric;
    row.body.preference = Some(preference);
    row.body.next_hops = NextHops::One(NextHop {
        link: over,
        gateway: Some(gateway.parse().unwrap()),
        weight: 1,
        ..NextHop::default()
    });
    Change::PutRoute(row, placement)
}

fn neighbour(link: u32, address: &str, state: u16) -> Change {
    Change::PutNeighbour(Neighbour {
        link,
        address: address.parse().unwrap(),
        proxy: false,
        lladdr: LinkLayerAddress::default(),
        state,
        flags: 0,
        protocol: 0,
        kind: 0,
    })
}

#[test]
fn an_ipv6_gateway_that_failed_is_passed_over_but_by_a_router() {
    let mut writer = written([
        link(1, "lo", None, None),
        link(2, "em1", None, None),
        v6_route("2001:db8::/32", 1024, "fe80::1", 2, 0),
        v6_route("2001:db8:9::/48", 1024, "fe80::2", 2, 0),
    ]);
    let gateway = |writer: &Writer| {
        let packet = Packet::to("2001:db8:9::9".parse().unwrap());
        let decision = writer.tables().route_of(&packet).unwrap();
        decision.hops[0].gateway.unwrap().to_string()
    };
    assert_eq!(gateway(&writer), "fe80::2");
    writer
        .commit([neighbour(2, "fe80::2", state::FAILED)])
        .unwrap();
    assert_eq!(gateway(&writer), "fe80::1");
    // Where all failed, that counts for nothing.
    writer
        .commit([neighbour(2, "fe80::1", state::FAILED)])
        .unwrap();
    assert_eq!(gateway(&writer), "fe80::2");
    writer
        .commit([neighbour(2, "fe80::1", state::STALE)])
        .unwrap();
    writer.set_routing(Routing {
        forwards_v6: true,
        ..Routing::default()
    });
    assert_eq!(gateway(&writer), "fe80::2");
}

/// `find_rr_leaf`: the lowest metric alone, then all others together.
#[test]
fn behind_the_lowest_metric_the_preference_counts_more_than_the_metric() {
    let writer = written([
        link(1, "lo", None, None),
        link(2, "em1", None, None),
        link(3, "em2", None, None),
        v6_route("2001:db8::/32", 1, "fe80::1", 3, 0),
        v6_route("2001:db8::/32", 5, "fe80::5", 2, 0),
        v6_route("2001:db8::/32", 9, "fe80::9", 2, 1),
    ]);
    let via = |oif| {
        let packet = Packet {
            oif,
            ..Packet::to("2001:db8::7".parse().unwrap())
        };
        let decision = writer.tables().route_of(&packet).unwrap();
        decision.hops[0].gateway.unwrap().to_string()
    };
    assert_eq!(via(None), "fe80::1");
    assert_eq!(via(Some(2)), "fe80::9");
}

#[test]
fn tables_that_a_rule_has_parted_stay_parted() {
    let own = || Rule {
        family: AF_INET,
        priority: 5,
        action: action::NOP,
        ..Rule::default()
    };
    let mut writer = written([link(1, "lo", None, None)]);
    assert!(writer.tables().has_merged_tables());
    writer.commit([Change::PutRule(own())]).unwrap();
    assert!(!writer.tables().has_merged_tables());
    writer.commit([Change::DeleteRule(own())]).unwrap();
    assert!(!writer.tables().has_merged_tables());
}

/// `nexthop_get_nhc_lookup` and the `miss` of `fib_table_lookup`.
#[test]
fn an_object_that_leads_nowhere_ends_its_leaf() {
    let by_object = |prefix: &str, metric| {
        let Change::PutRoute(mut row, placement) = route(254, prefix, kind::UNICAST, 2) else {
            unreachable!()
        };
        row.metric = metric;
        row.body.nexthop_id = Some(7);
        Change::PutRoute(row, placement)
    };
    let object = Nexthop {
        id: 7,
        family: AF_INET,
        link: Some(2),
        ..Nexthop::default()
    };
    let writer = written([
        link(1, "lo", None, None),
        link(2, "em1", None, None),
        link(3, "em2", None, None),
        Change::PutNexthop(object),
        by_object("10.0.0.0/24", 0),
        route(254, "10.0.0.0/16", kind::UNICAST, 3),
        route(254, "0.0.0.0/0", kind::UNICAST, 3),
        by_object("10.1.1.0/24", 0),
        route(254, "10.1.0.0/16", kind::UNICAST, 3),
    ]);
    let prefix = |to: [u8; 4]| {
        let packet = Packet {
            oif: Some(3),
            ..Packet::to(to.into())
        };
        let decision = writer.tables().route_of(&packet).unwrap();
        decision.route.unwrap().prefix.to_string()
    };
    assert_eq!(prefix([10, 1, 1, 1]), "10.1.0.0/16");
    assert_eq!(prefix([10, 0, 0, 1]), "0.0.0.0/0");
}

#[test]
fn which_member_of_a_group_only_the_kernel_knows() {
    let hop = |link| NextHop {
        link,
        weight: 1,
        ..NextHop::default()
    };
    let Change::PutRoute(mut row, placement) = route(254, "10.0.0.0/8", kind::UNICAST, 2) else {
        unreachable!()
    };
    row.body.next_hops = NextHops::Many(vec![hop(2), hop(3)].into());
    let writer = written([
        link(1, "lo", None, None),
        link(2, "em1", None, None),
        link(3, "em2", None, None),
        Change::PutRoute(row, placement),
    ]);
    let asked = |oif| {
        let packet = Packet {
            oif,
            ..Packet::to([10, 0, 0, 1].into())
        };
        let decision = writer.tables().route_of(&packet).unwrap();
        (decision.hops.len(), decision.open)
    };
    assert_eq!(asked(None), (2, Some(Open::Member)));
    assert_eq!(asked(Some(3)), (1, None));
}

/// `fib6_node_lookup_1` and `fib6_backtrack`.
#[test]
fn routes_for_some_sources_hide_those_for_all() {
    let Change::PutRoute(mut some, placement) = route(254, "2001:db8:9::/48", kind::UNICAST, 2)
    else {
        unreachable!()
    };
    some.body.source = Some("2001:db8:1::/64".parse().unwrap());
    let mut writer = written([
        link(1, "lo", None, None),
        link(2, "em1", None, None),
        link(3, "em2", None, None),
        Change::PutRoute(some, placement),
        route(254, "2001:db8:9::/48", kind::UNICAST, 3),
    ]);
    let out = |writer: &Writer, from: &str| {
        let packet = Packet {
            source: from.parse().ok(),
            ..Packet::to("2001:db8:9::9".parse().unwrap())
        };
        let decision = writer.tables().route_of(&packet);
        decision.map(|decision| decision.hops[0].link)
    };
    assert_eq!(out(&writer, "2001:db8:1::1"), Ok(2));
    assert_eq!(out(&writer, "2001:db8:2::1"), Err(NoRoute::Unreachable));
    assert_eq!(out(&writer, ""), Err(NoRoute::Unreachable));
    writer
        .commit([route(254, "2001:db8::/32", kind::UNICAST, 2)])
        .unwrap();
    assert_eq!(out(&writer, "2001:db8:2::1"), Ok(2));
}
