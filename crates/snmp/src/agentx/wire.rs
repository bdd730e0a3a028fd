//! AgentX messages as octets (RFC 2741 §5, §6): total on any input, in
//! both byte orders. Called by [`super::answer`], [`super::Session`] and
//! [`super::Master`].

use thiserror::Error;

use super::owned::{OwnedValue, Row};
use crate::oid::{MAX_SUB_IDS, Name};

mod message;

pub use message::Message;
#[cfg(test)]
pub use message::type_of;

/// Octets before each message's payload (RFC 2741 §6.1).
pub const HEADER_BYTES: usize = 20;
/// A longer payload is refused: ten times what a master can make of the
/// longest SNMP message.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;
/// What a subagent says of itself is kept so far.
pub const MAX_DESCRIPTION_CHARS: usize = 128;
/// The only version there is.
const VERSION: u8 = 1;
/// What a prefix octet stands for: 1.3.6.1, then the octet.
const INTERNET: [u32; 4] = [1, 3, 6, 1];

/// `h.type` (RFC 2741 §6.1).
#[allow(missing_docs, reason = "each is the message it names")]
pub mod kind {
    pub const OPEN: u8 = 1;
    pub const CLOSE: u8 = 2;
    pub const REGISTER: u8 = 3;
    pub const UNREGISTER: u8 = 4;
    pub const GET: u8 = 5;
    pub const GET_NEXT: u8 = 6;
    pub const GET_BULK: u8 = 7;
    pub const TEST_SET: u8 = 8;
    pub const COMMIT_SET: u8 = 9;
    pub const UNDO_SET: u8 = 10;
    pub const CLEANUP_SET: u8 = 11;
    pub const NOTIFY: u8 = 12;
    pub const PING: u8 = 13;
    pub const INDEX_ALLOCATE: u8 = 14;
    pub const INDEX_DEALLOCATE: u8 = 15;
    pub const ADD_AGENT_CAPS: u8 = 16;
    pub const REMOVE_AGENT_CAPS: u8 = 17;
    pub const RESPONSE: u8 = 18;
}

/// `h.flags` (RFC 2741 §6.1).
#[allow(missing_docs, reason = "each is the flag it names")]
pub mod flag {
    pub const NEW_INDEX: u8 = 0x02;
    pub const ANY_INDEX: u8 = 0x04;
    pub const NON_DEFAULT_CONTEXT: u8 = 0x08;
    pub const NETWORK_BYTE_ORDER: u8 = 0x10;
}

/// `res.error` (RFC 2741 §6.2.16, RFC 3416 §3).
#[allow(missing_docs, reason = "each is the error it names")]
pub mod error {
    pub const NONE: u16 = 0;
    pub const GEN_ERR: u16 = 5;
    pub const COMMIT_FAILED: u16 = 14;
    pub const UNDO_FAILED: u16 = 15;
    pub const NOT_WRITABLE: u16 = 17;
    pub const OPEN_FAILED: u16 = 256;
    pub const NOT_OPEN: u16 = 257;
    pub const INDEX_WRONG_TYPE: u16 = 258;
    pub const INDEX_ALREADY_ALLOCATED: u16 = 259;
    pub const INDEX_NONE_AVAILABLE: u16 = 260;
    pub const INDEX_NOT_ALLOCATED: u16 = 261;
    pub const UNSUPPORTED_CONTEXT: u16 = 262;
    pub const DUPLICATE_REGISTRATION: u16 = 263;
    pub const UNKNOWN_REGISTRATION: u16 = 264;
    pub const UNKNOWN_AGENT_CAPS: u16 = 265;
    pub const PARSE_ERROR: u16 = 266;
    pub const REQUEST_DENIED: u16 = 267;
    pub const PROCESSING_ERROR: u16 = 268;
}

/// `c.reason` (RFC 2741 §6.2.2).
#[allow(missing_docs, reason = "each is the reason it names")]
pub mod reason {
    pub const OTHER: u8 = 1;
    pub const PARSE_ERROR: u8 = 2;
    pub const PROTOCOL_ERROR: u8 = 3;
    pub const TIMEOUTS: u8 = 4;
    pub const SHUTDOWN: u8 = 5;
}

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Not version 1.
    #[error("AgentX version {0}, where only 1 is known")]
    Version(u8),
    /// More payload than anybody needs, or not a multiple of four.
    #[error("an AgentX payload of {0} octets")]
    PayloadLength(u32),
    /// It ends before what it must hold.
    #[error("an AgentX message ends in the middle of {0}")]
    Short(&'static str),
    /// A name with more sub-identifiers than a name may have.
    #[error("a name of more than {MAX_SUB_IDS} sub-identifiers")]
    LongName,
    /// A value of a type that there is not, or of a wrong length.
    #[error("a value of type {0} that is none (RFC 2741 §5.4)")]
    Value(u16),
}

