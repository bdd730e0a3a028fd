//! Subscribers: what their counters and blocks say is what their flows and
//! mappings have, and each quota holds.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::blocks::{Class, Deterministic, Quota, Rate, Subscriber};
use crate::{BlockEventKind, Blocks, QuotaKind};

type Counts = ([u32; 3], [u32; 3], [u32; 2]);

/// Holds what is counted of subscribers against their flows and mappings.
pub(super) fn audit(nat: &Nat) {
    let Some(tracked) = &nat.tracked else {
        return;
    };
    let mut counted = BTreeMap::<u32, Counts>::new();
    let mut used = BTreeMap::<u32, (u32, [u16; 2])>::new();
    let subscriber = |inside: u32| tracked.subscribers.find(u32::from_be(inside));
    for name in 0..nat.table.places() as u32 {
        let flow = nat.table.get(name).unwrap();
        if !flow.has(flag::LIVE) {
            continue;
        }
        let class = Class::of(flow.protocol) as usize;
        let of = subscriber(flow.inside());
        if flow.has(flag::COUNTED) {
            let (_, sessions, half_open) = counted.entry(of.unwrap()).or_default();
            sessions[class] += 1;
            let waits = matches!(flow.state(), State::TcpOpening | State::UdpUnreplied);
            if waits {
                half_open[class] += 1;
            }
        }
        if !flow.has(flag::MAPPED) && flow.permit != 0 {
            let counts = u32::from(counts::counts(flow.permit));
            counted.entry(of.unwrap()).or_default().0[class] += counts;
            if let Some(block) = counts::block_of(flow.permit) {
                used.entry(block).or_default().0 += 1;
                let port = u16::from_be(flow.alias_port());
                let pool = tracked.pool.as_ref().unwrap();
                assert_eq!(pool.at(flow.alias(), port), Some(block));
            }
        }
    }
    for name in nat.mappings.taken() {
        let mapping = nat.mappings.get(name).unwrap();
        let mark = nat.mark_of(mapping);
        if mark == 0 {
            continue;
        }
        let of = subscriber(mapping.inside).unwrap();
        let class = Class::of(mapping.protocol) as usize;
        counted.entry(of).or_default().0[class] += 1;
        if mark != u32::MAX {
            let pool = tracked.pool.as_ref().unwrap();
            let port = u16::from_be(mapping.alias_port);
            let block = pool.at(mapping.alias, port).unwrap();
            let (all, mapped) = used.entry(block).or_default();
            *all += 1;
            mapped[class] += 1;
        }
    }
    let leases = nat.leases.iter().flat_map(|leases| leases.all());
    for (key, lease) in leases.filter(|(_, lease)| lease.mark != 0) {
        let of = subscriber(word(key.inside)).unwrap();
        let class = Class::of(key.protocol) as usize;
        counted.entry(of).or_default().0[class] += u32::from(lease.ports);
        if let Some(block) = counts::block_of(lease.mark) {
            used.entry(block).or_default().0 += u32::from(lease.ports);
        }
    }
    let mut owned = BTreeSet::new();
    for name in 0..tracked.subscribers.places() as u32 {
        let Some(entry) = tracked.subscribers.get(name).copied() else {
            assert!(!counted.contains_key(&name), "who is gone has something");
            continue;
        };
        let (ports, sessions, half_open) = counted.remove(&name).unwrap_or_default();
        let is = (entry.ports, entry.sessions, entry.half_open);
        assert_eq!(is, (ports, sessions, half_open));
        audit_blocks(nat, name, &entry, &mut owned);
    }
    let Some(pool) = &tracked.pool else {
        return;
    };
    // What rests with nobody is in no list.
    let of_nobody = (0..pool.places() as u32).filter(|block| {
        let owner = pool.get(*block).unwrap().owner;
        owner == super::taking_up::NOBODY + 1
    });
    owned.extend(of_nobody);
    assert_eq!(pool.taken(), owned.len());
    for block in 0..pool.places() as u32 {
        let (all, mapped) = used.remove(&block).unwrap_or_default();
        let place = pool.get(block).unwrap();
        assert_eq!((place.used, place.mapped), (all, mapped), "block {block}");
        assert_eq!(place.owner != 0, owned.contains(&block));
        assert!(place.owner != 0 || all == 0, "a free block is used");
    }
    assert!(used.is_empty());
}

