//! Writing: into a buffer of the caller, up to a limit, minimal lengths.

use super::tag;
use crate::mib::Value;

/// What a name may be written beyond its end while it is being written.
const SLACK_BYTES: usize = 8;
/// Bytes of a header with the longest length that is written.
const HEADER_BYTES: usize = 4;
/// Bytes of the longest sub-identifier.
const MAX_SUB_ID_BYTES: usize = 5;
/// Elements are shorter than this: a datagram is.
const MAX_LEN_BYTES: usize = 0xffff;

/// The limit was reached; nothing of what was to be written is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message would be longer than it may be")]
pub struct Full;

/// Where an element was opened; given back to [`Writer::close`].
#[derive(Debug)]
#[must_use = "an element that is not closed has no length"]
pub struct Mark(usize);

/// Puts elements into a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    len: usize,
    limit: usize,
}

impl<'a> Writer<'a> {
    /// Writes into `buffer`, from its beginning, all but its last eight
    /// bytes and at most 65,535.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        let limit = buffer.len().saturating_sub(SLACK_BYTES).min(MAX_LEN_BYTES);
        Self {
            buffer,
            len: 0,
            limit,
        }
    }

    /// Writes into `buffer` any number of elements that are no message
    /// together, each of them at most 65,535 bytes.
    pub(crate) fn scratch(buffer: &'a mut [u8]) -> Self {
        let limit = buffer.len().saturating_sub(SLACK_BYTES);
        Self {
            buffer,
            len: 0,
            limit,
        }
    }

    /// Bytes written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that may still be written, at once.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.len).min(MAX_LEN_BYTES)
    }

    /// Lets no more than `len` bytes be written in all; it never makes more
    /// room than there was.
    pub fn limit(&mut self, len: usize) {
        self.limit = self.limit.min(len);
    }

    /// Takes `len` bytes off the room, for what is to be written at the end.
    pub(crate) fn reserve(&mut self, len: usize) -> Result<(), Full> {
        if len > self.room() {
            return Err(Full);
        }
        self.limit -= len;
        Ok(())
    }

    /// Gives back what [`Writer::reserve`] took.
    pub(crate) fn release(&mut self, len: usize) {
        self.limit += len;
    }

    /// Forgets what was written behind `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// What was written.
    pub fn written(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// What was written, to be changed in place.
    pub(crate) fn written_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }

    /// Opens an element whose content follows; [`Writer::close`] gives it
    /// its length.
    pub fn open(&mut self, tag: u8) -> Result<Mark, Full> {
        let mark = Mark(self.len);
        self.bytes(&[tag, 0x82, 0, 0])?;
        Ok(mark)
    }

    /// Closes what was opened. The content moves to the front if its length
    /// takes less than three bytes; the return is by how many bytes.
    pub fn close(&mut self, mark: Mark) -> usize {
        let content = mark.0 + HEADER_BYTES;
        let len = self.len - content;
        let mut header = [0; HEADER_BYTES];
        header[0] = self.buffer[mark.0];
        let header_len = write_header(&mut header, len);
        let shrunk = HEADER_BYTES - header_len;
        self.buffer[mark.0..mark.0 + header_len].copy_from_slice(&header[..header_len]);
        if shrunk > 0 {
            self.buffer.copy_within(content..self.len, content - shrunk);
            self.len -= shrunk;
        }
        shrunk
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if bytes.len() > self.room() {
            return Err(Full);
        }
        self.put(bytes);
        Ok(())
    }

    /// An `INTEGER`.
    pub fn integer(&mut self, value: i32) -> Result<(), Full> {
        self.value(&Value::Integer(value))
    }

    /// An `OCTET STRING`.
    pub fn octets(&mut self, content: &[u8]) -> Result<(), Full> {
        self.value(&Value::OctetString(content))
    }

    /// A value of a binding.
    pub fn value(&mut self, value: &Value<'_>) -> Result<(), Full> {
        let len = value_len(value);
        if element_len(len) > self.room() {
            return Err(Full);
        }
        self.put_value(value, len);
        Ok(())
    }

    /// An `OBJECT IDENTIFIER`.
    pub fn name(&mut self, name: &[u32]) -> Result<(), Full> {
        self.value(&Value::ObjectIdentifier(name))
    }

    /// A variable binding: a name and its value, both or none.
    /// O(length of both), no allocation.
    #[inline]
    pub fn binding(&mut self, name: &[u32], value: &Value<'_>) -> Result<(), Full> {
        let value_len = value_len(value);
        if self.short_binding(name, value, value_len) {
            return Ok(());
        }
        let name_len = name_len(name);
        let len = element_len(name_len) + element_len(value_len);
        if element_len(len) > self.room() {
            return Err(Full);
        }
        self.put_header(tag::SEQUENCE, len);
        self.put_name(name, name_len);
        self.put_value(value, value_len);
        Ok(())
    }

    /// A binding all of whose lengths take one byte, where there is room
    /// even for the longest name of so many sub-identifiers: the name is
    /// written without a look at its length ahead. `false` if nothing was
    /// written.
    #[inline]
    fn short_binding(&mut self, name: &[u32], value: &Value<'_>, value_len: usize) -> bool {
        let longest = HEADER_BYTES + MAX_SUB_ID_BYTES * name.len();
        if value_len >= 0x80 || longest + value_len + HEADER_BYTES > self.room() {
            return false;
        }
        let begin = self.len;
        let room = &mut self.buffer[begin..begin + longest + SLACK_BYTES];
        let (header, room) = room.split_at_mut(HEADER_BYTES);
        let name_len = write_name(room, name);
        let len = name_len + value_len + 4;
        if len >= 0x80 {
            return false;
        }
        header.copy_from_slice(&[
            tag::SEQUENCE,
            len as u8,
            tag::OBJECT_IDENTIFIER,
            name_len as u8,
        ]);
        self.len = begin + HEADER_BYTES + name_len;
        self.put_value(value, value_len);
        true
    }

    // From here on the room was looked at before.

    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.buffer[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    #[inline]
    fn put_header(&mut self, tag: u8, len: usize) {
        // The buffer goes on behind the limit.
        let room = &mut self.buffer[self.len..self.len + HEADER_BYTES];
        room[0] = tag;
        self.len += write_header(room, len);
    }

    #[inline]
    fn put_name(&mut self, name: &[u32], len: usize) {
        self.put_header(tag::OBJECT_IDENTIFIER, len);
        let end = self.len + len;
        let room = &mut self.buffer[self.len..end + SLACK_BYTES];
        write_name(room, name);
        self.len = end;
    }

    #[inline]
    fn put_value(&mut self, value: &Value<'_>, len: usize) {
        match *value {
            Value::Integer(value) => self.put_number(tag::INTEGER, i64::from(value) as u64, len),
            Value::Counter32(value) => self.put_number(tag::COUNTER32, value.into(), len),
            Value::Gauge32(value) => self.put_number(tag::GAUGE32, value.into(), len),
            Value::TimeTicks(value) => self.put_number(tag::TIME_TICKS, value.into(), len),
            Value::Counter64(value) => self.put_number(tag::COUNTER64, value, len),
            Value::ObjectIdentifier(name) => self.put_name(name, len),
            Value::OctetString(content) => self.put_content(tag::OCTET_STRING, content),
            Value::IpAddress(content) => self.put_content(tag::IP_ADDRESS, &content),
            Value::Opaque(content) => self.put_content(tag::OPAQUE, content),
            Value::Null => self.put_header(tag::NULL, 0),
            Value::NoSuchObject => self.put_header(tag::NO_SUCH_OBJECT, 0),
            Value::NoSuchInstance => self.put_header(tag::NO_SUCH_INSTANCE, 0),
            Value::EndOfMibView => self.put_header(tag::END_OF_MIB_VIEW, 0),
        }
    }

    fn put_content(&mut self, tag: u8, content: &[u8]) {
        self.put_header(tag, content.len());
        self.put(content);
    }

    /// A number in `len` bytes, 9 at most: beyond 8 only a zero that keeps
    /// it from being negative.
    #[inline]
    fn put_number(&mut self, tag: u8, value: u64, len: usize) {
        self.put_header(tag, len);
        let end = self.len + len;
        let digits = len.min(8);
        if len > 8 {
            self.buffer[self.len] = 0;
        }
        // Eight bytes are written in any case: the buffer goes on behind
        // the limit.
        let shifted = value << (64 - 8 * digits);
        let begin = end - digits;
        self.buffer[begin..begin + 8].copy_from_slice(&shifted.to_be_bytes());
        self.len = end;
    }
}

