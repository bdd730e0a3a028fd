//! A router with the program beside a twin that the kernel alone forwards:
//! the same frames into both, and the same has to leave both, by the same
//! links; while routes, neighbours, links, rules and settings change.
//!
//! `FINGERPOST_TWIN_ROUNDS` says how many rounds, `FINGERPOST_TWIN_SEED` which.

use std::time::{Duration, Instant};

use lab::{Netns, Random, Wire, skip};

use crate::common::PATIENCE;
use crate::frames::{address_v6, frame, host_mac, router_mac};
use crate::place::{Router, bpf, forward};

/// Rounds in the checks; frames and changes of each.
const ROUNDS: u64 = 12;
const FRAMES: u32 = 300;

/// How long what left may differ: frames that are late.
const LATE: Duration = Duration::from_secs(10);

/// The sides of a router: its links, and the numbers in addresses.
const SIDES: [(&str, u8); 3] = [("lan", 1), ("wan", 2), ("side", 3)];

/// Changes that are made to both: the first takes effect by itself, the
/// second undoes it.
const CHANGES: [[&str; 2]; 18] = [
    [
        "ip route del 10.20.0.0/16",
        "ip route add 10.20.0.0/16 via 10.2.0.2",
    ],
    [
        "ip route replace 10.20.2.0/24 via 10.3.0.2",
        "ip route del 10.20.2.0/24",
    ],
    [
        "ip route replace blackhole 10.20.1.0/24",
        "ip route del 10.20.1.0/24",
    ],
    [
        "ip route replace 10.21.0.0/16 via 10.2.0.2 mtu 700",
        "ip route replace 10.21.0.0/16 via 10.2.0.2 mtu 600",
    ],
    ["ip route add default via 10.2.0.2", "ip route del default"],
    [
        "ip -6 route del 2001:db8:20::/48",
        "ip -6 route add 2001:db8:20::/48 via 2001:db8:2::2",
    ],
    [
        "ip -6 route replace unreachable 2001:db8:20::9",
        "ip -6 route del unreachable 2001:db8:20::9",
    ],
    [
        "ip neigh replace 10.2.0.2 lladdr 02:00:00:00:02:77 dev wan nud permanent",
        "ip neigh replace 10.2.0.2 lladdr 02:00:00:00:02:02 dev wan nud permanent",
    ],
    [
        "ip neigh replace 2001:db8:2::2 lladdr 02:00:00:00:02:78 dev wan nud permanent",
        "ip neigh replace 2001:db8:2::2 lladdr 02:00:00:00:02:02 dev wan nud permanent",
    ],
    [
        "ip addr add 10.20.1.1/32 dev lo",
        "ip addr del 10.20.1.1/32 dev lo",
    ],
    [
        "ip addr add 2001:db8:20::1/128 dev lo nodad",
        "ip addr del 2001:db8:20::1/128 dev lo",
    ],
    [
        "ip rule add to 10.20.2.0/24 lookup 100",
        "ip rule del to 10.20.2.0/24 lookup 100",
    ],
    [
        "ip rule add dsfield 0x10 lookup 100",
        "ip rule del dsfield 0x10 lookup 100",
    ],
    [
        "ip rule add iif lan ipproto udp dport 5000 prohibit",
        "ip rule del iif lan ipproto udp dport 5000 prohibit",
    ],
    ["ip link set wan mtu 1300", "ip link set wan mtu 1500"],
    ["ip link set wan mtu 1400", "ip link set wan mtu 1500"],
    [
        "sysctl -qw net.ipv4.conf.lan.forwarding=0",
        "sysctl -qw net.ipv4.conf.lan.forwarding=1",
    ],
    [
        "sysctl -qw net.ipv4.conf.wan.route_localnet=1",
        "sysctl -qw net.ipv4.conf.wan.route_localnet=0",
    ],
];

