//! What workers would do, held against `table`'s own decision.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use lab::Random;
use memory::quiescent::Section;
use table::row::neighbour::state;
use table::row::route::{kind, table_id};
use table::{Change, NextHop, Nexthop, NoRoute, Packet, Placement};

use super::*;
use crate::testing::*;

const LINKS: std::ops::Range<u32> = 2..7;
/// The last of them is no port.
const PORTS: u32 = 4;

/// What a packet meets, in words that both sides know.
#[derive(Debug, PartialEq, Eq)]
enum Met {
    Nothing,
    Host,
    Blackhole,
    Unreachable,
    Prohibit,
    /// Ports, and the Ethernet addresses where they are known.
    Out(BTreeSet<(u16, Option<[u8; 6]>)>),
}

fn expected(router: &Router, to: IpAddr) -> Met {
    let tables = router.writer.tables();
    let packet = Packet {
        iif: Some(2),
        ..Packet::to(to)
    };
    let decision = match tables.route_of(&packet) {
        Ok(decision) => decision,
        Err(NoRoute::HostUnreachable) => return Met::Unreachable,
        Err(NoRoute::Prohibited) => return Met::Prohibit,
        Err(NoRoute::Blackhole) => return Met::Blackhole,
        Err(_) => return Met::Nothing,
    };
    // Where the kernel alone knows what a gateway is, it forwards.
    let hops = decision
        .route
        .map(|route| tables.nexthops.hops_of(route.body));
    let mut hops = hops.flatten().unwrap_or_default();
    hops.retain(|hop| tables.is_usable(hop, table::AF_INET));
    if decision.kind != kind::UNICAST || hops.iter().any(|hop| tables.is_through_host(hop)) {
        return Met::Host;
    }
    let ports = router.fill.ports();
    let ways = decision.hops.iter().map(|hop| {
        let port = ports.of_link(hop.link)?;
        let key = table::NeighbourKey {
            link: hop.link,
            address: hop.gateway.unwrap_or(to),
            proxy: false,
        };
        let resolved = state::REACHABLE | state::STALE | state::PERMANENT;
        let row = tables.neighbours.get(&key);
        let row = row.filter(|row| row.state & resolved != 0);
        Some((
            port,
            row.and_then(|row| row.lladdr.octets().try_into().ok()),
        ))
    });
    let ways: Option<BTreeSet<_>> = ways.collect();
    ways.map_or(Met::Host, Met::Out)
}

/// The next hop that a packet meets; of a group each of its members.
fn members(view: &VrfFibs, table: &Table, section: &Section<'_>, to: IpAddr) -> BTreeSet<u16> {
    let mut found = [0];
    match to {
        IpAddr::V4(to) => view.v4.lookup(section, &[to.to_bits()], &mut found),
        IpAddr::V6(to) => view.v6.lookup(section, &[to.to_bits()], &mut found),
    }
    let way = table.next_hop(section, found[0]);
    match way.kind() {
        Kind::Group => (0..=u8::MAX)
            .map(|bucket| table.member(section, way.group(), u32::from(bucket) << 24))
            .collect(),
        _ => BTreeSet::from(found),
    }
}

fn met(router: &mut Router, to: IpAddr) -> Met {
    let view = router.fill.views().swap_remove(0);
    let table = router.fill.table();
    let section = router.reader.enter();
    let members = members(&view, &table, &section, to);
    let mut out = BTreeSet::new();
    for member in members {
        let mut way = table.next_hop(&section, member);
        if way.kind() == Kind::OnLink {
            let key = Key::new(way.port(), to);
            let found = table.neighbour(&section, key, table.place(key));
            way = found.unwrap_or(Adjacency::of_port(Kind::Unresolved, way.port(), 1_500));
        }
        match way.kind() {
            Kind::None => return Met::Nothing,
            Kind::Host => return Met::Host,
            Kind::Blackhole => return Met::Blackhole,
            Kind::Unreachable => return Met::Unreachable,
            Kind::Prohibit => return Met::Prohibit,
            Kind::Rewrite => {
                let [a, b, c, d, e, f, source @ ..] = way.addresses();
                let link = u32::from(way.port()) + LINKS.start;
                assert_eq!(source, mac(1, link));
                out.insert((way.port(), Some([a, b, c, d, e, f])));
            }
            Kind::Unresolved => {
                out.insert((way.port(), None));
            }
            other => panic!("{other:?} of {to}"),
        }
    }
    Met::Out(out)
}

/// Addresses of a small space, so that prefixes meet.
fn some_address(random: &mut Random, is_v6: bool) -> IpAddr {
    let mut bits = 0_u32;
    for shift in [28, 24, 20, 16, 8, 0] {
        bits |= (random.below(3) as u32) << shift;
    }
    match is_v6 {
        false => Ipv4Addr::from_bits(0x0a00_0000 ^ bits).into(),
        true => Ipv6Addr::from_bits(u128::from(0x2001_0000 ^ bits) << 96 | u128::from(bits)).into(),
    }
}

fn some_prefix(random: &mut Random, is_v6: bool) -> IpNet {
    let lens: &[u8] = match is_v6 {
        false => &[0, 4, 8, 9, 12, 16, 20, 24, 30, 32],
        true => &[0, 8, 16, 32, 48, 64, 96, 127, 128],
    };
    let len = lens[random.below(lens.len())];
    let address = some_address(random, is_v6);
    IpNet::new(address, len).unwrap().trunc()
}

use ipnet::IpNet;

fn some_hops(random: &mut Random, is_v6: bool) -> Vec<NextHop> {
    let count = [1, 1, 1, 2, 3][random.below(5)];
    let mut hops: Vec<NextHop> = (0..count)
        .map(|_| {
            let gateway = some_address(random, is_v6);
            NextHop {
                link: LINKS.start + random.below(LINKS.len()) as u32,
                gateway: (random.below(3) > 0).then_some(gateway),
                weight: 1 + random.below(4) as u16,
                ..NextHop::default()
            }
        })
        .collect();
    hops.dedup_by_key(|hop| (hop.link, hop.gateway));
    hops
}

