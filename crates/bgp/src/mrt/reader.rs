//! Records out of a stream of bytes.

use std::io::{self, Read};

use thiserror::Error;

use super::{TableDump, kind};

/// Bytes of a record at most: a prefix that a thousand peers have, with
/// attributes of a kilobyte each, takes one.
const MAX_RECORD: u32 = 64 << 20;
/// No type has so many subtypes.
const MAX_SUBTYPE: u16 = 64;
/// Time, type, subtype, length.
const HEADER: usize = 12;

/// What stands before a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When it was written, microseconds since the UNIX epoch.
    pub at_micros: u64,
    /// Its type.
    pub kind: u16,
    /// What this is depends on the type.
    pub subtype: u16,
}

impl Header {
    /// Of the first record of a file; `None`: it does not begin as a file
    /// does that is read here.
    pub fn of_first(begins: &[u8]) -> Option<Self> {
        let head = begins.first_chunk()?;
        let (header, len) = Self::read(head);
        let is_known = kind::ALL.contains(&header.kind) && header.subtype < MAX_SUBTYPE;
        (is_known && len <= MAX_RECORD).then_some(header)
    }

    /// Whether it stands before a message, or a change of a session: not
    /// before a part of a table.
    pub fn is_message(&self) -> bool {
        !matches!(self.kind, kind::TABLE_DUMP | kind::TABLE_DUMP_V2)
    }

    /// The header and the length of the record.
    fn read(head: &[u8; HEADER]) -> (Self, u32) {
        let [a, b, c, d, e, f, g, h, len @ ..] = *head;
        let header = Self {
            at_micros: u64::from(u32::from_be_bytes([a, b, c, d])) * 1_000_000,
            kind: u16::from_be_bytes([e, f]),
            subtype: u16::from_be_bytes([g, h]),
        };
        (header, u32::from_be_bytes(len))
    }
}

/// Why a file cannot be read further. What is before it was read.
#[derive(Debug, Error)]
pub enum BadFile {
    /// The file ends within a record.
    #[error("it ends {0} bytes into the record")]
    Cut(usize),
    /// A record longer than any may be: what is read is no record.
    #[error("the record says that it has {0} bytes; more than {MAX_RECORD} are not read")]
    TooLong(u32),
    /// A record of microseconds that has no room for them.
    #[error("the record is too short for its time")]
    NoTime,
    /// The stream cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads records one after the other.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    body: Vec<u8>,
    records: u64,
    bytes: u64,
}

impl<R: Read> Reader<R> {
    /// At the beginning of a stream.
    pub fn new(from: R) -> Self {
        Self {
            from,
            body: Vec::new(),
            records: 0,
            bytes: 0,
        }
    }

    /// Records read.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Where the next record begins: bytes of the unpacked stream.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next record's header and body; `None`: the stream ends behind
    /// the last one.
    pub fn next_record(&mut self) -> Result<Option<(Header, &[u8])>, BadFile> {
        let mut head = [0; HEADER];
        match fill(&mut self.from, &mut head)? {
            0 => return Ok(None),
            HEADER => {}
            cut => return Err(BadFile::Cut(cut)),
        }
        let (mut header, len) = Header::read(&head);
        if len > MAX_RECORD {
            return Err(BadFile::TooLong(len));
        }
        // What is not there is not made room for.
        self.body.clear();
        let mut body = self.from.by_ref().take(len.into());
        let read = body.read_to_end(&mut self.body)?;
        if read < len as usize {
            return Err(BadFile::Cut(HEADER + read));
        }
        if header.kind == kind::TABLE_DUMP && TableDump::is_four_short(header.subtype, &self.body) {
            let mut rest = self.from.by_ref().take(4);
            if rest.read_to_end(&mut self.body)? < 4 {
                return Err(BadFile::Cut(HEADER + self.body.len()));
            }
        }
        self.records += 1;
        self.bytes += (HEADER + self.body.len()) as u64;
        if header.kind != kind::BGP4MP_ET {
            return Ok(Some((header, &self.body)));
        }
        let (micros, body) = self.body.split_first_chunk().ok_or(BadFile::NoTime)?;
        header.at_micros += u64::from(u32::from_be_bytes(*micros).min(999_999));
        Ok(Some((header, body)))
    }
}

/// Reads until so much is there or the stream ends; how much is there.
fn fill(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match from.read(&mut to[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u32, kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
        let mut record = time.to_be_bytes().to_vec();
        record.extend_from_slice(&kind.to_be_bytes());
        record.extend_from_slice(&subtype.to_be_bytes());
        record.extend_from_slice(&(body.len() as u32).to_be_bytes());
        record.extend_from_slice(body);
        record
    }

    #[test]
    fn records_are_read_to_where_the_file_is_cut() {
        let mut file = record(7, 13, 1, b"abc");
        file.extend(record(8, 17, 4, &[0, 0, 0, 9, 1, 2]));
        let mut reader = Reader::new(&file[..]);
        let (header, body) = reader.next_record().unwrap().unwrap();
        assert_eq!(
            (header.at_micros, header.kind, header.subtype),
            (7_000_000, 13, 1)
        );
        assert_eq!(body, b"abc");
        assert_eq!((reader.records(), reader.bytes()), (1, 15));
        let (header, body) = reader.next_record().unwrap().unwrap();
        assert_eq!((header.at_micros, body), (8_000_009, &[1, 2][..]));
        assert!(reader.next_record().unwrap().is_none());
        for cut in 16..file.len() {
            let mut reader = Reader::new(&file[..cut]);
            reader.next_record().unwrap();
            let bad = reader.next_record().unwrap_err();
            assert!(matches!(bad, BadFile::Cut(at) if at == cut - 15), "{cut}");
        }
    }

    #[test]
    fn a_length_that_lies_takes_no_memory() {
        let mut lying = record(1, 13, 2, b"");
        lying[8..12].copy_from_slice(&MAX_RECORD.to_be_bytes());
        let mut reader = Reader::new(&lying[..]);
        assert!(matches!(reader.next_record(), Err(BadFile::Cut(12))));
        assert!(reader.body.capacity() < 1 << 20);
        lying[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        let mut reader = Reader::new(&lying[..]);
        assert!(matches!(
            reader.next_record(),
            Err(BadFile::TooLong(u32::MAX))
        ));
        let short = record(1, 17, 2, b"abc");
        let mut reader = Reader::new(&short[..]);
        assert!(matches!(reader.next_record(), Err(BadFile::NoTime)));
    }
}
