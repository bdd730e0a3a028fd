//! Where in a file the records of an alias address, or of an inside one, are:
//! the numbers of all records in two orders, found by halving.
//!
//! ```text
//!   word (8) | records (4) | widest block (2) | 0 (2) | sum of these (4)
//!   both orders (4 a number) | a sum of each 1,024 numbers (4)
//! ```
//!
//! A file without an index (the one that is written) is read whole when it is
//! asked, and what is asked for put in order.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::bytes::{self, RECORD_BYTES};
use super::packed::{self, Packed};
use super::{BEGINS, index_of};
use crate::nat::log::record::{Record, What};

/// What an index begins with.
const INDEX_BEGINS: [u8; 8] = *b"FPNATX02";
/// Bytes before the orders, with and without their sum.
const HEADER_BYTES: usize = 20;
const HEADER_SUMMED: usize = 16;
/// Numbers that have a sum together.
const BLOCK: usize = 1_024;
/// Blocks of an index that are kept.
const BLOCKS_KEPT: usize = 64;
/// Records of a file that are kept for the next question's halving.
const KEPT: usize = 256;
/// Records at a file's end that [`tail`] looks at.
const TAIL: u64 = 1_024;
/// Chunks of a packed file that are kept.
const CHUNKS_KEPT: usize = 64;

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Kind, alias address, first port, time.
    Alias,
    /// Kind, inside address, time.
    Inside,
}

/// What comes first of all: marks that end something, blocks, sessions.
pub fn kind(record: &Record) -> u8 {
    match record.what {
        What::Started | What::Stopped | What::Recovered => 0,
        What::Suspended | What::Resumed => 3,
        _ if record.is_session() => 2,
        _ => 1,
    }
}

/// What a record is put in order by.
pub type Key = (u8, u32, u16, u64);

pub fn key(record: &Record, by: By) -> Key {
    let (address, port) = match by {
        By::Alias => (record.alias, record.ports.0),
        By::Inside => (record.inside, 0),
    };
    (kind(record), address.to_bits(), port, record.at_millis)
}

/// A file that can be asked.
pub struct Indexed {
    source: Source,
    count: u32,
    orders: Orders,
    /// Most ports of a block in it, less one.
    pub widest: u16,
}

/// Where records are read from.
enum Source {
    Plain(File, RefCell<Vec<(u32, Record)>>),
    Packed(Packed, RefCell<Vec<(u32, Vec<Record>)>>),
}

enum Orders {
    File(Numbers),
    /// With the records that they are of.
    Memory([Vec<u32>; 2], Vec<Record>),
}

/// The numbers of an index's file.
struct Numbers {
    file: File,
    /// Of both orders.
    count: u64,
    kept: RefCell<Vec<(u64, Vec<u32>)>>,
}

impl Numbers {
    fn at(&self, place: u64) -> io::Result<u32> {
        let wanted = place / BLOCK as u64;
        let mut kept = self.kept.borrow_mut();
        if !kept.iter().any(|(block, _)| *block == wanted) {
            let numbers = self.read(wanted)?;
            if kept.len() >= BLOCKS_KEPT {
                kept.clear();
            }
            kept.push((wanted, numbers));
        }
        let numbers = kept.iter().find(|(block, _)| *block == wanted);
        let number = numbers.and_then(|(_, all)| all.get((place % BLOCK as u64) as usize));
        number.copied().ok_or_else(|| damaged("an index"))
    }

    fn read(&self, block: u64) -> io::Result<Vec<u32>> {
        let first = block * BLOCK as u64;
        let numbers = self.count.saturating_sub(first).min(BLOCK as u64);
        let mut bytes = vec![0; 4 * numbers as usize];
        self.file
            .read_exact_at(&mut bytes, HEADER_BYTES as u64 + 4 * first)?;
        let mut sum = [0; 4];
        let sums = HEADER_BYTES as u64 + 4 * self.count;
        self.file.read_exact_at(&mut sum, sums + 4 * block)?;
        if crc32fast::hash(&bytes) != u32::from_le_bytes(sum) {
            return Err(damaged("an index"));
        }
        let (words, _) = bytes.as_chunks::<4>();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }
}

