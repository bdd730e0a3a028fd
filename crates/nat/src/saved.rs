//! An engine's state as bytes: what a translation leaves behind at its end
//! and another one takes up ([`Nat::save`], [`Nat::take_up`]).
//!
//! A state is a word and a version, and then *chunks*: a tag, records of one
//! length, and a sum over all of it. A reader passes by a chunk whose tag it
//! does not know, and what stands behind the fields of a record that it does;
//! a field that an older writer did not have is 0. So either may be the newer
//! one. What cannot be read so takes another version, and that is refused.
//!
//! ```text
//!   word (6) version (2) | tag (4) bytes of a record (4) records (4) … sum (4) | …
//! ```
//! Numbers are little-endian, addresses and ports as in a packet. Who writes
//! a file may add chunks of its own before those of an engine, whose first
//! one is [`tag::ENGINE`] and whose last one [`tag::END`].
//!
//! [`Nat::save`]: crate::Nat::save
//! [`Nat::take_up`]: crate::Nat::take_up

use std::io::{self, ErrorKind, Read, Write};

/// What a state begins with.
const WORD: [u8; 6] = *b"FPNATS";
/// The version that is written, and the only one that is read.
pub const VERSION: u16 = 1;
/// Bytes of a chunk's records at which it is written.
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of a chunk's records that are read at most.
const MOST_BYTES: usize = 1 << 20;

/// What chunks are about. A tag's records only ever get longer.
pub mod tag {
    /// The first of an engine.
    pub const ENGINE: [u8; 4] = *b"engi";
    /// The last of an engine.
    pub const END: [u8; 4] = *b"end.";
    pub(crate) const FLOW: [u8; 4] = *b"flow";
    pub(crate) const FREE_FLOW: [u8; 4] = *b"ffre";
    pub(crate) const MAPPING: [u8; 4] = *b"mapp";
    pub(crate) const FREE_MAPPING: [u8; 4] = *b"mfre";
    pub(crate) const SUBSCRIBER: [u8; 4] = *b"subs";
    pub(crate) const FREE_SUBSCRIBER: [u8; 4] = *b"sfre";
    pub(crate) const HOME: [u8; 4] = *b"home";
    pub(crate) const BLOCK: [u8; 4] = *b"blok";
    pub(crate) const FREE_BLOCK: [u8; 4] = *b"bfre";
    pub(crate) const RESTING: [u8; 4] = *b"rest";
    pub(crate) const TOLD: [u8; 4] = *b"told";
    pub(crate) const AVAILABLE: [u8; 4] = *b"avai";
    pub(crate) const UNOPENED: [u8; 4] = *b"unop";
    pub(crate) const HELD_PORT: [u8; 4] = *b"held";
    pub(crate) const STRANGER: [u8; 4] = *b"stra";
    pub(crate) const EXPECTED: [u8; 4] = *b"expe";
    pub(crate) const PROXIED: [u8; 4] = *b"prox";
    pub(crate) const CONNECTION: [u8; 4] = *b"conn";
    pub(crate) const CHANGE: [u8; 4] = *b"chan";
    pub(crate) const CALL: [u8; 4] = *b"call";
    pub(crate) const EPOCH: [u8; 4] = *b"epoc";
    pub(crate) const LEASE: [u8; 4] = *b"leas";
    pub(crate) const LEASE_FILTER: [u8; 4] = *b"lfil";
}

/// Why a state is not taken up.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is no saved state of a translation")]
    Other,
    /// It is of another version.
    #[error("it is of version {0}, and {VERSION} is known")]
    Version(u16),
    /// Something is not as it was written, or its end is missing.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// The settings have changed so much that nothing of it can stay.
    #[error("it was saved with another {0}")]
    Settings(&'static str),
}

/// Writes chunks.
pub struct Chunks<'a> {
    out: &'a mut dyn Write,
    tag: [u8; 4],
    /// Records of one tag that are not written yet.
    records: Vec<u8>,
    record_bytes: usize,
}

