//! AgentX messages on their way out. Called through [`super`].

use super::{HEADER_BYTES, Header, VERSION, flag, padding};
use crate::mib::Value;
use crate::oid::MAX_SUB_IDS;

/// A message being written at the end of a buffer.
#[derive(Debug)]
pub struct Message<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    network_order: bool,
}

impl<'a> Message<'a> {
    /// Begins a message in network byte order; the identifiers are
    /// `header`'s, its length is not looked at.
    pub fn begin(out: &'a mut Vec<u8>, header: &Header) -> Self {
        let flags = header.flags | flag::NETWORK_BYTE_ORDER;
        Self::begin_in_order(out, &Header { flags, ..*header })
    }

    /// Begins a message in the byte order that the header's flags say.
    pub fn begin_in_order(out: &'a mut Vec<u8>, header: &Header) -> Self {
        let start = out.len();
        out.extend([VERSION, header.kind, header.flags, 0]);
        let mut message = Self {
            out,
            start,
            network_order: header.flags & flag::NETWORK_BYTE_ORDER != 0,
        };
        for word in [header.session, header.transaction, header.packet, 0] {
            message.word(word);
        }
        message
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
        self.out.extend(self.word_octets(word));
    }

    /// 16 bits twice.
    pub fn halves(&mut self, first: u16, second: u16) {
        for half in [first, second] {
            self.out.extend(if self.network_order {
                half.to_be_bytes()
            } else {
                half.to_le_bytes()
            });
        }
    }

    /// A name, of which at most [`MAX_SUB_IDS`] count. Written
    /// short where it lies in `internet` (RFC 2741 §5.1).
    pub fn name(&mut self, name: &[u32]) {
        self.bound(name, false);
    }

    /// A name that begins a range, and whether it is of it.
    pub fn bound(&mut self, name: &[u32], include: bool) {
        let name = name.get(..MAX_SUB_IDS).unwrap_or(name);
        let (prefix, rest) = match name {
            [1, 3, 6, 1, prefix @ 1..=255, rest @ ..] => (*prefix as u8, rest),
            whole => (0, whole),
        };
        self.out
            .extend([rest.len() as u8, prefix, u8::from(include), 0]);
        for id in rest {
            self.word(*id);
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
            Value::Counter64(number) => self.out.extend(if self.network_order {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            }),
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
        let octets = self.word_octets(len);
        if let Some(place) = self.out.get_mut(at..at + 4) {
            place.copy_from_slice(&octets);
        }
    }

    fn word_octets(&self, word: u32) -> [u8; 4] {
        if self.network_order {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        }
    }
}

/// `v.type` (RFC 2741 §5.4).
pub fn type_of(value: &Value<'_>) -> u16 {
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
