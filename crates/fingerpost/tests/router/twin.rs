//! A router with the program beside a twin that the kernel alone forwards:
//! the same frames into both, and the same has to leave both, by the same
//! links; while routes, neighbours, links, rules and settings change.
//!
//! `FINGERPOST_TWIN_ROUNDS` says how many rounds, `FINGERPOST_TWIN_SEED` which;
//! with `FINGERPOST_TWIN_SECONDS` changes come at random, several at a time,
//! for so long (`cargo xtask soak --router`).

use std::time::{Duration, Instant};

use lab::{Netns, Random, Wire, skip};

use crate::changes::{CHANGES, OF_KINDS, WATCHED};
use crate::common::PATIENCE;
use crate::frames::{address_v6, frame, host_mac, hostile, router_mac};
use crate::place::{Router, bpf, forward};

/// Rounds in the checks; frames and changes of each.
const ROUNDS: u64 = 12;
const FRAMES: u32 = 300;

/// Rounds of hostile frames, and their bytes at most.
const HOSTILE_ROUNDS: u32 = 10;
const LONGEST: usize = 9_014;

/// Seconds of changes at random in the checks.
const RANDOM_SECONDS: u64 = 8;

/// How long what left may differ: frames that are late.
const LATE: Duration = Duration::from_secs(10);

/// The sides of a router: its links, and the numbers in addresses.
const SIDES: [(&str, u8); 3] = [("lan", 1), ("wan", 2), ("side", 3)];

/// A frame that left: which side, and its bytes but for what two routers
/// choose at random.
type Left = (u8, Vec<u8>);

/// Both routers, and the other ends of their cables.
struct Twins {
    router: Netns,
    twin: Netns,
    wire: Wire,
    ends: Netns,
    has_bond: bool,
}

impl Twins {
    /// The third side, which is no port, may be behind a bond.
    fn make(name: &str, has_bond: bool) -> Option<Self> {
        skip::unless(bpf())?;
        let ends = skip::unless(Netns::new(&format!("{name}e")))?;
        let router = skip::unless(Netns::new(name))?;
        let twin = skip::unless(Netns::new(&format!("{name}k")))?;
        if has_bond {
            skip::unless(has_kind("bond"))?;
        }
        for (netns, tag) in [(&router, "r"), (&twin, "k")] {
            furnish(netns, &ends, tag, has_bond);
        }
        let wire = skip::unless(Wire::open(&ends))?;
        Some(Self {
            router,
            twin,
            wire,
            ends,
            has_bond,
        })
    }

    /// Makes a change to both.
    fn change(&self, line: &str) {
        for netns in [&self.router, &self.twin] {
            let line = at_side(line, self.has_bond);
            netns.run("sh", &["-ec", &line]).unwrap();
        }
    }