/// A message's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `h.type`, see [`kind`].
    pub kind: u8,
    /// `h.flags`, see [`flag`].
    pub flags: u8,
    /// `h.sessionID`.
    pub session: u32,
    /// `h.transactionID`.
    pub transaction: u32,
    /// `h.packetID`.
    pub packet: u32,
    /// Octets that follow.
    pub payload_len: usize,
}

impl Header {
    /// Reads a header; `None` when there are not octets enough for one.
    /// O(1).
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [version, kind, flags, ..] = *bytes;
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let mut rest = Payload::new(&bytes[4..], flags);
        let session = rest.word("the header")?;
        let transaction = rest.word("the header")?;
        let packet = rest.word("the header")?;
        let len = rest.word("the header")?;
        let payload_len = len as usize;
        if payload_len > MAX_PAYLOAD_BYTES || !payload_len.is_multiple_of(4) {
            return Err(Malformed::PayloadLength(len));
        }
        Ok(Some(Self {
            kind,
            flags,
            session,
            transaction,
            packet,
            payload_len,
        }))
    }
}

/// What is left of a payload to read.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    rest: &'a [u8],
    network_order: bool,
}

impl<'a> Payload<'a> {
    /// The payload of a message with these flags.
    pub fn new(bytes: &'a [u8], flags: u8) -> Self {
        Self {
            rest: bytes,
            network_order: flags & flag::NETWORK_BYTE_ORDER != 0,
        }
    }

    /// Whether all is read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` octets.
    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(Malformed::Short(what))?;
        self.rest = rest;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Malformed::Short(what))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// The next 32 bits.
    pub fn word(&mut self, what: &'static str) -> Result<u32, Malformed> {
        let octets = self.chunk(what)?;
        Ok(if self.network_order {
            u32::from_be_bytes(octets)
        } else {
            u32::from_le_bytes(octets)
        })
    }

    /// The next 16 bits.
    pub fn half(&mut self, what: &'static str) -> Result<u16, Malformed> {
        let octets = self.chunk(what)?;
        Ok(if self.network_order {
            u16::from_be_bytes(octets)
        } else {
            u16::from_le_bytes(octets)
        })
    }

    /// The next name, and whether it includes itself (RFC 2741 §5.1).
    pub fn name(&mut self) -> Result<(Name, bool), Malformed> {
        let [count, prefix, include, _] = self.chunk("a name")?;
        let mut name = Name::new();
        if prefix != 0 {
            name.extend(INTERNET);
            name.push(u32::from(prefix));
        }
        for _ in 0..count {
            let id = self.word("a name")?;
            name.try_push(id).map_err(|_| Malformed::LongName)?;
        }
        Ok((name, include != 0))
    }

    /// The next string of octets (RFC 2741 §5.3).
    pub fn octets(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.word("a length")? as usize;
        let octets = self.take(len, "a string")?;
        self.take(padding(len), "a string's padding")?;
        Ok(octets)
    }

    /// The next four octets, as they are.
    pub fn quad(&mut self, what: &'static str) -> Result<[u8; 4], Malformed> {
        self.chunk(what)
    }

    /// The next variable binding (RFC 2741 §5.4).
    pub fn binding(&mut self) -> Result<Row, Malformed> {
        let of_type = self.half("a binding")?;
        self.half("a binding")?;
        let (name, _) = self.name()?;
        let value = self.value(of_type)?;
        Ok(Row {
            name: name.as_slice().into(),
            value,
        })
    }

    fn value(&mut self, of_type: u16) -> Result<OwnedValue, Malformed> {
        let number = |payload: &mut Self| payload.word("a value");
        Ok(match of_type {
            2 => OwnedValue::Integer(number(self)? as i32),
            4 => OwnedValue::OctetString(self.octets()?.into()),
            5 => OwnedValue::Null,
            6 => OwnedValue::ObjectIdentifier(self.name()?.0.as_slice().into()),
            64 => {
                let octets = self.octets()?.try_into();
                OwnedValue::IpAddress(octets.map_err(|_| Malformed::Value(of_type))?)
            }
            65 => OwnedValue::Counter32(number(self)?),
            66 => OwnedValue::Gauge32(number(self)?),
            67 => OwnedValue::TimeTicks(number(self)?),
            68 => OwnedValue::Opaque(self.octets()?.into()),
            70 => {
                let octets = self.chunk("a value")?;
                OwnedValue::Counter64(if self.network_order {
                    u64::from_be_bytes(octets)
                } else {
                    u64::from_le_bytes(octets)
                })
            }
            128 => OwnedValue::NoSuchObject,
            129 => OwnedValue::NoSuchInstance,
            130 => OwnedValue::EndOfMibView,
            other => return Err(Malformed::Value(other)),
        })
    }
}

/// Octets after a string up to the next multiple of four.
fn padding(len: usize) -> usize {
    len.wrapping_neg() % 4
}
