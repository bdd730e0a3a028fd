//! The tables of a namespace as a recording has them: a source like a
//! mirror, whose time is the recording's.

use std::sync::Arc;

use table::{Reader, Samples, Source, SourceState, Status};

use crate::mirror::now_millis;

/// A namespace that is replayed. A player keeps its tables.
#[derive(Debug)]
pub struct Replayed {
    inode: u64,
    reader: Reader,
    state: Arc<SourceState>,
}

impl Replayed {
    pub(super) fn new(inode: u64, reader: Reader, state: Arc<SourceState>) -> Self {
        Self {
            inode,
            reader,
            state,
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
        self.state.status()
    }

    /// What was sampled is all there will be.
    fn samples(&self) -> Option<&Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        match self.state.clock_micros() {
            0 => now_millis(),
            micros => micros / 1000,
        }
    }
}
