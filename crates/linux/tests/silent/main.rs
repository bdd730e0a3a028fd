//! What the kernel does without saying so, against the kernel: after each
//! change the mirror is set beside a fresh listing of everything, and any
//! row that differs is drift.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod stations;

use std::process::Command;
use std::time::{Duration, Instant};

use fingerpost_linux::{Mirror, Namespace, Options, Phase, Status};
use lab::{Netns, skip, wait_until};
use table::row::link::oper;
use table::row::route::hop_flag;
use table::{Sampled, Source as _, Tables};

const PATIENCE: Duration = Duration::from_secs(10);
/// How often something is tried that a scan may disturb.
const TRIES: usize = 5;

struct Bench {
    netns: Netns,
    mirror: Mirror,
}

fn mirror(netns: &Netns) -> Mirror {
    let mirror = Mirror::start(Namespace::open(netns.name()).unwrap(), Options::default());
    let mirror = mirror.unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    mirror
}

impl Bench {
    fn new(tag: &str) -> Option<Self> {
        let netns = skip::unless(Netns::new(tag))?;
        let mirror = mirror(&netns);
        Some(Self { netns, mirror })
    }

    /// Runs `ip` lines, one after the other, each followed by a comparison.
    fn each(&self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            self.netns.ip(&words).unwrap();
            self.compare(line);
        }
    }

    /// Runs `ip` lines as fast as can be, then compares.
    fn all(&self, lines: &str) {
        self.netns.ip_batch(lines).unwrap();
        self.compare(lines);
    }

    fn compare(&self, after: &str) {
        let status = self.scan();
        assert_eq!(status.drift, 0, "after `{after}`: {status:?}");
        assert_eq!(status.malformed, 0, "after `{after}`: {status:?}");
    }

    fn scan(&self) -> Status {
        let before = self.mirror.status().scans;
        self.mirror.scan_now();
        wait_until(PATIENCE, "a scan", || {
            let status = self.mirror.status();
            (status.scans > before).then_some(status)
        })
        .unwrap()
    }

    fn tables(&self) -> std::sync::Arc<Tables> {
        self.mirror.reader().snapshot()
    }

    /// Whether packets have a way, which both say.
    fn has_way(&self, to: &str) -> bool {
        let tables = self.tables();
        let packet = table::Packet::to(to.parse().unwrap());
        let kernel = self.netns.ip(&["route", "get", to]);
        let ours = tables.route_of(&packet);
        assert_eq!(ours.is_ok(), kernel.is_ok(), "{ours:?} {kernel:?}");
        ours.is_ok()
    }

    fn has_route(&self, prefix: &str) -> bool {
        let prefix = prefix.parse().unwrap();
        self.tables().routes.exact(254, prefix).next().is_some()
    }
}

const PAIRS: &str = "
    link add va type veth peer name pva
    link add vb type veth peer name pvb
    link set pva up
    link set pvb up
    link set va up
    link set vb up
    addr add 10.1.0.1/24 dev va
    addr add 10.2.0.1/24 dev vb
";

#[test]
fn a_link_going_down_takes_its_v4_routes_along() {
    let Some(bench) = Bench::new("down") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "route add 192.0.2.0/24 via 10.1.0.2
         route add 198.51.100.0/24 nexthop via 10.1.0.2 nexthop via 10.2.0.2
         route add table 100 203.0.113.0/24 via 10.1.0.2
         route add local 192.0.2.200/32 dev va table local
         link set va down",
    );
    assert!(!bench.has_route("192.0.2.0/24"));
    assert!(bench.has_route("198.51.100.0/24"));
    bench.each("link set vb down");
    assert!(!bench.has_route("198.51.100.0/24"));
    bench.each("link set va up\nlink set vb up\nlink del va\nlink del vb");
}

#[test]
fn the_last_address_takes_all_v4_routes_of_its_link_along() {
    let Some(bench) = Bench::new("addr") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "addr add 10.1.1.1/24 dev va
         route add 192.0.2.0/24 dev va
         route add 198.51.100.0/24 nexthop dev va nexthop via 10.2.0.2
         addr del 10.1.0.1/24 dev va
         addr del 10.1.1.1/24 dev va",
    );
    assert!(!bench.has_route("192.0.2.0/24"));
    bench.each(
        "addr add 10.1.0.1/24 dev va
         addr flush dev va
         addr flush dev vb",
    );
}

#[test]
fn a_hop_that_died_with_its_address_counts_as_dead_when_the_other_goes() {
    let Some(bench) = Bench::new("dead") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "route add 198.51.100.0/24 nexthop dev va nexthop via 10.2.0.2
         addr del 10.1.0.1/24 dev va
         link set pva down
         link set pva up
         link set vb down
         link set vb up",
    );
    assert!(!bench.has_route("198.51.100.0/24"));
}

#[test]
fn routes_that_prefer_a_lost_source_go_or_lose_the_preference() {
    let Some(bench) = Bench::new("src") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "addr add 10.1.5.5/32 dev va
         route add 192.0.2.0/24 via 10.1.0.2 src 10.1.5.5
         route add 192.0.2.0/24 via 10.1.0.2 src 10.1.5.5 table 77
         addr del 10.1.5.5/32 dev va",
    );
    assert!(!bench.has_route("192.0.2.0/24"));
    bench.each(
        "addr add 2001:db8::1/64 dev va nodad
         addr add 2001:db8::2/64 dev va nodad
         -6 route add 2001:db8:1::/48 via 2001:db8::9 src 2001:db8::2
         addr del 2001:db8::2/64 dev va",
    );
}

