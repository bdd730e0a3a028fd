//! Leases beside flows, mappings and blocks, whatever is done: no port is two
//! hosts', and all that was counted is given back.

use std::collections::BTreeMap;

use super::books::audit;
use super::*;
use crate::rules::Redirect;
use crate::{Blocks, LeaseView};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// A request of MAP or PEER (RFC 6887 §11.1, §12.1) through the engine.
fn ask(nat: &mut Nat, random: &mut Random, source: (Ipv4Addr, u16), now: u64) {
    let mut below = |bound: u32| random.below(bound);
    let is_peer = below(4) == 0;
    let mut data = vec![2, 1 + u8::from(is_peer), 0, 0];
    data.extend((below(3) * 1_000).to_be_bytes());
    data.extend(source.0.to_ipv6_mapped().octets());
    data.extend([below(8) as u8 / 7; 12]);
    data.extend([[6, 17][below(2) as usize], 0, 0, 0]);
    let port = if below(20) == 0 { 0 } else { source.1 };
    data.extend(port.to_be_bytes());
    data.extend((40_000 + below(8) as u16).to_be_bytes());
    data.extend(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().octets());
    if is_peer {
        data.extend((53 + below(3) as u16).to_be_bytes());
        data.extend([0, 0]);
        data.extend(REMOTE.to_ipv6_mapped().octets());
    }
    if below(3) == 0 {
        data.extend([130, 0, 0, 5, 0, 1 + below(9) as u8]);
        data.extend(source.1.to_be_bytes());
        data.extend([below(2) as u8, 0, 0, 0]);
    }
    if below(6) == 0 {
        data.extend([2, 0, 0, 0]);
    }
    let mut bytes = Ip::new(source.0, SERVER).udp(5_350, 5_351, &data);
    bytes.resize(bytes.len() + 100, 0);
    assert_eq!(nat.translate_out(&mut bytes, now), Verdict::Answered);
}

fn leases(nat: &Nat) -> Vec<LeaseView> {
    let mut all = Vec::new();
    let rest = nat.leases(Cursor::default(), usize::MAX, &mut |lease| all.push(*lease));
    assert_eq!(rest, None);
    all
}

/// No outside port is two hosts' to the same remotes, and each host's stay
/// within its bounds.
fn audit_leases(nat: &Nat) {
    let mut hosts = BTreeMap::<_, u32>::new();
    let mut ends = BTreeMap::new();
    for lease in leases(nat) {
        *hosts.entry(lease.inside).or_default() += u32::from(lease.ports);
        for step in 0..lease.ports {
            let end = (lease.protocol, lease.alias, lease.alias_port + step);
            let inside = (lease.inside, lease.inside_port + step);
            // Where a mapping is one for all remotes, so is a lease.
            let is_one = lease.protocol == 17 && nat.config().udp.mapping == Dependence::Endpoint;
            let remote = lease.remote.filter(|_| !is_one);
            let other = ends.insert((end, remote), inside);
            assert!(other.is_none_or(|other| other == inside), "{lease:?}");
        }
    }
    let most = nat.config().pcp.most_ports;
    assert!(hosts.values().all(|ports| *ports <= most));
}

/// All leases are there again, with what they count, their filters and the
/// epoch; over time each ends, and all is given back.
fn after_a_restart(nat: &mut Nat, now: u64) {
    nat.set_rules(Rules::default());
    let bytes = saved::saved(nat, now);
    let mut other = Nat::new(nat.config().clone()).unwrap();
    // A new clock.
    saved::taken_up(&mut other, &bytes, 0, 5_000_000).unwrap();
    audit(&other);
    audit_leases(&other);
    assert_eq!(leases(&other), leases(nat));
    let epochs = [&*nat, &other].map(|of| {
        let leases = of.leases.as_ref().unwrap();
        leases.epoch_secs(of.clock.run_millis())
    });
    assert_eq!(epochs[0], epochs[1]);
    let announced = other.next_announcement(&mut [0; 1_500], 5_000_000);
    assert_eq!(announced, None, "nobody has to ask again");
    other.maintain(5_000_000 + 100_000_000, usize::MAX);
    other.maintain(5_000_000 + 200_000_000, usize::MAX);
    audit(&other);
    assert_eq!(other.statistics().leases, 0);
}

