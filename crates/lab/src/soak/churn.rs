//! Random changes of everything that a namespace's tables hold, as lines
//! of a shell. The same seed gives the same lines.

use std::fmt::Write as _;

use crate::Random;

/// What a run begins with.
pub const BEGINNING: &[&str] = &[
    "ip link add v0 type veth peer name p0",
    "ip link add v1 type veth peer name p1",
    "ip link add v2 type veth peer name p2",
    "ip link add v3 type veth peer name p3",
    "ip link add d0 type dummy",
    "ip link add br0 type bridge",
    "for l in v0 v1 v2 v3 p0 p1 p2 p3 d0 br0; do ip link set $l up; done",
    "ip addr add 10.0.0.1/24 dev v0",
    "ip addr add 10.1.0.1/24 dev v1",
    "ip addr add 2001:db8:0::1/64 dev v0 nodad",
    "ip addr add 2001:db8:1::1/64 dev v1 nodad",
];

/// How often a line comes, and who makes it.
type Maker = (usize, fn(&mut Random) -> String);

const MAKERS: &[Maker] = &[
    (14, link_state),
    (6, link_settings),
    (5, link_made),
    (4, link_enslaved),
    (2, link_moved),
    (14, address),
    (10, neighbour),
    (16, v4_route),
    (8, v4_place),
    (14, v6_route),
    (8, nexthop),
    (6, by_nexthop),
    (7, rule),
    (7, fdb),
    (4, setting),
    (2, stopped),
];

/// `count` lines of a seed.
pub fn lines(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random::new(seed);
    let total = MAKERS.iter().map(|(weight, _)| weight).sum();
    let mut one = || {
        let mut at = random.below(total);
        for (weight, make) in MAKERS {
            if at < *weight {
                return make(&mut random);
            }
            at -= weight;
        }
        String::new()
    };
    (0..count).map(|_| one()).collect()
}

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from.get(random.below(from.len())).copied().unwrap_or("")
}

fn link(random: &mut Random) -> String {
    match random.below(12) {
        0..8 => format!("v{}", random.below(4)),
        8 => "d0".into(),
        9 => "br0".into(),
        10 => format!("p{}", random.below(4)),
        _ => pick(random, &["vl1", "vx1", "mv1", "red", "bo1"]).into(),
    }
}

fn link_state(random: &mut Random) -> String {
    let link = link(random);
    match random.below(10) {
        0..4 => format!("ip link set {link} down"),
        4..9 => format!("ip link set {link} up"),
        _ => format!("ip link set d0 carrier {}", pick(random, &["on", "off"])),
    }
}

fn link_settings(random: &mut Random) -> String {
    let link = link(random);
    let n = random.below(5);
    match random.below(9) {
        0 => format!(
            "ip link set {link} mtu {}",
            [1200, 1280, 1400, 1500, 9000][n]
        ),
        1 => format!("ip link set {link} group {n}"),
        2 => format!("ip link set {link} alias 'alias {n}'"),
        3 => format!("ip link property add dev {link} altname {link}-other{n}"),
        4 => format!("ip link property del dev {link} altname {link}-other{n}"),
        5 => format!("ip link set {link} address 02:00:00:00:01:0{n}"),
        6 => format!("ip link set {link} name {link}x && ip link set {link}x name {link}"),
        7 => format!(
            "ip link set {link} promisc {}",
            pick(random, &["on", "off"])
        ),
        _ => format!("ip link set {link} arp {}", pick(random, &["on", "off"])),
    }
}

fn link_made(random: &mut Random) -> String {
    let n = random.below(4);
    match random.below(12) {
        0 => format!("ip link del v{n}"),
        1 | 2 => format!(
            "ip link add v{n} type veth peer name p{n}; ip link set p{n} up; ip link set v{n} up"
        ),
        3 => "ip link add link v0 name vl1 type vlan id 7; ip link set vl1 up".into(),
        4 => {
            "ip link add vx1 type vxlan id 5 dstport 4789 local 10.0.0.1 dev v0; ip link set vx1 up"
                .into()
        }
        5 => format!(
            "ip link add link v{n} name mv1 type macvlan mode {}; ip link set mv1 up",
            pick(random, &["bridge", "passthru", "private"])
        ),
        6 => "ip link add red type vrf table 77; ip link set red up".into(),
        7 => "ip link add bo1 type bond mode active-backup; ip link set bo1 up".into(),
        8 => format!(
            "ip link del {}",
            pick(random, &["vl1", "vx1", "mv1", "red", "bo1"])
        ),
        9 => "ip link del br0; ip link add br0 type bridge; ip link set br0 up".into(),
        10 => "ip link set br0 type bridge vlan_filtering 1".into(),
        _ => "ip link set br0 type bridge vlan_filtering 0".into(),
    }
}

