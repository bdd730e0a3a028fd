//! Asked from another host: with a key a walk goes through, without one it
//! does not; and who is told of those that had no right.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use lab::{Netns, skip, wait_until};

use crate::common::{PATIENCE, said};
use crate::{INET_ROUTES, World};

/// Routes of the router.
const ROUTES: usize = 1_000;
/// inetCidrRouteIfIndex, and the routes to 10.66.0.0/16 in it.
const INTERFACES: &str = ".24.7.1.7.1.4.10.66.";
/// snmpTrapOID's value for authenticationFailure, in BER.
const FAILURE: &[u8] = &[6, 9, 0x2b, 6, 1, 6, 3, 1, 1, 5, 5];
/// snmpEnableAuthenTraps.
const ENABLED: &str = ".1.3.6.1.2.1.11.30.0";

/// A router, and a host on a link of it.
fn world(tag: &str) -> Option<(World, Netns)> {
    let world = World::new(tag, &["ip", "snmpget", "snmpbulkwalk"])?;
    let host = skip::unless(Netns::new(&format!("{tag}h")))?;
    world
        .netns
        .ip_batch(
            "link add v0 type veth peer name w0\naddr add 10.77.0.1/24 dev v0\n\
             link set v0 up\n",
        )
        .unwrap();
    let words = ["link", "set", "w0", "netns", host.name()];
    world.netns.ip(&words).unwrap();
    host.ip_batch("addr add 10.77.0.2/24 dev w0\nlink set w0 up\n")
        .unwrap();
    let route = |n: usize| format!("route add blackhole 10.66.{}.{}/32\n", n / 250, n % 250);
    let routes: String = (0..ROUTES).map(route).collect();
    world.netns.ip_batch(&routes).unwrap();
    Some((world, host))
}

/// One of net-snmp's tools, of the host.
fn from_host(world: &World, host: &Netns, tool: &str, words: &str) -> Command {
    let mut command = host.command(tool);
    command
        .env("MIBS", "")
        .env("SNMPCONFPATH", world.path(""))
        .env("SNMP_PERSISTENT_DIR", world.path("net-snmp"))
        .arg("-On")
        .args(words.split_whitespace());
    command
}

#[test]
fn a_walk_from_another_host_goes_through_with_a_key_alone() {
    let Some((world, host)) = world("remote") else {
        return;
    };
    world.user("anna", "SHA-256", "AES");
    let daemon = world.up("[snmp]\nlisten = ['10.77.0.1:1161', '127.0.0.1:1161']\n");
    let walk = |words: &str| {
        let mut command = from_host(&world, &host, "snmpbulkwalk", words);
        if words.starts_with("-v3") {
            command.args(["-u", "anna", "-a", "SHA-256", "-A", "pass phrase"]);
            command.args(["-x", "AES", "-X", "pass phrase"]);
        }
        command.args(["10.77.0.1:1161", INET_ROUTES]);
        command
    };
    // As clients ask by themselves, and as many rows as they like.
    for rows in ["10", "50"] {
        let text = said(
            walk(&format!("-v3 -l authPriv -t 10 -r 2 -Cr{rows}"))
                .output()
                .unwrap(),
        );
        let routes = text.lines().filter(|line| line.contains(INTERFACES));
        assert_eq!(routes.count(), ROUTES, "{rows}");
    }
    let output = walk("-v2c -c public -t 1 -r 0").output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    let status = said(world.fingerpost(&["status"]).output().unwrap());
    assert!(status.contains("SNMP at 10.77.0.1:1161"), "{status}");
    daemon.end();
}

#[test]
fn who_has_no_right_is_told_of_where_it_is_wanted() {
    let Some((world, host)) = world("failed") else {
        return;
    };
    let receiver = world
        .netns
        .inside(|| UdpSocket::bind("127.0.0.1:2001").unwrap())
        .unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    world.user("anna", "SHA-256", "AES");
    let daemon = world.up("[snmp]\nlisten = ['10.77.0.1:1161', '127.0.0.1:1161']\n\
         authentication_failure_traps = true\n\
         [[snmp.target]]\naddress = '127.0.0.1:2001'\n");
    let enabled = world.tool(
        "snmpget",
        &format!("-v2c -c public -t 10 127.0.0.1:1161 {ENABLED}"),
    );
    assert!(enabled.contains("INTEGER: 1"), "{enabled}");
    let wrong = [
        "-v2c -c wrong",
        "-v3 -l noAuthNoPriv -u nobody",
        "-v3 -l authNoPriv -u anna -a SHA-256 -A notthisphrase",
    ];
    for words in wrong {
        let words = format!("{words} -t 1 -r 0 10.77.0.1:1161 {ENABLED}");
        let mut datagram = [0; 2_048];
        // One a second at most: who failed just behind another is asked
        // again.
        wait_until(PATIENCE, "authenticationFailure", || {
            let mut command = from_host(&world, &host, "snmpget", &words);
            assert!(!command.output().unwrap().status.success(), "{words}");
            while let Ok(len) = receiver.recv(&mut datagram) {
                let mut parts = datagram[..len].windows(FAILURE.len());
                if parts.any(|part| part == FAILURE) {
                    return Some(());
                }
            }
            None
        })
        .unwrap();
    }
    daemon.end();
}
