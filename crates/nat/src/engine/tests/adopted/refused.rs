//! Why a flow cannot be adopted: each reason, and what is just not one.

use super::*;

#[test]
fn what_is_never_offloaded_is_not_adopted() {
    let mut nat = with(|_| {});
    let refused = |nat: &mut Nat, flow: Offloaded| {
        assert_eq!(nat.adopt(&flow, 0, 0), Err(NotAdopted::Kind), "{flow:?}");
    };
    let usual = flow();
    for of in [0, protocol::ICMP, protocol::GRE, protocol::UDP_LITE, 255] {
        refused(
            &mut nat,
            Offloaded {
                protocol: of,
                ..usual
            },
        );
    }
    refused(
        &mut nat,
        Offloaded {
            remote_port: 53,
            ..usual
        },
    );
    refused(
        &mut nat,
        Offloaded {
            inside_port: 53,
            ..usual
        },
    );
    refused(
        &mut nat,
        Offloaded {
            remote: ALIAS,
            ..usual
        },
    );
    refused(
        &mut nat,
        Offloaded {
            alias_port: 0,
            ..usual
        },
    );
    let nobody = Ipv4Addr::UNSPECIFIED;
    refused(
        &mut nat,
        Offloaded {
            inside: nobody,
            ..usual
        },
    );
    refused(
        &mut nat,
        Offloaded {
            remote: nobody,
            ..usual
        },
    );
    refused(
        &mut nat,
        Offloaded {
            alias: nobody,
            ..usual
        },
    );
    refused(&mut with(|config| config.mode.reverse = true), usual);
    let tcp = Offloaded {
        remote_port: 53,
        ..connection()
    };
    assert_eq!(nat.adopt(&tcp, 0, 0), Ok(()));
}

#[test]
fn the_settings_must_give_the_alias_address() {
    let refused = |change: fn(&mut Config), flow: Offloaded| {
        assert_eq!(
            with(change).adopt(&flow, 0, 0),
            Err(NotAdopted::Alias),
            "{flow:?}"
        );
    };
    let usual = flow();
    refused(
        |_| {},
        Offloaded {
            alias: OTHER,
            ..usual
        },
    );
    refused(|config| config.addresses.clear(), usual);
    refused(|config| config.mode.proxy_only = true, usual);
    refused(
        |config| config.exempt = vec![AddressRange::of_prefix(REMOTE, 24)],
        usual,
    );
    let public = Offloaded {
        inside: Ipv4Addr::new(203, 0, 113, 5),
        ..usual
    };
    refused(|config| config.mode.unregistered_only = true, public);
    // It keeps its own address and port, and another one does not.
    let own = Offloaded {
        alias: public.inside,
        alias_port: 4_000,
        ..public
    };
    let mut nat = with(|config| config.mode.unregistered_only = true);
    assert_eq!(nat.adopt(&own, 0, 0), Ok(()));
    let mapped = Offloaded {
        alias_port: 4_001,
        inside_port: 9,
        ..own
    };
    assert_eq!(nat.adopt(&mapped, 0, 0), Err(NotAdopted::Alias));
    refused(|_| {}, own);
    assert_eq!(
        with(|config| config.mode.deny_incoming = false).adopt(&own, 0, 0),
        Ok(())
    );
    assert_eq!(
        with(|config| config.passes_foreign = true).adopt(&own, 0, 0),
        Ok(())
    );
    // A reckoned address is the only one.
    let mut nat = with(|config| deterministic(config, None));
    let is_ok = [ALIAS, OTHER].map(|alias| {
        let block = nat.config().blocks.clone();
        assert!(block.is_some());
        let port = (40_000..40_999).find(|port| {
            let flow = Offloaded {
                alias,
                alias_port: *port,
                ..usual
            };
            nat.adopt(&flow, 0, 0).is_ok()
        });
        port.is_some()
    });
    assert_eq!(is_ok.iter().filter(|is_ok| **is_ok).count(), 1);
}

