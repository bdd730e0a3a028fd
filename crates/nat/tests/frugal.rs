//! Ports to one remote through one address, in virtual time: what is over or
//! was never answered gives its port up, and strangers are nobody's loss.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by it"
)]

use std::net::Ipv4Addr;

use fingerpost_nat::{Behaviour, Config, Direction, Nat, State, Verdict};
use packet::build::{Ip, Segment};
use packet::tcp::{ACK, FIN, SYN};
use packet::{Ipv4, Tcp, Udp, protocol};

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

type End = (Ipv4Addr, u16);

fn host(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + number)
}

fn nat(change: impl FnOnce(&mut Config)) -> Nat {
    let mut config = Config::new(&[ALIAS]);
    config.limits.initial_flows = 0;
    config.seed = 11;
    change(&mut config);
    Nat::new(config).unwrap()
}

fn udp(nat: &mut Nat, direction: Direction, from: End, to: End, now: u64) -> (Verdict, End, End) {
    let mut bytes = Ip::new(from.0, to.0).udp(from.1, to.1, b"data");
    let verdict = match direction {
        Direction::Out => nat.translate_out(&mut bytes, now),
        Direction::In => nat.translate_in(&mut bytes, now),
    };
    let ip = Ipv4::new(&bytes[..]).unwrap();
    let udp = Udp::new(ip.payload()).unwrap();
    let ends = (udp.source_port(), udp.destination_port());
    (verdict, (ip.source(), ends.0), (ip.destination(), ends.1))
}

fn tcp(
    nat: &mut Nat,
    ends: (End, End),
    numbers: (u32, u32),
    flags: u8,
    now: u64,
) -> (Verdict, u16) {
    let (from, to) = ends;
    let mut bytes = Ip::new(from.0, to.0).tcp(&Segment {
        source_port: from.1,
        destination_port: to.1,
        sequence: numbers.0,
        acknowledgement: numbers.1,
        flags,
        window: 60_000,
        ..Segment::default()
    });
    let verdict = match to.0 == ALIAS {
        false => nat.translate_out(&mut bytes, now),
        true => nat.translate_in(&mut bytes, now),
    };
    let ip = Ipv4::new(&bytes[..]).unwrap();
    (verdict, Tcp::new(ip.payload()).unwrap().source_port())
}

/// A connection that is opened and closed by the inside; false: refused.
fn connection(nat: &mut Nat, inside: End, remote: End, isn: u32, now: u64) -> bool {
    let (verdict, port) = tcp(nat, (inside, remote), (isn, 0), SYN, now);
    if verdict != Verdict::Translated {
        return false;
    }
    let (out, back) = ((inside, remote), (remote, (ALIAS, port)));
    for (ends, numbers, flags) in [
        (back, (9_000, isn + 1), SYN | ACK),
        (out, (isn + 1, 9_001), ACK),
        (out, (isn + 1, 9_001), FIN | ACK),
        (back, (9_001, isn + 2), FIN | ACK),
        (out, (isn + 2, 9_002), ACK),
    ] {
        let (verdict, _) = tcp(nat, ends, numbers, flags, now);
        assert_eq!(verdict, Verdict::Translated);
    }
    true
}

/// A thousand connections and five hundred questions a second, each to one
/// endpoint, behind one address: how many of each are refused.
fn seconds(nat: &mut Nat, seconds: u32) -> (u32, u32) {
    let (web, resolver) = ((REMOTE, 443), (REMOTE, 53));
    let (mut refused_tcp, mut refused_udp) = (0, 0);
    for number in 0..1_000 * seconds {
        let now = u64::from(number);
        let inside = (host(number % 20_000), 1_024 + (number / 20_000) as u16);
        let isn = number.wrapping_mul(0x9e37_79b1) >> 1;
        refused_tcp += u32::from(!connection(nat, inside, web, isn, now));
        if number % 2 == 0 {
            let (verdict, alias, _) = udp(nat, Direction::Out, inside, resolver, now);
            if verdict != Verdict::Translated {
                refused_udp += 1;
                continue;
            }
            let (verdict, _, back) = udp(nat, Direction::In, resolver, alias, now);
            assert_eq!((verdict, back), (Verdict::Translated, inside));
        }
    }
    (refused_tcp, refused_udp)
}

