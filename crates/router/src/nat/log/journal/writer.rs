//! The files of a journal as they are written.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tracing::warn;

use super::held::{Held, followed, last};
use super::{BEGINS, MODE, Named, bytes, files, held_of, index, index_of, packed};
use crate::nat::log::clock::{boot_millis, wall_millis};
use crate::nat::log::place::{Failed, Writer};
use crate::nat::log::record::{Record, What};

/// How far the time of day is set back before that is another era.
const STEP_MILLIS: u64 = 1_000;
/// Records for each block that is held before these are written down again.
const RECORDS_A_BLOCK: usize = 4;

/// A file up to this is packed and gets its index at an end and at a start;
/// a longer one while the next is written, since nobody waits for it then.
const CLOSED_AT_ONCE: u64 = 1 << 20;

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
    /// How often the time of day was set back, and the latest time since.
    era: u32,
    latest: u64,
    /// How far the time of day was ahead of the machine's at most, in this
    /// era; `None`: nothing is written yet.
    ahead: Option<u64>,
    /// Files whose indexes are of another version, the newest last.
    stale: Vec<PathBuf>,
    /// Files that are complete and not closed yet, the newest last.
    unclosed: Vec<PathBuf>,
    /// What is held now; `None`: that is not known before the next start.
    held: Option<Held>,
    /// Records since it was written down what is held.
    since_held: usize,
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
        let found = files(directory)?;
        let all = found
            .iter()
            .flat_map(|file| [held_of(&file.path), file.path.clone()]);
        let stale = all.filter(|path| index::is_stale(path)).collect();
        let mut unclosed = Vec::new();
        for Named { path, .. } in &found {
            if index_of(path).exists() {
                continue;
            }
            if fs::metadata(path)?.len() > CLOSED_AT_ONCE {
                unclosed.push(path.clone());
                continue;
            }
            match close(path) {
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    warn!("{}: {error}", path.display());
                }
                closed => closed?,
            }
        }
        let before = followed(directory);
        let last = last(directory).ok().flatten();
        Ok(Self {
            directory: directory.to_owned(),
            _lock: lock,
            limits,
            open: None,
            buffer: Vec::new(),
            era: found.last().map_or(0, |file| file.era),
            latest: last.map_or(0, |record| record.at_millis),
            ahead: None,
            stale,
            unclosed,
            held: before.ok(),
            since_held: 0,
        })
    }

    /// Ends as a process that is killed: its file stays without an index.
    #[cfg(test)]
    pub fn kill(mut self) {
        self.open = None;
    }

    /// Writes records while the time of day is so far ahead of the machine's,
    /// milliseconds. An error says how many were written.
    ///
    /// Records that waited, or come from several threads, have times that go
    /// back as well: the clock was set back where it says so itself.
    pub(super) fn write_ahead(
        &mut self,
        records: &[Record],
        ahead_millis: u64,
    ) -> Result<(), (usize, io::Error)> {
        let mut written = 0;
        while let Some(rest) = records.get(written..).filter(|rest| !rest.is_empty()) {
            let done = match self.run_of(rest, ahead_millis) {
                0 => self.begin_era().map(|()| 0),
                run => {
                    let run = rest.get(..run).unwrap_or(rest);
                    self.try_write(run).map(|()| run.len())
                }
            };
            written += done.map_err(|error| (written, error))?;
            self.ahead = self.ahead.max(Some(ahead_millis));
        }
        Ok(())
    }

    /// How many of some records are of the same era. Of another process's
    /// clock nothing is known: there the first record's time decides.
    fn run_of(&self, records: &[Record], ahead_millis: u64) -> usize {
        let goes_back =
            |record: &Record, latest| record.at_millis.saturating_add(STEP_MILLIS) < latest;
        let Some(ahead) = self.ahead else {
            let is_back = records.first().is_some_and(|of| goes_back(of, self.latest));
            return if is_back { 0 } else { records.len() };
        };
        if ahead_millis + STEP_MILLIS >= ahead {
            return records.len();
        }
        let mut latest = self.latest;
        let same = records.iter().take_while(|record| {
            let is_same = !goes_back(record, latest);
            latest = latest.max(record.at_millis);
            is_same
        });
        same.count()
    }

    /// The time of day was set back: the file that is written is closed.
    fn begin_era(&mut self) -> io::Result<()> {
        if let Some(open) = self.open.take() {
            drop(open.file);
            close(&open.path)?;
        }
        self.era += 1;
        self.latest = 0;
        self.ahead = None;
        Ok(())
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
        let mut latest = self.latest;
        for record in records {
            // Within an era the order of times is the order of records.
            latest = latest.max(record.at_millis);
            let record = Record {
                at_millis: latest,
                ..*record
            };
            bytes::write(&record, &mut self.buffer);
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
        self.note(records);
        Ok(())
    }

    fn note(&mut self, records: &[Record]) {
        self.since_held += records.len();
        for record in records {
            self.latest = self.latest.max(record.at_millis);
            if matches!(record.what, What::Started | What::Stopped) {
                self.held.get_or_insert_default();
            }
            if let Some(held) = &mut self.held {
                held.note(record);
            }
        }
    }

    /// Writes down what is held beside a file that begins, where that is
    /// little beside the records since the last time.
    fn write_held(&mut self, path: &Path) -> io::Result<()> {
        let Some(held) = self.held.as_ref().filter(|held| !held.has_sessions) else {
            return Ok(());
        };
        if self.since_held < RECORDS_A_BLOCK * held.blocks.len() {
            return Ok(());
        }
        let mut blocks: Vec<Record> = held.blocks.values().copied().collect();
        blocks.sort_unstable_by_key(|record| (record.at_millis, record.alias, record.ports));
        let target = held_of(path);
        packed::write_plain(&target, blocks.iter())?;
        index::write(&target, &blocks)?;
        self.since_held = 0;
        Ok(())
    }

    /// The next file, whose name is later than all others', whatever the
    /// clock says.
    fn begin(&mut self, records: &[Record]) -> io::Result<Open> {
        let before = files(&self.directory)?;
        let same = before.last().filter(|file| file.era == self.era);
        let latest = same.map_or(0, |file| file.begins + 1);
        let millis = records.first().map_or(0, |record| record.at_millis);
        let millis = millis.max(latest);
        let path = self.directory.join(Named::name(self.era, millis));
        // First, so that a full disk has room again.
        let too_many = (before.len() + 1).saturating_sub(self.limits.files.max(1));
        for Named { path, .. } in before.iter().take(too_many) {
            fs::remove_file(path)?;
            let held = held_of(path);
            for beside in [index_of(path), index_of(&held), held] {
                let _ = fs::remove_file(beside);
            }
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
        if !before.is_empty() {
            // Without it questions go further back.
            if let Err(error) = self.write_held(&path) {
                warn!("{}: {error}", held_of(&path).display());
            }
        }
        Ok(Open {
            file,
            path,
            bytes: BEGINS.len() as u64,
        })
    }
}

/// Cuts off what is not whole, packs the rest and writes the index.
fn close(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.len() < BEGINS.len() as u64 {
        return fs::remove_file(path);
    }
    let records = index::read_all(path)?;
    packed::pack(path, &records)?;
    index::write(path, &records)
}

impl Writer for Journal {
    fn write(&mut self, records: &[Record]) -> Result<(), Failed> {
        let written = self.write_ahead(records, ahead_millis());
        written.map_err(|(written, error)| Failed {
            written,
            error: format!("{}: {error}", self.directory.display()),
        })
    }

    /// Closes a file that a process before has left, or makes an index anew,
    /// if there is one of another version. Without it questions read the file
    /// whole.
    fn tick(&mut self) -> Result<(), String> {
        if let Some(path) = self.unclosed.pop().filter(|path| path.exists()) {
            return close(&path).map_err(|error| format!("{}: {error}", path.display()));
        }
        let Some(path) = self.stale.pop().filter(|path| path.exists()) else {
            return Ok(());
        };
        let written = index::read_all(&path).and_then(|records| index::write(&path, &records));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// How far the time of day is ahead of the machine's, which nobody sets.
fn ahead_millis() -> u64 {
    wall_millis().saturating_sub(boot_millis())
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            // What is not done here does the next one who opens the journal.
            let _ = match open.bytes > CLOSED_AT_ONCE {
                true => open.file.sync_data(),
                false => close(&open.path),
            };
        }
    }
}
