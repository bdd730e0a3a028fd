//! A journal of records in files that rotate, each with an index.
//!
//! A file `nat-MILLIS.journal` begins with a word and then has records of
//! 40 bytes each, in the order they happened, each with a sum of its own.
//! When it is full its index is written beside it and it is packed, and the
//! next one is begun. With too many files the oldest goes. What stands behind
//! the last whole record (of a process that was killed) is cut off; where
//! something is damaged before whole ones, the file is left as it is, and
//! questions that need it fail.
//!
//! Now and then the blocks that somebody has are written down beside a new
//! file (`nat-MILLIS-held.journal`): nobody has to read further back.
//!
//! When the time of day is set back, another *era* begins with a file of its
//! own (`nat-MILLIS-ERA.journal`): within an era times do not go back, and a
//! time that came twice is asked about in both.
//!
//! - `bytes`: a record as bytes, and back.
//! - `packed`: a file that is complete, in less room.
//! - `index`: where in a file the records of an alias address or a
//!   subscriber are.
//! - `writer`: the files as they are written.
//! - `who`: questions about them.
//! - `held`: whose each block is at its end.

mod bytes;
mod held;
mod index;
mod packed;
mod who;
mod writer;

use std::io;
use std::path::{Path, PathBuf};

pub use held::{held, last};
pub use who::{Asked, ask};
pub use writer::{Journal, Limits};

/// Who was when where is nobody's business.
const MODE: u32 = 0o640;
/// What a file begins with: its kind and version.
const BEGINS: [u8; 8] = *b"FPNATJ01";

/// A file of a journal. In order: the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    /// How often the time of day was set back before.
    era: u32,
    /// When it begins, milliseconds since 1970.
    begins: u64,
    path: PathBuf,
}

impl Named {
    fn of(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_prefix("nat-")?.strip_suffix(".journal")?;
        let (begins, era) = match name.split_once('-') {
            Some((begins, era)) => (begins, era.parse().ok()?),
            None => (name, 0),
        };
        Some(Self {
            era,
            begins: begins.parse().ok()?,
            path,
        })
    }

    fn name(era: u32, begins: u64) -> String {
        match era {
            0 => format!("nat-{begins:013}.journal"),
            era => format!("nat-{begins:013}-{era}.journal"),
        }
    }
}

/// The files of a directory, oldest first.
fn files(directory: &Path) -> io::Result<Vec<Named>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        found.extend(Named::of(entry?.path()));
    }
    found.sort();
    Ok(found)
}

/// What was held when a file was begun, where that was written down.
fn held_of(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push("-held.journal");
    path.with_file_name(name)
}

/// Where a file's index is.
fn index_of(path: &Path) -> PathBuf {
    path.with_extension("index")
}

#[cfg(test)]
mod tests;
