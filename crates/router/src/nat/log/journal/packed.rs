//! A file of a journal that is complete, in less room: its records in chunks,
//! each packed by itself (RFC 1950, with its sum), so that one is found
//! without the others.
//!
//! ```text
//!   word (8) | chunk … | where each ends (4 each) | records (4)
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};

use super::bytes::{self, RECORD_BYTES, SUM_BYTES};
use super::{BEGINS, MODE};
use crate::nat::log::record::Record;

/// What a packed file begins with: nothing that a bit would make of the word
/// of one that is not.
pub const PACKED: [u8; 8] = *b"packed01";
/// Records of a chunk.
const CHUNK: usize = 512;

/// A packed file, open.
#[derive(Debug)]
pub struct Packed {
    file: File,
    /// Where each chunk ends.
    ends: Vec<u32>,
    pub count: u32,
}

impl Packed {
    /// `None`: the file is not packed.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let mut word = [0; 8];
        match file.read_exact_at(&mut word, 0) {
            Ok(()) if word == PACKED => {}
            _ => return Ok(None),
        }
        let len = file.metadata()?.len();
        let mut count = [0; 4];
        let at = len.checked_sub(4).ok_or_else(damaged)?;
        file.read_exact_at(&mut count, at)?;
        let count = u32::from_le_bytes(count);
        let chunks = (count as usize).div_ceil(CHUNK);
        let begin = PACKED.len() as u64;
        let table = at.checked_sub(4 * chunks as u64).filter(|at| *at >= begin);
        let table = table.ok_or_else(damaged)?;
        let mut bytes = vec![0; 4 * chunks];
        file.read_exact_at(&mut bytes, table)?;
        let (words, _) = bytes.as_chunks::<4>();
        let ends: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        // Chunks lie in a row from the word to the table: so none is longer
        // than the file.
        let begins = [PACKED.len() as u32];
        let in_row = begins.iter().chain(&ends).is_sorted();
        let last = ends.last().map_or(begin, |end| u64::from(*end));
        match in_row && last == table {
            true => Ok(Some(Self { file, ends, count })),
            false => Err(damaged()),
        }
    }

    /// The chunk that a record is in, and its first record's number.
    pub fn chunk_of(number: u32) -> (u32, u32) {
        let chunk = number / CHUNK as u32;
        (chunk, chunk * CHUNK as u32)
    }

    /// The records of a chunk.
    pub fn chunk(&self, chunk: u32) -> io::Result<Vec<Record>> {
        let at = chunk as usize;
        let from = match at.checked_sub(1) {
            Some(before) => self.ends.get(before).copied(),
            None => Some(PACKED.len() as u32),
        };
        let from = from.ok_or_else(damaged)?;
        let to = self.ends.get(at).copied().filter(|to| *to >= from);
        let mut packed = vec![0; (to.ok_or_else(damaged)? - from) as usize];
        match self.file.read_exact_at(&mut packed, from.into()) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged()),
            read => read?,
        }
        let mut plain = Vec::with_capacity(CHUNK * RECORD_BYTES);
        // One byte more than there may be is damage, whatever it unpacks to.
        let most = (CHUNK * RECORD_BYTES + 1) as u64;
        let mut unpacked = ZlibDecoder::new(packed.as_slice()).take(most);
        unpacked.read_to_end(&mut plain).map_err(|_| damaged())?;
        let (records, rest) = plain.as_chunks::<{ RECORD_BYTES - SUM_BYTES }>();
        if !rest.is_empty() {
            return Err(damaged());
        }
        let records = records.iter().map(bytes::read_bare);
        records.collect::<Option<_>>().ok_or_else(damaged)
    }

    /// All records.
    pub fn all(&self) -> io::Result<Vec<Record>> {
        let mut all = Vec::with_capacity(self.count as usize);
        for chunk in 0..self.ends.len() as u32 {
            all.extend(self.chunk(chunk)?);
        }
        match all.len() == self.count as usize {
            true => Ok(all),
            false => Err(damaged()),
        }
    }
}

/// Packs a file whose records are these, in its place.
pub fn pack(path: &Path, records: &[Record]) -> io::Result<()> {
    let mut out = PACKED.to_vec();
    let mut ends = Vec::new();
    let mut plain = Vec::new();
    for chunk in records.chunks(CHUNK) {
        plain.clear();
        for record in chunk {
            bytes::write_bare(record, &mut plain);
        }
        // What is usual takes twice the time for an eighth less room.
        ZlibEncoder::new(plain.as_slice(), Compression::fast()).read_to_end(&mut out)?;
        let end = u32::try_from(out.len()).map_err(io::Error::other)?;
        ends.extend(end.to_le_bytes());
    }
    out.extend(ends);
    out.extend((records.len() as u32).to_le_bytes());
    replace(path, &out)
}

/// Writes a file of records as they are.
pub fn write_plain<'a>(path: &Path, records: impl Iterator<Item = &'a Record>) -> io::Result<()> {
    let mut out = BEGINS.to_vec();
    for record in records {
        bytes::write(record, &mut out);
    }
    replace(path, &out)
}

/// Puts a file in place once it is on the disk.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_added_extension("new");
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(MODE);
    let mut file = options.open(&beside)?;
    file.write_all(bytes)?;
    // Else a power failure may leave a name without what it stands for.
    file.sync_data()?;
    fs::rename(beside, path)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a packed record is damaged")
}