impl<'a> Chunks<'a> {
    /// Begins a state.
    pub fn new(out: &'a mut dyn Write) -> io::Result<Self> {
        out.write_all(&WORD)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Self {
            out,
            tag: [0; 4],
            records: Vec::with_capacity(CHUNK_BYTES + 4_096),
            record_bytes: 0,
        })
    }

    /// One record. All of a tag are of one length.
    pub fn record(&mut self, tag: [u8; 4], record: &[u8]) -> io::Result<()> {
        let is_full = self.records.len() >= CHUNK_BYTES;
        if is_full || tag != self.tag || record.len() != self.record_bytes {
            self.flush()?;
            self.tag = tag;
            self.record_bytes = record.len();
        }
        self.records.extend_from_slice(record);
        Ok(())
    }

    /// Some names, each a record of its own.
    pub(crate) fn names(
        &mut self,
        tag: [u8; 4],
        names: impl Iterator<Item = u32>,
    ) -> io::Result<()> {
        for name in names {
            self.record(tag, &name.to_le_bytes())?;
        }
        Ok(())
    }

    /// Writes what is not written yet: to be called at the end.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let count = self.records.len() / self.record_bytes.max(1);
        let mut head = [0; 12];
        let words = [self.record_bytes as u32, count as u32];
        for (place, part) in
            head.chunks_exact_mut(4)
                .zip([self.tag, words[0].to_le_bytes(), words[1].to_le_bytes()])
        {
            place.copy_from_slice(&part);
        }
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head);
        sum.update(&self.records);
        self.out.write_all(&head)?;
        self.out.write_all(&self.records)?;
        self.out.write_all(&sum.finalize().to_le_bytes())?;
        self.records.clear();
        Ok(())
    }
}

/// A record as it is made.
#[derive(Debug, Default)]
pub struct Record(Vec<u8>);

impl Record {
    /// With these bytes behind what there is.
    #[must_use]
    pub fn with(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    /// With a number.
    #[must_use]
    pub fn u8(self, number: u8) -> Self {
        self.with([number])
    }

    /// With a number.
    #[must_use]
    pub fn u16(self, number: u16) -> Self {
        self.with(number.to_le_bytes())
    }

    /// With a number.
    #[must_use]
    pub fn u32(self, number: u32) -> Self {
        self.with(number.to_le_bytes())
    }

    /// With a number.
    #[must_use]
    pub fn u64(self, number: u64) -> Self {
        self.with(number.to_le_bytes())
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// An empty one in the same memory.
    #[must_use]
    pub fn again(mut self) -> Self {
        self.0.clear();
        self
    }
}

/// Reads chunks.
pub struct ChunkReader<'a> {
    from: Box<dyn Read + 'a>,
}

/// A chunk: records of one tag.
#[derive(Debug)]
pub struct Chunk {
    /// What they are about.
    pub tag: [u8; 4],
    record_bytes: usize,
    records: Vec<u8>,
}

impl Chunk {
    /// Its records.
    pub fn records(&self) -> impl Iterator<Item = Fields<'_>> {
        self.records.chunks_exact(self.record_bytes).map(Fields)
    }

    /// Their bytes.
    #[cfg(test)]
    pub(crate) fn raw(&self) -> impl Iterator<Item = &[u8]> {
        self.records.chunks_exact(self.record_bytes)
    }
}

