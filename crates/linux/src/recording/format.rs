//! The bytes of a recording, version 1: `docs/recordings.md`.
//!
//! All numbers of the frame are little endian; netlink messages are in the
//! byte order of the machine that recorded them, which the head of the
//! file names.

use crc32fast::Hasher;
use table::LinkCounters;
use thiserror::Error;

use crate::mirror::difference::CompleteTables;
use crate::mirror::ip_statistics::Texts;

/// How a file begins. The line ends and the control character show a file
/// that was mangled as text.
pub const MAGIC: [u8; 8] = *b"FPREC\r\n\x1a";
/// The version that is written, and the only one that is read.
pub const VERSION: u16 = 1;
/// Bytes of a file's head.
pub const HEAD_BYTES: usize = 40;
/// Bytes of a record's frame, before its payload.
pub const FRAME_BYTES: usize = 24;
/// A payload is no longer than this: speeds of two million links.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;
/// Where a frame has its check.
pub(crate) const CHECK_AT: usize = 20;

/// The byte order of this machine, as a head names it.
pub const ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };

/// Kinds of records.
pub mod kind {
    /// A namespace that is recorded from here on.
    pub const NAMESPACE: u16 = 1;
    /// A listing begins.
    pub const BEGIN: u16 = 2;
    /// A request of a listing.
    pub const REQUEST: u16 = 3;
    /// A datagram of its answer.
    pub const ANSWER: u16 = 4;
    /// The listing ended.
    pub const LISTED: u16 = 5;
    /// A datagram of events.
    pub const EVENT: u16 = 6;
    /// The kernel dropped events.
    pub const OVERRUN: u16 = 7;
    /// How fast links are.
    pub const SPEEDS: u16 = 8;
    /// What IP counted.
    pub const IP: u16 = 9;
    /// The mirror of the namespace ended.
    pub const ENDED: u16 = 10;
    /// Records are missing here.
    pub const GAP: u16 = 11;
    /// A feed whose rows stand beside a namespace's is recorded from here
    /// on. What it and the next two hold is the feed's own
    /// (`feed::recording`), but for what [`Input`](super::Input) says.
    pub const FEED: u16 = 12;
    /// What a feed heard.
    pub const FEED_HEARD: u16 = 13;
    /// How a feed stands is told whole from here on, or was.
    pub const FEED_STATE: u16 = 14;
    /// What links have counted: of a history.
    pub const COUNTERS: u16 = 15;
    /// All that came before this time stands before it: of a history.
    pub const ALIVE: u16 = 16;
}

/// What a listing is for: it decides what a difference means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The first: its rows are the tables.
    Load,
    /// Events were lost: whatever differs is changed.
    Resync,
    /// To see whether the mirror is true; and the beginning of each
    /// further part of a recording.
    Scan,
    /// To learn what the kernel does not announce.
    Sample,
}

/// Which tables a listing is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each names its table")]
pub enum Which {
    All,
    Links,
    Addresses,
    Neighbours,
    Fdb,
}

/// What a listing that was not broken off was like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The tables that were read whole.
    pub whole: CompleteTables,
    /// Whether all that were asked for were.
    pub complete: bool,
    /// Listings that the kernel called interrupted.
    pub interrupted: u64,
}

/// How a listing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is of use.
    Listed(Listed),
    /// It is of none: events were lost meanwhile, or it failed.
    Void,
}

/// A record: what a mirror was fed with, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// [`kind`].
    pub kind: u16,
    /// The number of its namespace in this recording.
    pub namespace: u32,
    /// Microseconds since the UNIX epoch.
    pub at_micros: u64,
    /// What it says.
    pub payload: &'a [u8],
}