fn audit_blocks(nat: &Nat, name: u32, entry: &Subscriber, owned: &mut BTreeSet<u32>) {
    let Some(pool) = &nat.tracked.as_ref().unwrap().pool else {
        assert_eq!((entry.block, entry.blocks), (0, 0));
        return;
    };
    let mut at = entry.block;
    let mut dynamic = 0;
    while let Some(block) = at.checked_sub(1) {
        let place = pool.get(block).unwrap();
        assert_eq!(place.owner, name + 1);
        assert!(owned.insert(block), "two have a block");
        dynamic += u8::from(!pool.is_fixed(block));
        at = place.next;
    }
    assert_eq!(entry.blocks, dynamic);
}

pub(super) fn with_blocks(size: u16, most: u8) -> Config {
    let mut config = config(20_000);
    config.limits.block_events = 1_000;
    config.blocks = Some(Blocks {
        size,
        most,
        ..Blocks::default()
    });
    config
}

fn told(nat: &mut Nat) -> Vec<(BlockEventKind, Ipv4Addr, (u16, u16))> {
    let events = std::iter::from_fn(|| nat.next_block_event());
    events
        .map(|event| (event.kind, event.subscriber.first, event.ports))
        .collect()
}

#[test]
fn a_subscriber_has_its_blocks_and_no_port_beside() {
    let mut nat = Nat::new(with_blocks(64, 2)).unwrap();
    let mut ports = [BTreeSet::new(), BTreeSet::new()];
    for flow in 0..200_u16 {
        for (number, ports) in ports.iter_mut().enumerate() {
            let source = (host(number as u32), 1_000 + flow);
            let (verdict, port) = out(&mut nat, source, (REMOTE, 5_300), 0);
            // Each to one remote: a port is one flow's. Those that nobody
            // has answered may have to give it up, but not at once.
            let fits = flow < 128;
            assert_eq!(verdict == Verdict::Translated, fits, "{flow}: {verdict:?}");
            if fits {
                ports.insert(port / 64);
            }
        }
    }
    audit(&nat);
    assert_eq!(ports.each_ref().map(BTreeSet::len), [2, 2]);
    assert!(ports[0].is_disjoint(&ports[1]));
}

#[test]
fn blocks_are_told_as_they_come_and_go() {
    let mut nat = Nat::new(with_blocks(64, 8)).unwrap();
    let first = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 1_000).1;
    let block = (first / 64 * 64, first / 64 * 64 + 63);
    assert_eq!(told(&mut nat), [(BlockEventKind::Taken, HOST, block)]);
    // Again and again a flow, never long without one: nothing to be told.
    for round in 1..20 {
        let now = 1_000 + round * 200_000;
        let port = out(&mut nat, (HOST, 1), (REMOTE, 5_300), now).1;
        assert!((block.0..=block.1).contains(&port));
        nat.maintain(now + 121_000, usize::MAX);
        audit(&nat);
    }
    assert_eq!(told(&mut nat), []);
    let ended = 1_000 + 19 * 200_000 + 122_000;
    nat.maintain(ended, usize::MAX);
    nat.maintain(ended + 118_000, usize::MAX);
    assert_eq!(told(&mut nat), []);
    nat.maintain(ended + 122_000, usize::MAX);
    assert_eq!(told(&mut nat), [(BlockEventKind::GivenBack, HOST, block)]);
    assert_eq!(nat.statistics().blocks, 0);
    audit(&nat);
}

