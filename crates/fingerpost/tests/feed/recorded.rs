//! What feeds hear, recorded: of a real FRR by FPM and BMP at once, in parts
//! that stand alone, and in files that are damaged.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use lab::{Netns, wait_until};
use serde_json::Value;

use crate::common::{Daemon, PATIENCE, fingerpost, program, says};
use crate::frr::{Configuration, Frr};
use crate::{FPM, wired};

/// A bgpd that originates two prefixes, and tells of its own table.
const BGPD: &str = "router bgp 65001\n bgp router-id 10.1.0.1\n \
    no bgp ebgp-requires-policy\n \
    neighbor 10.1.0.2 remote-as 65002\n neighbor 10.1.0.2 passive\n \
    bmp targets lab\n  bmp monitor ipv4 unicast pre-policy\n  \
    bmp monitor ipv4 unicast post-policy\n  \
    bmp connect 127.0.0.1 port 11019 min-retry 100 max-retry 500\n exit\n";

/// The answer of a replay, whatever its status.
fn replays(files: &[&Path], question: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("replay").args(files).arg("--").args(question);
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn recording(netns: &Netns) -> Value {
    let status: Value = serde_json::from_str(&says(netns, &["status", "--json"])).unwrap();
    status["recording"].clone()
}

/// Whether a source has so many routes.
fn has(netns: &Netns, source: &str, count: &str) -> bool {
    text(&fingerpost(
        netns,
        &["route", "--source", source, "--count"],
    ))
    .trim()
        == count
}

#[test]
fn a_replay_answers_for_the_feeds_of_a_real_frr() {
    let Some(netns) = wired("feed-rec") else {
        return;
    };
    let peer = Netns::new("feed-rec-peer").unwrap();
    netns
        .ip(&["link", "set", "w0", "netns", peer.name()])
        .unwrap();
    peer.ip_batch("addr add 10.1.0.2/24 dev w0\nlink set w0 up\n")
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("recording");
    let up = Daemon::up(
        &netns,
        &[
            "--fpm",
            "127.0.0.1",
            "--bmp",
            "127.0.0.1",
            "--record",
            file.to_str().unwrap(),
        ],
    );
    let statics: String = (0..50)
        .map(|number| format!("ip route 20.0.{number}.0/24 10.2.0.{}\n", 2 + number % 3))
        .collect();
    let frr = Frr::start(
        &netns,
        Configuration {
            zebra: FPM,
            staticd: &statics,
            bgpd: Some(BGPD),
        },
    );
    let connect = || {
        let opened = peer.inside(|| {
            let bgpd = "10.1.0.1:179".parse().unwrap();
            lab::speaker::Speaker::open(bgpd, 65_002, [10, 1, 0, 2].into())
        });
        opened.unwrap().ok()
    };
    let mut speaker = wait_until(PATIENCE, "a session with bgpd", connect).unwrap();
    speaker
        .announce(1_000..1_300, [10, 1, 0, 2].into())
        .unwrap();
    // Those that zebra knows by itself come beside.
    let is_all = || {
        let of_zebra = frr.routes().is_some_and(|routes| routes.len() == 350);
        let ours = crate::ours(&netns).len() == 350;
        let of_bmp = has(&netns, "bmp:10.1.0.2_post", "300");
        (of_zebra && ours && of_bmp).then_some(())
    };
    wait_until(PATIENCE, "all routes", is_all).unwrap();
    let sources = ["frr", "bmp:10.1.0.2_post"];
    let ask = |source| ["route", "--table", "all", "--source", source, "--json"];
    let live = sources.map(|source| text(&fingerpost(&netns, &ask(source))));
    up.end();
    assert!(!live[0].is_empty() && live[0] != live[1]);
    for (source, live) in sources.into_iter().zip(&live) {
        let replayed = replays(&[&file], &ask(source));
        let said = String::from_utf8_lossy(&replayed.stderr);
        assert_eq!(&text(&replayed), live, "{source}: {said}");
    }
    let why = replays(&[&file], &["route", "why", "20.0.7.0/24"]);
    assert!(text(&why).contains("frr"), "{}", text(&why));
    // Each route came once, for the daemon and for who replays.
    let flaps = [
        "route",
        "flaps",
        "--source",
        "frr",
        "--within",
        "20.0.7.0/24",
    ];
    let told = text(&replays(&[&file], &flaps));
    assert!(
        told.starts_with("frr over 1h: 1 prefix changed\n20.0.7.0/24 changed 1 time: 1 added"),
        "{told}"
    );
    assert_eq!(
        text(&replays(&[&file], &[&flaps[..], &["--count"]].concat())),
        "1\n"
    );
    // A file that is cut off names the place, and has what comes before.
    let bytes = fs::read(&file).unwrap();
    let cut = directory.path().join("cut");
    fs::write(&cut, &bytes[..bytes.len() - 5]).unwrap();
    let replayed = replays(&[&cut], &ask("frr"));
    let said = String::from_utf8_lossy(&replayed.stderr);
    assert_eq!(replayed.status.code(), Some(1), "{said}");
    assert!(said.contains("in the middle of record"), "{said}");
    assert_eq!(text(&replayed), live[0]);
}

/// A frame with a route to 16.x.y.0/24 by a gateway, of a next-hop id.
fn frame(number: u32, id: u8) -> Vec<u8> {
    let [_, _, high, low] = number.to_be_bytes();
    let route = [
        &[52, 0, 0, 0, 24, 0, 1, 5, 0, 0, 0, 0, 1, 0, 0, 0][..],
        &[2, 24, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0],
        &[8, 0, 1, 0, 16, high, low, 0, 8, 0, 6, 0, 20, 0, 0, 0],
        &[8, 0, 30, 0, id, 0, 0, 0],
    ];
    [&[1, 1, 0, 56][..], &route.concat()].concat()
}

#[test]
fn each_part_of_a_recording_has_how_a_feed_stands() {
    let Some(netns) = wired("feed-parts") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("recording");
    let named = file.to_str().unwrap();
    let up = Daemon::up(
        &netns,
        &[
            "--fpm",
            "127.0.0.1",
            "--record",
            named,
            "--record-limit",
            "1M",
        ],
    );
    let connect = || TcpStream::connect("127.0.0.1:2620").unwrap();
    let mut zebra = netns.inside(connect).unwrap();
    let all: Vec<u8> = (0..400).flat_map(|number| frame(number, 7)).collect();
    zebra.write_all(&all).unwrap();
    // Changes, until there are parts that nobody has who has the last; no more
    // at once than leave a part room for how the feed stands.
    let mut round = 0;
    let has_parts = || {
        round = round % 200 + 1;
        let changes = (0..70).flat_map(|number| frame(number, round));
        zebra.write_all(&changes.collect::<Vec<u8>>()).unwrap();
        let recording = recording(&netns);
        assert_eq!(recording["stopped"], Value::Null);
        (recording["part"].as_u64() >= Some(3)).then_some(())
    };
    wait_until(PATIENCE, "parts", has_parts).unwrap();
    zebra.write_all(&frame(1_000, 9)).unwrap();
    let is_last = || has(&netns, "frr", "401").then_some(());
    wait_until(PATIENCE, "the last route", is_last).unwrap();
    let ask = ["route", "--source", "frr", "--json"];
    let live = text(&fingerpost(&netns, &ask));
    // The newest part may have begun just now.
    let before = || {
        fs::metadata(&file)
            .is_ok_and(|file| file.len() > 24_000)
            .then_some(())
    };
    wait_until(PATIENCE, "a part with its beginning", before).unwrap();
    up.end();
    let replayed = replays(&[&file], &ask);
    let said = String::from_utf8_lossy(&replayed.stderr);
    assert_eq!(text(&replayed), live, "{said}");
    let older = directory.path().join("recording.1");
    assert_eq!(text(&replays(&[&older, &file], &ask)), live);
}