fn some_change(random: &mut Random, router: &Router) -> Vec<Change> {
    let is_v6 = random.below(3) == 0;
    let link_of = |random: &mut Random| LINKS.start + random.below(LINKS.len()) as u32;
    match random.below(20) {
        0..=8 => {
            let tables = [
                table_id::MAIN,
                table_id::MAIN,
                table_id::LOCAL,
                table_id::DEFAULT,
            ];
            let table = tables[random.below(4)];
            let kinds = [
                kind::UNICAST,
                kind::UNICAST,
                kind::UNICAST,
                kind::UNICAST,
                kind::LOCAL,
                kind::BROADCAST,
                kind::BLACKHOLE,
                kind::UNREACHABLE,
                kind::PROHIBIT,
                kind::THROW,
            ];
            let of = kinds[random.below(kinds.len())];
            let hops = match of {
                kind::UNICAST => some_hops(random, is_v6),
                kind::LOCAL | kind::BROADCAST => vec![hop(link_of(random), None, 1)],
                _ => Vec::new(),
            };
            let mut body = body(of, hops);
            if of == kind::UNICAST && random.below(6) == 0 {
                body.nexthop_id = Some(1 + random.below(4) as u32);
                body.next_hops = table::NextHops::None;
            }
            let mut route = route(table, "10.0.0.0/8", body);
            route.prefix = some_prefix(random, is_v6);
            route.metric = random.below(3) as u32;
            vec![Change::PutRoute(route, Placement::Last)]
        }
        9..=13 => {
            let routes = &router.writer.tables().routes;
            let at = random.below(routes.len().max(1));
            let route = routes.iter().nth(at).map(|route| route.to_shared());
            route.map(Change::DeleteRoute).into_iter().collect()
        }
        14 => {
            let link_index = link_of(random);
            vec![link(1, link_index, random.below(3) > 0, 1_500)]
        }
        // It may be a gateway.
        16 if !is_v6 => {
            let own = table::Address::new(link_of(random), some_address(random, false), 32);
            match random.below(2) {
                0 => vec![Change::DeleteAddress(own.key())],
                _ => vec![Change::PutAddress(own)],
            }
        }
        15 => {
            let id = 1 + random.below(4) as u32;
            let hop = some_hops(random, false).swap_remove(0);
            let mut nexthop = Nexthop {
                id,
                link: Some(hop.link),
                gateway: hop.gateway,
                ..Nexthop::default()
            };
            match random.below(4) {
                0 => (nexthop.blackhole, nexthop.link, nexthop.gateway) = (true, None, None),
                1 => return vec![Change::DeleteNexthop(id)],
                _ => {}
            }
            vec![Change::PutNexthop(nexthop)]
        }
        _ => {
            let (link, address) = (link_of(random), some_address(random, is_v6));
            let states = [
                state::REACHABLE,
                state::STALE,
                state::FAILED,
                state::INCOMPLETE,
                state::PERMANENT,
            ];
            let state = states[random.below(states.len())];
            let lladdr = [2, 7, 0, 0, 0, random.below(200) as u8];
            if random.below(4) == 0 {
                let key = table::NeighbourKey {
                    link,
                    address,
                    proxy: false,
                };
                return vec![Change::DeleteNeighbour(key)];
            }
            vec![neighbour(link, address, Some(lladdr), state)]
        }
    }
}

