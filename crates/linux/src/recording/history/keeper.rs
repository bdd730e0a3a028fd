//! The thread that writes a history.
//!
//! It begins a new segment when the one at hand has so many bytes beyond its
//! listing, or is so old, or when the clock was set back: within a segment
//! time goes forward. The mirrors list everything where a segment begins.
//! The oldest go when all take more than they may, or are older.
//!
//! Trouble with the disk never ends it: what cannot be written is counted as
//! lost, and a new segment is tried for again and again, whose number says
//! that there is a gap before it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{Gid, Mode};
use thiserror::Error;
use tracing::{error, info, warn};

use super::gauge::{HistoryGauge, Shelved};
use super::packing::Packer;
use super::shelf::{self, Segment};
use crate::error::Error;
use crate::mirror::now_micros;
use crate::recording::format::{FRAME_BYTES, Record, head, kind, put, seal};
use crate::recording::known::Known;
use crate::recording::queue::{Keeps, Queue, Tap};

/// A history may not be limited to less.
pub const MIN_HISTORY_BYTES: u64 = 4 << 20;
/// Between two looks at what waits, when little does.
const LOOK: Duration = Duration::from_millis(50);
/// Between two records which say that nothing is missing before them.
const ALIVE: Duration = Duration::from_secs(1);
/// A segment has so much of what all may have, beyond its listing.
const SHARE: u64 = 16;
/// A segment is so old before another is begun for its age, if it has
/// something to tell.
const OLD: Duration = Duration::from_secs(3_600);
/// And so old at most, whatever it tells.
const OLDEST: Duration = Duration::from_secs(86_400);
/// Records of several threads may be out of order by this much; more, and
/// the clock was set back.
const OUT_OF_ORDER_MICROS: u64 = 500_000;
/// Pauses before another segment is tried for: from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A listing costs more than to look whether a file can be made.
const MIN_FREE_BYTES: u64 = 1 << 20;

/// What a history is to be.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is; made, if it is not there and what is above it is.
    pub directory: PathBuf,
    /// Bytes that it takes at most, [`MIN_HISTORY_BYTES`] or more.
    pub limit_bytes: u64,
    /// How long it is kept.
    pub keep: Duration,
    /// Between two times that counters of links are kept; `None`: they are
    /// not.
    pub counters: Option<Duration>,
    /// Who may read it beside the owner. This process is in that group.
    pub group: Option<Gid>,
}

/// Writes a history, on a thread of its own. Ends when dropped, with
/// everything written that was handed over.
#[derive(Debug)]
pub struct Keeper {
    gauge: HistoryGauge,
    keeps: Keeps,
    thread: Option<JoinHandle<()>>,
}

/// Why nothing can be written now.
#[derive(Debug, Error)]
enum Trouble {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "a listing of the tables does not fit into the {limit} bytes that the history may have; \
         raise `limit_bytes` in [history]"
    )]
    TooSmall { limit: u64 },
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::File { path, source } => Self::File { path, source },
            Trouble::TooSmall { .. } => Self::System {
                what: "keep a history",
                source: io::ErrorKind::FileTooLarge.into(),
            },
        }
    }
}

/// Whether [`Keeper::start`] would take a directory; makes none.
pub fn check(directory: &Path) -> Result<(), Error> {
    let may = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let checked = match is_ours(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = directory.parent().unwrap_or(Path::new("/"));
            rustix::fs::access(above, may).map_err(io::Error::from)
        }
        Err(error) => Err(error),
        Ok(()) => rustix::fs::access(directory, may).map_err(io::Error::from),
    };
    checked.map_err(|source| trouble(directory)(source).into())
}

impl Keeper {
    /// Begins a history in a directory, or goes on with one.
    pub fn start(settings: Settings) -> Result<Self, Error> {
        let directory = settings.directory.clone();
        prepare(&settings).map_err(trouble(&directory))?;
        let lock = shelf::lock(&directory, settings.group).map_err(trouble(&directory))?;
        let gauge = HistoryGauge {
            queue: Arc::new(Queue::new()),
            directory: directory.clone(),
            shelved: Arc::default(),
        };
        let keeps = Keeps::Changes {
            counters: settings.counters,
        };
        let mut writing = Writing::begin(settings, gauge.clone(), lock)?;
        let thread = std::thread::Builder::new()
            .name("history".into())
            .spawn(move || writing.run())
            .map_err(Error::system("start the history's thread"))?;
        Ok(Self {
            gauge,
            keeps,
            thread: Some(thread),
        })
    }

