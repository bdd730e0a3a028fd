//! Records out of a recording. Whatever is in the file: an error that
//! names the place, and everything before it.

use std::io::{self, Read};

use thiserror::Error;

use super::format::{
    CHECK_AT, FRAME_BYTES, HEAD_BYTES, MAGIC, MAX_PAYLOAD_BYTES, ORDER, Record, VERSION, check,
    framed, u16_at, u32_at, u64_at,
};

/// Why a recording cannot be read, or not further.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are what the message names")]
pub enum BadRecording {
    /// The system did not give the bytes.
    #[error("byte {offset}: {source}")]
    Unreadable { offset: u64, source: io::Error },
    /// Another kind of file.
    #[error("this is no recording of fingerpost: it does not begin as one")]
    NoRecording,
    /// A recording of another release.
    #[error(
        "a recording of version {version}; this fingerpost reads version {VERSION}: replay it with \
         the release that made it"
    )]
    Version { version: u16 },
    /// A machine of the other byte order recorded it.
    #[error(
        "it was recorded on a machine of the other byte order, and holds its messages as they \
         came: replay it on such a machine"
    )]
    ByteOrder,
    /// The head's check does not fit.
    #[error("the head of the recording is damaged (the first {HEAD_BYTES} bytes)")]
    DamagedHead,
    /// The file ends in the middle of a record.
    #[error(
        "it ends in the middle of record {record}, at byte {offset}: it was cut off, or is still \
         being written"
    )]
    Truncated { record: u64, offset: u64 },
    /// A record's check does not fit.
    #[error("record {record}, at byte {offset}, is damaged: its check does not fit")]
    Damaged { record: u64, offset: u64 },
    /// A record claims more than one may have.
    #[error(
        "record {record}, at byte {offset}, is damaged: it claims {claimed} bytes, and may have \
         {MAX_PAYLOAD_BYTES}"
    )]
    TooLong {
        record: u64,
        offset: u64,
        claimed: usize,
    },
}

/// What the head of a recording says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// When the recording was begun, microseconds since the UNIX epoch:
    /// the same in all its parts.
    pub run_micros: u64,
    /// Which part of it the file is, from 0.
    pub part: u32,
    /// When the part was begun.
    pub begun_micros: u64,
}

