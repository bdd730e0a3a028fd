//! Whole ways of packets, by a router made by hand.

mod handed_off;
mod mangled;
mod network;
mod sources;
mod translated;

use std::net::Ipv4Addr;

use packet::build::Ip;
use packet::checksum::Sum;
use packet::{Icmp, Ipv4, Ipv6, icmp, ipv4, protocol};
use table::row::neighbour::state;
use table::row::route::kind;
use table::{Change, NeighbourKey};

use super::*;
use crate::fib_sync::Attachment;
use crate::testing::*;

const GATEWAY: [u8; 6] = [2, 7, 0, 0, 0, 1];
const HOST_MAC: [u8; 6] = [2, 7, 0, 0, 0, 9];

/// Port 0: em2, 10.0.2.1/24; port 1: em3, 10.0.3.1/24 with a gateway and a
/// host known; port 2: VLAN 7 of port 1; port 3: without Ethernet.
fn router() -> Router {
    router_with(None, Settings::default())
}

fn router_with(nat: Option<Nat>, settings: Settings) -> Router {
    let mut changes = vec![
        link(1, 2, true, 1_500),
        link(1, 3, true, 1_000),
        link(1, 4, true, 1_500),
        link(1, 5, true, 1_500),
        via("198.51.0.0/16", vec![hop(3, Some("10.0.3.254"), 1)]),
        via("198.52.0.0/16", vec![hop(4, Some("10.0.4.254"), 1)]),
        via("198.53.0.0/16", vec![hop(5, None, 1)]),
        via("198.54.0.0/16", vec![hop(3, Some("10.0.3.77"), 1)]),
        via("2001:db8:51::/48", vec![hop(3, Some("fe80::254"), 1)]),
        refusing("203.0.113.0/26", kind::BLACKHOLE),
        refusing("203.0.113.64/26", kind::UNREACHABLE),
        refusing("203.0.113.128/26", kind::PROHIBIT),
        known(3, "10.0.3.254", GATEWAY),
        known(3, "fe80::254", GATEWAY),
        known(3, "10.0.3.9", HOST_MAC),
        known(4, "10.0.4.254", GATEWAY),
    ];
    for (link, text) in [
        (2, "10.0.2.1/24"),
        (3, "10.0.3.1/24"),
        (4, "10.0.4.1/24"),
        (2, "2001:db8:2::1/64"),
        (3, "2001:db8:3::1/64"),
    ] {
        changes.extend(address(link, text));
    }
    let mut ports = vec![
        Attachment::ethernet("em2"),
        Attachment::ethernet("em3"),
        Attachment::ethernet("em4"),
        Attachment::bare("em5"),
    ];
    ports[1].is_outside = nat.is_some();
    ports[2].vlan = Some((1, 7));
    Router::with(changes, ports, nat, settings)
}

fn udp(to: [u8; 4]) -> Vec<u8> {
    Ip::new(Ipv4Addr::new(10, 0, 2, 5), to.into()).udp(4_000, 53, b"question")
}

/// One packet to port 0.
fn send(router: &mut Router, packet: &[u8]) -> Vec<(u16, Vec<u8>)> {
    router.take(0, &[frame(mac(1, 2), packet)], 1_000)
}

fn count(router: &Router, reason: Reason) -> u64 {
    router.forwarder.counters().of_reason(reason)
}

/// What an error that left by port 0 to 10.0.2.5 says. The host is not
/// known there: it is released from the queue first.
fn error_of(router: &mut Router, packet: &[u8]) -> (u8, u8, Vec<u8>) {
    router.commit(vec![known(2, "10.0.2.5", HOST_MAC)]);
    let out = send(router, packet);
    let [(0, bytes)] = out.as_slice() else {
        panic!("{out:?}");
    };
    assert_eq!(bytes[..6], HOST_MAC);
    let ip = Ipv4::new(&bytes[14..]).unwrap();
    assert!(ip.checksum_is_right());
    assert_eq!(ip.source(), Ipv4Addr::new(10, 0, 2, 1));
    assert_eq!(ip.destination(), Ipv4Addr::new(10, 0, 2, 5));
    let message = Icmp::new(ip.payload()).unwrap();
    assert!(message.checksum_is_right(Sum::default()));
    (
        message.icmp_type(),
        message.code(),
        message.payload().to_vec(),
    )
}

