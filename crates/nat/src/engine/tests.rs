use std::net::Ipv4Addr;

use packet::build::{Ip, Segment};
use packet::tcp::{ACK, SYN};
use packet::{Icmp, Ipv4, Tcp, Udp, icmp, protocol};

mod adopted;
mod blocks;
mod books;
mod counted;
mod generated;
mod leases;
mod offloaded;
mod saved;

use super::*;
use crate::{AtCap, Dependence, MappingView, State};

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// The bounds that the interface promises, for a call with one packet.
fn assert_bounded(work: &Work) {
    assert!(work.lines <= 400, "{work:?}");
    assert!(work.moved <= 8 * 15 * 9, "{work:?}");
    // 256 and 32 to make room, 32 for a new flow, 8 of a stage.
    assert!(work.slots <= 328, "{work:?}");
    assert!(work.ports <= 1_200, "{work:?}");
}

fn config(flows: usize) -> Config {
    let mut config = Config::new(&[ALIAS]);
    config.limits.initial_flows = 0;
    config.limits.max_flows = flows;
    config.seed = 42;
    config
}

fn host(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(HOST) + number)
}

fn out(nat: &mut Nat, source: (Ipv4Addr, u16), to: (Ipv4Addr, u16), now: u64) -> (Verdict, u16) {
    let mut bytes = Ip::new(source.0, to.0).udp(source.1, to.1, b"data");
    let verdict = nat.translate_out(&mut bytes, now);
    assert_bounded(&nat.work);
    (verdict, u16::from_be_bytes([bytes[20], bytes[21]]))
}

fn back(nat: &mut Nat, from: (Ipv4Addr, u16), port: u16, now: u64) -> Verdict {
    let mut bytes = Ip::new(from.0, ALIAS).udp(from.1, port, b"data");
    let verdict = nat.translate_in(&mut bytes, now);
    assert_bounded(&nat.work);
    verdict
}

/// As what is looked up by.
fn end((address, port): (Ipv4Addr, u16)) -> (IpAddr, u16) {
    (address.into(), port)
}

fn remove(nat: &mut Nat, source: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> bool {
    nat.remove(Direction::Out, protocol::UDP, end(source), end(to))
}

#[test]
fn every_port_of_a_range_comes_before_the_first_refusal() {
    for choice in [PortChoice::Random, PortChoice::Same] {
        let mut config = config(60_000);
        config.port_choice = choice;
        let mut nat = Nat::new(config).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for flow in 0..32_768_u32 {
            // Of the same hosts' ports those of the range, in order: not one
            // candidate fails until the range is nearly full.
            let source = (host(flow / 20_000), 0x8000 + (flow % 20_000) as u16);
            let (verdict, port) = out(&mut nat, source, (REMOTE, 5_300), 0);
            assert_eq!(verdict, Verdict::Translated, "flow {flow}");
            assert!(port >= 0x8000 && seen.insert(port), "port {port}");
        }
        for more in 0..1_000 {
            let source = (host(9), 0x8000 + more);
            let (verdict, _) = out(&mut nat, source, (REMOTE, 5_300), 0);
            assert_eq!(verdict, Verdict::PortsExhausted);
            assert!(nat.work.ports <= 9, "{:?}", nat.work);
        }
        // Another destination shares them.
        let (verdict, _) = out(&mut nat, (HOST, 1), (REMOTE, 5_301), 0);
        assert_eq!(verdict, Verdict::Translated);
    }
}

#[test]
fn a_port_that_a_one_shot_redirect_gave_back_is_free_at_once() {
    let mut config = config(10_000);
    config.ports = 40_000..=40_199;
    let mut nat = Nat::new(config).unwrap();
    let caller = (Ipv4Addr::new(203, 0, 113, 1), 7);
    let redirect = crate::rules::Redirect::port(protocol::UDP, HOST, 9, 40_007);
    nat.rules_mut()
        .expect(redirect.at(ALIAS), u64::MAX)
        .unwrap();
    let make = |nat: &mut Nat, port| out(nat, (HOST, port), (REMOTE, 5_300), 0);
    for port in 1_000..1_199 {
        assert_eq!(make(&mut nat, port).0, Verdict::Translated);
    }
    for port in 2_000..2_100 {
        assert_eq!(make(&mut nat, port).0, Verdict::PortsExhausted);
    }
    assert_eq!(back(&mut nat, caller, 40_007, 0), Verdict::Translated);
    assert_eq!(make(&mut nat, 3_000), (Verdict::Translated, 40_007));
    assert_eq!(make(&mut nat, 3_001).0, Verdict::PortsExhausted);
}

#[test]
fn one_client_port_to_many_remotes_is_nothing_special() {
    let mut nat = Nat::new(config(100_000)).unwrap();
    for remote in 0..30_000_u32 {
        let to = (Ipv4Addr::from(0x1200_0000 + remote), 443);
        let (verdict, port) = out(&mut nat, (HOST, 5_000), to, 0);
        assert_eq!(verdict, Verdict::Translated);
        assert!(nat.work.lines < 80 && nat.work.ports == 1, "{:?}", nat.work);
        assert_eq!(back(&mut nat, to, port, 0), Verdict::Translated);
        assert!(nat.work.lines < 30, "{:?}", nat.work);
    }
}

#[test]
fn a_flow_lives_its_timeout_and_a_second_at_most() {
    let mut nat = Nat::new(config(100)).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 5);
    assert_eq!(
        back(&mut nat, (REMOTE, 5_300), port, 5),
        Verdict::Translated
    );
    let mut now = 5;
    for _ in 0..3 {
        now += 300_000;
        assert_eq!(
            back(&mut nat, (REMOTE, 5_300), port, now),
            Verdict::Translated
        );
    }
    // The clock steps back: no time passes.
    assert_eq!(
        back(&mut nat, (REMOTE, 5_300), port, 0),
        Verdict::Translated
    );
    assert_eq!(
        back(&mut nat, (REMOTE, 5_300), port, 1_000),
        Verdict::Translated
    );
    let late = 1_000 + 301_000;
    assert_eq!(
        back(&mut nat, (REMOTE, 5_300), port, late),
        Verdict::NoMapping
    );
}

