//! Adopted flows: they are translated as by the engine that is gone, nobody
//! else gets their ends, and what they hold is given back.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use packet::tcp::{FIN, RST};

use super::*;
use crate::blocks::{Deterministic, Key as Secret};
use crate::rules::{Redirect, Server};
use crate::{AddressRange, BlockEventKind, Blocks, Owner, Pooling, Timeouts};

mod refused;

const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const FAR: (Ipv4Addr, u16) = (REMOTE, 5_300);
/// Longer than any flow lives.
const LATE: u64 = 100_000_000;

fn segment((source_port, destination_port): (u16, u16), flags: u8) -> Segment<'static> {
    Segment {
        source_port,
        destination_port,
        flags,
        sequence: 1_000,
        acknowledgement: if flags & ACK == 0 { 0 } else { 1_000 },
        window: 1_000,
        ..Segment::default()
    }
}

/// A packet of a flow, as it comes in its direction.
fn packet(flow: &Offloaded, direction: Direction, flags: u8) -> Vec<u8> {
    let (ip, ports) = match direction {
        Direction::Out => (
            Ip::new(flow.inside, flow.remote),
            (flow.inside_port, flow.remote_port),
        ),
        Direction::In => (
            Ip::new(flow.remote, flow.alias),
            (flow.remote_port, flow.alias_port),
        ),
    };
    match flow.protocol {
        protocol::TCP => ip.tcp(&segment(ports, flags)),
        _ => ip.udp(ports.0, ports.1, b"data"),
    }
}

fn send(nat: &mut Nat, flow: &Offloaded, direction: Direction, now: u64) -> (Verdict, Vec<u8>) {
    let mut bytes = packet(flow, direction, ACK);
    let verdict = match direction {
        Direction::Out => nat.translate_out(&mut bytes, now),
        Direction::In => nat.translate_in(&mut bytes, now),
    };
    (verdict, bytes)
}

/// What an engine knows of a flow by a packet of a direction.
fn view(nat: &Nat, flow: &Offloaded, direction: Direction) -> Option<FlowView> {
    let inside = end((flow.inside, flow.inside_port));
    let alias = end((flow.alias, flow.alias_port));
    let remote = end((flow.remote, flow.remote_port));
    match direction {
        Direction::Out => nat.lookup(direction, flow.protocol, inside, remote),
        Direction::In => nat.lookup(direction, flow.protocol, remote, alias),
    }
}

fn ends_of(view: &FlowView) -> Offloaded {
    let ip = |address| match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => unreachable!(),
    };
    Offloaded {
        protocol: view.protocol,
        inside: ip(view.inside),
        inside_port: view.inside_port,
        remote: ip(view.remote),
        remote_port: view.remote_port,
        alias: ip(view.alias),
        alias_port: view.alias_port,
    }
}

/// Offloads all that may be: each flow has a packet of each side first.
fn lend_all(nat: &mut Nat, now: u64) -> Vec<Offloaded> {
    let mut all = Vec::new();
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        cursor = nat.flows(from, 64, &mut |view| all.push(ends_of(view)));
    }
    let all = all
        .into_iter()
        .filter(|flow| matches!(flow.protocol, protocol::TCP | protocol::UDP));
    let mut lent = Vec::new();
    for flow in all {
        send(nat, &flow, Direction::In, now);
        let (verdict, bytes) = send(nat, &flow, Direction::Out, now);
        while nat.next_recalled().is_some() {}
        if verdict == Verdict::Translated {
            lent.extend(nat.offload(Direction::Out, &bytes));
        }
    }
    lent
}

/// Packets of some hosts, their answers, and packets from outside.
fn traffic(nat: &mut Nat, random: &mut Random, first_host: u32, now: u64) {
    let ports = [1_000, 1_001, 1_002, 40_001, 40_002];
    let remotes = |random: &mut Random| {
        let address = Ipv4Addr::from(u32::from(REMOTE) + random.below(3));
        (address, 5_300 + random.below(3) as u16)
    };
    for _ in 0..150 {
        let source = (
            host(first_host + random.below(6)),
            ports[random.below(5) as usize],
        );
        let to = remotes(random);
        let flow = Offloaded {
            protocol: [protocol::TCP, protocol::UDP][random.below(2) as usize],
            inside: source.0,
            inside_port: source.1,
            remote: to.0,
            remote_port: to.1,
            alias: [ALIAS, OTHER][random.below(2) as usize],
            alias_port: [8_080, 8_081, 40_001, 40_100][random.below(4) as usize],
        };
        let direction = [Direction::Out, Direction::Out, Direction::In][random.below(3) as usize];
        send(nat, &flow, direction, now);
    }
}