    /// For a mirror of one more namespace, by its inode and how it was
    /// named (empty: the daemon's own).
    pub fn tap(&self, inode: u64, name: &str) -> Tap {
        let queue = &self.gauge.queue;
        queue.tap(self.keeps, inode, name, now_micros())
    }

    /// Tells how it fares.
    pub fn gauge(&self) -> HistoryGauge {
        self.gauge.clone()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.gauge.queue.end();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to write.
            let _ = thread.join();
        }
    }
}

/// Makes the directory, and makes it the group's.
fn prepare(settings: &Settings) -> io::Result<()> {
    let directory = &settings.directory;
    match is_ours(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(directory)?,
        other => other?,
    }
    let mode = if settings.group.is_some() {
        0o750
    } else {
        0o700
    };
    rustix::fs::chmod(directory, Mode::from_raw_mode(mode))?;
    if let Some(group) = settings.group {
        rustix::fs::chown(directory, None, Some(group))?;
    }
    shelf::clear_unfinished(directory)
}

/// Whether a directory is one, is not somebody else's, and holds nothing but
/// a history.
fn is_ours(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let there = fs::symlink_metadata(directory)?;
    if !there.is_dir() {
        return Err(io::Error::other("it is there, and no directory"));
    }
    if there.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(
            "it is another user's; choose a directory of this user",
        ));
    }
    let known = shelf::segments(directory)?;
    let is_known = |name: &str| {
        name == "lock" || name.ends_with(".new") || known.iter().any(|one| one.path.ends_with(name))
    };
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        // A whole segment beside its packed one is known by that.
        let name = name.to_string_lossy();
        if !is_known(&name) && !is_known(&format!("{name}.gz")) {
            return Err(io::Error::other(format!(
                "it holds `{name}`, which is no history; choose a directory of its own"
            )));
        }
    }
    Ok(())
}

/// The segment that is written.
struct Open {
    segment: Segment,
    file: File,
    /// Bytes of it when all was listed; `None`: not yet.
    listed_bytes: Option<u64>,
    /// Bytes of records which say that time passes.
    idle_bytes: u64,
    begun: Instant,
}

/// Nothing can be written until then.
struct Paused {
    until: Instant,
    pause: Duration,
}

struct Writing {
    settings: Settings,
    gauge: HistoryGauge,
    packer: Packer,
    run_micros: u64,
    /// The next segment's.
    sequence: u64,
    part: u32,
    /// Those before the open one.
    shelf: VecDeque<Segment>,
    open: Option<Open>,
    paused: Option<Paused>,
    /// The pause after the next trouble.
    pause: Duration,
    known: Known,
    newest_micros: u64,
    said_alive: Instant,
    _lock: File,
}

impl Writing {
    fn begin(settings: Settings, gauge: HistoryGauge, lock: File) -> Result<Self, Trouble> {
        let directory = &settings.directory;
        let shelf = shelf::segments(directory).map_err(trouble(directory))?;
        let packer = Packer::start(settings.group.is_some()).map_err(trouble(directory))?;
        for segment in shelf.iter().filter(|one| !one.is_packed) {
            packer.pack(segment.path.clone());
        }
        let mut writing = Self {
            packer,
            run_micros: now_micros(),
            sequence: shelf.last().map_or(0, |last| last.sequence + 1),
            part: 0,
            shelf: shelf.into(),
            open: None,
            paused: None,
            pause: FIRST_PAUSE,
            known: Known::default(),
            newest_micros: 0,
            said_alive: Instant::now(),
            settings,
            gauge,
            _lock: lock,
        };
        writing.keep_bounds(0)?;
        // A disk that is full at the start is no reason not to start.
        if let Err(trouble) = writing.open_next() {
            writing.stop(&trouble);
        }
        Ok(writing)
    }

    fn run(&mut self) {
        let queue = Arc::clone(&self.gauge.queue);
        loop {
            let now = now_micros();
            let (mut pieces, ended) = queue.take(LOOK);
            if let Err(trouble) = self.take(&mut pieces, now) {
                self.stop(&trouble);
            }
            queue.give_back(pieces);
            if ended {
                self.end();
                return;
            }
        }
    }

