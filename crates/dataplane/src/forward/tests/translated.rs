//! The engine of address translation in between.

use nat::{Config, Verdict};

use super::*;

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 99);
const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 5);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

pub fn engine(seed: u64) -> Nat {
    let mut config = Config::new(&[ALIAS]);
    config.limits.max_flows = 1 << 12;
    config.seed = seed;
    Nat::new(config).unwrap()
}

/// The router of the other tests with port 1 outside, and the alias its own.
fn translator() -> Router {
    let mut router = router_with(Some(engine(1)), Settings::default());
    let mut own = address(3, "192.0.2.99/32");
    own.push(known(2, "10.0.2.5", HOST_MAC));
    own.push(known(2, "10.0.2.6", [2, 7, 0, 0, 0, 6]));
    router.commit(own);
    router
}

fn only(out: Vec<(u16, Vec<u8>)>, by: u16) -> Vec<u8> {
    let [(port, bytes)] = out.as_slice() else {
        panic!("{out:?}");
    };
    assert_eq!(*port, by);
    bytes[14..].to_vec()
}

/// Source, source port and destination, checksums being right.
fn ends(packet: &[u8]) -> (Ipv4Addr, u16, Ipv4Addr) {
    let ip = Ipv4::new(packet).unwrap();
    let udp = packet::Udp::new(ip.payload()).unwrap();
    assert!(ip.checksum_is_right() && udp.checksum_is_right(ip.pseudo_header()));
    (ip.source(), udp.source_port(), ip.destination())
}

#[test]
fn a_flow_goes_out_and_comes_back() {
    let mut router = translator();
    let packet = Ip::new(INSIDE, REMOTE).udp(4_000, 53, b"question");
    let out = only(send(&mut router, &packet), 1);
    let (source, port, to) = ends(&out);
    assert_eq!((source, to), (ALIAS, REMOTE));
    let answer = Ip::new(REMOTE, ALIAS).udp(53, port, b"answer");
    let back = router.take(1, &[frame(mac(1, 3), &answer)], 1_010);
    let back = only(back, 0);
    assert_eq!(ends(&back), (REMOTE, 53, INSIDE));
    assert_eq!(
        packet::Udp::new(&back[20..]).unwrap().destination_port(),
        4_000
    );
    // A stranger does not get in, an inner packet is not translated.
    let stranger = Ip::new([198, 51, 100, 8].into(), ALIAS).udp(53, port ^ 1, b"x");
    assert!(
        router
            .take(1, &[frame(mac(1, 3), &stranger)], 1_020)
            .is_empty()
    );
    assert_eq!(count(&router, Reason::NatNoMapping), 1);
    let inner = only(send(&mut router, &udp([198, 52, 1, 1])), 2);
    assert_eq!(Ipv4::new(&inner[4..]).unwrap().source(), INSIDE);
    assert_eq!(router.forwarder.counters().of_node(Node::Nat), 3);
}

