//! What answers come from: a [`Source`] keeps tables, says how it fares,
//! and samples what nobody announces while somebody reads it.
//!
//! A mirror of the kernel is one, a recording that is replayed is another.
//! Whoever answers (control socket, HTTP, SNMP) takes any of them.

use std::fmt::Debug;
use std::time::Duration;

use crate::samples::Samples;
use crate::writer::Reader;

/// Where tables come from.
pub trait Source: Debug + Send + Sync {
    /// Takes snapshots, and watches for changes.
    fn reader(&self) -> Reader;

    /// How it fares. Cheap, but it takes a lock: once an answer, not once
    /// a row.
    fn status(&self) -> Status;

    /// What it samples while somebody reads it; `None`: nothing can be
    /// sampled, what is there is all there will be.
    fn samples(&self) -> Option<&Samples>;

    /// The time that its tables are of, milliseconds since the UNIX epoch.
    fn now_millis(&self) -> u64;
}

/// What a source is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// It lists the tables for the first time; readers see nothing yet.
    #[default]
    Loading,
    /// It follows.
    Live,
    /// It follows and lists the tables again, because events were lost or
    /// a listing was interrupted.
    Resyncing,
    /// It ended; the tables stay as they were. Why.
    Ended(String),
}

/// How a source fares.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// What it is doing.
    pub phase: Phase,
    /// How long the first listing took.
    pub load_time: Duration,
    /// Listings done again after a loss.
    pub resyncs: u64,
    /// Times that events were lost.
    pub overruns: u64,
    /// Listings that changed under way.
    pub interrupted_dumps: u64,
    /// Scans for drift done.
    pub scans: u64,
    /// Rows that a scan found different: should stay 0.
    pub drift: u64,
    /// The first few rows of the last drift, as they should have been.
    pub drift_examples: Vec<String>,
    /// Events applied.
    pub events: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// What could not be stored, if a table is full.
    pub full: Option<String>,
    /// The receive buffer as it was granted, bytes.
    pub receive_buffer_bytes: usize,
    /// The last trouble, in words.
    pub last_trouble: Option<String>,
}

impl Status {
    /// Why an answer from the tables may lack rows, or have some that are
    /// gone; `None`: it is whole.
    pub fn incomplete(&self) -> Option<String> {
        match &self.phase {
            Phase::Loading => Some("the tables are being read".to_owned()),
            Phase::Resyncing => {
                Some("events were lost, and the tables are being read again".to_owned())
            }
            Phase::Ended(why) => Some(format!("the tables are kept no more: {why}")),
            Phase::Live => self.full.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_live_tables_without_a_refusal_are_whole() {
        let of = |phase, full: Option<&str>| {
            let full = full.map(str::to_owned);
            Status {
                phase,
                full,
                ..Status::default()
            }
        };
        assert_eq!(of(Phase::Live, None).incomplete(), None);
        let full = of(Phase::Live, Some("routes are full")).incomplete();
        assert_eq!(full.as_deref(), Some("routes are full"));
        for phase in [
            Phase::Loading,
            Phase::Resyncing,
            Phase::Ended("gone".into()),
        ] {
            assert!(of(phase, None).incomplete().is_some());
        }
    }
}