#[test]
fn a_lease_that_finds_no_place_any_more_begins_a_new_epoch() {
    let mut config = config(100);
    config.pcp.addresses = vec![SERVER];
    config.ports = 40_000..=40_063;
    let mut nat = Nat::new(config).unwrap();
    let mut random = Random::new(7);
    while leases(&nat).is_empty() {
        ask(&mut nat, &mut random, (HOST, 7), 1_000);
    }
    let taken = leases(&nat)[0];
    let bytes = saved::saved(&mut nat, 61_000);
    let other_address = Ipv4Addr::new(192, 0, 2, 2);
    for (what, keeps) in [("nothing", true), ("rules", false), ("addresses", false)] {
        let mut config = nat.config().clone();
        if what == "addresses" {
            config.addresses = vec![other_address];
        }
        let mut other = Nat::new(config).unwrap();
        if what == "rules" {
            let port = taken.alias_port;
            let mut rules = Rules::default();
            rules
                .insert(Redirect::port(taken.protocol, host(9), 9, port))
                .unwrap();
            other.set_rules(rules);
        }
        saved::taken_up(&mut other, &bytes, 0, 0).unwrap();
        assert_eq!(leases(&other).len() == leases(&nat).len(), keeps, "{what}");
        let epoch = other.leases.as_ref().unwrap();
        let epoch = epoch.epoch_secs(other.clock.run_millis());
        assert_eq!(epoch >= 60, keeps, "{what}: {epoch}");
        let announced = other.next_announcement(&mut [0; 1_500], 0);
        assert_eq!(announced.is_none(), keeps, "{what}");
        audit(&other);
    }
    // What was over meanwhile is missed by nobody.
    let mut other = Nat::new(nat.config().clone()).unwrap();
    saved::taken_up(&mut other, &bytes, 100_000_000, 0).unwrap();
    assert_eq!(leases(&other).len(), 0);
    assert_eq!(other.next_announcement(&mut [0; 1_500], 0), None);
}

#[test]
fn leases_flows_and_blocks_agree_whatever_is_done() {
    let depend = [Dependence::Endpoint, Dependence::AddressAndPort];
    let other = Ipv4Addr::new(192, 0, 2, 2);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut config = config(4 + random.below(60) as usize);
        config.seed = seed;
        config.limits.at_cap = [AtCap::Evict, AtCap::Refuse][random.below(2) as usize];
        config.ports = 40_000..=[40_007, 40_127][random.below(2) as usize];
        config.pcp.addresses = vec![SERVER];
        config.pcp.most_ports = 1 + random.below(30);
        config.pcp.most_leases = 1 + random.below(30) as usize;
        config.udp.mapping = depend[random.below(2) as usize];
        if random.below(2) == 0 {
            config.blocks = Some(Blocks {
                size: 8,
                most: 1 + random.below(3) as u8,
                ..Blocks::default()
            });
        } else if random.below(2) == 0 {
            config.subscribers.quotas.ports.of[1] = 1 + random.below(20);
        }
        let mut nat = Nat::new(config).unwrap();
        let mut now = 0;
        for _ in 0..400 {
            now += u64::from(random.below(20_000));
            let source = (host(1 + random.below(4)), 1 + random.below(12) as u16);
            let to = (REMOTE, 53 + random.below(3) as u16);
            match random.below(40) {
                0 => nat.forget_flows(),
                1 => {
                    let addresses = [[ALIAS, other][random.below(2) as usize]];
                    nat.set_addresses(&addresses).unwrap();
                }
                2 => {
                    let mut rules = Rules::default();
                    let port = 40_000 + random.below(8) as u16;
                    let redirect = Redirect::port(17, host(9), 9, port);
                    rules.insert(redirect).unwrap();
                    nat.set_rules(rules);
                }
                3 => nat.set_rules(Rules::default()),
                4 => now += 300_000,
                5 => drop(nat.maintain(now, random.below(100) as usize)),
                6..16 => drop(out(&mut nat, source, to, now)),
                16..24 => {
                    let port = 40_000 + random.below(8) as u16;
                    let _ = back(&mut nat, to, port, now);
                }
                _ => ask(&mut nat, &mut random, source, now),
            }
            audit(&nat);
            audit_leases(&nat);
        }
        after_a_restart(&mut nat, now);
        let mut off = nat.config().pcp.clone();
        off.addresses.clear();
        nat.set_pcp(off);
        nat.maintain(now + 100_000_000, usize::MAX);
        audit(&nat);
        assert_eq!(nat.statistics().leases, 0);
        assert_eq!(nat.statistics().flows + nat.statistics().mappings, 0);
    }
}