/// Changes that this process has to see first.
const WATCHED: [[&str; 2]; 4] = [
    [
        "sysctl -qw net.ipv4.conf.lan.rp_filter=0",
        "sysctl -qw net.ipv4.conf.lan.rp_filter=1",
    ],
    [
        "sysctl -qw net.ipv6.conf.all.forwarding=0",
        "sysctl -qw net.ipv6.conf.all.forwarding=1",
    ],
    [
        "sysctl -qw net.ipv6.conf.lan.disable_ipv6=1",
        "sysctl -qw net.ipv6.conf.lan.disable_ipv6=0; ip -6 addr replace 2001:db8:1::1/64 dev lan nodad; ip -6 neigh replace 2001:db8:1::2 lladdr 02:00:00:00:02:01 dev lan nud permanent",
    ],
    [
        "nft 'add table ip t; add chain ip t f { type filter hook forward priority 0; }; add rule ip t f ip ttl 64 drop'",
        "nft delete table ip t",
    ],
];

/// A frame that left: which side, and its bytes but for what two routers
/// choose at random.
type Left = (u8, Vec<u8>);

/// Both routers, and the other ends of their cables.
struct Twins {
    router: Netns,
    twin: Netns,
    wire: Wire,
    _ends: Netns,
}

impl Twins {
    fn make() -> Option<Self> {
        skip::unless(bpf())?;
        let ends = skip::unless(Netns::new("xends"))?;
        let router = skip::unless(Netns::new("xtwin"))?;
        let twin = skip::unless(Netns::new("xkern"))?;
        for (netns, tag) in [(&router, "r"), (&twin, "k")] {
            furnish(netns, &ends, tag);
        }
        let wire = skip::unless(Wire::open(&ends))?;
        Some(Self {
            router,
            twin,
            wire,
            _ends: ends,
        })
    }

    /// Makes a change to both.
    fn change(&self, line: &str) {
        for netns in [&self.router, &self.twin] {
            netns.run("sh", &["-ec", line]).unwrap();
        }
    }

    /// Sends a frame into both.
    fn send(&self, link: &str, frame: &[u8]) {
        for tag in ["r", "k"] {
            self.wire.send(&format!("{tag}{link}"), frame).unwrap();
        }
    }

    /// What has left both until both are quiet and equal, or no more time is
    /// left; the router's first.
    fn left(&self, round: u32) -> [Vec<Left>; 2] {
        let deadline = Instant::now() + LATE;
        let mut left = [Vec::new(), Vec::new()];
        let mut marks = [0; 2];
        self.mark(round);
        loop {
            let heard = self.wire.receive(Duration::from_millis(200)).unwrap();
            if let Some((link, frame)) = heard {
                let (tag, name) = link.split_at(1);
                let (_, side) = SIDES.iter().find(|(side, _)| *side == name).unwrap();
                let at = usize::from(tag == "k");
                if is_mark(&frame, round) {
                    marks[at] += 1;
                } else if let Some(frame) = essential(*side, &frame) {
                    left[at].push((*side, frame));
                }
                continue;
            }
            if marks[0] >= SIDES.len() && marks[1] >= SIDES.len() {
                left.iter_mut().for_each(|left| left.sort_unstable());
                if left[0] == left[1] || Instant::now() > deadline {
                    return left;
                }
            }
            assert!(
                Instant::now() < deadline + PATIENCE,
                "the marks do not come back"
            );
            // They may have come while an interface was busy.
            if marks.iter().any(|marks| *marks < SIDES.len()) {
                self.mark(round);
            }
        }
    }

    /// Asks each router for an answer on each side: all that came before has
    /// been seen to once it is there.
    fn mark(&self, round: u32) {
        for (name, side) in SIDES {
            let from = [10, side, 0, 2];
            let to = [10, side, 0, 1];
            let echo = packet::build::Ip::new(from.into(), to.into());
            let packet = echo.icmp(8, 0, [0; 4], &mark(round));
            let header = [&router_mac(side)[..], &host_mac(side), &[8, 0]].concat();
            self.send(name, &[header, packet].concat());
        }
    }
}

fn mark(round: u32) -> Vec<u8> {
    [b"mark".as_slice(), &round.to_be_bytes()].concat()
}

/// Whether it is a router's answer to a mark.
fn is_mark(frame: &[u8], round: u32) -> bool {
    frame.get(34) == Some(&0) && frame.get(42..50) == Some(&mark(round))
}