/// Where the kernel goes by more than prefix and metric, and the tables with
/// it, but the FIB does not (decision 048): an IPv4 route by an object that
/// leads nowhere ends its leaf of the trie (`fib_table_lookup`); of several IPv6
/// routes of a prefix those but the best are taken together, and a gateway
/// that has failed is passed over (`find_rr_leaf`).
fn goes_further(router: &Router, to: IpAddr) -> bool {
    let tables = router.writer.tables();
    let numbers: Vec<u32> = match to {
        IpAddr::V4(_) => tables.routes.tables_v4(0).collect(),
        IpAddr::V6(_) => tables.routes.tables_v6(0).collect(),
    };
    let covering = |table: &u32| tables.routes.matching(*table, to).collect::<Vec<_>>();
    let mut all = numbers.iter().map(covering);
    match to {
        IpAddr::V4(_) => all.any(|routes| routes.iter().any(|route| leads_nowhere(tables, route))),
        IpAddr::V6(_) => all.any(|routes| {
            let is_second = |pair: &[table::RouteRef<'_>]| pair[0].prefix == pair[1].prefix;
            routes.windows(2).any(is_second) || routes.iter().any(|route| has_failed(tables, route))
        }),
    }
}

fn leads_nowhere(tables: &Tables, route: &table::RouteRef<'_>) -> bool {
    let hops = tables.nexthops.hops_of(route.body).unwrap_or_default();
    let is_usable = |hop: &table::NextHop| tables.is_usable(hop, table::AF_INET);
    route.body.nexthop_id.is_some() && !hops.iter().any(is_usable)
}

fn has_failed(tables: &Tables, route: &table::RouteRef<'_>) -> bool {
    let hops = tables.nexthops.hops_of(route.body).unwrap_or_default();
    hops.iter().any(|hop| {
        let key = hop.gateway.map(|address| table::NeighbourKey {
            link: hop.link,
            address,
            proxy: false,
        });
        let found = key.and_then(|key| tables.neighbours.get(&key));
        found.is_some_and(|row| row.state == state::FAILED)
    })
}

fn churn(seed: u64, rounds: usize) {
    let mut random = Random::new(seed);
    let links: Vec<Change> = LINKS.map(|index| link(1, index, true, 1_500)).collect();
    let ports = LINKS
        .take(PORTS as usize)
        .map(|index| Attachment::ethernet(&format!("em{index}")))
        .collect();
    let mut router = Router::new(links, ports);
    for round in 0..rounds {
        let count = 1 + random.below(4);
        let changes: Vec<Change> = (0..count)
            .flat_map(|_| some_change(&mut random, &router))
            .collect();
        router.writer.commit(changes).unwrap();
        router.follow();
        for _ in 0..30 {
            let to = some_address(&mut random, round % 3 == 0);
            if to.is_multicast() || to.is_unspecified() {
                continue;
            }
            if goes_further(&router, to) {
                continue;
            }
            let (wanted, got) = (expected(&router, to), met(&mut router, to));
            assert_eq!(got, wanted, "seed {seed}, round {round}, to {to}");
        }
    }
    let filled = router.fill.filled();
    assert_eq!((filled.refused, filled.rebuilds), (0, 1));
    assert_eq!(filled.generation, router.writer.tables().generation);
    // A fill of its own finds the same, and as many.
    let mut anew = FibSync::new(
        router.writer.reader(),
        &router.fill.domain,
        router.fill.attachments.clone(),
        router.fill.settings,
    )
    .unwrap();
    let mut again = anew.filled();
    again.rebuilds = filled.rebuilds;
    assert_eq!(again, filled, "seed {seed}");
    std::mem::swap(&mut anew, &mut router.fill);
    for _ in 0..300 {
        let to = some_address(&mut random, false);
        if goes_further(&router, to) {
            continue;
        }
        let (wanted, got) = (expected(&router, to), met(&mut router, to));
        assert_eq!(got, wanted, "seed {seed}, anew, to {to}");
    }
}

#[test]
fn workers_decide_as_the_tables_do_under_churn() {
    for seed in 0..12 {
        churn(seed, 400);
    }
}

#[test]
fn what_went_by_too_fast_is_made_anew() {
    let mut random = Random::new(5);
    let links: Vec<Change> = LINKS.map(|index| link(1, index, true, 1_500)).collect();
    let ports = vec![Attachment::ethernet("em2"), Attachment::ethernet("em3")];
    let mut router = Router::new(links, ports);
    router.writer.without_events();
    for _ in 0..50 {
        let changes = some_change(&mut random, &router);
        router
            .writer
            .commit(
                changes.into_iter().filter(|change| {
                    matches!(change, Change::PutRoute(..) | Change::PutNeighbour(_))
                }),
            )
            .unwrap();
    }
    router.commit(vec![via("10.0.0.0/8", vec![hop(2, Some("10.1.1.1"), 1)])]);
    assert!(router.fill.filled().rebuilds >= 1);
    for _ in 0..200 {
        let to = some_address(&mut random, false);
        assert_eq!(met(&mut router, to), expected(&router, to), "{to}");
    }
}

#[test]
fn a_rule_that_looks_at_more_than_the_destination_is_counted() {
    let mut router = Router::new(
        vec![link(1, 2, true, 1_500)],
        vec![Attachment::ethernet("em2")],
    );
    assert_eq!(router.fill.filled().ignored_rules, 0);
    router.commit(vec![Change::PutRule(table::Rule {
        family: table::AF_INET,
        priority: 100,
        table: 77,
        action: table::row::rule::action::TO_TABLE,
        fwmark: Some((1, 1)),
        ..table::Rule::default()
    })]);
    let filled = router.fill.filled();
    assert_eq!((filled.ignored_rules, filled.rebuilds), (1, 2));
}

/// A link that is a VRF, or in one.
fn of_vrf(index: u32, table: Option<u32>, master: Option<u32>) -> Change {
    let mut made = link(1, index, true, 1_500);
    if let Change::PutLink(link) = &mut made {
        (link.vrf_table, link.master) = (table, master);
    }
    made
}

/// The rule that leads to VRFs' tables.
fn vrf_rule(family: u8) -> Change {
    Change::PutRule(table::Rule {
        family,
        priority: 1_000,
        l3mdev: true,
        action: table::row::rule::action::TO_TABLE,
        ..table::Rule::default()
    })
}

#[test]
fn a_vrf_s_ports_have_a_view_of_their_own() {
    let to = |table: u32, prefix: &str, link: u32| {
        let body = body(kind::UNICAST, vec![hop(link, None, 1)]);
        Change::PutRoute(route(table, prefix, body), Placement::Last)
    };
    let mut router = Router::new(
        vec![
            of_vrf(9, Some(100), None),
            of_vrf(2, None, Some(9)),
            of_vrf(3, None, Some(9)),
            link(1, 4, true, 1_500),
            link(1, 5, true, 1_500),
            vrf_rule(AF_INET),
            vrf_rule(AF_INET6),
            to(100, "10.0.0.0/8", 3),
            to(table_id::MAIN, "10.0.0.0/8", 5),
            // The VRF's table has none: the rules go on to the main one.
            to(table_id::MAIN, "172.16.0.0/12", 5),
            to(100, "2001:db8::/32", 3),
            to(table_id::MAIN, "2001:db8::/32", 5),
            known(3, "10.0.0.9", [2, 7, 0, 0, 0, 3]),
            known(5, "10.0.0.9", [2, 7, 0, 0, 0, 5]),
            known(5, "172.16.0.9", [2, 7, 0, 0, 0, 6]),
            known(3, "2001:db8::9", [2, 7, 0, 0, 0, 7]),
            known(5, "2001:db8::9", [2, 7, 0, 0, 0, 8]),
        ],
        (2..6)
            .map(|index| Attachment::ethernet(&format!("em{index}")))
            .collect(),
    );
    let views: Vec<u16> = router.fill.ports().iter().map(|port| port.view).collect();
    assert_eq!(views, [1, 1, 0, 0]);
    let sent = |router: &mut Router, port: u16, far: &str| {
        let own = mac(1, u32::from(port) + 2);
        let packet = match far.parse::<IpAddr>().unwrap() {
            IpAddr::V4(far) => ::packet::build::Ip::new([10, 0, 0, 5].into(), far).udp(1, 2, b"x"),
            IpAddr::V6(_) => v6("2001:db8::5", far, 9, 17, &[0, 1, 0, 2, 0, 8, 0, 0]),
        };
        let out = router.take(port, &[frame(own, &packet)], 5);
        out.first().map(|(port, frame)| (*port, frame[5]))
    };
    for (port, far, leaves) in [
        (0, "10.0.0.9", (1, 3)),
        (2, "10.0.0.9", (3, 5)),
        (0, "172.16.0.9", (3, 6)),
        (0, "2001:db8::9", (1, 7)),
        (2, "2001:db8::9", (3, 8)),
    ] {
        assert_eq!(sent(&mut router, port, far), Some(leaves), "{port}, {far}");
    }
    router.commit(vec![
        to(100, "10.0.0.9/32", 2),
        known(2, "10.0.0.9", [2; 6]),
    ]);
    assert_eq!(sent(&mut router, 1, "10.0.0.9"), Some((0, 2)));
    assert_eq!(sent(&mut router, 3, "10.0.0.9"), Some((3, 5)));
}

#[test]
fn a_port_that_changes_takes_its_next_hops_along() {
    let mut router = Router::new(
        [
            vec![link(1, 2, true, 1_500), link(1, 3, true, 1_500)],
            vec![known(3, "10.0.0.9", [2, 7, 0, 0, 0, 9])],
            vec![via("10.9.0.0/16", vec![hop(3, Some("10.0.0.9"), 1)])],
        ]
        .concat(),
        vec![Attachment::ethernet("em2"), Attachment::ethernet("em3")],
    );
    let look = |router: &mut Router| {
        let view = router.fill.views().swap_remove(0);
        let table = router.fill.table();
        let section = router.reader.enter();
        let mut hop = [0];
        view.v4.lookup(&section, &[0x0a09_0001], &mut hop);
        table.next_hop(&section, hop[0])
    };
    assert_eq!(look(&mut router).mtu(), 1_500);
    router.commit(vec![link(1, 3, true, 1_400)]);
    assert_eq!(look(&mut router).mtu(), 1_400);
    assert_eq!(look(&mut router).kind(), Kind::Rewrite);
    // Another number: a new link of the same name.
    router.commit(vec![Change::DeleteLink(3)]);
    let mut new = link(1, 9, true, 1_300);
    if let Change::PutLink(link) = &mut new {
        link.name = "em3".into();
    }
    router.commit(vec![
        new,
        via("10.9.0.0/16", vec![hop(9, Some("10.0.0.9"), 1)]),
    ]);
    let way = look(&mut router);
    assert_eq!((way.kind(), way.mtu()), (Kind::Host, 0));
    router.commit(vec![without(
        "10.9.0.0/16",
        vec![hop(3, Some("10.0.0.9"), 1)],
    )]);
    let way = look(&mut router);
    assert_eq!((way.kind(), way.mtu()), (Kind::Unresolved, 1_300));
    let _ = Arc::strong_count(&router.fill.table());
}

/// Tables that are filled with little room in the FIBs.
fn small(
    changes: Vec<Change>,
    fib: fib::Config,
) -> (table::Writer, FibSync, memory::quiescent::Reader) {
    let mut writer = table::Writer::new(table::Limits::default());
    writer.commit(rules()).unwrap();
    writer.commit([loopback()]).unwrap();
    writer.commit([link(1, 3, true, 1_500)]).unwrap();
    writer.commit(changes).unwrap();
    let domain = Domain::new(2);
    let settings = FibSyncSettings {
        fib,
        ..FibSyncSettings::default()
    };
    let ports = vec![Attachment::ethernet("em3")];
    let fill = FibSync::new(writer.reader(), &domain, ports, settings).unwrap();
    let reader = domain.register().unwrap();
    (writer, fill, reader)
}

/// The gateway that a packet to an address goes to; `None` without a route.
fn gateway(fill: &mut FibSync, reader: &mut memory::quiescent::Reader, to: u32) -> Option<IpAddr> {
    let view = fill.views().swap_remove(0);
    let table = fill.table();
    let section = reader.enter();
    let mut hop = [0];
    view.v4.lookup(&section, &[to], &mut hop);
    (hop[0] != 0).then(|| table.gateway(&section, hop[0]).ip())
}

#[test]
fn a_full_fib_keeps_what_it_has_and_its_next_hops() {
    let through = |net: &str, by: &str| via(net, vec![hop(3, Some(by), 1)]);
    let changes = vec![
        through("10.1.0.0/16", "10.0.0.1"),
        through("10.2.0.0/16", "10.0.0.2"),
    ];
    let config = fib::Config {
        max_routes: 2,
        max_bytes: 64 << 20,
    };
    let (mut writer, mut fill, mut reader) = small(changes, config);
    let by = |fill: &mut FibSync, reader: &mut _, net: u32| {
        gateway(fill, reader, 0x0a00_0001 | net << 16).map(|by| by.to_string())
    };
    // A third one is refused, and what is there is changed all the same.
    writer
        .commit([
            through("10.0.0.0/16", "10.0.0.3"),
            through("10.2.0.0/16", "10.0.0.4"),
            without("10.2.0.0/16", vec![hop(3, Some("10.0.0.2"), 1)]),
        ])
        .unwrap();
    fill.follow(Duration::ZERO);
    assert_eq!(by(&mut fill, &mut reader, 0), None);
    assert_eq!(by(&mut fill, &mut reader, 2).as_deref(), Some("10.0.0.4"));
    let filled = fill.filled();
    assert_eq!((filled.prefixes_v4, filled.refused), (2, 1));
    assert_eq!(filled.next_hops, 2);
    // Everything anew, with more than there is room for: what goes goes,
    // what stays stays, and of the new as many come as there is room for.
    let rule = table::Rule {
        family: table::AF_INET,
        priority: 90,
        table: table_id::MAIN,
        action: table::row::rule::action::TO_TABLE,
        ..table::Rule::default()
    };
    let new = (5..9).map(|net| through(&format!("10.{net}.0.0/16"), &format!("10.0.1.{net}")));
    let mut all: Vec<Change> = new.collect();
    all.push(without("10.1.0.0/16", vec![hop(3, Some("10.0.0.1"), 1)]));
    all.push(Change::PutRule(rule));
    writer.commit(all).unwrap();
    fill.follow(Duration::ZERO);
    assert!(fill.filled().rebuilds >= 2);
    assert_eq!(by(&mut fill, &mut reader, 1), None);
    assert_eq!(by(&mut fill, &mut reader, 2).as_deref(), Some("10.0.0.4"));
    assert_eq!(by(&mut fill, &mut reader, 0).as_deref(), Some("10.0.0.3"));
    let filled = fill.filled();
    assert_eq!((filled.prefixes_v4, filled.next_hops), (2, 2));
    for net in 5..9 {
        assert_eq!(by(&mut fill, &mut reader, net), None);
    }
}

#[test]
fn what_waits_for_space_goes_by_its_former_next_hop_or_its_new_one() {
    // Slots of the FIB that grow, each with gateways of its own, until there
    // is no space to compile them into.
    const SLOTS: u32 = 600;
    const HOSTS: u32 = 64;
    let config = fib::Config {
        max_routes: 100_000,
        max_bytes: 2 << 20,
    };
    let (mut writer, mut fill, mut reader) = small(Vec::new(), config);
    let net = |slot: u32, host: u32| std::net::Ipv4Addr::from(0x1400_0000 | slot << 14 | host << 8);
    let by = |round: u32, slot: u32| format!("10.{round}.{}.{}", slot >> 8, slot & 0xff);
    let mut waited = 0;
    for round in 0..3 {
        let mut changes = Vec::new();
        for slot in 1..SLOTS {
            let new = vec![hop(3, Some(&by(round, slot)), 1)];
            let old = vec![hop(3, Some(&by(round.max(1) - 1, slot)), 1)];
            for host in (0..HOSTS).take(32 * (round as usize + 1)) {
                let prefix = format!("{}/32", net(slot, host));
                if round > 0 {
                    changes.push(without(&prefix, old.clone()));
                }
                changes.push(via(&prefix, new.clone()));
            }
        }
        writer.commit(changes).unwrap();
        fill.follow(Duration::ZERO);
        waited += usize::from(!fill.views[0].v4.is_compiled());
        for slot in 1..SLOTS {
            for host in (0..HOSTS).step_by(3) {
                let found = gateway(&mut fill, &mut reader, net(slot, host).to_bits());
                if let Some(IpAddr::V4(found)) = found {
                    let [.., high, low] = found.octets();
                    let of = u32::from(high) << 8 | u32::from(low);
                    assert_eq!(of, slot, "round {round}, host {host}: {found}");
                }
            }
        }
    }
    assert!(waited > 1, "there was space enough in {waited} rounds");
}

/// A namespace and a feed whose routes its packets go by.
struct Fed {
    writer: table::Writer,
    feeder: table::Feeder,
    fill: FibSync,
    reader: memory::quiescent::Reader,
}

/// A route that the kernel made of an address: local or connected.
fn of_kernel(table: u32, prefix: &str, of: u8, link: u32) -> Change {
    let mut body = body(of, vec![hop(link, None, 1)]);
    body.protocol = table::row::route::protocol::KERNEL;
    Change::PutRoute(route(table, prefix, body), Placement::Last)
}

impl Fed {
    fn new() -> Self {
        Self::of_routes(100_000)
    }

    /// With so many routes in each FIB at most.
    fn of_routes(max_routes: usize) -> Self {
        let mut writer = table::Writer::new(table::Limits::default());
        writer.commit(rules()).unwrap();
        writer.commit([loopback()]).unwrap();
        let links = LINKS.map(|index| link(1, index, true, 1_500));
        writer.commit(links).unwrap();
        let own = LINKS.flat_map(|index| {
            let net = index << 4;
            [
                of_kernel(
                    table_id::LOCAL,
                    &format!("10.{net}.0.1/32"),
                    kind::LOCAL,
                    index,
                ),
                of_kernel(
                    table_id::MAIN,
                    &format!("10.{net}.0.0/24"),
                    kind::UNICAST,
                    index,
                ),
                of_kernel(
                    table_id::LOCAL,
                    &format!("2001:{net}::1/128"),
                    kind::LOCAL,
                    index,
                ),
                of_kernel(
                    table_id::MAIN,
                    &format!("2001:{net}::/64"),
                    kind::UNICAST,
                    index,
                ),
            ]
        });
        writer.commit(own).unwrap();
        // Not the feed's, and no packet's way.
        let foreign = via("0.0.0.0/0", vec![hop(2, Some("10.32.0.77"), 1)]);
        writer.commit([foreign]).unwrap();
        let mut feeder = writer
            .feeders()
            .join("frr", table::Limits::default())
            .unwrap();
        feeder.publish();
        let domain = Domain::new(2);
        let settings = FibSyncSettings {
            fib: fib::Config {
                max_routes,
                max_bytes: 64 << 20,
            },
            ..FibSyncSettings::default()
        };
        let ports = LINKS.map(|index| Attachment::ethernet(&format!("em{index}")));
        let feed = writer.reader().of("frr");
        let fill = FibSync::over(writer.reader(), feed, &domain, ports.collect(), settings);
        Self {
            fill: fill.unwrap(),
            reader: domain.register().unwrap(),
            writer,
            feeder,
        }
    }

    /// The gateways, or links without one, that a plain search of all rows
    /// finds for an address: the kernel's own before the feed's.
    fn expected(&self, to: IpAddr) -> BTreeSet<(u32, Option<IpAddr>)> {
        let is_own = |route: &table::RouteRef<'_>| {
            route.body.protocol == table::row::route::protocol::KERNEL
        };
        let own = self.writer.tables().routes.iter().filter(is_own);
        let all = own.chain(self.feeder.tables().routes.iter());
        let usable = |hop: &NextHop| {
            let link = self.writer.tables().links.get(hop.link);
            link.is_none_or(|link| link.is_usable(table::AF_INET))
        };
        let hops = |route: &table::RouteRef<'_>| -> Vec<NextHop> {
            let all = route.body.next_hops.as_slice().iter();
            let near = all.filter_map(|hop| match (hop.link, hop.gateway) {
                (0, Some(gateway)) => self.toward(gateway),
                _ => Some(hop.clone()),
            });
            near.filter(usable).collect()
        };
        let covers = |route: &table::RouteRef<'_>| {
            route.prefix.contains(&to)
                && (!hops(route).is_empty() || route.body.kind != kind::UNICAST)
        };
        let mut best: Option<table::RouteRef<'_>> = None;
        for route in all.filter(covers) {
            // Of equal ones the first.
            if best.is_none_or(|best| route.prefix.prefix_len() > best.prefix.prefix_len()) {
                best = Some(route);
            }
        }
        let found = best
            .as_ref()
            .filter(|route| route.body.kind == kind::UNICAST)
            .map(hops);
        found
            .into_iter()
            .flatten()
            .map(|hop| (hop.link, hop.gateway))
            .collect()
    }

    /// The way to a gateway that names no link: it is on one.
    fn toward(&self, gateway: IpAddr) -> Option<NextHop> {
        let routes = self.writer.tables().routes.iter();
        let mut near = routes
            .filter(|route| route.table == table_id::MAIN && route.prefix.contains(&gateway))
            .collect::<Vec<_>>();
        near.sort_by_key(|route| std::cmp::Reverse(route.prefix.prefix_len()));
        let alive = |hop: &&NextHop| {
            let link = self.writer.tables().links.get(hop.link);
            link.is_some_and(|link| link.is_usable(table::AF_INET))
        };
        let mut hops = near
            .iter()
            .flat_map(|route| route.body.next_hops.as_slice());
        let way = hops.find(alive)?;
        Some(NextHop {
            gateway: way.gateway.or(Some(gateway)),
            ..hop(way.link, None, 1)
        })
    }

    fn met(&mut self, to: IpAddr) -> BTreeSet<(u32, Option<IpAddr>)> {
        let view = self.fill.views().swap_remove(0);
        let table = self.fill.table();
        let section = self.reader.enter();
        let members = members(&view, &table, &section, to);
        let ways = members.into_iter().filter_map(|member| {
            let way = table.next_hop(&section, member);
            let link = u32::from(way.port()) + LINKS.start;
            match way.kind() {
                Kind::OnLink => Some((link, None)),
                Kind::Unresolved => Some((link, Some(table.gateway(&section, member).ip()))),
                Kind::None | Kind::Host | Kind::Blackhole => None,
                other => panic!("{other:?}"),
            }
        });
        ways.collect()
    }
}

