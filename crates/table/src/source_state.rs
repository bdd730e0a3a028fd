//! What a source of its own time shares between who fills its tables and who
//! answers from them: a recording that is replayed, files of BGP tables.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::status::Status;

/// How such a source fares, and the time that it has reached.
#[derive(Debug, Default)]
pub struct SourceState {
    status: Mutex<Status>,
    clock_micros: AtomicU64,
}

impl SourceState {
    /// Its tables have reached this time, microseconds since the UNIX epoch.
    pub fn set_clock(&self, micros: u64) {
        self.clock_micros.store(micros, Ordering::Relaxed);
    }

    /// That time; 0: none yet.
    pub fn clock_micros(&self) -> u64 {
        self.clock_micros.load(Ordering::Relaxed)
    }

    /// Changes what is told of how it fares.
    pub fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.locked());
    }

    /// How it fares. Takes a short lock.
    pub fn status(&self) -> Status {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
