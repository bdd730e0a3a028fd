//! What hosts on both sides notice, and the router as a host.

use lab::{Netns, wait_until};
use rustix::process::Signal;

use crate::common::{PATIENCE, assert_confined};
use crate::place::{Place, Router, has_program, place};

const NET_ADMIN: u64 = 1 << 12;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// Both ways are known to the kernel, and packets go by them here.
fn warm(place: &Place, router: &Router) {
    for (to, enough) in [("10.2.0.2", 1), ("2001:db8:2::2", 2)] {
        wait_until(PATIENCE, "forwarded packets", || {
            let answer = place.left.run("ping", &["-c1", "-W1", to]);
            let forwarded = ["lan", "wan"].map(|port| router.packets(port, "forwarded"));
            (answer.is_ok() && forwarded.iter().all(|&packets| packets >= enough)).then_some(())
        })
        .unwrap();
    }
}

#[test]
fn hosts_reach_each_other_and_the_router() {
    let Some(place) = place("xhost") else { return };
    let router = Router::start(&place.router, &[]);
    warm(&place, &router);
    assert_confined(router.forwarding.process.id(), NET_ADMIN | PERFMON | BPF);
    for to in ["10.2.0.2", "2001:db8:2::2", "10.1.0.1", "2001:db8:2::1"] {
        place
            .left
            .run("ping", &["-c3", "-i0.1", "-W5", to])
            .unwrap();
    }
    let reasons = router.ask("reasons").unwrap();
    assert!(router.packets("lan", "forwarded") >= 4, "{reasons}");
    assert!(router.packets("wan", "forwarded") >= 4);
    assert!(router.packets("lan", "host") >= 6);
    // Each hop is shown, and the way's MTU found.
    let shown = place
        .left
        .run("traceroute", &["-n", "-q1", "-w5", "10.2.0.2"])
        .unwrap();
    assert!(
        shown.contains("10.1.0.1") && shown.contains("10.2.0.2"),
        "{shown}"
    );
    assert!(router.packets("lan", "ttl") >= 1);
    place
        .router
        .ip(&["link", "set", "wan", "mtu", "1300"])
        .unwrap();
    let big = place
        .left
        .run("ping", &["-c1", "-W5", "-Mdo", "-s1372", "10.2.0.2"]);
    assert!(big.is_err());
    let way = place.left.ip(&["route", "get", "10.2.0.2"]).unwrap();
    assert!(way.contains("mtu 1300"), "{way}");
    assert!(router.packets("lan", "too-big") >= 1);
}

/// The trap of a veth: local sockets leave checksums to a device that is none.
#[test]
fn unfinished_checksums_are_finished_by_the_kernel() {
    let Some(place) = place("xsum") else { return };
    let router = Router::start(&place.router, &[]);
    let server = place
        .right
        .spawn("iperf3", &["-s", "-1", "--forceflush"])
        .unwrap();
    wait_until(PATIENCE, "a server", || {
        let shown = place.right.run("ss", &["-Hltn", "sport", "=", "5201"]);
        (!shown.unwrap().is_empty()).then_some(())
    })
    .unwrap();
    let sent = place
        .left
        .run("iperf3", &["-c", "10.2.0.2", "-n", "4M", "-J"])
        .unwrap();
    assert!(!sent.contains("\"error\""), "{sent}");
    assert!(router.packets("lan", "unfinished") > 100);
    let sums = place
        .right
        .run("nstat", &["-az", "TcpInCsumErrors"])
        .unwrap();
    let line = sums
        .lines()
        .find(|line| line.starts_with("TcpInCsumErrors"));
    assert_eq!(line.unwrap().split_whitespace().nth(1), Some("0"), "{sums}");
    drop(server);
}

/// Nobody is there to take it off: the kernel does, and forwards itself.
#[test]
fn a_killed_router_leaves_the_kernel_forwarding() {
    let Some(place) = place("xkill") else { return };
    let router = Router::start(&place.router, &[]);
    let mut ping = place.left.command("ping");
    ping.args(["-c300", "-i0.01", "-q", "10.2.0.2"]);
    ping.stdout(std::process::Stdio::piped());
    let mut ping = lab::Child::spawn(ping).unwrap();
    wait_until(PATIENCE, "packets", || {
        (router.packets("lan", "forwarded") > 20).then_some(())
    })
    .unwrap();
    assert!(has_program(&place.router, "lan"));
    router.forwarding.process.signal(Signal::KILL).unwrap();
    ping.wait(PATIENCE).unwrap();
    assert!(!has_program(&place.router, "lan"));
    let mut said = String::new();
    let mut output = ping.process().stdout.take().unwrap();
    std::io::Read::read_to_string(&mut output, &mut said).unwrap();
    let received = said.split(", ").nth(1).unwrap();
    let received: u32 = received.split(' ').next().unwrap().parse().unwrap();
    // Taking the program off resets the device's rings: what is in them goes.
    assert!(received >= 290, "{said}");
    // And another may begin at once.
    drop(router);
    let router = Router::start(&place.router, &[]);
    place.left.run("ping", &["-c1", "-W5", "10.2.0.2"]).unwrap();
    assert!(router.packets("lan", "forwarded") > 0);
}