#[test]
fn the_settings_must_give_the_port() {
    let usual = flow();
    let low = Offloaded {
        alias_port: 30_000,
        ..usual
    };
    assert_eq!(with(|_| {}).adopt(&low, 0, 0), Err(NotAdopted::Port));
    let same = Offloaded {
        alias_port: usual.inside_port,
        ..usual
    };
    assert_eq!(with(|_| {}).adopt(&same, 0, 0), Err(NotAdopted::Port));
    let keeps: fn(&mut Config) = |config| config.port_choice = PortChoice::Same;
    assert_eq!(with(keeps).adopt(&same, 0, 0), Ok(()));
    assert_eq!(with(keeps).adopt(&low, 0, 0), Err(NotAdopted::Port));
    // In no block: the last ports of the range.
    let mut nat = with(|config| {
        config.ports = 40_000..=40_099;
        config.blocks = blocks(64, 1);
    });
    let rest = Offloaded {
        alias_port: 40_070,
        ..usual
    };
    assert_eq!(nat.adopt(&rest, 0, 0), Err(NotAdopted::Port));
    assert_eq!(nat.adopt(&usual, 0, 0), Ok(()));
}

#[test]
fn ports_of_blocks_are_for_subscribers() {
    let mut nat = with(|config| {
        config.blocks = blocks(64, 1);
        config.subscribers.inside = vec![AddressRange::of_prefix(HOST, 30)];
    });
    let foreign = Offloaded {
        inside: host(9),
        ..flow()
    };
    assert_eq!(nat.adopt(&foreign, 0, 0), Err(NotAdopted::Subscriber));
    assert_eq!(nat.statistics().subscribers, 0);
    assert_eq!(nat.adopt(&flow(), 0, 0), Ok(()));
}

#[test]
fn what_is_anothers_is_not_taken_from_it() {
    let usual = flow();
    let mut nat = with(|_| {});
    assert_eq!(nat.adopt(&usual, 0, 0), Ok(()));
    let taken = |nat: &mut Nat, flow: Offloaded| {
        assert_eq!(nat.adopt(&flow, 0, 0), Err(NotAdopted::Taken), "{flow:?}");
        super::books::audit(nat);
    };
    taken(&mut nat, usual);
    taken(
        &mut nat,
        Offloaded {
            inside: host(1),
            ..usual
        },
    );
    taken(
        &mut nat,
        Offloaded {
            alias_port: 40_001,
            ..usual
        },
    );
    // Of another remote it is another's, too.
    let other_remote = Offloaded {
        remote_port: 7,
        inside: host(1),
        ..usual
    };
    assert_eq!(nat.adopt(&other_remote, 0, 0), Ok(()));
    // A shared mapping's.
    let mut nat = with(|config| config.udp = Behaviour::FULL_CONE);
    assert_eq!(nat.adopt(&usual, 0, 0), Ok(()));
    taken(&mut nat, other_remote);
    // A redirect's, of another host.
    let mut nat = with(|_| {});
    let redirect = Redirect::port(protocol::UDP, host(1), 9, 40_000);
    nat.rules_mut().insert(redirect.at(ALIAS)).unwrap();
    taken(&mut nat, usual);
    // Somebody's block, and one that rests with somebody or nobody.
    let mut nat = with(|config| config.blocks = blocks(64, 1));
    let first = 40_000 / 64 * 64;
    assert_eq!(nat.adopt(&usual, 0, 0), Ok(()));
    taken(
        &mut nat,
        Offloaded {
            alias_port: first,
            inside: host(1),
            ..usual
        },
    );
    let mut nat = with(|config| config.blocks = blocks(64, 1));
    assert!(nat.hold_block(host(1), ALIAS, (first, first + 63), 0));
    taken(&mut nat, usual);
    let mut nat = with(|config| config.blocks = blocks(64, 1));
    assert!(!nat.hold_block(host(1), ALIAS, (first, first + 31), 0));
    taken(&mut nat, usual);
    // A reckoned one.
    let mut nat = with(|config| deterministic(config, None));
    let mut owners = BTreeSet::new();
    for number in 0..32 {
        let inside = Ipv4Addr::from(u32::from(HOST) - 1 + number);
        for alias in [ALIAS, OTHER] {
            let flow = Offloaded {
                alias,
                inside,
                ..usual
            };
            if nat.adopt(&flow, 0, 0).is_ok() {
                owners.insert((alias, number));
            }
        }
    }
    assert_eq!(owners.len(), 2, "one for each address: {owners:?}");
    super::books::audit(&nat);
}

