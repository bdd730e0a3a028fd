use proptest::prelude::*;

use super::*;

const UDP: u8 = 17;
const MASQ: Ipv4Addr = Ipv4Addr::new(1, 2, 3, 4);
const EXT: Ipv4Addr = Ipv4Addr::new(18, 52, 86, 120);
const PUB: Ipv4Addr = Ipv4Addr::new(1, 2, 222, 173);

fn host(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn arriving(port: u16, remote: Ipv4Addr, remote_port: u16) -> Tuple {
    Tuple {
        protocol: UDP,
        own: MASQ,
        own_port: port,
        remote,
        remote_port,
    }
}

fn inside(rules: &Rules, tuple: &Tuple) -> Option<(u8, u16)> {
    let found = rules.inbound(tuple, tuple.own == MASQ, 0)?;
    Some((
        found.address.map_or(0, |address| address.octets()[3]),
        found.port,
    ))
}

#[test]
fn the_most_specific_wins_and_among_equals_the_latest() {
    let mut rules = Rules::default();
    let to = |last: u8| Redirect::port(UDP, host(last), 80, 8_080);
    let from_ext = arriving(8_080, EXT, 5_000);
    let exact = rules.insert(to(1).from(Some(EXT), Some(5_000))).unwrap();
    let address = rules.insert(to(2).from(Some(EXT), None)).unwrap();
    let port = rules.insert(to(3).from(None, Some(5_000))).unwrap();
    rules.insert(to(4)).unwrap();
    let later = rules.insert(to(5)).unwrap();
    for (expected, gone) in [(1, exact), (2, address), (3, port), (5, later)] {
        assert_eq!(inside(&rules, &from_ext), Some((expected, 80)));
        rules.remove(gone).unwrap();
    }
    assert_eq!(inside(&rules, &from_ext), Some((4, 80)));
    let at_masq = rules.insert(to(6).at(MASQ)).unwrap();
    rules.insert(to(7).from(Some(EXT), Some(5_000))).unwrap();
    assert_eq!(
        inside(&rules, &from_ext),
        Some((6, 80)),
        "a given alias goes first"
    );
    rules.remove(at_masq).unwrap();
    assert_eq!(inside(&rules, &from_ext), Some((7, 80)));
}

#[test]
fn any_alias_is_the_current_one() {
    let mut rules = Rules::default();
    rules.insert(Redirect::port(UDP, host(1), 80, 80)).unwrap();
    let mut tuple = arriving(80, EXT, 1);
    assert!(rules.inbound(&tuple, true, 0).is_some());
    tuple.own = PUB;
    assert!(rules.inbound(&tuple, false, 0).is_none());
    assert!(rules.inbound(&tuple, true, 0).is_some());
}

#[test]
fn what_leaves_from_a_redirect_leaves_as_its_alias() {
    let mut rules = Rules::default();
    let range = Redirect::port(UDP, host(1), 100, 1_100).ports(50).at(PUB);
    rules.insert(range).unwrap();
    let leaving = Tuple {
        protocol: UDP,
        own: host(1),
        own_port: 117,
        remote: EXT,
        remote_port: 53,
    };
    let found = rules.outbound(&leaving, false, 0).unwrap();
    assert_eq!((found.address, found.port), (Some(PUB), 1_117));
    assert!(
        rules
            .outbound(
                &Tuple {
                    own_port: 150,
                    ..leaving
                },
                false,
                0
            )
            .is_none()
    );
}

#[test]
fn addresses_both_ways() {
    let mut rules = Rules::default();
    let first = rules.insert(Redirect::address(host(1), PUB)).unwrap();
    let second = rules.insert(Redirect::address(host(2), PUB)).unwrap();
    let original = |rules: &Rules| rules.original_address(PUB, false).and_then(|f| f.address);
    let alias = |rules: &Rules, last| rules.alias_address(host(last), false)?.address;
    assert_eq!(original(&rules), Some(host(2)));
    assert_eq!((alias(&rules, 1), alias(&rules, 2)), (Some(PUB), Some(PUB)));
    rules.remove(second).unwrap();
    assert_eq!(original(&rules), Some(host(1)));
    rules.remove(first).unwrap();
    assert_eq!((original(&rules), alias(&rules, 1)), (None, None));
}

#[test]
fn servers_take_turns() {
    let mut rules = Rules::default();
    let pool = rules.insert(Redirect::port(UDP, host(1), 80, 80)).unwrap();
    for last in [7, 8, 9] {
        let server = Server {
            address: host(last),
            port: 800 + u16::from(last),
        };
        rules.add_server(pool, server).unwrap();
    }
    let mut turns = Vec::new();
    for remote_port in 1..=6 {
        let found = rules
            .inbound(&arriving(80, EXT, remote_port), true, 0)
            .unwrap();
        turns.push((found.address, found.port));
        rules.take(found.handle);
    }
    let expected = [9, 8, 7, 9, 8, 7].map(|last| (Some(host(last)), 800 + u16::from(last)));
    assert_eq!(turns, expected);
    rules.remove(pool).unwrap();
    assert_eq!(
        rules.add_server(
            pool,
            Server {
                address: EXT,
                port: 1
            }
        ),
        Err(RuleError::Stale)
    );
}

#[test]
fn one_shot_redirects_go_with_use_time_or_the_address() {
    let mut rules = Rules::default();
    let partial = Redirect::port(UDP, host(1), 80, 80).from(Some(EXT), None);
    let below = rules.insert(partial).unwrap();
    assert_eq!(rules.make_dynamic(below, 9), Err(RuleError::NotExact));
    let exact = partial.from(Some(EXT), Some(5));
    let tuple = arriving(80, EXT, 5);
    let handle = rules.insert(exact).unwrap();
    rules.make_dynamic(handle, 100).unwrap();
    let found = rules.inbound(&tuple, true, 99).unwrap();
    assert!(found.one_shot && found.handle == handle);
    let after = rules.inbound(&tuple, true, 100).unwrap();
    assert_eq!(after.handle, below, "over: the one below speaks");
    rules.take(handle);
    assert_eq!(rules.remove(handle), Err(RuleError::Stale));
    let expected = rules.expect(partial, 200).unwrap();
    assert_eq!(
        rules.inbound(&tuple, true, 0).map(|f| f.handle),
        Some(expected)
    );
    rules.expire(199);
    assert_eq!(rules.len(), 2);
    rules.expire(200);
    assert_eq!(rules.len(), 1);
    rules.expect(exact, 300).unwrap();
    rules.drop_dynamic();
    assert_eq!(rules.len(), 1);
}

#[test]
fn limits_and_nonsense_are_refused() {
    let mut rules = Rules::new(1);
    let plain = Redirect::port(UDP, host(1), 80, 80);
    let wrong = [
        (plain.ports(u16::MAX), RuleError::PortsPastEnd),
        (plain.ports(0), RuleError::StrayPort),
        (
            Redirect::address(host(1), PUB).from(Some(EXT), None),
            RuleError::StrayRemote,
        ),
        (
            Redirect {
                protocol: None,
                ..plain
            },
            RuleError::StrayPort,
        ),
    ];
    for (redirect, error) in wrong {
        assert_eq!(rules.insert(redirect), Err(error));
    }
    let handle = rules.insert(plain).unwrap();
    assert_eq!(rules.insert(plain), Err(RuleError::Full { limit: 1 }));
    rules.remove(handle).unwrap();
    let next = rules.insert(plain).unwrap();
    assert_ne!(handle, next);
    assert_eq!(rules.remove(handle), Err(RuleError::Stale));
    for bits in [0, u64::MAX, next.to_bits() ^ 1] {
        assert_eq!(rules.remove(Handle::from_bits(bits)), Err(RuleError::Stale));
    }
}

/// The slow way: all rules of the best shape, the latest of them.
fn slow(rules: &[(Handle, Redirect)], tuple: &Tuple, current: bool) -> Option<Handle> {
    let fits = |redirect: &Redirect| {
        let offset = tuple.own_port.checked_sub(redirect.alias_port);
        redirect.protocol == Some(tuple.protocol)
            && redirect.alias.map_or(current, |alias| alias == tuple.own)
            && offset.is_some_and(|offset| offset < redirect.ports)
            && redirect.remote.is_none_or(|remote| remote == tuple.remote)
            && redirect
                .remote_port
                .is_none_or(|port| port == tuple.remote_port)
    };
    let rank = |redirect: &Redirect| {
        let Redirect {
            alias,
            remote,
            remote_port,
            ..
        } = redirect;
        (alias.is_some(), remote.is_some(), remote_port.is_some())
    };
    let fitting = rules.iter().filter(|(_, redirect)| fits(redirect));
    // `max_by_key` takes the last of equals.
    let best = fitting.max_by_key(|(_, redirect)| rank(redirect));
    best.map(|(handle, _)| *handle)
}

fn any_redirect() -> impl Strategy<Value = Redirect> {
    let small = 0..3_u8;
    (
        0..24_u16,
        1..12_u16,
        small.clone(),
        small.clone(),
        small,
        any::<bool>(),
    )
        .prop_map(|(first, ports, alias, remote, remote_port, udp)| {
            let pick = |number: u8| (number != 0).then_some(number);
            Redirect {
                alias: pick(alias).map(host),
                ports,
                ..Redirect::port(if udp { UDP } else { 6 }, host(9), first + 100, first)
            }
            .from(pick(remote).map(host), pick(remote_port).map(u16::from))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn as_the_slow_way(
        steps in prop::collection::vec((any_redirect(), any::<prop::sample::Index>(), 0..3_u8), 1..60),
    ) {
        let mut rules = Rules::default();
        let mut model: Vec<(Handle, Redirect)> = Vec::new();
        for (redirect, index, what) in steps {
            if what == 0 && !model.is_empty() {
                let (handle, redirect) = model.remove(index.index(model.len()));
                prop_assert_eq!(rules.remove(handle), Ok(redirect));
            } else {
                model.push((rules.insert(redirect).unwrap(), redirect));
            }
            for port in 0..36 {
                for (own, remote, remote_port) in [(1, 1, 1), (2, 2, 1), (1, 2, 2), (3, 1, 3)] {
                    let tuple = Tuple {
                        own: host(own),
                        ..arriving(port, host(remote), remote_port)
                    };
                    for current in [true, false] {
                        let found = rules.inbound(&tuple, current, 0).map(|found| found.handle);
                        prop_assert_eq!(found, slow(&model, &tuple, current));
                    }
                }
            }
        }
        let listed = std::iter::successors(rules.next_from(0), |(_, _, next)| rules.next_from(*next));
        prop_assert_eq!(listed.count(), model.len());
        for (handle, _) in model {
            rules.remove(handle).unwrap();
        }
        prop_assert!(rules.is_empty());
        prop_assert_eq!(rules.inbound.cells(), 0);
        prop_assert_eq!(rules.outbound.cells(), 0);
    }
}
