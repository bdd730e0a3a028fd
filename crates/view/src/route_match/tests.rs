//! Answers held against a plain search of all rows of a feed.

use lab::Random;
use serde_json::Value as Json;
use table::row::route::NextHops;
use table::{Change, Feeder, Limits, Link, Placement, Route, RouteBody, Writer};

use super::*;
use crate::question::{Format, Output};
use crate::route_get::route_get;

const UP: u32 = 0x1_0043;

/// A namespace with links, one of them down and one a VRF of table 100, and
/// a feed in it.
fn made() -> (Writer, Feeder) {
    let mut writer = Writer::new(Limits::default());
    let link = |index, flags, vrf_table| {
        Change::PutLink(Link {
            index,
            name: format!("em{index}").into(),
            flags,
            vrf_table,
            ..Link::default()
        })
    };
    let links = [
        link(1, UP, None),
        link(2, UP, None),
        link(3, 0, None),
        link(9, UP, Some(100)),
    ];
    writer.commit(links).unwrap();
    let feeder = writer.feeders().join("frr", Limits::default()).unwrap();
    (writer, feeder)
}

fn hop(link: u32, gateway: &str) -> NextHop {
    NextHop {
        link,
        gateway: gateway.parse().ok(),
        weight: 1,
        ..NextHop::default()
    }
}

fn put(table: u32, prefix: &str, of: u8, hops: Vec<NextHop>) -> Change {
    let body = RouteBody {
        kind: of,
        protocol: 186,
        next_hops: match <[NextHop; 1]>::try_from(hops) {
            Ok([hop]) => NextHops::One(hop),
            Err(hops) => NextHops::Many(hops.into()),
        },
        ..RouteBody::default()
    };
    let route = Route {
        table,
        prefix: prefix.parse().unwrap(),
        tos: 0,
        metric: 20,
        body,
    };
    Change::PutRoute(route, Placement::InsteadOfFirst)
}

fn asked(to: &str) -> RouteQuestion {
    RouteQuestion {
        source: Some("frr".to_owned()),
        ..RouteQuestion::to(to.parse().unwrap())
    }
}