/// Settings, and the rules that go with them.
type Kind = (&'static str, fn(&mut Config), fn(&mut Nat));

fn blocks(size: u16, most: u8) -> Option<Blocks> {
    Some(Blocks {
        size,
        most,
        ..Blocks::default()
    })
}

fn deterministic(config: &mut Config, key: Option<Secret>) {
    config.udp = Behaviour::FULL_CONE;
    config.subscribers.inside = vec![AddressRange::of_prefix(HOST, 27)];
    config.ports = 40_000..=40_999;
    config.addresses = vec![ALIAS, OTHER];
    config.blocks = blocks(16, 3);
    if let Some(blocks) = &mut config.blocks {
        blocks.deterministic = Some(Deterministic {
            ratio: 0,
            dynamic: 16,
            key,
        });
    }
}

fn redirects(nat: &mut Nat) {
    let rules = nat.rules_mut();
    for (port, inside_port) in [(8_080, 1_000), (8_081, 1_001), (40_100, 7)] {
        for protocol in [protocol::TCP, protocol::UDP] {
            let redirect = Redirect::port(protocol, HOST, inside_port, port);
            rules.insert(redirect.at(ALIAS)).unwrap();
        }
    }
    // Several servers behind one address, and a host with its own.
    let pool = Redirect::port(protocol::TCP, host(3), 1_000, 8_080).at(OTHER);
    let pool = rules.insert(pool).unwrap();
    for number in [3, 4] {
        let server = Server {
            address: host(number),
            port: 1_000,
        };
        rules.add_server(pool, server).unwrap();
    }
    let own = Ipv4Addr::new(192, 0, 2, 3);
    rules.insert(Redirect::address(host(5), own)).unwrap();
}

const KINDS: [Kind; 13] = [
    ("default", |_| {}, |_| {}),
    (
        "endpoint independent",
        |config| {
            config.udp = Behaviour::FULL_CONE;
            config.tcp = Behaviour::FULL_CONE;
        },
        |_| {},
    ),
    (
        "address dependent",
        |config| {
            config.udp.mapping = Dependence::Address;
            config.udp.filtering = Dependence::Address;
            config.tcp.mapping = Dependence::Endpoint;
            config.tcp.filtering = Dependence::Address;
        },
        |_| {},
    ),
    (
        "same ports",
        |config| config.port_choice = PortChoice::Same,
        |_| {},
    ),
    (
        "same ports, endpoint independent",
        |config| {
            config.port_choice = PortChoice::Same;
            config.udp = Behaviour::FULL_CONE;
        },
        |_| {},
    ),
    ("blocks", |config| config.blocks = blocks(16, 8), |_| {}),
    (
        "blocks, endpoint independent, by pairs of hosts",
        |config| {
            config.udp = Behaviour::FULL_CONE;
            config.blocks = blocks(32, 4);
            config.subscribers.bits = 31;
            config.addresses = vec![ALIAS, OTHER];
        },
        |_| {},
    ),
    (
        "deterministic",
        |config| deterministic(config, None),
        |_| {},
    ),
    (
        "shuffled",
        |config| deterministic(config, Some(Secret([3; 16]))),
        |_| {},
    ),
    (
        "paired",
        |config| config.addresses = vec![ALIAS, OTHER],
        |_| {},
    ),
    (
        "any of several",
        |config| {
            config.addresses = vec![ALIAS, OTHER];
            config.pooling = Pooling::Arbitrary;
            config.udp = Behaviour::FULL_CONE;
            config.blocks = blocks(16, 4);
        },
        |_| {},
    ),
    (
        "redirects",
        |config| {
            config.addresses = vec![ALIAS, OTHER];
            config.mode.deny_incoming = false;
        },
        redirects,
    ),
    (
        "redirects and blocks",
        |config| {
            config.addresses = vec![ALIAS, OTHER];
            config.udp = Behaviour::FULL_CONE;
            config.target = Some(host(2));
            config.mode.deny_incoming = false;
            config.blocks = blocks(16, 8);
            config.subscribers.quotas.sessions.all = 1_000;
        },
        redirects,
    ),
];

fn engine((_, set, lay): &Kind, seed: u64) -> Nat {
    let mut config = config(2_000);
    config.seed = seed;
    config.ports = 40_000..=40_999;
    config.limits.block_events = 1_000;
    set(&mut config);
    let mut nat = Nat::new(config).unwrap();
    lay(&mut nat);
    nat
}

/// An engine after some traffic, another one that adopted its flows, and
/// those.
fn adopted(kind: &Kind, seed: u64, other_seed: u64) -> (Nat, Nat, Vec<Offloaded>) {
    let mut random = Random::new(seed);
    let mut nat = engine(kind, seed);
    traffic(&mut nat, &mut random, 0, 5_000);
    let mut lent = lend_all(&mut nat, 6_000);
    assert!(lent.len() > 20, "{}: {}", kind.0, lent.len());
    for at in 0..lent.len() {
        let to = random.below(lent.len() as u32) as usize;
        lent.swap(at, to);
    }
    let mut other = engine(kind, other_seed);
    for flow in &lent {
        let adopted = other.adopt(flow, 1_000, 7_000);
        assert_eq!(adopted, Ok(()), "{}: {flow:?}", kind.0);
        super::books::audit(&other);
    }
    (nat, other, lent)
}

#[test]
fn they_are_translated_as_before() {
    for kind in &KINDS {
        for seed in 0..20 {
            // By the hashes of a start anew, too.
            let (mut nat, mut other, lent) = adopted(kind, seed, seed + seed % 2);
            assert_eq!(other.statistics().flows, lent.len());
            assert_eq!(other.statistics().flows_made, 0);
            for flow in &lent {
                for direction in [Direction::Out, Direction::In] {
                    let seen = view(&other, flow, direction).unwrap();
                    assert_eq!(ends_of(&seen), *flow, "{}", kind.0);
                    let state = match flow.protocol {
                        protocol::TCP => State::TcpEstablished,
                        _ => State::Udp,
                    };
                    assert_eq!((seen.state, seen.idle_millis / 1_024), (state, 1));
                }
            }
            for flow in &lent {
                for direction in [Direction::In, Direction::Out, Direction::In] {
                    let before = send(&mut nat, flow, direction, 8_000);
                    assert_eq!(before.0, Verdict::Translated);
                    assert_eq!(send(&mut other, flow, direction, 8_000), before);
                }
                let (_, bytes) = send(&mut other, flow, Direction::Out, 8_000);
                assert_eq!(other.offload(Direction::Out, &bytes), Some(*flow));
            }
            super::books::audit(&other);
        }
    }
}

/// Each subscriber's alias ends are its own; with a remote's, each flow's.
#[test]
fn nobody_else_gets_their_ends() {
    for kind in &KINDS {
        for seed in 0..20 {
            let (_, mut other, lent) = adopted(kind, seed, seed + seed % 2);
            let mut random = Random::new(seed + 1_000);
            // The same hosts and others.
            traffic(&mut other, &mut random, 0, 8_000);
            traffic(&mut other, &mut random, 8, 8_000);
            super::books::audit(&other);
            let mut keys = HashSet::new();
            let mut shared = BTreeMap::new();
            let sharing = |of: u8| other.behaviour(of).unwrap().mapping == Dependence::Endpoint;
            let mut check = |view: &FlowView| {
                let flow = ends_of(view);
                let alias = (flow.protocol, flow.alias, flow.alias_port);
                assert!(keys.insert((alias, flow.remote, flow.remote_port)));
                let is_laid = !other.rules.is_empty();
                if sharing(flow.protocol) && !is_laid {
                    let inside = (flow.inside, flow.inside_port);
                    assert_eq!(*shared.entry(alias).or_insert(inside), inside, "{}", kind.0);
                }
            };
            other.flows(Cursor::default(), usize::MAX, &mut check);
            for flow in &lent {
                match view(&other, flow, Direction::In) {
                    Some(seen) => assert_eq!(ends_of(&seen), *flow, "{}", kind.0),
                    // A datagram to the target ends what goes out by its ends.
                    None => assert_eq!(Some(flow.inside), other.config().target),
                }
            }
        }
    }
}

#[test]
fn a_new_flow_of_a_shared_mapping_goes_by_it() {
    let kind = &KINDS[1];
    let (_, mut other, lent) = adopted(kind, 1, 2);
    for flow in &lent {
        let next = Offloaded {
            remote: Ipv4Addr::new(203, 0, 113, 9),
            ..*flow
        };
        send(&mut other, &next, Direction::Out, 8_000);
        let seen = view(&other, &next, Direction::Out).unwrap();
        assert_eq!(
            (seen.alias, seen.alias_port),
            end((flow.alias, flow.alias_port))
        );
        // And in, from anybody.
        let asked = Offloaded {
            remote: Ipv4Addr::new(203, 0, 113, 10),
            ..*flow
        };
        assert_eq!(
            send(&mut other, &asked, Direction::In, 8_000).0,
            Verdict::Translated
        );
    }
    super::books::audit(&other);
}

#[test]
fn what_they_hold_is_given_back() {
    for kind in &KINDS {
        for seed in 0..10 {
            let (_, mut other, lent) = adopted(kind, seed, seed + 1);
            assert!(other.ports.counted() > 0);
            other.maintain(LATE, usize::MAX);
            other.maintain(2 * LATE, usize::MAX);
            super::books::audit(&other);
            let statistics = other.statistics();
            assert_eq!((statistics.flows, statistics.mappings), (0, 0));
            assert_eq!(statistics.protocols.map(|of| of.mappings), [0; 4]);
            assert_eq!(other.ports.counted(), 0);
            if let Some(tracked) = &other.tracked {
                let all = (0..tracked.subscribers.places() as u32)
                    .filter_map(|name| tracked.subscribers.get(name));
                for entry in all {
                    let counts = (entry.ports, entry.sessions, entry.half_open);
                    assert_eq!((counts, entry.blocks), (([0; 3], [0; 3], [0; 2]), 0));
                }
                let pool = tracked.pool.as_ref().unwrap();
                let fixed = (0..pool.places() as u32)
                    .filter(|block| pool.is_fixed(*block) && pool.get(*block).unwrap().owner > 0);
                assert_eq!(pool.taken(), fixed.count());
            }
            // Ends can be had again, by others as well.
            let is_laid = !other.rules.is_empty() || kind.0.starts_with("same");
            let is_fixed = generated::is_reckoned(other.config());
            for flow in &lent {
                let again = match is_laid || is_fixed {
                    true => *flow,
                    false => Offloaded {
                        inside: Ipv4Addr::from(u32::from(flow.inside) + 64),
                        ..*flow
                    },
                };
                assert_eq!(other.adopt(&again, 0, 2 * LATE), Ok(()), "{}", kind.0);
            }
            super::books::audit(&other);
        }
    }
}

/// Engines of all kinds, whose settings changed under their flows: what is
/// adopted is as it was, and the books are right whatever is not.
#[test]
fn the_books_are_right_whatever_is_adopted() {
    let (mut adopted, mut refused) = (0, 0);
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut nat = Nat::new(generated::config(&mut random, seed)).unwrap();
        let mut now = 0;
        for _ in 0..200 {
            generated::step(&mut nat, &mut random, &mut now);
        }
        let lent = lend_all(&mut nat, now);
        let mut config = nat.config().clone();
        config.seed += u64::from(random.below(2));
        let mut other = Nat::new(config).unwrap();
        let mut kept = Vec::new();
        for flow in lent {
            match other.adopt(&flow, 0, now) {
                Ok(()) => kept.push(flow),
                // Its address has left the pool.
                Err(NotAdopted::Alias) => assert!(!other.is_alias(flow.alias)),
                // Quotas that changed, mappings of former settings.
                Err(_) => refused += 1,
            }
            super::books::audit(&other);
        }
        for flow in &kept {
            let (before, after) = (
                send(&mut nat, flow, Direction::In, now),
                send(&mut other, flow, Direction::In, now),
            );
            assert_eq!(before, after);
        }
        adopted += kept.len();
        for _ in 0..300 {
            generated::step(&mut other, &mut random, &mut now);
            super::books::audit(&other);
        }
        other.maintain(now + LATE, usize::MAX);
        other.maintain(now + 2 * LATE, usize::MAX);
        super::books::audit(&other);
        assert_eq!(other.ports.counted(), 0);
        assert_eq!(other.statistics().flows + other.statistics().mappings, 0);
    }
    assert!(adopted > 50 * refused, "{adopted} adopted, {refused} not");
}

