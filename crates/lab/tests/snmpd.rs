//! The objects of `mib` beside a real `snmpd` in one namespace: every
//! difference is one that the RFCs explain, and is named here
//! (`docs/decisions/011-routes-as-snmp-rows.md` has the longer ones).
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lab::situation::routes::{self, Family};
use lab::{Netns, skip, wait_until};
use linux::{Mirror, Namespace, Options, Phase};
use mib::{Engine, Health, History, MibContext, Objects, Reads, SampleTimes, System};
use snmp::counters::Counters;
use snmp::{Mib, Value};
use table::{Sampled, Tables};

const PATIENCE: Duration = Duration::from_secs(20);

/// What is walked in both.
const ROOTS: [&str; 9] = [
    "1.3.6.1.2.1.2",
    "1.3.6.1.2.1.4.1",
    "1.3.6.1.2.1.4.20",
    "1.3.6.1.2.1.4.21",
    "1.3.6.1.2.1.4.22",
    "1.3.6.1.2.1.4.24",
    "1.3.6.1.2.1.4.31",
    "1.3.6.1.2.1.4.34",
    "1.3.6.1.2.1.31.1",
];
/// And these, which are walked the same way.
const MORE_ROOTS: [&str; 21] = [
    "1.3.6.1.2.1.4.32",
    "1.3.6.1.2.1.4.33",
    "1.3.6.1.2.1.4.36",
    "1.3.6.1.2.1.5",
    "1.3.6.1.2.1.6",
    "1.3.6.1.2.1.7.1",
    "1.3.6.1.2.1.7.2",
    "1.3.6.1.2.1.7.3",
    "1.3.6.1.2.1.7.4",
    "1.3.6.1.2.1.10.7",
    "1.3.6.1.2.1.25.1",
    "1.3.6.1.2.1.25.2",
    "1.3.6.1.2.1.25.3",
    "1.3.6.1.4.1.2021.4",
    "1.3.6.1.4.1.2021.10",
    "1.3.6.1.2.1.4.13",
    "1.3.6.1.2.1.4.23",
    "1.3.6.1.2.1.4.25",
    "1.3.6.1.2.1.4.26",
    "1.3.6.1.2.1.4.35",
    "1.3.6.1.2.1.4.37",
];

/// Links, addresses, neighbours and routes of every kind that the tables
/// tell apart.
const SITUATION: &str = "\
link add v0 type veth peer name v1
link add v2 type veth peer name v3
link set v0 address 02:00:00:00:00:10
link set v3 alias three
link set v0 up
link set v1 up
link set v2 up
link set v3 up
addr add 10.0.0.1/24 dev v0 brd +
addr add 10.0.0.2/24 dev v0
addr add 10.0.1.1/24 dev v2
addr add 10.9.9.1 peer 10.9.9.2/32 dev v2
addr add 2001:db8:1::1/64 dev v0 nodad
addr add 2001:db8:2::1/64 dev v2 nodad
addr add 2001:db8:3::1/64 dev v2 nodad preferred_lft 0 valid_lft 1000
neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 dev v0 nud permanent
neigh add 10.0.1.7 lladdr 02:00:00:00:01:07 dev v2 nud stale
neigh add 2001:db8:1::7 lladdr 02:00:00:00:00:07 dev v0 nud permanent
neigh add proxy 10.0.0.77 dev v0
route add default via 10.0.0.254
route add default via 10.0.1.254 metric 50
route add 10.1.0.0/16 via 10.0.0.254
route add 10.1.0.0/24 nexthop via 10.0.0.253 nexthop via 10.0.1.253 weight 2
route add 10.2.0.0/24 via 10.0.0.250 metric 10
route add 10.2.0.0/24 via 10.0.0.249 metric 20
route add 10.2.0.0/24 via 10.0.0.250 metric 30
route add blackhole 10.3.0.0/24
route add unreachable 10.3.1.0/24
route add throw 10.3.3.0/24
route add 10.4.0.0/24 dev v2
route add 10.4.0.0/24 dev v0 metric 5
route add 10.5.0.0/24 via 10.0.0.254 tos 0x10
route add 10.5.0.0/24 via 10.0.0.254
route add 10.6.0.0/24 via 10.0.0.254 proto ospf
route add 10.7.0.0/24 via 10.0.0.254 table 100
route add 2001:db8:100::/48 via 2001:db8:1::fe
route add 2001:db8:100::/48 via 2001:db8:2::fe metric 50
route add 2001:db8:101::/48 nexthop via 2001:db8:1::fe nexthop via 2001:db8:2::fe
route add default via 2001:db8:1::fe
route add blackhole 2001:db8:200::/48
route add 2001:db8:300::/48 via fe80::1 dev v0
route add 2001:db8:301::/48 dev v0
";