#[test]
fn a_packet_gets_its_header_and_loses_a_hop() {
    let mut router = router();
    let packet = udp([198, 51, 100, 7]);
    let out = send(&mut router, &packet);
    let [(1, bytes)] = out.as_slice() else {
        panic!("{out:?}");
    };
    assert_eq!(bytes[..6], GATEWAY);
    assert_eq!(bytes[6..12], mac(1, 3));
    assert_eq!(bytes[12..14], [8, 0]);
    let ip = Ipv4::new(&bytes[14..]).unwrap();
    assert!(ip.checksum_is_right());
    assert_eq!((ip.ttl(), ip.total_len()), (63, packet.len()));
    assert_eq!(ip.payload(), &packet[20..]);
    let counters = router.forwarder.counters();
    for node in [
        Node::Ethernet,
        Node::Ipv4,
        Node::Fib,
        Node::Neighbour,
        Node::Output,
    ] {
        assert_eq!(counters.of_node(node), 1, "{node:?}");
    }
}

#[test]
fn each_kind_of_way_out() {
    let mut router = router();
    // On the link: the destination itself.
    let out = send(&mut router, &udp([10, 0, 3, 9]));
    assert_eq!((out[0].0, &out[0].1[..6]), (1, &HOST_MAC[..]));
    // A VLAN: with its tag.
    let out = send(&mut router, &udp([198, 52, 1, 1]));
    assert_eq!(out[0].0, 2);
    assert_eq!(out[0].1[12..18], [0x81, 0, 0, 7, 8, 0]);
    // Without Ethernet: the packet alone.
    let out = send(&mut router, &udp([198, 53, 1, 1]));
    assert_eq!((out[0].0, out[0].1[0]), (3, 0x45));
    // For the host, from its IP header on.
    let out = send(&mut router, &udp([10, 0, 3, 1]));
    assert_eq!((out[0].0, out[0].1[0]), (HOST, 0x45));
    // In by the VLAN and without Ethernet.
    let mut tagged = frame(mac(1, 3), &udp([198, 51, 1, 1]));
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    tagged[..6].copy_from_slice(&mac(1, 3));
    assert_eq!(router.take(1, &[tagged], 1_000)[0].0, 1);
    assert_eq!(router.take(3, &[udp([198, 51, 1, 1])], 1_000)[0].0, 1);
}

#[test]
fn ipv6_goes_its_way() {
    let mut router = router();
    let packet = v6(
        "2001:db8:2::5",
        "2001:db8:51::7",
        9,
        protocol::UDP,
        &[0; 12],
    );
    let out = send(&mut router, &packet);
    let [(1, bytes)] = out.as_slice() else {
        panic!("{out:?}");
    };
    assert_eq!(bytes[12..14], [0x86, 0xdd]);
    let ip = Ipv6::new(&bytes[14..]).unwrap();
    assert_eq!((ip.hop_limit(), ip.payload().len()), (8, 12));
    let last = v6(
        "2001:db8:2::5",
        "2001:db8:51::7",
        1,
        protocol::UDP,
        &[0; 12],
    );
    router.commit(vec![known(2, "2001:db8:2::5", HOST_MAC)]);
    let out = send(&mut router, &last);
    let [(0, bytes)] = out.as_slice() else {
        panic!("{out:?}");
    };
    let ip = Ipv6::new(&bytes[14..]).unwrap();
    assert_eq!(
        ip.source(),
        "2001:db8:2::1".parse::<std::net::Ipv6Addr>().unwrap()
    );
    assert_eq!(ip.payload()[..2], [3, 0]);
    let large = v6(
        "2001:db8:2::5",
        "2001:db8:51::7",
        9,
        protocol::UDP,
        &[0; 1_200],
    );
    let out = send(&mut router, &large);
    let ip = Ipv6::new(&out[0].1[14..]).unwrap();
    assert_eq!(ip.payload()[..2], [2, 0]);
    assert_eq!(ip.payload()[4..8], 1_000_u32.to_be_bytes());
    let local = v6("fe80::5", "2001:db8:51::7", 9, protocol::UDP, &[0; 12]);
    assert!(send(&mut router, &local).iter().all(|(port, _)| *port == 0));
    assert_eq!(count(&router, Reason::Ipv6Scope), 1);
    let none = v6("2001:db8:2::5", "2001:dead::7", 9, protocol::UDP, &[0; 12]);
    let out = send(&mut router, &none);
    assert_eq!(Ipv6::new(&out[0].1[14..]).unwrap().payload()[..2], [1, 0]);
}

#[test]
fn senders_hear_why() {
    let mut router = router();
    let mut last = Ip::new(Ipv4Addr::new(10, 0, 2, 5), [198, 51, 1, 1].into());
    last.ttl = 1;
    let last = last.udp(4_000, 53, b"x");
    assert_eq!(error_of(&mut router, &last), (11, 0, last));
    for (to, code) in [
        ([203, 0, 113, 70], 1),
        ([203, 0, 113, 130], 13),
        ([192, 0, 2, 1], 0),
    ] {
        let packet = udp(to);
        assert_eq!(error_of(&mut router, &packet), (3, code, packet));
    }
    assert!(send(&mut router, &udp([203, 0, 113, 7])).is_empty());
    assert_eq!(count(&router, Reason::Blackhole), 1);
    // To the host itself the last hop is no matter (RFC 1812 §5.3.1).
    let mut own = Ip::new(Ipv4Addr::new(10, 0, 2, 5), [10, 0, 3, 1].into());
    own.ttl = 1;
    assert_eq!(send(&mut router, &own.udp(1, 2, b"x"))[0].0, HOST);
}

