//! What mappings do, and how they are changed and end.

use std::net::Ipv4Addr;

use fingerpost_nat::rules::{Redirect, Rules};
use fingerpost_nat::{Behaviour, Nat, Verdict};

use super::trial::*;

#[test]
fn a_mapping_lets_everybody_in_and_its_host_out_by_the_same_port() {
    for behaviour in [Behaviour::SYMMETRIC, Behaviour::FULL_CONE] {
        for protocol in [UDP, TCP] {
            let mut config = config();
            (config.udp, config.tcp) = (behaviour, behaviour);
            let mut nat = Nat::new(config).unwrap();
            let wanted = Ask {
                protocol,
                ..map(4_000)
            };
            let answer = wanted.ask(&mut nat, 0);
            assert_eq!(answer.lifetime(), 3_600);
            let external = answer.external();
            assert_eq!(external.0, ALIAS);
            assert!(nat.config().ports.contains(&external.1));
            let reached = come(&mut nat, protocol, (STRANGER, 99), external, 0);
            assert_eq!(reached, Some((CLIENT, 4_000)));
            let from = (CLIENT, 4_000);
            let (verdict, source) = send(&mut nat, protocol, from, (STRANGER, 80), 0);
            assert_eq!((verdict, source), (Verdict::Translated, external));
            let [lease] = leases(&nat)[..] else {
                unreachable!()
            };
            assert_eq!((lease.inside, lease.inside_port), (ip(CLIENT), 4_000));
            assert_eq!((lease.alias, lease.alias_port), (ip(ALIAS), external.1));
            assert_eq!((lease.ports, lease.expires_millis), (1, 3_600_000));
            assert_eq!(nat.statistics().leases, 1);
        }
    }
}

#[test]
fn a_mapping_lives_its_time_and_ends_on_request() {
    let mut nat = Nat::new(config()).unwrap();
    let external = map(4_000).ask(&mut nat, 0).external();
    let port = (STRANGER, 1);
    assert!(come(&mut nat, UDP, port, external, 3_599_000).is_some());
    // Asked for again it is the same, and lives on.
    assert_eq!(map(4_000).ask(&mut nat, 3_599_000).external(), external);
    assert!(come(&mut nat, UDP, (STRANGER, 2), external, 7_198_000).is_some());
    assert_eq!(
        come(&mut nat, UDP, (STRANGER, 3), external, 7_199_000),
        None
    );
    assert_eq!(leases(&nat), []);
    nat.maintain(7_199_000, 0);
    assert_eq!(nat.statistics().leases, 0);
    // And by its host.
    let external = map(4_000).ask(&mut nat, 8_000_000).external();
    let gone = Ask {
        lifetime: 0,
        external_port: external.1,
        ..map(4_000)
    };
    let answer = gone.ask(&mut nat, 8_000_000);
    assert_eq!((answer.lifetime(), answer.external().1), (0, external.1));
    assert_eq!(
        come(&mut nat, UDP, (STRANGER, 4), external, 8_000_000),
        None
    );
    // What is not there can be deleted.
    assert_eq!(gone.ask(&mut nat, 8_000_000).code(), 0);
}

#[test]
fn lifetimes_are_kept_within_their_bounds() {
    let mut nat = Nat::new(config()).unwrap();
    for (wanted, given) in [(1, 120), (120, 120), (86_400, 86_400), (u32::MAX, 86_400)] {
        let ask = Ask {
            lifetime: wanted,
            ..map(4_000)
        };
        assert_eq!(ask.ask(&mut nat, 0).lifetime(), given);
    }
}

#[test]
fn only_who_knows_the_nonce_changes_a_mapping() {
    let mut nat = Nat::new(config()).unwrap();
    let external = map(4_000).ask(&mut nat, 0).external();
    for lifetime in [0, 100] {
        let other = Ask {
            nonce: 2,
            lifetime,
            ..map(4_000)
        };
        // It hears how long that one lives (RFC 6887 §11.3).
        let answer = other.ask(&mut nat, 600_000);
        assert_eq!((answer.code(), answer.lifetime()), (2, 3_000));
    }
    // Nor all at once.
    let all = Ask {
        nonce: 2,
        lifetime: 0,
        ..map(0)
    };
    assert_eq!(all.ask(&mut nat, 0).code(), 0);
    assert!(come(&mut nat, UDP, (STRANGER, 1), external, 0).is_some());
    let all = Ask { nonce: 1, ..all };
    assert_eq!(all.ask(&mut nat, 0).code(), 0);
    assert_eq!(leases(&nat), []);
}

