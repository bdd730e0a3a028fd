//! Informs: every one is acknowledged, or sent again; a burst loses none.
//! Those of version 3 to net-snmp's snmptrapd.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;

use crate::World;
use crate::common::{PATIENCE, said};
use crate::size::size;

/// Links that come up at once, at full size.
const LINKS: usize = 6_000;
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
    let links: String = (0..size(LINKS))
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
    while told.len() < size(LINKS) {
        let (len, from) = received(socket, &mut datagram);
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
    while told.len() < size(LINKS) {
        let (len, _) = received(socket, &mut datagram);
        told.extend(link(&datagram[..len]));
    }
    told
}

/// The next datagram. A socket that waits for a limited time is woken by
/// whatever happens to the process, as when it is stopped and goes on.
fn received(socket: &UdpSocket, datagram: &mut [u8]) -> (usize, SocketAddr) {
    loop {
        match socket.recv_from(datagram) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => return received.unwrap(),
        }
    }
}

/// The receiver's engine.
const ENGINE: &str = "0x80001f8880e9630000d61ff449";

/// net-snmp's receiver, which writes what it is told into a file.
fn snmptrapd(world: &World) -> lab::Child {
    let config = format!(
        "exactEngineID {ENGINE}\ncreateUser anna SHA-256 \"pass phrase\" AES\n\
         authUser log anna authPriv\n"
    );
    let config = world.write("snmptrapd.conf", &config);
    let log = world.path("told");
    let mut command = world.netns.command("snmptrapd");
    command
        .env("SNMP_PERSISTENT_DIR", world.path("trapd"))
        .env("MIBS", "")
        .args(["-f", "-C", "-c", &config, "-On", "-A"])
        .args(["-Lf", log.to_str().unwrap()])
        .args(["-p", world.path("snmptrapd.pid").to_str().unwrap()])
        .arg("udp:127.0.0.1:2001")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    lab::Child::spawn(command).unwrap()
}

/// Waits until the receiver has written a name so often.
fn is_told(world: &World, name: &str, times: usize) {
    let log = world.path("told");
    let told = lab::wait_until(PATIENCE, name, || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        (text.matches(name).count() >= times).then_some(())
    });
    let text = || std::fs::read_to_string(&log).unwrap_or_default();
    assert!(told.is_ok(), "{}", text());
}

#[test]
fn a_receiver_of_version_3_is_found_out_and_told_also_after_its_restart() {
    let Some(world) = World::new("inform3", &["ip", "snmptrapd"]) else {
        return;
    };
    world
        .netns
        .ip(&["link", "add", "d0", "type", "ifb"])
        .unwrap();
    std::fs::create_dir(world.path("trapd")).unwrap();
    let config = "[snmp]\nlink_traps = ['d*']\n[[snmp.target]]\naddress = '127.0.0.1:2001'\n\
        version = '3'\nuser = 'anna'\ninform = true\ntimeout_millis = 1000\nretries = 20\n";
    let receiver = snmptrapd(&world);
    let daemon = world.up(config);
    // Whose keys are missing, and for which engine, is said.
    daemon.logs(&format!("user add anna --engine-id {ENGINE}"));
    let file = world.write("passphrase", "pass phrase\n");
    let add = ["snmp", "user", "add", "anna", "--engine-id", ENGINE];
    let add = [&add[..], &["--passphrase-file", &file]].concat();
    let added = said(world.fingerpost(&add).output().unwrap());
    assert!(
        added.contains(ENGINE) && !added.contains("pass phrase"),
        "{added}"
    );
    daemon.reload();
    // coldStart, linkUp.
    is_told(&world, ".1.3.6.1.6.3.1.1.5.1", 1);
    world.netns.ip(&["link", "set", "d0", "up"]).unwrap();
    is_told(&world, ".1.3.6.1.6.3.1.1.5.4", 1);
    // It is another start of its engine then: all that was known of its time
    // is wrong.
    drop(receiver);
    world.netns.ip(&["link", "set", "d0", "down"]).unwrap();
    let _receiver = snmptrapd(&world);
    is_told(&world, ".1.3.6.1.6.3.1.1.5.3", 1);
    lab::wait_until(PATIENCE, "all to be acknowledged", || {
        let status = said(world.fingerpost(&["status"]).output().unwrap());
        let all = " 3 acknowledged, 0 waiting, 0 given up, 0 dropped";
        status.contains(all).then_some(())
    })
    .unwrap();
    daemon.end();
}