#[test]
fn next_hop_objects_take_routes_and_groups_along() {
    let Some(bench) = Bench::new("nh") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "addr add 2001:db8::1/64 dev va nodad
         nexthop add id 1 via 10.1.0.2 dev va
         nexthop add id 2 via 10.2.0.2 dev vb
         nexthop add id 3 via 10.2.0.3 dev vb
         nexthop add id 6 via 2001:db8::2 dev va
         nexthop add id 10 group 1/2,3
         nexthop add id 11 group 1/2/3
         nexthop add id 12 group 1
         nexthop add id 9 blackhole
         route add 192.0.2.0/24 nhid 1
         route add 198.51.100.0/24 nhid 10
         route add 203.0.113.0/24 nhid 11
         route add 203.0.114.0/24 nhid 12
         route add 203.0.115.0/24 nhid 9
         route add 203.0.116.0/24 nhid 6
         -6 route add 2001:db8:2::/48 nhid 6
         nexthop replace id 1 via 10.1.0.77 dev va
         nexthop replace id 11 group 1/3
         nexthop del id 3
         nexthop del id 6",
    );
    assert!(!bench.has_route("203.0.116.0/24") && bench.has_route("198.51.100.0/24"));
    bench.each("link set va down");
    assert!(!bench.has_route("192.0.2.0/24") && !bench.has_route("203.0.114.0/24"));
    bench.each("link set pvb down\nlink set pvb up\nlink del vb\nnexthop flush");
}

#[test]
fn v4_routes_of_one_place_keep_their_order() {
    let Some(bench) = Bench::new("order") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "route add 192.0.2.0/24 via 10.1.0.2
         route append 192.0.2.0/24 via 10.1.0.3
         route prepend 192.0.2.0/24 via 10.1.0.4
         route append 192.0.2.0/24 via 10.2.0.3
         route replace 192.0.2.0/24 via 10.2.0.9
         route add 192.0.2.0/24 via 10.2.0.9 metric 5
         route replace 192.0.2.0/24 via 10.2.0.10 metric 5
         route change 192.0.2.0/24 via 10.2.0.11 metric 5
         route add 192.0.2.0/24 via 10.2.0.9 tos 4
         route del 192.0.2.0/24 via 10.1.0.3
         route add blackhole 192.0.3.0/24
         route add unreachable 192.0.4.0/24 metric 9
         route replace 192.0.3.0/24 via 10.1.0.2 mtu 1400
         route flush 192.0.2.0/24",
    );
}

#[test]
fn v6_routes_gain_and_lose_paths() {
    let Some(bench) = Bench::new("six") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "addr add 2001:db8:1::1/64 dev va nodad
         addr add 2001:db8:2::1/64 dev vb nodad
         -6 route add 2001:db8:9::/48 via 2001:db8:1::2
         -6 route append 2001:db8:9::/48 via 2001:db8:2::2
         -6 route append 2001:db8:9::/48 via 2001:db8:2::3
         -6 route del 2001:db8:9::/48 via 2001:db8:2::2
         -6 route replace 2001:db8:9::/48 via 2001:db8:1::7
         -6 route add 2001:db8:a::/48 nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2 weight 3
         -6 route replace 2001:db8:a::/48 nexthop via 2001:db8:1::3 nexthop via 2001:db8:2::3
         -6 route append 2001:db8:a::/48 dev va metric 1024
         -6 route append 2001:db8:a::/48 dev vb metric 1024
         -6 route replace 2001:db8:a::/48 dev vb metric 1024
         -6 route add unreachable 2001:db8:b::/48
         -6 route add blackhole default metric 4000
         -6 route add 2001:db8:c::/48 from 2001:db8:1::/64 via 2001:db8:1::2
         -6 route add 2001:db8:d::/48 via 2001:db8:1::2 expires 300
         -6 route change 2001:db8:d::/48 via 2001:db8:1::3
         -6 route add 2001:db8:e::/48 dev va metric 1024
         -6 route append 2001:db8:e::/48 dev vb metric 1024 mtu 1400
         -6 route replace 2001:db8:e::/48 dev vb metric 1024
         link set va down
         link set va up
         link set vb down
         -6 route flush table main",
    );
}

/// Each path has its own metrics, protocol, source and preference, and the
/// route shows the first one's.
#[test]
fn paths_of_a_v6_route_say_what_each_was_made_with() {
    let Some(bench) = Bench::new("paths") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "addr add 2001:db8:1::1/64 dev va nodad
         addr add 2001:db8:2::1/64 dev vb nodad
         -6 route add 2001:db8:9::/48 via 2001:db8:1::2 mtu 1400
         -6 route append 2001:db8:9::/48 via 2001:db8:1::3
         -6 route append 2001:db8:9::/48 via 2001:db8:2::2 proto 99 mtu 1300
         -6 route append 2001:db8:9::/48 via 2001:db8:2::3 pref high
         -6 route append 2001:db8:9::/48 via 2001:db8:2::4 src 2001:db8:2::1
         -6 route del 2001:db8:9::/48 via 2001:db8:1::2
         -6 route del 2001:db8:9::/48 via 2001:db8:1::3
         -6 route del 2001:db8:9::/48 via 2001:db8:2::2
         -6 route del 2001:db8:9::/48 via 2001:db8:2::3
         -6 route append 2001:db8:9::/48 via 2001:db8:2::5 proto 98
         -6 route append 2001:db8:9::/48 via 2001:db8:1::5 proto 97
         addr del 2001:db8:2::1/64 dev vb
         -6 route del 2001:db8:9::/48 proto 98
         -6 route add 2001:db8:a::/48 via 2001:db8:1::2 mtu 1400
         -6 route append 2001:db8:a::/48 via 2001:db8:1::3 proto 99
         -6 route replace 2001:db8:a::/48 via 2001:db8:1::4
         -6 route append 2001:db8:a::/48 via 2001:db8:1::3
         -6 route del 2001:db8:a::/48 via 2001:db8:1::4
         -6 route add 2001:db8:b::/48 via fe80::2 dev va mtu 1400
         -6 route append 2001:db8:b::/48 via fe80::3 dev vb proto 99
         link set va mtu 1000
         link set va mtu 1500
         -6 route append 2001:db8:b::/48 via fe80::4 dev vb proto 98
         link del va
         -6 route del 2001:db8:b::/48 via fe80::3 dev vb",
    );
}

