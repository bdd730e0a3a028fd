//! What makes a creation, deletion or change of links go on, or be taken back,
//! after the process that did it was killed at any moment.
//!
//! A journal is written whole before the first change, and says all that
//! is needed: of a creation what was asked for and the group that marks
//! its links; of a deletion the links as they were, and the group they are
//! moved into; of a change the links as they were, and what the kernel may
//! take along. How far it came is read from the kernel. Links do not
//! survive a reboot, so nothing is forced to the disk.
//!
//! `ID.journal` holds lines of JSON, `ID.rows` and `ID.rows-1`, `-2`, … the
//! links and other rows of a deletion or change as netlink messages, a file
//! for each namespace. While a process is at work it holds a lock on the journal.
//!
//! For the program: it keeps in [`Start::request`] what it was asked.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use netlink::decode::{Decoded, Item, Operation, decode};
use netlink::encode::{self, Request};
use netlink::message::messages;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use table::{Address, Link};

use crate::error::Error;
use crate::namespace::Namespace;

/// Journals of each work that has ended that are kept, the newest, to be
/// taken back.
const KEPT: usize = 16;
/// Journals of what has not ended that are kept, the newest: their
/// namespaces may be long gone.
const KEPT_OPEN: usize = 256;
/// A longer file is no journal: some million links.
const MAX_BYTES: u64 = 1 << 30;
/// A file that has not become a journal in this time was left by a kill.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);
/// Extension of what says how a work was decided to end.
const DECIDED: &str = "decided";
/// The form of journals; another is not read.
const VERSION: u32 = 1;

/// What a journal is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Links were made.
    Add,
    /// Links were deleted.
    Delete,
    /// Links were changed.
    Set,
    /// Links and rows were made as files say.
    Apply,
}

/// How the work of a journal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// All was done.
    Done,
    /// All that was done was taken back.
    Undone,
}

/// The first line: what is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    version: u32,
    /// What is done.
    pub work: Work,
    /// When it was begun, milliseconds since the UNIX epoch.
    pub begun_millis: u64,
    /// The system's `boot_id`: after a reboot there is nothing to go on
    /// with.
    boot: String,
    /// How the namespace is known.
    pub namespace: String,
    /// Which it is.
    inode: u64,
    /// The group of the links that are made, or that links are moved into
    /// before they are deleted; 0: none.
    pub group: u32,
    /// So many links.
    pub links: usize,
    /// What the program was asked for, in its own words.
    pub request: serde_json::Value,
}

/// A later line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// Rows of another namespace: a file's number, the namespace's name and
    /// number.
    Rows(usize, String, u64),
    /// Links that are all made and lose the group that marks them: place
    /// and index.
    Indexes(Vec<(usize, u32)>),
    /// It has ended.
    End(End),
}

/// The links and addresses that a deletion takes from a namespace, or the
/// links that are changed and the rows that may go along.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The namespace; `None`: that of the deletion.
    pub namespace: Option<(String, u64)>,
    /// Links, lower ones before what stands on them where they were listed
    /// so.
    pub links: Vec<Link>,
    /// Their addresses.
    pub addresses: Vec<Address>,
    /// What else stands on them, as far as it is to be put back.
    pub others: Vec<Item>,
}

/// A journal that is being written, or that was found.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Its first line.
    pub start: Start,
    lines: Vec<Line>,
}

impl Start {
    /// The first line of what is begun now.
    pub fn new(work: Work, namespace: &Namespace, group: u32, links: usize) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            version: VERSION,
            work,
            begun_millis: now.map_or(0, |now| now.as_millis() as u64),
            boot: boot(),
            namespace: namespace.known_as(),
            inode: namespace.inode(),
            group,
            links,
            request: serde_json::Value::Null,
        }
    }

    /// Whether it is of this namespace of this boot.
    fn is_of(&self, namespace: &Namespace) -> bool {
        self.version == VERSION && self.boot == boot() && self.inode == namespace.inode()
    }
}

fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