    /// Nothing comes any more, and nothing is missing.
    fn end(&mut self) {
        if let Err(trouble) = self.say_alive(now_micros()) {
            warn!("the end of the history is missing: {trouble}");
        }
    }

    /// Writes what waited at this time, and what is due.
    fn take(&mut self, pieces: &mut VecDeque<Vec<u8>>, now: u64) -> Result<(), Trouble> {
        if let Err(trouble) = self.go_on() {
            self.stop(&trouble);
        }
        for piece in pieces.iter_mut() {
            self.piece(piece);
        }
        if self.open.is_none() {
            return Ok(());
        }
        if self.said_alive.elapsed() >= ALIVE {
            self.said_alive = Instant::now();
            self.say_alive(now)?;
            self.note();
        }
        Ok(())
    }

    /// Tries again where nothing could be written.
    fn go_on(&mut self) -> Result<(), Trouble> {
        let Some(paused) = &self.paused else {
            return Ok(());
        };
        if Instant::now() < paused.until {
            return Ok(());
        }
        self.pause = (paused.pause * 2).min(LONGEST_PAUSE);
        self.paused = None;
        self.keep_bounds(0)?;
        self.has_room()?;
        // A part that is passed over says that something is missing.
        self.part = self.part.wrapping_add(1);
        self.open_next()?;
        info!(
            "the history goes on in {}",
            self.settings.directory.display()
        );
        self.gauge.shelved().stopped = None;
        let counted = &self.gauge.queue.gauge;
        counted.is_off.store(false, Ordering::Release);
        Ok(())
    }

    /// Whether a listing could be written at all: to try costs the mirrors
    /// one.
    fn has_room(&self) -> Result<(), Trouble> {
        let directory = &self.settings.directory;
        let space =
            rustix::fs::statvfs(directory).map_err(|errno| trouble(directory)(errno.into()))?;
        match space.f_bavail.saturating_mul(space.f_frsize) < MIN_FREE_BYTES {
            true => Err(trouble(directory)(io::ErrorKind::StorageFull.into())),
            false => Ok(()),
        }
    }

    /// Nothing can be written: what comes is lost and counted.
    fn stop(&mut self, trouble: &Trouble) {
        let pause = self.pause;
        let counted = &self.gauge.queue.gauge;
        counted.is_off.store(true, Ordering::Release);
        let mut shelved = self.gauge.shelved();
        if shelved.stopped.is_none() {
            error!("the history has a gap from here on, the daemon goes on: {trouble}");
            shelved.stops += 1;
        }
        shelved.stopped = Some(trouble.to_string());
        drop(shelved);
        self.paused = Some(Paused {
            until: Instant::now() + pause,
            pause,
        });
        if let Some(open) = self.open.take() {
            self.put_aside(open);
        }
        self.note();
    }

    /// Puts the open segment to the others. One that has not come to the end
    /// of its listing is of no use.
    fn put_aside(&mut self, open: Open) {
        if open.listed_bytes.is_none() {
            if let Err(error) = fs::remove_file(&open.segment.path) {
                warn!("{}: {error}", open.segment.path.display());
            }
            return;
        }
        self.packer.pack(open.segment.path.clone());
        self.shelf.push_back(open.segment);
    }

    /// Writes a piece: whole records. Where the clock was set back in it, a
    /// segment begins; what cannot be written is counted.
    fn piece(&mut self, mut piece: &mut [u8]) {
        while !piece.is_empty() {
            let (end, is_set_back) = self.until_set_back(piece);
            let (some, rest) = piece.split_at_mut(end);
            piece = rest;
            let room = self.make_room(some.len() as u64);
            let known = &mut self.known;
            let records = seal(some, &mut |record| known.note(record));
            let is_open = self.open.is_some();
            let written = room.and_then(|()| self.write(some));
            let counted = &self.gauge.queue.gauge;
            if !is_open || written.is_err() {
                counted.lost.fetch_add(records, Ordering::Relaxed);
            } else {
                counted.records.fetch_add(records, Ordering::Relaxed);
                let bytes = some.len() as u64;
                counted.bytes.fetch_add(bytes, Ordering::Relaxed);
                self.note_listed();
            }
            let set_back = written.and_then(|()| match is_set_back {
                true => self.set_back(),
                false => Ok(()),
            });
            if let Err(trouble) = set_back {
                self.stop(&trouble);
            }
        }
    }