/// Links, addresses, neighbours, routes and rules, the same in each.
fn furnish(netns: &Netns, ends: &Netns, tag: &str) {
    let mut lines = String::new();
    for (name, side) in SIDES {
        let [_, _, _, _, _, last] = router_mac(side);
        lines.push_str(&format!(
            "link add {name} address 02:00:00:00:01:0{last} type veth peer name {tag}{name} netns {}\n\
             addr add 10.{side}.0.1/24 dev {name}\n\
             addr add 2001:db8:{side}::1/64 dev {name} nodad\n\
             link set {name} up\n",
            ends.name()
        ));
    }
    for (key, value) in [
        ("net/ipv6/conf/default/accept_dad", "0"),
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/default/rp_filter", "0"),
    ] {
        netns.sysctl(key, value).unwrap();
    }
    netns.ip_batch(&lines).unwrap();
    for (name, _) in SIDES {
        let end = format!("{tag}{name}");
        ends.run(
            "sysctl",
            &["-qw", &format!("net.ipv6.conf.{end}.disable_ipv6=1")],
        )
        .unwrap();
        ends.ip(&["link", "set", &end, "up"]).unwrap();
        // While it is up: else the kernel does not note that frames may be sent.
        ends.run("ethtool", &["-K", &end, "gro", "on"]).unwrap();
    }
    let mut lines = String::new();
    for (name, side) in SIDES {
        for host in [2, 3] {
            let mac = format!("02:00:00:00:02:0{side}");
            lines.push_str(&format!(
                "neigh replace 10.{side}.0.{host} lladdr {mac} dev {name} nud permanent\n\
                 neigh replace 2001:db8:{side}::{host} lladdr {mac} dev {name} nud permanent\n"
            ));
        }
    }
    lines.push_str(
        "route add 10.20.0.0/16 via 10.2.0.2\n\
         route add 10.21.0.0/16 via 10.2.0.2 mtu 600\n\
         route add 10.22.0.0/16 via inet6 2001:db8:2::3\n\
         route add 10.23.0.0/16 nexthop via 10.2.0.2 dev wan nexthop via 10.3.0.2 dev side\n\
         route add 10.30.0.0/16 via 10.3.0.2\n\
         route add blackhole 10.40.0.0/16\n\
         route add unreachable 10.41.0.0/16\n\
         route add default via 10.3.0.2 table 100\n\
         rule add from 10.1.0.77 lookup 100\n\
         route add 2001:db8:20::/48 via 2001:db8:2::2\n\
         route add 2001:db8:21::/48 via 2001:db8:2::2 mtu 1280\n\
         route add 2001:db8:23::/48 nexthop via 2001:db8:2::2 dev wan nexthop via 2001:db8:3::2 dev side\n\
         route add prohibit 2001:db8:40::/48\n",
    );
    netns.ip_batch(&lines).unwrap();
    forward(netns);
    netns.sysctl("net/ipv4/conf/lan/rp_filter", "1").unwrap();
    // Nothing that routers say by themselves is rationed or chosen at random.
    for (key, value) in [
        ("net/ipv4/icmp_msgs_per_sec", "100000"),
        ("net/ipv4/icmp_msgs_burst", "100000"),
        ("net/ipv6/auto_flowlabels", "0"),
    ] {
        netns.sysctl(key, value).unwrap();
    }
}