#[test]
fn over_a_feed_packets_go_by_its_longest_match_and_by_what_is_the_kernel_s_own() {
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let mut fed = Fed::new();
        for round in 0..200 {
            let is_v6 = random.below(3) == 0;
            let at = random.below(fed.feeder.tables().routes.len().max(1));
            let old = fed
                .feeder
                .tables()
                .routes
                .iter()
                .nth(at)
                .map(|old| old.to_shared());
            match random.below(12) {
                0 => {
                    let index = LINKS.start + random.below(LINKS.len()) as u32;
                    let changed = link(1, index, random.below(3) > 0, 1_500);
                    fed.writer.commit([changed]).unwrap();
                }
                1 => {
                    let index = LINKS.start + random.below(LINKS.len()) as u32;
                    let net = format!("10.{}.0.0/24", random.below(256));
                    let made = of_kernel(table_id::MAIN, &net, kind::UNICAST, index);
                    fed.writer.commit([made]).unwrap();
                }
                2..=4 => {
                    let gone = old.map(Change::DeleteRoute);
                    fed.feeder.commit(gone).unwrap();
                }
                _ => {
                    let of = [kind::UNICAST, kind::UNICAST, kind::UNICAST, kind::BLACKHOLE];
                    let of = of[random.below(4)];
                    let mut hops = match of {
                        kind::UNICAST => some_hops(&mut random, is_v6),
                        _ => Vec::new(),
                    };
                    // As a file has them, in half of the runs.
                    let is_far = seed % 2 == 0 && random.below(3) == 0;
                    for hop in hops
                        .iter_mut()
                        .filter(|hop| is_far && hop.gateway.is_some())
                    {
                        hop.link = 0;
                    }
                    hops.truncate(if is_far { 1 } else { 3 });
                    let mut put = route(table_id::MAIN, "10.0.0.0/8", body(of, hops));
                    put.prefix = some_prefix(&mut random, is_v6);
                    let put = Change::PutRoute(put, Placement::InsteadOfFirst);
                    fed.feeder.commit([put]).unwrap();
                }
            }
            fed.fill.follow(Duration::ZERO);
            fed.fill.follow(Duration::ZERO);
            for _ in 0..20 {
                let to = some_address(&mut random, round % 3 == 0);
                let (wanted, got) = (fed.expected(to), fed.met(to));
                assert_eq!(got, wanted, "seed {seed}, round {round}, to {to}");
            }
        }
        assert!(fed.feeder.tables().routes.len() > 5);
        drop(fed.feeder);
    }
}

