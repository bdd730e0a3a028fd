//! Complete segments in less room: gzip (RFC 1952), which a replay unpacks.
//! On a thread that lets all others go first.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use flate2::Compression;
use flate2::write::GzEncoder;
use tracing::{debug, warn};

use super::shelf;

/// Segments that wait to be packed at most: more stay as they are until the
/// next start.
const WAITING: usize = 1_024;
/// How much nicer than the others the thread is.
const NICE: i32 = 15;
/// Bytes read and written at once.
const PIECE_BYTES: usize = 256 << 10;

/// The thread, from outside. When dropped, it ends with the segment that it
/// is at.
#[derive(Debug)]
pub(super) struct Packer {
    jobs: Option<SyncSender<PathBuf>>,
    thread: Option<JoinHandle<()>>,
}

impl Packer {
    pub(super) fn start(is_for_group: bool) -> io::Result<Self> {
        let (jobs, to_do) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("packer".into())
            .spawn(move || run(&to_do, is_for_group))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Has a segment packed, some time. Never waits.
    pub(super) fn pack(&self, path: PathBuf) {
        let sent = self.jobs.as_ref().map(|jobs| jobs.try_send(path));
        if matches!(sent, Some(Err(_))) {
            debug!("a segment of the history stays as it is: too many wait to be packed");
        }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to pack.
            let _ = thread.join();
        }
    }
}

fn run(to_do: &Receiver<PathBuf>, is_for_group: bool) {
    // For this thread alone, whatever the name says.
    let _ = rustix::process::setpriority_process(None, NICE);
    while let Ok(path) = to_do.recv() {
        match pack(&path, is_for_group) {
            Ok(()) => {}
            // The bounds took it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => warn!("{}: it stays as it is: {error}", path.display()),
        }
    }
}

/// Packs a segment. Whenever this is broken off, the whole of it is there.
fn pack(path: &Path, is_for_group: bool) -> io::Result<()> {
    let (packed, unfinished) = shelf::packed_paths(path);
    let written = write(path, &unfinished, is_for_group);
    let done = written.and_then(|()| fs::rename(&unfinished, &packed));
    if let Err(error) = done {
        // Where even this fails the next start removes it.
        let _ = fs::remove_file(&unfinished);
        return Err(error);
    }
    match fs::remove_file(path) {
        // The bounds removed it meanwhile: then the packed one has to go.
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::remove_file(&packed),
        other => other,
    }
}

fn write(from: &Path, to: &Path, is_for_group: bool) -> io::Result<()> {
    let whole = File::open(from)?;
    let out = shelf::create(to, is_for_group)?;
    give_group(&whole, &out)?;
    let out = BufWriter::with_capacity(PIECE_BYTES, out);
    let mut out = GzEncoder::new(out, Compression::fast());
    io::copy(&mut BufReader::with_capacity(PIECE_BYTES, whole), &mut out)?;
    out.finish()?.flush()
}

/// The packed file is its group's who may read the whole one.
fn give_group(from: &File, to: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let gid = from.metadata()?.gid();
    if to.metadata()?.gid() != gid {
        let gid = rustix::fs::Gid::from_raw(gid);
        rustix::fs::fchown(to, None, Some(gid))?;
    }
    Ok(())
}