/// What of a frame has to be equal; `None` of what the other end sent, and of
/// what routers say by themselves (ARP, neighbour discovery).
fn essential(side: u8, frame: &[u8]) -> Option<Vec<u8>> {
    if frame.get(6..12) != Some(&router_mac(side)) {
        return None;
    }
    let mut frame = frame.to_vec();
    match frame.get(12..14)? {
        [8, 0] => {
            let len = u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?]);
            frame.truncate(14 + usize::from(len));
            let is_ours = frame.get(26) == Some(&10) && frame.get(29) == Some(&1);
            if is_ours && frame.get(23) == Some(&1) {
                // Where there is no route, errors are rationed by time: five
                // at once, then one a second (`net.ipv4.route.error_cost`).
                if matches!(frame.get(34..36), Some([3, 0 | 1 | 13])) {
                    return None;
                }
                // Errors and answers: numbered at random.
                frame[18..20].fill(0);
                frame[24..26].fill(0);
            }
        }
        [0x86, 0xdd] => {
            let len = u16::from_be_bytes([*frame.get(18)?, *frame.get(19)?]);
            frame.truncate(54 + usize::from(len));
            let is_discovery = frame.get(20) == Some(&58) && (133..=137).contains(frame.get(54)?);
            let is_report = frame.get(38) == Some(&0xff);
            if is_discovery || is_report {
                return None;
            }
        }
        _ => return None,
    }
    Some(frame)
}

/// The first bytes of a frame.
fn hex(frame: &[u8]) -> String {
    let first = frame.iter().take(64);
    first.map(|byte| format!("{byte:02x}")).collect()
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(usual, |text| text.parse().unwrap())
}

/// One round: frames into both, and what left compared.
fn round(twins: &Twins, random: &mut Random, number: u32, what: &str) -> usize {
    let mut sent = Vec::new();
    for place in 0..FRAMES {
        let (name, side) = SIDES[random.below(3)];
        let frame = frame(random, side, number * FRAMES + place);
        twins.send(name, &frame);
        sent.push((name, frame));
    }
    let [ours, theirs] = twins.left(number);
    let only = |of: &[Left], other: &[Left]| {
        let mut lines = String::new();
        for (side, frame) in of.iter().filter(|one| !other.contains(one)) {
            lines.push_str(&format!("\n  side {side}: {}", hex(frame)));
        }
        lines
    };
    assert!(
        ours == theirs,
        "round {number} after `{what}`: of {} and {} frames\n by ours alone:{}\n by the \
         kernel alone:{}",
        ours.len(),
        theirs.len(),
        only(&ours, &theirs),
        only(&theirs, &ours)
    );
    ours.len()
}

#[test]
fn what_leaves_is_what_the_kernel_would_have_let_out() {
    let Some(twins) = Twins::make() else { return };
    let router = Router::start(&twins.router, &[]);
    let seed = number("FINGERPOST_TWIN_SEED", 17);
    let mut random = Random::new(seed);
    let mut left = 0;
    for at in 0..number("FINGERPOST_TWIN_ROUNDS", ROUNDS) {
        // All changes by and by, each beginning elsewhere with another seed.
        let all = (CHANGES.len() + WATCHED.len()) as u64;
        let place = (seed + at * 5) as usize % all as usize;
        let (change, is_watched) = match CHANGES.get(place) {
            Some(change) => (*change, false),
            None => (WATCHED[place - CHANGES.len()], true),
        };
        let [done, undone] = change;
        // Shown where the test fails.
        eprintln!("round {at}: {done}");
        left += round(&twins, &mut random, at as u32 * 2, "nothing");
        twins.change(done);
        if is_watched {
            router.looks_again();
        }
        left += round(&twins, &mut random, at as u32 * 2 + 1, done);
        twins.change(undone);
        if is_watched || undone.contains("mtu") {
            router.looks_again();
        }
    }
    // The comparison had something to compare, and was not of the kernel alone.
    assert!(left > 500, "{left} frames left");
    let forwarded = router.packets("lan", "forwarded") + router.packets("wan", "forwarded");
    assert!(
        forwarded > 100,
        "{forwarded} were forwarded at XDP: {} {}",
        router.ask("reasons").unwrap(),
        router.status()
    );
    for reason in [
        "not-ip",
        "vlan",
        "other-station",
        "special-address",
        "malformed",
        "options",
        "fragment",
        "ttl",
        "icmp",
        "protocol",
        "unfinished",
        "source",
        "host",
        "rejected",
        "too-big",
        "other-link",
        "same-link",
    ] {
        let met = router.packets("lan", reason) + router.packets("wan", reason);
        assert!(met > 0, "no frame was {reason}");
    }
    assert_eq!(address_v6(1, 2)[15], 2);
}
