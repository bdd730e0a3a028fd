//! Routes of all kinds and both families.

use super::{link, pick};
use crate::Random;

const KINDS: &[&str] = &["blackhole", "unreachable", "prohibit", "throw"];
const TABLES: &[&str] = &["100", "101", "4000000"];

fn v4_hop(random: &mut Random) -> String {
    let (net, host) = (random.below(4), 2 + random.below(5));
    match random.below(6) {
        0 => format!("dev {}", link(random)),
        1 => format!("via 10.{net}.0.{host} dev v{net} onlink"),
        2 => format!("via inet6 2001:db8:{net}::{host} dev v{net}"),
        _ => format!("via 10.{net}.0.{host}"),
    }
}

/// What a route may have besides.
fn v4_more(random: &mut Random) -> String {
    let n = 1 + random.below(5);
    match random.below(18) {
        0 => format!(" table {}", pick(random, TABLES)),
        1 => " metric 5".into(),
        2 => " tos 8".into(),
        3 => format!(" src 10.{}.0.{n}", random.below(4)),
        4 => " mtu 1400 advmss 1300".into(),
        5 => " proto bgp".into(),
        6 => format!(" mtu lock 1300 window {n} initcwnd {n} quickack 1"),
        7 => " scope link".into(),
        8 => format!(" realm {n}"),
        9 => " congctl reno rto_min 20ms features ecn".into(),
        _ => String::new(),
    }
}

fn encap(random: &mut Random) -> &'static str {
    pick(
        random,
        &[
            "encap ip id 7 dst 10.0.0.9 ttl 9",
            "encap ip6 id 8 dst 2001:db8:1::9 hoplimit 4",
            "encap mpls 100/200",
            "encap seg6 mode encap segs 2001:db8:1::7",
        ],
    )
}

/// IPv4 routes.
pub(super) fn v4(random: &mut Random, lines: &mut Vec<String>) {
    let verb = pick(
        random,
        &["add", "append", "prepend", "replace", "change", "add"],
    );
    let to = format!("10.{}.0.0/16", 100 + random.below(6));
    let hop = v4_hop(random);
    lines.push(match random.below(16) {
        0..3 => format!("ip route del {to}"),
        3 => format!(
            "ip route {verb} {} {to}{}",
            pick(random, KINDS),
            v4_more(random)
        ),
        4..6 => format!(
            "ip route {verb} {to} nexthop {hop} nexthop {} weight {}",
            v4_hop(random),
            1 + random.below(3)
        ),
        6 => format!("ip route {verb} default {hop}"),
        7 => format!("ip route {verb} {to} {} dev v0", encap(random)),
        8 => format!("ip route {verb} {to} {} via 10.1.0.5 dev v1", encap(random)),
        9 => format!("ip route {verb} {to} table {} {hop}", pick(random, TABLES)),
        _ => format!("ip route {verb} {to} {hop}{}", v4_more(random)),
    });
}

/// IPv4 routes of other places, and many at once.
pub(super) fn v4_place(random: &mut Random, lines: &mut Vec<String>) {
    let host = 2 + random.below(4);
    let link = link(random);
    lines.push(match random.below(9) {
        0 => format!("ip route flush table {}", pick(random, TABLES)),
        1 => format!("ip route add local 10.9.9.0/24 dev {link}"),
        2 => "ip route del local 10.9.9.0/24".into(),
        3 => format!(
            "ip route del 10.{}.0.0/16 via 10.{}.0.{host}",
            100 + random.below(6),
            random.below(4)
        ),
        4 => format!("ip route add 10.110.0.0/24 via 10.0.0.{host} src 10.9.9.{host}"),
        5 => format!("ip route add broadcast 10.9.{host}.255 dev {link} table local"),
        6 => format!("ip route add multicast 239.0.{host}.0/24 dev {link}"),
        7 => format!("ip route add anycast 10.9.8.{host} dev {link} table local"),
        _ => format!("ip route flush dev {link}"),
    });
}

fn v6_hop(random: &mut Random) -> String {
    let (net, host) = (random.below(4), 2 + random.below(5));
    match random.below(6) {
        0 => format!("dev {}", link(random)),
        1 => format!("via fe80::{host} dev v{net}"),
        2 => format!("via 2001:db8:{net}::{host} dev v{net} onlink"),
        _ => format!("via 2001:db8:{net}::{host} dev v{net}"),
    }
}

fn v6_more(random: &mut Random) -> String {
    let n = 1 + random.below(5);
    match random.below(14) {
        0 => format!(" table {}", pick(random, TABLES)),
        1 => " metric 5".into(),
        2 => " expires 3000".into(),
        3 => " mtu 1400".into(),
        4 => format!(" src 2001:db8:{}::{n}", random.below(4)),
        5 => format!(" pref {}", pick(random, &["high", "low"])),
        6 => format!(" mtu lock 1300 hoplimit {n} initrwnd {n}"),
        7 => " proto static".into(),
        _ => String::new(),
    }
}

/// IPv6 routes.
pub(super) fn v6(random: &mut Random, lines: &mut Vec<String>) {
    let verb = pick(random, &["add", "append", "replace", "change", "add"]);
    let to = format!("2001:db8:9{}::/48", random.below(6));
    let hop = v6_hop(random);
    lines.push(match random.below(19) {
        0..3 => format!("ip -6 route del {to}"),
        3 => format!("ip -6 route del {to} {hop}"),
        4 => format!(
            "ip -6 route {verb} {} {to}{}",
            pick(random, KINDS),
            v6_more(random)
        ),
        5..8 => format!(
            "ip -6 route {verb} {to} nexthop {hop} nexthop {} weight {}",
            v6_hop(random),
            1 + random.below(3)
        ),
        8 => format!("ip -6 route {verb} {to} from 2001:db8:1::/64 {hop}"),
        9 => format!("ip -6 route {verb} default {hop}"),
        10 => format!("ip -6 route flush {to}"),
        11 => format!("ip -6 route {verb} {to} {} dev v0", encap(random)),
        12 => {
            let action = pick(
                random,
                &[
                    "End",
                    "End.X nh6 2001:db8:1::5",
                    "End.DT6 table main",
                    "End.DX4 nh4 10.1.0.5",
                ],
            );
            format!("ip -6 route {verb} {to} encap seg6local action {action} dev v1")
        }
        13 => format!(
            "ip -6 route {verb} {to} table {} {hop}",
            pick(random, TABLES)
        ),
        14 => format!("ip -6 route flush dev {}", link(random)),
        _ => format!("ip -6 route {verb} {to} {hop}{}", v6_more(random)),
    });
}