#[test]
fn all_mappings_of_a_protocol_are_deleted_together() {
    let mut nat = Nat::new(config()).unwrap();
    for protocol in [UDP, TCP] {
        for port in [1, 4_000, 65_535] {
            let ask = Ask {
                protocol,
                ..map(port)
            };
            assert_eq!(ask.ask(&mut nat, 0).code(), 0);
        }
    }
    let theirs = Ask {
        client: OTHER,
        ..map(1)
    };
    theirs.ask(&mut nat, 0);
    let gone = |protocol| Ask {
        protocol,
        lifetime: 0,
        ..map(0)
    };
    assert_eq!(gone(UDP).ask(&mut nat, 0).code(), 0);
    assert_eq!(leases(&nat).len(), 4);
    // A port of all protocols is none (RFC 6887 §11.3, §15.1).
    for lifetime in [0, 100] {
        let port_of_all = Ask {
            port: 77,
            lifetime,
            ..gone(0)
        };
        assert_eq!(port_of_all.ask(&mut nat, 0).code(), 3);
    }
    assert_eq!(gone(0).ask(&mut nat, 0).code(), 0);
    let left = leases(&nat);
    assert_eq!((left.len(), left[0].inside), (1, ip(OTHER)));
}

#[test]
fn what_is_suggested_is_given_where_it_is_free() {
    let mut nat = Nat::new(config()).unwrap();
    let wish = |client, options: Vec<u8>| Ask {
        client,
        external_port: 40_000,
        options,
        ..map(4_000)
    };
    let exactly = || option(2, &[]);
    let answer = wish(CLIENT, exactly()).ask(&mut nat, 0);
    assert_eq!(answer.external(), (ALIAS, 40_000));
    // The option is in the answer, as it was taken.
    assert_eq!(answer.0[60..], option(2, &[]));
    let answer = wish(OTHER, exactly()).ask(&mut nat, 0);
    assert_eq!((answer.code(), answer.lifetime()), (11, 30));
    let external = wish(OTHER, Vec::new()).ask(&mut nat, 0).external();
    assert_ne!(external.1, 40_000);
    // One that it has already at another port.
    assert_eq!(wish(OTHER, exactly()).ask(&mut nat, 0).code(), 11);
    // Outside the range it is nobody's; another address is not ours.
    let low = Ask {
        external_port: 80,
        ..map(4_001)
    };
    assert_ne!(low.ask(&mut nat, 0).external().1, 80);
    let elsewhere = Ask {
        external: STRANGER.to_ipv6_mapped(),
        ..map(4_002)
    };
    assert_eq!(elsewhere.ask(&mut nat, 0).external().0, ALIAS);
    let elsewhere = Ask {
        port: 4_003,
        options: exactly(),
        ..elsewhere
    };
    // Exactly no port is nothing (RFC 6887 §13.2).
    assert_eq!(elsewhere.ask(&mut nat, 0).code(), 6);
    let elsewhere = Ask {
        external_port: 40_001,
        ..elsewhere
    };
    assert_eq!(elsewhere.ask(&mut nat, 0).code(), 11);
}

