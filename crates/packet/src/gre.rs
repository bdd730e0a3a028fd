//! GRE (RFC 2784, RFC 2890) and PPTP's enhanced GRE (RFC 2637 §4.1).

use crate::Malformed;
use crate::field::{at_least, be16, be32, byte, part, put};

/// Bytes of the shortest header.
pub const HEADER_LEN: usize = 4;
/// Protocol type of PPP inside GRE.
pub const PPP: u16 = 0x880b;

const CHECKSUM: u8 = 0x80;
const ROUTING: u8 = 0x40;
const KEY: u8 = 0x20;
const SEQUENCE: u8 = 0x10;
const ACKNOWLEDGEMENT: u8 = 0x80;

/// The call of PPTP's GRE whose end may be missing, as inside an ICMP error:
/// the first eight bytes have it (RFC 2637 §4.1, RFC 792).
pub fn call_id_of_cut(bytes: &[u8]) -> Option<u16> {
    let [first, second, p0, p1, _, _, c0, c1] = *bytes.first_chunk::<8>()?;
    let is_pptp = first & KEY != 0 && second & 0x07 == 1 && u16::from_be_bytes([p0, p1]) == PPP;
    is_pptp.then(|| u16::from_be_bytes([c0, c1]))
}

/// A GRE packet.
#[derive(Debug, Clone, Copy)]
pub struct Gre<B> {
    bytes: B,
    header_len: u8,
}

impl<B: AsRef<[u8]>> Gre<B> {
    /// A view of a packet. Refuses a header shorter than its flags say.
    pub fn new(bytes: B) -> Result<Self, Malformed> {
        at_least("GRE", bytes.as_ref(), HEADER_LEN)?;
        let (first, second) = (byte(bytes.as_ref(), 0), byte(bytes.as_ref(), 1));
        let word = |present: bool| if present { 4 } else { 0 };
        let mut header_len = HEADER_LEN as u8;
        header_len += word(first & (CHECKSUM | ROUTING) != 0);
        header_len += word(first & KEY != 0);
        header_len += word(first & SEQUENCE != 0);
        if second & 0x07 == 1 {
            header_len += word(second & ACKNOWLEDGEMENT != 0);
        }
        at_least("GRE", bytes.as_ref(), usize::from(header_len))?;
        Ok(Self { bytes, header_len })
    }

    /// Version: 0, or 1 for enhanced GRE.
    pub fn version(&self) -> u8 {
        byte(self.bytes.as_ref(), 1) & 0x07
    }

    /// What is carried, as an EtherType.
    pub fn protocol_type(&self) -> u16 {
        be16(self.bytes.as_ref(), 2)
    }

    /// Bytes of the header with its optional words.
    pub fn header_len(&self) -> usize {
        usize::from(self.header_len)
    }

    /// Whether this is PPTP's: version 1, PPP, with a key (RFC 2637 §4.1).
    pub fn is_pptp(&self) -> bool {
        let keyed = byte(self.bytes.as_ref(), 0) & KEY != 0;
        self.version() == 1 && keyed && self.protocol_type() == PPP
    }

    /// The key of version 0 (RFC 2890 §2.1).
    pub fn key(&self) -> Option<u32> {
        let first = byte(self.bytes.as_ref(), 0);
        if self.version() != 0 || first & KEY == 0 {
            return None;
        }
        let at = if first & (CHECKSUM | ROUTING) != 0 {
            8
        } else {
            4
        };
        Some(be32(self.bytes.as_ref(), at))
    }

    /// The call of PPTP: the receiver's identifier.
    pub fn call_id(&self) -> Option<u16> {
        self.is_pptp().then(|| be16(self.bytes.as_ref(), 6))
    }

    /// What is carried, as far as it is there.
    pub fn payload(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        part(all, self.header_len()..)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Gre<B> {
    /// Sets the call of PPTP. Enhanced GRE has no checksum. Returns whether
    /// there was one to set.
    pub fn set_call_id(&mut self, call_id: u16) -> bool {
        if !self.is_pptp() {
            return false;
        }
        put(self.bytes.as_mut(), 6, call_id.to_be_bytes());
        true
    }
}