#[test]
fn what_is_too_long_is_cut_or_refused() {
    let mut router = router();
    let mut long = Ip::new(Ipv4Addr::new(10, 0, 2, 5), [198, 51, 1, 1].into());
    let payload: Vec<u8> = (0..1_300_u16).map(|at| at as u8).collect();
    let out = send(&mut router, &long.udp(4_000, 53, &payload));
    assert_eq!(out.len(), 2);
    let mut joined = Vec::new();
    for (port, bytes) in &out {
        let ip = Ipv4::new(&bytes[14..]).unwrap();
        assert!(*port == 1 && ip.checksum_is_right() && ip.total_len() <= 1_000);
        assert_eq!((ip.ttl(), bytes[..6].to_vec()), (63, GATEWAY.to_vec()));
        joined.extend_from_slice(ip.payload());
    }
    assert_eq!(joined[8..], payload);
    assert_eq!(count(&router, Reason::Fragmented), 1);
    long.flags_and_offset = ipv4::DONT_FRAGMENT;
    let (kind, code, _) = error_of(&mut router, &long.udp(4_000, 53, &payload));
    assert_eq!((kind, code), (3, 4));
    assert_eq!(count(&router, Reason::TooBig), 1);
}

#[test]
fn errors_are_limited_and_none_is_sent_about_errors() {
    let settings = Settings {
        errors_per_second: 10,
        errors_at_once: 3,
        ..Settings::default()
    };
    let mut router = router_with(None, settings);
    router.commit(vec![known(2, "10.0.2.5", HOST_MAC)]);
    let frames = vec![frame(mac(1, 2), &udp([192, 0, 2, 1])); 20];
    assert_eq!(router.take(0, &frames, 1_000).len(), 3);
    assert_eq!(count(&router, Reason::ErrorLimited), 17);
    assert_eq!(router.take(0, &frames, 1_200).len(), 2);
    let ip = Ip::new(Ipv4Addr::new(10, 0, 2, 5), [192, 0, 2, 1].into());
    let error = ip.icmp(icmp::UNREACHABLE, 1, [0; 4], &udp([1, 2, 3, 4]));
    assert!(
        router
            .take(0, &[frame(mac(1, 2), &error)], 9_000)
            .is_empty()
    );
    assert_eq!(count(&router, Reason::ErrorForbidden), 1);
}

#[test]
fn packets_wait_for_their_neighbour_and_leave_a_request() {
    let mut router = router();
    // One on the link, one behind a gateway.
    for (to, gateway) in [
        ([10, 0, 3, 44], "10.0.3.44"),
        ([198, 54, 1, 1], "10.0.3.77"),
    ] {
        for _ in 0..3 {
            assert!(send(&mut router, &udp(to)).is_empty());
        }
        let request = router.forwarder.requests().take().unwrap();
        assert_eq!(
            (request.link, request.key.ip()),
            (3, gateway.parse().unwrap())
        );
        assert_eq!(router.forwarder.requests().take(), None);
        assert_eq!(router.forwarder.waiting().0, 1);
        router.commit(vec![known(3, gateway, HOST_MAC)]);
        let out = router.tend(1_010);
        assert_eq!(out.len(), 3);
        for (port, bytes) in out {
            assert_eq!((port, &bytes[..6]), (1, &HOST_MAC[..]));
            assert_eq!(Ipv4::new(&bytes[14..]).unwrap().ttl(), 63);
        }
        assert_eq!(router.forwarder.waiting(), (0, 0));
        assert_eq!(send(&mut router, &udp(to)).len(), 1);
    }
    assert_eq!(count(&router, Reason::Held), 6);
}

#[test]
fn packets_do_not_wait_for_ever() {
    let settings = Settings {
        waiting: WaitingLimits {
            packets_each: 2,
            ..WaitingLimits::default()
        },
        ..Settings::default()
    };
    let mut router = router_with(None, settings);
    router.commit(vec![known(2, "10.0.2.5", HOST_MAC)]);
    for _ in 0..5 {
        assert!(send(&mut router, &udp([10, 0, 3, 44])).is_empty());
    }
    assert_eq!(count(&router, Reason::QueueFull), 3);
    assert!(router.tend(3_900).is_empty());
    let out = router.tend(4_000);
    assert_eq!(out.len(), 2);
    for (port, bytes) in out {
        let ip = Ipv4::new(&bytes[14..]).unwrap();
        assert_eq!((port, &ip.payload()[..2]), (0, &[3, 1][..]));
    }
    assert_eq!(count(&router, Reason::NotResolved), 2);
}