#[test]
fn ten_minutes_of_short_connections_and_questions_are_served() {
    let mut nat = nat(|_| {});
    assert_eq!(seconds(&mut nat, 600), (0, 0));
    assert!(nat.statistics().flows_evicted > 400_000);
}

#[test]
fn the_same_with_endpoint_independent_mapping() {
    let mut nat = nat(|config| {
        (config.tcp, config.udp) = (Behaviour::FULL_CONE, Behaviour::FULL_CONE);
    });
    assert_eq!(seconds(&mut nat, 180), (0, 0));
}

#[test]
fn the_same_in_a_range_without_a_map() {
    let mut nat = nat(|config| config.ports = 40_000..=40_049);
    let web = (REMOTE, 443);
    for number in 0..500_u16 {
        let now = 30 * u64::from(number);
        let inside = (host(1), 1_024 + number);
        assert!(connection(&mut nat, inside, web, 7, now), "{number}");
    }
}

/// What was answered and is not over keeps its port.
#[test]
fn conversations_keep_their_ports() {
    for ports in [40_000..=40_049, 40_000..=40_999] {
        let many = ports.len() as u16;
        let mut nat = nat(|config| config.ports = ports);
        let mut aliases = Vec::new();
        for number in 0..many {
            let inside = (host(number.into()), 5_000);
            let (verdict, alias, _) = udp(&mut nat, Direction::Out, inside, (REMOTE, 9), 0);
            assert_eq!(verdict, Verdict::Translated);
            aliases.push((alias, inside));
        }
        // One of them is not answered.
        let (lost, kept) = aliases.split_last().unwrap();
        for (alias, inside) in kept {
            let (verdict, _, back) = udp(&mut nat, Direction::In, (REMOTE, 9), *alias, 10);
            assert_eq!((verdict, back), (Verdict::Translated, *inside));
        }
        let more = |nat: &mut Nat, port, now| {
            udp(nat, Direction::Out, (host(60_000), port), (REMOTE, 9), now)
        };
        // Just now it might be answered still.
        assert_eq!(more(&mut nat, 1, 500).0, Verdict::PortsExhausted);
        let mut given = None;
        for port in 2..1_000 {
            let (verdict, alias, _) = more(&mut nat, port, 5_000);
            if verdict == Verdict::Translated {
                assert_eq!(given.replace(alias), None);
            }
        }
        assert_eq!(given, Some(lost.0));
        for (alias, inside) in kept {
            let (verdict, _, back) = udp(&mut nat, Direction::In, (REMOTE, 9), *alias, 6_000);
            assert_eq!((verdict, back), (Verdict::Translated, *inside));
        }
    }
}

/// A server in TIME-WAIT takes a SYN that begins behind what it has seen.
#[test]
fn a_connection_follows_one_that_the_server_has_behind_it() {
    let mut nat = nat(|config| config.ports = 40_000..=40_199);
    let web = (REMOTE, 443);
    let mut ports = Vec::new();
    for number in 0..200_u16 {
        // Every eighth ended with low numbers.
        let isn = if number % 8 == 7 {
            1_000
        } else {
            2_000_000_000
        };
        let inside = (host(1), 1_024 + number);
        assert!(connection(&mut nat, inside, web, isn, number.into()));
        let flow = nat.lookup(
            Direction::Out,
            protocol::TCP,
            (inside.0.into(), inside.1),
            (web.0.into(), web.1),
        );
        let flow = flow.unwrap();
        assert_eq!(flow.state, State::TcpClosed);
        ports.push((flow.alias_port, isn));
    }
    let ends = ((host(2), 9_999), web);
    let (verdict, port) = tcp(&mut nat, ends, (5_000, 0), SYN, 20_000);
    assert_eq!(verdict, Verdict::Translated);
    assert!(ports.contains(&(port, 1_000)), "port {port}");
}

fn open(max_flows: usize) -> Nat {
    nat(|config| {
        (config.tcp, config.udp) = (Behaviour::FULL_CONE, Behaviour::FULL_CONE);
        config.limits.max_flows = max_flows;
    })
}

