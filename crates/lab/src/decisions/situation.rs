//! Namespaces and questions at random. The same seed gives the same ones.
//! Addresses are few, so that routes, rules and questions meet.

use crate::Random;

/// Links that each situation has; `a` to `d` have a peer in the same
/// namespace, `t0` is a tunnel without one.
const LINKS: [&str; 6] = ["a0", "b0", "c0", "d0", "br0", "t0"];

/// Lines for `ip -batch`: links, addresses, routes of all types, next-hop
/// objects, rules, and a few that undo some of it. Some are refused.
pub fn situation(seed: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let random = &mut random;
    let mut lines: Vec<String> = Vec::new();
    for name in ["a", "b", "c", "d"] {
        lines.push(format!("link add {name}0 type veth peer name {name}1"));
    }
    lines.push("link add br0 type bridge".into());
    lines.push("tuntap add t0 mode tun".into());
    let peers = ["a1", "b1", "c1", "d1"];
    let all = LINKS.iter().chain(&peers);
    lines.extend(all.map(|link| format!("link set {link} up")));
    lines.push("link set d1 master br0".into());
    lines.extend((0..6 + random.below(18)).map(|_| address(random)));
    lines.extend((0..10 + random.below(30)).map(|_| v4_route(random)));
    lines.extend((0..10 + random.below(20)).map(|_| v6_route(random)));
    lines.extend(
        (0..4)
            .map(|_| by_object(random))
            .collect::<Vec<_>>()
            .concat(),
    );
    // With local routes of somebody's own, or realms, the kernel checks
    // sources as it does with rules.
    lines.push("rule add pref 5 nop".into());
    if random.below(4) == 0 {
        lines.pop();
        lines.retain(|line| !line.contains("add local") && !line.contains("realms"));
    } else {
        lines.extend((0..random.below(14)).map(|_| rule(random)));
    }
    lines.extend((0..random.below(8)).map(|_| undone(random)));
    lines
}

/// Questions: the words behind `route get`.
pub fn questions(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random::new(!seed);
    (0..count).map(|_| question(&mut random)).collect()
}

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from.get(random.below(from.len())).copied().unwrap_or("")
}

fn link(random: &mut Random) -> &'static str {
    pick(random, &LINKS)
}

fn v4(random: &mut Random) -> String {
    format!(
        "10.{}.{}.{}",
        random.below(4),
        random.below(2),
        1 + random.below(7)
    )
}

fn v6(random: &mut Random) -> String {
    let net = pick(random, &["2001:db8", "fd00", "2002", "2001:db8", "fec0"]);
    format!("{net}:{}::{:x}", random.below(3), 1 + random.below(7))
}

fn address(random: &mut Random) -> String {
    let link = link(random);
    if random.below(2) == 0 {
        let len = [8, 16, 24, 24, 24, 30, 31, 32][random.below(8)];
        let scope = pick(
            random,
            &["", "", "", "", " scope link", " scope host", " scope site"],
        );
        let peer = match random.below(8) {
            0 => format!("{} peer {}/32", v4(random), v4(random)),
            _ => format!("{}/{len}", v4(random)),
        };
        return format!("addr add {peer} dev {link}{scope}");
    }
    let len = [32, 48, 64, 64, 64, 126, 128][random.below(7)];
    // Not `home`: kernels without mobile IPv6 do not heed it.
    let life = pick(random, &["", "", "", " preferred_lft 0 valid_lft 5000"]);
    let address = match random.below(10) {
        0 => format!("fe80::{:x}", 1 + random.below(5)),
        _ => v6(random),
    };
    format!("addr add {address}/{len} dev {link}{life}")
}

fn v4_prefix(random: &mut Random) -> String {
    match random.below(10) {
        0 => "default".into(),
        1 => format!("10.{}.0.0/16", random.below(4)),
        2 => format!("172.16.{}.0/24", random.below(3)),
        3 => format!("172.16.{}.{}/32", random.below(3), random.below(4)),
        4 => "172.16.0.0/12".into(),
        5 => "224.0.0.0/4".into(),
        6 => format!("10.{}.{}.0/24", random.below(4), random.below(2)),
        _ => format!("172.17.{}.0/24", random.below(4)),
    }
}

fn table(random: &mut Random) -> &'static str {
    pick(
        random,
        &["", "", "", "", " table 100", " table 200", " table 1000"],
    )
}

fn v4_hop(random: &mut Random) -> String {
    match random.below(8) {
        0 | 1 => format!("dev {}", link(random)),
        2 => format!("via {} dev {} onlink", v4(random), link(random)),
        3 => format!("via inet6 {} dev {}", v6(random), link(random)),
        _ => format!("via {}", v4(random)),
    }
}

