//! Sockets of TCP and UDP, as `sock_diag` tells them.

use std::net::IpAddr;

/// Which addresses one end of a socket takes. In the order of
/// `InetAddressType` (RFC 4001).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// Any address of either family.
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// IPv6 on one link.
    Zoned,
}

/// One end of a socket. Ordered as RFC 4022 and RFC 4113 order it: by kind,
/// address, zone, port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Which addresses it takes.
    pub reach: Reach,
    /// The address; unspecified where any is taken.
    pub address: IpAddr,
    /// The link of a link-local address; 0 otherwise.
    pub zone: u32,
    /// The port; 0 where any is taken.
    pub port: u16,
}

/// A socket. Ordered by its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Socket {
    /// Its own end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// Its inode, which tells sockets with the same ends apart; 0 for a
    /// connection that no process has any more.
    pub inode: u32,
    /// `TCP_ESTABLISHED` (1) and so on, `net/tcp_states.h`.
    pub state: u8,
}

/// The sockets of a namespace, as last sampled.
#[derive(Debug, Clone, Default)]
pub struct Sockets {
    /// When they were listed, milliseconds since the UNIX epoch; `None`:
    /// never, or nobody has asked for so long that they were let go.
    pub taken_at_millis: Option<u64>,
    /// Sockets left out because there are more than are kept.
    pub left_out: usize,
    /// Ordered by their ends.
    connections: Vec<Socket>,
    listeners: Vec<Socket>,
    udp: Vec<Socket>,
}

impl Sockets {
    /// From sockets in any order. Of what listens at the same place one is
    /// kept. O(n log n), once a sample.
    pub fn new(
        taken_at_millis: u64,
        mut connections: Vec<Socket>,
        mut listeners: Vec<Socket>,
        mut udp: Vec<Socket>,
    ) -> Self {
        for sockets in [&mut connections, &mut listeners, &mut udp] {
            sockets.sort_unstable();
            sockets.shrink_to_fit();
        }
        connections.dedup_by_key(|socket| (socket.local, socket.remote));
        listeners.dedup_by_key(|socket| socket.local);
        udp.dedup_by_key(|socket| (socket.local, socket.remote, socket.inode));
        Self {
            taken_at_millis: Some(taken_at_millis),
            left_out: 0,
            connections,
            listeners,
            udp,
        }
    }

    /// TCP connections from their ends on (itself included). A seek, then
    /// O(1) a row.
    pub fn connections_from(&self, ends: (Endpoint, Endpoint)) -> impl Iterator<Item = &Socket> {
        let before = |socket: &Socket| (socket.local, socket.remote) < ends;
        from(&self.connections, before)
    }

    /// TCP listeners from an end on. A seek, then O(1) a row.
    pub fn listeners_from(&self, local: Endpoint) -> impl Iterator<Item = &Socket> {
        from(&self.listeners, move |socket: &Socket| socket.local < local)
    }

    /// UDP sockets from their ends and inode on. A seek, then O(1) a row.
    pub fn udp_from(&self, ends: (Endpoint, Endpoint, u32)) -> impl Iterator<Item = &Socket> {
        let before = |socket: &Socket| (socket.local, socket.remote, socket.inode) < ends;
        from(&self.udp, before)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.connections.len() + self.listeners.len() + self.udp.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn from(sockets: &[Socket], before: impl Fn(&Socket) -> bool) -> std::slice::Iter<'_, Socket> {
    let first = sockets.partition_point(before);
    sockets.get(first..).unwrap_or_default().iter()
}
