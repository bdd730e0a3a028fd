//! The segments in a directory. A name is `SEQUENCE-BEGUN.fprec`: a number
//! that counts up whatever the clock does, and when the segment was begun,
//! microseconds since the UNIX epoch. A packed one has `.gz` behind that.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Gid, Mode, OFlags, flock};

/// How the name of a segment ends.
const ENDS: &str = ".fprec";
/// And that of a packed one.
const PACKED_ENDS: &str = ".fprec.gz";
/// Behind the name of one that is being packed.
const UNFINISHED: &str = ".new";
/// Held by who writes.
const LOCK: &str = "lock";
/// So often it is tried for, with a pause.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Which it is: the order in which they were written.
    pub sequence: u64,
    /// When it was begun, microseconds since the UNIX epoch.
    pub begun_micros: u64,
    /// Its file.
    pub path: PathBuf,
    /// It is packed.
    pub is_packed: bool,
    /// Bytes of it.
    pub bytes: u64,
}

/// The segments in a directory, in their order. Of one that is there twice,
/// because it was packed when this looked, the packed one. O(files).
pub fn segments(directory: &Path) -> io::Result<Vec<Segment>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some((sequence, begun_micros, is_packed)) = name.to_str().and_then(parse) else {
            continue;
        };
        // One that went meanwhile is none; neither is what is no file.
        let Some(there) = entry.metadata().ok().filter(fs::Metadata::is_file) else {
            continue;
        };
        found.push(Segment {
            sequence,
            begun_micros,
            path: entry.path(),
            is_packed,
            bytes: there.len(),
        });
    }
    found.sort_by_key(|one: &Segment| (one.sequence, !one.is_packed));
    found.dedup_by_key(|one| one.sequence);
    Ok(found)
}

/// Whether somebody writes there now.
pub fn is_kept_now(directory: &Path) -> bool {
    let Ok(file) = File::open(directory.join(LOCK)) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// Takes the right to write; held as long as the file. Who looks whether
/// somebody has it has it for a moment.
pub(super) fn lock(directory: &Path, group: Option<Gid>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o640);
    let nofollow = OFlags::NOFOLLOW.bits() as i32;
    let file = options.custom_flags(nofollow).open(directory.join(LOCK))?;
    if let Some(group) = group {
        rustix::fs::fchown(&file, None, Some(group))?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o640))?;
    }
    for _ in 0..LOOKS {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(BETWEEN_LOOKS),
            other => return Ok(other.map(|()| file)?),
        }
    }
    Err(io::Error::other(
        "another daemon keeps its history there; choose another directory",
    ))
}

/// The file of a segment that is written.
pub(super) fn path(directory: &Path, sequence: u64, begun_micros: u64) -> PathBuf {
    directory.join(format!("{sequence:010}-{begun_micros}{ENDS}"))
}

/// That of the packed one, and of one that is not yet whole.
pub(super) fn packed_paths(path: &Path) -> (PathBuf, PathBuf) {
    let packed = path.with_extension(PACKED_ENDS.trim_start_matches('.'));
    let mut unfinished = packed.clone().into_os_string();
    unfinished.push(UNFINISHED);
    (packed, unfinished.into())
}

/// Removes what was not finished when a daemon was killed.
pub(super) fn clear_unfinished(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let whole = name.to_str().and_then(|name| name.strip_suffix(UNFINISHED));
        if whole.and_then(parse).is_some() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes a file that was not there, for its owner, and for a group to read
/// where there is one.
pub(super) fn create(path: &Path, is_for_group: bool) -> io::Result<File> {
    let mode: u32 = if is_for_group { 0o640 } else { 0o600 };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let nofollow = OFlags::NOFOLLOW.bits() as i32;
    let file = options.custom_flags(nofollow).open(path)?;
    // Whatever the mask of this process says.
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    Ok(file)
}

/// Sequence, beginning, whether it is packed.
fn parse(name: &str) -> Option<(u64, u64, bool)> {
    let (stem, is_packed) = match name.strip_suffix(PACKED_ENDS) {
        Some(stem) => (stem, true),
        None => (name.strip_suffix(ENDS)?, false),
    };
    let (sequence, begun) = stem.split_once('-')?;
    let is_number = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if !is_number(sequence) || !is_number(begun) {
        return None;
    }
    Some((sequence.parse().ok()?, begun.parse().ok()?, is_packed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let written = path(Path::new("/h"), 7, 1_795_788_301_123_456);
        let name = written.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, "0000000007-1795788301123456.fprec");
        assert_eq!(parse(name), Some((7, 1_795_788_301_123_456, false)));
        let (packed, unfinished) = packed_paths(&written);
        let name = packed.file_name().unwrap().to_str().unwrap();
        assert_eq!(parse(name), Some((7, 1_795_788_301_123_456, true)));
        let name = unfinished.file_name().unwrap().to_str().unwrap();
        assert_eq!(parse(name), None);
        for wrong in [
            "",
            "lock",
            "1-2",
            "-2.fprec",
            "1-.fprec",
            "+1-2.fprec",
            "1-2-3.fprec",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
