//! What is in the way, with the real thing installed: refused at the start by
//! name, accepted by name; and later told, and left to the kernel until it is
//! gone.

use lab::Netns;

use crate::common::program;
use crate::place::{Place, Router, has_program, place, refused};

/// Something in the way: its name, what installs it in the router's namespace
/// and what takes it away, both for a shell; and which ports and families are
/// the kernel's meanwhile: lan's IPv4 and IPv6, wan's.
struct Case {
    name: &'static str,
    install: &'static str,
    remove: &'static str,
    left: [[bool; 2]; 2],
}

const ALL: [[bool; 2]; 2] = [[false; 2]; 2];
const WAN: [[bool; 2]; 2] = [[true; 2], [false; 2]];
const V4: [[bool; 2]; 2] = [[false, true]; 2];
const V6: [[bool; 2]; 2] = [[true, false]; 2];

const fn case(
    name: &'static str,
    install: &'static str,
    remove: &'static str,
    left: [[bool; 2]; 2],
) -> Case {
    Case {
        name,
        install,
        remove,
        left,
    }
}

const CASES: [Case; 12] = [
    case(
        "nft",
        "nft 'add table inet f; add chain inet f pass { type filter hook forward priority 0; }; \
         add rule inet f pass udp dport 9 drop'",
        "nft delete table inet f",
        ALL,
    ),
    case(
        "nft",
        "nft 'add table ip n; add chain ip n post { type nat hook postrouting priority 100; }; \
         add rule ip n post masquerade'",
        "nft delete table ip n",
        V4,
    ),
    case(
        "nft",
        "nft 'add table ip6 n; add chain ip6 n pre { type filter hook prerouting priority 0; \
         policy drop; }'",
        "nft delete table ip6 n",
        V6,
    ),
    case(
        "nft",
        "nft 'add table netdev d; add chain netdev d in { type filter hook ingress device wan \
         priority 0; }; add rule netdev d in ip ttl 9 drop'",
        "nft delete table netdev d",
        WAN,
    ),
    case(
        "nft",
        "iptables-nft -A FORWARD -p udp --dport 9 -j DROP",
        "iptables-nft -F; nft delete table ip filter",
        V4,
    ),
    case(
        "tc",
        "tc qdisc add dev wan clsact; tc filter add dev wan egress protocol ip u32 match u32 0 0 flowid 1:1",
        "tc qdisc del dev wan clsact",
        WAN,
    ),
    case(
        "qdisc",
        "tc qdisc add dev wan root tbf rate 1mbit burst 10k latency 50ms",
        "tc qdisc del dev wan root",
        WAN,
    ),
    case(
        "rule",
        "ip -6 rule add fwmark 7 lookup 100",
        "ip -6 rule del fwmark 7 lookup 100",
        V6,
    ),
    case(
        "multipath",
        "sysctl -qw net.ipv4.fib_multipath_hash_policy=2",
        "sysctl -qw net.ipv4.fib_multipath_hash_policy=0",
        V4,
    ),
    case(
        "xfrm",
        "ip xfrm policy add src 10.1.0.0/24 dst 10.2.0.0/24 dir fwd action block",
        "ip xfrm policy flush",
        V4,
    ),
    case(
        "upper",
        "ip link add up0 link wan type macvlan mode passthru",
        "ip link del up0",
        WAN,
    ),
    case(
        "forwarding",
        "sysctl -qw net.ipv6.conf.all.forwarding=0",
        "sysctl -qw net.ipv6.conf.all.forwarding=1",
        V6,
    ),
];

fn shell(netns: &Netns, line: &str) {
    netns.run("sh", &["-ec", line]).unwrap();
}

fn receives(router: &Router) -> [[bool; 2]; 2] {
    ["lan", "wan"].map(|port| router.receives(port))
}

fn ping(place: &Place) {
    place.left.run("ping", &["-c1", "-W5", "10.2.0.2"]).unwrap();
}

#[test]
fn what_appears_is_told_and_left_to_the_kernel_until_it_is_gone() {
    let Some(place) = place("xlater") else { return };
    let router = Router::start(&place.router, &[]);
    for Case {
        name,
        install,
        remove,
        left,
    } in CASES
    {
        assert_eq!(receives(&router), [[true; 2]; 2], "before {install}");
        shell(&place.router, install);
        router.until_told(name, true);
        assert_eq!(receives(&router), left, "{install}");
        shell(&place.router, remove);
        router.until_told(name, false);
    }
    assert_eq!(receives(&router), [[true; 2]; 2]);
    let log = router.log();
    assert!(log.contains("in the way: nft: the chain pass of nftables' table f; the kernel"));
    assert!(log.contains("no more in the way: qdisc: tbf on wan"));
}

/// Packets that the chain drops are dropped: by the kernel.
#[test]
fn a_filter_that_appears_is_obeyed() {
    let Some(place) = place("xobey") else { return };
    let router = Router::start(&place.router, &[]);
    ping(&place);
    shell(
        &place.router,
        "nft 'add table inet f; add chain inet f pass { type filter hook forward priority 0; \
         policy drop; }'",
    );
    router.until_told("nft", true);
    let failed = place.left.run("ping", &["-c1", "-W1", "10.2.0.2"]);
    assert!(failed.is_err());
    assert!(router.packets("lan", "paused") >= 1);
    shell(&place.router, "nft delete table inet f");
    router.until_told("nft", false);
    ping(&place);
}

