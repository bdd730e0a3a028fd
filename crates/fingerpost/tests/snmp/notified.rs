//! linkUp and linkDown to targets, in versions 1, 2c and 3.

use std::net::UdpSocket;
use std::time::Duration;

use crate::World;

/// snmpTrapOID's value for linkDown, in BER.
const LINK_DOWN: &[u8] = &[6, 9, 0x2b, 6, 1, 6, 3, 1, 1, 5, 3];
/// linkUp.
const LINK_UP: &[u8] = &[6, 9, 0x2b, 6, 1, 6, 3, 1, 1, 5, 4];

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
    for (state, trap) in [("down", LINK_DOWN), ("up", LINK_UP)] {
        world.netns.ip(&["link", "set", "e0", state]).unwrap();
        // Both ends of the pair, to each of the three.
        for _ in 0..2 {
            let len = sockets[0].recv(&mut datagram).unwrap();
            assert!(contains(&datagram[..len], b"one") && datagram[4] == 0);
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