    /// The same of one that another one may be in the way of: to both alike.
    fn try_to_change(&self, line: &str) {
        let done = [&self.router, &self.twin].map(|netns| {
            let line = at_side(line, self.has_bond);
            netns.run("sh", &["-c", &line]).is_ok()
        });
        assert_eq!(done[0], done[1], "{line}");
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

/// Whether the kernel has a kind of link.
fn has_kind(kind: &str) -> anyhow::Result<()> {
    let netns = Netns::new("xkind")?;
    let lower = if kind == "vlan" { "link lo " } else { "" };
    let id = if kind == "vlan" { " id 2" } else { "" };
    netns.ip_batch(&format!("link add {lower}name x0 type {kind}{id}\n"))
}

/// A line for where the third side is behind a bond.
fn at_side(line: &str, has_bond: bool) -> String {
    match has_bond {
        true => line.replace("dev side", "dev bond0"),
        false => line.to_owned(),
    }
}

/// Links, addresses, neighbours, routes and rules, the same in each.
fn furnish(netns: &Netns, ends: &Netns, tag: &str, has_bond: bool) {
    let mut lines = String::new();
    for (name, side) in SIDES {
        let [_, _, _, _, _, last] = router_mac(side);
        lines.push_str(&format!(
            "link add {name} address 02:00:00:00:01:0{last} type veth peer name {tag}{name} netns {}\n",
            ends.name()
        ));
        if has_bond && name == "side" {
            lines.push_str(
                "link add bond0 type bond mode active-backup miimon 100\n\
                 link set side master bond0\n\
                 link set bond0 up\n",
            );
        }
        lines.push_str(&format!(
            "addr add 10.{side}.0.1/24 dev {name}\n\
             addr add 2001:db8:{side}::1/64 dev {name} nodad\n\
             link set {name} up\n"
        ));
    }
    for (key, value) in [
        ("net/ipv6/conf/default/accept_dad", "0"),
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/default/rp_filter", "0"),
    ] {
        netns.sysctl(key, value).unwrap();
    }
    netns.ip_batch(&at_side(&lines, has_bond)).unwrap();
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
    netns.ip_batch(&at_side(&lines, has_bond)).unwrap();
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
    let from = frame.get(6..12)?;
    if from != router_mac(side) && from != host_mac(9) {
        return None;
    }
    let (tag, frame) = match frame.get(12..14)? {
        [0x81, 0] => {
            let untagged = [frame.get(..12)?, frame.get(16..)?].concat();
            (frame.get(14..16)?, untagged)
        }
        _ => (&[][..], frame.to_vec()),
    };
    let mut frame = essential_of(frame)?;
    // Which VLAN it is in is not to be lost.
    frame.extend(tag);
    frame.push(tag.len() as u8);
    Some(frame)
}

/// The same of a frame without a tag.
fn essential_of(mut frame: Vec<u8>) -> Option<Vec<u8>> {
    match frame.get(12..14)? {
        [8, 0] => {
            let len = u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?]);
            frame.truncate(14 + usize::from(len));
            // Of its own addresses, or with route_localnet from the loopback.
            let is_ours = matches!(frame.get(26), Some(10 | 127)) && frame.get(29) == Some(&1);
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
            // Told seconds later, when nobody has answered for an address.
            let is_late = frame.get(20) == Some(&58) && frame.get(54..56) == Some(&[1, 3]);
            if is_discovery || is_report || is_late {
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
    round_of(twins, number, what, |place| {
        let (name, side) = SIDES[random.below(3)];
        (name, frame(random, side, number * FRAMES + place))
    })
}

/// The same with frames of a maker's: by which side each comes in.
fn round_of(
    twins: &Twins,
    number: u32,
    what: &str,
    mut made: impl FnMut(u32) -> (&'static str, Vec<u8>),
) -> usize {
    let mut sent = Vec::new();
    for place in 0..FRAMES {
        let (name, frame) = made(place);
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

/// Rounds with one change each, all by and by; frames that left.
#[allow(clippy::print_stderr, reason = "shown where the test fails")]
fn one_by_one(twins: &Twins, router: &Router, rounds: u64) -> usize {
    let seed = number("FINGERPOST_TWIN_SEED", 17);
    let mut random = Random::new(seed);
    let mut left = 0;
    for at in 0..rounds {
        // Each seed begins elsewhere.
        let all = (CHANGES.len() + WATCHED.len()) as u64;
        let place = (seed + at * 5) as usize % all as usize;
        let (change, is_watched) = match CHANGES.get(place) {
            Some(change) => (*change, false),
            None => (WATCHED[place - CHANGES.len()], true),
        };
        let [done, undone] = change;
        eprintln!("round {at}: {done}");
        left += round(twins, &mut random, at as u32 * 2, "nothing");
        twins.change(done);
        if is_watched {
            router.looks_again();
        }
        left += round(twins, &mut random, at as u32 * 2 + 1, done);
        twins.change(undone);
        if is_watched || undone.contains("mtu") {
            router.looks_again();
        }
    }
    left
}

/// Changes at random, several at a time, for so many seconds; frames that
/// left.
#[allow(clippy::print_stderr, reason = "shown where the test fails")]
fn at_random(twins: &Twins, router: &Router, seconds: u64) -> usize {
    let seed = number("FINGERPOST_TWIN_SEED", 17);
    let mut random = Random::new(seed);
    let kinds = OF_KINDS.iter().filter(|(kind, _)| has_kind(kind).is_ok());
    let kinds: Vec<[&str; 2]> = kinds.map(|(_, change)| *change).collect();
    // These are there at the beginning.
    for [done, _] in &kinds {
        twins.change(done);
    }
    let mut is_done = vec![true; kinds.len()];
    let changes: Vec<[&str; 2]> = kinds.into_iter().chain(CHANGES).chain(WATCHED).collect();
    is_done.resize(changes.len(), false);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut left, mut at) = (0, 0);
    while Instant::now() < end {
        let mut made = String::new();
        for _ in 0..=random.below(2) {
            let place = random.below(changes.len());
            let line = changes[place][usize::from(is_done[place])];
            is_done[place] = !is_done[place];
            twins.try_to_change(line);
            made.push_str(line);
            made.push_str("; ");
        }
        eprintln!("round {at}: {made}");
        router.looks_again();
        left += round(twins, &mut random, at, &made);
        at += 1;
    }
    eprintln!("{at} rounds, {left} frames left");
    left
}

/// What is accepted where the kernel does not tell VLAN tags (before 6.8).
fn accepted() -> Vec<&'static str> {
    match std::env::var_os("FINGERPOST_TWIN_OLD") {
        Some(_) => vec!["--accept", "vlan-tags"],
        None => Vec::new(),
    }
}

fn forwarded(router: &Router) -> u64 {
    router.packets("lan", "forwarded") + router.packets("wan", "forwarded")
}

#[test]
fn what_leaves_is_what_the_kernel_would_have_let_out() {
    let Some(twins) = Twins::make("xtwin", false) else {
        return;
    };
    let router = Router::start(&twins.router, &accepted());
    if let Ok(seconds) = std::env::var("FINGERPOST_TWIN_SECONDS") {
        at_random(&twins, &router, seconds.parse().unwrap());
        assert!(forwarded(&router) > 0, "{}", router.status());
        return;
    }
    let rounds = number("FINGERPOST_TWIN_ROUNDS", ROUNDS);
    let left = one_by_one(&twins, &router, rounds);
    // The comparison had something to compare, and was not of the kernel alone.
    assert!(left > 500, "{left} frames left");
    assert!(
        forwarded(&router) > 100,
        "{} were forwarded at XDP: {} {}",
        forwarded(&router),
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

/// Changes at random, several at a time: the short form.
#[test]
fn changes_at_random_are_followed_as_the_kernel_does() {
    let Some(twins) = Twins::make("xrand", false) else {
        return;
    };
    let router = Router::start(&twins.router, &accepted());
    let left = at_random(&twins, &router, RANDOM_SECONDS);
    assert!(left > 0 && forwarded(&router) > 0, "{}", router.status());
}

/// Frames that were made to hurt, up to 9,000 bytes: none stalls it, none
/// leaves that the kernel would not have let out, all are counted.
///
/// Not in the checks: of a frame of 9,000 bytes around a packet of 144 the
/// twin, which the kernel alone forwards, lets out zeros behind the transport's
/// header, the router the packet. Whether that is the kernel's veth or how
/// frames are heard here has not been found out.
#[test]
#[ignore = "the twin's own frames are not understood yet: cargo test -p fingerpost --test router -- --ignored hostile"]
fn hostile_frames_leave_as_the_kernel_lets_them() {
    let Some(twins) = Twins::make("xhostile", false) else {
        return;
    };
    for (name, _) in SIDES {
        twins.change(&format!("ip link set {name} mtu 9000"));
        for tag in ["r", "k"] {
            let end = format!("{tag}{name}");
            twins
                .ends
                .ip(&["link", "set", &end, "mtu", "9000"])
                .unwrap();
        }
    }
    let router = Router::start(&twins.router, &accepted());
    let counted = || -> u64 {
        let rows = router.ask("counters").unwrap();
        let rows = rows.as_array().unwrap().iter();
        let all = |row: &serde_json::Value| {
            row["forwarded_packets"].as_u64().unwrap() + row["up_packets"].as_u64().unwrap()
        };
        rows.map(all).sum()
    };
    let before = counted();
    let mut random = Random::new(number("FINGERPOST_TWIN_SEED", 17));
    let (mut sent, mut left) = (0, 0);
    for at in 0..HOSTILE_ROUNDS {
        left += round_of(&twins, at, "hostile frames", |place| {
            let (name, side) = SIDES[random.below(3)];
            sent += u64::from(name != "side");
            let number = at * FRAMES + place;
            (name, hostile(&mut random, side, number, LONGEST))
        });
    }
    assert!(left > 0 && forwarded(&router) > 0, "{}", router.status());
    let counted = counted() - before;
    assert!(counted >= sent, "{counted} of {sent} frames were counted");
}

/// A route that leaves by a bond goes up, and its links are no ports.
#[test]
fn what_is_behind_a_bond_is_the_kernel_s() {
    let Some(twins) = Twins::make("xbond", true) else {
        return;
    };
    let router = Router::start(&twins.router, &accepted());
    assert!(at_random(&twins, &router, RANDOM_SECONDS) > 0);
    assert!(forwarded(&router) > 0, "{}", router.status());
    drop(router);
    let refused = |links: &str| crate::place::refused_on(&twins.router, links);
    let said = refused("lan bond0");
    assert!(said.contains("bond: bond0 is a bond"), "{said}");
    let said = refused("lan side");
    assert!(said.contains("member: side is a port of bond0"), "{said}");
}