impl Journal {
    /// Begins one in a directory, which is made if it is not there. `rows`
    /// are those of a deletion or change, the first of them of its own namespace. When
    /// this returns all is written that is needed after a `kill -9`.
    pub fn begin(directory: &Path, start: Start, rows: &[Rows]) -> Result<Self, Error> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(directory)
            .map_err(|error| trouble(directory, error))?;
        is_ours(directory)?;
        tidy_up(directory);
        let (path, file) = create(directory, &start)?;
        let whole = Self::write_whole(&path, file, start, rows);
        if whole.is_err() {
            // On a full disk what is of no use takes room from others.
            remove(&path);
        }
        whole
    }

    fn write_whole(path: &Path, file: File, start: Start, rows: &[Rows]) -> Result<Self, Error> {
        let mut lines = Vec::new();
        for (number, rows) in rows.iter().enumerate() {
            write_rows(&rows_path(path, number), rows, start.begun_millis)?;
            if let Some((namespace, inode)) = &rows.namespace {
                lines.push(Line::Rows(number, namespace.clone(), *inode));
            }
        }
        let mut journal = Self {
            path: path.to_owned(),
            file,
            start,
            lines: Vec::new(),
        };
        let first =
            serde_json::to_string(&journal.start).map_err(|error| trouble(path, error.into()))?;
        journal.write(&first)?;
        for line in lines {
            journal.append(line)?;
        }
        // Whole, or not there: until it has its name it is no journal.
        let whole = path.with_extension("journal");
        fs::rename(path, &whole).map_err(|error| trouble(&whole, error))?;
        journal.path = whole;
        Ok(journal)
    }

    /// The newest journal of some work in a namespace whose end is
    /// `wanted`; if there is none, the newest one. `None` when there is
    /// none at all.
    pub fn newest(
        directory: &Path,
        work: Work,
        namespace: &Namespace,
        wanted: &dyn Fn(Option<End>) -> bool,
    ) -> Result<Option<Self>, Error> {
        is_ours(directory)?;
        let mut newest = None;
        for path in paths(directory) {
            let Ok(journal) = Self::open(&path) else {
                continue;
            };
            if journal.start.work != work || !journal.start.is_of(namespace) {
                continue;
            }
            if wanted(journal.end()) {
                return Ok(Some(journal));
            }
            newest.get_or_insert(journal);
        }
        Ok(newest)
    }

    /// The journal of an id, which must be of the namespace.
    pub fn named(directory: &Path, id: &str, namespace: &Namespace) -> Result<Self, Error> {
        is_ours(directory)?;
        let path = directory.join(id).with_extension("journal");
        if id.contains('/') {
            let why = "an id is expected, as `link journal` lists it".to_owned();
            return Err(Error::Journal { path, why });
        }
        let journal = Self::open(&path)?;
        if journal.start.is_of(namespace) {
            return Ok(journal);
        }
        Err(journal.wrong(
            "it is of another namespace, or of the time before a reboot (name the namespace with --netns)",
        ))
    }

    /// All journals in a directory that can be read, the newest first.
    pub fn all(directory: &Path) -> Result<Vec<Self>, Error> {
        is_ours(directory)?;
        let journals = paths(directory).into_iter();
        Ok(journals.filter_map(|path| Self::open(&path).ok()).collect())
    }

    fn open(path: &Path) -> Result<Self, Error> {
        let file = no_link(OpenOptions::new().read(true).append(true)).open(path);
        let file = file.map_err(|error| trouble(path, error))?;
        let mut lines = BufReader::new((&file).take(MAX_BYTES)).lines();
        let first = lines.next().transpose().ok().flatten().unwrap_or_default();
        let start: Start =
            serde_json::from_str(&first).map_err(|error| trouble(path, error.into()))?;
        // A line that was cut off by a kill was not acted upon.
        let lines = lines
            .map_while(Result::ok)
            .filter_map(|line| serde_json::from_str(&line).ok())
            .collect();
        Ok(Self {
            path: path.to_owned(),
            file,
            start,
            lines,
        })
    }

    /// Takes the work over; an error while another process is at it.
    pub fn take_over(&mut self) -> Result<(), Error> {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| self.wrong("a process is still at work on it"))
    }

    /// What it is called.
    pub fn id(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// How its work ended; `None`: it has not.
    pub fn end(&self) -> Option<End> {
        self.lines.iter().rev().find_map(|line| match line {
            Line::End(end) => Some(*end),
            _ => None,
        })
    }

    /// Links that were made and lost their group afterwards: place and
    /// index.
    pub fn indexes(&self) -> impl Iterator<Item = (usize, u32)> {
        self.lines.iter().flat_map(|line| match line {
            Line::Indexes(indexes) => indexes.clone(),
            _ => Vec::new(),
        })
    }

    /// The rows of a deletion or change, as they were: those of its namespace first.
    pub fn rows(&self) -> Result<Vec<Rows>, Error> {
        let mut all = vec![self.read_rows(0, None)?];
        for line in &self.lines {
            if let Line::Rows(number, namespace, inode) = line {
                let namespace = Some((namespace.clone(), *inode));
                all.push(self.read_rows(*number, namespace)?);
            }
        }
        Ok(all)
    }

    fn read_rows(&self, number: usize, namespace: Option<(String, u64)>) -> Result<Rows, Error> {
        let path = rows_path(&self.path, number);
        let mut bytes = Vec::new();
        no_link(OpenOptions::new().read(true))
            .open(&path)
            .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
            .map_err(|error| trouble(&path, error))?;
        let mut rows = Rows {
            namespace,
            ..Rows::default()
        };
        for message in messages(&bytes) {
            let Decoded::Announcement(announced) = decode(&message?, self.start.begun_millis)?
            else {
                continue;
            };
            match announced.item {
                Item::Link(link) => rows.links.push(link),
                Item::Address(address) => rows.addresses.push(address),
                other => rows.others.push(other),
            }
        }
        Ok(rows)
    }

    /// Keeps the indexes of links before they lose the group that marks
    /// them.
    pub fn keep_indexes(&mut self, indexes: Vec<(usize, u32)>) -> Result<(), Error> {
        self.append(Line::Indexes(indexes))
    }

    /// Decides how its work ends, where several processes may: the first is
    /// right, and what it decided is given to all.
    pub fn decide(&self, end: End) -> Result<End, Error> {
        let path = self.path.with_extension(DECIDED);
        let word = match end {
            End::Done => "done",
            End::Undone => "undone",
        };
        // A symbolic link is there with what it says, or not at all.
        match std::os::unix::fs::symlink(word, &path) {
            Ok(()) => Ok(end),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let decided = fs::read_link(&path).map_err(|error| trouble(&path, error))?;
                match decided.to_str() {
                    Some("done") => Ok(End::Done),
                    _ => Ok(End::Undone),
                }
            }
            Err(error) => Err(trouble(&path, error)),
        }
    }

    /// The journal's file, whose lock holds as long as any copy of it is
    /// open: for a process that goes on when this one is gone.
    pub fn lock(&self) -> Result<File, Error> {
        let copy = self.file.try_clone();
        copy.map_err(|error| trouble(&self.path, error))
    }

    /// The directory it is in.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Says that it has ended.
    pub fn ended(&mut self, end: End) -> Result<(), Error> {
        self.append(Line::End(end))
    }

    fn append(&mut self, line: Line) -> Result<(), Error> {
        let text =
            serde_json::to_string(&line).map_err(|error| trouble(&self.path, error.into()))?;
        self.write(&text)?;
        self.lines.push(line);
        Ok(())
    }

    fn write(&mut self, line: &str) -> Result<(), Error> {
        // A new line at first ends one that a kill cut off.
        let start = if self.lines.is_empty() { "" } else { "\n" };
        let text = format!("{start}{line}\n");
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| trouble(&self.path, error))
    }

    fn wrong(&self, why: &str) -> Error {
        Error::Journal {
            path: self.path.clone(),
            why: why.to_owned(),
        }
    }
}

