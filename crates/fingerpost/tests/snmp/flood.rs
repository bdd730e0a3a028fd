//! A flood from many addresses costs time and no memory.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use crate::World;
use crate::common::Daemon;

const SOURCES: u32 = 1_000;
const REQUESTS_OF_EACH: usize = 4;

fn resident_kib(daemon: &Daemon) -> u64 {
    let path = format!("/proc/{}/status", daemon.process.id());
    let text = fs::read_to_string(path).unwrap();
    let line = text.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// GetBulk of v2c: community `public`, `max-repetitions` 2^31-1, of all.
const BULK: &[u8] = &[
    0x30, 0x26, 2, 1, 1, 4, 6, b'p', b'u', b'b', b'l', b'i', b'c', 0xa5, 0x19, 2, 1, 7, 2, 1, 0, 2,
    4, 0x7f, 0xff, 0xff, 0xff, 0x30, 0x0b, 0x30, 0x09, 6, 5, 0x2b, 6, 1, 2, 1, 5, 0,
];

#[test]
fn thousands_of_requests_from_a_thousand_addresses() {
    let Some(world) = World::new("flood", &["snmpget"]) else {
        return;
    };
    let daemon = world.up("[snmp]\nlisten = ['127.0.0.1:1161']\n");
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 1161));
    let flood = || {
        let mut answer = vec![0; 65_536];
        let mut longest = 0;
        for source in 1..=SOURCES {
            // 127.0.0.0/8 is all ours.
            let from = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 0)) + source);
            let socket = UdpSocket::bind((from, 0)).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            let mut ask = || {
                for number in 0..REQUESTS_OF_EACH {
                    // Every other one is cut: no message at all.
                    let cut = BULK.len() - number % 2;
                    socket.send_to(&BULK[..cut], to).unwrap();
                }
                socket.recv_from(&mut answer)
            };
            // No answer where the kernel's lock of links is held for seconds:
            // old counters are not told, and a manager asks again.
            let answered = (0..6).find_map(|_| ask().ok());
            let (len, from) = answered.expect("an answer");
            assert_eq!(from, to);
            longest = longest.max(len);
        }
        longest
    };
    // Once, so that its buffers have their size.
    let longest = world.netns.inside(flood).unwrap();
    assert!(longest > 1_000, "{longest}");
    let before = resident_kib(&daemon);
    world.netns.inside(flood).unwrap();
    let after = resident_kib(&daemon);
    assert!(after < before + 2_048, "{before} KiB, then {after} KiB");
    let words = "-v2c -c public -t 5 127.0.0.1:1161 .1.3.6.1.2.1.11.6.0";
    let got = world.walk("snmpget", words);
    let errors = got[0].1.strip_prefix("Counter32: ").unwrap();
    assert!(errors.parse::<u32>().unwrap() >= SOURCES, "{got:?}");
    daemon.end();
}
