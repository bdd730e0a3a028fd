//! The files of a recording: opened, unpacked, in the order in which they
//! were written.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::bufread::MultiGzDecoder;
use linux::recording::Reader;

/// Octets read at once.
const INPUT_BYTES: usize = 256 << 10;
/// How a file packed by gzip begins (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file of a recording.
pub struct Opened {
    /// Its name.
    pub path: PathBuf,
    /// Its records.
    pub reader: Reader<Box<dyn Read>>,
}

/// Opens all files, and puts them into the order of their beginnings.
pub fn open(paths: &[PathBuf]) -> Result<Vec<Opened>> {
    let mut files = Vec::new();
    for path in paths {
        let from = input(path).with_context(|| path.display().to_string())?;
        let reader = Reader::open(from).with_context(|| path.display().to_string())?;
        files.push(Opened {
            path: path.clone(),
            reader,
        });
    }
    files.sort_by_key(|file| (file.reader.head().run_micros, file.reader.head().part));
    Ok(files)
}

fn input(path: &Path) -> io::Result<Box<dyn Read>> {
    let from: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    let mut from = BufReader::with_capacity(INPUT_BYTES, from);
    if from.fill_buf()?.starts_with(&GZIP) {
        let unpacked = MultiGzDecoder::new(from);
        return Ok(Box::new(BufReader::with_capacity(INPUT_BYTES, unpacked)));
    }
    Ok(Box::new(from))
}