#[test]
fn filters_let_some_in() {
    let mut nat = Nat::new(config()).unwrap();
    let (friend, net) = (
        Ipv4Addr::new(203, 0, 113, 1),
        Ipv4Addr::new(198, 51, 100, 0),
    );
    let ask = |options: Vec<u8>| Ask {
        options,
        ..map(4_000)
    };
    let external = ask(filter(friend, 128, 80)).ask(&mut nat, 0).external();
    let reaches = |nat: &mut Nat, from: End| {
        let reached = come(nat, UDP, from, external, 0).is_some();
        nat.forget_flows();
        reached
    };
    assert!(reaches(&mut nat, (friend, 80)));
    assert!(!reaches(&mut nat, (friend, 81)));
    assert!(!reaches(&mut nat, (STRANGER, 80)));
    // Others come in addition.
    ask(filter(net, 96 + 24, 0)).ask(&mut nat, 0);
    assert!(reaches(&mut nat, (friend, 80)));
    assert!(reaches(&mut nat, (STRANGER, 7)));
    // Its host sends to whom it likes, who may answer.
    let far = (Ipv4Addr::new(203, 0, 113, 200), 5);
    let (verdict, source) = send(&mut nat, UDP, (CLIENT, 4_000), far, 0);
    assert_eq!((verdict, source), (Verdict::Translated, external));
    assert!(come(&mut nat, UDP, far, external, 0).is_some());
    nat.forget_flows();
    // Cleared, and one anew.
    let anew = [filter(net, 0, 0), filter(far.0, 128, 0)].concat();
    ask(anew).ask(&mut nat, 0);
    assert!(!reaches(&mut nat, (friend, 80)));
    assert!(reaches(&mut nat, (far.0, 1)));
    ask(filter(net, 0, 0)).ask(&mut nat, 0);
    assert!(reaches(&mut nat, (friend, 81)));
    // More than there can be: those that were there stay.
    let many = |from: u8| {
        let hosts = (0..20).map(|host| Ipv4Addr::new(203, 0, 113, from + host));
        hosts.flat_map(|host| filter(host, 128, 0)).collect()
    };
    assert_eq!(ask(many(0)).ask(&mut nat, 0).code(), 0);
    assert_eq!(ask(many(100)).ask(&mut nat, 0).code(), 13);
    assert!(reaches(&mut nat, (friend, 9)));
    assert!(!reaches(&mut nat, (Ipv4Addr::new(203, 0, 113, 101), 9)));
}

#[test]
fn a_set_of_ports_lies_in_a_row() {
    let mut nat = Nat::new(config()).unwrap();
    let ask = Ask {
        options: port_set(16, 4_001, 1),
        ..map(4_001)
    };
    let answer = ask.ask(&mut nat, 0);
    assert_eq!(answer.ports(), 16);
    let (_, first) = answer.external();
    // Odd behind odd.
    assert_eq!(first & 1, 1);
    for step in 0..16 {
        let reached = come(&mut nat, UDP, (STRANGER, 1), (ALIAS, first + step), 0);
        assert_eq!(reached, Some((CLIENT, 4_001 + step)));
    }
    assert_eq!(
        come(&mut nat, UDP, (STRANGER, 1), (ALIAS, first + 16), 0),
        None
    );
    // Again: the same. One of them by itself is the set's.
    assert_eq!(ask.ask(&mut nat, 0).external(), (ALIAS, first));
    assert_eq!(map(4_002).ask(&mut nat, 0).code(), 2);
    // A set ends where another one begins.
    let before = Ask {
        options: port_set(16, 3_997, 0),
        ..map(3_997)
    };
    assert_eq!(before.ask(&mut nat, 0).ports(), 4);
    let gone = Ask { lifetime: 0, ..ask };
    gone.ask(&mut nat, 0);
    assert_eq!(leases(&nat).len(), 1);
}

#[test]
fn a_peer_keeps_its_alias_end_beyond_the_flow() {
    for behaviour in [Behaviour::SYMMETRIC, Behaviour::FULL_CONE] {
        let mut config = config();
        config.udp = behaviour;
        config.udp.filtering = Behaviour::SYMMETRIC.filtering;
        let mut nat = Nat::new(config).unwrap();
        let (from, to) = ((CLIENT, 4_000), (STRANGER, 5_000));
        let (_, source) = send(&mut nat, UDP, from, to, 0);
        let ask = Ask {
            remote: Some(to),
            lifetime: 7_200,
            ..map(4_000)
        };
        // The flow that is there.
        assert_eq!(ask.ask(&mut nat, 0).external(), source);
        // Long silent: the other end still gets in, nobody else does.
        nat.maintain(3_600_000, 1_000_000);
        assert_eq!(nat.statistics().flows, 0);
        assert_eq!(come(&mut nat, UDP, to, source, 3_600_000), Some(from));
        assert_eq!(
            come(&mut nat, UDP, (STRANGER, 5_001), source, 3_600_000),
            None
        );
        assert_eq!(send(&mut nat, UDP, from, to, 3_600_000).1, source);
        // Without a flow a port is chosen for it.
        let fresh = Ask {
            remote: Some((STRANGER, 6_000)),
            ..map(4_100)
        };
        let external = fresh.ask(&mut nat, 3_600_000).external();
        let sent = send(&mut nat, UDP, (CLIENT, 4_100), (STRANGER, 6_000), 3_600_000);
        assert_eq!(sent, (Verdict::Translated, external));
        // Given back, the flow lives as any other.
        let gone = Ask {
            lifetime: 0,
            ..ask.clone()
        };
        assert_eq!(gone.ask(&mut nat, 3_600_000).code(), 0);
        assert_eq!(send(&mut nat, UDP, from, to, 3_600_000).1, source);
        assert_eq!(leases(&nat).len(), 1);
        let other = Ask { nonce: 9, ..fresh };
        assert_eq!(other.ask(&mut nat, 3_600_000).code(), 2);
    }
}