#[test]
fn two_hosts_inside_meet_by_the_alias() {
    let mut router = translator();
    let other = Ip::new([10, 0, 2, 6].into(), REMOTE).udp(5_000, 53, b"x");
    let (_, port, _) = ends(&only(send(&mut router, &other), 1));
    router
        .forwarder
        .nat()
        .unwrap()
        .set_udp(nat::Behaviour::FULL_CONE);
    let hairpin = Ip::new(INSIDE, ALIAS).udp(4_000, port, b"hello");
    let out = send(&mut router, &hairpin);
    // Turned back if the engine has a mapping for all; else the host's.
    match out.as_slice() {
        [(0, bytes)] => {
            let ip = Ipv4::new(&bytes[14..]).unwrap();
            assert_eq!((ip.destination(), ip.ttl()), ([10, 0, 2, 6].into(), 63));
            assert_eq!(ip.source(), ALIAS);
        }
        [(HOST, bytes)] => assert_eq!(bytes, &hairpin),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_error_about_a_translated_packet_is_understood_outside() {
    let mut router = translator();
    let packet = Ip::new(INSIDE, REMOTE).udp(4_000, 53, b"question");
    let (_, port, _) = ends(&only(send(&mut router, &packet), 1));
    let mut late = Ip::new(REMOTE, ALIAS);
    late.ttl = 1;
    let late = late.udp(53, port, b"answer");
    let out = router.take(1, &[frame(mac(1, 3), &late)], 1_010);
    let error = only(out, 1);
    let ip = Ipv4::new(error.as_slice()).unwrap();
    assert_eq!(ip.destination(), REMOTE);
    let message = Icmp::new(ip.payload()).unwrap();
    assert_eq!(message.icmp_type(), icmp::TIME_EXCEEDED);
    // It quotes what the remote has sent.
    let quoted = Ipv4::parse_truncated(message.payload()).unwrap();
    assert_eq!((quoted.source(), quoted.destination()), (REMOTE, ALIAS));
}

#[test]
fn fragments_that_came_too_early_follow_their_first_one() {
    let mut router = translator();
    let mut ip = Ip::new(INSIDE, REMOTE);
    ip.identification = 77;
    let whole = ip.udp(4_000, 53, &[7; 400]);
    ip.flags_and_offset = ipv4::MORE_FRAGMENTS;
    let first = ip.packet(protocol::UDP, &[], &whole[20..220]);
    ip.flags_and_offset = 25;
    let later = ip.packet(protocol::UDP, &[], &whole[220..]);
    assert!(send(&mut router, &later).is_empty());
    assert_eq!(count(&router, Reason::NatFragmentHeld), 1);
    let out = send(&mut router, &first);
    assert_eq!(out.len(), 2, "{out:?}");
    for (port, bytes) in out {
        let ip = Ipv4::new(&bytes[14..]).unwrap();
        assert_eq!((port, ip.source(), ip.ttl()), (1, ALIAS, 63));
        assert!(ip.checksum_is_right());
    }
}

#[test]
fn who_gets_no_port_or_has_enough_hears_that_it_may_come_again() {
    let exhausted = |nat: &mut Nat| nat.set_ports(50_000..=50_000).unwrap();
    let mut config = engine(1).config().clone();
    config.subscribers.quotas.sessions.all = 1;
    let limited = || Nat::new(config.clone()).unwrap();
    let mut few = engine(1);
    exhausted(&mut few);
    for (nat, reason) in [
        (few, Reason::NatPortsExhausted),
        (limited(), Reason::NatOverQuota),
    ] {
        let mut router = router_with(Some(nat), Settings::default());
        router.commit(vec![known(2, "10.0.2.5", HOST_MAC)]);
        let first = Ip::new(INSIDE, REMOTE).udp(4_000, 53, b"question");
        only(send(&mut router, &first), 1);
        let second = Ip::new(INSIDE, REMOTE).udp(4_001, 53, b"question");
        let error = only(send(&mut router, &second), 0);
        let ip = Ipv4::new(error.as_slice()).unwrap();
        assert_eq!(ip.destination(), INSIDE);
        let message = Icmp::new(ip.payload()).unwrap();
        assert_eq!(
            (message.icmp_type(), message.code()),
            (icmp::UNREACHABLE, 1)
        );
        let quoted = Ipv4::parse_truncated(message.payload()).unwrap();
        assert_eq!((quoted.source(), quoted.destination()), (INSIDE, REMOTE));
        assert_eq!(count(&router, reason), 1);
        // Who is refused from outside hears nothing.
        let stranger = Ip::new(REMOTE, ALIAS).udp(54, 50_000, b"x");
        let out = router.take(1, &[frame(mac(1, 3), &stranger)], 1_020);
        assert!(out.is_empty());
    }
}

#[test]
fn nobody_outside_is_the_translator_itself() {
    let mut config = Config::new(&[ALIAS]);
    config.limits.max_flows = 1 << 12;
    config.mode.deny_incoming = false;
    config.target = Some(INSIDE);
    let mut router = router_with(Some(Nat::new(config).unwrap()), Settings::default());
    router.commit(vec![known(2, "10.0.2.5", HOST_MAC)]);
    let land = Ip::new(ALIAS, ALIAS).udp(80, 80, b"x");
    assert!(router.take(1, &[frame(mac(1, 3), &land)], 1_000).is_empty());
    assert_eq!(count(&router, Reason::Ipv4MartianSource), 1);
    let other = Ip::new(REMOTE, ALIAS).udp(80, 80, b"x");
    only(router.take(1, &[frame(mac(1, 3), &other)], 1_000), 0);
}

#[test]
fn other_addresses_of_the_router_are_reached_and_answer_as_themselves() {
    let own = Ipv4Addr::new(192, 0, 2, 98);
    let mut config = Config::new(&[ALIAS]);
    config.limits.max_flows = 1 << 12;
    config.passes_foreign = true;
    let mut router = router_with(Some(Nat::new(config).unwrap()), Settings::default());
    router.commit(address(3, "192.0.2.98/32"));
    let asked = Ip::new(REMOTE, own).udp(40_000, 53, b"question");
    let out = router.take(1, &[frame(mac(1, 3), &asked)], 1_000);
    assert_eq!(out, [(HOST, asked)]);
    // Its answer has a flow, and leaves from where it was asked.
    let mut answer = Ip::new(own, REMOTE).udp(53, 40_000, b"answer");
    let nat = router.forwarder.nat().unwrap();
    assert_eq!(nat.translate_out(&mut answer, 1_001), Verdict::Translated);
    assert_eq!(ends(&answer), (own, 53, REMOTE));
    // The alias and what is private stay shut.
    for to in [ALIAS, INSIDE] {
        let knock = Ip::new(REMOTE, to).udp(40_000, 22, b"x");
        let out = router.take(1, &[frame(mac(1, 3), &knock)], 1_002);
        assert!(out.is_empty(), "{to}");
    }
}
