//! AgentX messages as octets (RFC 2741 §5, §6): total on any input, in
//! both byte orders. Called by [`super::answer`] and [`super::Session`].

use thiserror::Error;

use crate::mib::Value;
use crate::oid::{MAX_SUB_IDS, Name};

/// Octets before each message's payload (RFC 2741 §6.1).
pub const HEADER_BYTES: usize = 20;
/// A longer payload is refused: ten times what a master can make of the
/// longest SNMP message.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;
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
    pub const RESPONSE: u8 = 18;
}

/// `h.flags` (RFC 2741 §6.1).
#[allow(missing_docs, reason = "each is the flag it names")]
pub mod flag {
    pub const NON_DEFAULT_CONTEXT: u8 = 0x08;
    pub const NETWORK_BYTE_ORDER: u8 = 0x10;
}

/// `res.error` (RFC 2741 §6.2.16, RFC 3416 §3).
#[allow(missing_docs, reason = "each is the error it names")]
pub mod error {
    pub const NONE: u16 = 0;
    pub const COMMIT_FAILED: u16 = 14;
    pub const UNDO_FAILED: u16 = 15;
    pub const NOT_WRITABLE: u16 = 17;
    pub const NOT_OPEN: u16 = 257;
    pub const UNSUPPORTED_CONTEXT: u16 = 262;
    pub const PARSE_ERROR: u16 = 266;
}

/// `c.reason` (RFC 2741 §6.2.2).
#[allow(missing_docs, reason = "each is the reason it names")]
pub mod reason {
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

    /// The next variable binding's name and type; its value is passed
    /// over. A subagent that lets nothing be set is never sent one.
    #[cfg(test)]
    pub fn binding(&mut self) -> Result<(Name, u16), Malformed> {
        let of_type = self.half("a binding")?;
        self.half("a binding")?;
        let (name, _) = self.name()?;
        match of_type {
            2 | 65..=67 => drop(self.word("a value")?),
            70 => drop(self.chunk::<8>("a value")?),
            4 | 64 | 68 => drop(self.octets()?),
            6 => drop(self.name()?),
            _ => {}
        }
        Ok((name, of_type))
    }
}

/// Octets after a string up to the next multiple of four.
fn padding(len: usize) -> usize {
    len.wrapping_neg() % 4
}

/// A message being written at the end of a buffer, in network byte order.
#[derive(Debug)]
pub struct Message<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Message<'a> {
    /// Begins a message; the identifiers are `header`'s, its length is
    /// not looked at.
    pub fn begin(out: &'a mut Vec<u8>, header: &Header) -> Self {
        let start = out.len();
        let flags = header.flags | flag::NETWORK_BYTE_ORDER;
        out.extend([VERSION, header.kind, flags, 0]);
        for word in [header.session, header.transaction, header.packet, 0] {
            out.extend(word.to_be_bytes());
        }
        Self { out, start }
    }

    /// Bytes of it so far.
    pub fn len_bytes(&self) -> usize {
        self.out.len() - self.start
    }

    /// Four octets as they are.
    pub fn quad(&mut self, octets: [u8; 4]) {
        self.out.extend(octets);
    }

    /// 32 bits.
    pub fn word(&mut self, word: u32) {
        self.out.extend(word.to_be_bytes());
    }

    /// 16 bits twice.
    pub fn halves(&mut self, first: u16, second: u16) {
        self.out.extend(first.to_be_bytes());
        self.out.extend(second.to_be_bytes());
    }

    /// A name, of which at most [`MAX_SUB_IDS`] count. Written
    /// short where it lies in `internet` (RFC 2741 §5.1).
    pub fn name(&mut self, name: &[u32]) {
        let name = name.get(..MAX_SUB_IDS).unwrap_or(name);
        let (prefix, rest) = match name {
            [1, 3, 6, 1, prefix @ 1..=255, rest @ ..] => (*prefix as u8, rest),
            whole => (0, whole),
        };
        self.out.extend([rest.len() as u8, prefix, 0, 0]);
        for id in rest {
            self.out.extend(id.to_be_bytes());
        }
    }

    /// A string of octets.
    pub fn octets(&mut self, octets: &[u8]) {
        self.word(octets.len() as u32);
        self.out.extend_from_slice(octets);
        let padded = self.out.len() + padding(octets.len());
        self.out.resize(padded, 0);
    }

    /// A variable binding (RFC 2741 §5.4).
    pub fn binding(&mut self, name: &[u32], value: &Value<'_>) {
        self.halves(type_of(value), 0);
        self.name(name);
        match *value {
            Value::Integer(number) => self.word(number as u32),
            Value::Counter32(number) | Value::Gauge32(number) | Value::TimeTicks(number) => {
                self.word(number);
            }
            Value::Counter64(number) => self.out.extend(number.to_be_bytes()),
            Value::OctetString(octets) | Value::Opaque(octets) => self.octets(octets),
            Value::IpAddress(octets) => self.octets(&octets),
            Value::ObjectIdentifier(name) => self.name(name),
            Value::Null | Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView => {}
        }
    }

    /// Ends the message: its length is known now.
    pub fn end(self) {
        let len = (self.len_bytes() - HEADER_BYTES) as u32;
        let at = self.start + HEADER_BYTES - 4;
        if let Some(place) = self.out.get_mut(at..at + 4) {
            place.copy_from_slice(&len.to_be_bytes());
        }
    }
}

/// `v.type` (RFC 2741 §5.4).
fn type_of(value: &Value<'_>) -> u16 {
    match value {
        Value::Integer(_) => 2,
        Value::OctetString(_) => 4,
        Value::Null => 5,
        Value::ObjectIdentifier(_) => 6,
        Value::IpAddress(_) => 64,
        Value::Counter32(_) => 65,
        Value::Gauge32(_) => 66,
        Value::TimeTicks(_) => 67,
        Value::Opaque(_) => 68,
        Value::Counter64(_) => 70,
        Value::NoSuchObject => 128,
        Value::NoSuchInstance => 129,
        Value::EndOfMibView => 130,
    }
}