    /// Notes how long the listing was that the segment begins with.
    fn note_listed(&mut self) {
        if let Some(open) = &mut self.open
            && open.listed_bytes.is_none()
            && self.known.are_listed()
        {
            open.listed_bytes = Some(open.segment.bytes);
            self.pause = FIRST_PAUSE;
        }
    }

    /// The clock was set back: within a segment time goes forward.
    fn set_back(&mut self) -> Result<(), Trouble> {
        self.newest_micros = 0;
        if self.open.is_none() {
            return Ok(());
        }
        warn!("the clock was set back: the history begins a segment");
        self.rotate()
    }

    /// How many bytes come before the clock was set back, and whether it
    /// was. O(records).
    fn until_set_back(&mut self, piece: &mut [u8]) -> (usize, bool) {
        let (mut end, mut newest, mut found) = (0, self.newest_micros, None);
        seal(piece, &mut |record| {
            if found.is_none() && record.at_micros.saturating_add(OUT_OF_ORDER_MICROS) < newest {
                found = Some(end);
            }
            newest = newest.max(record.at_micros);
            end += FRAME_BYTES + record.payload.len();
        });
        if found.is_none() {
            self.newest_micros = newest;
        }
        (found.unwrap_or(piece.len()), found.is_some())
    }

    /// Says that nothing is missing before this time. Not where something
    /// had no place, and the record that says so is still to come.
    fn say_alive(&mut self, now: u64) -> Result<(), Trouble> {
        if self.gauge.queue.has_lost() {
            return Ok(());
        }
        if now.saturating_add(OUT_OF_ORDER_MICROS) < self.newest_micros {
            self.set_back()?;
        }
        self.newest_micros = self.newest_micros.max(now);
        let mut record = Vec::new();
        put(
            &mut record,
            &Record {
                kind: kind::ALIVE,
                namespace: 0,
                at_micros: now,
                payload: &[],
            },
        );
        seal(&mut record, &mut |_| {});
        self.write(&record)?;
        if let Some(open) = &mut self.open {
            open.idle_bytes += record.len() as u64;
        }
        self.make_room(0)
    }

    /// Begins the next segment when this one is long or old enough, and
    /// removes old ones where that many bytes more have no place.
    fn make_room(&mut self, bytes: u64) -> Result<(), Trouble> {
        if self.open.is_none() {
            return Ok(());
        }
        if let Some(open) = &self.open
            && let Some(listed) = open.listed_bytes
            && self.known.are_listed()
        {
            let beyond = open.segment.bytes.saturating_sub(listed);
            let told = beyond.saturating_sub(open.idle_bytes);
            let age = open.begun.elapsed();
            let is_long = beyond + bytes > self.settings.limit_bytes / SHARE;
            let is_old = age >= OLD && told > listed / 4 || age >= OLDEST.min(self.settings.keep);
            if is_long || is_old {
                self.rotate()?;
            }
        }
        self.keep_bounds(bytes)
    }

    fn rotate(&mut self) -> Result<(), Trouble> {
        if let Some(open) = self.open.take() {
            self.put_aside(open);
        }
        self.open_next()
    }

    fn open_next(&mut self) -> Result<(), Trouble> {
        let now = now_micros();
        let directory = &self.settings.directory;
        let path = shelf::path(directory, self.sequence, now);
        let file = shelf::create(&path, self.settings.group.is_some()).map_err(trouble(&path))?;
        if let Some(group) = self.settings.group {
            let given = rustix::fs::fchown(&file, None, Some(group));
            given.map_err(|errno| trouble(&path)(errno.into()))?;
        }
        let segment = Segment {
            sequence: self.sequence,
            begun_micros: now,
            path,
            is_packed: false,
            bytes: 0,
        };
        self.sequence += 1;
        self.open = Some(Open {
            segment,
            file,
            listed_bytes: None,
            idle_bytes: 0,
            begun: Instant::now(),
        });
        let mut begin = head(self.run_micros, self.part, now).to_vec();
        begin.append(&mut self.known.begin_part(now));
        self.write(&begin)?;
        // The mirrors list where this is another than it was.
        let counted = &self.gauge.queue.gauge;
        counted.part.store(self.part, Ordering::Relaxed);
        self.part = self.part.wrapping_add(1);
        self.note();
        Ok(())
    }

