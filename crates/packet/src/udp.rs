//! UDP (RFC 768).

use crate::Malformed;
use crate::checksum::{self, Sum};
use crate::field::{at_least, be16, get, part, put};

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// A UDP datagram, or the first part of one.
#[derive(Debug, Clone, Copy)]
pub struct Udp<B>(B);

impl<B: AsRef<[u8]>> Udp<B> {
    /// A view of a datagram. The length field is not held against the
    /// bytes (a first fragment is shorter): see [`Udp::length`].
    pub fn new(bytes: B) -> Result<Self, Malformed> {
        at_least("UDP", bytes.as_ref(), HEADER_LEN)?;
        Ok(Self(bytes))
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        be16(self.0.as_ref(), 0)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        be16(self.0.as_ref(), 2)
    }

    /// The length field: bytes of header and data.
    pub fn length(&self) -> usize {
        usize::from(be16(self.0.as_ref(), 4))
    }

    /// The checksum, in memory order; 0: there is none.
    pub fn checksum(&self) -> u16 {
        u16::from_ne_bytes(get(self.0.as_ref(), 6))
    }

    /// Its data, as far as it is there.
    pub fn payload(&self) -> &[u8] {
        let all = self.0.as_ref();
        let end = self.length().clamp(HEADER_LEN, all.len());
        part(all, HEADER_LEN..end)
    }

    /// Whether the checksum is right or absent.
    pub fn checksum_is_right(&self, pseudo_header: Sum) -> bool {
        self.checksum() == 0 || pseudo_header.and(Sum::of(self.0.as_ref())).checksum() == 0
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Udp<B> {
    /// Sets the source port; the checksum is the caller's.
    pub fn set_source_port(&mut self, port: u16) {
        put(self.0.as_mut(), 0, port.to_be_bytes());
    }

    /// Sets the destination port; the checksum is the caller's.
    pub fn set_destination_port(&mut self, port: u16) {
        put(self.0.as_mut(), 2, port.to_be_bytes());
    }

    /// Sets the length field; the checksum is the caller's.
    pub fn set_length(&mut self, length_bytes: u16) {
        put(self.0.as_mut(), 4, length_bytes.to_be_bytes());
    }

    /// Sets the checksum, in memory order.
    pub fn set_checksum(&mut self, checksum: u16) {
        put(self.0.as_mut(), 6, checksum.to_ne_bytes());
    }

    /// Writes the checksum from scratch; never 0.
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let sum = pseudo_header.and(Sum::of(self.0.as_ref()));
        self.set_checksum(checksum::udp_field(sum.checksum()));
    }
}