#[test]
fn nobody_gets_a_block_before_it_has_rested() {
    let mut config = with_blocks(64, 1);
    // Two blocks in all.
    config.ports = 40_000..=40_127;
    let mut nat = Nat::new(config).unwrap();
    let of = |number, now, nat: &mut Nat| out(nat, (host(number), 1), (REMOTE, 53), now).0;
    assert_eq!(of(0, 0, &mut nat), Verdict::Translated);
    assert_eq!(of(1, 0, &mut nat), Verdict::Translated);
    assert_eq!(of(2, 0, &mut nat), Verdict::PortsExhausted);
    let kinds: Vec<_> = told(&mut nat).into_iter().map(|event| event.0).collect();
    use BlockEventKind::{Exhausted, GivenBack, Taken};
    assert_eq!(kinds, [Taken, Taken, Exhausted]);
    assert!(remove(&mut nat, (HOST, 1), (REMOTE, 53)));
    assert_eq!(of(2, 119_000, &mut nat), Verdict::PortsExhausted);
    // Its own it takes up again at once.
    assert_eq!(of(0, 119_500, &mut nat), Verdict::Translated);
    assert!(remove(&mut nat, (HOST, 1), (REMOTE, 53)));
    assert_eq!(of(2, 238_000, &mut nat), Verdict::PortsExhausted);
    assert_eq!(of(2, 240_500, &mut nat), Verdict::Translated);
    let kinds: Vec<_> = told(&mut nat).into_iter().map(|event| event.0).collect();
    assert_eq!(kinds, [Exhausted, Exhausted, GivenBack, Taken]);
    audit(&nat);
}

#[test]
fn a_newer_block_takes_over_when_the_active_one_is_old() {
    let mut config = with_blocks(64, 2);
    if let Some(blocks) = &mut config.blocks {
        blocks.active_secs = 100;
    }
    let mut nat = Nat::new(config).unwrap();
    let first = out(&mut nat, (HOST, 1), (REMOTE, 53), 0).1 / 64;
    assert_eq!(out(&mut nat, (HOST, 2), (REMOTE, 53), 99_000).1 / 64, first);
    let second = out(&mut nat, (HOST, 3), (REMOTE, 53), 101_000).1 / 64;
    assert_ne!(second, first);
    assert_eq!(
        out(&mut nat, (HOST, 4), (REMOTE, 53), 110_000).1 / 64,
        second
    );
    // No third one: it goes on with what it has.
    assert_eq!(
        out(&mut nat, (HOST, 5), (REMOTE, 53), 205_000).1 / 64,
        second
    );
    audit(&nat);
}

#[test]
fn what_is_held_is_told_again() {
    let mut config = with_blocks(64, 2);
    if let Some(blocks) = &mut config.blocks {
        blocks.interim_secs = 600;
    }
    config.timeouts.udp_unreplied_secs = 10_000;
    let mut nat = Nat::new(config).unwrap();
    out(&mut nat, (HOST, 1), (REMOTE, 53), 0);
    out(&mut nat, (host(1), 1), (REMOTE, 53), 300_000);
    assert_eq!(told(&mut nat).len(), 2);
    let held = |nat: &mut Nat, now| {
        nat.maintain(now, 10);
        let held = told(nat).into_iter();
        let held = held.map(|(kind, who, _)| {
            assert_eq!(kind, BlockEventKind::Held);
            who
        });
        held.collect::<Vec<_>>()
    };
    assert!(held(&mut nat, 599_000).is_empty());
    assert_eq!(held(&mut nat, 601_000), [HOST]);
    assert!(held(&mut nat, 602_000).is_empty());
    assert_eq!(held(&mut nat, 1_300_000), [host(1), HOST]);
}

