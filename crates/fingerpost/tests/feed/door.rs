//! Strangers at the door of a feed: none of them stops the one that feeds.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use lab::{Netns, wait_until};

use crate::common::PATIENCE;
use crate::{fed, ours, status, wired};

/// Of zebra, as a peer that says what it is told to.
struct Peer(TcpStream);

impl Peer {
    fn connect(netns: &Netns) -> Self {
        let connect = || TcpStream::connect("127.0.0.1:2620").unwrap();
        Self(netns.inside(connect).unwrap())
    }

    fn says(&mut self, bytes: &[u8]) {
        // Who was closed on hears of it when it writes.
        let _ = self.0.write_all(bytes);
    }

    /// Whether the other side has closed.
    fn is_closed(&mut self) -> bool {
        self.0
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        match self.0.read(&mut [0; 8]) {
            Ok(read) => read == 0,
            Err(error) => matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ),
        }
    }
}

/// A frame with a static route via a gateway on link 2.
fn route(number: u8) -> Vec<u8> {
    let mut message = Vec::new();
    message.extend(52_u32.to_ne_bytes());
    message.extend(24_u16.to_ne_bytes());
    message.extend(0x501_u16.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([2, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]);
    for (kind, value) in [
        (1_u16, [198, 18, number, 0]),
        (5, [10, 1, 0, 2]),
        (4, 2_u32.to_ne_bytes()),
    ] {
        message.extend(8_u16.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(value);
    }
    let len = u32::try_from(message.len()).unwrap();
    message[..4].copy_from_slice(&len.to_ne_bytes());
    let len = u16::try_from(message.len() + 4).unwrap();
    [&[1, 1][..], &len.to_be_bytes(), &message].concat()
}

fn has(netns: &Netns, routes: usize) {
    let found = || (ours(netns).len() == routes).then_some(());
    let waited = wait_until(PATIENCE, "routes", found);
    assert!(waited.is_ok(), "{routes}, not {:?}", ours(netns));
}

#[test]
fn strangers_do_not_disturb_the_one_that_feeds() {
    let Some(netns) = wired("feed-door") else {
        return;
    };
    let daemon = fed(&netns);
    let mut zebra = Peer::connect(&netns);
    zebra.says(&route(1));
    has(&netns, 1);
    // Silent ones, by the hundred; garbage; half a frame.
    let crowd: Vec<Peer> = (0..300).map(|_| Peer::connect(&netns)).collect();
    let mut liar = Peer::connect(&netns);
    liar.says(b"GET / HTTP/1.1\r\n\r\n");
    assert!(liar.is_closed());
    let mut half = Peer::connect(&netns);
    half.says(&route(9)[..20]);
    zebra.says(&route(2));
    has(&netns, 2);
    let is_turned_away = || (status(&netns)["turned_away"].as_u64() >= Some(290)).then_some(());
    wait_until(PATIENCE, "strangers turned away", is_turned_away).unwrap();
    assert_eq!(status(&netns)["connections"], 1);
    drop(crowd);
    // The same daemon connects anew before its old connection is seen dead.
    let mut anew = Peer::connect(&netns);
    anew.says(&route(3));
    assert!(zebra.is_closed());
    has(&netns, 3);
    let told = status(&netns);
    assert_eq!(
        (&told["connections"], &told["unconfirmed"]),
        (&2.into(), &2.into())
    );
    assert_eq!(told["phase"], "resyncing");
    // A lie ends it, and the rows stay.
    let mut lie = route(4);
    lie[4] = 0xff;
    anew.says(&lie);
    assert!(anew.is_closed());
    daemon.logs("claims 255 bytes");
    has(&netns, 3);
    let told = status(&netns);
    let phase = told["phase"].as_str().unwrap();
    let says = [
        "disconnected: 127.0.0.1:",
        "the frame at byte 56",
        "claims 255 bytes",
    ];
    assert!(says.iter().all(|part| phase.contains(part)), "{phase}");
    assert_eq!(
        (&told["unconfirmed"], &told["malformed"]),
        (&3.into(), &1.into())
    );
    daemon.end();
}