#[test]
fn a_neighbour_that_changes_or_goes_is_seen_by_the_next_batch() {
    let mut router = router();
    let to = [198, 51, 1, 1];
    for number in 0..50 {
        let lladdr = [2, 8, 0, 0, 0, number];
        router.commit(vec![known(3, "10.0.3.254", lladdr)]);
        let out = send(&mut router, &udp(to));
        assert_eq!(out[0].1[..6], lladdr);
    }
    let key = NeighbourKey {
        link: 3,
        address: "10.0.3.254".parse().unwrap(),
        proxy: false,
    };
    router.commit(vec![Change::DeleteNeighbour(key)]);
    assert!(send(&mut router, &udp(to)).is_empty());
    let stale = neighbour(3, key.address, Some(GATEWAY), state::STALE);
    router.commit(vec![stale]);
    router.forwarder.requests().take();
    // One of a moment ago is not asked again; later it is.
    let out = router.take(0, &[frame(mac(1, 2), &udp(to))], 9_000);
    assert_eq!(out.len(), 2);
    assert_eq!(
        router.forwarder.requests().take().map(|r| r.key.ip()),
        Some(key.address)
    );
}

#[test]
fn a_group_divides_flows_and_keeps_them() {
    let mut router = router();
    router.commit(vec![via(
        "198.60.0.0/16",
        vec![hop(3, Some("10.0.3.254"), 3), hop(5, None, 1)],
    )]);
    let flow = |port: u16| {
        let ip = Ip::new(Ipv4Addr::new(10, 0, 2, 5), [198, 60, 1, 1].into());
        frame(mac(1, 2), &ip.udp(port, 53, b"x"))
    };
    let frames: Vec<Vec<u8>> = (0..2_000).map(flow).collect();
    let ports: Vec<u16> = router
        .take(0, &frames, 1_000)
        .into_iter()
        .map(|(port, _)| port)
        .collect();
    let firsts = ports.iter().filter(|&&port| port == 1).count();
    assert!((1_400..1_600).contains(&firsts), "{firsts} of 2,000");
    let again = router.take(0, &frames, 1_001);
    assert!(again.iter().zip(&ports).all(|((now, _), then)| now == then));
}

#[test]
fn the_host_s_own_packets_keep_their_hops() {
    let changes = [
        vec![link(1, 2, true, 1_500), link(1, 3, true, 1_500)],
        address(2, "10.0.2.1/24"),
        vec![known(2, "10.0.2.5", HOST_MAC)],
    ]
    .concat();
    let mut host = Attachment::bare("em3");
    host.is_host = true;
    let mut router = Router::new(changes, vec![Attachment::ethernet("em2"), host]);
    let mut own = Ip::new(Ipv4Addr::new(10, 0, 2, 1), [10, 0, 2, 5].into());
    own.ttl = 1;
    let out = router.take(1, &[own.udp(1, 2, b"x")], 1_000);
    assert_eq!(out[0].0, 0);
    assert_eq!(Ipv4::new(&out[0].1[14..]).unwrap().ttl(), 1);
}

#[test]
fn the_host_hears_of_its_packets_from_where_they_were_to_go() {
    let mut changes = vec![link(1, 2, true, 600), link(1, 3, true, 1_500)];
    changes.extend(address(2, "10.0.2.1/24"));
    changes.extend(address(2, "2001:db8:2::1/64"));
    changes.push(known(2, "10.0.2.5", HOST_MAC));
    changes.push(known(2, "2001:db8:2::5", HOST_MAC));
    let mut host = Attachment::bare("em3");
    host.is_host = true;
    let mut router = Router::new(changes, vec![Attachment::ethernet("em2"), host]);
    let mut long = Ip::new([10, 0, 2, 1].into(), [10, 0, 2, 5].into());
    long.flags_and_offset = ipv4::DONT_FRAGMENT;
    let long_v4 = long.udp(1, 2, &[7; 900]);
    let long_v6 = v6("2001:db8:2::1", "2001:db8:2::5", 64, 17, &[7; 900]);
    let out = router.take(1, &[long_v4, long_v6], 5);
    let [(to_v4, error_v4), (to_v6, error_v6)] = &out[..] else {
        panic!("{out:?}");
    };
    assert_eq!((*to_v4, *to_v6), (HOST, HOST));
    let error = Ipv4::new(&error_v4[..]).unwrap();
    assert_eq!(error.source(), Ipv4Addr::new(10, 0, 2, 5));
    assert_eq!(error.destination(), Ipv4Addr::new(10, 0, 2, 1));
    let error = Ipv6::new(&error_v6[..]).unwrap();
    assert_eq!(error.source().to_string(), "2001:db8:2::5");
}
