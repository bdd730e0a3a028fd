//! A netlink socket for tests: bounded waits, and every failure is a panic
//! that says what was being done.

use std::time::Duration;

use fingerpost_netlink::decode::{Decoded, decode};
use fingerpost_netlink::message::messages;
use fingerpost_netlink::request::Dump;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Far longer than the kernel ever takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// `RTNLGRP_…` of what is mirrored: LINK, NEIGH, IPV4_IFADDR, IPV4_ROUTE,
/// IPV4_RULE, IPV6_IFADDR, IPV6_ROUTE, IPV6_RULE, MPLS_ROUTE, NEXTHOP.
const GROUPS: &[u32] = &[1, 3, 5, 7, 8, 9, 11, 19, 27, 32];

pub struct Kernel {
    socket: Socket,
    sequence: u32,
}

impl Kernel {
    /// A socket of the thread's namespace, with strict checks and extended
    /// acknowledgements.
    pub fn open() -> Self {
        let mut socket = Socket::new(NETLINK_ROUTE).expect("a netlink socket");
        socket.bind_auto().expect("binding it");
        socket.set_ext_ack(true).expect("extended acknowledgements");
        socket
            .set_netlink_get_strict_chk(true)
            .expect("strict checks");
        socket.set_non_blocking(true).expect("not blocking");
        Self {
            socket,
            sequence: 0,
        }
    }

    /// Joins the groups of all that is mirrored.
    #[allow(dead_code, reason = "not every test that has this module listens")]
    pub fn listen(&mut self) {
        self.socket.set_rx_buf_sz(4u32 << 20).expect("its buffer");
        for group in GROUPS {
            self.socket.add_membership(*group).expect("joining a group");
        }
    }

    pub fn next_sequence(&mut self) -> u32 {
        self.sequence += 1;
        self.sequence
    }

    pub fn send(&self, bytes: &[u8]) {
        let to = SocketAddr::new(0, 0);
        let sent = self.socket.send_to(bytes, &to, 0).expect("sending");
        assert_eq!(sent, bytes.len());
    }

    /// The next datagram; waits for it.
    pub fn receive(&self) -> Vec<u8> {
        lab::wait_until(PATIENCE, "a netlink message", || self.try_receive()).expect("an answer")
    }

    /// The next datagram, if there is one.
    pub fn try_receive(&self) -> Option<Vec<u8>> {
        self.socket.recv_from_full().ok().map(|(bytes, _)| bytes)
    }

    /// All datagrams of a dump, or the errno it failed with.
    pub fn dump(&mut self, dump: Dump) -> Result<Vec<Vec<u8>>, i32> {
        let mut request = Vec::new();
        dump.encode(self.next_sequence(), &mut request);
        self.send(&request);
        let mut datagrams = Vec::new();
        loop {
            let datagram = self.receive();
            let end = messages(&datagram).find_map(|message| {
                match decode(&message.expect("a message"), 0).expect("a sound message") {
                    Decoded::Done { errno, .. } => Some(errno),
                    Decoded::Error { errno, .. } => Some(errno),
                    _ => None,
                }
            });
            datagrams.push(datagram);
            match end {
                Some(0) => return Ok(datagrams),
                Some(errno) => return Err(errno),
                None => {}
            }
        }
    }
}

/// One of every dump.
#[allow(dead_code, reason = "not every test that has this module wants all")]
pub const DUMPS: &[Dump] = &[
    Dump::Links { counters: true },
    Dump::Links { counters: false },
    Dump::Addresses {
        family: 0,
        link: None,
    },
    Dump::Neighbours {
        family: 0,
        link: None,
        master: None,
        proxy: false,
    },
    Dump::Neighbours {
        family: 0,
        link: None,
        master: None,
        proxy: true,
    },
    Dump::Fdb {
        link: None,
        master: None,
    },
    Dump::Routes {
        family: 0,
        table: None,
        link: None,
        protocol: None,
        kind: None,
    },
    Dump::Nexthops,
    Dump::Rules { family: 0 },
];