fn v4_route(random: &mut Random) -> String {
    let prefix = v4_prefix(random);
    let table = table(random);
    let metric = pick(random, &["", "", "", " metric 5", " metric 9"]);
    let refusal = ["blackhole", "unreachable", "prohibit", "throw"];
    match random.below(12) {
        0 | 1 => format!(
            "route add {} {prefix}{metric}{table}",
            pick(random, &refusal)
        ),
        2 => format!(
            "route add local {prefix} dev {}{table}",
            pick(random, &["lo", "a0", "b0"])
        ),
        3 => format!("route add broadcast {prefix} dev {}{table}", link(random)),
        4 | 5 => {
            let weight = |random: &mut Random| 1 + random.below(3);
            let (one, two) = (v4_hop(random), v4_hop(random));
            let (w1, w2) = (weight(random), weight(random));
            format!(
                "route add {prefix}{metric}{table} nexthop {one} weight {w1} nexthop {two} weight {w2}"
            )
        }
        6 => format!(
            "route add {prefix} {} src {}{metric}{table}",
            v4_hop(random),
            v4(random)
        ),
        7 => format!("route append {prefix} {}{metric}{table}", v4_hop(random)),
        8 => format!(
            "route add {prefix} {} tos {}{table}",
            v4_hop(random),
            pick(random, &["0x10", "0x08", "0x04"])
        ),
        9 => format!(
            "route add {prefix} {} realms {}{table}",
            v4_hop(random),
            1 + random.below(5)
        ),
        10 => format!(
            "route add {prefix} {} scope {}{table}",
            v4_hop(random),
            pick(random, &["link", "host", "site", "global"])
        ),
        _ => format!(
            "route add {prefix} {} mtu 1400{metric}{table}",
            v4_hop(random)
        ),
    }
}

fn v6_prefix(random: &mut Random) -> String {
    match random.below(8) {
        0 => "::/0".into(),
        1 => format!("2001:db8:{}::/48", random.below(3)),
        2 => format!("fd01:{}::/32", random.below(3)),
        3 => format!("fd01:{}::{}/128", random.below(3), random.below(4)),
        4 => "fd00::/8".into(),
        _ => format!("fd02:{}::/48", random.below(4)),
    }
}

fn v6_hop(random: &mut Random) -> String {
    match random.below(6) {
        0 | 1 => format!("dev {}", link(random)),
        2 => format!("via fe80::{} dev {}", 1 + random.below(5), link(random)),
        3 => format!("via {} dev {} onlink", v6(random), link(random)),
        _ => format!("via {}", v6(random)),
    }
}

fn v6_route(random: &mut Random) -> String {
    let prefix = v6_prefix(random);
    let table = table(random);
    let metric = pick(random, &["", "", "", " metric 5", " metric 2000"]);
    let refusal = ["blackhole", "unreachable", "prohibit", "throw"];
    match random.below(9) {
        0 | 1 => format!(
            "-6 route add {} {prefix}{metric}{table}",
            pick(random, &refusal)
        ),
        2 => format!(
            "-6 route add local {prefix} dev {}{table}",
            pick(random, &["lo", "a0"])
        ),
        3 => {
            let (one, two) = (v6_hop(random), v6_hop(random));
            format!("-6 route add {prefix}{metric}{table} nexthop {one} nexthop {two} weight 2")
        }
        4 => format!(
            "-6 route add {prefix} {} src {}{metric}{table}",
            v6_hop(random),
            v6(random)
        ),
        5 => format!(
            "-6 route add {prefix} from {}/64 {}{metric}{table}",
            v6(random),
            v6_hop(random)
        ),
        6 => format!(
            "-6 route add {prefix} {} pref {}{table}",
            v6_hop(random),
            pick(random, &["low", "high"])
        ),
        _ => format!("-6 route add {prefix} {}{metric}{table}", v6_hop(random)),
    }
}

/// A next-hop object and routes that use it.
fn by_object(random: &mut Random) -> Vec<String> {
    let id = 1 + random.below(6);
    let (object, prefix) = match random.below(6) {
        0 => (format!("{id} blackhole"), v4_prefix(random)),
        1 | 2 => (
            format!(
                "{id} {} dev {}",
                format_args!("via {}", v4(random)),
                link(random)
            ),
            v4_prefix(random),
        ),
        3 => (
            format!("{id} via fe80::1 dev {}", link(random)),
            v6_prefix(random),
        ),
        _ => (
            format!("{id} group {}/{}", 1 + random.below(6), 1 + random.below(6)),
            v4_prefix(random),
        ),
    };
    vec![
        format!("nexthop add id {object}"),
        format!("route add {prefix} nhid {id}{}", table(random)),
    ]
}