fn link_enslaved(random: &mut Random) -> String {
    let link = match random.below(4) {
        0 => link(random),
        _ => pick(random, &["p2", "p3", "v3", "v2"]).into(),
    };
    match random.below(6) {
        0..2 => format!("ip link set {link} nomaster"),
        2 => format!("ip link set {link} master red"),
        3 => format!("ip link set {link} down; ip link set {link} master bo1"),
        _ => format!("ip link set {link} master br0"),
    }
}

fn link_moved(random: &mut Random) -> String {
    let link = match random.below(3) {
        0 => "vx1".into(),
        _ => format!("v{}", random.below(4)),
    };
    match random.below(3) {
        0 => format!("ip link set {link} netns $OTHER"),
        1 => format!("ip -n $OTHER link set {link} netns $HERE"),
        _ => format!(
            "ip link set {link} netns $OTHER; ip -n $OTHER link set {link} up; \
             bridge -n $OTHER fdb append 02:00:00:00:07:01 dev {link} dst 10.0.0.9; \
             ip -n $OTHER link set {link} netns $HERE; ip link set {link} up"
        ),
    }
}

fn address(random: &mut Random) -> String {
    let link = link(random);
    let (net, host) = (random.below(4), 1 + random.below(5));
    let lifetime = pick(
        random,
        &[
            "",
            "",
            "",
            " valid_lft 3000 preferred_lft 2000",
            " valid_lft 3000 preferred_lft 0",
        ],
    );
    match random.below(16) {
        0..5 => format!("ip addr add 10.{net}.0.{host}/24 dev {link}{lifetime}"),
        5 => format!("ip addr add 10.{net}.0.{host}/25 dev {link}"),
        6 => format!("ip addr add 10.9.{net}.{host}/32 dev {link}"),
        7 => format!("ip addr add 10.8.0.{host} peer 10.8.1.{host}/30 dev {link}"),
        8 | 9 => format!("ip addr del 10.{net}.0.{host}/24 dev {link}"),
        10 => format!("ip addr flush dev {link}"),
        11..14 => format!("ip addr add 2001:db8:{net}::{host}/64 dev {link} nodad{lifetime}"),
        14 => format!("ip addr del 2001:db8:{net}::{host}/64 dev {link}"),
        _ => format!("ip addr change 2001:db8:{net}::{host}/64 dev {link} preferred_lft 0"),
    }
}

fn neighbour(random: &mut Random) -> String {
    let link = link(random);
    let (net, host) = (random.below(4), 1 + random.below(6));
    let to = match random.below(2) {
        0 => format!("10.{net}.0.{host}"),
        _ => format!("2001:db8:{net}::{host}"),
    };
    let nud = pick(random, &["permanent", "permanent", "noarp", "stale"]);
    match random.below(8) {
        0..4 => format!("ip neigh replace {to} lladdr 02:00:00:00:00:0{host} dev {link} nud {nud}"),
        4 => format!("ip neigh del {to} dev {link}"),
        5 => format!("ip neigh add proxy {to} dev {link}"),
        6 => format!("ip neigh del proxy {to} dev {link}"),
        _ => format!("ip neigh flush dev {link} nud permanent"),
    }
}

fn v4_hop(random: &mut Random) -> String {
    let (net, host) = (random.below(4), 2 + random.below(5));
    match random.below(6) {
        0 => format!("dev {}", link(random)),
        1 => format!("via 10.{net}.0.{host} dev v{net} onlink"),
        2 => format!("via inet6 2001:db8:{net}::{host} dev v{net}"),
        _ => format!("via 10.{net}.0.{host}"),
    }
}

fn v4_route(random: &mut Random) -> String {
    let verb = pick(
        random,
        &["add", "append", "prepend", "replace", "change", "add"],
    );
    let to = format!("10.{}.0.0/16", 100 + random.below(6));
    let hop = v4_hop(random);
    let more = match random.below(12) {
        0 => " table 100".to_owned(),
        1 => " metric 5".to_owned(),
        2 => " tos 8".to_owned(),
        3 => format!(" src 10.{}.0.{}", random.below(4), 1 + random.below(5)),
        4 => " mtu 1400 advmss 1300".to_owned(),
        5 => " proto bgp".to_owned(),
        _ => String::new(),
    };
    match random.below(14) {
        0..3 => format!("ip route del {to}"),
        3 => format!(
            "ip route {verb} {} {to}",
            pick(random, &["blackhole", "unreachable", "prohibit", "throw"])
        ),
        4..6 => format!(
            "ip route {verb} {to} nexthop {hop} nexthop {} weight {}",
            v4_hop(random),
            1 + random.below(3)
        ),
        6 => format!("ip route {verb} default {hop}"),
        7 => format!("ip route {verb} {to} encap ip id 7 dst 10.0.0.9 dev v0"),
        _ => format!("ip route {verb} {to} {hop}{more}"),
    }
}