/// An IPv6 route's own MTU follows its link's, unless it is locked.
#[test]
fn v6_routes_follow_the_mtu_of_their_link() {
    let Some(bench) = Bench::new("mtu") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "-6 route add 2001:db8:1::/48 via fe80::2 dev va mtu 1400
         -6 route add 2001:db8:2::/48 via fe80::2 dev va mtu lock 1400
         -6 route add 2001:db8:3::/48 via fe80::2 dev va
         -6 route add 2001:db8:4::/48 dev va mtu 1290 hoplimit 7
         -6 route add 2001:db8:5::/48 via fe80::2 dev vb mtu 1400
         -6 route append 2001:db8:5::/48 via fe80::2 dev va mtu 1400
         -6 nexthop add id 7 via fe80::2 dev va
         -6 route add 2001:db8:6::/48 nhid 7 mtu 1400
         route add 192.0.2.0/24 via 10.1.0.2 mtu 1400
         link set va mtu 1300
         link set va mtu 1350
         link set va mtu 9000
         link set va mtu 1280
         link set vb mtu 1390
         -6 route del 2001:db8:5::/48 via fe80::2 dev vb
         link set va mtu 1000
         link set va mtu 1500",
    );
}

#[test]
fn carriers_come_and_go() {
    let Some(bench) = Bench::new("carrier") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "route add 192.0.2.0/24 via 10.1.0.2
         route add 198.51.100.0/24 nexthop via 10.1.0.2 nexthop via 10.2.0.2
         addr add 2001:db8::1/64 dev va nodad
         -6 route add 2001:db8:2::/48 via 2001:db8::2
         link set pva down
         link set pva up
         link del pva",
    );
}

#[test]
fn v6_routes_of_a_link_that_goes_down_go_without_a_word() {
    let Some(bench) = Bench::new("skip") else {
        return;
    };
    let at = "net/ipv6/route/skip_notify_on_dev_down";
    bench.netns.sysctl(at, "1").unwrap();
    bench.all(PAIRS);
    bench.each(
        "addr add 2001:db8:1::1/64 dev va nodad
         addr add 2001:db8:2::1/64 dev vb nodad
         -6 route add 2001:db8:8::/48 via 2001:db8:1::2
         -6 route add 2001:db8:9::/48 nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2
         -6 route add unreachable 2001:db8:a::/48
         link set va down",
    );
    assert!(!bench.has_route("2001:db8:8::/48") && bench.has_route("2001:db8:9::/48"));
    bench.each(
        "link set va up
         link set vb mtu 1200
         link set vb mtu 1500
         link set vb down
         link set vb up
         link set lo down
         link set lo up
         link set va down",
    );
}

const V6_PATHS: &str = "
    addr add 2001:db8:1::1/64 dev va nodad
    addr add 2001:db8:2::1/64 dev vb nodad
    -6 route add 2001:db8:8::/48 via 2001:db8:1::2
    -6 route add 2001:db8:9::/48 nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2
    -6 route add 2001:db8:a::/48 dev va metric 5
    -6 route append 2001:db8:a::/48 dev vb metric 5
    -6 route append 2001:db8:a::/48 via 2001:db8:1::2 metric 5
    -6 route append 2001:db8:a::/48 via 2001:db8:2::2 metric 5
    -6 route add 2001:db8:b::/48 via 2001:db8:1::2 mtu 1400
    -6 route append 2001:db8:b::/48 via 2001:db8:2::2 mtu 1300
    nexthop add id 1 via 2001:db8:1::5 dev va
    -6 route add 2001:db8:c::/48 nhid 1
    route add 192.0.2.0/24 nexthop via inet6 2001:db8:1::2 dev va nexthop via 10.1.0.3
";

impl Bench {
    fn disable_ipv6(&self, link: &str, value: &str) {
        let at = format!("net/ipv6/conf/{link}/disable_ipv6");
        self.netns.sysctl(&at, value).unwrap();
        self.compare(&format!("{at} = {value}"));
    }

    /// Switches IPv6 on a link, and waits until these hops of a route are
    /// dead. No scan may help: where one came between, it is done again.
    fn switch_ipv6(&self, link: &str, is_on: bool, prefix: &str, dead: &[&str]) {
        let at = format!("net/ipv6/conf/{link}/disable_ipv6");
        let before = self.dead_hops(prefix);
        let switch = |is_on: bool, dead: &[&str]| {
            let value = if is_on { "0" } else { "1" };
            self.netns.sysctl(&at, value).unwrap();
            let seen = || (self.dead_hops(prefix) == dead).then_some(());
            wait_until(PATIENCE, "hops to follow", seen).unwrap();
        };
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let unhelped = (0..TRIES).any(|_| {
            let scanned = self.mirror.status().last_scan_millis;
            switch(is_on, dead);
            let is_unhelped = self.mirror.status().last_scan_millis == scanned;
            if !is_unhelped {
                switch(!is_on, &before);
            }
            is_unhelped
        });
        assert!(unhelped, "no switch without a scan");
        self.compare(&at);
    }

