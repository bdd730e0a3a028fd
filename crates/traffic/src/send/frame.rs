//! Whole frames: Ethernet, IPv4 or IPv6, UDP and payload. What does not
//! change within a flow is made once; a packet costs a copy of that, its
//! payload's header and its sum.

use std::net::SocketAddr;

use packet::checksum::{Sum, udp_field};
use packet::{Ipv4, ethernet, ipv4, protocol, udp};

use crate::payload::{HEADER_BYTES, Header};

/// Bytes of an IPv6 header.
const IPV6_BYTES: usize = 40;
/// Headers in front of a payload, without a link's and with it.
const IPV4_PREFIX: usize = ipv4::HEADER_LEN + udp::HEADER_LEN;
const IPV6_PREFIX: usize = IPV6_BYTES + udp::HEADER_LEN;
const IPV4_FRAME: usize = ethernet::HEADER_LEN + IPV4_PREFIX;
/// The longest ones.
const MAX_PREFIX: usize = ethernet::HEADER_LEN + IPV6_PREFIX;
const TTL: u8 = 64;
/// "Don't fragment": an atomic datagram, whose identification means
/// nothing (RFC 6864 §4.1).
const DONT_FRAGMENT: [u8; 2] = [0x40, 0];
/// Where the checksum stands in a UDP header.
const UDP_CHECKSUM: usize = 6;

/// The link-layer addresses of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Of the interface that sends it.
    pub source: [u8; 6],
    /// Of the next hop.
    pub destination: [u8; 6],
}

/// The headers of a flow's frames, but for the sum.
#[derive(Debug, Clone)]
pub struct Prefix {
    bytes: [u8; MAX_PREFIX],
    len: usize,
    /// Of pseudo header and UDP header, its own field left out.
    sum: Sum,
}

impl Prefix {
    /// Headers for payloads of this size, without a link's where there is
    /// none. Source and destination are of one family.
    pub fn new(
        link: Option<Link>,
        source: SocketAddr,
        to: SocketAddr,
        payload_bytes: usize,
    ) -> Self {
        let udp_len = udp::HEADER_LEN + payload_bytes;
        let mut made = Vec::with_capacity(MAX_PREFIX);
        let mut ethertype = |kind: u16| {
            if let Some(link) = link {
                made.extend(link.destination);
                made.extend(link.source);
                made.extend(kind.to_be_bytes());
            }
        };
        match to {
            SocketAddr::V4(_) => ethertype(ethernet::IPV4),
            SocketAddr::V6(_) => ethertype(ethernet::IPV6),
        }
        let pseudo = match (source, to) {
            (SocketAddr::V4(source), SocketAddr::V4(to)) => {
                let start = made.len();
                let (source, to) = (source.ip().octets(), to.ip().octets());
                made.extend([0x45, 0]);
                made.extend(((ipv4::HEADER_LEN + udp_len) as u16).to_be_bytes());
                made.extend([0, 0]);
                made.extend(DONT_FRAGMENT);
                made.extend([TTL, protocol::UDP, 0, 0]);
                made.extend(source);
                made.extend(to);
                fill_ipv4_checksum(&mut made, start);
                Sum::pseudo_ipv4(source, to, protocol::UDP, udp_len as u16)
            }
            (source, to) => {
                let (source, to) = (octets(source), octets(to));
                made.extend([0x60, 0, 0, 0]);
                made.extend((udp_len as u16).to_be_bytes());
                made.extend([protocol::UDP, TTL]);
                made.extend(source);
                made.extend(to);
                Sum::pseudo_ipv6(source, to, protocol::UDP, udp_len as u32)
            }
        };
        let udp = made.len();
        made.extend(source.port().to_be_bytes());
        made.extend(to.port().to_be_bytes());
        made.extend((udp_len as u16).to_be_bytes());
        made.extend([0, 0]);
        let sum = pseudo.and(Sum::of(made.get(udp..).unwrap_or_default()));
        let mut bytes = [0; MAX_PREFIX];
        let len = made.len().min(MAX_PREFIX);
        bytes[..len].copy_from_slice(&made[..len]);
        Self { bytes, len, sum }
    }

