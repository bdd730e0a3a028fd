//! What flows and shared mappings say of each other: each mapping has as
//! many flows as it counts, none is free that a flow belongs to.

use std::collections::BTreeMap;

use super::*;
use crate::mapping::Kind;
use crate::{Dependence, Protocol, Timeouts};

/// Holds the mappings' counts against the flows.
pub(super) fn audit(nat: &Nat) {
    super::blocks::audit(nat);
    audit_protocols(nat);
    let mut held = BTreeMap::<u32, (u32, u32)>::new();
    for name in 0..nat.table.places() as u32 {
        let flow = nat.table.get(name).unwrap();
        if !flow.has(flag::LIVE) {
            continue;
        }
        let mut hold = |name| {
            let (flows, long) = held.entry(name).or_default();
            *flows += 1;
            *long += u32::from(flow.state().lives_long());
        };
        if flow.has(flag::MAPPED) {
            hold(flow.mapping);
            let mapping = nat.mappings.get(flow.mapping).unwrap();
            let ends = (mapping.inside, mapping.inside_port);
            assert_eq!(ends, (flow.inside(), flow.inside_port()));
            let alias = (mapping.alias, mapping.alias_port);
            assert_eq!(alias, (flow.alias(), flow.alias_port()));
        }
        if flow.has(flag::PERMIT) {
            hold(flow.permit);
        }
    }
    let taken = nat.mappings.taken();
    assert_eq!(taken, held.keys().copied().collect::<Vec<_>>());
    assert_eq!(nat.mappings.len(), taken.len());
    for (name, flows) in held {
        let mapping = nat.mappings.get(name).unwrap();
        assert_eq!((mapping.flows, mapping.long), flows, "{name}");
    }
}

/// Each mapping that is there is counted for its protocol: a flow's own, and
/// those that flows share.
fn audit_protocols(nat: &Nat) {
    let mut there = [0; Protocol::ALL.len()];
    for name in 0..nat.table.places() as u32 {
        let flow = nat.table.get(name).unwrap();
        if flow.has(flag::LIVE) && !flow.has(flag::MAPPED) {
            there[Protocol::of(flow.protocol) as usize] += 1;
        }
    }
    for name in nat.mappings.taken() {
        let mapping = nat.mappings.get(name).unwrap();
        if mapping.kind == Kind::Mapping {
            there[Protocol::of(mapping.protocol) as usize] += 1;
        }
    }
    let counted = nat.statistics().protocols.map(|of| of.mappings);
    assert_eq!(counted, there);
}

fn shared() -> Config {
    let mut config = config(100);
    config.udp = Behaviour::FULL_CONE;
    config.tcp = Behaviour::FULL_CONE;
    config
}

fn tcp(nat: &mut Nat, remote: u16, flags: u8, now: u64) -> Verdict {
    let mut bytes = Ip::new(HOST, REMOTE).tcp(&Segment {
        source_port: 4_000,
        destination_port: remote,
        flags,
        ..Segment::default()
    });
    nat.translate_out(&mut bytes, now)
}

/// A segment of the flow of [`tcp`] that comes in.
fn tcp_in(nat: &mut Nat, remote: Ipv4Addr, ports: (u16, u16), flags: u8, now: u64) -> Verdict {
    let mut bytes = Ip::new(remote, ALIAS).tcp(&Segment {
        source_port: ports.0,
        destination_port: ports.1,
        flags,
        ..Segment::default()
    });
    nat.translate_in(&mut bytes, now)
}

#[test]
fn a_closed_connection_admits_nobody_beyond_its_own_time() {
    let mut config = shared();
    config.port_choice = crate::PortChoice::Same;
    let mut nat = Nat::new(config).unwrap();
    let stranger = Ipv4Addr::new(203, 0, 113, 9);
    let fin = packet::tcp::FIN | ACK;
    assert_eq!(tcp(&mut nat, 80, ACK, 0), Verdict::Translated);
    assert_eq!(
        tcp_in(&mut nat, REMOTE, (80, 4_000), ACK, 0),
        Verdict::Translated
    );
    // Established, it lives two hours and its mapping with it.
    let at = 3_600_000;
    assert_eq!(tcp(&mut nat, 80, fin, at), Verdict::Translated);
    assert_eq!(
        tcp_in(&mut nat, REMOTE, (80, 4_000), fin, at),
        Verdict::Translated
    );
    audit(&nat);
    // Closed, four minutes; nothing swept it meanwhile.
    let late = at + 242_000;
    assert_eq!(nat.statistics().flows, 1);
    assert_eq!(
        tcp_in(&mut nat, stranger, (1, 4_000), SYN, late),
        Verdict::NoMapping
    );
    let soon = at + 1_000;
    let mut nat = Nat::new(nat.config().clone()).unwrap();
    for (now, flags) in [(0, ACK), (at, fin)] {
        tcp(&mut nat, 80, flags, now);
        tcp_in(&mut nat, REMOTE, (80, 4_000), flags, now);
    }
    assert_eq!(
        tcp_in(&mut nat, stranger, (1, 4_000), SYN, soon),
        Verdict::Translated
    );
}

#[test]
fn the_flow_that_makes_room_may_be_the_last_of_the_mapping_that_is_joined() {
    let mut config = shared();
    config.limits.max_flows = 1;
    config.limits.at_cap = AtCap::Evict;
    let mut nat = Nat::new(config).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0);
    assert_eq!(
        out(&mut nat, (HOST, 1), (REMOTE, 5_301), 0),
        (Verdict::Translated, port)
    );
    audit(&nat);
    assert_eq!(nat.statistics().mappings, 1);
    assert_eq!(
        out(&mut nat, (host(1), 1), (REMOTE, 5_301), 0).0,
        Verdict::Translated
    );
    audit(&nat);
}

