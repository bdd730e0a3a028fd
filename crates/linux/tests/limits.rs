//! What a mirror does at its tables' limits, and with messages that the
//! kernel did not send.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::fmt::Write as _;
use std::time::Duration;

use fingerpost_linux::socket::{DATAGRAM_BYTES, Received, Socket};
use fingerpost_linux::{Mirror, Namespace, Options, Phase, Status};
use lab::situation::routes::{self, Family};
use lab::{Netns, skip, wait_until};
use netlink_sys::SocketAddr;
use netlink_sys::protocols::NETLINK_ROUTE;

use table::Limits;

const PATIENCE: Duration = Duration::from_secs(90);

fn wired(tag: &str) -> Option<Netns> {
    let netns = skip::unless(Netns::new(tag))?;
    netns
        .sysctl("net/ipv6/conf/default/disable_ipv6", "1")
        .unwrap();
    netns
        .ip_batch(
            "link add name v type veth peer name p
             link set v up
             link set p up
             addr add 10.0.0.1/8 dev v
            ",
        )
        .unwrap();
    Some(netns)
}

fn until(mirror: &Mirror, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
    let status = wait_until(PATIENCE, what, || {
        Some(mirror.status()).filter(|status| holds(status))
    });
    status
        .map_err(|error| format!("{error}: {:#?}", mirror.status()))
        .unwrap()
}

fn neighbours(hosts: std::ops::RangeInclusive<u32>) -> String {
    hosts.fold(String::new(), |mut lines, host| {
        let _ = writeln!(
            lines,
            "neigh replace 10.0.0.{host} lladdr 02:00:00:00:00:{host:02x} dev v nud permanent"
        );
        lines
    })
}

/// A table that is full keeps no other from being brought up to date.
#[test]
fn a_full_table_leaves_the_others_whole_and_is_said_to_miss_rows() {
    let Some(netns) = wired("limit") else {
        return;
    };
    netns.ip_batch(&neighbours(2..=121)).unwrap();
    let limits = Limits {
        // More than the multicast addresses that each link has.
        neighbours: 60,
        ..Limits::default()
    };
    let options = Options {
        limits,
        receive_buffer_bytes: 1,
        ..Options::default()
    };
    let mirror = Mirror::start(Namespace::open(netns.name()).unwrap(), options).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    // The buffer holds some three events: sooner or later some are lost.
    routes::build(&netns, Family::V4, 4_000).unwrap();
    for round in 1..=20 {
        if mirror.status().overruns > 0 {
            break;
        }
        let lines = (0..250).fold(String::new(), |mut lines, n| {
            let _ = writeln!(lines, "route add 172.16.0.{n}/32 dev v metric {round}");
            lines
        });
        netns.ip_batch(&lines).unwrap();
    }
    let listed = netns.ip(&["-4", "route", "show"]).unwrap().lines().count();
    let count = |mirror: &Mirror| {
        let tables = mirror.reader().snapshot();
        tables
            .routes
            .iter_v4()
            .filter(|route| route.table == 254)
            .count()
    };
    wait_until(PATIENCE, "all routes", || {
        (count(&mirror) == listed).then_some(())
    })
    .unwrap();
    let status = until(&mirror, "the end of resyncs", |status| {
        status.phase == Phase::Live
    });
    assert!(status.overruns > 0, "{status:?}");
    assert!(
        !status.is_whole() && status.incomplete.contains("neighbours"),
        "{status:?}"
    );
    assert_eq!(status.incomplete.len(), 1, "{status:?}");
    assert!(status.refused["neighbours"] >= 60, "{status:?}");
    assert_eq!(status.in_words(), "degraded: neighbours miss rows");
    assert_eq!(status.drift, 0, "{status:?}");

    // What it has is the kernel's: those that go there go here, and what
    // has a place then is fetched.
    netns.ip_batch("neigh flush all nud permanent\n").unwrap();
    netns.ip_batch(&neighbours(130..=134)).unwrap();
    until(&mirror, "the mirror to be whole", Status::is_whole);
    let tables = mirror.reader().snapshot();
    let mut hosts: Vec<String> = tables
        .neighbours
        .iter()
        .filter(|row| row.state == table::row::neighbour::state::PERMANENT)
        .map(|row| row.address.to_string())
        .collect();
    hosts.sort();
    assert_eq!(
        hosts,
        (130..=134)
            .map(|n| format!("10.0.0.{n}"))
            .collect::<Vec<_>>()
    );
    assert_eq!(mirror.status().drift, 0);
}

/// Soon after its start, and again after each burst that has settled.
#[test]
fn a_scan_follows_each_burst_that_settles() {
    let Some(netns) = wired("settle") else {
        return;
    };
    let mirror = Mirror::start(Namespace::open(netns.name()).unwrap(), Options::default()).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    let first = until(&mirror, "a scan after the start", |status| status.scans > 0);
    assert!(first.last_scan_millis > 0, "{first:?}");
    // A deprecated address has no time left, whenever the kernel is asked.
    netns
        .ip_batch(
            "addr add 10.7.0.1/16 dev v valid_lft 3000 preferred_lft 0
             addr add 10.8.0.1/16 dev v valid_lft 3000 preferred_lft 2000
            ",
        )
        .unwrap();
    let second = until(&mirror, "a scan after a burst", |status| {
        status.scans > first.scans
    });
    assert!(second.last_scan_millis > first.last_scan_millis);
    netns
        .ip(&["route", "add", "172.16.0.0/16", "dev", "v"])
        .unwrap();
    let third = until(&mirror, "another", |status| status.scans > second.scans);
    assert_eq!((third.drift, third.last_scan_drift), (0, 0), "{third:?}");
}

/// Another process sends what looks like the kernel's.
#[test]
fn what_another_process_sends_is_dropped_and_counted() {
    let Some(netns) = wired("forged") else {
        return;
    };
    let namespace = Namespace::open(netns.name()).unwrap();
    let ours = Socket::open(&namespace).unwrap();
    let port = namespace
        .run(|| {
            let text = std::fs::read_to_string("/proc/thread-self/net/netlink").unwrap();
            let ports = text.lines().skip(1).filter_map(|line| {
                let mut words = line.split_whitespace().skip(1);
                (words.next()? == "0").then(|| words.next()?.parse::<u32>().ok())?
            });
            ports.max().unwrap()
        })
        .unwrap();
    // An RTM_DELLINK of link 2: header and `struct ifinfomsg`.
    let mut forged = vec![0u8; 32];
    forged[0..4].copy_from_slice(&32u32.to_ne_bytes());
    forged[4..6].copy_from_slice(&17u16.to_ne_bytes());
    forged[20..24].copy_from_slice(&2u32.to_ne_bytes());
    let forger = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                netns.inside(|| {
                    let socket = netlink_sys::Socket::new(NETLINK_ROUTE).unwrap();
                    socket.send_to(&forged, &SocketAddr::new(port, 0), 0)
                })
            })
            .join()
    });
    assert_eq!(forger.unwrap().unwrap().unwrap(), 32);
    let mut buffer = vec![0; DATAGRAM_BYTES];
    assert_eq!(ours.try_receive(&mut buffer).unwrap(), Received::Nothing);
    assert_eq!(ours.foreign(), 1);
}