    /// The links of the hops of a route that are marked dead.
    fn dead_hops(&self, prefix: &str) -> Vec<String> {
        let tables = self.tables();
        let mut routes = tables.routes.exact(254, prefix.parse().unwrap());
        let route = routes.next().unwrap();
        let hops = route.body.next_hops.as_slice().iter();
        let dead = hops.filter(|hop| hop.flags & hop_flag::DEAD != 0);
        let name = |link| tables.links.get(link).unwrap().name.to_string();
        dead.map(|hop| name(hop.link)).collect()
    }
}

/// Hops over a link whose IPv6 is switched off die without a word, in routes
/// that have others, and live again when it is switched on.
#[test]
fn ipv6_is_switched_off_and_on() {
    for is_announced in [true, false] {
        let Some(bench) = Bench::new("switch") else {
            return;
        };
        let at = "net/ipv6/route/skip_notify_on_dev_down";
        let value = if is_announced { "0" } else { "1" };
        bench.netns.sysctl(at, value).unwrap();
        bench.all(PAIRS);
        bench.each(V6_PATHS);
        bench.switch_ipv6("va", false, "2001:db8:9::/48", &["va"]);
        assert!(!bench.has_route("2001:db8:8::/48") && bench.has_route("2001:db8:c::/48"));
        // The link comes back, its IPv6 does not.
        bench.each("link set va down\nlink set va up");
        assert_eq!(bench.dead_hops("2001:db8:9::/48"), ["va"]);
        bench.each("-6 route append 2001:db8:9::/48 via 2001:db8:2::3");
        bench.switch_ipv6("va", true, "2001:db8:9::/48", &[]);
        bench.switch_ipv6("va", false, "2001:db8:9::/48", &["va"]);
        bench.each("-6 route del 2001:db8:b::/48 via 2001:db8:2::2");
        assert_eq!(bench.dead_hops("2001:db8:b::/48"), ["va"]);
        bench.disable_ipv6("vb", "1");
        assert!(!bench.has_route("2001:db8:9::/48") && bench.has_route("2001:db8:b::/48"));
        bench.disable_ipv6("va", "0");
        assert!(bench.dead_hops("2001:db8:b::/48").is_empty());
        bench.disable_ipv6("vb", "0");
        bench.disable_ipv6("all", "1");
        bench.disable_ipv6("all", "0");
    }
}

/// Both between two of the mirror's listings, and nothing said what went.
#[test]
fn ipv6_is_switched_off_and_on_at_once() {
    let Some(bench) = Bench::new("at-once") else {
        return;
    };
    let at = "net/ipv6/route/skip_notify_on_dev_down";
    bench.netns.sysctl(at, "1").unwrap();
    bench.all(PAIRS);
    bench.each(V6_PATHS);
    let scans = bench.mirror.status().scans;
    for value in ["1", "0"] {
        bench
            .netns
            .sysctl("net/ipv6/conf/va/disable_ipv6", value)
            .unwrap();
    }
    let gone = || (!bench.has_route("2001:db8:8::/48")).then_some(());
    wait_until(PATIENCE, "the routes to go", gone).unwrap();
    assert_eq!(bench.mirror.status().scans, scans);
    bench.compare("off and on");
}

/// Who asks for a scan gets it, also where that finds what needs another look,
/// and has everything listed anew before.
#[test]
fn a_scan_that_is_asked_for_is_made_although_all_is_listed_anew() {
    let Some(bench) = Bench::new("asked") else {
        return;
    };
    let at = "net/ipv6/route/skip_notify_on_dev_down";
    bench.netns.sysctl(at, "1").unwrap();
    bench.all(PAIRS);
    for _ in 0..TRIES {
        bench.each(
            "addr add 2001:db8:1::1/64 dev va nodad
             -6 route add 2001:db8:8::/48 via 2001:db8:1::2",
        );
        bench.disable_ipv6("va", "1");
        bench.disable_ipv6("va", "0");
    }
}

/// A path that died among others outlives them where they go one by one. When
/// it died is not told, so the mirror may hear of it after the others.
#[test]
fn a_path_that_is_dead_outlives_those_that_go() {
    let Some(bench) = Bench::new("outlives") else {
        return;
    };
    let at = "net/ipv6/route/skip_notify_on_dev_down";
    bench.netns.sysctl(at, "1").unwrap();
    bench.all(PAIRS);
    bench.each(
        "-6 addr add 2001:db8:1::1/64 dev va nodad
         -6 addr add 2001:db8:2::1/64 dev vb nodad
         -6 route add 2001:db8:9::/48 nexthop via fe80::4 dev va nexthop via fe80::5 dev vb",
    );
    bench
        .netns
        .sysctl("net/ipv6/conf/va/disable_ipv6", "1")
        .unwrap();
    // Too small for IPv6: its paths go, the route stays.
    bench
        .netns
        .ip(&["link", "set", "vb", "mtu", "1200"])
        .unwrap();
    let has_one = || {
        let tables = bench.tables();
        let prefix = "2001:db8:9::/48".parse().unwrap();
        let is_off = tables.links.by_name("va")?.v6_disabled;
        let route = tables.routes.exact(254, prefix).next()?;
        (is_off && route.body.next_hops.as_slice().len() == 1).then_some(())
    };
    wait_until(PATIENCE, "the dead path alone", has_one).unwrap();
    bench.compare("the others have gone");
}