/// One that is stopped watches no more: after a while the kernel forwards.
#[test]
fn a_stopped_router_hands_all_up_after_a_while() {
    let Some(place) = place("xstop") else { return };
    let router = Router::start(&place.router, &[]);
    place
        .left
        .run("ping", &["-c2", "-i0.1", "10.2.0.2"])
        .unwrap();
    let before = forwarded_by_kernel(&place.router);
    router.forwarding.process.signal(Signal::STOP).unwrap();
    // It has said for ten seconds ahead that it watches.
    wait_until(PATIENCE, "the kernel's forwarding", || {
        place.left.run("ping", &["-c1", "-W5", "10.2.0.2"]).unwrap();
        (forwarded_by_kernel(&place.router) >= before + 2).then_some(())
    })
    .unwrap();
    router.forwarding.process.signal(Signal::CONT).unwrap();
    assert!(router.packets("lan", "unwatched") >= 1);
    router.looks_again();
    let before = router.packets("lan", "forwarded");
    place
        .left
        .run("ping", &["-c2", "-i0.1", "-W5", "10.2.0.2"])
        .unwrap();
    assert!(router.packets("lan", "forwarded") > before);
}

/// Packets that the kernel itself has forwarded.
fn forwarded_by_kernel(netns: &Netns) -> u64 {
    let shown = netns.run("nstat", &["-asz", "IpForwDatagrams"]).unwrap();
    let line = shown
        .lines()
        .find(|line| line.starts_with("IpForwDatagrams"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

/// The kernel does not see who uses a neighbour: it is told.
#[test]
fn a_neighbour_that_only_we_use_is_kept_fresh() {
    let Some(place) = place("xneigh") else { return };
    for family in ["ipv4", "ipv6"] {
        let key = format!("net/{family}/neigh/wan");
        for (name, value) in [
            ("base_reachable_time_ms", "1000"),
            ("delay_first_probe_time", "1"),
            ("retrans_time_ms", "200"),
        ] {
            place
                .router
                .sysctl(&format!("{key}/{name}"), value)
                .unwrap();
        }
    }
    let router = Router::start(&place.router, &[]);
    warm(&place, &router);
    // The host changes its address without a word: the kernel sees no packet
    // by which it would notice.
    let mac = "02:00:00:00:00:99";
    place
        .right
        .sysctl("net/ipv4/conf/eth0/arp_notify", "0")
        .unwrap();
    place
        .right
        .ip(&["link", "set", "eth0", "address", mac])
        .unwrap();
    let mut ping = place.left.command("ping");
    ping.args(["-i0.1", "-q", "-w60", "10.2.0.2"])
        .stdout(std::process::Stdio::null());
    let ping = lab::Child::spawn(ping).unwrap();
    wait_until(PATIENCE, "the host's new address", || {
        let shown = place
            .router
            .ip(&["neigh", "show", "10.2.0.2", "dev", "wan"])
            .unwrap();
        shown.contains(mac).then_some(())
    })
    .unwrap();
    drop(ping);
    let reasons = router.ask("reasons").unwrap();
    assert!(router.packets("lan", "forwarded") > 0, "{reasons}");
}

/// A port whose link goes is told of, and taken again when it is back.
#[test]
fn a_link_that_goes_and_comes_back_is_a_port_again() {
    let Some(place) = place("xlink") else { return };
    let router = Router::start(&place.router, &[]);
    place.router.ip(&["link", "del", "wan"]).unwrap();
    wait_until(PATIENCE, "the link's end", || {
        (router.status()["ports"][1]["link"].is_null()).then_some(())
    })
    .unwrap();
    let lines = format!(
        "link add wan type veth peer name eth0 netns {}\n\
         addr add 10.2.0.1/24 dev wan\nlink set wan up\n",
        place.right.name()
    );
    place.router.ip_batch(&lines).unwrap();
    place
        .right
        .ip_batch(
            "addr add 10.2.0.2/24 dev eth0\nlink set eth0 up\nroute add default via 10.2.0.1\n",
        )
        .unwrap();
    place
        .right
        .run("ethtool", &["-K", "eth0", "gro", "on"])
        .unwrap();
    wait_until(PATIENCE, "the port", || {
        let sends = &router.status()["ports"][1]["sends"]["ipv4"];
        (*sends == true).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}: {}\n{}", router.log(), router.status()));
    place
        .left
        .run("ping", &["-c2", "-i0.1", "-W5", "10.2.0.2"])
        .unwrap();
    assert!(router.packets("wan", "forwarded") > 0, "{}", router.log());
    assert!(router.log().contains("wan: its link is gone"));
}

/// Frames of 9,000 bytes lie in several buffers.
#[test]
fn long_frames_are_forwarded() {
    let Some(place) = place("xlong") else { return };
    for (netns, link) in [
        (&place.router, "lan"),
        (&place.router, "wan"),
        (&place.left, "eth0"),
        (&place.right, "eth0"),
    ] {
        netns.ip(&["link", "set", link, "mtu", "9000"]).unwrap();
    }
    let router = Router::start(&place.router, &[]);
    place.left.run("ping", &["-c1", "-W5", "10.2.0.2"]).unwrap();
    let before = router.packets("lan", "forwarded");
    place
        .left
        .run(
            "ping",
            &["-c3", "-i0.1", "-W5", "-Mdo", "-s8972", "10.2.0.2"],
        )
        .unwrap();
    assert!(router.packets("lan", "forwarded") >= before + 3);
}