/// A flow as it may be by the usual settings.
fn flow() -> Offloaded {
    Offloaded {
        protocol: protocol::UDP,
        inside: HOST,
        inside_port: 4_000,
        remote: FAR.0,
        remote_port: FAR.1,
        alias: ALIAS,
        alias_port: 40_000,
    }
}

/// The same of TCP.
fn connection() -> Offloaded {
    Offloaded {
        protocol: protocol::TCP,
        ..flow()
    }
}

fn with(change: fn(&mut Config)) -> Nat {
    let mut config = config(100);
    config.limits.block_events = 100;
    change(&mut config);
    Nat::new(config).unwrap()
}

#[test]
fn its_timeout_counts_from_its_last_packet() {
    // From the first millisecond on; established TCP lives 7,440 s.
    for (flow, lives) in [(flow(), 300_000), (connection(), 7_440_000)] {
        let mut nat = with(|config| config.udp = Behaviour::FULL_CONE);
        let late = nat.adopt(&flow, lives + 1_000, 0);
        assert_eq!(late, Err(NotAdopted::Expired));
        assert_eq!(nat.adopt(&flow, u64::MAX, 0), Err(NotAdopted::Expired));
        assert_eq!(nat.adopt(&flow, lives - 10_000, 0), Ok(()));
        let seen = view(&nat, &flow, Direction::Out).unwrap();
        assert!(seen.idle_millis.abs_diff(lives - 10_000) <= 256);
        nat.maintain(9_000, usize::MAX);
        assert_eq!(nat.statistics().flows, 1);
        nat.maintain(11_000, usize::MAX);
        assert_eq!(nat.statistics().flows, 0);
        super::books::audit(&nat);
    }
    // The longest ever: a timeout is not cut short by the clock's beginning.
    let mut nat = with(|config| config.timeouts.tcp_established_secs = 86_400 * 7);
    assert_eq!(nat.adopt(&connection(), 86_400 * 6_000, 0), Ok(()));
    nat.maintain(86_400 * 900, usize::MAX);
    assert_eq!(nat.statistics().flows, 1);
    nat.maintain(86_400 * 1_100, usize::MAX);
    assert_eq!(nat.statistics().flows, 0);
}

