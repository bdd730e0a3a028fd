//! Quotas, blocks and limits: at them, beyond them, and back.

use std::net::Ipv4Addr;

use fingerpost_nat::{AddressRange, Blocks, Config, Nat};

use super::trial::*;

const QUOTA: u8 = 10;
const NO_RESOURCES: u8 = 8;
const NOT_AUTHORIZED: u8 = 2;

fn with_blocks(size: u16, most: u8) -> Config {
    let mut config = config();
    config.limits.block_events = 1_000;
    config.blocks = Some(Blocks {
        size,
        most,
        ..Blocks::default()
    });
    config
}

fn asked(nat: &mut Nat, port: u16, now: u64) -> u8 {
    map(port).ask(nat, now).code()
}

#[test]
fn a_host_has_so_many_ports_and_others_have_theirs() {
    let mut config = config();
    config.pcp.most_ports = 10;
    let mut nat = Nat::new(config).unwrap();
    for port in 1..=6 {
        assert_eq!(asked(&mut nat, port, 0), 0);
    }
    let set = |ports, options: Vec<u8>| Ask {
        options: [port_set(ports, 100, 0), options].concat(),
        ..map(100)
    };
    // A set as large as still fits; all of it or nothing cannot be said
    // (RFC 7753 §4.1).
    assert_eq!(set(8, option(2, &[])).ask(&mut nat, 0).code(), 6);
    assert_eq!(set(8, Vec::new()).ask(&mut nat, 0).ports(), 4);
    let answer = map(7).ask(&mut nat, 0);
    assert_eq!((answer.code(), answer.lifetime()), (QUOTA, 30));
    let peer = Ask {
        remote: Some((STRANGER, 1)),
        ..map(50)
    };
    assert_eq!(peer.ask(&mut nat, 0).code(), QUOTA);
    // What there is can still be prolonged.
    assert_eq!(asked(&mut nat, 1, 0), 0);
    let theirs = Ask {
        client: OTHER,
        ..map(7)
    };
    assert_eq!(theirs.ask(&mut nat, 0).code(), 0);
    // And back.
    let gone = Ask {
        lifetime: 0,
        ..map(1)
    };
    gone.ask(&mut nat, 0);
    assert_eq!(asked(&mut nat, 7, 0), 0);
    assert_eq!(asked(&mut nat, 8, 0), QUOTA);
    // All over: all free.
    assert_eq!(asked(&mut nat, 8, 3_600_000), 0);
}

#[test]
fn all_together_have_so_many_leases() {
    let mut config = config();
    config.pcp.most_leases = 100;
    let mut nat = Nat::new(config).unwrap();
    let mut ask = |host: u32, now| {
        let client = Ipv4Addr::from_bits(CLIENT.to_bits() + host);
        let ask = Ask { client, ..map(1) };
        ask.ask(&mut nat, now).code()
    };
    for host in 0..100 {
        assert_eq!(ask(host, 0), 0);
    }
    assert_eq!(ask(100, 0), NO_RESOURCES);
    assert_eq!(ask(99, 1_000), 0);
    assert_eq!(ask(100, 3_600_000), 0);
    assert_eq!(nat.statistics().leases, 93);
    nat.maintain(3_600_000, 0);
    // The one that was prolonged, and the new one.
    assert_eq!(nat.statistics().leases, 2);
}

#[test]
fn with_no_port_left_there_is_none() {
    let mut config = config();
    config.ports = 40_000..=40_003;
    let mut nat = Nat::new(config).unwrap();
    let set = Ask {
        options: port_set(4, 1, 0),
        ..map(1)
    };
    assert_eq!(set.ask(&mut nat, 0).external(), (ALIAS, 40_000));
    let ask = Ask {
        client: OTHER,
        ..map(1)
    };
    let answer = ask.ask(&mut nat, 0);
    assert_eq!((answer.code(), answer.lifetime()), (NO_RESOURCES, 30));
    let gone = Ask { lifetime: 0, ..set };
    gone.ask(&mut nat, 0);
    // Its ports rest (RFC 6888 REQ-8), and are given where there are no others.
    assert_eq!(ask.ask(&mut nat, 0).code(), 0);
}