/// Strangers send to an open mapping, some answered by the inside; hosts
/// inside speak with their remotes and begin new conversations.
fn strangers(many: u32) {
    let mut nat = open(10_000);
    let inside = (host(0), 4_000);
    let (_, hole, _) = udp(&mut nat, Direction::Out, inside, (REMOTE, 9), 0);
    let mut talks = Vec::new();
    for number in 0..many {
        let now = u64::from(number / 100);
        let stranger = (Ipv4Addr::from(0x0c00_0000 + number), 7);
        let (verdict, _, to) = udp(&mut nat, Direction::In, stranger, hole, now);
        assert_eq!((verdict, to), (Verdict::Translated, inside), "{number}");
        if number % 3 == 0 {
            let (verdict, from, _) = udp(&mut nat, Direction::Out, inside, stranger, now);
            assert_eq!((verdict, from), (Verdict::Translated, hole));
        }
        if number % (many / 1_000) == 0 {
            let new = (host(1 + number / 1_000), 5_000 + (number % 1_000) as u16);
            let (verdict, alias, _) = udp(&mut nat, Direction::Out, new, (REMOTE, 53), now);
            assert_eq!(verdict, Verdict::Translated, "{number}");
            let (verdict, alias2, _) = udp(&mut nat, Direction::Out, new, (REMOTE, 99), now);
            assert_eq!((verdict, alias2), (Verdict::Translated, alias));
            talks.push((new, alias));
        }
        let statistics = nat.statistics();
        assert!(statistics.strangers <= 2_501, "{statistics:?}");
        assert!(statistics.flows <= 10_000);
    }
    let now = u64::from(many / 100);
    for (inside, alias) in talks {
        let (verdict, _, to) = udp(&mut nat, Direction::In, (REMOTE, 99), alias, now);
        assert_eq!((verdict, to), (Verdict::Translated, inside));
    }
    assert!(nat.statistics().flows_evicted > u64::from(many) / 3);
}

#[test]
fn twenty_thousand_strangers_are_not_noticed_inside() {
    strangers(20_000);
}

#[test]
fn a_million_strangers_are_not_noticed_inside() {
    strangers(1_000_000);
}

/// With as many flows of the inside as there may be strangers give way, and
/// a stranger is refused before any of them.
#[test]
fn the_inside_may_have_the_whole_table() {
    let mut nat = open(1_000);
    let (_, hole, _) = udp(&mut nat, Direction::Out, (host(0), 1), (REMOTE, 9), 0);
    let stranger = |nat: &mut Nat, number: u32, now| {
        let from = (Ipv4Addr::from(0x0c00_0000 + number), 7);
        udp(nat, Direction::In, from, hole, now).0
    };
    for number in 0..2_000 {
        assert_eq!(stranger(&mut nat, number, 0), Verdict::Translated);
    }
    for number in 1..1_000 {
        let (verdict, _, _) = udp(&mut nat, Direction::Out, (host(number), 1), (REMOTE, 9), 1);
        assert_eq!(verdict, Verdict::Translated, "{number}");
    }
    assert_eq!(nat.statistics().strangers, 0);
    assert_eq!(stranger(&mut nat, 5_000, 2), Verdict::TableFull);
}

fn full_cone(config: &mut Config) {
    config.udp = Behaviour::FULL_CONE;
}

/// A mapping of a host that has ended; its port.
fn mapping_that_ends(nat: &mut Nat, number: u32, now: u64) -> u16 {
    let out = udp(nat, Direction::Out, (host(number), 4_000), (REMOTE, 9), now);
    assert_eq!(out.0, Verdict::Translated);
    out.1.1
}

#[test]
fn the_port_of_an_open_mapping_rests_before_another_host_gets_it() {
    let mut nat = nat(|config| {
        full_cone(config);
        config.ports = 40_000..=40_009;
    });
    let first = mapping_that_ends(&mut nat, 1, 0);
    // Its two minutes are over, those of its port not yet: the others come
    // first, which are nine.
    for number in 2..11 {
        assert_ne!(mapping_that_ends(&mut nat, number, 125_000), first);
    }
    // With no other left the port is better than none.
    assert_eq!(mapping_that_ends(&mut nat, 11, 126_000), first);
}

#[test]
fn a_port_that_has_rested_is_given_again() {
    let given = |hold: u32, after: u64| {
        let mut nat = nat(|config| {
            full_cone(config);
            config.ports = 40_000..=40_001;
            config.hold_down_secs = hold;
        });
        let first = mapping_that_ends(&mut nat, 1, 0);
        let mut same = 0;
        for round in 0..32 {
            let now = 10_000_000 * round;
            mapping_that_ends(&mut nat, 1, now);
            same += u32::from(mapping_that_ends(&mut nat, 2 + round as u32, now + after) == first);
        }
        same
    };
    // With a choice of two, at random: after the rest, or without one.
    let (rested, none) = (given(120, 245_000), given(0, 125_000));
    assert!((4..29).contains(&rested), "{rested}");
    assert!((4..29).contains(&none), "{none}");
}