/// Writes the length behind the tag, returns what the header takes in all.
#[inline]
fn write_header(header: &mut [u8], len: usize) -> usize {
    if len < 0x80 {
        header[1] = len as u8;
        2
    } else if len < 0x100 {
        header[1] = 0x81;
        header[2] = len as u8;
        3
    } else {
        header[1] = 0x82;
        header[2] = (len >> 8) as u8;
        header[3] = len as u8;
        4
    }
}

/// Bytes of an element whose content has `len`; one that is too long for a
/// message stays so.
#[inline]
fn element_len(len: usize) -> usize {
    let header = if len < 0x80 {
        2
    } else if len < 0x100 {
        3
    } else {
        4
    };
    len.saturating_add(header)
}

/// Bytes of a value's content.
#[inline]
fn value_len(value: &Value<'_>) -> usize {
    match *value {
        Value::Integer(value) => signed_len(value),
        Value::Counter32(value) | Value::Gauge32(value) | Value::TimeTicks(value) => {
            unsigned_len(value.into())
        }
        Value::Counter64(value) => unsigned_len(value),
        Value::ObjectIdentifier(name) => name_len(name),
        Value::OctetString(content) | Value::Opaque(content) => content.len(),
        Value::IpAddress(content) => content.len(),
        Value::Null | Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView => 0,
    }
}