#[test]
fn a_lease_is_of_its_subscribers_block_and_counts_once() {
    let mut config = with_blocks(64, 2);
    config.pcp.most_ports = 1_000;
    let mut nat = Nat::new(config).unwrap();
    let external = map(4_000).ask(&mut nat, 0).external();
    let (_, own) = send(&mut nat, UDP, (CLIENT, 1), (STRANGER, 80), 0);
    assert_eq!(own.1 / 64, external.1 / 64);
    let (_, theirs) = send(&mut nat, UDP, (OTHER, 1), (STRANGER, 80), 0);
    assert_ne!(theirs.1 / 64, external.1 / 64);
    // A port of another's block is not to be had.
    let wish = Ask {
        external_port: theirs.1 ^ 1,
        options: option(2, &[]),
        ..map(4_001)
    };
    assert_eq!(wish.ask(&mut nat, 0).code(), 11);
    let counted = |nat: &Nat| {
        let mut ports = 0;
        nat.subscribers(Default::default(), 100, &mut |row| {
            if row.subscriber.first == CLIENT {
                ports = row.ports[1];
            }
        });
        ports
    };
    assert_eq!(counted(&nat), 2);
    // Whoever comes in by it counts for nobody.
    for port in 1..50 {
        assert!(come(&mut nat, UDP, (STRANGER, port), external, 0).is_some());
    }
    assert_eq!(counted(&nat), 2);
    // As many as two blocks have, beside the flow to one remote.
    let mut given = 1;
    while asked(&mut nat, 4_000 + given, 0) == 0 {
        given += 1;
    }
    assert_eq!(given, 128);
    assert_eq!(counted(&nat), 129);
    assert_eq!(asked(&mut nat, 9_000, 0), QUOTA);
    // The block stays its subscriber's until the last flow has ended.
    nat.maintain(3_600_000, 1_000_000);
    assert_eq!(nat.statistics().leases, 0);
    assert_eq!(counted(&nat), 0);
    nat.maintain(4_200_000, 1_000_000);
    nat.maintain(4_400_000, 1_000_000);
    assert_eq!(nat.statistics().blocks, 0);
}

#[test]
fn a_set_of_ports_is_of_one_block() {
    let mut nat = Nat::new(with_blocks(64, 4)).unwrap();
    for round in 0..4 {
        let ask = Ask {
            options: port_set(16, 1_000 + 100 * round, 0),
            ..map(1_000 + 100 * round)
        };
        let answer = ask.ask(&mut nat, 0);
        let (first, ports) = (answer.external().1, answer.ports());
        assert!(ports >= 4, "{ports}");
        assert_eq!(first / 64, (first + ports - 1) / 64);
    }
}

#[test]
fn quotas_of_subscribers_hold() {
    let mut config = config();
    config.subscribers.inside = vec![AddressRange {
        first: CLIENT,
        last: CLIENT,
    }];
    config.subscribers.quotas.ports.of[1] = 3;
    let mut nat = Nat::new(config).unwrap();
    let set = Ask {
        options: port_set(16, 1, 0),
        ..map(1)
    };
    assert_eq!(set.ask(&mut nat, 0).ports(), 3);
    assert_eq!(asked(&mut nat, 100, 0), QUOTA);
    // Of TCP it has none yet.
    let tcp = Ask {
        protocol: TCP,
        ..map(100)
    };
    assert_eq!(tcp.ask(&mut nat, 0).code(), 0);
    // Who is no subscriber does not ask.
    let other = Ask {
        client: OTHER,
        ..map(1)
    };
    assert_eq!(other.ask(&mut nat, 0).code(), NOT_AUTHORIZED);
}

#[test]
fn an_expired_lease_rests_before_another_host_gets_its_port() {
    let mut config = config();
    config.ports = 40_000..=40_019;
    let mut nat = Nat::new(config).unwrap();
    let external = map(1).ask(&mut nat, 0).external();
    let gone = Ask {
        lifetime: 0,
        ..map(1)
    };
    gone.ask(&mut nat, 0);
    for port in 1..20 {
        let ask = Ask {
            client: OTHER,
            ..map(port)
        };
        assert_ne!(ask.ask(&mut nat, 10).external(), external);
    }
    let ask = Ask {
        client: OTHER,
        ..map(20)
    };
    assert_eq!(ask.ask(&mut nat, 10).external(), external);
}
