//! IPv4 (RFC 791), options included.

use std::net::Ipv4Addr;

use crate::Malformed;
use crate::checksum::{Delta, Sum};
use crate::field::{at_least, be16, byte, get, part, part_mut, put};

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;
/// "Don't fragment", in the word of flags and offset.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// "More fragments", in the word of flags and offset.
pub const MORE_FRAGMENTS: u16 = 0x2000;

/// An IPv4 packet.
#[derive(Debug, Clone, Copy)]
pub struct Ipv4<B> {
    bytes: B,
    header_len: u8,
    total_len: u16,
}

impl<B: AsRef<[u8]>> Ipv4<B> {
    /// A view of a packet. Refuses another version, a header shorter than
    /// it says, and a total length beyond the bytes; bytes behind the total
    /// length (padding, spare room) are no part of the packet.
    #[inline]
    pub fn new(bytes: B) -> Result<Self, Malformed> {
        let packet = Self::parse_truncated(bytes)?;
        let have = packet.bytes.as_ref().len();
        if packet.total_len() > have {
            let need = packet.total_len();
            let header = "IPv4";
            return Err(Malformed::Truncated { header, need, have });
        }
        Ok(packet)
    }

    /// A view of a packet whose end may be missing, as inside an ICMP error
    /// (RFC 792): the header is whole, the payload is what there is.
    #[inline]
    pub fn parse_truncated(bytes: B) -> Result<Self, Malformed> {
        let header = "IPv4";
        let all = bytes.as_ref();
        at_least(header, all, HEADER_LEN)?;
        let first = byte(all, 0);
        if first >> 4 != 4 {
            let version = first >> 4;
            return Err(Malformed::Version { header, version });
        }
        let header_len = (first & 0x0f) * 4;
        let length = usize::from(header_len);
        if length < HEADER_LEN {
            return Err(Malformed::Length { header, length });
        }
        at_least(header, all, length)?;
        let total_len = be16(all, 2);
        if total_len < u16::from(header_len) {
            let length = usize::from(total_len);
            return Err(Malformed::Length { header, length });
        }
        Ok(Self {
            bytes,
            header_len,
            total_len,
        })
    }

    /// Bytes of the header, options included: 20 to 60.
    pub fn header_len(&self) -> usize {
        usize::from(self.header_len)
    }

    /// Bytes of the whole packet, as its header says.
    pub fn total_len(&self) -> usize {
        usize::from(self.total_len)
    }

    /// Type of service: DSCP and ECN (RFC 2474, RFC 3168).
    pub fn tos(&self) -> u8 {
        byte(self.bytes.as_ref(), 1)
    }

    /// Identification, the same in all fragments of a packet.
    pub fn identification(&self) -> u16 {
        be16(self.bytes.as_ref(), 4)
    }

    /// The word of flags and fragment offset.
    pub fn flags_and_offset(&self) -> u16 {
        be16(self.bytes.as_ref(), 6)
    }

    /// Where this fragment's payload begins in the whole one's, in bytes.
    pub fn fragment_offset_bytes(&self) -> usize {
        usize::from(self.flags_and_offset() & 0x1fff) * 8
    }

    /// Whether more fragments follow.
    pub fn more_fragments(&self) -> bool {
        self.flags_and_offset() & MORE_FRAGMENTS != 0
    }

    /// Whether this is a part of a packet, first, middle or last.
    pub fn is_fragment(&self) -> bool {
        self.flags_and_offset() & !DONT_FRAGMENT & 0x3fff != 0
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        byte(self.bytes.as_ref(), 8)
    }

    /// The protocol carried ([`crate::protocol`]).
    pub fn protocol(&self) -> u8 {
        byte(self.bytes.as_ref(), 9)
    }

    /// The header checksum, in memory order (see [`crate::checksum`]).
    pub fn checksum(&self) -> u16 {
        u16::from_ne_bytes(get(self.bytes.as_ref(), 10))
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(get::<4>(self.bytes.as_ref(), 12))
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(get::<4>(self.bytes.as_ref(), 16))
    }

    /// The options, padding included.
    pub fn options(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        part(all, HEADER_LEN..self.header_len())
    }

    /// What the packet carries, as far as it is there.
    pub fn payload(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        let end = self.total_len().min(all.len());
        part(all, self.header_len()..end)
    }

    /// Whether the header checksum is right.
    pub fn checksum_is_right(&self) -> bool {
        Sum::of(part(self.bytes.as_ref(), ..self.header_len())).checksum() == 0
    }

    /// The sum of the pseudo header for what the packet carries.
    pub fn pseudo_header(&self) -> Sum {
        let length = self.total_len() - self.header_len();
        let (source, destination) = (self.source().octets(), self.destination().octets());
        Sum::pseudo_ipv4(source, destination, self.protocol(), length as u16)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ipv4<B> {
    /// Sets the source address and puts the header checksum right.
    /// Returns what that does to a sum over a pseudo header.
    pub fn set_source(&mut self, address: Ipv4Addr) -> Delta {
        self.set_address(12, address)
    }

    /// Sets the destination address and puts the header checksum right.
    /// Returns what that does to a sum over a pseudo header.
    pub fn set_destination(&mut self, address: Ipv4Addr) -> Delta {
        self.set_address(16, address)
    }

    /// Sets the total length and puts the header checksum right. Refuses
    /// (returns `false`, nothing changed) what does not fit into the bytes
    /// or is shorter than the header.
    pub fn set_total_len(&mut self, total_len: u16) -> bool {
        let fits = usize::from(total_len) <= self.bytes.as_ref().len();
        if !fits || total_len < u16::from(self.header_len) {
            return false;
        }
        let old = u16::from_ne_bytes(get(self.bytes.as_ref(), 2));
        let new = total_len.to_be();
        put(self.bytes.as_mut(), 2, new.to_ne_bytes());
        self.total_len = total_len;
        self.update_checksum(Delta::of16(old, new));
        true
    }

    /// What the packet carries, to be changed.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let (from, to) = (self.header_len(), self.total_len());
        let all = self.bytes.as_mut();
        let end = to.min(all.len());
        part_mut(all, from..end)
    }

    /// Writes the header checksum from scratch.
    pub fn fill_checksum(&mut self) {
        let header_len = self.header_len();
        put(self.bytes.as_mut(), 10, [0; 2]);
        let checksum = Sum::of(part(self.bytes.as_ref(), ..header_len)).checksum();
        put(self.bytes.as_mut(), 10, checksum.to_ne_bytes());
    }

    fn set_address(&mut self, at: usize, address: Ipv4Addr) -> Delta {
        let old = u32::from_ne_bytes(get(self.bytes.as_ref(), at));
        let new = address.octets();
        put(self.bytes.as_mut(), at, new);
        let delta = Delta::of32(old, u32::from_ne_bytes(new));
        self.update_checksum(delta);
        delta
    }

    fn update_checksum(&mut self, delta: Delta) {
        let checksum = delta.apply(self.checksum());
        put(self.bytes.as_mut(), 10, checksum.to_ne_bytes());
    }
}
