//! What BGP's peers tell, by BMP: of a real bgpd of FRR and a real GoBGP,
//! compared with what a speaker told them; in all views; and what liars and
//! sleepers among routers do to the others.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::ops::Range;
use std::time::Instant;

use lab::bmp::{Peer, initiation};
use lab::mrt::Attributes;
use lab::speaker::{Speaker, prefix};
use lab::{Child, Netns, wait_until};
use serde_json::Value;

use crate::common::{Daemon, PATIENCE, fingerpost, program, says};
use crate::frr::{Configuration, Frr};
use crate::wired;

const BGPD: &str = "router bgp 65001\n bgp router-id 10.1.0.1\n \
    no bgp ebgp-requires-policy\n \
    neighbor 10.1.0.2 remote-as 65002\n neighbor 10.1.0.2 passive\n \
    bmp targets lab\n  bmp stats interval 1000\n  \
    bmp monitor ipv4 unicast pre-policy\n  bmp monitor ipv4 unicast post-policy\n  \
    bmp connect 127.0.0.1 port 11019 min-retry 100 max-retry 500\n exit\n";

const GOBGPD: &str = "[global.config]\nas = 65001\nrouter-id = '10.1.0.1'\n\
    local-address-list = ['10.1.0.1']\n\
    [[neighbors]]\n[neighbors.config]\nneighbor-address = '10.1.0.2'\npeer-as = 65002\n\
    [neighbors.transport.config]\npassive-mode = true\n\
    [[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\nafi-safi-name = 'ipv4-unicast'\n\
    [[bmp-servers]]\n[bmp-servers.config]\naddress = '127.0.0.1'\nport = 11019\n\
    route-monitoring-policy = 'all'\nstatistics-timeout = 15\nsys-name = 'gobgp'\n";

/// A namespace that is monitored, and the one of its BGP peer.
fn peered(tag: &str) -> Option<(Netns, Netns)> {
    let netns = wired(tag)?;
    let peer = Netns::new(&format!("{tag}-peer")).unwrap();
    netns
        .ip(&["link", "set", "w0", "netns", peer.name()])
        .unwrap();
    peer.ip_batch("addr add 10.1.0.2/24 dev w0\nlink set w0 up\n")
        .unwrap();
    Some((netns, peer))
}

fn speaker(peer: &Netns) -> Speaker {
    let connect = || {
        let opened = peer.inside(|| {
            let bgpd = "10.1.0.1:179".parse().unwrap();
            Speaker::open(bgpd, 65_002, [10, 1, 0, 2].into())
        });
        opened.unwrap().ok()
    };
    wait_until(PATIENCE, "a session with the router", connect).unwrap()
}

/// The routes of a source: prefix, next hop, AS path; `None` while there is
/// no such source.
fn told(netns: &Netns, source: &str) -> Option<BTreeSet<String>> {
    // While a router tells all the answer says that it may lack rows.
    let asked = fingerpost(netns, &["route", "--source", source, "--ndjson"]);
    if !matches!(asked.status.code(), Some(0 | 3)) {
        return None;
    }
    let text = String::from_utf8(asked.stdout).unwrap();
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let (dst, via, path) = (&row["dst"], &row["gateway"], &row["as_path"]);
        format!("{} {} {path}", dst.as_str().unwrap(), via.as_str().unwrap())
    };
    Some(text.lines().map(row).collect())
}

/// What a speaker has told.
fn expected(parts: &[(Range<u32>, [u8; 4])]) -> BTreeSet<String> {
    with_path(parts, "65002")
}

/// The same as FRR tells it: with its own AS before the path, as if it told
/// that peer (seen with 8.4.4).
fn as_frr_tells(parts: &[(Range<u32>, [u8; 4])]) -> BTreeSet<String> {
    with_path(parts, "65001,65002")
}

fn with_path(parts: &[(Range<u32>, [u8; 4])], path: &str) -> BTreeSet<String> {
    let rows = parts.iter().flat_map(|(numbers, via)| {
        let via = Ipv4Addr::from(*via);
        let row = move |number| format!("{}/24 {via} [{path}]", prefix(number));
        numbers.clone().map(row)
    });
    rows.collect()
}

