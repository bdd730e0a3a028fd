//! Packets for measurements: made fast, right in every field.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use memory::Reserved;
use packet::build::{Ip, Segment};
use packet::checksum::Delta;
use packet::{Ipv4, Tcp, protocol, tcp};

/// Bytes of every packet.
pub const LEN: usize = 64;
/// From one packet to the next in [`Area`]: a port's buffer, but not a power
/// of two. Packets exactly that far apart would share cache sets.
pub const STRIDE: usize = 2_112;
/// What all packets of an area take.
const AREA_BYTES: usize = 16 << 20;

/// From where to where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub source: Ipv4Addr,
    pub source_port: u16,
    pub destination: Ipv4Addr,
    pub destination_port: u16,
}

impl Ends {
    /// The other way round.
    pub fn turned(&self) -> Self {
        Self {
            source: self.destination,
            source_port: self.destination_port,
            destination: self.source,
            destination_port: self.source_port,
        }
    }
}

/// A packet of each protocol, of which copies are made.
#[derive(Debug, Clone)]
pub struct Templates {
    udp: Vec<u8>,
    tcp: Vec<u8>,
}

impl Templates {
    pub fn new() -> Self {
        let ip = Ip::new(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
        let segment = Segment {
            sequence: 1,
            acknowledgement: 1,
            flags: tcp::ACK,
            window: u16::MAX,
            data: &[0x5a; LEN - 40],
            ..Segment::default()
        };
        Self {
            udp: ip.udp(0, 0, &[0x5a; LEN - 28]),
            tcp: ip.tcp(&segment),
        }
    }

    /// Writes a packet; the checksums follow by increments.
    pub fn write(&self, is_tcp: bool, ends: &Ends, bytes: &mut [u8]) {
        let template = if is_tcp { &self.tcp } else { &self.udp };
        let Some(bytes) = bytes.get_mut(..template.len()) else {
            return;
        };
        bytes.copy_from_slice(template);
        let Ok(mut ip) = Ipv4::new(&mut *bytes) else {
            return;
        };
        let addresses = ip
            .set_source(ends.source)
            .and(ip.set_destination(ends.destination));
        let ports = Delta::of16(0, ends.source_port.to_be())
            .and(Delta::of16(0, ends.destination_port.to_be()));
        let delta = addresses.and(ports);
        let upper = ip.payload_mut();
        if is_tcp {
            if let Ok(mut tcp) = Tcp::new(upper) {
                tcp.set_source_port(ends.source_port);
                tcp.set_destination_port(ends.destination_port);
                tcp.set_checksum(delta.apply(tcp.checksum()));
            }
        } else if let Ok(mut udp) = packet::Udp::new(upper) {
            udp.set_source_port(ends.source_port);
            udp.set_destination_port(ends.destination_port);
            udp.set_checksum(delta.apply_udp(udp.checksum()));
        }
    }
}

/// The ends of a packet as it stands.
pub fn ends(bytes: &[u8]) -> Option<Ends> {
    let ip = Ipv4::new(bytes).ok()?;
    debug_assert!(matches!(ip.protocol(), protocol::TCP | protocol::UDP));
    let [s0, s1, d0, d1] = *ip.payload().first_chunk::<4>()?;
    Some(Ends {
        source: ip.source(),
        source_port: u16::from_be_bytes([s0, s1]),
        destination: ip.destination(),
        destination_port: u16::from_be_bytes([d0, d1]),
    })
}

/// Buffers with a packet each, on huge pages as a port's are.
pub struct Area {
    bytes: Reserved<u8>,
}

impl Area {
    pub fn new() -> Result<Self> {
        let mut bytes = Reserved::new(AREA_BYTES).context("taking memory for packets")?;
        bytes.prepare(AREA_BYTES);
        while bytes.push(0) {}
        Ok(Self { bytes })
    }

    /// Packets that it holds.
    pub fn len() -> usize {
        AREA_BYTES / STRIDE
    }

    /// The first `count` buffers.
    pub fn buffers(&mut self, count: usize) -> impl Iterator<Item = &mut [u8]> {
        let buffers = self.bytes.chunks_exact_mut(STRIDE).take(count);
        buffers.filter_map(|buffer| buffer.get_mut(..LEN))
    }
}