/// RFC 6887 §12.3, §15: one that was lost is made again as it was or not at
/// all, and none ends sooner than its flow.
#[test]
fn a_peer_gets_what_it_suggests_or_nothing() {
    let mut nat = Nat::new(config()).unwrap();
    let to = (STRANGER, 5_000);
    let suggest = |port, external_port| Ask {
        remote: Some(to),
        external_port,
        ..map(port)
    };
    let lost = suggest(4_000, 40_000).ask(&mut nat, 0);
    assert_eq!(lost.external(), (ALIAS, 40_000));
    let taken = suggest(4_001, 40_000).ask(&mut nat, 0);
    assert_eq!((taken.code(), leases(&nat).len()), (11, 1));
    let elsewhere = Ask {
        external: OTHER.to_ipv6_mapped(),
        ..suggest(4_001, 0)
    };
    assert_eq!(elsewhere.ask(&mut nat, 0).code(), 11);
    // Of a flow that is there the end is told, whatever is suggested.
    let (_, source) = send(&mut nat, UDP, (CLIENT, 4_002), to, 0);
    let told = suggest(4_002, source.1 ^ 1).ask(&mut nat, 0);
    assert_eq!((told.code(), told.external()), (0, source));
    // Asked for a second, it lives as long as its flow: answered, five minutes.
    let (_, source) = send(&mut nat, UDP, (CLIENT, 4_003), to, 0);
    assert!(come(&mut nat, UDP, to, source, 0).is_some());
    let short = Ask {
        lifetime: 1,
        ..suggest(4_003, 0)
    };
    let lifetime = short.ask(&mut nat, 10_000).lifetime();
    assert!((289..=291).contains(&lifetime), "{lifetime}");
}

/// RFC 6887 §11.3: the ports that PCP itself is spoken at are nobody's.
#[test]
fn nobody_gets_the_ports_of_pcp_itself() {
    let mut config = config();
    config.ports = 5_348..=5_353;
    let mut nat = Nat::new(config).unwrap();
    let mut given = Vec::new();
    for port in 4_000..4_006 {
        let wish = Ask {
            external_port: 5_351,
            ..map(port)
        };
        let answer = wish.ask(&mut nat, 0);
        if answer.code() == 0 {
            given.push(answer.external().1);
        }
        let exactly = Ask {
            options: option(2, &[]),
            external_port: 5_350,
            ..map(port + 100)
        };
        assert_ne!(exactly.ask(&mut nat, 0).code(), 0);
    }
    given.sort_unstable();
    assert!(!given.is_empty() && given.iter().all(|port| ![5_350, 5_351].contains(port)));
    // TCP has them.
    let tcp = Ask {
        protocol: TCP,
        options: option(2, &[]),
        external_port: 5_351,
        ..map(4_000)
    };
    assert_eq!(tcp.ask(&mut nat, 0).external(), (ALIAS, 5_351));
}

#[test]
fn a_peer_and_a_mapping_have_the_same_port() {
    let mut nat = Nat::new(config()).unwrap();
    let external = map(4_000).ask(&mut nat, 0).external();
    let ask = Ask {
        remote: Some((STRANGER, 5_000)),
        ..map(4_000)
    };
    assert_eq!(ask.ask(&mut nat, 0).external(), external);
    assert_eq!(leases(&nat).len(), 2);
    // With the rules read anew both stay.
    nat.set_rules(Rules::default());
    assert_eq!(leases(&nat).len(), 2);
    assert!(come(&mut nat, UDP, (STRANGER, 1), external, 0).is_some());
}

#[test]
fn the_mapping_that_a_host_has_already_becomes_its_lease() {
    let mut config = config();
    config.udp = Behaviour::FULL_CONE;
    let mut nat = Nat::new(config).unwrap();
    let (_, source) = send(&mut nat, UDP, (CLIENT, 4_000), (STRANGER, 80), 0);
    assert_eq!(map(4_000).ask(&mut nat, 0).external(), source);
    let exactly = Ask {
        external_port: source.1 ^ 1,
        options: option(2, &[]),
        ..map(4_000)
    };
    assert_eq!(exactly.ask(&mut nat, 0).code(), 11);
}

