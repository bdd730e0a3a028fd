//! Another process changes everything at full speed; the mirror ends equal
//! to the kernel, with lost events and without.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fingerpost_linux::{Mirror, Namespace, Options, Phase, Status};
use lab::{Netns, Random, skip, wait_until};

const CHURN: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn ends_equal_to_the_kernel() {
    let Some(status) = churn("churn", Options::default(), 1) else {
        return;
    };
    assert_eq!(status.overruns, 0, "{status:?}");
    assert!(status.events > 1_000, "{status:?}");
}

#[test]
fn ends_equal_to_the_kernel_though_events_were_lost() {
    let options = Options {
        receive_buffer_bytes: 1,
        ..Options::default()
    };
    let Some(status) = churn("lossy", options, 2) else {
        return;
    };
    assert!(status.overruns > 0, "no event was lost: {status:?}");
    assert!(status.resyncs > 0, "{status:?}");
}

fn churn(tag: &str, options: Options, seed: u64) -> Option<Status> {
    let netns = skip::unless(Netns::new(tag))?;
    let mirror = Mirror::start(Namespace::open(netns.name()).unwrap(), options).unwrap();
    assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
    change_everything(&netns, seed);
    let settled = wait_until(PATIENCE, "the mirror to be live", || {
        let status = mirror.status();
        (status.phase == Phase::Live).then_some(status)
    });
    settled.unwrap();
    let scanned = scan(&mirror);
    assert_eq!(scanned.drift, 0, "{scanned:#?}");
    assert_eq!(scanned.malformed, 0, "{scanned:#?}");
    Some(scanned)
}

/// A scan that no loss of events made void.
fn scan(mirror: &Mirror) -> Status {
    wait_until(PATIENCE, "a whole scan", || {
        let before = mirror.status();
        mirror.scan_now();
        let after = wait_until(PATIENCE, "a scan", || {
            let status = mirror.status();
            (status.scans > before.scans).then_some(status)
        });
        let after = after.unwrap();
        (after.phase == Phase::Live && after.overruns == before.overruns).then_some(after)
    })
    .unwrap()
}

/// Feeds `ip -batch` random changes for [`CHURN`], then a burst.
fn change_everything(netns: &Netns, seed: u64) {
    let mut random = Random::new(seed);
    let start = Instant::now();
    let links =
        (0..4).map(|n| format!("link add name v{n} type veth peer name p{n}\nlink set p{n} up\n"));
    feed(netns, links.collect());
    while start.elapsed() < CHURN {
        feed(netns, (0..64).map(|_| line(&mut random) + "\n").collect());
    }
    feed(
        netns,
        "link set v0 up\naddr add 10.0.0.1/16 dev v0\n".into(),
    );
    let routes =
        (0..2000).map(|n| format!("route replace 172.16.{}.{}/32 dev v0\n", n / 256, n % 256));
    feed(netns, routes.collect());
    feed(netns, "link set v0 down\nlink set v0 up\n".into());
}

/// Runs lines by `ip -batch`. Refused lines are part of the game, and at
/// some `ip` ends: neither its status nor a broken pipe says anything.
fn feed(netns: &Netns, lines: String) {
    let mut child = Command::new("ip")
        .args(["-n", netns.name(), "-force", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    child.wait().unwrap();
}

fn line(random: &mut Random) -> String {
    let mut upto = |n: usize| random.below(n);
    let (link, host, id) = (upto(4), upto(5), 1 + upto(5));
    let net = upto(6);
    match upto(34) {
        0 => format!("link set v{link} up"),
        1 => format!("link set v{link} down"),
        2 => format!("link set p{link} {}", ["up", "down"][upto(2)]),
        3 => format!("link set v{link} mtu {}", 1400 + host),
        4 => format!("link set v{link} group {host}"),
        5..=7 => format!("addr add 10.{link}.0.{host}/24 dev v{link}"),
        8 => format!("addr del 10.{link}.0.{host}/24 dev v{link}"),
        9 => format!("addr flush dev v{link}"),
        10 => format!("addr add 2001:db8:{link}::{host}/64 dev v{link} nodad"),
        11 => format!("addr del 2001:db8:{link}::{host}/64 dev v{link}"),
        12 | 13 => {
            format!("neigh replace 10.{link}.0.{host} lladdr 02:00:00:00:00:0{host} dev v{link}")
        }
        14 => format!("neigh del 10.{link}.0.{host} dev v{link}"),
        15 => format!("nexthop replace id {id} via 10.{link}.0.{host} dev v{link}"),
        16 => format!("nexthop replace id {} group {id}/{}", 10 + id, 1 + host),
        17 => format!("nexthop del id {id}"),
        18 => format!("route replace 192.0.{net}.0/24 nhid {id}"),
        19 => format!("route replace 192.0.{net}.0/24 nhid {}", 10 + id),
        20 => format!("route add 198.51.{net}.0/24 via 10.{link}.0.{host}"),
        21 => format!("route append 198.51.{net}.0/24 via 10.{link}.0.{host}"),
        22 => format!("route prepend 198.51.{net}.0/24 via 10.{link}.0.{host}"),
        23 => format!("route replace 198.51.{net}.0/24 via 10.{link}.0.{host}"),
        24 => format!("route del 198.51.{net}.0/24"),
        25 => format!(
            "route replace 203.0.{net}.0/24 nexthop via 10.{link}.0.{host} nexthop via 10.{}.0.9",
            (link + 1) % 4
        ),
        26 => format!("route add 203.1.{net}.0/24 dev v{link} src 10.{link}.0.{host}"),
        27 => format!("-6 route append 2001:db8:9{net}::/48 via 2001:db8:{link}::{host}"),
        28 => format!("-6 route replace 2001:db8:9{net}::/48 via 2001:db8:{link}::{host}"),
        29 => format!("-6 route del 2001:db8:9{net}::/48"),
        30 => format!("-6 route del 2001:db8:9{net}::/48 via 2001:db8:{link}::{host}"),
        31 => format!(
            "rule add iif v{link} table {} priority {}",
            100 + host,
            500 + net
        ),
        32 => format!("rule del priority {}", 500 + net),
        _ => match upto(20) {
            0 => format!("link del v{link}"),
            1 => format!("link add name v{link} type veth peer name p{link}"),
            _ => format!("-6 route flush 2001:db8:9{net}::/48"),
        },
    }
}