#[test]
fn a_shared_mapping_lives_as_long_as_its_flow() {
    let mut nat = with(|config| config.udp = Behaviour::FULL_CONE);
    assert_eq!(nat.adopt(&flow(), 200_000, 0), Ok(()));
    let inside = end((HOST, 4_000));
    let left = |nat: &Nat| {
        let mapping = nat.mapping(protocol::UDP, inside, REMOTE.into());
        mapping.map(|mapping| (mapping.expires_millis + 500) / 1_000)
    };
    assert_eq!(left(&nat), Some(100));
    let second = Offloaded {
        remote_port: 9,
        ..flow()
    };
    assert_eq!(nat.adopt(&second, 50_000, 0), Ok(()));
    assert_eq!(left(&nat), Some(250));
    let third = Offloaded {
        remote_port: 10,
        ..flow()
    };
    assert_eq!(nat.adopt(&third, 290_000, 0), Ok(()));
    assert_eq!(left(&nat), Some(250));
    super::books::audit(&nat);
}

#[test]
fn a_flow_that_has_expired_gives_way() {
    let mut nat = with(|_| {});
    assert_eq!(nat.adopt(&flow(), 0, 0), Ok(()));
    assert_eq!(nat.adopt(&flow(), 0, LATE), Ok(()));
    assert_eq!(nat.statistics().flows, 1);
}

