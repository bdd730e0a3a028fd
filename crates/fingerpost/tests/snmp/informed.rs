//! Informs: every one is acknowledged, or sent again; a burst loses none.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;

use crate::World;
use crate::common::{PATIENCE, said};

/// Links that come up at once.
const LINKS: usize = 300;
/// linkUp.
const LINK_UP: &[u8] = &[6, 9, 0x2b, 6, 1, 6, 3, 1, 1, 5, 4];
/// ifIndex, up to the link's.
const IF_INDEX: &[u8] = &[0x2b, 6, 1, 2, 1, 2, 2, 1, 1];

fn at(datagram: &[u8], part: &[u8]) -> Option<usize> {
    datagram
        .windows(part.len())
        .position(|window| window == part)
}

/// The link of a linkUp.
fn link(datagram: &[u8]) -> Option<u64> {
    at(datagram, LINK_UP)?;
    let value = at(datagram, IF_INDEX)? + IF_INDEX.len();
    // Behind the rest of the name, whose last octet has no high bit:
    // INTEGER, its length, its octets.
    let rest = &datagram[value..];
    let begin = rest.iter().position(|octet| octet & 0x80 == 0)? + 1;
    let len = usize::from(rest[begin + 1]);
    let octets = &rest[begin + 2..begin + 2 + len];
    Some(
        octets
            .iter()
            .fold(0, |all, &octet| all << 8 | u64::from(octet)),
    )
}

/// The answer to an inform of v2c: the same as a response.
fn acknowledgement(inform: &[u8]) -> Vec<u8> {
    let mut answer = inform.to_vec();
    let pdu = answer.iter().position(|&octet| octet == 0xa6).unwrap();
    answer[pdu] = 0xa2;
    answer
}

#[test]
fn every_link_that_comes_up_is_told_of_though_some_datagrams_are_lost() {
    let Some(world) = World::new("inform", &["ip"]) else {
        return;
    };
    let links: String = (0..LINKS)
        .map(|link| format!("link add d{link} group 7 type ifb\n"))
        .collect();
    world.netns.ip_batch(&links).unwrap();
    let bind = |port: u16| {
        let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        socket
    };
    let [informed, trapped] = world.netns.inside(|| [2001, 2002].map(bind)).unwrap();
    // A trap is told once: on a busy machine its reader may sleep for longer
    // than the pace allows for.
    sockopt::set_socket_recv_buffer_size_force(&trapped, 4 << 20).unwrap();
    let daemon = world.up("[snmp]\nlink_traps = ['d*']\n\
         [[snmp.target]]\naddress = '127.0.0.1:2001'\ninform = true\ntimeout_millis = 200\n\
         retries = 20\n\
         [[snmp.target]]\naddress = '127.0.0.1:2002'\n");
    // Both at once, as two programs would; traps are taken from the first on,
    // since they wait for nobody.
    let traps = thread::spawn(move || trapped_links(&trapped));
    world
        .netns
        .ip(&["link", "set", "group", "7", "up"])
        .unwrap();
    let told = informed_links(&informed);
    assert_eq!(told, traps.join().unwrap());
    lab::wait_until(PATIENCE, "all to be acknowledged", || {
        let status = said(world.fingerpost(&["status"]).output().unwrap());
        status
            .contains(" 0 waiting, 0 given up, 0 dropped")
            .then_some(())
    })
    .unwrap();
    daemon.end();
}

/// Informs until all links are told of; every third that is new gets lost on
/// its way here.
fn informed_links(socket: &UdpSocket) -> BTreeSet<u64> {
    let mut datagram = [0; 2_048];
    let (mut told, mut seen, mut heard) = (BTreeSet::new(), BTreeSet::new(), 0);
    while told.len() < LINKS {
        let (len, from) = socket.recv_from(&mut datagram).unwrap();
        let inform = &datagram[..len];
        heard += 1;
        if seen.insert(inform.to_vec()) && heard % 3 == 0 {
            continue;
        }
        socket.send_to(&acknowledgement(inform), from).unwrap();
        told.extend(link(inform));
    }
    told
}

/// Traps until all links are told of.
fn trapped_links(socket: &UdpSocket) -> BTreeSet<u64> {
    let mut datagram = [0; 2_048];
    let mut told = BTreeSet::new();
    while told.len() < LINKS {
        let len = socket.recv(&mut datagram).unwrap();
        told.extend(link(&datagram[..len]));
    }
    told
}
