//! Values and rows that are kept: what subagents answered and tell.

use crate::mib::Value;

/// A [`Value`] of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the value of its name")]
pub enum OwnedValue {
    Integer(i32),
    OctetString(Box<[u8]>),
    ObjectIdentifier(Box<[u32]>),
    IpAddress([u8; 4]),
    Counter32(u32),
    Gauge32(u32),
    TimeTicks(u32),
    Opaque(Box<[u8]>),
    Counter64(u64),
    Null,
    NoSuchObject,
    NoSuchInstance,
    EndOfMibView,
}

impl OwnedValue {
    /// It, lent. O(1).
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Integer(number) => Value::Integer(*number),
            Self::OctetString(octets) => Value::OctetString(octets),
            Self::ObjectIdentifier(name) => Value::ObjectIdentifier(name),
            Self::IpAddress(octets) => Value::IpAddress(*octets),
            Self::Counter32(number) => Value::Counter32(*number),
            Self::Gauge32(number) => Value::Gauge32(*number),
            Self::TimeTicks(number) => Value::TimeTicks(*number),
            Self::Opaque(octets) => Value::Opaque(octets),
            Self::Counter64(number) => Value::Counter64(*number),
            Self::Null => Value::Null,
            Self::NoSuchObject => Value::NoSuchObject,
            Self::NoSuchInstance => Value::NoSuchInstance,
            Self::EndOfMibView => Value::EndOfMibView,
        }
    }

    /// Bytes that it takes beside itself.
    pub(crate) fn len_bytes(&self) -> usize {
        match self {
            Self::OctetString(octets) | Self::Opaque(octets) => octets.len(),
            Self::ObjectIdentifier(name) => size_of_val::<[u32]>(name),
            _ => 0,
        }
    }
}

/// A variable binding: a name and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name.
    pub name: Box<[u32]>,
    /// The value.
    pub value: OwnedValue,
}

impl Row {
    /// Bytes that it takes.
    pub(crate) fn len_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val::<[u32]>(&self.name) + self.value.len_bytes()
    }
}
