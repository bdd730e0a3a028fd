//! How a recording fares.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::queue::Queue;

/// How a recording fares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordingStatus {
    /// The file that is written.
    pub file: PathBuf,
    /// Which part of the recording it is, from 0.
    pub part: u32,
    /// Records written since the start.
    pub records: u64,
    /// Bytes written since the start.
    pub bytes: u64,
    /// Records that had no place in the queue, or came after the end.
    pub lost: u64,
    /// Places in the recording where some are missing.
    pub gaps: u64,
    /// Why it stopped, if it did.
    pub stopped: Option<String>,
}

/// The counters behind it, written by the recorder's thread and the taps.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub part: AtomicU32,
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    pub lost: AtomicU64,
    pub gaps: AtomicU64,
    /// Taps need hand over nothing more.
    pub is_off: AtomicBool,
    pub stopped: Mutex<Option<String>>,
}

impl Counters {
    pub(super) fn stop(&self, why: String) {
        self.is_off.store(true, Ordering::Release);
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    pub(super) fn status(&self, file: PathBuf) -> RecordingStatus {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        RecordingStatus {
            file,
            part: self.part.load(Ordering::Relaxed),
            records: self.records.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            gaps: self.gaps.load(Ordering::Relaxed),
            stopped: stopped.clone(),
        }
    }
}

/// Tells how a recording fares, for as long as anybody asks. Cheap to
/// clone.
#[derive(Debug, Clone)]
pub struct Gauge {
    pub(super) queue: Arc<Queue>,
    pub(super) file: Arc<Path>,
}

impl Gauge {
    /// How it fares.
    pub fn status(&self) -> RecordingStatus {
        self.queue.gauge.status(self.file.to_path_buf())
    }
}