/// A route shows the only member of its group as its own.
#[test]
fn groups_of_one_member() {
    let Some(bench) = Bench::new("only") else {
        return;
    };
    bench.all(PAIRS);
    // The routes of an object that changes are not told.
    let at = "net/ipv4/nexthop_compat_mode";
    bench.each(
        "nexthop add id 1 via fe80::2 dev va
         nexthop add id 2 via fe80::3 dev vb
         nexthop add id 10 group 1/2
         nexthop add id 3 via 10.1.0.2 dev va
         nexthop add id 11 group 3
         -6 route add 2001:db8:d::/48 nhid 10
         route add 192.0.2.0/24 nhid 11",
    );
    bench.netns.sysctl(at, "0").unwrap();
    bench
        .netns
        .ip_batch("nexthop replace id 10 group 1\nnexthop replace id 3 via 10.1.0.3 dev va\n")
        .unwrap();
    bench.netns.sysctl(at, "1").unwrap();
    bench.compare("changed in silence");
    // IPv6 has a list of one, IPv4 a plain hop.
    let is_list = |prefix: &str| {
        let tables = bench.tables();
        let prefix = prefix.parse().unwrap();
        let route = tables.routes.exact(254, prefix).next().unwrap();
        matches!(route.body.next_hops, table::NextHops::Many(_))
    };
    assert!(is_list("2001:db8:d::/48") && !is_list("192.0.2.0/24"));
}

/// A route by an object that becomes a blackhole is shown as one, over the
/// loopback, and is none when that is over.
#[test]
fn an_object_that_becomes_a_blackhole() {
    let Some(bench) = Bench::new("blackhole") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "nexthop add id 1 via 10.1.0.2 dev va
         nexthop add id 2 via fe80::2 dev va
         nexthop add id 10 group 1
         route add 192.0.2.0/24 nhid 1
         route add 198.51.100.0/24 nhid 10
         -6 route add 2001:db8:d::/48 nhid 2",
    );
    let at = "net/ipv4/nexthop_compat_mode";
    for [v4, v6] in [
        ["blackhole", "blackhole"],
        ["via 10.1.0.3 dev va", "via fe80::3 dev va"],
    ] {
        bench.netns.sysctl(at, "0").unwrap();
        for line in [
            format!("-4 nexthop replace id 1 {v4}"),
            format!("-6 nexthop replace id 2 {v6}"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            bench.netns.ip(&words).unwrap();
        }
        bench.netns.sysctl(at, "1").unwrap();
        bench.compare(v4);
    }
}

/// Who made a neighbour's entry is set in silence, and no drift.
#[test]
fn a_neighbour_s_maker_changes_without_a_word() {
    let Some(bench) = Bench::new("maker") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev va nud permanent
         neigh replace 10.1.0.9 lladdr 02:00:00:00:00:09 dev va protocol bgp",
    );
    let makers = bench.tables();
    let mut makers = makers.neighbours.iter().map(|row| row.protocol);
    assert!(makers.any(|protocol| protocol != 0));
}

/// How long the route to a prefix lasts follows what is done to the addresses
/// of that prefix, in silence: no drift, and a scan has it right.
#[test]
fn the_route_to_a_prefix_expires_as_the_kernel_likes() {
    let Some(bench) = Bench::new("prefix") else {
        return;
    };
    bench.all(PAIRS);
    let expires = || {
        let tables = bench.tables();
        let prefix = "2001:db8:77::/64".parse().unwrap();
        let mut routes = tables.routes.exact(254, prefix);
        routes.next().unwrap().body.expires_at_millis.is_some()
    };
    bench.each("addr add 2001:db8:77::1/64 dev va nodad valid_lft 3000 preferred_lft 2000");
    assert!(expires());
    bench.each("addr add 2001:db8:77::2/64 dev va nodad");
    assert!(!expires());
    bench.each("addr del 2001:db8:77::2/64 dev va");
    assert!(expires());
}

#[test]
fn a_link_says_whether_a_protocol_holds_it_down() {
    let Some(bench) = Bench::new("held") else {
        return;
    };
    bench.all(PAIRS);
    bench.each("link add link va mv type macvlan\nlink set mv up");
    let is_held = || {
        bench
            .tables()
            .links
            .by_name("mv")
            .is_some_and(|it| it.proto_down)
    };
    bench.each("link set mv protodown on");
    assert!(is_held());
    bench.each("link set mv protodown off");
    assert!(!is_held());
    // Of one that is down it is not announced.
    bench.each("link set mv down\nlink set mv protodown on");
    assert!(is_held());
}

/// By its file a link's group changes without an event (`group_store`).
#[test]
fn a_group_that_is_set_by_its_file_is_no_drift() {
    let Some(bench) = Bench::new("group") else {
        return;
    };
    bench.all(PAIRS);
    // `ip netns exec` mounts the namespace's own /sys.
    let set = "echo 7 > /sys/class/net/va/netdev_group";
    let name = bench.netns.name();
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", name, "sh", "-c", set]);
    assert!(inside.status().unwrap().success());
    bench.compare(set);
    let tables = bench.tables();
    assert_eq!(tables.links.by_name("va").unwrap().group, 7);
}

/// What somebody deletes of a link's own routes switches nothing off.
#[test]
fn a_deleted_multicast_route_is_no_switch() {
    let Some(bench) = Bench::new("multicast") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(V6_PATHS);
    bench.each("-6 route del multicast ff00::/8 dev va table local");
    assert!(bench.dead_hops("2001:db8:9::/48").is_empty());
    bench.each("addr flush dev va\nlink set va down\nlink set va up");
}

