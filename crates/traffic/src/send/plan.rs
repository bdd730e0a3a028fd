//! What is to be sent, checked: made by `arguments`, read by all others.

use std::time::Duration;

use clap::ValueEnum;

use super::flows::Flows;

/// A way to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// A sendto(2) with its address for each packet
    Sendto,
    /// A send(2) on a connected socket for each packet
    Connected,
    /// A sendmmsg(2) for each batch
    Sendmmsg,
    /// Trains that the kernel or the device cuts (UDP_SEGMENT)
    Segments,
    /// Frames by sendmmsg(2) on an AF_PACKET socket
    AfPacket,
    /// Frames through the ring of an AF_PACKET socket
    AfPacketRing,
    /// Frames through the rings of an AF_XDP socket
    AfXdp,
    /// Our own stack, with the kernel's routes and neighbours mirrored
    Own,
}

impl Way {
    /// Whether whole frames are built here.
    pub fn builds_frames(self) -> bool {
        matches!(self, Self::AfPacket | Self::AfPacketRing | Self::AfXdp)
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What is to be done, checked.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which way.
    pub way: Way,
    /// From where to where.
    pub flows: Flows,
    /// Bytes of each payload.
    pub payload_bytes: usize,
    /// Packets a second, of all cores together.
    pub rate: Option<f64>,
    /// Packets in all.
    pub count: Option<u64>,
    /// How long at most.
    pub duration: Option<Duration>,
    /// Threads.
    pub cores: usize,
    /// Packets that are made together.
    pub batch: usize,
    /// The interface that was asked for.
    pub interface: Option<String>,
    /// The link-layer address that was asked for.
    pub next_hop: Option<[u8; 6]>,
    /// Whether a broadcast address is meant.
    pub broadcast: bool,
    /// Where our own stack sends.
    pub into: Into,
    /// How far packets of our own stack go.
    pub stop_after: Option<Stage>,
    /// Whether the time of each stage is taken.
    pub profile: bool,
    /// Whether the duration was asked for.
    pub is_timed: bool,
    /// Tells this run from others at the receiver.
    pub run: u16,
}

/// Where packets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Into {
    /// Nowhere: they are counted in memory.
    Memory,
    /// Into a TUN device of this name.
    Tun(String),
    /// Out of an interface, by `sendmmsg` on an `AF_PACKET` socket.
    AfPacket,
    /// Through the ring of an `AF_PACKET` socket.
    AfPacketRing,
    /// Through the rings of an `AF_XDP` socket.
    AfXdp,
}

impl std::str::FromStr for Into {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "memory" => Self::Memory,
            "af-packet" => Self::AfPacket,
            "af-packet-ring" => Self::AfPacketRing,
            "af-xdp" => Self::AfXdp,
            _ => match text.strip_prefix("tun:") {
                Some(name) if !name.is_empty() => Self::Tun(name.to_owned()),
                _ => {
                    return Err(
                        "memory, tun:NAME, af-packet, af-packet-ring or af-xdp is expected"
                            .to_owned(),
                    );
                }
            },
        })
    }
}

impl std::fmt::Display for Into {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Tun(name) => write!(f, "tun:{name}"),
            Self::AfPacket => f.write_str("af-packet"),
            Self::AfPacketRing => f.write_str("af-packet-ring"),
            Self::AfXdp => f.write_str("af-xdp"),
        }
    }
}

impl Into {
    /// The way that frames take to the kernel, where they do.
    pub fn way(&self) -> Option<Way> {
        match self {
            Self::Memory | Self::Tun(_) => None,
            Self::AfPacket => Some(Way::AfPacket),
            Self::AfPacketRing => Some(Way::AfPacketRing),
            Self::AfXdp => Some(Way::AfXdp),
        }
    }
}

/// How far packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Stage {
    /// The payload is copied in
    Payload,
    /// A buffer is taken from the pool for it
    Buffer,
    /// IP and UDP headers are written, with their sums
    Header,
    /// The route is looked up
    Route,
    /// The neighbour is looked up and the Ethernet header written
    Neighbour,
    /// The port takes it
    Port,
}

impl Stage {
    /// All, in order.
    pub const ALL: [Self; 6] = [
        Self::Payload,
        Self::Buffer,
        Self::Header,
        Self::Route,
        Self::Neighbour,
        Self::Port,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Buffer => "buffer",
            Self::Header => "header",
            Self::Route => "route",
            Self::Neighbour => "neighbour",
            Self::Port => "port",
        }
    }
}
