//! A journal of records in files that rotate, each with an index.
//!
//! A file `nat-MILLIS.journal` begins with a word and then has records of
//! 40 bytes each, in the order they happened, each with a sum of its
//! own. When it is full its index is written beside it, and the next one is
//! begun. With too many files the oldest goes. What stands behind the last
//! whole record (of a process that was killed) is cut off; where something is
//! damaged before whole ones, the file is left as it is, and questions that
//! need it fail.
//!
//! - `bytes`: a record as bytes, and back.
//! - `index`: where in a file the records of an alias address or a
//!   subscriber are.
//! - `writer`: the files as they are written.
//! - `who`: questions about them.
//! - `held`: whose each block is at its end.

mod bytes;
mod held;
mod index;
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

/// The files of a directory, oldest first: when each begins, and its path.
fn files(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let millis = name
            .and_then(|name| name.strip_prefix("nat-"))
            .and_then(|name| name.strip_suffix(".journal"))
            .and_then(|millis| millis.parse().ok());
        if let Some(millis) = millis {
            found.push((millis, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Where a file's index is.
fn index_of(path: &Path) -> PathBuf {
    path.with_extension("index")
}

#[cfg(test)]
mod tests;