fn trouble(path: &Path, error: io::Error) -> Error {
    Error::Journal {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

/// A journal tells what is done with the rights of whoever goes on with it:
/// nobody else may have written it. A directory that is not there holds
/// none.
fn is_ours(directory: &Path) -> Result<(), Error> {
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(trouble(directory, error)),
    };
    let is_owner = metadata.uid() == 0 || metadata.uid() == geteuid().as_raw();
    let why = if !metadata.is_dir() {
        "it is no directory"
    } else if !is_owner {
        "it is another user's, who could write journals"
    } else if metadata.mode() & 0o022 != 0 {
        "others may write into it, journals too (chmod go-w)"
    } else {
        return Ok(());
    };
    Err(Error::Journal {
        path: directory.to_owned(),
        why: why.to_owned(),
    })
}

/// The file itself, and not what a symbolic link of its name leads to.
fn no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32)
}

/// A new file that is not yet a journal, locked.
fn create(directory: &Path, start: &Start) -> Result<(PathBuf, File), Error> {
    let process = std::process::id();
    let mut number = 0;
    loop {
        let id = format!("{}-{process}-{number}", start.begun_millis);
        let path = directory.join(id).with_extension("begun");
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true).mode(0o600);
        match options.open(&path) {
            Ok(file) => {
                flock(&file, FlockOperation::NonBlockingLockExclusive)
                    .map_err(|errno| trouble(&path, errno.into()))?;
                return Ok((path, file));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                number += 1;
            }
            Err(error) => return Err(trouble(&path, error)),
        }
    }
}

