//! A feed in all views: status, metrics, HTTP, SNMP, the command line.

use std::fs;

use lab::wait_until;

use crate::common::{Daemon, PATIENCE, fingerpost, says};
use crate::frr::{Configuration, Frr};
use crate::{FPM, ours, status, wired};

const FILE: &str = "[feed.frr]\nlisten = '127.0.0.1:2620'\n\
    [feed.spare]\nlisten = '[::1]:2621'\n[feed.spare.limits]\nroutes = 5\n\
    [snmp]\nlisten = ['127.0.0.1:1161']\n[[snmp.community]]\nname = 'public'\n\
    [[snmp.community]]\nname = 'feed'\ncontext = 'source-frr'\n[http]\nlisten = ['127.0.0.1:9797']\n";

#[test]
fn every_view_shows_a_feed_and_says_when_its_peer_is_gone() {
    let Some(netns) = wired("feed-shown") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("f.toml");
    fs::write(&file, FILE).unwrap();
    let daemon = Daemon::up(&netns, &["--config", file.to_str().unwrap()]);
    assert!(
        daemon
            .screen
            .contains("frr at 127.0.0.1:2620, spare at [::1]:2621"),
        "{}",
        daemon.screen
    );
    assert_eq!(
        status(&netns)["phase"],
        "disconnected: nobody has connected yet"
    );
    let mut frr = Frr::start(
        &netns,
        Configuration {
            zebra: FPM,
            staticd: "ip route 192.0.2.0/24 10.1.0.2\nip route 198.51.100.0/24 10.1.0.2\n",
            bgpd: None,
        },
    );
    let all = || (ours(&netns).len() == 2).then_some(());
    wait_until(PATIENCE, "both routes", all).unwrap();
    let live = || (status(&netns)["phase"] == "live").then_some(());
    wait_until(PATIENCE, "the feed to settle", live).unwrap();
    let via = ["route", "--source", "frr", "--via", "10.1.0.2", "--count"];
    assert_eq!(says(&netns, &via).trim(), "2");
    let get = says(
        &netns,
        &[
            "route",
            "show",
            "to",
            "match",
            "192.0.2.9",
            "--source",
            "frr",
        ],
    );
    assert!(get.contains("via 10.1.0.2 dev v0"), "{get}");
    let get = ["route", "get", "192.0.2.9", "--source", "frr"];
    let got = says(&netns, &get);
    assert_eq!(
        got,
        "192.0.2.9 via 10.1.0.2 dev v0 table main proto static metric 20 \n    \
         match 192.0.2.0/24 source frr not-applied rules,source-address \n"
    );
    // The kernel's own answer is another one: it has a source address.
    assert!(says(&netns, &get[..3]).contains("src 10.1.0.1"));
    let nowhere = fingerpost(&netns, &["route", "get", "203.0.113.9", "--source", "frr"]);
    let complaint = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert!(
        complaint.contains("frr has no way to 203.0.113.9"),
        "{complaint}"
    );
    let curl = |path: &str| netns.run("curl", &["-sf", &format!("http://127.0.0.1:9797{path}")]);
    let rows = curl("/v1/routes?source=frr&to=192.0.2.0/24").unwrap();
    assert!(rows.contains("\"gateway\":\"10.1.0.2\""), "{rows}");
    let got = curl("/v1/routes/get?address=192.0.2.9&source=frr").unwrap();
    assert!(
        got.contains("\"match\":\"192.0.2.0/24\",\"source\":\"frr\""),
        "{got}"
    );
    assert!(curl("/v1/routes/get?address=192.0.2.9&source=nobody").is_err());
    let metrics = curl("/metrics").unwrap();
    for line in [
        "fingerpost_feeder_connected{source=\"frr\"} 1",
        "fingerpost_feeder_connected{source=\"spare\"} 0",
        "fingerpost_feeder_complete{source=\"frr\"} 1",
        "fingerpost_feeder_unconfirmed_rows{source=\"frr\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    // inetCidrRouteIfIndex, of the kernel's routes and of the feed's.
    let walk = |community: &str| {
        let column = ["-On", "127.0.0.1:1161", "1.3.6.1.2.1.4.24.7.1.7"];
        let asked = [&["-v2c", "-c", community][..], &column].concat();
        let said = netns.run("snmpwalk", &asked).unwrap();
        let rows = said
            .lines()
            .filter(|line| line.contains(".1.4.192.0.2.0.24."));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(walk("feed"), walk("public"));
    assert_eq!(walk("feed").len(), 1);

    frr.kill_zebra();
    let gone = || {
        let told = status(&netns);
        let phase = told["phase"].as_str()?.to_owned();
        phase
            .starts_with("disconnected: 127.0.0.1:")
            .then_some(told)
    };
    let told = wait_until(PATIENCE, "the feed to be disconnected", gone).unwrap();
    assert_eq!(told["complete"], false);
    assert!(told["unconfirmed"].as_u64() >= Some(2), "{told}");
    // What it had stays, and every answer says that it may be old.
    assert_eq!(ours(&netns).len(), 2);
    let asked = fingerpost(&netns, &["route", "--source", "frr"]);
    assert_eq!(asked.status.code(), Some(3));
    let complaint = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(complaint.contains("disconnected"), "{complaint}");
    let text = says(&netns, &["status"]);
    assert!(
        text.contains("source frr: disconnected: 127.0.0.1:"),
        "{text}"
    );
    assert!(text.contains(" left "), "{text}");
    let metrics = curl("/metrics").unwrap();
    assert!(metrics.contains("fingerpost_feeder_connected{source=\"frr\"} 0"));
    daemon.end();
}

#[test]
fn what_a_configuration_may_not_say_is_refused_before_anything_starts() {
    let Some(netns) = wired("feed-config") else {
        return;
    };
    let beyond = fingerpost(&netns, &["up", "--fpm", "0.0.0.0:2620"]);
    assert!(!beyond.status.success());
    let complaint = String::from_utf8_lossy(&beyond.stderr).into_owned();
    assert!(complaint.contains("beyond loopback"), "{complaint}");
}
