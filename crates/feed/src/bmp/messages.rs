//! A stream of bytes as BMP messages: a version, a length with this header,
//! a type (RFC 7854 §4.1).

use thiserror::Error;

use crate::stream::Stream;

/// Bytes of the common header.
const HEADER: usize = 6;
/// Of RFC 7854. (1 and 2 were drafts, 4 is one.)
const VERSION: u8 = 3;
/// A message of BGP has 65,535 bytes at most (RFC 8654), and two of them
/// are the most that a message here holds.
const MAX_BYTES: usize = 1 << 18;

/// The bytes that came and were not read yet. Holds no more than was pushed
/// since the last whole message was taken.
#[derive(Debug, Default)]
pub struct Messages(Stream);

/// A message, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framed<'a> {
    /// Where its header begins in the stream.
    pub offset: u64,
    /// Its type.
    pub kind: u8,
    /// What is behind its header.
    pub body: &'a [u8],
}

/// A stream that cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadMessage {
    /// Another version than 3.
    #[error("the message at byte {offset} is of version {version}; 3, of RFC 7854, is expected")]
    Version {
        /// Where the message begins in the stream.
        offset: u64,
        /// What it says.
        version: u8,
    },
    /// Shorter than its own header, or longer than any message.
    #[error("the message at byte {offset} claims {len} bytes; {HEADER} to {MAX_BYTES} are taken")]
    Length {
        /// Where the message begins in the stream.
        offset: u64,
        /// What it says.
        len: u32,
    },
}

impl Messages {
    /// Takes bytes as they came. O(bytes).
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// The next message that is there whole; `None` if there is none. After
    /// an error it stays: nothing behind it can be trusted.
    pub fn next_message(&mut self) -> Result<Option<Framed<'_>>, BadMessage> {
        let Some(len) = self.len()? else {
            return Ok(None);
        };
        let offset = self.0.offset();
        let message = self.0.take(len);
        Ok(Some(Framed {
            offset,
            kind: message.get(HEADER - 1).copied().unwrap_or_default(),
            body: message.get(HEADER..).unwrap_or_default(),
        }))
    }

    /// Whether the next message is there whole.
    pub fn has_message(&self) -> Result<bool, BadMessage> {
        Ok(self.len()?.is_some())
    }

    /// Bytes that wait for the rest of their message.
    pub fn pending(&self) -> usize {
        self.0.rest().len()
    }

    /// Those bytes, with messages that nobody has taken yet.
    pub(crate) fn unread(&self) -> &[u8] {
        self.0.rest()
    }

    /// The length of the next message, if it is there whole. A header is
    /// refused as soon as its first wrong part is there.
    fn len(&self) -> Result<Option<usize>, BadMessage> {
        let (rest, offset) = (self.0.rest(), self.0.offset());
        if let Some(&version) = rest.first().filter(|version| **version != VERSION) {
            return Err(BadMessage::Version { offset, version });
        }
        let Some([_, a, b, c, d]) = rest.first_chunk() else {
            return Ok(None);
        };
        let len = u32::from_be_bytes([*a, *b, *c, *d]);
        let bytes = usize::try_from(len).unwrap_or(usize::MAX);
        if !(HEADER..=MAX_BYTES).contains(&bytes) {
            return Err(BadMessage::Length { offset, len });
        }
        Ok((rest.len() >= bytes).then_some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
        let len = u32::try_from(body.len() + HEADER).unwrap();
        [&[VERSION], &len.to_be_bytes()[..], &[kind], body].concat()
    }

    #[test]
    fn messages_are_the_same_wherever_the_stream_is_cut() {
        let whole = [framed(0, b"one"), framed(9, b""), framed(5, &[7; 70_000])].concat();
        let expected: Vec<(u64, u8, Vec<u8>)> = vec![
            (0, 0, b"one".into()),
            (9, 9, vec![]),
            (15, 5, vec![7; 70_000]),
        ];
        for step in [1, 2, 3, 7, 4096, whole.len()] {
            let (mut messages, mut got) = (Messages::default(), Vec::new());
            for part in whole.chunks(step) {
                messages.push(part);
                while let Some(one) = messages.next_message().unwrap() {
                    got.push((one.offset, one.kind, one.body.to_vec()));
                }
            }
            assert_eq!(got, expected, "{step}");
            assert_eq!(messages.pending(), 0);
        }
    }

    #[test]
    fn what_lies_is_refused_at_its_place_and_stays_refused() {
        let length = |len| BadMessage::Length { offset: 9, len };
        for (bytes, told) in [
            (
                &[4][..],
                BadMessage::Version {
                    offset: 9,
                    version: 4,
                },
            ),
            (&[3, 0, 0, 0, 5], length(5)),
            (&[3, 0, 0, 0, 0], length(0)),
            (&[3, 0, 4, 0, 1], length(262_145)),
            (&[3, 255, 255, 255, 255, 0], length(u32::MAX)),
        ] {
            let mut messages = Messages::default();
            messages.push(&framed(4, b"one"));
            assert!(messages.next_message().unwrap().is_some());
            messages.push(bytes);
            assert_eq!(messages.next_message(), Err(told));
            messages.push(&framed(4, b"two"));
            assert_eq!(messages.has_message(), Err(told));
        }
    }
}