fn has(netns: &Netns, source: &str, rows: &BTreeSet<String>) {
    let mut seen = BTreeSet::new();
    let same = || {
        seen = told(netns, source)?;
        (seen == *rows).then_some(())
    };
    let waited = wait_until(PATIENCE, "equal routes", same);
    let (extra, missing) = (seen.difference(rows).next(), rows.difference(&seen).next());
    assert!(
        waited.is_ok(),
        "{source}: {} of {}, extra {extra:?}, missing {missing:?}; {}",
        seen.len(),
        rows.len(),
        says(netns, &["status"])
    );
}

/// What the status tells of a source, by its whole name or without the
/// router.
fn status(netns: &Netns, source: &str) -> Value {
    let status: Value = serde_json::from_str(&says(netns, &["status", "--json"])).unwrap();
    let feeders = status["feeders"].as_array().unwrap();
    let is_it = |of: &&Value| of["name"].as_str().unwrap().split('@').next() == Some(source);
    feeders.iter().find(is_it).cloned().unwrap_or_default()
}

fn is_phase(netns: &Netns, source: &str, begins: &str) {
    let reached = || {
        let told = status(netns, source);
        let phase = told["phase"].as_str()?.to_owned();
        phase.starts_with(begins).then_some(())
    };
    let waited = wait_until(PATIENCE, begins, reached);
    assert!(waited.is_ok(), "{source}: {}", status(netns, source));
}

#[test]
fn what_a_peer_tells_frr_is_there_before_and_after_policy() {
    let Some((netns, peer)) = peered("bmp-frr") else {
        return;
    };
    let daemon = Daemon::up(&netns, &["--bmp", "127.0.0.1"]);
    assert!(daemon.screen.contains("bmp at 127.0.0.1:11019"));
    let policy = "ip prefix-list few permit 20.0.0.0/14 le 24\n";
    let bgpd = format!(
        "{policy}{BGPD} address-family ipv4 unicast\n  neighbor 10.1.0.2 prefix-list few in\n  \
         neighbor 10.1.0.2 soft-reconfiguration inbound\n"
    );
    let mut frr = Frr::start(
        &netns,
        Configuration {
            zebra: "",
            staticd: "",
            bgpd: Some(&bgpd),
        },
    );
    let (via, other) = ([10, 1, 0, 2], [10, 1, 0, 9]);
    let mut speaker_of_peer = speaker(&peer);
    speaker_of_peer.announce(0..2_000, via.into()).unwrap();
    let (before, after) = ("bmp:10.1.0.2", "bmp:10.1.0.2_post");
    has(&netns, before, &as_frr_tells(&[(0..2_000, via)]));
    // 20.0.0.0/14 has 1,024 of them.
    has(&netns, after, &as_frr_tells(&[(0..1_024, via)]));
    speaker_of_peer.withdraw(100..200).unwrap();
    speaker_of_peer.announce(500..600, other.into()).unwrap();
    let now = as_frr_tells(&[
        (0..100, via),
        (200..500, via),
        (500..600, other),
        (600..2_000, via),
    ]);
    has(&netns, before, &now);
    let told = status(&netns, before);
    let peer_of = &told["monitored"];
    assert_eq!(
        (&peer_of["asn"], &peer_of["up"]),
        (&65_002.into(), &true.into())
    );
    assert_eq!(peer_of["rib"], "adj-rib-in");
    let counted = || {
        let told = status(&netns, before);
        told["monitored"]["statistics_millis"].as_u64()
    };
    wait_until(PATIENCE, "statistics", counted).unwrap();

    // bgpd is killed: all stays, as it was. It comes back with less.
    frr.kill_bgpd();
    is_phase(&netns, before, "disconnected: 127.0.0.1:");
    has(&netns, before, &now);
    let asked = fingerpost(&netns, &["route", "--source", before, "--count"]);
    assert_eq!(asked.status.code(), Some(3));
    drop(speaker_of_peer);
    frr.start_bgpd();
    let mut again = speaker(&peer);
    again.announce(0..50, via.into()).unwrap();
    has(&netns, before, &as_frr_tells(&[(0..50, via)]));
    is_phase(&netns, before, "live");
    assert_eq!(status(&netns, before)["unconfirmed"], 0);

    // The session ends: all goes at once, and why is told.
    drop(again);
    has(&netns, before, &BTreeSet::new());
    let told = status(&netns, before);
    assert_eq!(told["monitored"]["up"], false);
    assert!(told["monitored"]["downs"].as_u64() >= Some(1), "{told}");
    let text = says(&netns, &["status"]);
    assert!(text.contains("adj-rib-in of "), "{text}");
    daemon.end();
}

