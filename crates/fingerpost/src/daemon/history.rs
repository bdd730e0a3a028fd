//! The history that the daemon keeps: from its configuration to the thread
//! that writes it, and how it fares. For the daemon and its rehearsal.

use std::time::Duration;

use anyhow::{Context, Result};
use linux::recording::history::{self, Keeper, Settings};
use rustix::fs::Gid;
use serve::status::HistoryStatus;

use crate::config::History;

/// Begins the history, if one is wanted.
pub fn start(wanted: &History, group: Option<Gid>) -> Result<Option<Keeper>> {
    let Some(directory) = &wanted.directory else {
        return Ok(None);
    };
    let counters = Duration::from_secs(wanted.counters_secs);
    let settings = Settings {
        directory: directory.clone(),
        limit_bytes: wanted.limit_bytes,
        keep: Duration::from_secs(wanted.keep_secs),
        counters: (!counters.is_zero()).then_some(counters),
        group,
    };
    let started = Keeper::start(settings);
    started.map(Some).context("cannot keep a history")
}

/// Whether [`start`] would begin it.
pub fn check(wanted: &History) -> Result<()> {
    match &wanted.directory {
        Some(directory) => history::check(directory).context("cannot keep a history"),
        None => Ok(()),
    }
}

/// How a history is, as a status tells it.
pub fn status(from: history::HistoryStatus) -> HistoryStatus {
    HistoryStatus {
        directory: from.directory.display().to_string(),
        segments: from.segments,
        stored_bytes: from.stored_bytes,
        oldest_micros: from.oldest_micros,
        records: from.records,
        bytes: from.bytes,
        lost: from.lost,
        gaps: from.gaps,
        removed: from.removed,
        stopped: from.stopped,
    }
}
