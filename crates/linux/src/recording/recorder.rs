//! The thread that writes a recording.
//!
//! Two files at most, `FILE` and the part before it, `FILE.1`, together
//! within the limit. Each part begins with a listing of every namespace,
//! so that it can be replayed alone: the recorder counts the part up, and
//! the mirrors list when they see it. Trouble with the file ends the
//! recording, with a word in the log and in the status, and nothing else.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::OFlags;
use thiserror::Error;
use tracing::{error, info};

use super::format::{MAGIC, head, seal};
use super::gauge::Gauge;
use super::known::Known;
use super::queue::{Keeps, Queue, Tap};
use crate::error::Error;
use crate::mirror::now_micros;

/// A recording may not be limited to less.
pub const MIN_LIMIT_BYTES: u64 = 1 << 20;
/// Between two looks at what waits, when little does: so much is lost at
/// most when the daemon is killed.
const LOOK: Duration = Duration::from_millis(50);

/// Writes a recording, on a thread of its own. Ends when dropped, with
/// everything written that was handed over.
#[derive(Debug)]
pub struct Recorder {
    queue: Arc<Queue>,
    file: Arc<Path>,
    thread: Option<JoinHandle<()>>,
}

/// Why a recording stops.
#[derive(Debug, Error)]
enum Trouble {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "{}: a listing of the tables does not fit into the {limit} bytes that the recording may \
         have with the part before it; raise the limit (`--record-limit`)",
        path.display()
    )]
    TooSmall { path: PathBuf, limit: u64 },
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::File { path, source } => Self::File { path, source },
            Trouble::TooSmall { path, .. } => Self::File {
                path,
                source: io::ErrorKind::FileTooLarge.into(),
            },
        }
    }
}

impl Recorder {
    /// Begins a recording in a new file (mode 0600). One that is there
    /// becomes `FILE.1`; a `FILE.1` that is there goes. Both together take
    /// `limit_bytes` at most, [`MIN_LIMIT_BYTES`] or more.
    pub fn start(file: PathBuf, limit_bytes: u64) -> Result<Self, Error> {
        let queue = Arc::new(Queue::new());
        let writing = Writing::begin(file.clone(), limit_bytes.max(MIN_LIMIT_BYTES));
        let mut writing = writing?;
        let thread = std::thread::Builder::new()
            .name("recorder".into())
            .spawn({
                let queue = Arc::clone(&queue);
                move || writing.run(&queue)
            })
            .map_err(Error::system("start the recorder's thread"))?;
        Ok(Self {
            queue,
            file: file.into(),
            thread: Some(thread),
        })
    }

    /// Whether [`Recorder::start`] would take a file; makes none.
    pub fn check(file: &Path) -> Result<(), Error> {
        for path in [file, &older(file)] {
            is_ours(path)?;
        }
        let directory = file.parent().unwrap_or(Path::new("/"));
        let may = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        let made = rustix::fs::access(directory, may);
        made.map_err(|errno| trouble(file)(errno.into()).into())
    }

    /// For a mirror of one more namespace, by its inode and how it was
    /// named (empty: the daemon's own).
    pub fn tap(&self, inode: u64, name: &str) -> Tap {
        self.queue.tap(Keeps::Everything, inode, name, now_micros())
    }

    /// Tells how it fares.
    pub fn gauge(&self) -> Gauge {
        Gauge {
            queue: Arc::clone(&self.queue),
            file: Arc::clone(&self.file),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.queue.end();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to write.
            let _ = thread.join();
        }
    }
}

/// The part that is being written.
struct Writing {
    path: PathBuf,
    limit: u64,
    file: File,
    run_micros: u64,
    part: u32,
    /// Bytes of the part.
    written: u64,
    /// Bytes of the part before it.
    before: u64,
    known: Known,
}

impl Writing {
    fn begin(path: PathBuf, limit: u64) -> Result<Self, Trouble> {
        let now = now_micros();
        for path in [&path, &older(&path)] {
            is_ours(path)?;
        }
        let before = set_aside(&path)?;
        let mut writing = Self {
            file: create(&path)?,
            path,
            limit,
            run_micros: now,
            part: 0,
            written: 0,
            before,
            known: Known::default(),
        };
        writing.write(&head(now, 0, now))?;
        Ok(writing)
    }

