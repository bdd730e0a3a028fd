//! What feeds hear, as a recording has it: `docs/recordings.md`. All numbers
//! are little endian.

use std::time::Duration;

use thiserror::Error;

use crate::now::Now;

/// What a feed is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the protocol that it names")]
pub enum Kind {
    Fpm,
    Bmp,
}

/// Which feed is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// What it is by.
    pub kind: Kind,
    /// What its rows are asked for by.
    pub name: String,
    /// Where it was waited for.
    pub listening: String,
}

/// A record of a feed that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a record of a feed does not hold {0}")]
pub struct BadHeard(pub &'static str);

/// What happened to a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What<'a> {
    /// A peer feeds it from here on: its address.
    Connected(&'a str),
    /// It said so much.
    Said(&'a [u8]),
    /// It is gone.
    Closed {
        /// It said what cannot be.
        is_lie: bool,
        why: &'a str,
    },
    /// Of a state: what a connection had said by then, and what was not
    /// whole yet.
    Pending(&'a [u8]),
    /// All was told, as far as is known: of a station by one table of a
    /// peer, which is named.
    Settled(&'a str),
}

/// What a feed heard, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heard<'a> {
    /// Since some start, by which intervals are reckoned.
    pub monotonic: Duration,
    /// It tells of a state, and not of what happened then.
    pub is_state: bool,
    /// Tells connections of a feed apart.
    pub connection: u32,
    pub what: What<'a>,
}

/// Octets before what is said.
const HEAD: usize = 14;

impl Declaration {
    /// As [`Declaration::read`] reads it.
    pub fn bytes(&self) -> Vec<u8> {
        let name = u8::try_from(self.name.len()).unwrap_or(u8::MAX);
        let mut bytes = vec![self.kind as u8, name];
        bytes.extend(self.name.as_bytes().iter().take(usize::from(name)));
        bytes.extend(self.listening.as_bytes());
        bytes
    }

    /// Reads what [`Declaration::bytes`] has written.
    pub fn read(bytes: &[u8]) -> Result<Self, BadHeard> {
        let bad = BadHeard("which feed it is");
        let [kind, name, rest @ ..] = bytes else {
            return Err(bad);
        };
        let kinds = [Kind::Fpm, Kind::Bmp];
        let kind = kinds.into_iter().find(|one| *one as u8 == *kind);
        let split = rest.split_at_checked(usize::from(*name));
        let (Some(kind), Some((name, listening))) = (kind, split) else {
            return Err(bad);
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| bad.clone());
        Ok(Self {
            kind,
            name: text(name)?,
            listening: text(listening)?,
        })
    }
}

impl<'a> What<'a> {
    fn number(&self) -> u8 {
        match self {
            Self::Connected(_) => 1,
            Self::Said(_) => 2,
            Self::Closed { .. } => 3,
            Self::Pending(_) => 4,
            Self::Settled(_) => 5,
        }
    }

    fn read(number: u8, rest: &'a [u8]) -> Result<Self, BadHeard> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| BadHeard("a text in UTF-8"));
        Ok(match number {
            1 => Self::Connected(text(rest)?),
            2 => Self::Said(rest),
            3 => match rest {
                [is_lie @ (0 | 1), why @ ..] => Self::Closed {
                    is_lie: *is_lie == 1,
                    why: text(why)?,
                },
                _ => return Err(BadHeard("how a connection ended")),
            },
            4 => Self::Pending(rest),
            5 => Self::Settled(text(rest)?),
            _ => return Err(BadHeard("what this release knows")),
        })
    }
}

impl<'a> Heard<'a> {
    /// Hands over the bytes of it, in pieces.
    pub(crate) fn put(&self, put: &mut dyn FnMut(&[&[u8]])) {
        let mut head = [0; HEAD];
        let monotonic = u64::try_from(self.monotonic.as_micros()).unwrap_or(u64::MAX);
        head[..8].copy_from_slice(&monotonic.to_le_bytes());
        head[8] = self.what.number();
        head[9] = u8::from(self.is_state);
        head[10..].copy_from_slice(&self.connection.to_le_bytes());
        match self.what {
            What::Connected(text) | What::Settled(text) => put(&[&head, text.as_bytes()]),
            What::Said(bytes) | What::Pending(bytes) => put(&[&head, bytes]),
            What::Closed { is_lie, why } => put(&[&head, &[u8::from(is_lie)], why.as_bytes()]),
        }
    }

    /// Reads what [`Heard::put`] has written.
    pub(crate) fn read(payload: &'a [u8]) -> Result<Self, BadHeard> {
        let (head, rest) = payload
            .split_first_chunk::<HEAD>()
            .ok_or(BadHeard("when it was, and of which connection"))?;
        let [a, b, c, d, e, f, g, h, number, state, connection @ ..] = *head;
        let micros = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Ok(Self {
            monotonic: Duration::from_micros(micros),
            is_state: match state {
                0 | 1 => state == 1,
                _ => return Err(BadHeard("whether it tells of a state")),
            },
            connection: u32::from_le_bytes(connection),
            what: What::read(number, rest)?,
        })
    }

    /// Its moment, where the recording has the time of the host.
    pub(crate) fn now(&self, at_micros: u64) -> Now {
        Now {
            monotonic: self.monotonic,
            millis: at_micros / 1_000,
            instant: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        for what in [
            What::Connected("127.0.0.1:9"),
            What::Said(b"\x01\x01\x00\x04"),
            What::Closed {
                is_lie: true,
                why: "the frame at byte 0",
            },
            What::Pending(b""),
            What::Settled("bmp:192.0.2.1@edge"),
        ] {
            let heard = Heard {
                monotonic: Duration::from_micros(1_234_567),
                is_state: what == What::Pending(b""),
                connection: 7,
                what,
            };
            let mut bytes = Vec::new();
            heard.put(&mut |pieces| bytes = pieces.concat());
            assert_eq!(Heard::read(&bytes), Ok(heard));
        }
        let declaration = Declaration {
            kind: Kind::Bmp,
            name: "bmp".into(),
            listening: "127.0.0.1:11019".into(),
        };
        assert_eq!(Declaration::read(&declaration.bytes()), Ok(declaration));
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        let head =
            |number: u8, state: u8| [[0; 8].as_slice(), &[number, state, 0, 0, 0, 0]].concat();
        for bytes in [
            vec![],
            vec![0; HEAD - 1],
            head(0, 0),
            head(6, 0),
            head(4, 2),
            head(3, 0),
            [head(3, 0), vec![2]].concat(),
            [head(1, 0), vec![0xff]].concat(),
        ] {
            assert!(Heard::read(&bytes).is_err(), "{bytes:?}");
        }
        for bytes in [
            &b""[..],
            b"\x00",
            b"\x02\x00",
            b"\x00\x02a",
            b"\x00\x01\xff",
        ] {
            assert!(Declaration::read(bytes).is_err(), "{bytes:?}");
        }
    }
}