#[test]
fn each_quota_holds_for_its_protocol_and_for_all() {
    let no = Quota::default();
    let only = |all, tcp, udp, other| Quota {
        all,
        of: [tcp, udp, other],
    };
    let none = u32::MAX;
    let quotas = [
        (only(7, none, none, none), 7, 0, QuotaKind::Sessions),
        (only(none, none, 5, none), 5, 4, QuotaKind::Sessions),
        (only(7, none, none, none), 7, 0, QuotaKind::HalfOpen),
        (only(none, none, 5, none), 5, 4, QuotaKind::HalfOpen),
        (only(7, none, none, none), 7, 0, QuotaKind::Ports),
        (only(none, none, 5, none), 5, 4, QuotaKind::Ports),
    ];
    for (quota, udp, more_tcp, kind) in quotas {
        let mut config = config(1_000);
        config.limits.block_events = 10;
        let of = &mut config.subscribers.quotas;
        assert_eq!((of.ports, of.sessions), (no, no));
        match kind {
            QuotaKind::Sessions => of.sessions = quota,
            QuotaKind::HalfOpen => of.half_open = quota,
            _ => of.ports = quota,
        }
        let mut nat = Nat::new(config).unwrap();
        for flow in 0..20 {
            let (verdict, _) = out(&mut nat, (HOST, 1 + flow), (REMOTE, 53), 0);
            let expected = if flow < udp {
                Verdict::Translated
            } else {
                Verdict::OverQuota
            };
            assert_eq!(verdict, expected, "{kind:?} {flow}");
        }
        for flow in 0..4 {
            let mut syn = Ip::new(HOST, REMOTE).tcp(&Segment {
                source_port: 5_000 + flow,
                destination_port: 80,
                flags: SYN,
                ..Segment::default()
            });
            let fits = nat.translate_out(&mut syn, 0) == Verdict::Translated;
            assert_eq!(fits, flow < more_tcp, "{kind:?}");
        }
        // Another one has its own; and one that goes makes room.
        assert_eq!(
            out(&mut nat, (host(1), 1), (REMOTE, 53), 0).0,
            Verdict::Translated
        );
        assert!(remove(&mut nat, (HOST, 1), (REMOTE, 53)));
        let again = out(&mut nat, (HOST, 90), (REMOTE, 53), 0).0;
        let fits = more_tcp == 4 || kind != QuotaKind::Sessions || udp == 7;
        assert_eq!(again == Verdict::Translated, fits, "{kind:?}");
        audit(&nat);
        let events = told(&mut nat);
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(events[0].0, BlockEventKind::Quota(kind));
    }
}

#[test]
fn an_answered_session_is_not_half_open() {
    let mut config = config(1_000);
    config.subscribers.quotas.half_open.all = 2;
    let mut nat = Nat::new(config).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0);
    assert_eq!(
        out(&mut nat, (HOST, 2), (REMOTE, 5_300), 0).0,
        Verdict::Translated
    );
    assert_eq!(
        out(&mut nat, (HOST, 3), (REMOTE, 5_300), 0).0,
        Verdict::OverQuota
    );
    assert_eq!(
        back(&mut nat, (REMOTE, 5_300), port, 0),
        Verdict::Translated
    );
    audit(&nat);
    assert_eq!(
        out(&mut nat, (HOST, 3), (REMOTE, 5_300), 0).0,
        Verdict::Translated
    );
    assert_eq!(
        out(&mut nat, (HOST, 4), (REMOTE, 5_300), 0).0,
        Verdict::OverQuota
    );
}

#[test]
fn new_mappings_come_at_their_rate() {
    for (burst, at_once) in [(0, 10), (30, 30), (1, 1)] {
        let mut config = config(10_000);
        config.subscribers.quotas.new_mappings = Rate {
            of: [10, 0, 0, 0],
            burst,
        };
        let mut nat = Nat::new(config).unwrap();
        let mut port = 0;
        let mut made = |now: u64, tries: u16| {
            let mut made = 0;
            for _ in 0..tries {
                port += 1;
                let (verdict, _) = out(&mut nat, (HOST, port), (REMOTE, 5_300), now);
                made += u64::from(verdict == Verdict::Translated);
            }
            made
        };
        assert_eq!(made(5_000, 100), at_once, "burst {burst}");
        // Ten a second from then on.
        let later: u64 = (1..=100).map(|step| made(5_000 + step * 100, 3)).sum();
        assert!((98..=101).contains(&later), "{later}");
        // After a long rest, also one of the clock's whole turn.
        for rest in [600_000, 67_108_864, 30_000_000] {
            let now = 40_000_000 + rest;
            assert!(made(now, 100) <= at_once);
        }
    }
}