    /// Writes whole records, or nothing of them.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if let Err(source) = open.file.write_all(bytes) {
            // Where even this fails, a reader says where the file was cut.
            let _ = open.file.set_len(open.segment.bytes);
            return Err(trouble(&open.segment.path)(source));
        }
        open.segment.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Removes the oldest while all take more than they may with that many
    /// bytes more, or are older.
    fn keep_bounds(&mut self, more: u64) -> Result<(), Trouble> {
        let keep = u64::try_from(self.settings.keep.as_micros()).unwrap_or(u64::MAX);
        let oldest = now_micros().saturating_sub(keep);
        loop {
            let total = self.stored_bytes().saturating_add(more);
            // When the next was begun, this one had nothing more to tell.
            let next = self.shelf.get(1).map(|next| next.begun_micros);
            let next = next.or(self.open.as_ref().map(|open| open.segment.begun_micros));
            let is_old = next.is_some_and(|next| next < oldest);
            let is_full = total > self.settings.limit_bytes;
            if !is_old && !is_full {
                return Ok(());
            }
            let Some(segment) = self.shelf.pop_front() else {
                return match is_full && self.open.is_some() {
                    true => Err(Trouble::TooSmall {
                        limit: self.settings.limit_bytes,
                    }),
                    false => Ok(()),
                };
            };
            self.remove(&segment)?;
        }
    }

    fn remove(&mut self, segment: &Segment) -> Result<(), Trouble> {
        let (packed, _) = shelf::packed_paths(&segment.path);
        for path in [&segment.path, &packed] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(trouble(path)(error));
                }
                _ => {}
            }
        }
        self.gauge.shelved().removed += 1;
        Ok(())
    }

    /// Bytes of all. Those that were packed since have fewer.
    fn stored_bytes(&mut self) -> u64 {
        for segment in self.shelf.iter_mut().filter(|one| !one.is_packed) {
            let (packed, _) = shelf::packed_paths(&segment.path);
            if let Ok(there) = fs::metadata(&packed) {
                segment.bytes = there.len();
                segment.path = packed;
                segment.is_packed = true;
            }
        }
        let open = self.open.as_ref().map_or(0, |open| open.segment.bytes);
        open + self.shelf.iter().map(|one| one.bytes).sum::<u64>()
    }

    fn note(&mut self) {
        let stored_bytes = self.stored_bytes();
        let open = self.open.as_ref().map(|open| &open.segment);
        let oldest = self.shelf.front().or(open);
        let mut shelved = self.gauge.shelved();
        *shelved = Shelved {
            segments: (self.shelf.len() + usize::from(open.is_some())) as u64,
            stored_bytes,
            oldest_micros: oldest.map_or(0, |oldest| oldest.begun_micros),
            ..shelved.clone()
        };
    }
}