    fn run(&mut self, queue: &Queue) {
        info!("recording to {}", self.path.display());
        loop {
            let (mut pieces, ended) = queue.take(LOOK);
            if !queue.gauge.is_off.load(Ordering::Relaxed)
                && let Err(trouble) = self.pieces(&mut pieces, queue)
            {
                error!("the recording stops, the daemon goes on: {trouble}");
                queue.gauge.stop(trouble.to_string());
            }
            queue.give_back(pieces);
            if ended {
                return;
            }
        }
    }

    fn pieces(&mut self, pieces: &mut VecDeque<Vec<u8>>, queue: &Queue) -> Result<(), Trouble> {
        for piece in pieces {
            self.make_room(piece.len() as u64, queue)?;
            let known = &mut self.known;
            let records = seal(piece, &mut |record| known.note(record));
            self.write(piece)?;
            queue.gauge.records.fetch_add(records, Ordering::Relaxed);
            let bytes = piece.len() as u64;
            queue.gauge.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Begins the next part when this one is long enough.
    fn make_room(&mut self, bytes: u64, queue: &Queue) -> Result<(), Trouble> {
        let then = self.written + bytes;
        let is_listed = self.known.are_listed();
        if then > self.limit / 2 && is_listed {
            self.rotate()?;
            queue.gauge.part.store(self.part, Ordering::Relaxed);
        } else if then + self.before > self.limit {
            if self.part > 0 || self.before == 0 {
                return Err(Trouble::TooSmall {
                    path: self.path.clone(),
                    limit: self.limit,
                });
            }
            // Of another run, and in the way.
            let older = older(&self.path);
            fs::remove_file(&older).map_err(trouble(&older))?;
            self.before = 0;
        }
        Ok(())
    }

    fn rotate(&mut self) -> Result<(), Trouble> {
        self.before = set_aside(&self.path)?;
        self.file = create(&self.path)?;
        self.part += 1;
        self.written = 0;
        let now = now_micros();
        let mut begin = head(self.run_micros, self.part, now).to_vec();
        begin.append(&mut self.known.begin_part(now));
        self.write(&begin)
    }

    /// Writes whole records, or nothing of them.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        if let Err(source) = self.file.write_all(bytes) {
            // Where even this fails, a reader says where the file was cut.
            let _ = self.file.set_len(self.written);
            return Err(trouble(&self.path)(source));
        }
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// Where the part before lies.
fn older(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".1");
    name.into()
}

/// Sees whether a file may be put aside or go: there is none, it is empty,
/// or a recording. Any other is somebody's.
fn is_ours(path: &Path) -> Result<(), Trouble> {
    let refused = |what| Err(trouble(path)(io::Error::other(what)));
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            return refused("it is there, and no regular file; choose another name");
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(trouble(path)(error)),
    }
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let file = options.open(path).map_err(trouble(path))?;
    let mut begins = Vec::new();
    let read = file.take(MAGIC.len() as u64).read_to_end(&mut begins);
    read.map_err(trouble(path))?;
    // One that was cut off while its head was written is ours as well.
    match MAGIC.starts_with(&begins) {
        true => Ok(()),
        false => refused("it is there, and no recording; choose another name"),
    }
}

/// Makes the part that is there the one before; gives its bytes.
fn set_aside(path: &Path) -> Result<u64, Trouble> {
    let older = older(path);
    let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            let what = "it is there, and no regular file; choose another name";
            return Err(trouble(path)(io::Error::other(what)));
        }
        Ok(_) => fs::rename(path, &older).map_err(trouble(path))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(trouble(path)(error)),
    }
    Ok(size(&older))
}

fn create(path: &Path) -> Result<File, Trouble> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .map_err(trouble(path))
}