#[test]
fn a_mapping_elsewhere_leaves_it_its_own_port() {
    let mut nat = with(|config| config.udp = Behaviour::FULL_CONE);
    assert_eq!(nat.adopt(&flow(), 0, 0), Ok(()));
    let second = Offloaded {
        alias_port: 40_001,
        remote_port: 9,
        ..flow()
    };
    assert_eq!(nat.adopt(&second, 0, 0), Ok(()));
    super::books::audit(&nat);
    assert_eq!(nat.statistics().mappings, 1);
    assert_eq!(
        send(&mut nat, &second, Direction::In, 0).0,
        Verdict::Translated
    );
    let stranger = Offloaded {
        remote_port: 11,
        ..second
    };
    assert_eq!(
        send(&mut nat, &stranger, Direction::In, 0).0,
        Verdict::NoMapping
    );
}

#[test]
fn a_block_is_its_subscribers_again_and_told_if_that_is_news() {
    let first = 40_000 / 64 * 64;
    let block = (first, first + 63);
    let told = |nat: &mut Nat| {
        let events = std::iter::from_fn(|| nat.next_block_event());
        let events = events.map(|event| (event.kind, event.subscriber.first, event.ports));
        events.collect::<Vec<_>>()
    };
    for is_held in [false, true] {
        let mut nat = with(|config| config.blocks = blocks(64, 1));
        if is_held {
            assert!(nat.hold_block(HOST, ALIAS, block, 0));
        }
        assert_eq!(nat.adopt(&flow(), 0, 0), Ok(()));
        let expected = match is_held {
            true => vec![],
            false => vec![(BlockEventKind::Taken, HOST, block)],
        };
        assert_eq!(told(&mut nat), expected);
        // Its own new flows have ports of it, also long after what was held
        // would have been given back; it does not rest under its flow.
        for minute in 1..=30 {
            let now = minute * 60_000;
            nat.maintain(now, usize::MAX);
            send(&mut nat, &flow(), Direction::Out, now);
            let (_, port) = out(&mut nat, (HOST, 9), FAR, now);
            assert!((block.0..=block.1).contains(&port));
        }
        assert_eq!(told(&mut nat), []);
        nat.maintain(LATE, usize::MAX);
        nat.maintain(2 * LATE, usize::MAX);
        assert_eq!(told(&mut nat), [(BlockEventKind::GivenBack, HOST, block)]);
        assert_eq!(nat.statistics().blocks, 0);
    }
}

