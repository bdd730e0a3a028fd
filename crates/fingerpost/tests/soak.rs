//! A few seeds of `cargo xtask soak`: whatever a namespace goes through, the
//! daemon's tables and decisions are the kernel's, by events alone.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

mod common;

use lab::soak::{self, Soak};
use lab::{Netns, skip};

/// Some, and those that have found faults (decision 048).
const SEEDS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8_012, 8_032, 8_037];
const CHANGES: usize = 120;
/// `route get` after each.
const QUESTIONS: usize = 60;
/// As many as `cargo xtask soak` asks.
const ALL_QUESTIONS: usize = 200;

/// What longer runs have found, shrunk (decision 058): a seed, whose settings
/// and questions count, and its changes.
const FOUND: &[(u64, &[&str])] = &[
    // The loopback goes down: `ip` takes `if1` for the link with index 1.
    (
        70_169,
        &[
            "ip nexthop replace id 1 blackhole",
            "ip route replace 10.122.0.0/16 nhid 1",
            "ip link set if1 down",
        ],
    ),
    // IPv4 packets that came in are root's.
    (
        50_216,
        &[
            "ip nexthop replace id 2 via 10.0.0.3 dev v0 onlink",
            "ip rule add pref 600 uidrange 2-10 lookup 100",
            "ip route append 10.122.0.0/16 nhid 2 metric 9 table 100",
        ],
    ),
    // What came in and leaves by the loopback is not the host's own.
    (
        70_112,
        &[
            "ip addr add 10.1.0.2/24 dev if1",
            "ip route prepend 10.105.0.0/16 via 10.1.0.3 proto bgp",
        ],
    ),
    // IPv6 shows a group of one as a list.
    (
        50_296,
        &[
            "ip nexthop add id 1 via 2001:db8:1::2 dev v1",
            "ip nexthop add id 2 via 2001:db8:0::2 dev v0",
            "ip nexthop add id 11 group 1/2",
            "ip nexthop add id 21 group 1 type resilient buckets 8 idle_timer 120",
            "ip -6 route add 2001:db8:84::/48 nhid 21",
            "ip -6 route add 2001:db8:85::/48 nhid 11",
            "ip route add 10.124.0.0/16 nhid 21",
            "ip nexthop del id 2",
            "ip nexthop replace id 1 via 2001:db8:1::3 dev v1",
        ],
    ),
    // Who made a neighbour's entry changes without a word.
    (
        70_081,
        &[
            "ip neigh replace 10.0.0.9 lladdr 02:00:00:00:00:01 dev v3 nud permanent",
            "ip neigh replace 10.0.0.9 lladdr 02:00:00:00:00:01 dev v3 protocol bgp",
        ],
    ),
    (
        70_028,
        &[
            "ip link add vx2 type vxlan id 6 dstport 4790 remote 2001:db8:1::9 dev v1",
            "ip link set vx2 up",
            "ip link set vx2 protodown on",
        ],
    ),
    // What was deleted during a loss was taken to be hidden by the paths that
    // came meanwhile.
    (
        200_302,
        &[
            "ip -6 route append 2001:db8:93::/48 encap seg6local action End dev v1",
            "kill -STOP $DAEMON",
            "ip link set v3 down",
            "ip -6 route replace 2001:db8:93::/48 nexthop via 2001:db8:1::2 dev v1 \
             nexthop via 2001:db8:0::3 dev v0 onlink weight 2",
        ],
    ),
    // What several paths say that are appended at once is not told.
    (
        500_473,
        &[
            "ip -6 route replace 2001:db8:94::/48 via fe80::4 dev v2 proto static",
            "ip -6 route append 2001:db8:94::/48 nexthop via 2001:db8:0::3 dev v0 onlink \
             nexthop via fe80::2 dev v3 weight 2",
            "ip link set v2 netns $OTHER",
        ],
    ),
    // One that is made between paths is hidden.
    (
        500_064,
        &[
            "ip -6 route add 2001:db8:95::/48 nexthop via fe80::4 dev v0 \
             nexthop via fe80::5 dev v2 weight 3",
            "ip -6 route append 2001:db8:95::/48 encap seg6local action End.DT6 table main dev v1",
            "ip -6 route append 2001:db8:95::/48 via 2001:db8:1::5 dev v1 onlink expires 3000",
        ],
    ),
    // By an object the source is the one that was chosen when it was made.
    (
        200_403,
        &[
            "ip nexthop replace id 4 via 10.0.0.3 dev v0",
            "ip addr add 10.2.0.2/24 dev d0 noprefixroute scope link",
            "ip route replace 10.120.0.0/16 nhid 4",
            "ip nexthop replace id 4 dev d0",
        ],
    ),
    // Without what the kernel shows of routes by objects they are blackholes
    // all the same.
    (
        3,
        &[
            "ip nexthop add id 1 via 10.0.0.2 dev v0",
            "ip nexthop add id 2 via 2001:db8:1::2 dev v1",
            "ip route add 10.122.0.0/16 nhid 1",
            "ip -6 route add 2001:db8:84::/48 nhid 2",
            "ip nexthop replace id 1 blackhole",
            "ip -6 nexthop replace id 2 blackhole",
        ],
    ),
];

fn assert_equal(seed: u64, questions: usize, lines: &[String]) {
    let soak = Soak {
        program: common::program().to_owned(),
        buffer: if seed.is_multiple_of(2) {
            4_096
        } else {
            1 << 20
        },
        questions,
        settles: common::PATIENCE,
        scans: false,
    };
    let outcome = soak.run(seed, lines).unwrap();
    assert!(
        outcome.differences.is_empty(),
        "seed {seed}: {:#?}\n{}",
        outcome.differences,
        soak::script(lines)
    );
}

#[test]
fn after_random_changes_the_tables_are_the_kernels() {
    if skip::unless(Netns::new("soak")).is_none() {
        return;
    }
    for seed in SEEDS {
        assert_equal(seed, QUESTIONS, &soak::lines(seed, CHANGES));
    }
}

#[test]
fn what_was_found_once_is_equal() {
    if skip::unless(Netns::new("found")).is_none() {
        return;
    }
    for (seed, lines) in FOUND {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        assert_equal(*seed, ALL_QUESTIONS, &lines);
    }
}