#[test]
fn the_sweep_keeps_pace_with_creation_whatever_comes() {
    let mut nat = Nat::new(config(1 << 20)).unwrap();
    let mut most = 0;
    // 100 new flows a second that live 120 s: 12,000 at a time.
    for flow in 0..100_000_u32 {
        let source = (host(flow / 1_000), (flow % 1_000) as u16 + 1);
        let now = u64::from(flow) * 10;
        assert_eq!(
            out(&mut nat, source, (REMOTE, 1), now).0,
            Verdict::Translated
        );
        most = most.max(nat.statistics().flows);
    }
    assert!(most < 12_000 * 2, "{most}");
    // Without packets `maintain` does it.
    let ended = nat.maintain(10_000_000, usize::MAX);
    assert_eq!((nat.statistics().flows, ended > 10_000), (0, true));
}

#[test]
fn a_flood_pushes_no_connection_out() {
    for at_cap in [AtCap::Refuse, AtCap::Evict] {
        let mut config = config(1_000);
        config.limits.at_cap = at_cap;
        let mut nat = Nat::new(config).unwrap();
        let mut ports = Vec::new();
        for flow in 0..700 {
            let (verdict, port) = out(&mut nat, (HOST, flow + 1_001), (REMOTE, 5_300), 0);
            assert_eq!(verdict, Verdict::Translated);
            assert_eq!(
                back(&mut nat, (REMOTE, 5_300), port, 0),
                Verdict::Translated
            );
            ports.push(port);
        }
        let mut refused = 0;
        for flood in 0..20_000_u32 {
            let source = (host(flood), flood as u16 | 1);
            match out(&mut nat, source, (REMOTE, 80), 1).0 {
                Verdict::Translated => {}
                Verdict::TableFull => refused += 1,
                other => panic!("{other:?}"),
            }
            back(&mut nat, (host(flood), 9), 40_000, 1);
        }
        let statistics = nat.statistics();
        assert!(statistics.flows <= 1_000);
        match at_cap {
            AtCap::Refuse => assert_eq!(refused, 19_700),
            AtCap::Evict => assert!(
                refused < 2_000 && statistics.flows_evicted > 15_000,
                "{refused}"
            ),
        }
        for port in ports {
            assert_eq!(
                back(&mut nat, (REMOTE, 5_300), port, 2),
                Verdict::Translated
            );
        }
    }
}