type Walk = BTreeMap<Vec<u32>, String>;

/// As `snmpbulkwalk -On -Ot -Ox` writes it.
fn text(value: Value<'_>) -> String {
    let dotted = |name: &[u32]| name.iter().map(|sub| format!(".{sub}")).collect::<String>();
    match value {
        Value::Integer(n) => format!("INTEGER: {n}"),
        Value::OctetString([]) => "\"\"".into(),
        Value::OctetString(octets) => {
            let hex: Vec<_> = octets.iter().map(|octet| format!("{octet:02X}")).collect();
            format!("Hex-STRING: {}", hex.join(" "))
        }
        Value::ObjectIdentifier(name) => format!("OID: {}", dotted(name)),
        Value::IpAddress([a, b, c, d]) => format!("IpAddress: {a}.{b}.{c}.{d}"),
        Value::Counter32(n) => format!("Counter32: {n}"),
        Value::Gauge32(n) => format!("Gauge32: {n}"),
        Value::Counter64(n) => format!("Counter64: {n}"),
        Value::TimeTicks(n) => n.to_string(),
        other => format!("{other:?}"),
    }
}

fn parsed(output: &str) -> Walk {
    let lines = output.lines().filter_map(|line| line.split_once(" = "));
    lines
        .filter(|(_, value)| !value.starts_with("No "))
        .map(|(name, value)| {
            let name: snmp::Oid = name.parse().unwrap();
            (name.to_vec(), value.trim().to_owned())
        })
        .collect()
}

fn theirs(netns: &Netns) -> Walk {
    let mut all = Walk::new();
    for root in ROOTS.iter().chain(&MORE_ROOTS) {
        let words = "-v2c -c public -m  -On -Ot -Ox -Cr25 -t 10 127.0.0.1:1161";
        let mut words: Vec<&str> = words.split(' ').collect();
        words.push(root);
        all.extend(parsed(&netns.run("snmpbulkwalk", &words).unwrap()));
    }
    all
}

fn ours(tables: &Tables) -> Walk {
    let (system, history, counters) = <(System, History, Counters)>::default();
    let health = Health::default();
    let moment = MibContext {
        tables,
        system: &system,
        engine: Engine {
            id: b"test",
            boots: 1,
            max_message_bytes: 1_472,
            sends_authentication_failures: false,
            counters: &counters,
        },
        history: &history,
        health: &health,
        beside: None,
        up_millis: 1_000,
        ahead_millis: 0,
        now: std::time::Instant::now(),
        sampled: SampleTimes::default(),
        reads: &Reads::default(),
        now_millis: 1_000,
    };
    let objects = Objects::new(moment, 254);
    let mut all = Walk::new();
    for root in ROOTS.iter().chain(&MORE_ROOTS) {
        let root: snmp::Oid = root.parse().unwrap();
        objects.walk(&root, &mut |name, value| {
            if !name.starts_with(&root) {
                return ControlFlow::Break(());
            }
            all.insert(name.to_vec(), text(value));
            ControlFlow::Continue(())
        });
    }
    all
}