fn rule(random: &mut Random) -> String {
    let is_v4 = random.below(2) == 0;
    let address = |random: &mut Random| if is_v4 { v4(random) } else { v6(random) };
    let len = if is_v4 {
        [8, 16, 24, 32]
    } else {
        [16, 48, 64, 128]
    };
    let mut words: Vec<String> = Vec::new();
    for _ in 0..=random.below(2) {
        words.push(match random.below(11) {
            0 => format!("from {}/{}", address(random), len[random.below(4)]),
            1 | 2 => format!("to {}/{}", address(random), len[random.below(4)]),
            3 => format!("iif {}", pick(random, &["lo", "a0", "b0", "gone"])),
            4 => format!("oif {}", pick(random, &["a0", "b0", "gone"])),
            5 => format!("fwmark {}/{}", random.below(4), 1 + random.below(4)),
            6 => format!("dsfield {}", pick(random, &["0x08", "0x10", "0x04"])),
            7 => format!("ipproto {}", pick(random, &["tcp", "udp", "icmp"])),
            8 => format!("dport {}-{}", 1 + random.below(80), 80 + random.below(80)),
            9 => format!("sport {}", 80 + random.below(3)),
            _ => format!("uidrange {}-{}", random.below(3), 3 + random.below(3)),
        });
    }
    let family = if is_v4 { "-4" } else { "-6" };
    let not = if random.below(5) == 0 { "not " } else { "" };
    let pref = 10 + random.below(40);
    let action = match random.below(10) {
        0 => format!("goto {}", 10 + random.below(60)),
        1 => "nop".into(),
        2 => pick(random, &["blackhole", "unreachable", "prohibit"]).into(),
        3 => format!(
            "lookup main suppress_prefixlength {}",
            [0, 8, 16, 24][random.below(4)]
        ),
        4 => "lookup main suppress_ifgroup 7".into(),
        _ => format!("lookup {}", pick(random, &["100", "200", "1000", "main"])),
    };
    format!(
        "{family} rule add {not}{} pref {pref} {action}",
        words.join(" ")
    )
}

fn undone(random: &mut Random) -> String {
    match random.below(6) {
        0 => format!("link set {} down", pick(random, &["c0", "d0", "br0"])),
        1 => format!("link set {} down", pick(random, &["a1", "b1", "c1"])),
        2 => format!("link set {} group 7", link(random)),
        3 => format!("addr del {}/24 dev {}", v4(random), link(random)),
        4 => format!("addr del {}/64 dev {}", v6(random), link(random)),
        _ => format!("route del {}", v4_prefix(random)),
    }
}

fn question(random: &mut Random) -> String {
    let is_v4 = random.below(2) == 0;
    let to = if is_v4 {
        v4_destination(random)
    } else {
        v6_destination(random)
    };
    // Of IPv6 multicast that came in the kernel asks its multicast routing.
    let comes_in = random.below(12) == 0 && !to.starts_with("ff");
    let mut words = vec![to];
    if comes_in || random.below(6) == 0 {
        let from = if is_v4 { v4(random) } else { v6(random) };
        words.push(format!("from {from}"));
    }
    if comes_in {
        words.push(format!("iif {}", link(random)));
    } else if random.below(6) == 0 {
        words.push(format!("oif {}", link(random)));
    }
    let rest = [
        (6, format!("mark {}", random.below(6))),
        (
            8,
            format!(
                "tos {}",
                pick(random, &["0x08", "0x10", "0x04", "0x0c", "0x20"])
            ),
        ),
        (6, format!("ipproto {}", pick(random, &["tcp", "udp"]))),
        (8, format!("uid {}", random.below(8))),
    ];
    for (share, word) in rest {
        if random.below(share) == 0 {
            words.push(word);
        }
    }
    if words.iter().any(|word| word.starts_with("ipproto")) {
        words.push(format!("sport {}", 80 + random.below(4)));
        words.push(format!("dport {}", 1 + random.below(170)));
    }
    words.join(" ")
}

fn v4_destination(random: &mut Random) -> String {
    let special = [
        "127.0.0.1",
        "224.0.0.1",
        "224.0.0.5",
        "239.1.2.3",
        "255.255.255.255",
        "0.0.0.0",
        "10.255.255.255",
    ];
    match random.below(12) {
        0 => pick(random, &special).into(),
        1 => format!(
            "10.{}.{}.{}",
            random.below(4),
            random.below(2),
            pick(random, &["0", "255"])
        ),
        2..6 => v4(random),
        6..8 => format!("172.16.{}.{}", random.below(3), random.below(4)),
        8 | 9 => format!("172.17.{}.{}", random.below(4), random.below(4)),
        _ => format!("8.8.8.{}", random.below(4)),
    }
}

fn v6_destination(random: &mut Random) -> String {
    match random.below(12) {
        0 => pick(random, &["::1", "ff02::1", "ff05::2", "ff0e::1", "::"]).into(),
        1 => format!("fe80::{}", 1 + random.below(5)),
        2..6 => v6(random),
        6..8 => format!("fd01:{}::{}", random.below(3), random.below(4)),
        8 | 9 => format!("fd02:{}::{}", random.below(4), random.below(4)),
        _ => format!("2a00::{}", 1 + random.below(4)),
    }
}
