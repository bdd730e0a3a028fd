//! Counters of links that nobody has read yet, while somebody holds the
//! kernel's lock of links (RTNL) from before the first question on.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use lab::{Child, Netns, skip};

use crate::World;

/// IF-MIB's tables of columns, and FINGERPOST-MIB's age of counters.
const IN_OCTETS: &str = ".1.3.6.1.2.1.31.1.1.1.6";
const IN_DISCARDS: &str = ".1.3.6.1.2.1.2.2.1.13";
const AGE: &str = ".1.3.6.1.4.1.8072.9999.9999.26224.1.1.4.1.2";
/// Sends a frame of a protocol that nobody takes.
const STRAY: &str = "import socket\ns = socket.socket(17, 3)\ns.bind(('e0', 0))\n\
     s.send(bytes(6 * [255] + [2, 0, 0, 0, 0, 1, 0x12, 0x34] + 50 * [0]))";

/// Somebody who holds the lock until this is dropped; `None`, and counted as
/// skipped, where that may not be.
struct Held(#[allow(dead_code, reason = "it ends when dropped")] Child);

impl Held {
    fn by(netns: &Netns, link: &str) -> Option<Self> {
        let mut command = netns.command("python3");
        command
            .args(["-c", include_str!("hold_rtnl.py"), link])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = Child::spawn(command).unwrap();
        let said = child.process().stdout.take().unwrap();
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).unwrap();
        if line.trim() != "held" {
            skip::skip("the kernel's lock of links cannot be held (userfaultfd)");
            return None;
        }
        Some(Self(child))
    }
}

/// What the kernel's file says that came in at a link: octets and packets
/// that were dropped.
fn received(netns: &Netns, link: &str) -> (u64, u64) {
    let text = netns.run("cat", &["/proc/net/dev"]).unwrap();
    let of_link = |line: &str| {
        let (name, rest) = line.trim().split_once(':')?;
        let numbers: Vec<u64> = rest
            .split_whitespace()
            .map_while(|n| n.parse().ok())
            .collect();
        (name == link).then(|| (numbers[0], numbers[3]))
    };
    text.lines().find_map(of_link).unwrap()
}

fn index(netns: &Netns, link: &str) -> String {
    let line = netns.ip(&["-o", "link", "show", link]).unwrap();
    line.split(':').next().unwrap().to_owned()
}

#[test]
fn a_link_that_nobody_has_read_yet_is_told_though_the_lock_of_links_is_held() {
    let Some(world) = World::new("held", &["snmpget", "python3"]) else {
        return;
    };
    let netns = &world.netns;
    netns
        .ip_batch("link add e0 type veth peer name e1\nlink set e0 up\nlink set e1 up\n")
        .unwrap();
    for _ in 0..3 {
        netns.run("python3", &["-c", STRAY]).unwrap();
    }
    let (lo, e1) = (index(netns, "lo"), index(netns, "e1"));
    let daemon = world.up("");
    let ask = |names: &str| {
        let words = format!("-v2c -c public -t 20 -r 0 -OQ 127.0.0.1:1161 {names}");
        let got = world.walk("snmpget", &words);
        got.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    let before = received(netns, "e1");
    let Some(held) = Held::by(netns, "e0") else {
        return daemon.end();
    };
    let told = ask(&format!(
        "{IN_OCTETS}.{e1} {AGE}.{e1} {IN_DISCARDS}.{e1} {IN_DISCARDS}.{lo}"
    ));
    drop(held);
    let after = received(netns, "e1");
    let octets: u64 = told[0].parse().unwrap();
    assert!(
        (before.0..=after.0).contains(&octets),
        "{before:?} {told:?} {after:?}"
    );
    assert!(told[1].parse::<u64>().unwrap() <= 1_000, "{told:?}");
    // The file has dropped packets only in a sum with others: where that is
    // not 0 they are not told, until they are known.
    assert!(before.1 > 0, "{before:?}");
    assert_eq!(
        told[2..],
        ["No Such Instance currently exists at this OID", "0"]
    );
    let dropped = lab::wait_until(crate::common::PATIENCE, "what was dropped", || {
        ask(&format!("{IN_DISCARDS}.{e1}"))[0].parse::<u64>().ok()
    });
    assert!((before.1..=received(netns, "e1").1).contains(&dropped.unwrap()));
    daemon.end();
}