#[test]
fn the_sweep_may_end_the_last_flow_of_the_mapping_that_lets_a_packet_in() {
    let mut nat = Nat::new(shared()).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0);
    // The flow is dead by this, and its mapping does not know.
    nat.set_timeouts(Timeouts {
        udp_unreplied_secs: 1,
        ..Timeouts::default()
    });
    assert_eq!(
        back(&mut nat, (REMOTE, 5_301), port, 5_000),
        Verdict::Translated
    );
    audit(&nat);
    assert_eq!(
        out(&mut nat, (host(1), 1), (REMOTE, 5_301), 5_000).0,
        Verdict::Translated
    );
    audit(&nat);
}

#[test]
fn a_mapping_of_a_former_address_gets_no_new_flows() {
    let mut nat = Nat::new(shared()).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0);
    let other = Ipv4Addr::new(192, 0, 2, 2);
    nat.set_addresses(&[other]).unwrap();
    let mut bytes = Ip::new(HOST, REMOTE).udp(1, 54, b"data");
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
    assert_eq!(Ipv4::new(bytes.as_slice()).unwrap().source(), other);
    // The flow that was there stays.
    assert_eq!(out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0).1, port);
    assert_eq!(
        back(&mut nat, (REMOTE, 5_300), port, 0),
        Verdict::Translated
    );
    audit(&nat);
    nat.maintain(1_000_000, usize::MAX);
    audit(&nat);
    assert_eq!(nat.statistics().mappings, 0);
}

#[test]
fn the_port_of_a_flow_without_a_mapping_is_free_for_one_when_it_ends() {
    let mut config = shared();
    config.ports = 40_000..=40_099;
    config.limits.max_flows = 1_000;
    config.target = Some(host(9));
    config.mode.deny_incoming = false;
    let mut nat = Nat::new(config).unwrap();
    let port = 40_060;
    let verdict = back(&mut nat, (REMOTE, 5_300), port, 0);
    assert_eq!(verdict, Verdict::Translated);
    for number in 0..100 {
        let (verdict, _) = out(&mut nat, (host(10), 1 + number), (REMOTE, 5_300), 0);
        assert_eq!(verdict == Verdict::Translated, number < 99, "{number}");
    }
    let (remote, alias) = (end((REMOTE, 5_300)), end((ALIAS, port)));
    assert!(nat.remove(Direction::In, protocol::UDP, remote, alias));
    let made = out(&mut nat, (host(10), 200), (REMOTE, 5_300), 0);
    assert_eq!(made, (Verdict::Translated, port));
}

#[test]
fn a_call_without_packets_takes_the_time() {
    let mut nat = Nat::new(config(100)).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 1_000_000);
    // Back, which only this call sees, and on by more than the timeout.
    nat.translate_in_batch(&mut [], 500_000);
    assert_eq!(
        back(&mut nat, (REMOTE, 5_300), port, 700_000),
        Verdict::NoMapping
    );
}

#[test]
fn mappings_and_flows_agree_whatever_is_done() {
    let depend = [
        Dependence::Endpoint,
        Dependence::Address,
        Dependence::AddressAndPort,
    ];
    let other = Ipv4Addr::new(192, 0, 2, 2);
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut below = |bound: u32| random.below(bound);
        let mut config = shared();
        config.seed = seed;
        config.limits.max_flows = 4 + below(60) as usize;
        config.limits.at_cap = [AtCap::Evict, AtCap::Refuse][below(2) as usize];
        config.ports = 40_000..=[40_003, 40_099][below(2) as usize];
        config.target = (below(2) == 0).then_some(host(3));
        config.mode.deny_incoming = config.target.is_none();
        let mut nat = Nat::new(config).unwrap();
        let mut now = 0;
        for _ in 0..600 {
            now += u64::from(below(2_000));
            let source = (host(below(4)), 1 + below(3) as u16);
            let to = (
                Ipv4Addr::from(u32::from(REMOTE) + below(3)),
                53 + below(3) as u16,
            );
            match below(40) {
                0 => nat.forget_flows(),
                1 => nat
                    .set_addresses(&[[ALIAS, other][below(2) as usize]])
                    .unwrap(),
                2 => {
                    let mapping = depend[below(3) as usize];
                    let filtering = depend[below(3) as usize].max(mapping);
                    nat.set_udp(Behaviour { mapping, filtering });
                }
                3 => nat.set_timeouts(Timeouts {
                    udp_unreplied_secs: 1 + below(100),
                    udp_secs: 1 + below(100),
                    tcp_reset_secs: 1 + below(100),
                    ..Timeouts::default()
                }),
                4 => now += 100_000,
                5 => drop(nat.maintain(now, below(100) as usize)),
                6 => drop(remove(&mut nat, source, to)),
                7..15 => {
                    let flags = [SYN, ACK, packet::tcp::RST][below(3) as usize];
                    tcp(&mut nat, to.1, flags, now);
                }
                15..28 => drop(out(&mut nat, source, to, now)),
                _ => drop(back(&mut nat, to, 40_000 + below(8) as u16, now)),
            }
            audit(&nat);
        }
        nat.maintain(now + 100_000_000, usize::MAX);
        audit(&nat);
        assert_eq!(nat.statistics().flows + nat.statistics().mappings, 0);
        let counted = nat.ports.counted();
        assert_eq!(counted, 0, "ports of no flow are counted as used");
    }
}
