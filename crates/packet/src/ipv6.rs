//! IPv6 (RFC 8200) and the walk over its extension headers.

use std::net::Ipv6Addr;

use crate::Malformed;
use crate::checksum::Sum;
use crate::field::{at_least, be16, be32, byte, get, part, put};

/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 40;
/// Extension headers that are walked over before a packet is refused.
pub const MAX_EXTENSIONS: usize = 16;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;

/// An IPv6 packet.
#[derive(Debug, Clone, Copy)]
pub struct Ipv6<B> {
    bytes: B,
    payload_len: u16,
}

/// What stands behind the extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upper<'a> {
    /// Its protocol ([`crate::protocol`]); for a fragment that is not the
    /// first, the protocol that its first one carries.
    pub protocol: u8,
    /// Where this fragment's part begins, in bytes; 0 for whole packets.
    pub fragment_offset_bytes: usize,
    /// Whether more fragments follow.
    pub more_fragments: bool,
    /// Its bytes.
    pub payload: &'a [u8],
}

impl<B: AsRef<[u8]>> Ipv6<B> {
    /// A view of a packet. Refuses another version and a payload length
    /// beyond the bytes.
    pub fn new(bytes: B) -> Result<Self, Malformed> {
        let packet = Self::parse_truncated(bytes)?;
        let (need, have) = (packet.total_len(), packet.bytes.as_ref().len());
        if need > have {
            let header = "IPv6";
            return Err(Malformed::Truncated { header, need, have });
        }
        Ok(packet)
    }

    /// A view of a packet whose end may be missing, as inside an ICMPv6
    /// error (RFC 4443 §3).
    pub fn parse_truncated(bytes: B) -> Result<Self, Malformed> {
        let header = "IPv6";
        at_least(header, bytes.as_ref(), HEADER_LEN)?;
        let version = byte(bytes.as_ref(), 0) >> 4;
        if version != 6 {
            return Err(Malformed::Version { header, version });
        }
        let payload_len = be16(bytes.as_ref(), 4);
        Ok(Self { bytes, payload_len })
    }

    /// Bytes of the whole packet, as its header says. (A jumbogram, RFC
    /// 2675, says 0 for its payload and reads as empty.)
    pub fn total_len(&self) -> usize {
        HEADER_LEN + usize::from(self.payload_len)
    }

    /// Traffic class.
    pub fn traffic_class(&self) -> u8 {
        (be16(self.bytes.as_ref(), 0) >> 4) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        be32(self.bytes.as_ref(), 0) & 0x000f_ffff
    }

    /// What follows the fixed header.
    pub fn next_header(&self) -> u8 {
        byte(self.bytes.as_ref(), 6)
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        byte(self.bytes.as_ref(), 7)
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(get::<16>(self.bytes.as_ref(), 8))
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(get::<16>(self.bytes.as_ref(), 24))
    }

    /// Everything behind the fixed header, as far as it is there.
    pub fn payload(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        let end = self.total_len().min(all.len());
        part(all, HEADER_LEN..end)
    }

    /// What stands behind the extension headers (RFC 8200 §4). At most
    /// [`MAX_EXTENSIONS`] are walked over; more, or a cut one, is malformed.
    pub fn upper(&self) -> Result<Upper<'_>, Malformed> {
        let header = "IPv6 extension";
        let mut upper = Upper {
            protocol: self.next_header(),
            fragment_offset_bytes: 0,
            more_fragments: false,
            payload: self.payload(),
        };
        for _ in 0..MAX_EXTENSIONS {
            let rest = upper.payload;
            let length = match upper.protocol {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY => {
                    at_least(header, rest, 2)?;
                    (usize::from(byte(rest, 1)) + 1) * 8
                }
                AUTHENTICATION => {
                    at_least(header, rest, 2)?;
                    (usize::from(byte(rest, 1)) + 2) * 4
                }
                FRAGMENT => 8,
                _ => return Ok(upper),
            };
            at_least(header, rest, length)?;
            if upper.protocol == FRAGMENT {
                let word = be16(rest, 2);
                upper.fragment_offset_bytes = usize::from(word & 0xfff8);
                upper.more_fragments = word & 1 != 0;
            }
            upper.protocol = byte(rest, 0);
            upper.payload = rest.get(length..).unwrap_or_default();
            if upper.fragment_offset_bytes != 0 {
                return Ok(upper);
            }
        }
        let length = MAX_EXTENSIONS;
        Err(Malformed::Length { header, length })
    }

    /// The sum of the pseudo header for an upper layer of a length.
    pub fn pseudo_header(&self, protocol: u8, length: u32) -> Sum {
        let (source, destination) = (self.source().octets(), self.destination().octets());
        Sum::pseudo_ipv6(source, destination, protocol, length)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ipv6<B> {
    /// Sets the source address. IPv6 has no header checksum; those of the
    /// upper layer are the caller's.
    pub fn set_source(&mut self, address: Ipv6Addr) {
        put(self.bytes.as_mut(), 8, address.octets());
    }

    /// Sets the destination address.
    pub fn set_destination(&mut self, address: Ipv6Addr) {
        put(self.bytes.as_mut(), 24, address.octets());
    }
}