#[test]
fn a_feed_that_leaves_takes_its_routes_along() {
    let mut fed = Fed::new();
    let to: IpAddr = [10, 99, 0, 1].into();
    let put = via("10.99.0.0/16", vec![hop(2, Some("10.32.0.9"), 1)]);
    fed.feeder.commit([put]).unwrap();
    fed.fill.follow(Duration::ZERO);
    assert_eq!(fed.met(to), fed.expected(to));
    assert_eq!(fed.met(to).len(), 1);
    let Fed {
        writer,
        feeder,
        mut fill,
        mut reader,
    } = fed;
    drop(feeder);
    fill.follow(Duration::ZERO);
    assert_eq!(gateway(&mut fill, &mut reader, 0x0a63_0001), None);
    // The router's own stays.
    let mut found = [0];
    let view = fill.views().swap_remove(0);
    let section = reader.enter();
    view.v4.lookup(&section, &[0x0a20_0001], &mut found);
    assert_eq!(fill.table().next_hop(&section, found[0]).kind(), Kind::Host);
    drop(section);
    drop(writer);
}

#[test]
fn what_stands_in_the_place_of_the_kernel_s_own_and_ways_that_change() {
    let mut fed = Fed::new();
    let gateways = |fed: &mut Fed, to: [u8; 4]| {
        fed.fill.follow(Duration::ZERO);
        fed.fill.follow(Duration::ZERO);
        fed.met(to.into())
    };
    let on = |link: u32, gateway: &str| BTreeSet::from([(link, gateway.parse().ok())]);
    // The route of the link's own prefix is replaced by somebody's: it is
    // the kernel's own no more, and the feed knows none.
    assert_eq!(gateways(&mut fed, [10, 48, 0, 9]), on(3, ""));
    let mut static_one = body(kind::UNICAST, vec![hop(2, None, 1)]);
    static_one.protocol = table::row::route::protocol::STATIC;
    let row = route(table_id::MAIN, "10.48.0.0/24", static_one);
    let changed = Change::PutRoute(row, Placement::InsteadOfFirst);
    fed.writer.commit([changed]).unwrap();
    assert_eq!(gateways(&mut fed, [10, 48, 0, 9]), BTreeSet::new());
    // A gateway without a link, whose link goes and comes.
    let far = |gateway: &str| via("10.99.0.0/16", vec![hop(0, Some(gateway), 1)]);
    fed.feeder.commit([far("10.64.0.7")]).unwrap();
    assert_eq!(gateways(&mut fed, [10, 99, 0, 1]), on(4, "10.64.0.7"));
    fed.writer.commit([link(1, 4, false, 1_500)]).unwrap();
    // By the default route, which is only a way and no packet's route.
    assert_eq!(gateways(&mut fed, [10, 99, 0, 1]), on(2, "10.32.0.77"));
    fed.writer.commit([link(1, 4, true, 1_500)]).unwrap();
    assert_eq!(gateways(&mut fed, [10, 99, 0, 1]), on(4, "10.64.0.7"));
    // A way that refuses is none, and shorter ones do not help.
    let refusing = route(
        table_id::MAIN,
        "10.64.0.0/28",
        body(kind::BLACKHOLE, Vec::new()),
    );
    let refuses = Change::PutRoute(refusing, Placement::Last);
    fed.writer.commit([refuses]).unwrap();
    assert_eq!(gateways(&mut fed, [10, 99, 0, 1]), BTreeSet::new());
    // What is no way makes nothing anew.
    let rebuilds = fed.fill.filled().rebuilds;
    let other = via("172.16.0.0/12", vec![hop(2, None, 1)]);
    fed.writer.commit([other]).unwrap();
    fed.feeder.commit([far("10.64.0.99")]).unwrap();
    assert_eq!(gateways(&mut fed, [10, 99, 0, 1]), on(4, "10.64.0.99"));
    assert_eq!(fed.fill.filled().rebuilds, rebuilds);
}

