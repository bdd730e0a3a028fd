//! How a history fares.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::recording::queue::Queue;

/// How a history fares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryStatus {
    /// Where it is.
    pub directory: PathBuf,
    /// Files of it.
    pub segments: u64,
    /// Bytes of these.
    pub stored_bytes: u64,
    /// When the oldest was begun, microseconds since the UNIX epoch; 0:
    /// there is none.
    pub oldest_micros: u64,
    /// Records written since the start.
    pub records: u64,
    /// Bytes written since the start.
    pub bytes: u64,
    /// Records that were not written: the disk was full or too slow.
    pub lost: u64,
    /// Times that records are missing.
    pub gaps: u64,
    /// Segments that were removed for the bounds.
    pub removed: u64,
    /// Why it stands still, if it does.
    pub stopped: Option<String>,
}

/// What the keeper notes of its files.
#[derive(Debug, Clone, Default)]
pub(super) struct Shelved {
    pub segments: u64,
    pub stored_bytes: u64,
    pub oldest_micros: u64,
    pub removed: u64,
    pub stops: u64,
    pub stopped: Option<String>,
}

/// Tells how a history fares. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HistoryGauge {
    pub(super) queue: Arc<Queue>,
    pub(super) directory: PathBuf,
    pub(super) shelved: Arc<Mutex<Shelved>>,
}

impl HistoryGauge {
    pub(super) fn shelved(&self) -> MutexGuard<'_, Shelved> {
        self.shelved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it fares.
    pub fn status(&self) -> HistoryStatus {
        let counted = &self.queue.gauge;
        let shelved = self.shelved().clone();
        HistoryStatus {
            directory: self.directory.clone(),
            segments: shelved.segments,
            stored_bytes: shelved.stored_bytes,
            oldest_micros: shelved.oldest_micros,
            records: counted.records.load(Ordering::Relaxed),
            bytes: counted.bytes.load(Ordering::Relaxed),
            lost: counted.lost.load(Ordering::Relaxed),
            gaps: counted.gaps.load(Ordering::Relaxed) + shelved.stops,
            removed: shelved.removed,
            stopped: shelved.stopped,
        }
    }
}