impl Indexed {
    /// Opens a file and its index, or reads it whole for those records that
    /// are wanted. Damage is an error.
    pub fn open(path: &Path, is_wanted: &dyn Fn(&Record) -> bool) -> io::Result<Self> {
        let (source, records) = match Packed::open(path)? {
            Some(packed) => {
                let count = packed.count;
                (Source::Packed(packed, RefCell::default()), count)
            }
            None => {
                let file = File::open(path)?;
                let bytes = file.metadata()?.len().saturating_sub(BEGINS.len() as u64);
                let records = (bytes / RECORD_BYTES as u64) as u32;
                (Source::Plain(file, RefCell::default()), records)
            }
        };
        let index = File::open(index_of(path));
        if let Ok(index) = index
            && let Some((count, widest)) = header(&index, records)?
        {
            let numbers = Numbers {
                file: index,
                count: 2 * u64::from(count),
                kept: RefCell::default(),
            };
            return Ok(Self {
                source,
                count,
                orders: Orders::File(numbers),
                widest,
            });
        }
        let mut records = read_all(path)?;
        records.retain(is_wanted);
        let (orders, widest) = orders(&records);
        Ok(Self {
            source,
            count: records.len() as u32,
            orders: Orders::Memory(orders, records),
            widest,
        })
    }

    /// A record by its number.
    fn record(&self, number: u32) -> io::Result<Record> {
        match &self.source {
            Source::Plain(file, kept) => {
                let mut kept = kept.borrow_mut();
                if let Some((_, record)) = kept.iter().find(|(known, _)| *known == number) {
                    return Ok(*record);
                }
                let mut buffer = [0; RECORD_BYTES];
                let at = BEGINS.len() as u64 + u64::from(number) * RECORD_BYTES as u64;
                file.read_exact_at(&mut buffer, at)?;
                let record = bytes::read(&buffer).ok_or_else(|| damaged("a record"))?;
                if kept.len() >= KEPT {
                    kept.clear();
                }
                kept.push((number, record));
                Ok(record)
            }
            Source::Packed(packed, kept) => {
                let (chunk, first) = Packed::chunk_of(number);
                let mut kept = kept.borrow_mut();
                if !kept.iter().any(|(known, _)| *known == chunk) {
                    let records = packed.chunk(chunk)?;
                    if kept.len() >= CHUNKS_KEPT {
                        kept.clear();
                    }
                    kept.push((chunk, records));
                }
                let records = kept.iter().find(|(known, _)| *known == chunk);
                let record = records.and_then(|(_, all)| all.get((number - first) as usize));
                record.copied().ok_or_else(|| damaged("a record"))
            }
        }
    }

    /// The record at a place of an order.
    pub fn at(&self, by: By, place: u32) -> io::Result<Record> {
        let order = by as usize;
        match &self.orders {
            Orders::Memory(orders, records) => {
                let number = orders.get(order).and_then(|of| of.get(place as usize));
                let record = number.and_then(|number| records.get(*number as usize));
                record.copied().ok_or_else(|| damaged("a place"))
            }
            Orders::File(numbers) => {
                let before = order as u64 * u64::from(self.count) + u64::from(place);
                self.record(numbers.at(before)?)
            }
        }
    }