#[test]
fn a_mapping_whose_port_the_operator_redirects_becomes_nobodys_lease() {
    let mut config = config();
    config.udp = Behaviour::FULL_CONE;
    let mut nat = Nat::new(config).unwrap();
    let (from, to) = ((CLIENT, 4_000), (STRANGER, 80));
    let (_, source) = send(&mut nat, UDP, from, to, 0);
    let redirect = Redirect::port(UDP, OTHER, 9, source.1);
    let mut rules = Rules::default();
    rules.insert(redirect).unwrap();
    nat.set_rules(rules);
    let stranger = |port| (Ipv4Addr::new(203, 0, 113, 9), port);
    let reached = come(&mut nat, UDP, stranger(1), source, 0);
    assert_eq!(reached, Some((OTHER, 9)));
    // Exactly that one is not to be had, nor kept for one remote.
    let exactly = Ask {
        external_port: source.1,
        options: option(2, &[]),
        ..map(4_000)
    };
    assert_eq!(exactly.ask(&mut nat, 0).code(), 11);
    let peer = Ask {
        remote: Some(to),
        ..map(4_000)
    };
    assert_eq!(peer.ask(&mut nat, 0).code(), 11);
    // Another one is, and who comes in to either reaches whose it is.
    let external = map(4_000).ask(&mut nat, 0).external();
    assert_ne!(external, source);
    let reached = come(&mut nat, UDP, stranger(2), source, 0);
    assert_eq!(reached, Some((OTHER, 9)));
    assert_eq!(come(&mut nat, UDP, stranger(3), external, 0), Some(from));
    assert_eq!(
        send(&mut nat, UDP, from, stranger(4), 0),
        (Verdict::Translated, external)
    );
    // The flow that was there goes on as it was.
    assert_eq!(send(&mut nat, UDP, from, to, 0).1, source);
    // Asked for again it is the same.
    assert_eq!(map(4_000).ask(&mut nat, 0).external(), external);
}

#[test]
fn a_redirect_of_the_operators_serves_and_stays() {
    let mut nat = Nat::new(config()).unwrap();
    let redirect = Redirect::port(UDP, CLIENT, 4_000, 8_080);
    nat.rules_mut().insert(redirect).unwrap();
    let answer = map(4_000).ask(&mut nat, 0);
    assert_eq!(answer.external(), (ALIAS, 8_080));
    // It does not end (RFC 6887 §11.3).
    assert_eq!(answer.lifetime(), u32::MAX);
    assert_eq!(leases(&nat), []);
    let gone = Ask {
        lifetime: 0,
        ..map(4_000)
    };
    assert_eq!(gone.ask(&mut nat, 0).code(), 2);
    let filtered = Ask {
        options: filter(STRANGER, 128, 0),
        ..map(4_000)
    };
    assert_eq!(filtered.ask(&mut nat, 0).code(), 13);
}

#[test]
fn new_rules_leave_mappings_as_they_were_but_where_they_need_the_port() {
    let mut nat = Nat::new(config()).unwrap();
    let kept = Ask {
        options: filter(STRANGER, 128, 0),
        ..map(4_000)
    };
    let kept = kept.ask(&mut nat, 0).external();
    let lost = map(4_001).ask(&mut nat, 0).external();
    let mut rules = Rules::default();
    let redirect = Redirect::port(UDP, OTHER, 9, lost.1);
    rules.insert(redirect).unwrap();
    nat.set_rules(rules);
    assert_eq!(leases(&nat).len(), 1);
    assert_eq!(
        come(&mut nat, UDP, (STRANGER, 1), kept, 0),
        Some((CLIENT, 4_000))
    );
    assert_eq!(come(&mut nat, UDP, (OTHER, 1), kept, 0), None);
    assert_eq!(
        come(&mut nat, UDP, (STRANGER, 1), lost, 0),
        Some((OTHER, 9))
    );
    // Asked for again it has another one.
    assert_ne!(map(4_001).ask(&mut nat, 0).external(), lost);
    let mut off = nat.config().pcp.clone();
    off.addresses.clear();
    nat.set_pcp(off);
    nat.forget_flows();
    assert_eq!(come(&mut nat, UDP, (STRANGER, 1), kept, 0), None);
}