fn state(nat: &Nat) -> State {
    view(nat, &connection(), Direction::Out).unwrap().state
}

fn step(nat: &mut Nat, direction: Direction, flags: u8) -> Vec<u8> {
    let mut bytes = packet(&connection(), direction, flags);
    let verdict = match direction {
        Direction::Out => nat.translate_out(&mut bytes, 0),
        Direction::In => nat.translate_in(&mut bytes, 0),
    };
    assert_eq!(verdict, Verdict::Translated);
    bytes
}

#[test]
fn the_first_fin_or_reset_of_a_connection_is_believed() {
    let directions = [Direction::Out, Direction::In];
    for (first, second) in [(0, 1), (1, 0)] {
        let (first, second) = (directions[first], directions[second]);
        for flags in [RST, RST | ACK] {
            let mut nat = with(|config| config.tcp = Behaviour::FULL_CONE);
            assert_eq!(nat.adopt(&connection(), 0, 0), Ok(()));
            step(&mut nat, first, flags);
            assert_eq!(state(&nat), State::TcpReset);
            super::books::audit(&nat);
        }
        let mut nat = with(|_| {});
        assert_eq!(nat.adopt(&connection(), 0, 0), Ok(()));
        step(&mut nat, first, FIN | ACK);
        assert_eq!(state(&nat), State::TcpHalfClosed);
        step(&mut nat, second, FIN | ACK);
        assert_eq!(state(&nat), State::TcpClosed);
        // Once a side has spoken, what lies in its window.
        for of in [first, second] {
            let mut nat = with(|_| {});
            assert_eq!(nat.adopt(&connection(), 0, 0), Ok(()));
            step(&mut nat, first, ACK);
            step(&mut nat, of, RST);
            assert_eq!(state(&nat), State::TcpReset);
        }
    }
}

