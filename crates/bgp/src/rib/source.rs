//! The tables as a source: of the time that the records have reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use table::{Reader, Samples, Source, Status};

/// The best paths, and beside them those of each peer.
#[derive(Debug)]
pub struct RibSource {
    reader: Reader,
    shared: Arc<Shared>,
}

/// What the tables' keeper and those who ask share.
#[derive(Debug, Default)]
pub struct Shared {
    status: Mutex<Status>,
    clock_micros: AtomicU64,
}

impl Shared {
    pub fn set_clock(&self, micros: u64) {
        self.clock_micros.store(micros, Ordering::Relaxed);
    }

    pub fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status());
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RibSource {
    pub(super) fn new(reader: Reader, shared: Arc<Shared>) -> Self {
        Self { reader, shared }
    }
}

impl Source for RibSource {
    fn reader(&self) -> Reader {
        self.reader.clone()
    }

    fn status(&self) -> Status {
        self.shared.status().clone()
    }

    /// What was told is all there is.
    fn samples(&self) -> Option<&Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        self.shared.clock_micros.load(Ordering::Relaxed) / 1_000
    }
}
