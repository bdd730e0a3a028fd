//! Reading: elements of a slice, one behind the other, each borrowed.

use super::tag;
use crate::mib::Value;
use crate::oid::Name;

/// Why bytes are no SNMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// An element ends behind the one that it lies in.
    #[error("an element is cut off or longer than what it lies in")]
    Truncated,
    /// A length of the indefinite form or of more than four bytes.
    #[error("a length of a form that SNMP does not use")]
    Length,
    /// Another element was due.
    #[error("tag {found:#04x} where {expected:#04x} is due")]
    Tag {
        /// The tag that was due.
        expected: u8,
        /// The tag that was there.
        found: u8,
    },
    /// A value of no type that SNMP knows, or with content that its type
    /// cannot have.
    #[error("a value with tag {0:#04x} is not of its type or of none")]
    Value(u8),
    /// A number beyond the range of its field.
    #[error("a number is out of its range")]
    Range,
    /// More than 128 sub-identifiers, one beyond 2^32 or one cut off.
    #[error("a name is too long or has a sub-identifier beyond 2^32")]
    Name,
    /// Bytes behind the last element.
    #[error("bytes behind the end")]
    Trailing,
}

/// Takes elements off a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Errors with [`Malformed::Trailing`] unless all was read.
    pub fn finish(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Trailing)
        }
    }

    /// The next element: its tag and content.
    pub fn element(&mut self) -> Result<(u8, &'a [u8]), Malformed> {
        let (&tag, rest) = self.rest.split_first().ok_or(Malformed::Truncated)?;
        let (&first, rest) = rest.split_first().ok_or(Malformed::Truncated)?;
        let (len, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            long_length(first, rest)?
        };
        let (content, rest) = rest.split_at_checked(len).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok((tag, content))
    }

    /// The content of the next element, which has to have this tag.
    pub fn expect(&mut self, expected: u8) -> Result<&'a [u8], Malformed> {
        let (found, content) = self.element()?;
        if found == expected {
            Ok(content)
        } else {
            Err(Malformed::Tag { expected, found })
        }
    }

    /// A reader of the content of the next element, a `SEQUENCE`.
    pub fn sequence(&mut self) -> Result<Reader<'a>, Malformed> {
        self.expect(tag::SEQUENCE).map(Self::new)
    }

    /// An `INTEGER` of 32 bits.
    pub fn integer(&mut self) -> Result<i32, Malformed> {
        integer(self.expect(tag::INTEGER)?)
    }

    /// An `INTEGER` of 32 bits that is not negative.
    pub fn natural(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.integer()?).map_err(|_| Malformed::Range)
    }

    /// An `OCTET STRING`.
    pub fn octets(&mut self) -> Result<&'a [u8], Malformed> {
        self.expect(tag::OCTET_STRING)
    }

    /// An `OBJECT IDENTIFIER`, in place of what `name` held.
    pub fn name(&mut self, name: &mut Name) -> Result<(), Malformed> {
        read_name(self.expect(tag::OBJECT_IDENTIFIER)?, name)
    }

    /// A value of a binding; `object` holds its sub-identifiers if it is a
    /// name.
    pub fn value<'s>(&mut self, object: &'s mut Name) -> Result<Value<'s>, Malformed>
    where
        'a: 's,
    {
        let (tag, content) = self.element()?;
        let wrong = |_| Malformed::Value(tag);
        let empty = |value| match content {
            [] => Ok(value),
            _ => Err(Malformed::Value(tag)),
        };
        match tag {
            tag::INTEGER => integer(content).map(Value::Integer),
            tag::OCTET_STRING => Ok(Value::OctetString(content)),
            tag::NULL => empty(Value::Null),
            tag::OBJECT_IDENTIFIER => {
                read_name(content, object)?;
                Ok(Value::ObjectIdentifier(object))
            }
            tag::IP_ADDRESS => content.try_into().map(Value::IpAddress).map_err(wrong),
            tag::COUNTER32 => unsigned32(content).map(Value::Counter32),
            tag::GAUGE32 => unsigned32(content).map(Value::Gauge32),
            tag::TIME_TICKS => unsigned32(content).map(Value::TimeTicks),
            tag::OPAQUE => Ok(Value::Opaque(content)),
            tag::COUNTER64 => unsigned(content, 8).map(Value::Counter64),
            tag::NO_SUCH_OBJECT => empty(Value::NoSuchObject),
            tag::NO_SUCH_INSTANCE => empty(Value::NoSuchInstance),
            tag::END_OF_MIB_VIEW => empty(Value::EndOfMibView),
            _ => Err(Malformed::Value(tag)),
        }
    }
}

/// A length of the long form: its value and what is behind it.
fn long_length(first: u8, rest: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    let count = usize::from(first & 0x7f);
    if count == 0 || count > 4 {
        return Err(Malformed::Length);
    }
    let (bytes, rest) = rest.split_at_checked(count).ok_or(Malformed::Truncated)?;
    let len = bytes
        .iter()
        .fold(0, |len, byte| len << 8 | usize::from(*byte));
    Ok((len, rest))
}

fn integer(content: &[u8]) -> Result<i32, Malformed> {
    let first = *content.first().ok_or(Malformed::Range)?;
    if content.len() > 4 {
        return Err(Malformed::Range);
    }
    // Extended with the sign of the first byte.
    let sign = if first < 0x80 { 0 } else { -1 };
    Ok(content
        .iter()
        .fold(sign, |value, byte| value << 8 | i32::from(*byte)))
}

fn unsigned32(content: &[u8]) -> Result<u32, Malformed> {
    u32::try_from(unsigned(content, 4)?).map_err(|_| Malformed::Range)
}

/// A number that is not negative, of at most `bytes` bytes and the zero that
/// keeps it from being negative.
fn unsigned(content: &[u8], bytes: usize) -> Result<u64, Malformed> {
    let digits = match content {
        [0, digits @ ..] => digits,
        [] => return Err(Malformed::Range),
        [first, ..] if *first >= 0x80 => return Err(Malformed::Range),
        digits => digits,
    };
    if digits.len() > bytes {
        return Err(Malformed::Range);
    }
    Ok(digits
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The content of an `OBJECT IDENTIFIER`. An empty one, which some send, is
/// `0.0`.
fn read_name(content: &[u8], name: &mut Name) -> Result<(), Malformed> {
    name.clear();
    let mut sub_id = 0u64;
    let mut more = false;
    for byte in content {
        // At most 39 bits before the check: no overflow.
        sub_id = sub_id << 7 | u64::from(byte & 0x7f);
        more = *byte >= 0x80;
        if sub_id > FIRST_MAX {
            return Err(Malformed::Name);
        }
        if !more {
            push_sub_id(name, sub_id)?;
            sub_id = 0;
        }
    }
    if more {
        return Err(Malformed::Name);
    }
    if content.is_empty() {
        name.extend([0, 0]);
    }
    Ok(())
}

/// The greatest first number of a name: it holds two sub-identifiers.
const FIRST_MAX: u64 = u32::MAX as u64 + 80;

fn push_sub_id(name: &mut Name, value: u64) -> Result<(), Malformed> {
    let value = if name.is_empty() {
        let root = (value / 40).min(2);
        name.push(root as u32);
        value - root * 40
    } else {
        value
    };
    let value = u32::try_from(value).map_err(|_| Malformed::Name)?;
    name.try_push(value).map_err(|_| Malformed::Name)
}
