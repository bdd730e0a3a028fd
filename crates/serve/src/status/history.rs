//! How the history is.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::human;

/// How the history is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HistoryStatus {
    /// Where it is.
    pub directory: String,
    /// Files of it.
    pub segments: u64,
    /// Octets of these.
    pub stored_bytes: u64,
    /// When the oldest was begun, microseconds since the UNIX epoch; 0:
    /// there is none.
    pub oldest_micros: u64,
    /// Records written since the start.
    pub records: u64,
    /// Octets written since the start, before they are packed.
    pub bytes: u64,
    /// Records that were not written: the disk was full or too slow.
    pub lost: u64,
    /// Times that records are missing.
    pub gaps: u64,
    /// Files that were removed for the bounds.
    pub removed: u64,
    /// Why it stands still, if it does.
    pub stopped: Option<String>,
}

impl HistoryStatus {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let since = match self.oldest_micros {
            0 => "nothing yet".to_owned(),
            micros => format!("since {}", words::calendar::text(micros / 1_000_000)),
        };
        writeln!(
            out,
            "history in {}, {since}: {} files, {}; {} records, {} of them lost, {} gaps, {} files \
             removed",
            self.directory,
            self.segments,
            human(self.stored_bytes),
            self.records,
            self.lost,
            self.gaps,
            self.removed
        )
    }

    /// What its user should know.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let stopped = self.stopped.as_ref();
        stopped
            .map(|why| format!("the history has a gap now: {why}"))
            .into_iter()
    }
}
