//! ICMP (RFC 792) and ICMPv6 (RFC 4443): the header they share.

use crate::Malformed;
use crate::checksum::Sum;
use crate::field::{at_least, be16, byte, get, part, put};

/// Bytes of the header: type, code, checksum, and a word of the type's own.
pub const HEADER_LEN: usize = 8;

/// Echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Destination unreachable.
pub const UNREACHABLE: u8 = 3;
/// Source quench (deprecated by RFC 6633).
pub const SOURCE_QUENCH: u8 = 4;
/// Redirect.
pub const REDIRECT: u8 = 5;
/// Echo request.
pub const ECHO: u8 = 8;
/// Time exceeded.
pub const TIME_EXCEEDED: u8 = 11;
/// Parameter problem.
pub const PARAMETER_PROBLEM: u8 = 12;
/// Timestamp request.
pub const TIMESTAMP: u8 = 13;
/// Timestamp reply.
pub const TIMESTAMP_REPLY: u8 = 14;
/// Information request (RFC 6918: deprecated).
pub const INFORMATION: u8 = 15;
/// Information reply.
pub const INFORMATION_REPLY: u8 = 16;
/// Address mask request (RFC 950; RFC 6918: deprecated).
pub const ADDRESS_MASK: u8 = 17;
/// Address mask reply.
pub const ADDRESS_MASK_REPLY: u8 = 18;

/// ICMPv6: types below are errors (RFC 4443 §2.1).
pub const V6_FIRST_INFORMATIONAL: u8 = 128;
/// ICMPv6 echo request.
pub const V6_ECHO: u8 = 128;
/// ICMPv6 echo reply.
pub const V6_ECHO_REPLY: u8 = 129;

/// What an ICMP (version 4) message is to a translator (RFC 5508 §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request or a reply with an identifier.
    Query,
    /// It carries the packet that caused it.
    Error,
    /// Neither: router discovery and others.
    Other,
}

/// The kind of an ICMP (version 4) type.
#[inline]
pub fn kind(icmp_type: u8) -> Kind {
    match icmp_type {
        ECHO_REPLY | ECHO | TIMESTAMP..=ADDRESS_MASK_REPLY => Kind::Query,
        UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM => Kind::Error,
        _ => Kind::Other,
    }
}

/// An ICMP or ICMPv6 message.
#[derive(Debug, Clone, Copy)]
pub struct Icmp<B>(B);

impl<B: AsRef<[u8]>> Icmp<B> {
    /// A view of a message.
    pub fn new(bytes: B) -> Result<Self, Malformed> {
        at_least("ICMP", bytes.as_ref(), HEADER_LEN)?;
        Ok(Self(bytes))
    }

    /// Its type.
    pub fn icmp_type(&self) -> u8 {
        byte(self.0.as_ref(), 0)
    }

    /// Its code.
    pub fn code(&self) -> u8 {
        byte(self.0.as_ref(), 1)
    }

    /// The checksum, in memory order.
    pub fn checksum(&self) -> u16 {
        u16::from_ne_bytes(get(self.0.as_ref(), 2))
    }

    /// Identifier of a query.
    pub fn identifier(&self) -> u16 {
        be16(self.0.as_ref(), 4)
    }

    /// Sequence number of a query.
    pub fn sequence(&self) -> u16 {
        be16(self.0.as_ref(), 6)
    }

    /// What follows the header: data of a query, the packet that caused an
    /// error.
    pub fn payload(&self) -> &[u8] {
        part(self.0.as_ref(), HEADER_LEN..)
    }

    /// Whether the checksum is right. ICMP has no pseudo header
    /// (`Sum::default()`), ICMPv6 has ([`crate::Ipv6::pseudo_header`]).
    pub fn checksum_is_right(&self, pseudo_header: Sum) -> bool {
        pseudo_header.and(Sum::of(self.0.as_ref())).checksum() == 0
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Icmp<B> {
    /// Sets the identifier of a query; the checksum is the caller's.
    pub fn set_identifier(&mut self, identifier: u16) {
        put(self.0.as_mut(), 4, identifier.to_be_bytes());
    }

    /// Sets the checksum, in memory order.
    pub fn set_checksum(&mut self, checksum: u16) {
        put(self.0.as_mut(), 2, checksum.to_ne_bytes());
    }

    /// Writes the checksum from scratch.
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let checksum = pseudo_header.and(Sum::of(self.0.as_ref())).checksum();
        self.set_checksum(checksum);
    }
}
