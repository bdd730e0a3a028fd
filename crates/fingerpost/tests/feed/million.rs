//! A million paths of four peers by a real bgpd, and one of the peers flaps.
//! A chore with figures: `cargo test --release -p fingerpost --test feed --
//! --ignored --nocapture million`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lab::speaker::Speaker;
use lab::{Netns, wait_until};
use serde_json::Value;

use crate::common::{Daemon, at_rest, says};
use crate::frr::{Configuration, Frr};

const PEERS: u8 = 4;
const PATHS: u32 = 250_000;
/// For bgpd, which is the slow one.
const LONG: Duration = Duration::from_secs(600);

/// Rows that the source of a peer has, and when the router said last that
/// the peer went or came, milliseconds since the UNIX epoch.
struct Told {
    name: String,
    rows: u64,
    happened_millis: u64,
}

/// What the sources of all peers have.
fn told(netns: &Netns) -> Vec<Told> {
    let status: Value = serde_json::from_str(&says(netns, &["status", "--json"])).unwrap();
    let feeders = status["feeders"].as_array().unwrap().iter();
    let peers = feeders.filter(|one| one["monitored"].is_object());
    peers
        .map(|one| {
            let happened = one["monitored"]["history"].as_array().unwrap();
            let newest = happened.last().map(|event| event["at_millis"].as_u64());
            Told {
                name: one["name"].as_str().unwrap().to_owned(),
                rows: one["routes"].as_u64().unwrap(),
                happened_millis: newest.flatten().unwrap_or_default(),
            }
        })
        .collect()
}

fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_millis() as u64
}

#[test]
#[ignore = "a chore, minutes of a real bgpd: cargo test -p fingerpost --test feed -- --ignored million"]
fn a_peer_of_four_with_a_million_paths_flaps() {
    let Some(netns) = at_rest("bmp-1m") else {
        return;
    };
    let mut bgpd =
        "router bgp 65001\n bgp router-id 10.1.0.1\n no bgp ebgp-requires-policy\n".to_owned();
    let peers: Vec<Netns> = (1..=PEERS)
        .map(|number| {
            let peer = Netns::new(&format!("bmp-1m-{number}")).unwrap();
            let ours = format!(
                "link add v{number} type veth peer name w{number} netns {}\n\
                 addr add 10.{number}.0.1/24 dev v{number}\nlink set v{number} up\n",
                peer.name()
            );
            netns.ip_batch(&ours).unwrap();
            let theirs =
                format!("addr add 10.{number}.0.2/24 dev w{number}\nlink set w{number} up\n");
            peer.ip_batch(&theirs).unwrap();
            bgpd += &format!(
                " neighbor 10.{number}.0.2 remote-as 65002\n neighbor 10.{number}.0.2 passive\n"
            );
            peer
        })
        .collect();
    bgpd += " bmp targets lab\n  bmp monitor ipv4 unicast post-policy\n  \
        bmp connect 127.0.0.1 port 11019 min-retry 100 max-retry 500\n exit\n";
    let daemon = Daemon::up(&netns, &["--bmp", "127.0.0.1"]);
    let _frr = Frr::start(
        &netns,
        Configuration {
            bgpd: Some(&bgpd),
            ..Configuration::default()
        },
    );
    let began = Instant::now();
    let mut speakers: Vec<Speaker> = Vec::new();
    for (peer, number) in peers.iter().zip(1_u8..) {
        let open = || {
            let opened = peer.inside(|| {
                let at = format!("10.{number}.0.1:179").parse().unwrap();
                Speaker::open(at, 65_002, [10, number, 0, 2].into())
            });
            opened.unwrap().ok()
        };
        let mut speaker = wait_until(LONG, "a session with bgpd", open).unwrap();
        speaker
            .announce(0..PATHS, [10, number, 0, 2].into())
            .unwrap();
        speakers.push(speaker);
    }
    let all = || {
        let told = told(&netns);
        let whole = told.iter().filter(|one| one.rows == u64::from(PATHS));
        (whole.count() == usize::from(PEERS)).then_some(())
    };
    wait_until(LONG, "a million paths", all).unwrap();
    println!(
        "1,000,000 paths of 4 peers are there {:?} after the first session",
        began.elapsed()
    );
    let memory = std::fs::read_to_string(format!("/proc/{}/status", daemon.process.id())).unwrap();
    let memory = memory.lines().find(|line| line.starts_with("VmRSS"));
    println!("the daemon has {}", memory.unwrap());
    for _ in 0..3 {
        let flapped = now_millis();
        drop(speakers.pop());
        let name = format!("bmp:10.{}.0.2_post@", speakers.len() + 1);
        let gone = || {
            let told = told(&netns);
            let others = told.iter().filter(|one| one.rows == u64::from(PATHS));
            assert!(others.count() >= speakers.len(), "the others keep theirs");
            let of_peer = told.into_iter().find(|one| one.name.starts_with(&name));
            let of_peer = of_peer.expect("the source stays, empty");
            (of_peer.rows == 0).then(|| (of_peer.happened_millis, now_millis()))
        };
        let gone = wait_until(LONG, "the paths of the peer to be gone", gone).unwrap();
        let (heard, seen) = (gone.0.saturating_sub(flapped), gone.1 - flapped);
        // Where bgpd tells all withdrawals first, the last of them is not known.
        assert!(heard == 0 || seen - heard < 1_000, "{heard} ms, {seen} ms");
        println!("{name}: bgpd tells {heard} ms after the end, all are seen gone after {seen} ms");
    }
    daemon.end();
}