/// Hops that died with their link are dead until it has a carrier.
#[test]
fn ipv6_hops_wait_for_a_carrier() {
    let Some(bench) = Bench::new("ready") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(V6_PATHS);
    bench.netns.ip(&["link", "set", "va", "down"]).unwrap();
    // That is no switch. Asked before a scan tells.
    let is_off = |link: &str| bench.tables().links.by_name(link).unwrap().v6_disabled;
    wait_until(PATIENCE, "the link's IPv6 routes to go", || {
        let tables = bench.tables();
        let link = tables.links.by_name("va").unwrap();
        let own = tables.routes.over_link(link.index);
        let mut own = own.filter(|route| route.table == 255);
        let is_gone = own.all(|route| route.prefix.addr().is_ipv4());
        (!link.is_up() && is_gone).then_some(())
    })
    .unwrap();
    assert!(!is_off("va"));
    bench.compare("va down");
    bench.each("link set pva down\nlink set va up");
    assert!(!is_off("va"));
    assert_eq!(bench.dead_hops("2001:db8:9::/48"), ["va"]);
    // An address brings the link's multicast route, and no carrier.
    bench.each("addr add 2001:db8:77::1/64 dev va nodad");
    assert_eq!(bench.dead_hops("2001:db8:9::/48"), ["va"]);
    bench.each("link set pva up");
    assert!(bench.dead_hops("2001:db8:9::/48").is_empty());
    bench.each("link set pva down\nlink set pva up");
    assert!(bench.dead_hops("2001:db8:9::/48").is_empty());
}

/// A hop that is dead when the carrier goes is not marked, and counts when it
/// is alive again.
#[test]
fn a_dead_hop_misses_that_the_carrier_goes() {
    let Some(bench) = Bench::new("missed") else {
        return;
    };
    bench.all(PAIRS);
    let at = "net/ipv4/conf/va/ignore_routes_with_linkdown";
    bench.netns.sysctl(at, "1").unwrap();
    bench.each(
        "addr add 10.3.0.1/24 dev va
         route add 192.0.2.0/24 nexthop via 10.3.0.2 nexthop via 10.2.0.2",
    );
    let dead = || {
        let shown = bench.netns.ip(&["route", "show", "192.0.2.0/24"]).unwrap();
        let prefix = "192.0.2.0/24".parse().unwrap();
        let tables = bench.tables();
        let route = tables.routes.exact(254, prefix).next().unwrap();
        let hops = route.body.next_hops.as_slice().iter();
        let ours = hops.filter(|hop| !tables.is_usable(hop, table::AF_INET));
        assert_eq!(ours.count(), shown.matches("dead").count(), "{shown}");
        shown.matches("dead").count()
    };
    bench.each("link set pva down");
    assert_eq!(dead(), 1);
    bench.each("link set pva up");
    assert_eq!(dead(), 0);
    bench.netns.ip(&["addr", "flush", "dev", "va"]).unwrap();
    bench.compare("no address");
    assert_eq!(dead(), 1);
    bench.each("link set pva down\nlink set pva up\nlink set pva down");
    bench.each("addr add 10.3.0.1/24 dev va");
    assert_eq!(dead(), 0);
}

/// The kernel does not mark an IPv4 hop by an IPv6 gateway that it is given
/// without a carrier, and uses it, until something happens to the link.
#[test]
fn a_hop_by_an_ipv6_gateway_is_marked_when_its_link_changes() {
    let Some(bench) = Bench::new("unmarked") else {
        return;
    };
    bench.all(PAIRS);
    bench.each("addr add 2001:db8:1::1/64 dev va nodad\nlink set pva down");
    let at = "net/ipv4/conf/va/ignore_routes_with_linkdown";
    bench.netns.sysctl(at, "1").unwrap();
    wait_until(PATIENCE, "a link without a carrier", || {
        let tables = bench.tables();
        let link = tables.links.by_name("va").unwrap();
        let is_lost = !link.has_carrier() && link.oper_state != oper::UP;
        (is_lost && link.ignores_linkdown(table::AF_INET)).then_some(())
    })
    .unwrap();
    let has_way = || bench.has_way("192.0.2.1");
    let add = "route add 192.0.2.0/24 via inet6 2001:db8:1::2 dev va";
    bench.each(add);
    assert!(has_way());
    // A scan does not think otherwise, even where it overtakes the event.
    bench.netns.ip_batch("link set va mtu 1400").unwrap();
    bench.compare("mtu 1400");
    assert!(has_way());
    // What is set in passing shows.
    bench.each("link set va alias looked-at");
    assert!(!has_way());
    bench.each("link set pva up");
    assert!(has_way());
    bench.each("link set pva down");
    assert!(!has_way());
    bench.each("route del 192.0.2.0/24");
    bench.each(add);
    assert!(has_way());
}