/// A route of a routing daemon, before any other of its prefix.
fn of_daemon(table: u32, prefix: &str, hops: Vec<NextHop>) -> Change {
    let mut body = body(kind::UNICAST, hops);
    body.protocol = table::row::route::protocol::BGP;
    Change::PutRoute(route(table, prefix, body), Placement::InsteadOfFirst)
}

#[test]
fn what_became_of_the_routes_of_a_feed_is_told_once() {
    let mut fed = Fed::new();
    let seen = |fed: &Fed| fed.feeder.tables().generation;
    let prefix = |text: &str| (table_id::MAIN, text.parse().unwrap());
    let told = |fed: &mut Fed| {
        fed.fill.follow(Duration::ZERO);
        fed.fill.taken()
    };
    let first = fed.fill.taken().unwrap();
    assert_eq!(first.seen, seen(&fed));
    assert!(first.tables.contains(&(AF_INET, table_id::MAIN)));
    assert!(first.refused.is_empty());
    assert_eq!(told(&mut fed), None);
    fed.writer.commit([link(1, 4, false, 1_500)]).unwrap();
    fed.fill.follow(Duration::ZERO);
    fed.fill.taken();
    // Taken; and one whose only link is down.
    let on = |net: &str, link: u32| {
        of_daemon(table_id::MAIN, net, vec![hop(link, Some("10.32.0.9"), 1)])
    };
    fed.feeder
        .commit([on("10.99.0.0/16", 2), on("10.98.0.0/16", 4)])
        .unwrap();
    let both = told(&mut fed).unwrap();
    assert_eq!(both.seen, seen(&fed));
    assert_eq!(
        both.refused.into_iter().collect::<Vec<_>>(),
        [(prefix("10.98.0.0/16"), true)]
    );
    // Nobody had a look: what came meanwhile is told at once.
    fed.writer.commit([link(1, 2, false, 1_500)]).unwrap();
    fed.fill.follow(Duration::ZERO);
    fed.feeder.commit([on("10.98.0.0/16", 3)]).unwrap();
    let later = told(&mut fed).unwrap().refused.into_iter();
    let expected = [
        (prefix("10.98.0.0/16"), false),
        (prefix("10.99.0.0/16"), true),
    ];
    assert_eq!(later.collect::<Vec<_>>(), expected);
    fed.writer.commit([link(1, 2, true, 1_500)]).unwrap();
    let again = told(&mut fed).unwrap().refused.into_iter();
    assert_eq!(again.collect::<Vec<_>>(), [(prefix("10.99.0.0/16"), false)]);
}