#[test]
fn what_is_there_is_refused_by_name_or_accepted_by_name() {
    let Some(place) = place("xrefuse") else {
        return;
    };
    // A base chain that does nothing is in nobody's way.
    shell(&place.router, "iptables-nft -L FORWARD");
    drop(Router::start(&place.router, &[]));
    for Case {
        name,
        install,
        remove,
        ..
    } in CASES
    {
        if name == "forwarding" {
            continue;
        }
        shell(&place.router, install);
        let said = refused(&place.router, &[]);
        assert!(said.contains(&format!("{name}: ")), "{said}");
        assert!(said.contains(&format!("--accept {name}")), "{said}");
        assert!(!has_program(&place.router, "lan"));
        let accepted = Router::start(&place.router, &["--accept", name]);
        assert_eq!(receives(&accepted), [[true; 2]; 2], "{install}");
        let status = accepted.status();
        assert_eq!(status["obstacles"][0]["accepted"], true, "{status}");
        drop(accepted);
        shell(&place.router, remove);
    }
}

#[test]
fn what_cannot_be_passed_by_is_refused() {
    let Some(place) = place("xhard") else { return };
    let router = &place.router;
    router
        .ip_batch("link add br0 type bridge\nlink set wan master br0\n")
        .unwrap();
    let said = refused(router, &[]);
    assert!(said.contains("member: wan is a port of br0"), "{said}");
    assert!(!said.contains("--accept"), "{said}");
    let said = refused(router, &["--accept", "member"]);
    assert!(said.contains("cannot be passed by"), "{said}");
    router.ip(&["link", "set", "wan", "nomaster"]).unwrap();
    shell(
        router,
        "sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0",
    );
    let said = refused(router, &[]);
    assert!(said.contains("net.ipv4.ip_forward=1"), "{said}");
    let said = refused(router, &["--on", "wan"]);
    assert!(said.contains("--on: wan is named twice"), "{said}");
    shell(router, "sysctl -qw net.ipv4.ip_forward=1");
    let said = refused(router, &["--on", "eth9"]);
    assert!(said.contains("there is no link eth9"), "{said}");
    let said = refused(router, &["--on", "br0"]);
    assert!(said.contains("br0 takes no program for XDP"), "{said}");
    assert!(!has_program(router, "lan"));
    let one = router
        .run(program(), &["router", "--on", "lan"])
        .unwrap_err();
    assert!(one.to_string().contains("name two at least"), "{one}");
}

/// The connections that something tracks are a state that packets would pass.
#[test]
fn tracked_connections_are_told() {
    let Some(place) = place("xct") else { return };
    let router = Router::start(&place.router, &["--accept", "nft"]);
    // On the way of the host's own packets alone: nobody else's chain.
    shell(
        &place.router,
        "nft 'add table ip c; add chain ip c in { type filter hook input priority 0; }; \
         add rule ip c in ct state new accept'",
    );
    place.left.run("ping", &["-c1", "-W5", "10.1.0.1"]).unwrap();
    router.until_told("conntrack", true);
    assert_eq!(receives(&router), ALL);
}

/// iptables' own kernel part has no events.
#[test]
fn legacy_iptables_is_found_by_looking() {
    let Some(place) = place("xipt") else { return };
    let router = Router::start(&place.router, &[]);
    let made = place.router.run(
        "iptables-legacy",
        &["-A", "FORWARD", "-p", "47", "-j", "DROP"],
    );
    if let Err(error) = made {
        lab::skip::skip(&format!("no legacy tables here: {error}"));
        return;
    }
    router.until_told("iptables", true);
    assert_eq!(receives(&router), V4);
}

/// With `--obstacle tell` packets pass by what appears; it is told.
#[test]
fn what_appears_may_be_told_alone() {
    let Some(place) = place("xtell") else { return };
    let router = Router::start(&place.router, &["--obstacle", "tell"]);
    shell(&place.router, "tc qdisc add dev wan clsact");
    router.until_told("tc", true);
    assert_eq!(receives(&router), [[true; 2]; 2]);
    assert!(
        router.log().contains("packets pass it by"),
        "{}",
        router.log()
    );
    shell(&place.router, "sysctl -qw net.ipv6.conf.all.forwarding=0");
    router.until_told("forwarding", true);
    assert_eq!(receives(&router), V6);
}

/// Frames that are redirected to a veth want somebody at its other end.
#[test]
fn a_veth_without_gro_at_its_other_end_gets_frames_from_the_kernel() {
    let Some(place) = place("xgro") else { return };
    place
        .right
        .run("ethtool", &["-K", "eth0", "gro", "off"])
        .unwrap();
    let router = Router::start(&place.router, &[]);
    ping(&place);
    ping(&place);
    assert!(router.packets("lan", "cannot-send") >= 1);
    assert_eq!(router.packets("lan", "forwarded"), 0);
    let why = router.status()["ports"][1]["why"].to_string();
    assert!(why.contains("wan takes no frames"), "{why}");
    place
        .right
        .run("ethtool", &["-K", "eth0", "gro", "on"])
        .unwrap();
    router.looks_again();
    ping(&place);
    assert!(router.packets("lan", "forwarded") >= 1);
}

/// Only root and who runs it are answered.
#[test]
fn others_are_not_answered() {
    let Some(place) = place("xuser") else { return };
    let router = Router::start(&place.router, &[]);
    let control = router.control();
    let ask = ["router", "status", "--control", &control];
    let mut user = std::process::Command::new("setpriv");
    user.args(["--reuid", "65534", "--clear-groups", program()])
        .args(ask);
    let output = user.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // As root with words that are none: refused, and the next is answered.
    use std::io::{Read, Write};
    let mut stream = std::os::unix::net::UnixStream::connect(&control).unwrap();
    stream.write_all(b"{\"ask\":\"everything\"}\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).ok();
    assert!(said.contains("error"), "{said}");
    assert!(router.ask("status").is_some());
}
