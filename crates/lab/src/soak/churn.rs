//! Random changes of everything that a namespace's tables hold, as lines
//! of a shell. The same seed gives the same lines.
//!
//! A line may be refused: not every kernel has every kind of link, and not
//! everything that is changed is there.

mod addresses;
mod links;
mod nexthops;
mod questions;
mod routes;
mod rules;
mod settings;
mod stations;

use crate::Random;
pub use questions::questions;

/// What a run begins with.
pub const BEGINNING: &[&str] = &[
    "ip link add v0 type veth peer name p0",
    "ip link add v1 type veth peer name p1",
    "ip link add v2 type veth peer name p2",
    "ip link add v3 type veth peer name p3",
    "ip link add d0 type ifb",
    "ip link add br0 type bridge",
    "ip link set v0 up",
    "ip link set v1 up",
    "ip link set v2 up",
    "ip link set v3 up",
    "ip link set p0 up",
    "ip link set p1 up",
    "ip link set p2 up",
    "ip link set p3 up",
    "ip link set d0 up",
    "ip link set br0 up",
    "ip addr add 10.0.0.1/24 dev v0",
    "ip addr add 10.1.0.1/24 dev v1",
    "ip addr add 2001:db8:0::1/64 dev v0 nodad",
    "ip addr add 2001:db8:1::1/64 dev v1 nodad",
];

/// What a run begins with that is asked about packets that came in: without
/// rules of somebody's own their sources are checked by what no table tells
/// (`fib_validate_source`).
pub const OWN_RULES: &[&str] = &["ip rule add pref 5 nop"];

/// Whether a run is asked about packets that came in. The others have the
/// IPv4 tables local and main in one, until a rule of theirs parts them.
pub fn comes_in(seed: u64) -> bool {
    (seed / 2).is_multiple_of(2)
}

/// How often it comes, and who adds the lines.
type Maker = (usize, fn(&mut Random, &mut Vec<String>));

const MAKERS: &[Maker] = &[
    (14, links::state),
    (7, links::settings),
    (6, links::made),
    (4, links::enslaved),
    (3, links::moved),
    (14, addresses::address),
    (11, addresses::neighbour),
    (18, routes::v4),
    (8, routes::v4_place),
    (16, routes::v6),
    (10, nexthops::object),
    (7, nexthops::route),
    (8, rules::rule),
    (9, stations::station),
    (5, settings::setting),
    (2, settings::stopped),
];

/// `count` changes of a seed: somewhat more lines.
pub fn lines(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random::new(seed);
    let total = MAKERS.iter().map(|(weight, _)| weight).sum();
    let mut lines = Vec::new();
    for _ in 0..count {
        let mut at = random.below(total);
        for (weight, add) in MAKERS {
            if at < *weight {
                add(&mut random, &mut lines);
                break;
            }
            at -= weight;
        }
    }
    lines
}

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from.get(random.below(from.len())).copied().unwrap_or("")
}

/// A link that is there, or may be.
fn link(random: &mut Random) -> String {
    match random.below(14) {
        0..8 => format!("v{}", random.below(4)),
        8 => "d0".into(),
        9 => "br0".into(),
        10 | 11 => format!("p{}", random.below(4)),
        _ => pick(random, links::MADE).into(),
    }
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
            "managed",
            "encap seg6",
            "promote_secondaries",
            "hash_policy",
            "/disable_ipv6",
            "protodown",
        ] {
            assert!(all.contains(word), "{word}");
        }
        // They hang a kernel of ours for good.
        for never in ["vxlan_opts", "geneve_opts", "erspan_opts"] {
            assert!(!all.contains(never), "{never}");
        }
    }
}