fn told(writer: &Writer, question: &RouteQuestion) -> Result<String, String> {
    let tables = writer.reader().of("frr").unwrap().snapshot();
    let mut out = Vec::new();
    let answered = route_get(question, &tables, &Names::default(), 0, &mut out);
    let answered = answered.map_err(|error| error.to_string())?;
    assert_eq!((answered.rows, answered.open), (1, None));
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn the_longest_match_with_next_hops_that_can_be_used() {
    let mut random = Random::new(3);
    for _ in 0..40 {
        let (writer, mut feeder) = made();
        let mut rows: Vec<(IpNet, Vec<NextHop>)> = Vec::new();
        for _ in 0..30 {
            let len = [0, 8, 12, 16, 20, 24, 32][random.below(7)];
            let address = [10, random.below(2) as u8 * 16, random.below(2) as u8, 1];
            let prefix = IpNet::new(address.into(), len).unwrap().trunc();
            let hops: Vec<NextHop> = (0..1 + random.below(3))
                .map(|at| hop(1 + random.below(3) as u32, &format!("192.0.2.{}", at + 1)))
                .collect();
            let change = put(254, &prefix.to_string(), kind::UNICAST, hops.clone());
            feeder.commit([change]).unwrap();
            rows.retain(|(other, _)| *other != prefix);
            rows.push((prefix, hops));
        }
        for to in ["10.0.0.1", "10.16.1.1", "10.16.0.9", "10.200.0.1"] {
            let covering = rows.iter().filter_map(|(prefix, hops)| {
                let usable: Vec<_> = hops.iter().filter(|hop| hop.link != 3).collect();
                let covers = prefix.contains(&to.parse::<std::net::IpAddr>().unwrap());
                (covers && !usable.is_empty()).then_some((prefix, usable))
            });
            let expected = covering.max_by_key(|(prefix, _)| prefix.prefix_len());
            let mut question = asked(to);
            question.output.format = Format::Json;
            let Some((prefix, hops)) = expected else {
                let why = told(&writer, &question).unwrap_err();
                assert!(
                    why.starts_with("Network is unreachable: frr has no way"),
                    "{why}"
                );
                continue;
            };
            let answer: Json = serde_json::from_str(&told(&writer, &question).unwrap()).unwrap();
            let answer = &answer[0];
            let matched = answer["match"]
                .as_str()
                .unwrap()
                .replace("default", "0.0.0.0/0");
            let matched = if matched.contains('/') {
                matched
            } else {
                matched + "/32"
            };
            assert_eq!(matched, prefix.to_string());
            let gateways: Vec<&str> = match answer["nexthops"].as_array() {
                Some(all) => all
                    .iter()
                    .map(|hop| hop["gateway"].as_str().unwrap())
                    .collect(),
                None => vec![answer["gateway"].as_str().unwrap()],
            };
            let wanted: Vec<String> = hops
                .iter()
                .map(|hop| hop.gateway.unwrap().to_string())
                .collect();
            assert_eq!(gateways, wanted);
            assert!(answer["prefsrc"].is_null());
        }
    }
}

#[test]
fn it_is_said_what_does_not_apply() {
    let (writer, mut feeder) = made();
    let both = vec![hop(1, "10.1.0.2"), hop(2, "10.2.0.2")];
    let changes = [
        put(254, "192.0.2.0/24", kind::UNICAST, vec![hop(1, "10.1.0.2")]),
        put(254, "198.51.100.0/24", kind::UNICAST, both),
        put(100, "192.0.2.0/24", kind::UNICAST, vec![hop(2, "10.2.0.9")]),
        put(254, "203.0.113.0/24", kind::BLACKHOLE, Vec::new()),
    ];
    feeder.commit(changes).unwrap();
    let text = |question: &RouteQuestion| told(&writer, question).unwrap();
    assert_eq!(
        text(&asked("192.0.2.9")),
        "192.0.2.9 via 10.1.0.2 dev em1 table main proto bgp metric 20 \n    \
         match 192.0.2.0/24 source frr not-applied rules,source-address \n"
    );
    assert_eq!(
        text(&asked("198.51.100.9")),
        "198.51.100.9 table main proto bgp metric 20 \n    \
         match 198.51.100.0/24 source frr not-applied rules,source-address \n\
         \tnexthop via 10.1.0.2 dev em1 weight 1 \n\tnexthop via 10.2.0.2 dev em2 weight 1 \n"
    );
    // The only member over a link that is named.
    let over = RouteQuestion {
        oif: Some("em2".to_owned()),
        ..asked("198.51.100.9")
    };
    assert!(text(&over).starts_with("198.51.100.9 via 10.2.0.2 dev em2 table main"));
    for (vrf, oif, table) in [
        (Some("em9"), None, None),
        (None, Some("em9"), None),
        (None, None, Some("100")),
    ] {
        let question = RouteQuestion {
            vrf: vrf.map(str::to_owned),
            oif: oif.map(str::to_owned),
            table: table.map(str::to_owned),
            ..asked("192.0.2.9")
        };
        assert!(text(&question).starts_with("192.0.2.9 via 10.2.0.9 dev em2 table 100 "));
    }
    let refused = |change: fn(&mut RouteQuestion), wanted: &str| {
        let mut question = asked("192.0.2.9");
        change(&mut question);
        let why = told(&writer, &question).unwrap_err();
        assert!(why.contains(wanted), "{why}");
    };
    refused(|asked| asked.mark = 7, "`mark` is for the kernel's rules");
    refused(
        |asked| asked.iif = Some("em1".into()),
        "`iif` is for the kernel's rules",
    );
    refused(
        |asked| asked.to = [203, 0, 113, 1].into(),
        "Invalid argument: frr has no way",
    );
    refused(
        |asked| (asked.vrf, asked.table) = (Some("em9".into()), Some("7".into())),
        "`table` and `vrf` both",
    );
    refused(
        |asked| (asked.source, asked.table) = (None, Some("7".into())),
        "`table` is for the rows of a `source`",
    );
    refused(|asked| asked.oif = Some("em7".into()), "Cannot find device");
    // One line, for who asks for it.
    let output = Output {
        oneline: true,
        ..Output::default()
    };
    let one = RouteQuestion {
        output,
        ..asked("198.51.100.9")
    };
    assert_eq!(text(&one).lines().count(), 1);
}

#[test]
fn ipv6_by_a_link_that_is_named_and_past_one_that_is_down() {
    let (writer, mut feeder) = made();
    let both = vec![hop(1, "2001:db8::1"), hop(2, "2001:db8::2")];
    let by_object = |prefix: &str, hops: Vec<NextHop>| {
        let Change::PutRoute(mut row, placement) = put(254, prefix, kind::UNICAST, hops) else {
            unreachable!()
        };
        row.body.nexthop_id = Some(7);
        Change::PutRoute(row, placement)
    };
    let changes = [
        by_object("2001:db8:7::/48", both),
        by_object(
            "2001:db8:8::/48",
            vec![hop(3, "2001:db8::3"), hop(1, "2001:db8::1")],
        ),
        by_object("2001:db8::/32", vec![hop(2, "2001:db8::9")]),
    ];
    feeder.commit(changes).unwrap();
    let gateway = |to: &str, oif: Option<&str>, from: Option<&str>| {
        let question = RouteQuestion {
            oif: oif.map(str::to_owned),
            from: from.and_then(|from| from.parse().ok()),
            ..asked(to)
        };
        told(&writer, &question).map(|text| text.lines().next().unwrap().to_owned())
    };
    for from in [None, Some("2001:db8::77")] {
        let said = gateway("2001:db8:7::1", Some("em2"), from).unwrap();
        assert!(said.contains("via 2001:db8::2 dev em2 "), "{said}");
        // No hop of the longer prefix is over it: the shorter one's is.
        let said = gateway("2001:db8:8::1", Some("em2"), from).unwrap();
        assert!(said.contains("via 2001:db8::9 dev em2 "), "{said}");
        let said = gateway("2001:db8:8::1", None, from).unwrap();
        assert!(said.contains("via 2001:db8::1 dev em1 "), "{said}");
        assert!(gateway("2001:db8:7::1", Some("em3"), from).is_err());
    }
}