fn rows_path(journal: &Path, number: usize) -> PathBuf {
    match number {
        0 => journal.with_extension("rows"),
        _ => journal.with_extension(format!("rows-{number}")),
    }
}

fn write_rows(path: &Path, rows: &Rows, now_millis: u64) -> Result<(), Error> {
    let request = Request {
        operation: Operation::New,
        flags: 0,
        sequence: 0,
        now_millis,
    };
    let mut bytes = Vec::new();
    // What came out of a netlink message goes into one.
    for link in &rows.links {
        let _ = encode::link(&mut bytes, &request, link);
    }
    for address in &rows.addresses {
        let _ = encode::address(&mut bytes, &request, address);
    }
    for other in &rows.others {
        let _ = encode::row(&mut bytes, &request, other);
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options
        .open(path)
        .and_then(|mut file| file.write_all(&bytes))
        .map_err(|error| trouble(path, error))
}

/// The journals of a directory, the newest first.
fn paths(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "journal")
        })
        .collect();
    // Ids begin with the time, of as many digits for some centuries.
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths
}

/// Removes what nobody needs: journals of another boot, all but the newest
/// of the others, and what a kill left before it was a journal.
fn tidy_up(directory: &Path) {
    let (mut ended, mut open) = ([0; 4], 0);
    for path in paths(directory) {
        let Ok(mut journal) = Journal::open(&path) else {
            continue;
        };
        let is_old = if journal.end().is_some() {
            let [adds, deletes, sets, applied] = &mut ended;
            let ended = match journal.start.work {
                Work::Add => adds,
                Work::Delete => deletes,
                Work::Set => sets,
                Work::Apply => applied,
            };
            *ended += 1;
            *ended > KEPT
        } else {
            open += 1;
            // One that a process is at work on is locked.
            open > KEPT_OPEN && journal.take_over().is_ok()
        };
        if is_old || journal.start.boot != boot() {
            remove(&path);
        }
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let is_begun = path
            .extension()
            .is_some_and(|extension| extension == "begun");
        let age = fs::metadata(&path).and_then(|metadata| metadata.modified());
        let age = age.ok().and_then(|modified| modified.elapsed().ok());
        if is_begun && age.is_some_and(|age| age > LEFT_BEHIND) {
            remove(&path);
        }
    }
}

/// Removes a journal and its rows. What cannot be removed stays, and is
/// tried again next time.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_file(path.with_extension(DECIDED));
    let mut number = 0;
    while fs::remove_file(rows_path(path, number)).is_ok() {
        number += 1;
    }
}