/// A GoBGP with one peer.
fn gobgpd(netns: &Netns, directory: &std::path::Path) -> Child {
    let file = directory.join("gobgpd.toml");
    fs::write(&file, GOBGPD).unwrap();
    let mut command = netns.command("gobgpd");
    command
        .args(["-t", "toml", "-f", file.to_str().unwrap()])
        .args(["--api-hosts", "127.0.0.1:50051", "--log-plain"]);
    Child::spawn(command).unwrap()
}

#[test]
fn what_a_peer_tells_gobgp_is_there_and_so_is_its_own_table() {
    let Some((netns, peer)) = peered("bmp-go") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::up(&netns, &["--bmp", "127.0.0.1"]);
    let router = gobgpd(&netns, directory.path());
    let via = [10, 1, 0, 2];
    let mut speaker_of_peer = speaker(&peer);
    speaker_of_peer.announce(0..500, via.into()).unwrap();
    let all = expected(&[(0..500, via)]);
    for source in ["bmp:10.1.0.2", "bmp:10.1.0.2_post", "bmp:loc-rib"] {
        has(&netns, source, &all);
        has(&netns, &format!("{source}@gobgp"), &all);
    }
    speaker_of_peer.withdraw(0..100).unwrap();
    let less = expected(&[(100..500, via)]);
    has(&netns, "bmp:10.1.0.2", &less);
    has(&netns, "bmp:loc-rib", &less);
    drop(speaker_of_peer);
    has(&netns, "bmp:10.1.0.2", &BTreeSet::new());
    drop(router);
    is_phase(&netns, "bmp:10.1.0.2", "disconnected: ");
    daemon.end();
}

/// A router of the test.
struct Router(TcpStream);

impl Router {
    fn connect(netns: &Netns, name: &str) -> Self {
        let connect = || TcpStream::connect("127.0.0.1:11019").unwrap();
        let mut router = Self(netns.inside(connect).unwrap());
        router.says(&initiation(name));
        router
    }

    fn says(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }
}

fn one() -> Peer {
    Peer::new([192, 0, 2, 1].into(), 65_002)
}

fn route(number: u32, via: [u8; 4]) -> Vec<u8> {
    let how = Attributes::default()
        .origin(0)
        .as_path(&[(2, vec![65_002])])
        .next_hop(IpAddr::from(via))
        .numbers(0xc0, 8, &[65_002 << 16 | 7]);
    let net = ipnet::Ipv4Net::new_assert(prefix(number), 24);
    one().update(&[], &how, &[net.into()])
}

/// What a router that comes now is told of in the status.
fn newcomer(netns: &Netns, name: &str) -> (Router, Value) {
    let mut router = Router::connect(netns, name);
    router.says(&one().plain_up());
    router.says(&route(1, [10, 1, 0, 2]));
    let told = || {
        let status: Value = serde_json::from_str(&says(netns, &["status", "--json"])).unwrap();
        let routers = status["feeders"][0]["routers"].as_array()?.clone();
        routers.into_iter().find(|router| router["name"] == name)
    };
    let told = wait_until(PATIENCE, "the router in the status", told);
    (router, told.unwrap())
}

