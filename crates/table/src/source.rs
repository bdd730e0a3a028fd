//! What answers come from: a [`Source`] keeps tables, says how it fares,
//! and samples what nobody announces while somebody reads it.
//!
//! A mirror of the kernel is one, a recording that is replayed is another.
//! Whoever answers (control socket, HTTP, SNMP) takes any of them.

use std::fmt::Debug;
use std::sync::Arc;

use crate::samples::Samples;
use crate::status::{Phase, Status};
use crate::writer::{Owner, Reader};

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

    /// Why an answer may lack rows, or have some that are gone; `None`: it
    /// is whole. That a recording is at its end is no such reason.
    fn incomplete(&self) -> Option<String> {
        let status = self.status();
        let is_recording = self.samples().is_none();
        let ended = is_recording && matches!(status.phase, Phase::Ended(_));
        let is_whole = status.is_whole() || ended && status.misses_nothing();
        (!is_whole).then(|| status.in_words())
    }
}

/// The rows of one owner beside a source's own: what a feeder has told.
#[derive(Debug, Clone)]
pub struct OfOwner {
    source: Arc<dyn Source>,
    owner: Owner,
    reader: Reader,
}

impl OfOwner {
    /// The owner of a name; `None`: there is none beside the source's own
    /// rows.
    pub fn new(source: &Arc<dyn Source>, name: &str) -> Option<Self> {
        let reader = source.reader();
        let owner = reader.snapshot().owner(name)?.clone();
        Some(Self {
            reader: reader.of(name)?,
            source: Arc::clone(source),
            owner,
        })
    }

    /// The owner.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl Source for OfOwner {
    fn reader(&self) -> Reader {
        self.reader.clone()
    }

    fn status(&self) -> Status {
        self.owner.status()
    }

    /// One that left is no recording at its end: its rows left with it.
    fn incomplete(&self) -> Option<String> {
        let status = self.status();
        (!status.is_whole()).then(|| status.in_words())
    }

    /// Nobody samples what a feeder tells.
    fn samples(&self) -> Option<&Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        self.source.now_millis()
    }
}
