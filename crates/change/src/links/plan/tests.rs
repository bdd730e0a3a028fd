use super::*;

fn veth(count: u64) -> Plan {
    Plan {
        kind: "veth".to_owned(),
        numbers: (1, count),
        name: "testa{}".to_owned(),
        peer: Some("testb{}".to_owned()),
        ..Plan::default()
    }
}

#[test]
fn names_that_cannot_be_are_found_before_anything_is_made() {
    assert_eq!(veth(10_000).check(), Ok(()));
    let said = |plan: Plan| plan.check().unwrap_err();
    let long = Plan {
        name: "interface-{}".to_owned(),
        ..veth(100_000)
    };
    assert!(said(long).contains("`interface-100000`: 16 octets, 15 at most"));
    let fixed = Plan {
        name: "testa".to_owned(),
        ..veth(2)
    };
    assert!(said(fixed).contains("`testa` twice"));
    let alike = Plan {
        peer: Some("testa{+1}".to_owned()),
        ..veth(3)
    };
    assert!(said(alike).contains("`testa2` twice"));
    let elsewhere = Plan {
        peer: Some("testa{}".to_owned()),
        peer_netns: Some("blue".to_owned()),
        ..veth(3)
    };
    assert_eq!(elsewhere.check(), Ok(()));
    for bad in ["a b", "a/b", "a:b", "a%d", "..", ""] {
        let plan = Plan {
            name: bad.to_owned(),
            ..veth(1)
        };
        assert!(plan.check().is_err(), "{bad}");
    }
}

#[test]
fn addresses_beyond_an_octet_are_refused_with_a_way_out() {
    let mut plan = veth(255);
    plan.addrs = vec!["10.0.{}.1/30".to_owned()];
    assert_eq!(plan.check(), Ok(()));
    plan.numbers.1 = 256;
    let why = plan.check().unwrap_err();
    assert!(
        why.contains("10.0.256.1/30") && why.contains("--split"),
        "{why}"
    );
    plan.addrs = vec!["10.{/256}.{%256}.1/30".to_owned()];
    assert_eq!(plan.check(), Ok(()));
    let (own, _) = plan.addresses(256).unwrap();
    assert_eq!(own, ["10.1.0.1/30".parse().unwrap()]);
}

#[test]
fn a_prefix_is_split_into_parts() {
    let mut plan = veth(16_384);
    plan.split = Some(Split {
        prefix: "10.0.0.0/16".parse().unwrap(),
        len: 30,
    });
    assert_eq!(plan.check(), Ok(()));
    let (own, peer) = plan.addresses(16_384).unwrap();
    assert_eq!(own, ["10.0.255.253/30".parse().unwrap()]);
    assert_eq!(peer, ["10.0.255.254/30".parse().unwrap()]);
    plan.numbers.1 = 16_385;
    assert!(plan.check().unwrap_err().contains("16384 parts"));
    let part = |prefix: &str, len, nth| {
        let prefix = prefix.parse().unwrap();
        super::part(&Split { prefix, len }, nth).map(|[first, second]| format!("{first} {second}"))
    };
    assert_eq!(
        part("10.0.0.0/24", 31, 1).unwrap(),
        "10.0.0.2/31 10.0.0.3/31"
    );
    assert_eq!(
        part("2001:db8::/64", 127, 1).unwrap(),
        "2001:db8::2/127 2001:db8::3/127"
    );
    assert_eq!(part("255.255.255.252/30", 30, 1), None);
}

#[test]
fn link_layer_addresses_count_in_octets() {
    let pattern = "02:00:00:{/65536}:{/256%256}:{%256}";
    assert_eq!(
        lladdr(pattern, 66_000).unwrap().to_string(),
        "02:00:00:01:01:d0"
    );
    assert!(lladdr("02:00:00:00:00:{}", 256).is_err());
    assert!(lladdr("02:00:00:00:{}", 1).is_err());
}

#[test]
fn vlans_are_spread_or_refused() {
    let plan = |count: u64, parents: &[&str]| Plan {
        kind: "vlan".to_owned(),
        numbers: (1, count),
        name: "v{}".to_owned(),
        parents: parents.iter().map(|name| (*name).to_owned()).collect(),
        ..Plan::default()
    };
    assert_eq!(plan(4094, &["eth0"]).check(), Ok(()));
    assert!(
        plan(4095, &["eth0"])
            .check()
            .unwrap_err()
            .contains("4094 each")
    );
    assert_eq!(plan(8188, &["eth0", "eth1"]).check(), Ok(()));
    assert!(plan(1, &[]).check().unwrap_err().contains("parent"));
    assert_eq!(Plan::vlan(0), (0, 1));
    assert_eq!(Plan::vlan(4093), (0, 4094));
    assert_eq!(Plan::vlan(4094), (1, 1));
    let qinq = Plan {
        qinq: Some("outer{}".to_owned()),
        ..plan(9000, &["eth0"])
    };
    assert_eq!(qinq.check(), Ok(()));
    let outer = qinq.outer().unwrap();
    assert_eq!((outer.numbers, outer.name.as_str()), ((1, 3), "outer{}"));
}