fn v4_place(random: &mut Random) -> String {
    let host = 2 + random.below(4);
    match random.below(6) {
        0 => "ip route flush table 100".into(),
        1 => format!("ip route add local 10.9.9.0/24 dev {}", link(random)),
        2 => "ip route del local 10.9.9.0/24".into(),
        3 => format!(
            "ip route del 10.{}.0.0/16 via 10.{}.0.{host}",
            100 + random.below(6),
            random.below(4)
        ),
        4 => format!("ip route add 10.110.0.0/24 via 10.0.0.{host} src 10.9.9.{host}"),
        _ => format!("ip route flush dev {}", link(random)),
    }
}

fn v6_hop(random: &mut Random) -> String {
    let (net, host) = (random.below(4), 2 + random.below(5));
    match random.below(5) {
        0 => format!("dev {}", link(random)),
        1 => format!("via fe80::{host} dev v{net}"),
        _ => format!("via 2001:db8:{net}::{host} dev v{net}"),
    }
}

fn v6_route(random: &mut Random) -> String {
    let verb = pick(random, &["add", "append", "replace", "change", "add"]);
    let to = format!("2001:db8:9{}::/48", random.below(6));
    let hop = v6_hop(random);
    let more = match random.below(10) {
        0 => " table 100".to_owned(),
        1 => " metric 5".to_owned(),
        2 => " expires 3000".to_owned(),
        3 => " mtu 1400".to_owned(),
        4 => format!(" src 2001:db8:{}::{}", random.below(4), 1 + random.below(5)),
        5 => " pref high".to_owned(),
        _ => String::new(),
    };
    match random.below(16) {
        0..3 => format!("ip -6 route del {to}"),
        3 => format!("ip -6 route del {to} {hop}"),
        4 => format!(
            "ip -6 route {verb} {} {to}",
            pick(random, &["blackhole", "unreachable", "prohibit", "throw"])
        ),
        5..8 => format!(
            "ip -6 route {verb} {to} nexthop {hop} nexthop {}",
            v6_hop(random)
        ),
        8 => format!("ip -6 route {verb} {to} from 2001:db8:1::/64 {hop}"),
        9 => format!("ip -6 route {verb} default {hop}"),
        10 => format!("ip -6 route flush {to}"),
        _ => format!("ip -6 route {verb} {to} {hop}{more}"),
    }
}

fn nexthop(random: &mut Random) -> String {
    let (id, net, host) = (1 + random.below(5), random.below(4), 2 + random.below(5));
    match random.below(12) {
        0..4 => format!("ip nexthop replace id {id} via 10.{net}.0.{host} dev v{net}"),
        4 | 5 => format!("ip nexthop replace id {id} via 2001:db8:{net}::{host} dev v{net}"),
        6 => format!("ip nexthop replace id {id} blackhole"),
        7 | 8 => format!(
            "ip nexthop replace id {} group {id},{}/{}",
            10 + id,
            1 + random.below(3),
            1 + random.below(5)
        ),
        9 => format!(
            "ip nexthop add id {} group {id}/{} type resilient buckets 8",
            20 + id,
            1 + random.below(5)
        ),
        10 => format!(
            "ip nexthop del id {}",
            [id, 10 + id, 20 + id][random.below(3)]
        ),
        _ => format!("ip nexthop replace id {id} dev {}", link(random)),
    }
}

fn by_nexthop(random: &mut Random) -> String {
    let id = [0, 10, 20][random.below(3)] + 1 + random.below(5);
    let n = random.below(6);
    let verb = pick(random, &["add", "replace", "append"]);
    match random.below(2) {
        0 => format!("ip route {verb} 10.12{n}.0.0/16 nhid {id}"),
        _ => format!("ip -6 route {verb} 2001:db8:8{n}::/48 nhid {id}"),
    }
}

fn rule(random: &mut Random) -> String {
    let family = pick(random, &["", "", "-6 "]);
    let (n, link) = (random.below(6), link(random));
    let net = random.below(4);
    let what = match (random.below(9), family) {
        (0, _) => format!("iif {link} lookup 100"),
        (1, _) => format!("oif {link} lookup 100"),
        (2, _) => format!("fwmark {n}/0xff lookup 100"),
        (3, _) => format!("goto {}", 600 + random.below(4)),
        (4, "") => format!("from 10.{net}.0.0/24 lookup 100"),
        (5, "") => format!("to 10.10{n}.0.0/16 prohibit"),
        (4 | 5, _) => format!("from 2001:db8:{net}::/64 lookup 100"),
        (6, _) => format!("uidrange {n}-10 lookup 100"),
        (7, _) => format!("not fwmark {n} lookup main suppress_prefixlength {n}"),
        _ => "lookup 100".into(),
    };
    match random.below(4) {
        0 => format!("ip {family}rule del pref {}", 500 + n),
        1 => format!("ip {family}rule add pref {} {what}", 600 + random.below(4)),
        _ => format!("ip {family}rule add pref {} {what}", 500 + n),
    }
}

