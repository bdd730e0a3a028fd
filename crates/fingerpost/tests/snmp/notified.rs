//! linkUp and linkDown to targets, in versions 1, 2c and 3.

use std::net::UdpSocket;
use std::time::Duration;

use crate::World;

/// snmpTrapOID's value for linkDown, in BER.
const LINK_DOWN: &[u8] = &[6, 9, 0x2b, 6, 1, 6, 3, 1, 1, 5, 3];
/// linkUp.
const LINK_UP: &[u8] = &[6, 9, 0x2b, 6, 1, 6, 3, 1, 1, 5, 4];

/// snmpTrapOID's value for coldStart or warmStart, up to its last number.
const START: &[u8] = &[6, 9, 0x2b, 6, 1, 6, 3, 1, 1, 5];
/// snmpTraps as the enterprise of a trap of version 1, and the address that
/// it comes from.
const V1_HEAD: &[u8] = &[6, 8, 0x2b, 6, 1, 6, 3, 1, 1, 5, 0x40, 4, 127, 0, 0, 1, 2, 1];

/// Its generic-trap is coldStart (0) or warmStart (1).
fn is_v1_start(datagram: &[u8]) -> bool {
    let at = datagram
        .windows(V1_HEAD.len())
        .position(|window| window == V1_HEAD);
    at.is_some_and(|at| datagram[at + V1_HEAD.len()] < 2)
}

fn contains(datagram: &[u8], part: &[u8]) -> bool {
    datagram.windows(part.len()).any(|window| window == part)
}

#[test]
fn targets_are_told_in_every_version() {
    let Some(world) = World::new("told", &["ip"]) else {
        return;
    };
    world
        .netns
        .ip_batch("link add e0 type veth peer name e1\nlink set e0 up\nlink set e1 up\n")
        .unwrap();
    world.user("anna", "SHA-256", "AES");
    let bind = |port: u16| {
        let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        socket
    };
    let sockets = world.netns.inside(|| [2001, 2002, 2003].map(bind)).unwrap();
    let daemon = world.up("[snmp]\n\
         [[snmp.target]]\naddress = '127.0.0.1:2001'\nversion = '1'\ncommunity = 'one'\n\
         [[snmp.target]]\naddress = '127.0.0.1:2002'\ncommunity = 'two'\n\
         [[snmp.target]]\naddress = '127.0.0.1:2003'\nversion = '3'\nuser = 'anna'\n");
    let mut datagram = [0; 2_048];
    for socket in &sockets {
        // The start of the agent.
        let len = socket.recv(&mut datagram).unwrap();
        let told = &datagram[..len];
        let is_sealed = contains(told, b"anna");
        assert!(
            is_sealed || contains(told, START) || is_v1_start(told),
            "{told:?}"
        );
    }
    for (state, trap) in [("down", LINK_DOWN), ("up", LINK_UP)] {
        world.netns.ip(&["link", "set", "e0", state]).unwrap();
        // Both ends of the pair, to each of the three.
        for _ in 0..2 {
            let len = sockets[0].recv(&mut datagram).unwrap();
            let told = &datagram[..len];
            assert!(contains(told, b"one") && told[4] == 0, "{told:?}");
            assert!(contains(told, V1_HEAD), "{told:?}");
            assert!(contains(told, b"e0") || contains(told, b"e1"), "{told:?}");
            let len = sockets[1].recv(&mut datagram).unwrap();
            let told = &datagram[..len];
            assert!(contains(told, b"two") && contains(told, trap), "{told:?}");
            let len = sockets[2].recv(&mut datagram).unwrap();
            // Encrypted: who speaks is to be seen, what he says is not.
            let told = &datagram[..len];
            assert!(contains(told, b"anna") && !contains(told, trap), "{told:?}");
        }
    }
    daemon.end();
}