#[test]
fn quotas_hold_and_no_rate_does() {
    let second = Offloaded {
        inside_port: 4_001,
        alias_port: 40_001,
        ..flow()
    };
    for change in [
        (|config| config.subscribers.quotas.sessions.all = 1) as fn(&mut Config),
        |config| config.subscribers.quotas.ports.all = 1,
        |config| config.subscribers.quotas.ports.of[1] = 1,
    ] {
        let mut nat = with(change);
        assert_eq!(nat.adopt(&flow(), 0, 0), Ok(()));
        assert_eq!(nat.adopt(&second, 0, 0), Err(NotAdopted::Quota));
        super::books::audit(&nat);
        let (verdict, _) = out(&mut nat, (HOST, 4_001), FAR, 0);
        assert_eq!(verdict, Verdict::OverQuota);
        let others = Offloaded {
            inside: host(1),
            ..second
        };
        assert_eq!(nat.adopt(&others, 0, 0), Ok(()));
    }
    // Of blocks, too.
    let mut nat = with(|config| config.blocks = blocks(64, 1));
    assert_eq!(nat.adopt(&flow(), 0, 0), Ok(()));
    let elsewhere = Offloaded {
        alias_port: 50_000,
        ..second
    };
    assert_eq!(nat.adopt(&elsewhere, 0, 0), Err(NotAdopted::Quota));
    // They are no new ones: the rate is for those that come.
    let mut nat = with(|config| config.subscribers.quotas.new_mappings.of[0] = 1);
    for port in 0..20 {
        let flow = Offloaded {
            inside_port: 4_000 + port,
            alias_port: 40_000 + port,
            ..flow()
        };
        assert_eq!(nat.adopt(&flow, 0, 0), Ok(()));
    }
    assert_eq!(out(&mut nat, (HOST, 1), FAR, 0).0, Verdict::Translated);
    assert_eq!(out(&mut nat, (HOST, 2), FAR, 0).0, Verdict::OverQuota);
}

#[test]
fn there_may_be_no_room() {
    let mut nat = with(|config| config.limits.max_flows = 2);
    for port in 0..4 {
        let flow = Offloaded {
            inside_port: 4_000 + port,
            alias_port: 40_000 + port,
            ..flow()
        };
        let expected = if port < 2 {
            Ok(())
        } else {
            Err(NotAdopted::Full)
        };
        assert_eq!(nat.adopt(&flow, 0, 0), expected);
    }
    let mut nat = with(|config| {
        config.blocks = blocks(64, 1);
        config.subscribers.most = 1;
    });
    assert_eq!(nat.adopt(&flow(), 0, 0), Ok(()));
    let other = Offloaded {
        inside: host(1),
        alias_port: 50_000,
        ..flow()
    };
    assert_eq!(nat.adopt(&other, 0, 0), Err(NotAdopted::Full));
    super::books::audit(&nat);
}