/// The sample that a question has taken and waits for (`Namespace::refresh` of
/// `serve`) has what was changed before it, and nothing announced.
#[test]
fn a_sample_has_what_was_changed_before_it_without_a_word() {
    let Some(bench) = Bench::new("sample") else {
        return;
    };
    bench.all(PAIRS);
    bench.each("link set vb down");
    let samples = bench.mirror.samples().unwrap();
    let sampled = |line: &str, what| {
        let words: Vec<&str> = line.split_whitespace().collect();
        bench.netns.ip(&words).unwrap();
        let since = Instant::now();
        samples.want(what, since);
        assert!(samples.wait(what, since, PATIENCE), "{line}");
        bench.tables()
    };
    let tables = sampled("link set vb group 5", Sampled::Links);
    assert_eq!(tables.links.by_name("vb").unwrap().group, 5);
    let tables = sampled("neigh add proxy 10.1.0.9 dev va", Sampled::Neighbours);
    let mut proxies = tables.neighbours.iter().filter(|row| row.proxy);
    assert_eq!(
        proxies.next().unwrap().address.to_string(),
        "10.1.0.9".to_owned()
    );
}

/// A listing tells that the kernel has marked a hop, also where that does not
/// count yet.
#[test]
fn a_hop_that_is_marked_is_loaded_so() {
    let Some(mut bench) = Bench::new("marked") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "addr add 2001:db8:1::1/64 dev va nodad
         route add 192.0.2.0/24 via inet6 2001:db8:1::2 dev va
         link set pva down",
    );
    wait_until(PATIENCE, "the kernel's look", || {
        let routes = bench.netns.ip(&["route", "show", "192.0.2.0/24"]).unwrap();
        routes.contains("linkdown").then_some(())
    })
    .unwrap();
    bench.mirror = mirror(&bench.netns);
    assert!(bench.has_way("192.0.2.1"));
    let at = "net/ipv4/conf/va/ignore_routes_with_linkdown";
    bench.netns.sysctl(at, "1").unwrap();
    bench.compare(at);
    assert!(!bench.has_way("192.0.2.1"));
}

#[test]
fn routes_without_a_carrier_count_where_the_settings_say_so() {
    let Some(bench) = Bench::new("linkdown") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "addr add 2001:db8:1::1/64 dev va nodad
         route add 192.0.2.0/24 via 10.1.0.2
         route add 192.0.2.0/24 via 10.2.0.2 metric 9
         -6 route add 2001:db8:9::/48 via 2001:db8:1::2
         link set pva down",
    );
    let over = |to: &str| {
        let tables = bench.tables();
        let decision = tables.route_of(&table::Packet::to(to.parse().unwrap()));
        decision.ok().map(|found| {
            let link = tables.links.get(found.hops[0].link).unwrap();
            link.name.to_string()
        })
    };
    let kernel = |to: &str| {
        let answer = bench.netns.ip(&["-o", "route", "get", to]).ok()?;
        let mut words = answer.split_whitespace().skip_while(|word| *word != "dev");
        words.nth(1).map(str::to_owned)
    };
    let set = |family: &str, of: &str, value: &str| {
        let at = format!("net/{family}/conf/{of}/ignore_routes_with_linkdown");
        bench.netns.sysctl(&at, value).unwrap();
        bench.compare(&at);
        for to in ["192.0.2.1", "2001:db8:9::1"] {
            assert_eq!(over(to), kernel(to), "{to} after {at} = {value}");
        }
    };
    assert_eq!(over("192.0.2.1").as_deref(), Some("va"));
    set("ipv4", "va", "1");
    assert_eq!(over("192.0.2.1").as_deref(), Some("vb"));
    set("ipv6", "va", "1");
    assert_eq!(over("2001:db8:9::1"), None);
    set("ipv4", "va", "0");
    set("ipv4", "all", "1");
    assert_eq!(over("192.0.2.1").as_deref(), Some("vb"));
    // A link that comes later, and one that is told anew.
    bench.each(
        "link add vc type veth peer name pvc
         link set va mtu 1400",
    );
    assert_eq!(over("192.0.2.1").as_deref(), Some("vb"));
    set("ipv4", "all", "0");
    set("ipv6", "va", "0");
    assert_eq!(over("192.0.2.1").as_deref(), Some("va"));
    bench.each("link set pva up");
}

#[test]
fn a_source_that_a_whole_local_prefix_has_keeps_its_routes() {
    let Some(bench) = Bench::new("anyip") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "route add local 10.7.0.0/16 dev lo
         addr add 10.7.0.1/32 dev va
         addr add 10.6.0.1/32 dev va
         addr add 10.6.0.1/32 dev vb
         route add 192.0.2.0/24 via 10.1.0.2 src 10.7.0.1
         route add 198.51.100.0/24 via 10.1.0.2 src 10.6.0.1
         addr del 10.7.0.1/32 dev va
         addr del 10.6.0.1/32 dev va",
    );
    assert!(bench.has_route("192.0.2.0/24") && bench.has_route("198.51.100.0/24"));
    bench.each("addr del 10.6.0.1/32 dev vb");
}

#[test]
fn rules_follow_the_names_they_hold() {
    let Some(bench) = Bench::new("rules") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "rule add iif va table 100 priority 100
         rule add oif vb table 100 priority 101
         rule add iif later table 100 priority 102
         rule add goto 300 priority 200
         rule add from 10.0.0.0/8 table 5 priority 300
         link add later type veth peer name plater
         link set vb down
         link set vb name vc
         link del va
         rule del priority 300
         rule add fwmark 7/0xff table 9 priority 300
         -6 rule add from 2001:db8::/32 iif later table 9
         link del later
         rule flush",
    );
}