#[test]
fn a_prefix_is_one_subscriber_and_who_is_none_has_no_port() {
    let mut config = with_blocks(64, 1);
    config.subscribers.bits = 29;
    config.subscribers.inside = vec![crate::AddressRange {
        first: Ipv4Addr::new(10, 0, 0, 0),
        last: Ipv4Addr::new(10, 0, 0, 15),
    }];
    let mut nat = Nat::new(config.clone()).unwrap();
    let mut port = |last| {
        let source = (Ipv4Addr::new(10, 0, 0, last), 1);
        let (verdict, port) = out(&mut nat, source, (REMOTE, 53), 0);
        (verdict == Verdict::Translated).then_some(port / 64)
    };
    assert_eq!(port(1), port(7));
    assert_ne!(port(1), port(8));
    assert_eq!(port(8), port(15));
    assert_eq!((port(16), port(255)), (None, None));
    audit(&nat);
    config.subscribers.inside[0].last = Ipv4Addr::new(10, 0, 0, 14);
    assert!(matches!(Nat::new(config), Err(Error::Blocks(_))));
}

#[test]
fn whom_to_talk_to_is_left_alone_passes_both_ways() {
    let mut config = config(100);
    config.exempt = vec![crate::AddressRange::of_prefix(REMOTE, 24)];
    let mut nat = Nat::new(config).unwrap();
    assert_eq!(
        out(&mut nat, (HOST, 1), (REMOTE, 53), 0),
        (Verdict::Passed, 1)
    );
    let mut answer = Ip::new(REMOTE, HOST).udp(53, 1, b"data");
    assert_eq!(nat.translate_in(&mut answer, 0), Verdict::Passed);
    let about = Ip::new(HOST, REMOTE).udp(1, 53, b"data");
    let router = Ipv4Addr::new(203, 0, 113, 1);
    let mut error = Ip::new(router, HOST).icmp(icmp::UNREACHABLE, 1, [0; 4], &about);
    assert_eq!(nat.translate_in(&mut error, 0), Verdict::Passed);
    let about = Ip::new(REMOTE, HOST).udp(53, 9, b"data");
    let mut error = Ip::new(HOST, REMOTE).icmp(icmp::UNREACHABLE, 3, [0; 4], &about);
    assert_eq!(nat.translate_out(&mut error, 0), Verdict::Passed);
    // Others are translated.
    let other = Ipv4Addr::new(203, 0, 113, 9);
    assert_eq!(
        out(&mut nat, (HOST, 1), (other, 53), 0).0,
        Verdict::Translated
    );
    // To our own address they are strangers like others.
    assert_eq!(back(&mut nat, (REMOTE, 53), 40_000, 0), Verdict::NoMapping);
    assert_eq!(nat.statistics().flows, 1);
}

