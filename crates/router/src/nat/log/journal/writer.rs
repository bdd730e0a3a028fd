//! The files of a journal as they are written.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tracing::warn;

use super::bytes::{self, RECORD_BYTES};
use super::{BEGINS, MODE, files, index, index_of};
use crate::nat::log::place::{Failed, Writer};
use crate::nat::log::record::Record;

/// How large a journal may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file.
    pub file_bytes: u64,
    /// Files, the one that is written included.
    pub files: usize,
}

/// A journal that is written.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    /// The directory, locked: a second one who writes there would cut off
    /// what this one has not closed.
    _lock: File,
    limits: Limits,
    open: Option<Open>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    file: File,
    path: PathBuf,
    /// Bytes of whole records.
    bytes: u64,
}

impl Journal {
    /// In a directory, which is made if there is none. A file that a killed
    /// process has left is closed with its index; a damaged one stays as it
    /// is.
    pub fn new(directory: &Path, limits: Limits) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let lock = File::open(directory)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another translation writes it"));
            }
            // Not every file system can.
            Err(TryLockError::Error(error)) => {
                warn!("{}: locking it: {error}", directory.display());
            }
        }
        for (_, path) in files(directory)? {
            if index_of(&path).exists() {
                continue;
            }
            match close(&path) {
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    warn!("{}: {error}", path.display());
                }
                closed => closed?,
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            _lock: lock,
            limits,
            open: None,
            buffer: Vec::new(),
        })
    }

    /// Ends as a process that is killed: its file stays without an index.
    #[cfg(test)]
    pub fn kill(mut self) {
        self.open = None;
    }

    fn try_write(&mut self, records: &[Record]) -> io::Result<()> {
        let is_full = |open: &Open| open.bytes >= self.limits.file_bytes;
        if self.open.as_ref().is_some_and(is_full)
            && let Some(open) = self.open.take()
        {
            drop(open.file);
            close(&open.path)?;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(records)?,
        };
        self.buffer.clear();
        for record in records {
            bytes::write(record, &mut self.buffer);
        }
        let written = open.file.write_all(&self.buffer);
        if written.is_err() {
            // Half a record must not stay before the next one. Where it has
            // to stay, another file is begun.
            open.file.set_len(open.bytes)?;
        }
        let open = self.open.insert(open);
        written?;
        open.bytes += self.buffer.len() as u64;
        Ok(())
    }

    /// The next file, whose name is later than all others', whatever the
    /// clock says.
    fn begin(&self, records: &[Record]) -> io::Result<Open> {
        let before = files(&self.directory)?;
        let latest = before.last().map_or(0, |(millis, _)| millis + 1);
        let millis = records.first().map_or(0, |record| record.at_millis);
        let millis = millis.max(latest);
        let path = self.directory.join(format!("nat-{millis:013}.journal"));
        // First, so that a full disk has room again.
        let too_many = (before.len() + 1).saturating_sub(self.limits.files.max(1));
        for (_, path) in before.iter().take(too_many) {
            fs::remove_file(path)?;
            let _ = fs::remove_file(index_of(path));
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .create_new(true)
            .mode(MODE)
            .open(&path)?;
        if let Err(error) = file.write_all(&BEGINS) {
            // It is tried again, each time with another name.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(Open {
            file,
            path,
            bytes: BEGINS.len() as u64,
        })
    }
}

/// Cuts off what is not whole, and writes the index.
fn close(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.len() < BEGINS.len() as u64 {
        return fs::remove_file(path);
    }
    let records = index::read_all(path)?.len();
    file.set_len((BEGINS.len() + records * RECORD_BYTES) as u64)?;
    file.sync_data()?;
    index::write(path)
}

impl Writer for Journal {
    fn write(&mut self, records: &[Record]) -> Result<(), Failed> {
        let written = self.try_write(records);
        written.map_err(|error| Failed {
            written: 0,
            error: format!("{}: {error}", self.directory.display()),
        })
    }

    fn tick(&mut self) -> Result<(), String> {
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            // Without it the next one who opens the journal does it.
            let _ = close(&open.path);
        }
    }
}
