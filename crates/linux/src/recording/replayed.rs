//! The tables of a namespace as a recording has them: a source like a
//! mirror, whose time is the recording's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use table::{Reader, Samples, Source, Status};

use crate::mirror::now_millis;

/// A namespace that is replayed. A player keeps its tables.
#[derive(Debug)]
pub struct Replayed {
    inode: u64,
    reader: Reader,
    shared: Arc<Shared>,
}

/// What the player and the owner of a [`Replayed`] share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    status: Mutex<Status>,
    /// The time that the replay has reached, microseconds since the epoch;
    /// 0: none yet.
    clock_micros: AtomicU64,
}

impl Shared {
    /// The replay has reached this time.
    pub(super) fn set_clock(&self, micros: u64) {
        self.clock_micros.store(micros, Ordering::Relaxed);
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status());
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replayed {
    pub(super) fn new(inode: u64, reader: Reader, shared: Arc<Shared>) -> Self {
        Self {
            inode,
            reader,
            shared,
        }
    }

    /// The inode that the namespace had when it was recorded.
    pub fn inode(&self) -> u64 {
        self.inode
    }
}

impl Source for Replayed {
    fn reader(&self) -> Reader {
        self.reader.clone()
    }

    fn status(&self) -> Status {
        self.shared.status().clone()
    }

    /// What was sampled is all there will be.
    fn samples(&self) -> Option<&Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        match self.shared.clock_micros.load(Ordering::Relaxed) {
            0 => now_millis(),
            micros => micros / 1000,
        }
    }
}