/// An ICMP error about a packet that was sent out, and one about a packet
/// that came in.
#[test]
fn errors_carry_the_packet_that_their_receiver_knows() {
    let router = Ipv4Addr::new(203, 0, 113, 9);
    let mut nat = Nat::new(config(100)).unwrap();
    let tcp = Segment {
        source_port: 4_000,
        destination_port: 80,
        flags: SYN,
        data: b"some data",
        ..Segment::default()
    };
    let ip = Ip::new(HOST, REMOTE);
    let query = ip.icmp(icmp::ECHO, 0, [7, 7, 0, 1], b"ping");
    for (sent, cut) in [
        (ip.udp(4_000, 53, b"question"), 28),
        (ip.udp(4_001, 53, b"question"), 36),
        (ip.tcp(&tcp), 28),
        (ip.tcp(&tcp), 49),
        (query, 28),
        (ip.packet(50, &[], b"esp"), 23),
    ] {
        let mut outside = sent.clone();
        assert_eq!(nat.translate_out(&mut outside, 0), Verdict::Translated);
        let error = Ip::new(router, ALIAS);
        let word = [0, 0, 5, 220];
        let mut error = error.icmp(icmp::UNREACHABLE, 4, word, &outside[..cut]);
        assert_eq!(nat.translate_in(&mut error, 0), Verdict::Translated);
        let ip = Ipv4::new(error.as_slice()).unwrap();
        assert!(ip.checksum_is_right() && ip.destination() == HOST && ip.source() == router);
        let message = Icmp::new(ip.payload()).unwrap();
        assert!(message.checksum_is_right(Default::default()), "{cut}");
        // To the last bit what the host sent, its checksums included.
        assert_eq!(message.payload(), &sent[..cut]);
        // And out: the host complains about what it got.
        let (mut answer, at) = (outside.clone(), 12);
        answer[at..at + 4].copy_from_slice(&outside[16..20]);
        answer[at + 4..at + 8].copy_from_slice(&outside[12..16]);
        if matches!(answer[9], protocol::UDP | protocol::TCP) {
            answer[20..22].copy_from_slice(&outside[22..24]);
            answer[22..24].copy_from_slice(&outside[20..22]);
        } else if answer[9] == protocol::ICMP {
            answer[20] = icmp::ECHO_REPLY;
        }
        let mut inside = answer.clone();
        assert_eq!(nat.translate_in(&mut inside, 0), Verdict::Translated);
        let mut error = Ip::new(HOST, REMOTE).icmp(icmp::UNREACHABLE, 3, [0; 4], &inside[..cut]);
        assert_eq!(nat.translate_out(&mut error, 0), Verdict::Translated);
        let ip = Ipv4::new(error.as_slice()).unwrap();
        assert!(ip.checksum_is_right() && ip.source() == ALIAS && ip.destination() == REMOTE);
        let message = Icmp::new(ip.payload()).unwrap();
        assert!(message.checksum_is_right(Default::default()), "{cut}");
        assert_eq!(message.payload(), &answer[..cut]);
    }
    let mut stray = Ip::new(router, ALIAS).icmp(icmp::UNREACHABLE, 1, [0; 4], &[0x45; 40]);
    assert!(!nat.translate_in(&mut stray, 0).goes_on());
}

#[test]
fn what_left_can_be_undone() {
    let mut nat = Nat::new(config(100)).unwrap();
    let sent = Ip::new(HOST, REMOTE).udp(4_000, 53, b"question");
    let mut bytes = sent.clone();
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
    assert_eq!(nat.untranslate_out(&mut bytes, 0), Verdict::Translated);
    assert_eq!(bytes, sent);
    assert_eq!(nat.untranslate_out(&mut bytes, 0), Verdict::NoMapping);
}

