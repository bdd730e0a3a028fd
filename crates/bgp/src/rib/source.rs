//! The tables as a source: of the time that the records have reached.

use std::sync::Arc;

use table::{Reader, Samples, Source, SourceState, Status};

/// The best paths, and beside them those of each peer.
#[derive(Debug)]
pub struct RibSource {
    reader: Reader,
    state: Arc<SourceState>,
}

impl RibSource {
    pub(super) fn new(reader: Reader, state: Arc<SourceState>) -> Self {
        Self { reader, state }
    }
}

impl Source for RibSource {
    fn reader(&self) -> Reader {
        self.reader.clone()
    }

    fn status(&self) -> Status {
        self.state.status()
    }

    /// What was told is all there is.
    fn samples(&self) -> Option<&Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        self.state.clock_micros() / 1_000
    }
}