/// Why the two differ at a name: what is below mib-2, and what each says.
fn explained(name: &[u32], theirs: Option<&str>, ours: Option<&str>) -> Option<&'static str> {
    if let Some(name) = name.strip_prefix(&[1, 3, 6, 1, 4, 1, 2021]) {
        return of_ucd(name, theirs, ours);
    }
    let name = name.strip_prefix(&[1, 3, 6, 1, 2, 1])?;
    let is_counter = |text: &str| text.starts_with("Counter");
    match (theirs, ours) {
        (Some(theirs), Some(ours)) => match name {
            _ if is_counter(theirs) && theirs.split(':').next() == ours.split(':').next() => {
                Some("it counts on between two questions")
            }
            [2, 2, 1, 5, 1] | [31, 1, 1, 1, 15, 1] => {
                Some("the loopback has no bandwidth, so 0 (RFC 2863); it makes up 10 Mb/s")
            }
            [2, 2, 1, 9, ..] | [4, 34, 1, 8 | 9, ..] | [4, 35, 1, 5, ..] => {
                Some("times since two different starts")
            }
            [4, 13, 0] => Some("the kernel's setting; it shows a counter of timeouts"),
            [4, 21, 1, 3, ..] => {
                Some("ipRouteMetric1: the metric; it shows whether there is a gateway")
            }
            [4, 21, 1, 9, ..] | [4, 24, 4, 1, 7, ..] | [4, 24, 7, 1, 9, ..] => {
                Some("the route's protocol; it shows local(2) for all")
            }
            [4, 21, 1, 8, ..] | [4, 24, 4, 1, 6, ..] | [4, 24, 7, 1, 8, ..] => {
                Some("a route that discards is reject, blackhole or other; it shows local")
            }
            [4, 24, 6, 0] => Some("each counts its own rows"),
            [4, 31, 1 | 3, 1, 47, ..] => Some("refreshed each second; it: each minute"),
            [4, 32, 1, 8 | 9, ..] => Some("seconds that are left, by a clock that stands here"),
            [4, 33, 0] => Some("nothing is ever set: 0 for a random number"),
            [4, 34, 1, 5, 1, 4, 10, 9, 9, 1] => Some("the prefix is the other end's"),
            [6, 20, 1, 4, ..] => Some("which process listens is not told"),
            [25, 1, 1 | 2 | 6, 0] => Some("times and processes go on"),
            [25, 1, 4, 0] => Some("a text with its end of line"),
            [25, 2, 3, 1, 2, ..] => Some("what lies in memory is a RAM disk"),
            [25, 2, 3, 1, 3, ..] if ours.starts_with(theirs) => {
                Some("its tool goes on in a line of its own")
            }
            [25, 2, 3, 1, 5 | 6, ..] => Some("memory and file systems fill and empty"),
            [25, 3, 2, 1, 3, ..] => Some("a link's name alone, a processor's without its vendor"),
            [31, 1, 1, 1, 17, ..] => Some("what is made in software has no plug"),
            [31, 1, 1, 1, 18, ..] => Some("the kernel's alias; it keeps its own"),
            _ => None,
        },
        (None, Some(_)) => match name {
            [4, 20, 1, 5, ..] => Some("ipAdEntReasmMaxSize, which it leaves out"),
            [4, 21, 1, 4 | 5 | 6 | 10 | 12, ..] => Some("columns that it leaves out"),
            [4, 24, 3 | 8, 0] | [4, 24, 4, 1, 8, ..] => Some("objects that it leaves out"),
            [
                4,
                24,
                4,
                1,
                _,
                10,
                1,
                0,
                0,
                255,
                255,
                255,
                0,
                0,
                10,
                0,
                1,
                253,
            ] => Some("the second of two equal-cost hops, which it loses"),
            [4, 24, 4, 1, _, 10, 5, 0, 0, _, _, _, _, 16, ..] => {
                Some("a route of another TOS, which it loses")
            }
            [4, 24, 7, 1, _, 1 | 2, ..] => Some("named by policy: compared by content below"),
            [4, 34, 1, _, 4, 20, 254, 128, ..] => {
                Some("link-local addresses have a zone (RFC 4001)")
            }
            [4, 32, 1, _, _, 1, 4, 10, 9, 9, 2, 32] => Some("the prefix is the other end's"),
            [4, 36, 1, _, 1] => Some("the loopback's zone, which it leaves out"),
            [5, 30, ..] => Some("a type that came meanwhile"),
            [6, 17 | 18, 0] => Some("64-bit counters, which it leaves out"),
            [10, 7, 2, 1, 2 | 8 | 9, ..] => Some("errors that it leaves out"),
            [25, 3, 3, 1, 2, ..] => Some("a load, for which it wants a minute first"),
            [4, 37, 1, _, 2, ..] => Some("a default router of IPv6, which it leaves out"),
            [31, 1, 1, 1, 14, ..] => Some("ifLinkUpDownTrapEnable, which it leaves out"),
            [31, 1, 2, ..] | [31, 1, 6, 0] => Some("ifStackTable, which it leaves out"),
            [31, 1, 4, ..] => Some("ifRcvAddressTable, which it leaves out"),
            _ => None,
        },
        (Some(theirs), None) => match name {
            [4, 22, 1, _, _, 10, 0, 0, 77] => Some("a proxy entry has no physical address"),
            [4, 24, 7, 1, _, 1 | 2, ..] => Some("named by policy: compared by content below"),
            [4, 34, 1, _, 1, 4, 10, 0, 0, 255] => Some("a broadcast address is none of a link's"),
            [4, 34, 1, _, 2, 16, 254, 128, ..] => {
                Some("link-local addresses have a zone (RFC 4001)")
            }
            [4, 32, 1, _, _, 1, 4, 10, 9, 9, 1, 32] => Some("the prefix is the other end's"),
            [5, 30, 1, _, _, _] if theirs == "Counter32: 0" => {
                Some("a type that neither came nor went")
            }
            [6, 13, ..] => Some("tcpConnTable, deprecated"),
            [10, 7, 2, 1, 7 | 10 | 13 | 16, ..] => Some("errors that the kernel lumps together"),
            [25, 1, 3 | 5, 0] => Some("the device of the kernel, and who is logged in"),
            [25, 2, 3, 1, ..] => Some("a file system that is there already"),
            [25, 3, 2 | 6 | 7 | 8, ..] => Some("disks, and a guess of a coprocessor"),
            [4, 34, 1, 11, ..] if theirs == "INTEGER: 4" => Some("nothing outlives a restart"),
            _ => None,
        },
        (None, None) => None,
    }
}