#[test]
fn hairpinning_in_one_call() {
    let mut config = config(100);
    config.udp = Behaviour::FULL_CONE;
    let mut nat = Nat::new(config).unwrap();
    let server = host(1);
    let (_, port) = out(&mut nat, (server, 7_000), (REMOTE, 5_300), 0);
    let before = Ip::new(HOST, ALIAS).udp(5_000, port, b"hello");
    let mut bytes = before.clone();
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Hairpinned);
    let ip = Ipv4::new(bytes.as_slice()).unwrap();
    assert_eq!((ip.source(), ip.destination()), (ALIAS, server));
    let udp = Udp::new(ip.payload()).unwrap();
    assert_eq!(udp.destination_port(), 7_000);
    assert!(ip.checksum_is_right() && udp.checksum_is_right(ip.pseudo_header()));
    // And back, to the first one's endpoint outside.
    let mut answer = Ip::new(server, ALIAS).udp(7_000, udp.source_port(), b"hi");
    assert_eq!(nat.translate_out(&mut answer, 0), Verdict::Hairpinned);
    let ip = Ipv4::new(answer.as_slice()).unwrap();
    assert_eq!((ip.source(), ip.destination()), (ALIAS, HOST));
    let udp = Udp::new(ip.payload()).unwrap();
    assert_eq!((udp.source_port(), udp.destination_port()), (port, 5_000));
    // To a port of nobody: nothing is changed, and nothing stays behind.
    let flows = nat.statistics().flows;
    let before = Ip::new(HOST, ALIAS).udp(5_001, port ^ 1, b"hello");
    let mut bytes = before.clone();
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::NoMapping);
    assert_eq!((bytes, nat.statistics().flows), (before, flows));
}

#[test]
fn all_flows_are_forgotten_at_once_and_any_number_of_times() {
    let mut nat = Nat::new(config(1_000)).unwrap();
    for _ in 0..600 {
        let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0);
        assert_eq!(
            back(&mut nat, (REMOTE, 5_300), port, 0),
            Verdict::Translated
        );
        nat.forget_flows();
        assert_eq!(back(&mut nat, (REMOTE, 5_300), port, 0), Verdict::NoMapping);
    }
    nat.maintain(0, 1_000);
    assert_eq!(nat.statistics().flows, 0);
}

#[test]
fn events_tell_of_mappings_and_are_bounded() {
    let mut config = config(100);
    config.limits.events = 3;
    let mut nat = Nat::new(config).unwrap();
    for port in 1..=5 {
        out(&mut nat, (HOST, port), (REMOTE, 5_300), 0);
    }
    assert_eq!(nat.statistics().events_lost, 2);
    let event = nat.next_event().unwrap();
    assert_eq!(
        (event.kind, event.flow.inside_port),
        (crate::EventKind::Made, 1)
    );
    while nat.next_event().is_some() {}
    assert!(remove(&mut nat, (HOST, 2), (REMOTE, 5_300)));
    let event = nat.next_event().unwrap();
    assert_eq!(event.kind, crate::EventKind::Ended(Why::Removed));
    assert_eq!(event.flow.inside_port, 2);
}

#[test]
fn an_event_says_of_its_flow_what_a_lookup_says() {
    let mut config = config(100);
    config.limits.events = 2;
    let mut nat = Nat::new(config).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0);
    let (inside, remote) = (end((HOST, 1)), end((REMOTE, 5_300)));
    let look = |nat: &Nat| nat.lookup(Direction::Out, protocol::UDP, inside, remote);
    let made = nat.next_event().unwrap().flow;
    assert_eq!(Some(made), look(&nat));
    assert_eq!((made.inside, made.inside_port), inside);
    assert_eq!((made.remote, made.remote_port), remote);
    assert_eq!((made.alias, made.alias_port), end((ALIAS, port)));
    // Some of its time has passed, and it was answered.
    back(&mut nat, (REMOTE, 5_300), port, 10_000);
    nat.translate_out_batch(&mut [], 60_000);
    let last = look(&nat).unwrap();
    assert!(last.idle_millis > 0 && last.state == State::Udp);
    assert!(remove(&mut nat, (HOST, 1), (REMOTE, 5_300)));
    assert_eq!(nat.next_event().unwrap().flow, last);
}

#[test]
fn a_key_of_ipv6_finds_nothing_and_ends_nothing() {
    let mut config = config(100);
    config.udp = Behaviour::FULL_CONE;
    let mut nat = Nat::new(config).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0);
    let (inside, remote, alias) = (end((HOST, 1)), end((REMOTE, 5_300)), end((ALIAS, port)));
    let six = |(_, port)| (IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), port);
    let mapped = |(_, port)| (IpAddr::V6(HOST.to_ipv6_mapped()), port);
    let udp = protocol::UDP;
    for (inside, remote, is_there) in [
        (inside, remote, true),
        (six(inside), remote, false),
        (mapped(inside), remote, false),
        (inside, six(remote), false),
        (six(inside), six(remote), false),
    ] {
        let seen = nat.lookup(Direction::Out, udp, inside, remote);
        assert_eq!(seen.is_some(), is_there);
        let seen = nat.mapping(udp, inside, remote.0);
        assert_eq!(seen.is_some(), is_there);
    }
    assert!(!nat.remove(Direction::Out, udp, six(inside), remote));
    assert!(!nat.remove(Direction::In, udp, remote, six(alias)));
    assert!(nat.lookup(Direction::In, udp, remote, alias).is_some());
}