fn trouble(path: &Path) -> impl FnOnce(io::Error) -> Trouble {
    move |source| Trouble::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::super::Reader;
    use super::super::format::{Outcome, kind};
    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn new(tag: &str) -> Self {
            let name = format!("fp-recorder-{tag}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("recording")
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            // A test that failed has said so already.
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn kinds(path: &Path) -> Vec<u16> {
        let bytes = fs::read(path).unwrap();
        let mut reader = Reader::open(&bytes[..]).unwrap();
        let mut kinds = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            kinds.push(record.kind);
        }
        kinds
    }

    fn list(tap: &Tap, rows: usize) {
        tap.put(kind::BEGIN, 1, &[&[2, 0]]);
        for _ in 0..rows {
            tap.put(kind::ANSWER, 1, &[&[0; 32 << 10]]);
        }
        let listed = Outcome::Listed(super::super::Listed {
            whole: crate::mirror::difference::CompleteTables::NONE,
            complete: true,
            interrupted: 0,
        });
        tap.put(kind::LISTED, 1, &[&listed.payload()]);
    }

    #[test]
    fn a_strangers_file_stays_where_it_is() {
        let directory = Directory::new("strangers");
        let file = directory.file();
        for notes in [file.clone(), older(&file)] {
            fs::write(&notes, "notes of somebody").unwrap();
            let refused = Recorder::start(file.clone(), 0).unwrap_err().to_string();
            assert!(refused.contains("no recording"), "{refused}");
            assert_eq!(fs::read_to_string(&notes).unwrap(), "notes of somebody");
            assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1);
            fs::remove_file(&notes).unwrap();
        }
        // Nothing is lost with an empty one, nor with one of ours.
        fs::write(&file, "").unwrap();
        drop(Recorder::start(file.clone(), 0).unwrap());
        drop(Recorder::start(file.clone(), 0).unwrap());
        assert!(older(&file).exists());
    }

    #[test]
    fn everything_is_written_and_the_file_is_the_owners() {
        let directory = Directory::new("all");
        let recorder = Recorder::start(directory.file(), 0).unwrap();
        let tap = recorder.tap(7, "blue");
        list(&tap, 1);
        tap.put(kind::EVENT, 2, &[b"x"]);
        drop(recorder);
        let found = kinds(&directory.file());
        assert_eq!(
            found,
            [
                kind::NAMESPACE,
                kind::BEGIN,
                kind::ANSWER,
                kind::LISTED,
                kind::EVENT
            ]
        );
        let mode = fs::metadata(directory.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn parts_follow_one_another_within_the_limit() {
        let directory = Directory::new("parts");
        let recorder = Recorder::start(directory.file(), MIN_LIMIT_BYTES).unwrap();
        let tap = recorder.tap(7, "blue");
        // The namespace's record, and the four of a listing.
        let (mut seen, mut handed) = (0, 5);
        list(&tap, 2);
        for _ in 0..30 {
            tap.put(kind::EVENT, 2, &[&[0; 128 << 10]]);
            handed += 1;
            let written = lab::wait_until(Duration::from_secs(60), "the record", || {
                let status = recorder.gauge().status();
                (status.records >= handed || status.stopped.is_some()).then_some(status)
            });
            assert_eq!(written.unwrap().stopped, None);
            let (part, _) = tap.wants_listing();
            if part != seen {
                seen = part;
                list(&tap, 2);
                handed += 4;
            }
        }
        let status = recorder.gauge().status();
        drop(recorder);
        assert_eq!(status.stopped, None);
        assert!(status.part > 0, "{status:?}");
        let parts = [directory.file(), older(&directory.file())];
        let bytes: u64 = parts
            .iter()
            .map(|path| fs::metadata(path).unwrap().len())
            .sum();
        assert!(bytes <= MIN_LIMIT_BYTES, "{bytes}");
        for path in parts {
            let found = kinds(&path);
            assert_eq!(found.first(), Some(&kind::NAMESPACE), "{}", path.display());
        }
    }

    #[test]
    fn a_limit_too_small_for_a_listing_stops_it_with_a_word() {
        let directory = Directory::new("small");
        let recorder = Recorder::start(directory.file(), MIN_LIMIT_BYTES).unwrap();
        let tap = recorder.tap(7, "blue");
        tap.put(kind::BEGIN, 1, &[&[0, 0]]);
        for _ in 0..100 {
            tap.put(kind::ANSWER, 1, &[&[0; 32 << 10]]);
        }
        let stopped = lab::wait_until(Duration::from_secs(60), "the recording to stop", || {
            recorder.gauge().status().stopped
        });
        let why = stopped.unwrap();
        assert!(why.contains("--record-limit"), "{why}");
        assert!(recorder.gauge().status().lost <= 100);
    }

    #[test]
    fn a_recording_of_before_is_set_aside_and_anything_else_is_left_alone() {
        let directory = Directory::new("before");
        let of_before = [&MAGIC[..], b"of before"].concat();
        fs::write(directory.file(), &of_before).unwrap();
        drop(Recorder::start(directory.file(), 0).unwrap());
        assert_eq!(fs::read(older(&directory.file())).unwrap(), of_before);
        assert_eq!(kinds(&directory.file()), [0u16; 0]);
        let taken = directory.0.join("taken");
        fs::create_dir(&taken).unwrap();
        let error = Recorder::start(taken, 0).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{error}");
    }
}
