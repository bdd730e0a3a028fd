//! A BGP message: its header, and what is in it (RFC 4271 §4.1).

use crate::Bad;
use crate::bytes::Bytes;

/// Types of messages.
#[allow(missing_docs, reason = "the RFCs' own names and meanings")]
pub mod kind {
    pub const OPEN: u8 = 1;
    pub const UPDATE: u8 = 2;
    pub const NOTIFICATION: u8 = 3;
    pub const KEEPALIVE: u8 = 4;
    pub const ROUTE_REFRESH: u8 = 5;
}

/// The marker, the length, the type.
const HEADER: usize = 19;
const MARKER: usize = 16;

/// A message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// [`kind`].
    pub kind: u8,
    /// What is behind its header.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Takes a message from the front of some bytes.
    pub fn take(bytes: &mut Bytes<'a>) -> Result<Self, Bad> {
        bytes.take(MARKER, "the header of a message")?;
        let len = usize::from(bytes.u16("the header of a message")?);
        let kind = bytes.u8("the header of a message")?;
        let body = len.checked_sub(HEADER).ok_or(Bad::Length {
            what: "a message",
            len,
        })?;
        let body = bytes.take(body, "a message")?;
        Ok(Self { kind, body })
    }

    /// The same, which must be of a kind that is named in the error.
    pub fn take_of(bytes: &mut Bytes<'a>, of: u8, what: &'static str) -> Result<&'a [u8], Bad> {
        let message = Self::take(bytes)?;
        let value = message.kind.into();
        let is_it = message.kind == of;
        is_it
            .then_some(message.body)
            .ok_or(Bad::Value { what, value })
    }
}