fn trouble(path: &Path) -> impl FnOnce(io::Error) -> Trouble {
    move |source| Trouble::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;

    use super::*;
    use crate::mirror::difference::CompleteTables;
    use crate::recording::{Listed, Outcome, Reader};

    struct Directory(PathBuf);

    impl Directory {
        fn new(tag: &str) -> Self {
            let name = format!("fp-history-{tag}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn settings(&self) -> Settings {
            Settings {
                directory: self.0.clone(),
                limit_bytes: MIN_HISTORY_BYTES,
                keep: Duration::from_secs(3_600),
                counters: None,
                group: None,
            }
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            // A test that failed has said so already.
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Part, kinds and times of the records of a segment.
    fn read(segment: &Segment) -> (u32, Vec<(u16, u64)>) {
        let file = File::open(&segment.path).unwrap();
        let mut bytes = Vec::new();
        match segment.is_packed {
            true => MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap(),
            false => (&file).read_to_end(&mut bytes).unwrap(),
        };
        let mut reader = Reader::open(&bytes[..]).unwrap();
        let mut records = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            records.push((record.kind, record.at_micros));
        }
        (reader.head().part, records)
    }

    fn list(tap: &Tap, at: u64) {
        tap.put(kind::BEGIN, at, &[&[0, 0]]);
        tap.put(kind::ANSWER, at, &[b"row"]);
        let listed = Outcome::Listed(Listed {
            whole: CompleteTables::NONE,
            complete: true,
            interrupted: 0,
        });
        tap.put(kind::LISTED, at, &[&listed.payload()]);
    }

    fn written(keeper: &Keeper, records: u64) {
        let gauge = keeper.gauge();
        lab::wait_until(Duration::from_secs(60), "the records", || {
            (gauge.status().records >= records).then_some(())
        })
        .unwrap();
    }

    #[test]
    fn a_clock_that_is_set_back_begins_a_segment() {
        let directory = Directory::new("back");
        let keeper = Keeper::start(directory.settings()).unwrap();
        let tap = keeper.tap(7, "blue");
        let now = now_micros();
        list(&tap, now);
        tap.put(kind::EVENT, now + 10, &[b"before"]);
        // Out of order, as threads are.
        tap.put(kind::EVENT, now + 5, &[b"before"]);
        tap.put(kind::EVENT, now - 3_600_000_000, &[b"after"]);
        tap.put(kind::EVENT, now - 3_599_000_000, &[b"after"]);
        written(&keeper, 8);
        drop(keeper);
        let segments = shelf::segments(&directory.0).unwrap();
        assert_eq!(segments.len(), 2, "{segments:?}");
        let (first, before) = read(&segments[0]);
        let (second, after) = read(&segments[1]);
        assert_eq!((first, second), (0, 1), "nothing is missing between them");
        let events = |records: &[(u16, u64)]| -> Vec<u64> {
            let events = records.iter().filter(|(kind, _)| *kind == kind::EVENT);
            events.map(|(_, at)| *at).collect()
        };
        assert_eq!(events(&before), [now + 10, now + 5]);
        assert_eq!(events(&after), [now - 3_600_000_000, now - 3_599_000_000]);
        assert_eq!(after[0].0, kind::NAMESPACE);
    }

    #[test]
    fn what_a_daemon_left_is_gone_on_with_and_kept_in_bounds() {
        let directory = Directory::new("bounds");
        for run in 0..3 {
            let keeper = Keeper::start(directory.settings()).unwrap();
            list(&keeper.tap(7, ""), now_micros());
            written(&keeper, 4);
            assert_eq!(keeper.gauge().status().removed, 0, "{run}");
        }
        let sequences = |directory: &Directory| -> Vec<u64> {
            let segments = shelf::segments(&directory.0).unwrap();
            segments.iter().map(|one| one.sequence).collect()
        };
        assert_eq!(sequences(&directory), [0, 1, 2]);
        // All but the last were over long ago.
        std::thread::sleep(Duration::from_millis(20));
        let settings = Settings {
            keep: Duration::from_millis(10),
            ..directory.settings()
        };
        let keeper = Keeper::start(settings).unwrap();
        assert_eq!(keeper.gauge().status().removed, 2);
        drop(keeper);
        assert_eq!(sequences(&directory), [2, 3]);
    }

    #[test]
    fn a_listing_that_has_no_place_is_told_and_what_comes_is_counted() {
        let directory = Directory::new("small");
        let keeper = Keeper::start(directory.settings()).unwrap();
        let tap = keeper.tap(7, "");
        tap.put(kind::BEGIN, now_micros(), &[&[0, 0]]);
        for _ in 0..2 * MIN_HISTORY_BYTES / (32 << 10) {
            tap.put(kind::ANSWER, now_micros(), &[&[0; 32 << 10]]);
        }
        let gauge = keeper.gauge();
        let stopped = lab::wait_until(Duration::from_secs(60), "it to stop", || {
            gauge.status().stopped
        });
        assert!(stopped.unwrap().contains("limit_bytes"));
        assert!(gauge.status().lost > 0);
        // A segment without a whole listing is of no use to anybody.
        drop(keeper);
        let segments = shelf::segments(&directory.0).unwrap();
        assert!(segments.len() <= 1, "{segments:?}");
    }

    #[test]
    fn a_directory_that_is_somebodys_is_left_alone() {
        let directory = Directory::new("taken");
        fs::create_dir(&directory.0).unwrap();
        fs::write(directory.0.join("letter"), "dear").unwrap();
        let refused = Keeper::start(directory.settings()).unwrap_err().to_string();
        assert!(refused.contains("`letter`"), "{refused}");
        assert!(check(&directory.0).is_err());
        fs::remove_file(directory.0.join("letter")).unwrap();
        check(&directory.0).unwrap();
        let first = Keeper::start(directory.settings()).unwrap();
        let second = Keeper::start(directory.settings()).unwrap_err().to_string();
        assert!(second.contains("another daemon"), "{second}");
        drop(first);
        Keeper::start(directory.settings()).unwrap();
    }
}