/// Reads a recording. Memory: the longest record, as far as the file
/// really has its bytes. Give it something buffered.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    head: Head,
    /// Records read.
    record: u64,
    /// Where the next one begins.
    offset: u64,
    payload: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Begins to read: the file's head.
    pub fn open(mut from: R) -> Result<Self, BadRecording> {
        let mut head = [0; HEAD_BYTES];
        let read = fill(&mut from, &mut head)
            .map_err(|source| BadRecording::Unreadable { offset: 0, source })?;
        let known = MAGIC.len().min(read);
        if read == 0 || head.get(..known) != MAGIC.get(..known) {
            return Err(BadRecording::NoRecording);
        }
        if read < HEAD_BYTES {
            return Err(BadRecording::Truncated {
                record: 0,
                offset: 0,
            });
        }
        match u16_at(&head, 8) {
            VERSION => {}
            version => return Err(BadRecording::Version { version }),
        }
        let said = u32_at(&head, HEAD_BYTES - 4);
        if said != crc32fast::hash(&head[..HEAD_BYTES - 4]) {
            return Err(BadRecording::DamagedHead);
        }
        if head[10] != ORDER {
            return Err(BadRecording::ByteOrder);
        }
        Ok(Self {
            from,
            head: Head {
                part: u32_at(&head, 12),
                run_micros: u64_at(&head, 16),
                begun_micros: u64_at(&head, 24),
            },
            record: 0,
            offset: HEAD_BYTES as u64,
            payload: Vec::new(),
        })
    }

    /// What its head says.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Records read so far.
    pub fn records(&self) -> u64 {
        self.record
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` at the end. After an error there is nothing
    /// more to be had: what follows cannot be told from noise.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, BadRecording> {
        let (record, offset) = (self.record, self.offset);
        let unreadable = |source| BadRecording::Unreadable { offset, source };
        let mut frame = [0; FRAME_BYTES];
        match fill(&mut self.from, &mut frame).map_err(unreadable)? {
            0 => return Ok(None),
            FRAME_BYTES => {}
            _ => return Err(BadRecording::Truncated { record, offset }),
        }
        let (read, len) = framed(&frame);
        if len > MAX_PAYLOAD_BYTES {
            return Err(BadRecording::TooLong {
                record,
                offset,
                claimed: len,
            });
        }
        if !self.read_payload(len).map_err(unreadable)? {
            return Err(BadRecording::Truncated { record, offset });
        }
        if u32_at(&frame, CHECK_AT) != check(&frame, &self.payload) {
            return Err(BadRecording::Damaged { record, offset });
        }
        self.record += 1;
        self.offset += (FRAME_BYTES + len) as u64;
        Ok(Some(Record {
            payload: &self.payload,
            ..read
        }))
    }

    /// Reads so many bytes; false when there are fewer. What only claims
    /// to be long takes no memory.
    fn read_payload(&mut self, len: usize) -> io::Result<bool> {
        /// Longer payloads than a datagram are read piece by piece.
        const PIECE: usize = 64 << 10;
        self.payload.clear();
        while self.payload.len() < len {
            let have = self.payload.len();
            let piece = PIECE.min(len - have);
            self.payload.resize(have + piece, 0);
            if fill(&mut self.from, &mut self.payload[have..])? < piece {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Reads until the buffer is full or the file ends; gives how much.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while let Some(rest) = buffer.get_mut(have..)
        && !rest.is_empty()
    {
        match from.read(rest) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

#[cfg(test)]
mod tests {
    use super::super::format::{head, kind, put, seal};
    use super::*;

    fn recording(payloads: &[&[u8]]) -> Vec<u8> {
        let mut records = Vec::new();
        for (at, payload) in payloads.iter().enumerate() {
            let record = Record {
                kind: kind::EVENT,
                namespace: 3,
                at_micros: 1_000 + at as u64,
                payload,
            };
            put(&mut records, &record);
        }
        seal(&mut records, &mut |_| {});
        [&head(5, 2, 6)[..], &records].concat()
    }

    /// What can be read of some bytes, and how it ended.
    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Result<(), BadRecording>) {
        let mut payloads = Vec::new();
        let mut reader = match Reader::open(bytes) {
            Ok(reader) => reader,
            Err(bad) => return (payloads, Err(bad)),
        };
        loop {
            match reader.next_record() {
                Ok(Some(record)) => payloads.push(record.payload.to_vec()),
                Ok(None) => return (payloads, Ok(())),
                Err(bad) => return (payloads, Err(bad)),
            }
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = recording(&[b"one", b"", &[7; 100_000]]);
        let mut reader = Reader::open(&bytes[..]).unwrap();
        let head = reader.head();
        assert_eq!((head.run_micros, head.part, head.begun_micros), (5, 2, 6));
        let first = reader.next_record().unwrap().unwrap();
        assert_eq!((first.namespace, first.at_micros), (3, 1_000));
        assert_eq!(first.input(), Ok(super::super::Input::Event(b"one")));
        let (payloads, end) = read(&bytes);
        assert_eq!(payloads, [&b"one"[..], b"", &[7; 100_000]]);
        end.unwrap();
    }

    #[test]
    fn a_cut_names_its_place_and_leaves_what_came_before() {
        let bytes = recording(&[b"one", b"two", b"three"]);
        let ends = [40, 40 + 27, 40 + 54, 40 + 54 + 29];
        for cut in 0..bytes.len() {
            let (payloads, end) = read(&bytes[..cut]);
            let whole = ends.iter().filter(|end| cut >= **end).count();
            assert_eq!(payloads.len(), whole.saturating_sub(1), "cut at {cut}");
            match end {
                Ok(()) => assert!(ends.contains(&cut), "cut at {cut}"),
                Err(BadRecording::NoRecording) => assert_eq!(cut, 0),
                Err(BadRecording::Truncated { record, offset }) => {
                    assert_eq!(record as usize, payloads.len(), "cut at {cut}");
                    let begin = if cut < 40 { 0 } else { ends[payloads.len()] };
                    assert_eq!(offset as usize, begin, "cut at {cut}");
                }
                Err(other) => panic!("cut at {cut}: {other}"),
            }
        }
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let bytes = recording(&[b"one", b"two", b"three"]);
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let (payloads, end) = read(&damaged);
                assert!(end.is_err(), "byte {at} with {flip:#x}");
                let whole = [&b"one"[..], b"two", b"three"];
                assert_eq!(payloads[..], whole[..payloads.len()], "byte {at}");
            }
        }
    }

    #[test]
    fn a_claim_takes_no_memory() {
        let mut bytes = recording(&[b"one"]);
        bytes[40..44].copy_from_slice(&(MAX_PAYLOAD_BYTES as u32).to_le_bytes());
        let mut reader = Reader::open(&bytes[..]).unwrap();
        assert!(matches!(
            reader.next_record(),
            Err(BadRecording::Truncated { .. })
        ));
        assert!(reader.payload.capacity() <= 128 << 10);
        bytes[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
        let (_, end) = read(&bytes);
        assert!(matches!(end, Err(BadRecording::TooLong { .. })), "{end:?}");
    }

    #[test]
    fn what_is_no_recording_is_said_so() {
        for bytes in [&b"{\"json\":1}"[..], b"", b"FPREC\n\n\x1a", b"\x1f\x8b"] {
            let (_, end) = read(bytes);
            assert!(matches!(end, Err(BadRecording::NoRecording)), "{end:?}");
        }
        let mut later = recording(&[]);
        later[8] = 2;
        let (_, end) = read(&later);
        let said = end.unwrap_err().to_string();
        assert!(said.contains("version 2"), "{said}");
        let mut other = head(1, 0, 1);
        other[10] = 3 - ORDER;
        let check = crc32fast::hash(&other[..36]);
        other[36..].copy_from_slice(&check.to_le_bytes());
        let (_, end) = read(&other);
        assert!(matches!(end, Err(BadRecording::ByteOrder)), "{end:?}");
    }
}