#[test]
fn what_comes_in_keeps_a_mapping_alive_only_where_it_may() {
    for (refresh, mapped) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut nat = nat(|config| {
            config.inbound_refresh = refresh;
            if mapped {
                full_cone(config);
            }
        });
        let (inside, server) = ((host(1), 4_000), (REMOTE, 9));
        let (_, alias, _) = udp(&mut nat, Direction::Out, inside, server, 0);
        for now in 1..30 {
            let (verdict, _, to) = udp(&mut nat, Direction::In, server, alias, now * 10_000);
            assert_eq!((verdict, to), (Verdict::Translated, inside), "{now}");
        }
        // Five minutes and a half after the inside's last packet.
        let late = udp(&mut nat, Direction::In, server, alias, 330_000).0;
        assert_eq!(late == Verdict::Translated, refresh, "mapped: {mapped}");
        if refresh {
            continue;
        }
        // The inside's own packets keep it alive as ever.
        for now in 2..9 {
            let out = udp(&mut nat, Direction::Out, inside, server, now * 200_000 + 1);
            assert_eq!(out.0, Verdict::Translated);
            let back = udp(&mut nat, Direction::In, server, out.1, now * 200_000 + 2);
            assert_eq!(back.0, Verdict::Translated);
        }
    }
}

#[test]
fn a_pair_of_udp_ports_keeps_its_parity_beside_a_taken_port() {
    let mut nat = nat(|config| config.port_choice = fingerpost_nat::PortChoice::Same);
    for number in 0..40 {
        let inside = (host(number), 40_002 + (number % 2) as u16);
        let out = udp(&mut nat, Direction::Out, inside, (REMOTE, 9), 0);
        assert_eq!(out.1.1 & 1, inside.1 & 1, "{number}");
    }
}

/// Conversations of two minutes, so many at a time, for so many seconds: how
/// many found no room. `number` tells them apart, from one call to the next.
fn crowd(nat: &mut Nat, number: &mut u32, at_a_time: u32, from: u64, secs: u64) -> (u32, u32) {
    let (mut asked, mut refused) = (0, 0);
    let per_lifetime = u64::from(at_a_time);
    let mut now = from;
    while now < from + secs * 1_000 {
        // An even pace: the next one begins a part of a lifetime later.
        let inside = (host(*number % 50_000), 1_024 + (*number / 50_000) as u16);
        let remote = Ipv4Addr::from(0xc633_0000 + *number % 60_000);
        let (verdict, _, _) = udp(nat, Direction::Out, inside, (remote, 9_000), now);
        assert!(matches!(verdict, Verdict::Translated | Verdict::TableFull));
        asked += 1;
        refused += u32::from(verdict == Verdict::TableFull);
        *number += 1;
        now = from + u64::from(asked) * 121_000 / per_lifetime;
    }
    (asked, refused)
}

#[test]
fn up_to_the_limit_nobody_is_refused_and_beyond_it_as_many_as_are_too_many() {
    let most = 20_000;
    let mut nat = nat(|config| config.limits.max_flows = most as usize);
    let mut number = 0;
    // At 97 of 100, for ten lifetimes.
    let (_, refused) = crowd(&mut nat, &mut number, most * 97 / 100, 0, 1_200);
    assert_eq!(refused, 0);
    // A tenth beyond: of eleven one is too many, and hardly another one is refused.
    let (_, _) = crowd(&mut nat, &mut number, most * 11 / 10, 1_200_000, 600);
    let (asked, refused) = crowd(&mut nat, &mut number, most * 11 / 10, 1_800_000, 1_200);
    let share = f64::from(refused) / f64::from(asked);
    assert!((0.08..0.11).contains(&share), "{refused} of {asked}");
    assert!(nat.statistics().flows <= most as usize);
    // And back: once those that are too many have ended.
    crowd(&mut nat, &mut number, most * 97 / 100, 3_000_000, 240);
    let (_, refused) = crowd(&mut nat, &mut number, most * 97 / 100, 3_240_000, 1_200);
    assert_eq!(refused, 0);
}