#[test]
fn a_syn_within_an_adopted_connection_changes_nothing() {
    let mut nat = with(|_| {});
    assert_eq!(nat.adopt(&connection(), 0, 0), Ok(()));
    step(&mut nat, Direction::Out, SYN);
    assert_eq!(state(&nat), State::TcpEstablished);
}

#[test]
fn it_is_offloaded_again_when_both_sides_have_spoken() {
    for [first, second] in [
        [Direction::Out, Direction::In],
        [Direction::In, Direction::Out],
    ] {
        let mut nat = with(|_| {});
        assert_eq!(nat.adopt(&connection(), 0, 0), Ok(()));
        assert!(!nat.touch_offloaded(&connection(), 0, 0));
        let bytes = step(&mut nat, first, ACK);
        assert_eq!(nat.offload(first, &bytes), None);
        let bytes = step(&mut nat, second, ACK);
        assert_eq!(nat.offload(second, &bytes), Some(connection()));
        // Of UDP at once.
        let mut nat = with(|_| {});
        assert_eq!(nat.adopt(&flow(), 0, 0), Ok(()));
        let (_, bytes) = send(&mut nat, &flow(), first, 0);
        assert_eq!(nat.offload(first, &bytes), Some(flow()));
    }
}

#[test]
fn what_was_adopted_is_saved_like_others() {
    let mut nat = with(|config| {
        config.blocks = blocks(64, 1);
        config.udp = Behaviour::FULL_CONE;
    });
    for flow in [flow(), connection()] {
        assert_eq!(nat.adopt(&flow, 0, 1_000), Ok(()));
    }
    let bytes = super::saved::saved(&mut nat, 2_000);
    let mut other = Nat::new(nat.config().clone()).unwrap();
    let taken = super::saved::taken_up(&mut other, &bytes, 0, 2_000).unwrap();
    assert_eq!((taken.flows, taken.left_out, taken.blocks), (2, 0, 1));
    for flow in [flow(), connection()] {
        assert_eq!(
            view(&other, &flow, Direction::In),
            view(&nat, &flow, Direction::In)
        );
    }
    super::books::audit(&other);
}

#[test]
fn events_tell_of_it_and_of_its_end() {
    let mut nat = with(|config| {
        config.limits.events = 10;
        config.udp = Behaviour::FULL_CONE;
    });
    let second = Offloaded {
        remote_port: 9,
        ..flow()
    };
    for flow in [flow(), second] {
        assert_eq!(nat.adopt(&flow, 1_000, 0), Ok(()));
    }
    nat.maintain(LATE, usize::MAX);
    let events = std::iter::from_fn(|| nat.next_event());
    let events: Vec<_> = events
        .map(|event| (event.kind, event.flow.alias_port))
        .collect();
    // Once for the mapping that both share.
    let ended = crate::EventKind::Ended(Why::Expired);
    assert_eq!(events, [(crate::EventKind::Made, 40_000), (ended, 40_000)]);
}

/// A host's new flows have its alias address still, where blocks say which.
#[test]
fn a_host_keeps_its_address() {
    for number in 0..20 {
        let mut nat = with(|config| {
            config.addresses = vec![ALIAS, OTHER];
            config.blocks = blocks(64, 1);
        });
        let alias = [ALIAS, OTHER][number as usize % 2];
        let inside = host(number / 2);
        let flow = Offloaded {
            alias,
            inside,
            ..flow()
        };
        assert_eq!(nat.adopt(&flow, 0, 0), Ok(()));
        let next = Offloaded {
            inside_port: 9,
            ..flow
        };
        send(&mut nat, &next, Direction::Out, 0);
        let seen = view(&nat, &next, Direction::Out).unwrap();
        assert_eq!(seen.alias, IpAddr::from(alias));
    }
}
