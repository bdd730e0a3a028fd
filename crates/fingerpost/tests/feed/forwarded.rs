//! Packets forwarded by zebra's routes, also those that no kernel has; and
//! what zebra is told back.

use std::process::Stdio;

use lab::{Child, Netns, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::FPM;
use crate::common::{PATIENCE, at_rest, program};
use crate::frr::{Configuration, Frr};

/// A host behind a TUN device of the router's.
fn host(router: &Netns, tag: &str, device: &str, number: u8, own: &str) -> Option<Netns> {
    let host = at_rest(tag)?;
    let there = || router.ip(&["link", "show", device]).ok();
    wait_until(PATIENCE, "the device is there", there).unwrap();
    router
        .ip(&["link", "set", device, "netns", host.name()])
        .unwrap();
    let batch = format!(
        "addr add 10.{number}.0.2/24 dev {device}\naddr add {own} dev lo\n\
         link set lo up\nlink set {device} up\nroute add default via 10.{number}.0.1\n"
    );
    host.ip_batch(&batch).unwrap();
    Some(host)
}

#[test]
fn packets_go_by_zebra_s_routes_without_any_kernel_route() {
    let Some(router) = at_rest("feed-fwd") else {
        return;
    };
    router
        .ip_batch(
            "link add lan type veth peer name lan2\nlink add wan type veth peer name wan2\n\
             addr add 10.1.0.1/24 dev lan\naddr add 10.2.0.1/24 dev wan\n\
             link set lan up\nlink set lan2 up\nlink set wan up\nlink set wan2 up\n",
        )
        .unwrap();
    let mut command = router.command(program());
    command.args([
        "forward",
        "--json",
        "--fpm=127.0.0.1",
        "--tun=fa=lan",
        "--tun=fb=wan",
    ]);
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    let _forward = Child::spawn(command).unwrap();
    let left = host(&router, "feed-fwd-a", "fa", 1, "10.66.0.1/32").unwrap();
    let _right = host(&router, "feed-fwd-b", "fb", 2, "10.77.0.1/32").unwrap();
    let ping = |to: &str| left.run("ping", &["-c", "1", "-W", "1", to]).ok();
    assert_eq!(ping("10.77.0.1"), None);
    let mut frr = Frr::start(
        &router,
        Configuration {
            zebra: FPM,
            staticd: "ip route 10.77.0.0/16 10.2.0.2\n",
            bgpd: None,
        },
    );
    wait_until(PATIENCE, "a ping by zebra's route", || ping("10.77.0.1")).unwrap();
    // zebra goes, and what it told stays; then the kernel's route goes too.
    frr.kill_zebra();
    let gone = || {
        let _ = router.ip(&["route", "del", "10.77.0.0/16"]);
        let left = router.ip(&["route", "show", "10.77.0.0/16"]).unwrap();
        left.is_empty().then_some(())
    };
    wait_until(PATIENCE, "the kernel's route to be gone", gone).unwrap();
    wait_until(PATIENCE, "a ping without any kernel route", || {
        ping("10.77.0.1")
    })
    .unwrap();
    // Another one, told by the zebra that comes back, takes its place.
    frr.start_zebra();
    frr.vtysh(&["configure terminal", "no ip route 10.77.0.0/16 10.2.0.2"]);
    let lost = || ping("10.77.0.1").is_none().then_some(());
    wait_until(PATIENCE, "a route that zebra takes back to be gone", lost).unwrap();
    // It forwards all the same.
    wait_until(PATIENCE, "a ping over links alone", || ping("10.2.0.2")).unwrap();
}

/// What zebra has counted of its connection (`show fpm counters`).
fn counted(frr: &Frr<'_>, what: &str) -> Option<u64> {
    let counters = frr.vtysh(&["show fpm counters"]);
    let mut lines = counters.lines().filter_map(|line| line.split_once(':'));
    let (_, count) = lines.find(|(name, _)| name.trim() == what)?;
    count.trim().parse().ok()
}

/// The kernel's namespace is not the one that forwards: zebra connects where
/// its routes are.
#[test]
fn zebra_is_told_what_became_of_its_routes_and_reads_it() {
    let (Some(router), Some(outside)) = (at_rest("feed-ack"), at_rest("feed-ack-o")) else {
        return;
    };
    router
        .ip_batch(
            "link add lan type veth peer name lan2\naddr add 10.1.0.1/24 dev lan\n\
             link set lan up\nlink set lan2 up\n",
        )
        .unwrap();
    let mut command = outside.command(program());
    let netns = format!("--netns={}", router.name());
    let arguments = [
        "forward",
        "--json",
        &netns,
        "--fpm=127.0.0.1",
        "--tun=fa=lan",
    ];
    command.args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut forward = Child::spawn(command).unwrap();
    let frr = Frr::start(
        &router,
        Configuration {
            zebra: FPM,
            staticd: "ip route 10.77.0.0/16 10.1.0.2\nip route 10.78.0.0/16 10.1.0.3\n\
                      ip route 10.79.0.0/16 blackhole\nipv6 route 2001:db8:7::/48 lan\n",
            bgpd: None,
        },
    );
    // Frame, message, IPv4 prefix, table, metric and the id of next hops are
    // 64 bytes; a blackhole has no such id, an IPv6 prefix 12 bytes more.
    let all = 64 + 64 + 56 + 76;
    let read = |bytes: u64| move |read: &u64| *read == bytes;
    let four = || counted(&frr, "Input bytes").filter(read(all));
    wait_until(PATIENCE, "zebra to read four acknowledgements", four).unwrap();
    // It goes on as if nothing had been: 8.4 reads them and no more.
    frr.vtysh(&["configure terminal", "ip route 10.80.0.0/16 10.1.0.4"]);
    let fifth = || counted(&frr, "Input bytes").filter(read(all + 64));
    wait_until(PATIENCE, "zebra to read a fifth", fifth).unwrap();
    for trouble in ["Connection closes", "Connection errors"] {
        assert_eq!(counted(&frr, trouble), Some(0), "{trouble}");
    }
    let installed = frr.routes().unwrap();
    assert_eq!(installed.len(), 5, "{installed:?}");
    forward.signal(Signal::INT).unwrap();
    assert!(forward.wait(PATIENCE).unwrap().success());
    let said = forward.process().stdout.take().unwrap();
    let said: Value = serde_json::from_reader(said).unwrap();
    let routes = said["routes"].as_str().unwrap();
    assert!(
        routes.contains("5 acknowledged, 0 as not forwarded"),
        "{routes}"
    );
}