#[test]
fn routes_that_a_full_fib_refuses_are_told_and_those_that_get_room() {
    let mut fed = Fed::of_routes(12);
    fed.fill.taken();
    let own = fed.fill.filled().prefixes_v4;
    let net = |number: usize| format!("10.{}.0.0/16", 100 + number);
    let hops = |last: u8| vec![hop(2, Some(&format!("10.32.0.{last}")), 1)];
    let puts = (0..20).map(|number| of_daemon(table_id::MAIN, &net(number), hops(9)));
    fed.feeder.commit(puts).unwrap();
    fed.fill.follow(Duration::ZERO);
    let refused = fed.fill.taken().unwrap().refused;
    assert_eq!(refused.len(), 20 - (12 - own));
    assert!(refused.values().all(|refused| *refused));
    // Exactly the others lead somewhere.
    for number in 0..20 {
        let to: IpAddr = [10, 100 + number as u8, 0, 1].into();
        let is_refused = refused.contains_key(&(table_id::MAIN, net(number).parse().unwrap()));
        assert_eq!(fed.met(to).is_empty(), is_refused, "{to}");
    }
    // Room is made, and one of them told again.
    let gone = fed.feeder.tables().routes.iter();
    let gone: Vec<Change> = gone
        .filter(|route| !refused.contains_key(&(route.table, route.prefix)))
        .map(|route| Change::DeleteRoute(route.to_shared()))
        .collect();
    let ((_, prefix), _) = refused.first_key_value().unwrap();
    fed.feeder.commit(gone).unwrap();
    let again = of_daemon(table_id::MAIN, &prefix.to_string(), hops(8));
    fed.feeder.commit([again]).unwrap();
    fed.fill.follow(Duration::ZERO);
    let told = fed.fill.taken().unwrap().refused;
    assert_eq!(told.get(&(table_id::MAIN, *prefix)), Some(&false));
    assert_eq!(told.len(), 1);
}