/// The kernel leaves a route out of its listing that was made between the
/// paths of another, and goes by it all the same.
#[test]
fn an_ipv6_route_between_paths_of_another_stays() {
    let Some(bench) = Bench::new("silent-between") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "-6 route add 2001:db8:9::/48 via fe80::2 dev va
        -6 route append 2001:db8:9::/48 dev vb
        -6 route append 2001:db8:9::/48 via fe80::3 dev va",
    );
    let count = || {
        let prefix = "2001:db8:9::/48".parse().unwrap();
        bench.tables().routes.exact(254, prefix).count()
    };
    assert_eq!(count(), 2);
    // It is told again when there is one path left.
    bench.each("-6 route del 2001:db8:9::/48 via fe80::3 dev va");
    assert_eq!(count(), 2);
    bench.each("-6 route del 2001:db8:9::/48 dev vb");
    assert_eq!(count(), 1);
}

/// Routes that differ in what each was made with are several to the kernel.
#[test]
fn v4_routes_that_differ_in_metrics_alone_are_two() {
    let Some(bench) = Bench::new("silent-two") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "route add 192.0.2.0/24 via 10.1.0.2 dev va onlink mtu lock 1300
         route append 192.0.2.0/24 via 10.1.0.2 congctl reno
         route append 192.0.2.0/24 via 10.1.0.2 mtu 1400
         route append 192.0.2.0/24 via 10.1.0.2 realm 3
         route del 192.0.2.0/24 via 10.1.0.2 realm 3
         route change 192.0.2.0/24 via 10.1.0.2 mtu 1280",
    );
}

#[test]
fn a_replaced_ipv6_route_keeps_its_place() {
    let Some(bench) = Bench::new("silent-place") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "-6 route add 2001:db8:9::/48 dev va metric 5
        -6 route append 2001:db8:9::/48 dev vb metric 5
        -6 route replace 2001:db8:9::/48 dev va metric 5 mtu 1400
        -6 route del 2001:db8:9::/48 dev vb metric 5",
    );
}

/// Routes for some sources are a tree of their own to the kernel.
#[test]
fn a_replaced_ipv6_route_leaves_those_of_other_sources() {
    let Some(bench) = Bench::new("silent-source") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "-6 route add 2001:db8:9::/48 via fe80::3 dev vb
        -6 route add 2001:db8:9::/48 from 2001:db8:1::/64 via fe80::2 dev va
        -6 route replace 2001:db8:9::/48 via fe80::3 dev vb pref low
        -6 route replace 2001:db8:9::/48 from 2001:db8:1::/64 via fe80::4 dev vb
        -6 route replace 2001:db8:9::/48 via fe80::5 dev va",
    );
}

/// Those for some sources stand before those for all, and those for fewer
/// before those for more, in whatever order they were made.
#[test]
fn ipv6_routes_for_some_sources_stand_in_the_kernel_s_order() {
    let Some(bench) = Bench::new("silent-sources") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "-6 route add 2001:db8:9::/48 from 2001:db8:1::/64 dev va
        -6 route add 2001:db8:9::/48 dev vb
        -6 route append 2001:db8:9::/48 from 2001:db8:1::/64 dev vb
        -6 route add 2001:db8:9::/48 from 2001:db8:1::/48 dev vb
        -6 route append 2001:db8:9::/48 from 2001:db8:1:0:1::/80 dev va
        -6 route append 2001:db8:9::/48 dev va
        -6 route append 2001:db8:9::/48 from 2001:db8::/64 dev va
        -6 route replace 2001:db8:9::/48 from 2001:db8:1::/48 via fe80::2 dev va
        -6 route append 2001:db8:9::/48 from 2001:db8:1::/64 via fe80::2 dev va",
    );
}

/// A link that leaves and comes back is the last of the kernel's list, with
/// the index that it had.
#[test]
fn links_are_in_the_order_in_which_they_came() {
    let Some(bench) = Bench::new("silent-came") else {
        return;
    };
    let Some(other) = skip::unless(Netns::new("silent-went")) else {
        return;
    };
    bench.all(PAIRS);
    let here = bench.netns.name().to_owned();
    bench
        .netns
        .ip(&["link", "set", "va", "netns", other.name()])
        .unwrap();
    other.ip(&["link", "set", "va", "netns", &here]).unwrap();
    bench.compare("va left and came back");
    let order = |tables: &Tables| -> Vec<String> {
        let links = tables.links.by_arrival();
        links.map(|link| link.name.to_string()).collect()
    };
    let tables = bench.tables();
    let (first, last) = (order(&tables).remove(0), order(&tables).pop());
    assert_eq!((first.as_str(), last.as_deref()), ("lo", Some("va")));
    let indexes: Vec<u32> = tables.links.by_arrival().map(|link| link.index).collect();
    assert!(!indexes.is_sorted(), "{indexes:?}");
    // Who comes later learns it by a listing.
    let late = Mirror::start(Namespace::open(&here).unwrap(), Options::default()).unwrap();
    assert_eq!(late.wait_ready(PATIENCE), Phase::Live);
    assert_eq!(order(&late.reader().snapshot()), order(&tables));
}

/// A rule parts the IPv4 tables local and main for good; nothing shows it once
/// the rule is gone.
#[test]
fn tables_that_were_parted_before_are_known_to_be_two() {
    for (rules, is_merged) in [
        ("", true),
        ("rule add pref 5 nop\nrule del pref 5\n", false),
    ] {
        let Some(netns) = skip::unless(Netns::new("parted")) else {
            return;
        };
        netns
            .ip_batch(&format!("addr add 10.9.0.1/32 dev lo\n{rules}"))
            .unwrap();
        let namespace = Namespace::open(netns.name()).unwrap();
        let mirror = Mirror::start(namespace, Options::default()).unwrap();
        assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
        let tables = mirror.reader().snapshot();
        assert_eq!(tables.has_merged_tables(), is_merged, "{rules:?}");
    }
}
