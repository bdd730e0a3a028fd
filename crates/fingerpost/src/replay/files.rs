//! The files of a replay: opened, unpacked, told apart by what is in them,
//! in the order in which they were written.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use linux::recording::Reader;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::ahead::Ahead;

/// Octets read at once.
const INPUT_BYTES: usize = 256 << 10;
/// How a file packed by gzip begins (RFC 1952 §2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];
/// How one packed by bzip2 begins.
const BZIP2: &[u8] = b"BZh";
/// How one packed by zstd begins (RFC 8878 §3.1.1).
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Octets by which files are told apart.
const BEGINNING: u64 = 64;
/// Files of a collector that stay open from the first look at them, with the
/// rights of that moment; a year of messages is a hundred thousand files.
const MAX_OPEN: usize = 64;
/// How a recording begins.
const RECORDING: &[u8] = b"FPREC";

/// Files of one kind.
pub enum Files {
    /// Of a recording.
    Recorded(Vec<Opened>),
    /// Of a collector's tables and messages (MRT).
    Mrt(Vec<OpenedMrt>),
}

/// A file of a recording.
pub struct Opened {
    /// Its name.
    pub path: PathBuf,
    /// Its records.
    pub reader: Reader<Box<dyn Read + Send>>,
}

/// A collector's file: open, or to be opened again when it is its turn.
pub struct OpenedMrt {
    /// Its name.
    pub path: PathBuf,
    /// What was opened and nobody has read yet.
    opened: Option<Unpacked>,
    reader: Option<MrtReader>,
}

/// A file, unpacked as it is read.
type Unpacked = Box<dyn Read + Send>;

/// A collector's file.
type MrtReader = bgp::mrt::Reader<Unpacked>;

impl OpenedMrt {
    /// Its records. With the first of them a thread begins to unpack it
    /// ahead of who reads: it has the rights of that moment, not those that
    /// it took to open the file.
    pub fn reader(&mut self) -> io::Result<&mut MrtReader> {
        let reader = match (self.reader.take(), self.opened.take()) {
            (Some(reader), _) => reader,
            (None, Some(opened)) => unpacked_ahead(opened),
            (None, None) => unpacked_ahead(Box::new(input(&self.path)?)),
        };
        Ok(self.reader.insert(reader))
    }
}

fn unpacked_ahead(from: Unpacked) -> MrtReader {
    bgp::mrt::Reader::new(Box::new(Ahead::of(from)))
}

/// What is read, and how it begins.
type Input = BufReader<Box<dyn Read + Send>>;

/// Opens all files, and puts them into the order of their beginnings.
pub fn open(paths: &[PathBuf]) -> Result<Files> {
    let (mut recorded, mut collected) = (Vec::new(), Vec::new());
    for path in paths {
        let name = || path.display().to_string();
        let mut from = input(path).with_context(name)?;
        let mut begins = Vec::new();
        let head = from.by_ref().take(BEGINNING).read_to_end(&mut begins);
        head.with_context(name)?;
        let header = bgp::mrt::Header::of_first(&begins);
        let is_recording = begins.starts_with(RECORDING);
        let from = Cursor::new(begins).chain(from);
        match header {
            Some(header) if !is_recording => {
                // What is no file has no second beginning.
                let stays = collected.len() < MAX_OPEN || !path.is_file();
                let file = OpenedMrt {
                    path: path.clone(),
                    opened: stays.then(|| Box::new(from) as Unpacked),
                    reader: None,
                };
                collected.push(((header.at_micros, header.is_message()), file));
            }
            _ => {
                let from: Box<dyn Read + Send> = Box::new(from);
                let reader = Reader::open(from).with_context(name)?;
                recorded.push(Opened {
                    path: path.clone(),
                    reader,
                });
            }
        }
    }
    if !recorded.is_empty() && !collected.is_empty() {
        bail!("a recording and files of BGP tables are not replayed together");
    }
    if recorded.is_empty() {
        collected.sort_by_key(|(begins, _)| *begins);
        let files = collected.into_iter().map(|(_, file)| file);
        return Ok(Files::Mrt(files.collect()));
    }
    recorded.sort_by_key(|file| (file.reader.head().run_micros, file.reader.head().part));
    Ok(Files::Recorded(recorded))
}

fn input(path: &Path) -> io::Result<Input> {
    let from: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    let mut from = BufReader::with_capacity(INPUT_BYTES, from);
    let begins = from.fill_buf()?;
    let unpacked: Box<dyn Read + Send> = if begins.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(from))
    } else if begins.starts_with(BZIP2) {
        Box::new(MultiBzDecoder::new(from))
    } else if begins.starts_with(ZSTD) {
        Box::new(Zstd::new(from)?)
    } else {
        return Ok(from);
    };
    Ok(BufReader::with_capacity(INPUT_BYTES, unpacked))
}

/// Frames packed by zstd, one behind the other.
struct Zstd {
    from: Input,
    frame: FrameDecoder,
}

impl Zstd {
    fn new(mut from: Input) -> io::Result<Self> {
        let mut frame = FrameDecoder::new();
        frame.init(&mut from).map_err(io::Error::other)?;
        Ok(Self { from, frame })
    }
}

/// Whether a frame that was taken whole has the checksum that it says, if it
/// says one (RFC 8878 §3.1.1).
fn is_as_said(frame: &FrameDecoder) -> bool {
    let said = frame.get_checksum_from_data();
    said.is_none() || said == frame.get_calculated_checksum()
}

impl Read for Zstd {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let Self { from, frame } = self;
        while frame.can_collect() == 0 {
            if !frame.is_finished() {
                let some = BlockDecodingStrategy::UptoBytes(to.len().max(1));
                frame
                    .decode_blocks(&mut *from, some)
                    .map_err(io::Error::other)?;
            } else if !is_as_said(frame) {
                return Err(io::Error::other("the checksum of a frame of zstd is wrong"));
            } else if from.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                frame.reset(&mut *from).map_err(io::Error::other)?;
            }
        }
        frame.read(to)
    }
}
