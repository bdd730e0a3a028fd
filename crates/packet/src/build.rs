//! Building packets: for tests, benchmarks and generators, which may
//! allocate. Lengths and checksums are right.

use std::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::{Icmp, Ipv4, Tcp, Udp, icmp, ipv4, protocol, tcp, udp};

/// The fields of an IPv4 header that a builder leaves to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Identification.
    pub identification: u16,
    /// Flags and fragment offset as in the header.
    pub flags_and_offset: u16,
    /// Time to live.
    pub ttl: u8,
}

impl Ip {
    /// A header from one address to another: TTL 64, no fragment.
    pub fn new(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self {
            source,
            destination,
            identification: 0,
            flags_and_offset: 0,
            ttl: 64,
        }
    }

    /// A packet that carries some bytes. Options are padded to words, both
    /// are cut to what a header can say.
    pub fn packet(&self, protocol: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let options = options.get(..options.len().min(40)).unwrap_or_default();
        let header_len = ipv4::HEADER_LEN + options.len().next_multiple_of(4);
        let most = usize::from(u16::MAX) - header_len;
        let payload = payload.get(..payload.len().min(most)).unwrap_or_default();
        let total_len = (header_len + payload.len()) as u16;
        let mut bytes = Vec::with_capacity(usize::from(total_len));
        bytes.extend([0x40 | (header_len / 4) as u8, 0]);
        bytes.extend(total_len.to_be_bytes());
        bytes.extend(self.identification.to_be_bytes());
        bytes.extend(self.flags_and_offset.to_be_bytes());
        bytes.extend([self.ttl, protocol, 0, 0]);
        bytes.extend(self.source.octets());
        bytes.extend(self.destination.octets());
        bytes.extend(options);
        bytes.resize(header_len, 0);
        bytes.extend(payload);
        if let Ok(mut packet) = Ipv4::new(bytes.as_mut_slice()) {
            packet.fill_checksum();
        }
        bytes
    }

    /// A UDP datagram.
    pub fn udp(&self, source_port: u16, destination_port: u16, data: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(udp::HEADER_LEN + data.len());
        payload.extend(source_port.to_be_bytes());
        payload.extend(destination_port.to_be_bytes());
        payload.extend(((udp::HEADER_LEN + data.len()) as u16).to_be_bytes());
        payload.extend([0; 2]);
        payload.extend(data);
        let pseudo = self.pseudo(protocol::UDP, payload.len());
        if let Ok(mut datagram) = Udp::new(payload.as_mut_slice()) {
            datagram.fill_checksum(pseudo);
        }
        self.packet(protocol::UDP, &[], &payload)
    }

    /// A TCP segment.
    pub fn tcp(&self, segment: &Segment<'_>) -> Vec<u8> {
        let options = segment.options;
        let options = options.get(..options.len().min(40)).unwrap_or_default();
        let header_len = tcp::HEADER_LEN + options.len().next_multiple_of(4);
        let mut payload = Vec::with_capacity(header_len + segment.data.len());
        payload.extend(segment.source_port.to_be_bytes());
        payload.extend(segment.destination_port.to_be_bytes());
        payload.extend(segment.sequence.to_be_bytes());
        payload.extend(segment.acknowledgement.to_be_bytes());
        payload.extend([(header_len / 4 * 16) as u8, segment.flags]);
        payload.extend(segment.window.to_be_bytes());
        payload.extend([0; 4]);
        payload.extend(options);
        payload.resize(header_len, 0);
        payload.extend(segment.data);
        let pseudo = self.pseudo(protocol::TCP, payload.len());
        if let Ok(mut segment) = Tcp::new(payload.as_mut_slice()) {
            segment.fill_checksum(pseudo);
        }
        self.packet(protocol::TCP, &[], &payload)
    }

    /// An ICMP message; `word` is what stands behind the checksum:
    /// identifier and sequence number of a query.
    pub fn icmp(&self, icmp_type: u8, code: u8, word: [u8; 4], data: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(icmp::HEADER_LEN + data.len());
        payload.extend([icmp_type, code, 0, 0]);
        payload.extend(word);
        payload.extend(data);
        if let Ok(mut message) = Icmp::new(payload.as_mut_slice()) {
            message.fill_checksum(Sum::default());
        }
        self.packet(protocol::ICMP, &[], &payload)
    }

    fn pseudo(&self, protocol: u8, len: usize) -> Sum {
        let (source, destination) = (self.source.octets(), self.destination.octets());
        Sum::pseudo_ipv4(source, destination, protocol, len as u16)
    }
}

/// A TCP segment to be built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Flags ([`tcp::SYN`] …).
    pub flags: u8,
    /// Window, not scaled.
    pub window: u16,
    /// Options; padded with zeros to words.
    pub options: &'a [u8],
    /// Data.
    pub data: &'a [u8],
}