/// A record, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in `kind`")]
pub enum Input<'a> {
    Namespace {
        /// Its inode, where it was recorded.
        inode: u64,
        /// As it was named; empty: the daemon's own.
        name: &'a str,
    },
    Begin(Purpose, Which),
    Request(&'a [u8]),
    Answer(&'a [u8]),
    Listed(Outcome),
    Event(&'a [u8]),
    Overrun,
    Speeds(Vec<(u32, u32)>),
    /// The files' texts, as they were.
    Ip([&'a str; 6]),
    /// Why.
    Ended(&'a str),
    Gap {
        /// Records that are missing.
        records: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// A feed joined.
    Feed {
        /// The number of the namespace that its rows stand beside.
        beside: u32,
        /// Which feed it is.
        said: &'a [u8],
    },
    FeedHeard(&'a [u8]),
    FeedState {
        /// It was told whole; else it begins to be told.
        is_whole: bool,
    },
    /// What links have counted.
    Counters {
        /// Of all links; else of those that have counted since.
        of_all: bool,
        /// By link.
        links: Vec<(u32, LinkCounters)>,
    },
    /// Nothing is missing before this time.
    Alive,
    /// A kind that a later release may have: to be passed over.
    Unknown(u16),
}

/// A record whose payload makes no sense although its check fits: it was
/// made so.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a record of kind {kind} does not hold {what}")]
pub struct BadRecord {
    /// Its kind.
    pub kind: u16,
    /// What it should hold.
    pub what: &'static str,
}

/// A file's head.
pub(crate) fn head(run_micros: u64, part: u32, begun_micros: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = head.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(0, &MAGIC);
    put(8, &VERSION.to_le_bytes());
    put(10, &[ORDER]);
    put(12, &part.to_le_bytes());
    put(16, &run_micros.to_le_bytes());
    put(24, &begun_micros.to_le_bytes());
    let check = crc32fast::hash(&head[..HEAD_BYTES - 4]);
    head[HEAD_BYTES - 4..].copy_from_slice(&check.to_le_bytes());
    head
}

/// Appends a record to `out`, without its check: [`seal`] puts that in,
/// where time matters less.
pub(crate) fn put(out: &mut Vec<u8>, record: &Record<'_>) {
    let len = record.payload.len() as u32;
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&record.kind.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&record.namespace.to_le_bytes());
    out.extend_from_slice(&record.at_micros.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(record.payload);
}

/// Puts the check into each record of some whole ones in a row; gives
/// their number, and calls `each` for each. O(bytes).
pub(crate) fn seal(records: &mut [u8], each: &mut dyn FnMut(&Record<'_>)) -> u64 {
    let mut rest = records;
    let mut sealed = 0;
    while let Some((frame, after)) = rest.split_first_chunk_mut::<FRAME_BYTES>() {
        let (record, len) = framed(frame);
        let Some((payload, next)) = after.split_at_mut_checked(len) else {
            break;
        };
        let sum = check(frame, payload);
        frame[CHECK_AT..].copy_from_slice(&sum.to_le_bytes());
        each(&Record { payload, ..record });
        sealed += 1;
        rest = next;
    }
    sealed
}

/// What a frame says, but for its payload, and the payload's length.
pub(crate) fn framed(frame: &[u8; FRAME_BYTES]) -> (Record<'static>, usize) {
    let record = Record {
        kind: u16_at(frame, 4),
        namespace: u32_at(frame, 8),
        at_micros: u64_at(frame, 12),
        payload: &[],
    };
    (record, u32_at(frame, 0) as usize)
}

/// The check of a record: CRC-32 (as in zlib) of the frame before it and
/// the payload.
pub(crate) fn check(frame: &[u8; FRAME_BYTES], payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&frame[..CHECK_AT]);
    hasher.update(payload);
    hasher.finalize()
}

/// The number that begins at a place; 0 beyond the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |found| u32::from_le_bytes(*found))
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |found| u16::from_le_bytes(*found))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |found| u64::from_le_bytes(*found))
}

impl<'a> Record<'a> {
    /// What it says. O(1) but for speeds and texts, which are O(bytes).
    pub fn input(&self) -> Result<Input<'a>, BadRecord> {
        let bad = |what| BadRecord {
            kind: self.kind,
            what,
        };
        let payload = self.payload;
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| bad("a text in UTF-8"));
        Ok(match self.kind {
            kind::NAMESPACE => {
                let (inode, name) = payload.split_first_chunk().ok_or(bad("an inode"))?;
                Input::Namespace {
                    inode: u64::from_le_bytes(*inode),
                    name: text(name)?,
                }
            }
            kind::BEGIN => {
                let [purpose, which, ..] = payload else {
                    return Err(bad("a purpose and which tables"));
                };
                let purpose = Purpose::of(*purpose).ok_or(bad("a known purpose"))?;
                Input::Begin(purpose, Which::of(*which).ok_or(bad("known tables"))?)
            }
            kind::REQUEST => Input::Request(payload),
            kind::ANSWER => Input::Answer(payload),
            kind::LISTED => Input::Listed(Outcome::of(payload).ok_or(bad("how a listing ended"))?),
            kind::EVENT => Input::Event(payload),
            kind::OVERRUN => Input::Overrun,
            kind::SPEEDS => Input::Speeds(speeds(payload)),
            kind::IP => Input::Ip(texts(payload).ok_or(bad("six texts"))?),
            kind::ENDED => Input::Ended(text(payload)?),
            kind::GAP => Input::Gap {
                records: u64_at(payload, 0),
                bytes: u64_at(payload, 8),
            },
            kind::FEED => {
                let (beside, said) = payload.split_first_chunk().ok_or(bad("a namespace"))?;
                let beside = u32::from_le_bytes(*beside);
                Input::Feed { beside, said }
            }
            kind::FEED_HEARD => Input::FeedHeard(payload),
            kind::FEED_STATE => match payload {
                [0 | 1] => Input::FeedState {
                    is_whole: payload == [1],
                },
                _ => return Err(bad("whether a feed's state begins or is whole")),
            },
            kind::COUNTERS => {
                let (of_all, links) = counters(payload).ok_or(bad("counters of links"))?;
                Input::Counters { of_all, links }
            }
            kind::ALIVE => Input::Alive,
            other => Input::Unknown(other),
        })
    }
}

/// Counters of a link in a record.
const COUNTED_BYTES: usize = 4 + 8 * LinkCounters::COUNT;

fn counters(payload: &[u8]) -> Option<(bool, Vec<(u32, LinkCounters)>)> {
    let (of_all, rest) = payload.split_first()?;
    if *of_all > 1 || !rest.len().is_multiple_of(COUNTED_BYTES) {
        return None;
    }
    let links = rest.chunks_exact(COUNTED_BYTES).map(|one| {
        let words = std::array::from_fn(|word| u64_at(one, 4 + 8 * word));
        (u32_at(one, 0), LinkCounters::of_words(words))
    });
    Some((*of_all == 1, links.collect()))
}

/// As [`counters`] reads them.
pub(crate) fn counters_payload(of_all: bool, links: &[(u32, LinkCounters)]) -> Vec<u8> {
    let most = links.len().min(MAX_COUNTED);
    let mut payload = Vec::with_capacity(1 + most * COUNTED_BYTES);
    payload.push(u8::from(of_all));
    for (link, counters) in links.iter().take(most) {
        payload.extend_from_slice(&link.to_le_bytes());
        let words = counters.words();
        payload.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    payload
}

/// Links of a record of counters at most: some 800 KiB.
pub(crate) const MAX_COUNTED: usize = 4_096;

fn speeds(payload: &[u8]) -> Vec<(u32, u32)> {
    let pairs = payload.chunks_exact(8);
    pairs
        .map(|pair| (u32_at(pair, 0), u32_at(pair, 4)))
        .collect()
}

/// As [`speeds`] reads them.
pub(crate) fn speeds_payload(known: &[(u32, u32)]) -> Vec<u8> {
    let most = known.iter().take(MAX_PAYLOAD_BYTES / 8);
    most.flat_map(|(link, speed)| [link.to_le_bytes(), speed.to_le_bytes()])
        .flatten()
        .collect()
}

fn texts(payload: &[u8]) -> Option<[&str; 6]> {
    let mut rest = payload;
    let mut texts = [""; 6];
    for text in &mut texts {
        let (len, after) = rest.split_first_chunk()?;
        let (bytes, next) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        *text = std::str::from_utf8(bytes).ok()?;
        rest = next;
    }
    Some(texts)
}

/// As [`texts`] reads them.
pub(crate) fn texts_payload(texts: &Texts) -> Vec<u8> {
    let mut payload = Vec::new();
    for text in &texts.0 {
        payload.extend_from_slice(&(text.len() as u32).to_le_bytes());
        payload.extend_from_slice(text.as_bytes());
    }
    payload
}

impl Purpose {
    fn of(number: u8) -> Option<Self> {
        let all = [Self::Load, Self::Resync, Self::Scan, Self::Sample];
        all.into_iter().find(|one| *one as u8 == number)
    }
}

impl Which {
    fn of(number: u8) -> Option<Self> {
        let all = [
            Self::All,
            Self::Links,
            Self::Addresses,
            Self::Neighbours,
            Self::Fdb,
        ];
        all.into_iter().find(|one| *one as u8 == number)
    }
}

/// The bits of [`CompleteTables`], in their order.
fn bits(whole: CompleteTables) -> [bool; 8] {
    [
        whole.links,
        whole.addresses,
        whole.neighbours,
        whole.fdb,
        whole.v4_routes,
        whole.v6_routes,
        whole.nexthops,
        whole.rules,
    ]
}

fn whole(number: u8) -> CompleteTables {
    let bit = |at: u8| number & 1 << at != 0;
    CompleteTables {
        links: bit(0),
        addresses: bit(1),
        neighbours: bit(2),
        fdb: bit(3),
        v4_routes: bit(4),
        v6_routes: bit(5),
        nexthops: bit(6),
        rules: bit(7),
    }
}

impl Outcome {
    /// As [`Outcome::of`] reads it.
    pub(crate) fn payload(self) -> [u8; 8] {
        let Self::Listed(listed) = self else {
            return [1, 0, 0, 0, 0, 0, 0, 0];
        };
        let mut mask = 0;
        for (at, bit) in bits(listed.whole).into_iter().enumerate() {
            mask |= u8::from(bit) << at;
        }
        let interrupted = u32::try_from(listed.interrupted).unwrap_or(u32::MAX);
        let [a, b, c, d] = interrupted.to_le_bytes();
        [0, u8::from(listed.complete), mask, 0, a, b, c, d]
    }

    fn of(payload: &[u8]) -> Option<Self> {
        let [outcome, complete, mask, ..] = *payload.first_chunk::<8>()?;
        match outcome {
            0 => Some(Self::Listed(Listed {
                whole: whole(mask),
                complete: complete != 0,
                interrupted: u32_at(payload, 4).into(),
            })),
            1 => Some(Self::Void),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_survive_the_journey() {
        for mask in 0..=255 {
            let listed = Outcome::Listed(Listed {
                whole: whole(mask),
                complete: mask % 2 == 0,
                interrupted: 7 * u64::from(mask),
            });
            assert_eq!(Outcome::of(&listed.payload()), Some(listed));
        }
        assert_eq!(Outcome::of(&Outcome::Void.payload()), Some(Outcome::Void));
        assert_eq!(Outcome::of(&[0, 1, 2]), None);
        assert_eq!(Outcome::of(&[9; 8]), None);
    }

    #[test]
    fn texts_and_speeds_survive_the_journey() {
        let mut said = Texts::default();
        said.0[0] = "Ip: Forwarding\nIp: 1\n".into();
        said.0[5] = "64\n".into();
        let payload = texts_payload(&said);
        assert_eq!(texts(&payload).unwrap().map(str::to_owned), said.0);
        assert_eq!(texts(&payload[..payload.len() - 1]), None);
        let known = [(1, 10_000), (7, 25_000)];
        assert_eq!(speeds(&speeds_payload(&known)), known);
    }

    #[test]
    fn a_payload_that_was_made_wrong_is_an_error() {
        for (kind, payload) in [
            (kind::NAMESPACE, &b"short"[..]),
            (kind::NAMESPACE, b"\0\0\0\0\0\0\0\0\xff"),
            (kind::BEGIN, b"\x09\x00"),
            (kind::BEGIN, b"\x00\x09"),
            (kind::BEGIN, b""),
            (kind::LISTED, b""),
            (kind::IP, b"\xff\xff\xff\xff"),
            (kind::ENDED, b"\xff"),
            (kind::FEED, b"\x01\x00\x00"),
            (kind::FEED_STATE, b""),
            (kind::FEED_STATE, b"\x02"),
        ] {
            let record = Record {
                kind,
                namespace: 0,
                at_micros: 0,
                payload,
            };
            let bad = record.input().unwrap_err();
            assert_eq!(bad.kind, kind, "{bad}");
        }
    }
}
