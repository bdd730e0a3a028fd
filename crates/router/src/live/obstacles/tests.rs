use netlink::on_the_way::{BaseChain, Qdisc, XdpFeatures, family, hook};
use table::row::link::KindData;
use table::{Link, Rule};

use super::*;

/// A namespace without anything in the way: two ports, 1 and 2.
fn clear() -> Seen {
    let port = |(index, name): (u32, &str)| PortSeen {
        link: Link {
            index,
            name: name.into(),
            forwards_v4: true,
            ..Link::default()
        },
        features: Some(XdpFeatures {
            sends: true,
            sends_long: true,
            tells_tags: true,
        }),
        asks_tags: true,
        ..PortSeen::default()
    };
    let ports: Vec<PortSeen> = [(1, "lan"), (2, "wan")].into_iter().map(port).collect();
    Seen {
        links: ports.iter().map(|port| port.link.clone()).collect(),
        ports,
        loopback_forwards: true,
        forwards_v6: true,
        ..Seen::default()
    }
}

/// What is found where one thing is changed: kind and scope.
fn found(change: impl FnOnce(&mut Seen)) -> Vec<(Kind, Scope)> {
    let mut seen = clear();
    change(&mut seen);
    let found = find(&seen);
    found.iter().map(|one| (one.kind, one.scope)).collect()
}

fn chain(family: u8, hook: u32, is_busy: bool, device: &str) -> BaseChain {
    BaseChain {
        family,
        hook,
        is_busy,
        devices: vec![device.into()],
        ..BaseChain::default()
    }
}

#[test]
fn nothing_is_in_a_clear_way() {
    assert_eq!(found(|_| {}), []);
}

#[test]
fn chains_count_where_packets_meet_them() {
    let of = |family, hook, is_busy, device: &'static str| {
        found(|seen| seen.chains.push(chain(family, hook, is_busy, device)))
    };
    let all = |scope| vec![(Kind::Nft, scope)];
    assert_eq!(of(family::INET, hook::FORWARD, true, ""), all(Scope::All));
    let v4 = Scope::Family(Family::V4);
    assert_eq!(of(family::IPV4, hook::POSTROUTING, true, ""), all(v4));
    let v6 = Scope::Family(Family::V6);
    assert_eq!(of(family::IPV6, hook::PREROUTING, true, ""), all(v6));
    assert_eq!(of(family::NETDEV, 0, true, "wan"), all(Scope::Port(2)));
    assert_eq!(of(family::NETDEV, 0, true, "other"), []);
    assert_eq!(of(family::INET, hook::FORWARD, false, ""), []);
    // Input and output are not on the way.
    assert_eq!(of(family::INET, 1, true, ""), []);
    assert_eq!(of(family::INET, 3, true, ""), []);
}

#[test]
fn what_is_at_a_port_counts_there() {
    let here = |kind| vec![(kind, Scope::Port(1))];
    let qdisc = |kind: &str, link| {
        let kind = kind.into();
        found(|seen| seen.qdiscs.push(Qdisc { link, kind }))
    };
    assert_eq!(qdisc("htb", 1), here(Kind::Qdisc));
    assert_eq!(qdisc("clsact", 1), here(Kind::Tc));
    assert_eq!(qdisc("fq_codel", 1), []);
    assert_eq!(qdisc("htb", 9), []);
    assert_eq!(found(|seen| seen.ports[0].tcx_programs = 1), here(Kind::Tc));
    let member = found(|seen| seen.ports[0].link.master = Some(9));
    assert_eq!(member, here(Kind::Member));
    let bond = found(|seen| seen.ports[0].link.kind = Some("bond".into()));
    assert_eq!(bond, here(Kind::Bond));
    assert_eq!(
        found(|seen| seen.ports[0].features = None),
        here(Kind::VlanTags)
    );
    assert_eq!(
        found(|seen| seen.ports[0].asks_tags = false),
        here(Kind::VlanTags)
    );
}

#[test]
fn links_on_a_port_count_where_they_share_its_address() {
    let upper = |kind: &str, kind_data| {
        let upper = Link {
            index: 7,
            kind: Some(kind.into()),
            kind_data,
            lower: Some(1),
            ..Link::default()
        };
        found(|seen| seen.links.push(upper))
    };
    let macvlan = |mode| {
        let data = table::row::link::macvlan::Macvlan {
            mode: Some(mode),
            ..Default::default()
        };
        upper("macvlan", KindData::Macvlan(Box::new(data)))
    };
    assert_eq!(
        upper("ipvlan", KindData::None),
        [(Kind::Upper, Scope::Port(1))]
    );
    assert_eq!(macvlan(8), [(Kind::Upper, Scope::Port(1))]);
    assert_eq!(macvlan(16), [(Kind::Upper, Scope::Port(1))]);
    assert_eq!(macvlan(4), []);
    assert_eq!(upper("vlan", KindData::None), []);
}

#[test]
fn settings_count_for_their_family() {
    let v6 = Scope::Family(Family::V6);
    let rule = Rule {
        family: table::AF_INET6,
        fwmark: Some((1, 1)),
        ..Rule::default()
    };
    assert_eq!(found(|seen| seen.rules.push(rule)), [(Kind::Rule, v6)]);
    assert_eq!(found(|seen| seen.rules.push(Rule::default())), []);
    assert_eq!(
        found(|seen| seen.hash_policies = [1, 2]),
        [(Kind::Multipath, v6)]
    );
    assert_eq!(
        found(|seen| seen.forwards_v6 = false),
        [(Kind::Forwarding, v6)]
    );
    let into = Scope::Into(1, Family::V4);
    let closed = found(|seen| seen.ports[0].link.forwards_v4 = false);
    assert_eq!(closed, [(Kind::Forwarding, into)]);
    let into = Scope::Into(1, Family::V6);
    let off = found(|seen| seen.ports[0].link.v6_disabled = true);
    assert_eq!(off, [(Kind::Forwarding, into)]);
    assert_eq!(found(|seen| seen.policies.push(10)), [(Kind::Xfrm, v6)]);
    assert_eq!(
        found(|seen| seen.connections = 1),
        [(Kind::Conntrack, Scope::All)]
    );
    let tables = found(|seen| seen.iptables.push((Family::V6, "filter".into())));
    assert_eq!(tables, [(Kind::Iptables, v6)]);
}

#[test]
fn reverse_paths_are_strict_by_the_stronger_setting() {
    let mut seen = clear();
    let strict = |seen: &Seen| strict_sources(seen, &seen.ports[0]);
    assert!(!strict(&seen));
    seen.rp_filter = 1;
    assert!(strict(&seen));
    seen.ports[0].rp_filter = 2;
    assert!(!strict(&seen));
}