fn fdb(random: &mut Random) -> String {
    let n = random.below(5);
    let port = pick(random, &["p2", "p3", "v2", "v3"]);
    match random.below(10) {
        0..3 => format!(
            "bridge fdb replace 02:00:00:00:02:0{n} dev {port} master {}",
            pick(random, &["static", "dynamic", "sticky"])
        ),
        3 => format!("bridge fdb del 02:00:00:00:02:0{n} dev {port} master"),
        4 => format!("bridge fdb add 02:00:00:00:02:0{n} dev {port} master vlan {n} static"),
        5 => format!(
            "bridge fdb append 00:00:00:00:00:00 dev vx1 dst 10.0.0.{}",
            2 + n
        ),
        6 => format!(
            "bridge fdb replace 02:00:00:00:03:0{n} dev vx1 dst 10.0.0.{}",
            2 + random.below(4)
        ),
        7 => format!(
            "bridge fdb append 02:00:00:00:03:0{n} dev vx1 dst 10.0.0.2 via {}",
            link(random)
        ),
        8 => format!("bridge fdb del 02:00:00:00:03:0{n} dev vx1"),
        _ => format!("bridge fdb flush dev {port} master"),
    }
}

fn setting(random: &mut Random) -> String {
    let on = random.below(2);
    let link = match random.below(3) {
        0 => "all".to_owned(),
        _ => link(random),
    };
    let (at, value) = match random.below(9) {
        0 => (format!("ipv4/conf/{link}/ignore_routes_with_linkdown"), on),
        1 => (format!("ipv6/conf/{link}/ignore_routes_with_linkdown"), on),
        2 => ("ipv6/route/skip_notify_on_dev_down".into(), on),
        3 => (format!("ipv4/conf/{link}/promote_secondaries"), on),
        4 => (format!("ipv6/conf/{link}/disable_ipv6"), on),
        5 => ("ipv4/fib_multipath_hash_policy".into(), random.below(4)),
        6 => ("ipv6/fib_multipath_hash_policy".into(), random.below(4)),
        7 => ("ipv4/nexthop_compat_mode".into(), on),
        _ => (format!("ipv6/conf/{link}/keep_addr_on_down"), on),
    };
    format!("echo {value} > /proc/sys/net/{at}")
}

fn stopped(random: &mut Random) -> String {
    pick(random, &["kill -STOP $DAEMON", "kill -CONT $DAEMON"]).into()
}

/// Questions about routes, as `ip route get` has them.
pub fn questions(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random::new(!seed);
    (0..count).map(|_| question(&mut random)).collect()
}

fn question(random: &mut Random) -> String {
    let is_v4 = random.below(5) < 3;
    let (net, host) = (random.below(4), 1 + random.below(6));
    let mut text = match (is_v4, random.below(5)) {
        (true, 0 | 1) => format!("10.{}.0.{host}", 100 + random.below(26)),
        (true, 2) => format!("10.9.{net}.{host}"),
        (true, 3) => format!("10.9.9.{host}"),
        (true, _) => format!("10.{net}.0.{host}"),
        (false, 0..3) => format!(
            "2001:db8:{}{}::{host}",
            8 + random.below(2),
            random.below(6)
        ),
        (false, _) => format!("2001:db8:{net}::{host}"),
    };
    if random.below(5) == 0 {
        let _ = match is_v4 {
            true => write!(
                text,
                " from 10.{}.0.{}",
                random.below(4),
                1 + random.below(5)
            ),
            false => write!(
                text,
                " from 2001:db8:{}::{}",
                random.below(4),
                1 + random.below(5)
            ),
        };
    }
    if random.below(6) == 0 {
        let _ = write!(text, " oif {}", link(random));
    }
    if random.below(6) == 0 {
        let _ = write!(text, " mark {}", random.below(6));
    }
    if random.below(8) == 0 {
        let _ = write!(text, " uid {}", random.below(12));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_lines_and_every_kind_comes() {
        assert_eq!(lines(7, 300), lines(7, 300));
        assert_ne!(lines(7, 300), lines(8, 300));
        let all = lines(1, 20_000).join("\n");
        for word in [
            "addr add",
            "nexthop",
            "fdb",
            "rule add",
            "netns",
            "STOP",
            "linkdown",
            "resilient",
        ] {
            assert!(all.contains(word), "{word}");
        }
    }
}