#[test]
fn another_part_of_several_does_not_adopt_it() {
    let mut configs = config(100);
    configs.udp = Behaviour::FULL_CONE;
    let first = Nat::new(configs.clone()).unwrap();
    let shards = Arc::new(first.shards(2).unwrap());
    let part = |number| {
        let mut nat = Nat::new(configs.clone()).unwrap();
        nat.join_shards(shards.clone(), number);
        nat
    };
    let (mut parts, mut again) = ([part(0), part(1)], [part(0), part(1)]);
    let mut seen = [0; 2];
    for number in 0..40 {
        let source = (host(number), 4_000);
        let mut bytes = Ip::new(source.0, FAR.0).udp(source.1, FAR.1, b"data");
        let Owner::Shard(own) = shards.owner(Direction::Out, &bytes) else {
            unreachable!();
        };
        let own = usize::from(own);
        parts[own].translate_out(&mut bytes, 0);
        let alias_port = u16::from_be_bytes([bytes[20], bytes[21]]);
        let flow = Offloaded {
            inside: source.0,
            alias_port,
            ..flow()
        };
        assert_eq!(again[1 - own].adopt(&flow, 0, 0), Err(NotAdopted::Part));
        assert_eq!(again[own].adopt(&flow, 0, 0), Ok(()));
        seen[own] += 1;
    }
    assert!(seen.iter().all(|flows| *flows > 5), "{seen:?}");
}

#[test]
fn what_a_redirect_made_is_the_redirects() {
    let redirect = Redirect::port(protocol::UDP, HOST, 4_000, 8_080).at(ALIAS);
    let made = Offloaded {
        alias_port: 8_080,
        ..flow()
    };
    let mut nat = with(|config| config.blocks = blocks(64, 1));
    assert_eq!(nat.adopt(&made, 0, 0), Err(NotAdopted::Port), "it is gone");
    nat.rules_mut().insert(redirect).unwrap();
    assert_eq!(nat.adopt(&made, 0, 0), Ok(()));
    super::books::audit(&nat);
    assert_eq!(nat.statistics().blocks, 0);
    // It leads to somebody else now.
    let mut nat = with(|_| {});
    let other = Redirect {
        inside: Some(host(1)),
        ..redirect
    };
    nat.rules_mut().insert(other).unwrap();
    assert_eq!(nat.adopt(&made, 0, 0), Err(NotAdopted::Taken));
    // One that was used up is used up again.
    let mut nat = with(|_| {});
    let once = redirect.from(Some(FAR.0), Some(FAR.1));
    let handle = nat.rules_mut().insert(once).unwrap();
    nat.rules_mut().make_dynamic(handle, u64::MAX).unwrap();
    assert_eq!(nat.adopt(&made, 0, 0), Ok(()));
    assert!(nat.rules().is_empty());
    // Outward only: the inside end has another alias by a redirect.
    let mut nat = with(|_| {});
    nat.rules_mut().insert(redirect).unwrap();
    assert_eq!(nat.adopt(&flow(), 0, 0), Err(NotAdopted::Alias));
    // What went to the target stays with it, and without one goes nowhere.
    let target: fn(&mut Config) = |config| {
        config.target = Some(HOST);
        config.mode.deny_incoming = false;
    };
    let made = Offloaded {
        alias_port: 4_000,
        ..flow()
    };
    assert_eq!(with(target).adopt(&made, 0, 0), Ok(()));
    let elsewhere = Offloaded {
        alias: OTHER,
        ..made
    };
    assert_eq!(with(target).adopt(&elsewhere, 0, 0), Ok(()));
    let others = Offloaded {
        inside: host(1),
        ..elsewhere
    };
    assert_eq!(with(target).adopt(&others, 0, 0), Err(NotAdopted::Alias));
}

#[test]
fn timeouts_of_before_may_have_been_longer() {
    let mut nat = with(|config| {
        config.timeouts = Timeouts {
            udp_secs: 60,
            ..Timeouts::default()
        };
    });
    assert_eq!(nat.adopt(&flow(), 100_000, 0), Err(NotAdopted::Expired));
    assert_eq!(nat.adopt(&flow(), 50_000, 0), Ok(()));
}