    /// How many records of an order are below a key, or not above it.
    pub fn below(&self, by: By, wanted: Key, or_equal: bool) -> io::Result<u32> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_below = match key(&self.at(by, middle)?, by).cmp(&wanted) {
                Ordering::Less => true,
                Ordering::Equal => or_equal,
                Ordering::Greater => false,
            };
            if is_below {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// How many records an index has, and the widest block; `None`: it is none of
/// a file with so many records, or of another version, and as none at all.
fn header(index: &File, records: u32) -> io::Result<Option<(u32, u16)>> {
    let mut header = [0; HEADER_BYTES];
    if index.read_exact_at(&mut header, 0).is_err() {
        return Ok(None);
    }
    let [rest @ .., c0, c1, c2, c3, w0, w1, _, _, s0, s1, s2, s3] = header;
    let count = u32::from_le_bytes([c0, c1, c2, c3]);
    let summed = header.first_chunk::<HEADER_SUMMED>();
    let sum = summed.map(|summed| crc32fast::hash(summed));
    let numbers = 2 * u64::from(count);
    let bytes = HEADER_BYTES as u64 + 4 * (numbers + numbers.div_ceil(BLOCK as u64));
    let fits = rest == INDEX_BEGINS
        && sum == Some(u32::from_le_bytes([s0, s1, s2, s3]))
        && index.metadata()?.len() == bytes
        && records == count;
    Ok(fits.then_some((count, u16::from_le_bytes([w0, w1]))))
}

/// Whether the index of a file is of another version than those that are
/// written.
pub fn is_stale(path: &Path) -> bool {
    let mut word = [0; INDEX_BEGINS.len()];
    let read = File::open(index_of(path)).and_then(|index| index.read_exact_at(&mut word, 0));
    read.is_ok() && word != INDEX_BEGINS
}

/// Both orders of some records, and the widest block.
fn orders(records: &[Record]) -> ([Vec<u32>; 2], u16) {
    let order = |by| {
        // What happened at the same time stays in its order.
        let numbered = (0..).zip(records);
        let mut order: Vec<(Key, u32)> = numbered
            .map(|(number, record)| (key(record, by), number))
            .collect();
        order.sort_unstable();
        order
            .into_iter()
            .map(|(_, number)| number)
            .collect::<Vec<u32>>()
    };
    let width = |record: &Record| record.ports.1.saturating_sub(record.ports.0);
    let widest = records.iter().map(width).max().unwrap_or(0);
    ([order(By::Alias), order(By::Inside)], widest)
}

/// Writes the index of a file that is complete, and has these records.
pub fn write(path: &Path, records: &[Record]) -> io::Result<()> {
    let (orders, widest) = orders(records);
    let mut out = Vec::with_capacity(HEADER_BYTES + 9 * records.len());
    out.extend(INDEX_BEGINS);
    out.extend((records.len() as u32).to_le_bytes());
    out.extend(widest.to_le_bytes());
    out.extend([0; 2]);
    out.extend(crc32fast::hash(&out).to_le_bytes());
    for number in orders.iter().flatten() {
        out.extend(number.to_le_bytes());
    }
    let numbers = out.get(HEADER_BYTES..).unwrap_or_default();
    let sums: Vec<u32> = numbers.chunks(4 * BLOCK).map(crc32fast::hash).collect();
    for sum in sums {
        out.extend(sum.to_le_bytes());
    }
    packed::replace(&index_of(path), &out)
}

/// All whole records of a file; what stands behind the last one is left out.
/// One that is not whole before others is damage.
pub fn read_all(path: &Path) -> io::Result<Vec<Record>> {
    if let Some(packed) = Packed::open(path)? {
        return packed.all();
    }
    let whole = std::fs::read(path)?;
    let Some(rest) = whole.strip_prefix(&BEGINS) else {
        return Err(damaged("its beginning"));
    };
    let (chunks, _) = rest.as_chunks::<RECORD_BYTES>();
    let mut chunks = chunks.iter();
    let records = chunks.by_ref().map_while(bytes::read).collect();
    match chunks.any(|chunk| bytes::read(chunk).is_some()) {
        true => Err(damaged("a record")),
        false => Ok(records),
    }
}

/// The last records of a file, a few of them: those of its last bytes that are
/// whole. None: it has none, or they are damaged.
pub fn tail(path: &Path) -> io::Result<Vec<Record>> {
    if let Some(packed) = Packed::open(path)? {
        let last = packed.count.checked_sub(1);
        let last = last.map(|last| packed.chunk(Packed::chunk_of(last).0));
        return Ok(last.transpose()?.unwrap_or_default());
    }
    let file = File::open(path)?;
    let mut word = [0; BEGINS.len()];
    if file.read_exact_at(&mut word, 0).is_err() || word != BEGINS {
        // Whoever reads all of it says what is wrong.
        return Ok(Vec::new());
    }
    let begin = BEGINS.len() as u64;
    let count = file.metadata()?.len().saturating_sub(begin) / RECORD_BYTES as u64;
    let first = count.saturating_sub(TAIL);
    let mut bytes = vec![0; (count - first) as usize * RECORD_BYTES];
    file.read_exact_at(&mut bytes, begin + first * RECORD_BYTES as u64)?;
    let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
    Ok(records.iter().filter_map(bytes::read).collect())
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is damaged"))
}