#[test]
fn a_step_of_the_time_of_day_makes_nobody_older_or_younger() {
    let (Some(netns), Some(library)) = (wired("bmp-clock"), lab::rates::faketime()) else {
        return lab::skip::skip("faketime is not installed");
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("time");
    let step = |seconds: i64| fs::write(&file, format!("{seconds:+}\n")).unwrap();
    step(0);
    let mut command = netns.command(program());
    command
        .args(["up", "--bmp", "127.0.0.1"])
        .env("LD_PRELOAD", &library)
        .env("FAKETIME_TIMESTAMP_FILE", &file)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let daemon = Daemon::spawn(command);
    let begun = Instant::now();
    let (_first, first) = newcomer(&netns, "first");
    let at = |told: &Value| told["since_millis"].as_i64().unwrap() / 1_000;
    for (name, seconds) in [("ahead", 3_600), ("behind", -3_600)] {
        step(seconds);
        let (_router, told) = newcomer(&netns, name);
        // The daemon was told the other time of day, and tells it.
        let beside = at(&told) - at(&first);
        assert!(beside.abs_diff(seconds) < 600, "{beside} s");
        let status: Value = serde_json::from_str(&says(&netns, &["status", "--json"])).unwrap();
        let most = begun.elapsed().as_secs() + 1;
        for feeder in status["feeders"].as_array().unwrap() {
            let routers = feeder["routers"].as_array().into_iter().flatten();
            let history = feeder["monitored"]["history"].as_array();
            let ages = [&feeder["since_secs"], &feeder["last_heard_secs"]].into_iter();
            let ages = ages.chain(routers.map(|router| &router["since_secs"]));
            let ages = ages.chain(history.into_iter().flatten().map(|event| &event["secs"]));
            for age in ages {
                assert!(age.as_u64().unwrap() <= most, "{status}");
            }
        }
        let text = says(&netns, &["status"]);
        assert!(
            !text.contains("3600 s ago") && !text.contains("3599 s ago"),
            "{text}"
        );
    }
    daemon.end();
}

#[test]
fn liars_and_sleepers_do_not_disturb_other_routers() {
    let Some(netns) = wired("bmp-door") else {
        return;
    };
    let daemon = Daemon::up(&netns, &["--bmp", "127.0.0.1"]);
    let via = [10, 1, 0, 2];
    let mut good = Router::connect(&netns, "good");
    good.says(&one().plain_up());
    good.says(&route(1, via));
    has(&netns, "bmp:192.0.2.1@good", &expected(&[(1..2, via)]));
    // In the middle of a message, for good; and a crowd that says nothing.
    let mut sleeper = Router::connect(&netns, "sleeper");
    sleeper.says(&one().plain_up());
    sleeper.says(&route(7, via));
    has(&netns, "bmp:192.0.2.1@sleeper", &expected(&[(7..8, via)]));
    sleeper.says(&route(8, via)[..60]);
    let connect = || TcpStream::connect("127.0.0.1:11019").unwrap();
    let crowd: Vec<TcpStream> = (0..100).map(|_| netns.inside(connect).unwrap()).collect();
    let mut liar = Router::connect(&netns, "liar");
    liar.says(&one().plain_up());
    liar.says(&route(5, via));
    has(&netns, "bmp:192.0.2.1@liar", &expected(&[(5..6, via)]));
    let begun = initiation("liar").len() + one().plain_up().len() + route(5, via).len();
    let mut lie = route(6, via);
    let at = lie.len() - 4;
    lie[at] = 99;
    liar.says(&lie);
    daemon.logs("a prefix is 99 long");
    let phase = || {
        let status: Value = serde_json::from_str(&says(&netns, &["status", "--json"])).unwrap();
        let feeders = status["feeders"].as_array().unwrap().clone();
        let of_liar = |of: &Value| of["name"] == "bmp:192.0.2.1@liar";
        let liar = feeders.into_iter().find(of_liar).unwrap();
        let phase = liar["phase"].as_str().unwrap().to_owned();
        phase.starts_with("disconnected").then_some(phase)
    };
    let phase = wait_until(PATIENCE, "the liar to be closed", phase).unwrap();
    let place = format!("the route monitoring message at byte {begun}: a prefix is 99 long");
    assert!(phase.contains(&place), "{phase}");
    has(&netns, "bmp:192.0.2.1@liar", &expected(&[(5..6, via)]));
    // The others go on.
    good.says(&route(2, via));
    has(&netns, "bmp:192.0.2.1@good", &expected(&[(1..3, via)]));
    assert_eq!(
        fingerpost(&netns, &["route", "--source", "bmp:192.0.2.1@good"])
            .status
            .code(),
        // Nothing said that all was told.
        Some(3)
    );
    // Three have that peer.
    let asked = fingerpost(&netns, &["route", "--source", "bmp:192.0.2.1"]);
    assert!(!asked.status.success());
    let complaint = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(complaint.contains("bmp:192.0.2.1@sleeper"), "{complaint}");
    let asked = fingerpost(&netns, &["route", "--source", "bmp"]);
    let complaint = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(complaint.contains("a source for each table"), "{complaint}");
    drop(crowd);
    daemon.end();
}

const FILE: &str = "[feed.mon]\nkind = 'bmp'\nlisten = '127.0.0.1:11019'\nrouters = 2\n\
    [feed.mon.limits]\nroutes = 6000\n\
    [snmp]\nlisten = ['127.0.0.1:1161']\n[[snmp.community]]\nname = 'peer'\n\
    context = 'source-mon:192.0.2.1'\n[http]\nlisten = ['127.0.0.1:9797']\n";

#[test]
fn every_view_shows_what_a_peer_tells() {
    let Some(netns) = wired("bmp-shown") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("f.toml");
    fs::write(&file, FILE).unwrap();
    let daemon = Daemon::up(&netns, &["--config", file.to_str().unwrap()]);
    let via = [10, 1, 0, 2];
    let mut router = Router::connect(&netns, "edge");
    router.says(&one().plain_up());
    for number in 1..3 {
        router.says(&route(number, via));
    }
    for is_v6 in [false, true] {
        router.says(&one().end_of_rib(is_v6));
    }
    router.says(&one().statistics(&[(0, &[0, 0, 0, 3])]));
    let source = "mon:192.0.2.1";
    has(&netns, source, &expected(&[(1..3, via)]));
    is_phase(&netns, source, "live");
    let asked = |more: &[&str]| says(&netns, &[&["route", "--source", source], more].concat());
    let text = asked(&[]);
    assert!(text.contains("as-path 65002"), "{text}");
    for (filter, rows) in [
        (["--as-path", "^65002$"], "2"),
        (["--origin-as", "7"], "0"),
        (["--community", "65002:7"], "2"),
    ] {
        assert_eq!(asked(&[&filter[..], &["--count"]].concat()).trim(), rows);
    }
    netns
        .ip(&[
            "route",
            "add",
            "20.0.1.0/24",
            "via",
            "10.1.0.2",
            "dev",
            "v0",
        ])
        .unwrap();
    let differs = || {
        let text = says(
            &netns,
            &["route", "diff", "kernel", source, "--proto", "bgp"],
        );
        (!text.contains("20.0.1.0/24") && text.contains("20.0.2.0/24")).then_some(())
    };
    wait_until(PATIENCE, "the difference", differs).unwrap();
    let why = says(&netns, &["route", "why", "20.0.1.0/24"]);
    assert!(why.contains("mon:192.0.2.1@edge"), "{why}");
    let curl = |path: &str| netns.run("curl", &["-sf", &format!("http://127.0.0.1:9797{path}")]);
    let rows = curl("/v1/routes?source=mon:192.0.2.1&community=65002:7").unwrap();
    assert!(rows.contains("\"dst\":\"20.0.2.0/24\""), "{rows}");
    let of_station = curl("/v1/status").unwrap();
    assert!(
        of_station.contains("\"prefixes_rejected\":3"),
        "{of_station}"
    );
    let metrics = curl("/metrics").unwrap();
    for line in [
        "fingerpost_feeder_routes{source=\"mon:192.0.2.1@edge\"} 2",
        "fingerpost_feeder_peer_up{source=\"mon:192.0.2.1@edge\"} 1",
        "fingerpost_feeder_connected{source=\"mon:192.0.2.1@edge\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let column = ["-On", "127.0.0.1:1161", "1.3.6.1.2.1.4.24.7.1.7"];
    let walk = [&["-v2c", "-c", "peer"][..], &column].concat();
    let said = netns.run("snmpwalk", &walk).unwrap();
    assert_eq!(
        said.lines()
            .filter(|line| line.contains(".1.4.20.0."))
            .count(),
        2
    );
    // More than the router may have.
    for number in 3..6_100 {
        router.says(&route(number, via));
    }
    has(&netns, source, &expected(&[(1..6_001, via)]));
    is_phase(&netns, source, "degraded: routes miss rows");
    // In many pieces, by the name without the router.
    let rows = curl("/v1/routes?source=mon:192.0.2.1&format=ndjson").unwrap();
    assert_eq!(rows.lines().count(), 6_000);
    daemon.end();
}