/// The same below UCD-SNMP-MIB.
fn of_ucd(name: &[u32], theirs: Option<&str>, ours: Option<&str>) -> Option<&'static str> {
    match (name, theirs, ours) {
        ([4, 6 | 11 | 13..=15 | 18..=27, 0], Some(_), Some(_)) => Some("memory fills and empties"),
        ([4, 12 | 23 | 100 | 101, 0], Some(_), None) => Some("its alarm for little swap"),
        ([10, 1, 3 | 5, _], Some(_), Some(_)) => Some("a load goes up and down"),
        ([10, 1, 4 | 100 | 101, _], Some(_), Some(_)) => Some("its alarm for a load"),
        ([10, 1, 6, _], Some(_), None) => Some("a floating point number"),
        _ => None,
    }
}

/// The rows of inetCidrRouteTable by what a route is: destination and
/// length, link, metric.
fn routes_of(walk: &Walk) -> Vec<(Vec<u32>, String, String)> {
    let column = |number: u32| [1, 3, 6, 1, 2, 1, 4, 24, 7, 1, number];
    let rows = walk.iter().filter_map(|(name, link)| {
        let index = name.strip_prefix(&column(7))?;
        let metric = walk.get(&[column(12).as_slice(), index].concat())?;
        let destination = index.get(..3 + index[1] as usize)?;
        Some((destination.to_vec(), link.clone(), metric.clone()))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

/// Whether a route of theirs is of the kernel's local table: an own address,
/// or multicast.
fn is_of_local_table(destination: &[u32], own: &[Vec<u32>]) -> bool {
    destination.starts_with(&[2, 16, 255, 0]) || own.contains(&destination.to_vec())
}

fn same_routes(their_walk: &Walk, our_walk: &Walk, tables: &Tables) {
    let own: Vec<Vec<u32>> = tables
        .addresses
        .iter()
        .filter_map(|row| match row.local {
            std::net::IpAddr::V6(v6) => {
                let octets = v6.octets().map(u32::from);
                Some([&[2, 16], octets.as_slice(), &[128]].concat())
            }
            std::net::IpAddr::V4(_) => None,
        })
        .collect();
    let our_routes = routes_of(our_walk);
    for route in routes_of(their_walk) {
        let is_there = our_routes.binary_search(&route).is_ok();
        assert!(
            is_there || is_of_local_table(&route.0, &own),
            "{route:?} is not ours"
        );
    }
}

/// A namespace with all that, `snmpd` in it, and a mirror of it with a
/// fresh sample.
struct Setting {
    netns: Netns,
    mirror: Mirror,
    _snmpd: lab::Child,
    _directory: tempfile::TempDir,
}

fn setting() -> Option<Setting> {
    let netns = skip::unless(Netns::new("snmpd"))?;
    netns.ip_batch(SITUATION).unwrap();
    routes::build(&netns, Family::V4, 1_000).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("conf"), "rocommunity public\n").unwrap();
    let home = format!("SNMP_PERSISTENT_DIR={}", path("state"));
    let (conf, log) = (path("conf"), path("log"));
    let words = [
        &home,
        "snmpd",
        "-f",
        "-C",
        "-c",
        &conf,
        "-Lf",
        &log,
        "udp:127.0.0.1:1161",
    ];
    let snmpd = netns.spawn("env", &words).unwrap();
    let mirror = Mirror::start(Namespace::open(netns.name()).unwrap(), Options::default()).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    let ask = [
        "-v2c",
        "-c",
        "public",
        "-m",
        "",
        "-t",
        "1",
        "127.0.0.1:1161",
        "1.3.6.1.2.1.1.3.0",
    ];
    wait_until(PATIENCE, "snmpd to answer", || {
        netns.run("snmpget", &ask).ok()
    })
    .unwrap();
    Some(Setting {
        netns,
        mirror,
        _snmpd: snmpd,
        _directory: directory,
    })
}

/// Our objects once nothing is tentative and the samples are there, each
/// taken since then.
fn settled(mirror: &Mirror, since_millis: u64) -> std::sync::Arc<Tables> {
    wait_until(
        PATIENCE,
        "samples, and addresses that are no longer tested",
        || {
            mirror.want(table::Sampled::Links);
            mirror.want(table::Sampled::Addresses);
            let beside = [Sampled::Sockets, Sampled::Machine, Sampled::IpInterfaces];
            beside.iter().for_each(|what| mirror.want(*what));
            let tables = mirror.reader().snapshot();
            let tentative = tables.addresses.iter().any(|row| row.flags & 0x40 != 0);
            let is_new = |at: Option<u64>| at.is_some_and(|at| at > since_millis);
            let sampled = is_new(tables.ip_counters.taken_at_millis)
                && beside
                    .iter()
                    .all(|what| is_new(tables.sampled_at_millis(*what)));
            (sampled && !tentative).then_some(tables)
        },
    )
    .unwrap()
}

#[test]
fn every_difference_from_snmpd_is_explained() {
    let Some(setting) = setting() else { return };
    settled(&setting.mirror, 0);
    let their_walk = theirs(&setting.netns);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let tables = settled(&setting.mirror, now.as_millis() as u64);
    let our_walk = ours(&tables);
    let names: std::collections::BTreeSet<_> = their_walk.keys().chain(our_walk.keys()).collect();
    let (mut same, mut reasons, mut unexplained) = (0, BTreeMap::new(), Vec::new());
    for name in names {
        let (theirs, ours) = (their_walk.get(name), our_walk.get(name));
        if theirs == ours {
            same += 1;
            continue;
        }
        match explained(name, theirs.map(String::as_str), ours.map(String::as_str)) {
            Some(reason) => *reasons.entry(reason).or_insert(0) += 1,
            None => unexplained.push((name, theirs, ours)),
        }
    }
    let list: Vec<_> = unexplained.iter().map(|one| format!("{one:?}")).collect();
    assert!(
        unexplained.is_empty(),
        "{} of them:\n{}",
        list.len(),
        list.join("\n")
    );
    // The thousand routes of a table without surprises have the same names
    // and values in each of the columns but the protocol's.
    assert!(same > 25_000, "{same} equal, {reasons:?}");
    same_routes(&their_walk, &our_walk, &tables);
    drop(setting);
}