impl<'a> ChunkReader<'a> {
    /// Reads the beginning of a state.
    pub fn new(mut from: impl Read + 'a) -> Result<Self, SavedError> {
        let mut word = [0; 6];
        let mut version = [0; 2];
        for part in [&mut word[..], &mut version[..]] {
            match from.read_exact(part) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Err(SavedError::Other);
                }
                read => read?,
            }
        }
        if word != WORD {
            return Err(SavedError::Other);
        }
        match u16::from_le_bytes(version) {
            VERSION => Ok(Self {
                from: Box::new(from),
            }),
            other => Err(SavedError::Version(other)),
        }
    }

    /// The next chunk. A state that ends where one should come is damaged.
    pub fn next_chunk(&mut self) -> Result<Chunk, SavedError> {
        let mut head = [0; 12];
        self.fill(&mut head)?;
        let [t0, t1, t2, t3, b0, b1, b2, b3, c0, c1, c2, c3] = head;
        let record_bytes = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
        let count = u32::from_le_bytes([c0, c1, c2, c3]) as usize;
        let bytes = record_bytes.checked_mul(count);
        let bytes = bytes.filter(|bytes| record_bytes > 0 && *bytes <= MOST_BYTES);
        let bytes = bytes.ok_or(SavedError::Damaged("a chunk's length"))?;
        let mut records = vec![0; bytes];
        self.fill(&mut records)?;
        let mut sum = [0; 4];
        self.fill(&mut sum)?;
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&head);
        hasher.update(&records);
        if hasher.finalize() != u32::from_le_bytes(sum) {
            return Err(SavedError::Damaged("a sum does not fit"));
        }
        Ok(Chunk {
            tag: [t0, t1, t2, t3],
            record_bytes,
            records,
        })
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), SavedError> {
        self.from.read_exact(buffer).map_err(|error| {
            if error.kind() == ErrorKind::UnexpectedEof {
                return SavedError::Damaged("its end is missing");
            }
            SavedError::Io(error)
        })
    }
}

/// The fields of a record, in order; those that it does not have are 0.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    /// The next bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        if let Some((bytes, rest)) = self.0.split_first_chunk() {
            self.0 = rest;
            return *bytes;
        }
        self.0 = &[];
        [0; N]
    }

    /// A number.
    pub fn u8(&mut self) -> u8 {
        let [byte] = self.bytes();
        byte
    }

    /// A number.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    /// A number.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    /// A number.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// A number in memory order, as it stands in a packet.
    pub(crate) fn word(&mut self) -> u32 {
        u32::from_ne_bytes(self.bytes())
    }

    /// The same of a port.
    pub(crate) fn half(&mut self) -> u16 {
        u16::from_ne_bytes(self.bytes())
    }
}

/// The order of free places as it was: those of `free` that may be, each
/// once, and behind them all others that are free.
pub(crate) fn free_order(places: usize, free: &[u32], is_taken: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut is_placed = vec![false; places];
    let mut order = Vec::new();
    let others = 0..places as u32;
    for name in free.iter().copied().chain(others) {
        if let Some(is_placed) = is_placed.get_mut(name as usize)
            && !*is_placed
            && !is_taken(name)
        {
            *is_placed = true;
            order.push(name);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(records: &[([u8; 4], Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut chunks = Chunks::new(&mut out).unwrap();
        for (tag, record) in records {
            chunks.record(*tag, record).unwrap();
        }
        chunks.flush().unwrap();
        out
    }

    #[test]
    fn chunks_come_back_and_fields_may_be_more_or_fewer() {
        let many = (0..40_000_u32).map(|number| (*b"many", number.to_le_bytes().to_vec()));
        let short = (*b"shor", vec![7, 0]);
        let bytes = written(&many.chain([short]).collect::<Vec<_>>());
        let mut reader = ChunkReader::new(bytes.as_slice()).unwrap();
        let mut expected = 0;
        let last = loop {
            let chunk = reader.next_chunk().unwrap();
            if chunk.tag != *b"many" {
                break chunk;
            }
            for mut fields in chunk.records() {
                assert_eq!(fields.u32(), expected);
                expected += 1;
            }
        };
        assert_eq!(expected, 40_000);
        let mut fields = last.records().next().unwrap();
        // The second number is not there.
        assert_eq!((fields.u16(), fields.u32(), fields.u8()), (7, 0, 0));
        let end = reader.next_chunk();
        assert!(matches!(end, Err(SavedError::Damaged(_))), "{end:?}");
    }

    #[test]
    fn each_byte_that_is_not_as_it_was_is_seen() {
        let bytes = written(&[(*b"some", vec![1; 8]), (*b"more", vec![2; 4])]);
        let read = |bytes: &[u8]| -> Result<(), SavedError> {
            let mut reader = ChunkReader::new(bytes)?;
            reader.next_chunk()?;
            reader.next_chunk()?;
            Ok(())
        };
        read(&bytes).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert!(read(&other).is_err(), "byte {at}, bit {bit}");
            }
            assert!(read(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