    /// Bytes in front of the payload.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes a frame over a slot whose payload behind the header is zeros.
    #[inline(always)]
    pub fn write(&self, slot: &mut [u8], header: &Header) {
        let Some((head, payload)) = slot.split_at_mut_checked(self.len) else {
            return;
        };
        // Copies of a known length are two or three moves, others a call.
        match self.len {
            IPV4_PREFIX => put::<IPV4_PREFIX>(head, &self.bytes),
            IPV6_PREFIX => put::<IPV6_PREFIX>(head, &self.bytes),
            IPV4_FRAME => put::<IPV4_FRAME>(head, &self.bytes),
            _ => put::<MAX_PREFIX>(head, &self.bytes),
        }
        let written = match payload.first_chunk_mut::<HEADER_BYTES>() {
            Some(whole) => header.write_whole(whole),
            None => {
                header.write(payload);
                Sum::of(payload)
            }
        };
        let sum = written.and(self.sum);
        let field = udp_field(sum.checksum()).to_ne_bytes();
        let at = self.len - udp::HEADER_LEN + UDP_CHECKSUM;
        if let Some(to) = head.get_mut(at..at + 2) {
            to.copy_from_slice(&field);
        }
    }
}

#[inline(always)]
fn put<const N: usize>(head: &mut [u8], bytes: &[u8; MAX_PREFIX]) {
    if let (Some(head), Some(bytes)) = (head.first_chunk_mut::<N>(), bytes.first_chunk::<N>()) {
        *head = *bytes;
    }
}

fn fill_ipv4_checksum(made: &mut [u8], start: usize) {
    // The length field speaks of more than is here: the view is cut.
    if let Some(Ok(mut header)) = made.get_mut(start..).map(Ipv4::parse_truncated) {
        header.fill_checksum();
    }
}

fn octets(address: SocketAddr) -> [u8; 16] {
    match address {
        SocketAddr::V4(v4) => v4.ip().to_ipv6_mapped().octets(),
        SocketAddr::V6(v6) => v6.ip().octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::{Ethernet, Ipv6, Udp};

    const LINK: Link = Link {
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 0, 2],
    };

    fn frame(source: &str, to: &str, payload: usize) -> Vec<u8> {
        let prefix = Prefix::new(
            Some(LINK),
            source.parse().unwrap(),
            to.parse().unwrap(),
            payload,
        );
        let mut slot = vec![0; prefix.len() + payload];
        for sequence in [7, 8] {
            let header = Header {
                run: 1,
                flow: 2,
                sequence,
                time_nanos: 3,
            };
            prefix.write(&mut slot, &header);
        }
        slot
    }

    #[test]
    fn frames_are_whole_and_their_sums_right() {
        for payload in [0, 1, 17, 18, 19, 64, 1_400] {
            let frame4 = frame("10.0.0.1:5", "10.0.0.2:9", payload);
            let link = Ethernet::new(&frame4).unwrap();
            assert_eq!((link.source(), link.ethertype()), (LINK.source, 0x0800));
            let ip = Ipv4::new(link.payload()).unwrap();
            assert!(ip.checksum_is_right() && ip.total_len() == 28 + payload);
            let udp = Udp::new(ip.payload()).unwrap();
            assert!(udp.checksum_is_right(ip.pseudo_header()) && udp.checksum() != 0);
            assert_eq!((udp.source_port(), udp.destination_port()), (5, 9));

            let frame6 = frame("[2001:db8::1]:5", "[2001:db8::2]:9", payload);
            let ip = Ipv6::new(&frame6[14..]).unwrap();
            assert_eq!(ip.total_len(), 48 + payload);
            let pseudo = ip.pseudo_header(protocol::UDP, (8 + payload) as u32);
            let udp = Udp::new(ip.payload()).unwrap();
            assert!(udp.checksum_is_right(pseudo));
            let read = Header::read(udp.payload());
            assert_eq!(
                read.map(|header| header.sequence),
                (payload >= 18).then_some(8)
            );
        }
    }

    #[test]
    fn without_a_link_the_rest_is_the_same() {
        for (source, to) in [
            ("10.0.0.1:5", "10.0.0.2:9"),
            ("[2001:db8::1]:5", "[2001:db8::2]:9"),
        ] {
            let (from, at) = (source.parse().unwrap(), to.parse().unwrap());
            let prefix = Prefix::new(None, from, at, 20);
            let mut slot = vec![0; prefix.len() + 20];
            let header = Header {
                run: 1,
                flow: 2,
                sequence: 8,
                time_nanos: 3,
            };
            prefix.write(&mut slot, &header);
            assert_eq!(slot, frame(source, to, 20)[ethernet::HEADER_LEN..]);
        }
    }

    #[test]
    fn a_slot_that_is_too_short_is_left_alone() {
        let prefix = Prefix::new(
            Some(LINK),
            "10.0.0.1:5".parse().unwrap(),
            "10.0.0.2:9".parse().unwrap(),
            18,
        );
        let header = Header {
            run: 0,
            flow: 0,
            sequence: 0,
            time_nanos: 0,
        };
        let mut slot = [7; 41];
        prefix.write(&mut slot, &header);
        assert_eq!(slot, [7; 41]);
    }
}
