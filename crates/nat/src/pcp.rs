//! What inside hosts ask of the translator itself: PCP (RFC 6887, with port
//! sets by RFC 7753) and NAT-PMP (RFC 6886), its version 0.
//!
//! Here are the bytes of requests and answers, and the leases that came of
//! them; what is done about a request is beside the engine
//! (`engine/pcp.rs`), which answers a packet where it comes by. Time is an
//! argument, there is no socket.

pub(crate) mod datagram;
pub(crate) mod leases;
pub(crate) mod message;
pub(crate) mod natpmp;
pub(crate) mod options;

use std::net::{IpAddr, Ipv4Addr};

/// The port that requests are sent to (RFC 6887 §19).
pub const PORT: u16 = 5_351;
/// The port that announcements are sent to (RFC 6887 §14.1).
pub const CLIENT_PORT: u16 = 5_350;
/// Who hears announcements (RFC 6887 §14.1).
pub const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// Whether and how requests are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PcpConfig {
    /// The translator's inside addresses that requests are sent to; none:
    /// nobody is answered. The first one is where announcements come from.
    pub addresses: Vec<Ipv4Addr>,
    /// The shortest lifetime that is given, seconds (RFC 6887 §15: 120).
    pub least_secs: u32,
    /// The longest one, seconds (RFC 6887 §15: a day).
    pub most_secs: u32,
    /// Ports that one inside address may have by leases.
    pub most_ports: u32,
    /// Leases of all together.
    pub most_leases: usize,
}

impl PcpConfig {
    /// Most inside addresses of the translator.
    pub const MOST_ADDRESSES: usize = 16;
}

impl Default for PcpConfig {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            least_secs: 120,
            most_secs: 86_400,
            most_ports: 64,
            most_leases: 65_536,
        }
    }
}

/// A lease: alias ports that an inside host has asked for. Ports are in host
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseView {
    /// Protocol number.
    pub protocol: u8,
    /// The host inside.
    pub inside: IpAddr,
    /// Its first port.
    pub inside_port: u16,
    /// The alias address.
    pub alias: IpAddr,
    /// The first alias port.
    pub alias_port: u16,
    /// How many ports in a row.
    pub ports: u16,
    /// The remote end it is for (PEER); `None`: any.
    pub remote: Option<(IpAddr, u16)>,
    /// Milliseconds that it still lives.
    pub expires_millis: u64,
}