#[test]
fn reckoned_ports_come_first_and_blocks_on_top() {
    let mut config = with_blocks(1_008, 1);
    config.ports = 1_024..=65_535;
    config.limits.max_flows = 1 << 17;
    config.subscribers.inside = vec![crate::AddressRange {
        first: Ipv4Addr::new(10, 0, 0, 1),
        last: Ipv4Addr::new(10, 0, 0, 14),
    }];
    if let Some(blocks) = &mut config.blocks {
        blocks.deterministic = Some(Deterministic {
            ratio: 14,
            dynamic: 2,
            key: None,
        });
    }
    let reckoning = crate::Reckoning::new(&config).unwrap().unwrap();
    let mut nat = Nat::new(config).unwrap();
    let mut ports = BTreeSet::new();
    for flow in 0..5_100_u16 {
        let (verdict, port) = out(&mut nat, (HOST, 1 + flow), (REMOTE, 5_300), 0);
        if verdict == Verdict::Translated {
            ports.insert(port);
        }
    }
    let own = ports.range(1_024..=5_055).count();
    // In rows of 512 tries a packet not each of the last ports is found, but
    // a block on top comes only when its own are hard to find.
    assert!(own > 3_900, "{own}");
    let top = ports.range(57_472..).count();
    assert_eq!(own + top, ports.len());
    assert!(top <= 1_008);
    for port in ports.range(1_024..=5_055) {
        let who = reckoning.inside(ALIAS, *port).unwrap();
        assert_eq!(who.first, HOST);
    }
    let events = told(&mut nat);
    assert_eq!(events[0].0, BlockEventKind::Taken);
    assert_eq!(events[0].2.1 - events[0].2.0, 1_007);
    audit(&nat);
    // Given back, nothing is left of it but what is reckoned.
    nat.maintain(400_000, usize::MAX);
    nat.maintain(800_000, usize::MAX);
    audit(&nat);
    assert_eq!(told(&mut nat).last().unwrap().0, BlockEventKind::GivenBack);
}

#[test]
fn counters_and_blocks_agree_whatever_is_done() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let config = generated::config(&mut random, seed);
        let is_reckoned = generated::is_reckoned(&config);
        let mut nat = Nat::new(config).unwrap();
        let mut now = 0;
        for _ in 0..500 {
            generated::step(&mut nat, &mut random, &mut now);
            super::books::audit(&nat);
        }
        nat.maintain(now + 100_000_000, usize::MAX);
        nat.maintain(now + 200_000_000, usize::MAX);
        super::books::audit(&nat);
        let statistics = nat.statistics();
        assert_eq!(statistics.flows + statistics.mappings, 0);
        let fixed = if is_reckoned {
            statistics.subscribers
        } else {
            0
        };
        assert!(statistics.blocks <= fixed, "seed {seed}: {statistics:?}");
    }
}

#[test]
fn who_has_what_is_listed_in_pieces_while_it_changes() {
    let mut nat = Nat::new(with_blocks(64, 2)).unwrap();
    for number in 0..300 {
        let (verdict, _) = out(&mut nat, (host(number), 1), (REMOTE, 5_300), 0);
        assert_eq!(verdict, Verdict::Translated);
    }
    let mut subscribers = Vec::new();
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        cursor = nat.subscribers(from, 7, &mut |view| subscribers.push(*view));
    }
    assert_eq!(subscribers.len(), 300);
    assert!(
        subscribers
            .iter()
            .all(|of| of.sessions == [0, 1, 0] && of.blocks == 1)
    );
    let mut blocks = Vec::new();
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        cursor = nat.blocks(from, 50, &mut |view| blocks.push(*view));
        // Meanwhile others come and go.
        out(
            &mut nat,
            (host(1_000 + blocks.len() as u32), 1),
            (REMOTE, 53),
            0,
        );
    }
    let first: BTreeSet<_> = blocks.iter().map(|block| block.subscriber.first).collect();
    assert!((0..300).all(|number| first.contains(&host(number))));
    for block in &blocks {
        let (first, last) = block.ports.unwrap();
        assert_eq!(
            nat.block_of(block.alias, first).unwrap().subscriber,
            block.subscriber
        );
        assert_eq!(last - first, 63);
    }
    let mut pools = Vec::new();
    assert_eq!(
        nat.pools(Cursor::default(), 10, &mut |view| pools.push(*view)),
        None
    );
    assert_eq!(pools.len(), 1);
    assert_eq!((pools[0].blocks, pools[0].is_open), (512, true));
    let before = nat.statistics().flows;
    let mut fits = |flow: &FlowView| flow.inside == IpAddr::from(host(7));
    let (next, ended) = nat.end_flows(Cursor::default(), usize::MAX, &mut fits);
    assert_eq!((next, ended, nat.statistics().flows), (None, 1, before - 1));
    audit(&nat);
}