#[test]
fn shared_mappings_are_looked_up_and_listed() {
    for mapping in [Dependence::Endpoint, Dependence::Address] {
        let mut config = config(1_000);
        config.udp.mapping = mapping;
        let mut nat = Nat::new(config).unwrap();
        let other = Ipv4Addr::new(198, 51, 100, 8);
        let mut ports = Vec::new();
        for inside in 1..=200 {
            let (_, port) = out(&mut nat, (HOST, inside), (REMOTE, 5_300), 0);
            out(&mut nat, (HOST, inside), (REMOTE, 5_301), 0);
            ports.push((inside, port));
        }
        let is_any = mapping == Dependence::Endpoint;
        let inside = end((HOST, 7));
        let mapping = |remote| nat.mapping(protocol::UDP, inside, remote);
        let seen = mapping(REMOTE.into()).unwrap();
        assert_eq!((seen.alias, seen.alias_port), end((ALIAS, ports[6].1)));
        let remote = (!is_any).then_some(IpAddr::from(REMOTE));
        assert_eq!((seen.flows, seen.remote), (2, remote));
        assert_eq!(seen.expires_millis / 1_000, 120);
        let elsewhere = mapping(other.into());
        assert_eq!(elsewhere.is_some(), is_any);
        let list = |nat: &Nat| {
            let (mut rows, mut steps) = (Vec::new(), 0);
            let mut cursor = Some(Cursor::default());
            while let Some(from) = cursor {
                let mut sink = |row: &MappingView| rows.push((row.inside_port, row.alias_port));
                cursor = nat.mappings(from, 64, &mut sink);
                steps += 1;
            }
            assert!(steps <= 8);
            rows.sort_unstable();
            rows
        };
        assert_eq!(list(&nat), ports);
        assert!(remove(&mut nat, (HOST, 1), (REMOTE, 5_300)));
        assert!(remove(&mut nat, (HOST, 1), (REMOTE, 5_301)));
        assert_eq!(list(&nat), ports[1..]);
        nat.forget_flows();
        assert!(list(&nat).is_empty());
        assert_eq!(nat.mapping(protocol::UDP, inside, REMOTE.into()), None);
    }
}

#[test]
fn a_tcp_connection_is_seen_through_the_engine() {
    let mut nat = Nat::new(config(100)).unwrap();
    let mut segment = Segment {
        source_port: 4_000,
        destination_port: 80,
        flags: SYN,
        sequence: 10,
        window: 500,
        ..Segment::default()
    };
    let mut bytes = Ip::new(HOST, REMOTE).tcp(&segment);
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
    let ip = Ipv4::new(bytes.as_slice()).unwrap();
    let tcp = Tcp::new(ip.payload()).unwrap();
    assert!(tcp.checksum_is_right(ip.pseudo_header()));
    let answer = Segment {
        source_port: 80,
        destination_port: tcp.source_port(),
        flags: SYN | ACK,
        sequence: 70,
        acknowledgement: 11,
        window: 500,
        ..Segment::default()
    };
    let mut bytes = Ip::new(REMOTE, ALIAS).tcp(&answer);
    assert_eq!(nat.translate_in(&mut bytes, 0), Verdict::Translated);
    segment.flags = ACK;
    (segment.sequence, segment.acknowledgement) = (11, 71);
    let mut bytes = Ip::new(HOST, REMOTE).tcp(&segment);
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
    let (inside, remote) = (end((HOST, 4_000)), end((REMOTE, 80)));
    let view = nat.lookup(Direction::Out, protocol::TCP, inside, remote);
    assert_eq!(view.unwrap().state, State::TcpEstablished);
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = config(10);
        change(&mut config);
        Nat::new(config).is_err()
    };
    assert!(refused(|config| config.ports = 0..=5));
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let reversed = refused(|config| config.ports = 9..=5);
    assert!(reversed);
    assert!(refused(|config| config.limits.max_flows = 1 << 24));
    assert!(refused(|config| config.addresses = vec![ALIAS; 70_000]));
}