#[test]
fn routes_that_packets_do_not_go_by_here_are_refused_whoever_s_the_others_are() {
    let mut fed = Fed::new();
    fed.fill.taken();
    let main = |net: &str, link: u32| of_daemon(table_id::MAIN, net, vec![hop(link, None, 1)]);
    let local = of_daemon(table_id::LOCAL, "10.97.0.0/16", vec![hop(2, None, 1)]);
    let ours = [
        // The kernel's own, of the link's address, comes first.
        main("10.32.0.0/24", 3),
        // To the kernel: by a link that is no port here.
        main("10.98.0.0/16", 77),
        // In the shadow of the same prefix in another table.
        local,
        main("10.97.0.0/16", 3),
        main("10.96.0.0/16", 3),
    ];
    fed.feeder.commit(ours).unwrap();
    fed.fill.follow(Duration::ZERO);
    let refused = |fed: &mut Fed| -> Vec<String> {
        let told = fed.fill.taken().unwrap().refused.into_iter();
        let refused = told.filter(|(_, is)| *is);
        refused.map(|((_, prefix), _)| prefix.to_string()).collect()
    };
    let expected = ["10.32.0.0/24", "10.97.0.0/16", "10.98.0.0/16"];
    assert_eq!(refused(&mut fed), expected);
    // The same when everything is made anew: nothing is news.
    let nop = Change::PutRule(table::Rule {
        family: AF_INET,
        priority: 7,
        action: table::row::rule::action::NOP,
        ..table::Rule::default()
    });
    fed.writer.commit([nop]).unwrap();
    fed.fill.follow(Duration::ZERO);
    assert!(fed.fill.filled().rebuilds > 1);
    assert_eq!(refused(&mut fed), [""; 0]);
}

#[test]
fn a_route_is_taken_if_the_ports_that_its_table_is_for_take_it() {
    let mut writer = table::Writer::new(table::Limits::default());
    writer.commit(rules()).unwrap();
    let links = [
        of_vrf(9, Some(100), None),
        of_vrf(2, None, Some(9)),
        link(1, 3, true, 1_500),
        vrf_rule(AF_INET),
    ];
    writer.commit(links).unwrap();
    let mut feeder = writer
        .feeders()
        .join("frr", table::Limits::default())
        .unwrap();
    // Ports in the VRF go by its default route, whatever the main one says.
    let routes = [
        of_daemon(100, "0.0.0.0/0", vec![hop(2, None, 1)]),
        of_daemon(table_id::MAIN, "10.99.0.0/16", vec![hop(3, None, 1)]),
    ];
    feeder.commit(routes).unwrap();
    let ports = [2, 3].map(|index| Attachment::ethernet(&format!("em{index}")));
    let feed = writer.reader().of("frr");
    let settings = FibSyncSettings::default();
    let domain = Domain::new(1);
    let fill = FibSync::over(writer.reader(), feed, &domain, ports.into(), settings);
    let mut fill = fill.unwrap();
    let told = fill.taken().unwrap();
    assert_eq!(told.refused, [].into());
    // IPv6 has no rule that leads there.
    assert!(told.tables.contains(&(AF_INET, 100)));
    assert!(!told.tables.contains(&(AF_INET6, 100)));
}
