//! TCP (RFC 9293), options included.

use crate::Malformed;
use crate::checksum::Sum;
use crate::field::{at_least, be16, be32, byte, get, part, part_mut, put};

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

/// No more data from the sender.
pub const FIN: u8 = 0x01;
/// Synchronize sequence numbers.
pub const SYN: u8 = 0x02;
/// Reset the connection.
pub const RST: u8 = 0x04;
/// Push.
pub const PSH: u8 = 0x08;
/// The acknowledgement number counts.
pub const ACK: u8 = 0x10;
/// The urgent pointer counts.
pub const URG: u8 = 0x20;

/// Kind of the end of the option list.
pub const OPTION_END: u8 = 0;
/// Kind of an option without meaning.
pub const OPTION_NOP: u8 = 1;
/// Kind of the maximum segment size.
pub const OPTION_MSS: u8 = 2;
/// Kind of the window scale (RFC 7323 §2).
pub const OPTION_WINDOW_SCALE: u8 = 3;
/// Kind of "SACK permitted" (RFC 2018 §2).
pub const OPTION_SACK_PERMITTED: u8 = 4;
/// Kind of a selective acknowledgement (RFC 2018 §3).
pub const OPTION_SACK: u8 = 5;
/// Kind of the timestamps (RFC 7323 §3).
pub const OPTION_TIMESTAMPS: u8 = 8;

/// A TCP segment.
#[derive(Debug, Clone, Copy)]
pub struct Tcp<B> {
    bytes: B,
    header_len: u8,
}

impl<B: AsRef<[u8]>> Tcp<B> {
    /// A view of a segment. Refuses a header shorter than it says.
    pub fn new(bytes: B) -> Result<Self, Malformed> {
        let header = "TCP";
        at_least(header, bytes.as_ref(), HEADER_LEN)?;
        let header_len = (byte(bytes.as_ref(), 12) >> 4) * 4;
        let length = usize::from(header_len);
        if length < HEADER_LEN {
            return Err(Malformed::Length { header, length });
        }
        at_least(header, bytes.as_ref(), length)?;
        Ok(Self { bytes, header_len })
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        be16(self.bytes.as_ref(), 0)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        be16(self.bytes.as_ref(), 2)
    }

    /// Sequence number.
    pub fn sequence(&self) -> u32 {
        be32(self.bytes.as_ref(), 4)
    }

    /// Acknowledgement number; counts if [`ACK`] is set.
    pub fn acknowledgement(&self) -> u32 {
        be32(self.bytes.as_ref(), 8)
    }

    /// Bytes of the header, options included: 20 to 60.
    pub fn header_len(&self) -> usize {
        usize::from(self.header_len)
    }

    /// The flags from [`FIN`] on.
    pub fn flags(&self) -> u8 {
        byte(self.bytes.as_ref(), 13)
    }

    /// The window, not scaled.
    pub fn window(&self) -> u16 {
        be16(self.bytes.as_ref(), 14)
    }

    /// The checksum, in memory order.
    pub fn checksum(&self) -> u16 {
        u16::from_ne_bytes(get(self.bytes.as_ref(), 16))
    }

    /// The options, padding included.
    pub fn option_bytes(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        part(all, HEADER_LEN..self.header_len())
    }

    /// The options one after the other; ends at the first that is broken.
    pub fn options(&self) -> Options<'_> {
        Options {
            rest: self.option_bytes(),
            at: HEADER_LEN,
        }
    }

    /// Its data.
    pub fn payload(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        part(all, self.header_len()..)
    }

    /// Whether the checksum is right.
    pub fn checksum_is_right(&self, pseudo_header: Sum) -> bool {
        pseudo_header.and(Sum::of(self.bytes.as_ref())).checksum() == 0
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Tcp<B> {
    /// Sets the source port; the checksum is the caller's.
    pub fn set_source_port(&mut self, port: u16) {
        put(self.bytes.as_mut(), 0, port.to_be_bytes());
    }

    /// Sets the destination port; the checksum is the caller's.
    pub fn set_destination_port(&mut self, port: u16) {
        put(self.bytes.as_mut(), 2, port.to_be_bytes());
    }

    /// Sets the sequence number; the checksum is the caller's.
    pub fn set_sequence(&mut self, sequence: u32) {
        put(self.bytes.as_mut(), 4, sequence.to_be_bytes());
    }

    /// Sets the acknowledgement number; the checksum is the caller's.
    pub fn set_acknowledgement(&mut self, acknowledgement: u32) {
        put(self.bytes.as_mut(), 8, acknowledgement.to_be_bytes());
    }

    /// Sets the checksum, in memory order.
    pub fn set_checksum(&mut self, checksum: u16) {
        put(self.bytes.as_mut(), 16, checksum.to_ne_bytes());
    }

    /// The options, to be changed in place; the checksum is the caller's.
    pub fn option_bytes_mut(&mut self) -> &mut [u8] {
        let end = self.header_len();
        let all = self.bytes.as_mut();
        part_mut(all, HEADER_LEN..end)
    }

    /// Its data, to be changed; the checksum is the caller's.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let from = self.header_len();
        part_mut(self.bytes.as_mut(), from..)
    }

    /// Writes the checksum from scratch.
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let sum = pseudo_header.and(Sum::of(self.bytes.as_ref()));
        self.set_checksum(sum.checksum());
    }
}

/// An option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// Its kind.
    pub kind: u8,
    /// Where its data begins, in bytes from the start of the TCP header.
    pub at: usize,
    /// Its data, without kind and length.
    pub data: &'a [u8],
}

/// The options of a segment, one after the other, NOPs left out.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Options<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        while let [OPTION_NOP, rest @ ..] = self.rest {
            self.rest = rest;
            self.at += 1;
        }
        let [kind, length, ..] = *self.rest else {
            return None;
        };
        if kind == OPTION_END {
            return None;
        }
        // A length below 2 or beyond the end: nothing behind it is sound.
        let length = usize::from(length);
        let Some(data) = self.rest.get(2..length) else {
            self.rest = &[];
            return None;
        };
        let option = TcpOption {
            kind,
            at: self.at + 2,
            data,
        };
        self.rest = part(self.rest, length..);
        self.at += length;
        Some(option)
    }
}