/// Bytes of a number with its sign: each holds eight bits.
#[inline]
fn signed_len(value: i32) -> usize {
    let magnitude = if value < 0 { !value } else { value };
    unsigned_len(magnitude as u64)
}

#[inline]
fn unsigned_len(value: u64) -> usize {
    let bits = 64 - value.leading_zeros() as usize;
    bits / 8 + 1
}

/// The first number of a name stands for its first two sub-identifiers.
fn first_number(name: &[u32]) -> u64 {
    match *name {
        [root, second, ..] => u64::from(root) * 40 + u64::from(second),
        [root] => u64::from(root) * 40,
        [] => 0,
    }
}

/// Bytes of a name's content.
#[inline]
fn name_len(name: &[u32]) -> usize {
    let tail = name.get(2..).unwrap_or_default();
    let more = tail.iter().fold(0, |len, sub_id| {
        len + u32::from(*sub_id >= 1 << 7)
            + u32::from(*sub_id >= 1 << 14)
            + u32::from(*sub_id >= 1 << 21)
            + u32::from(*sub_id >= 1 << 28)
    });
    number_len(first_number(name)) + tail.len() + more as usize
}

/// Bytes of a number in groups of seven bits.
fn number_len(number: u64) -> usize {
    let bits = 64 - (number | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// The content of a name; the return is its length. `room` goes on behind
/// it by [`SLACK_BYTES`].
#[inline]
fn write_name(room: &mut [u8], name: &[u32]) -> usize {
    let mut at = write_number(room, 0, first_number(name));
    let (fours, rest) = name.get(2..).unwrap_or_default().as_chunks::<4>();
    for &[a, b, c, d] in fours {
        // Of a table's name, most are short.
        if a | b | c | d < 1 << 7 {
            room[at..at + 4].copy_from_slice(&[a as u8, b as u8, c as u8, d as u8]);
            at += 4;
        } else {
            at = write_sub_id(room, at, a);
            at = write_sub_id(room, at, b);
            at = write_sub_id(room, at, c);
            at = write_sub_id(room, at, d);
        }
    }
    for sub_id in rest {
        at = write_sub_id(room, at, *sub_id);
    }
    at
}

/// A sub-identifier from `at` on; returns its end.
#[inline]
fn write_sub_id(room: &mut [u8], at: usize, sub_id: u32) -> usize {
    if sub_id >= 1 << 14 {
        return write_number(room, at, u64::from(sub_id));
    }
    // Both bytes are written, whether there are one or two: no branch to
    // guess for the octets of addresses.
    let two = usize::from(sub_id >= 1 << 7);
    let low = (sub_id & 0x7f) as u8;
    let high = (sub_id >> 7) as u8 | 0x80;
    let bytes = if two == 1 { [high, low] } else { [low, 0] };
    room[at..at + 2].copy_from_slice(&bytes);
    at + 1 + two
}

/// A number in groups of seven bits from `at` on; returns its end.
fn write_number(room: &mut [u8], at: usize, number: u64) -> usize {
    let end = at + number_len(number);
    let mut rest = number;
    let mut last = 0;
    for byte in room[at..end].iter_mut().rev() {
        *byte = (rest & 0x7f) as u8 | last;
        rest >>= 7;
        last = 0x80;
    }
    end
}
