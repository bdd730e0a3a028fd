//! What is replayed: a recording of mirrors, or files of BGP tables and
//! messages.

mod mrt;
mod recorded;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use linux::recording::Progress;
use table::{Limits, Source};

use super::files::Files;
use super::until::Until;
pub use mrt::Mrt;
pub use recorded::{Reach, Recorded};

/// Exit status of a replay that could not read all.
const INCOMPLETE: u8 = 3;
/// Records between two looks at whether to end.
const BETWEEN_LOOKS: u64 = 4_096;

/// A replay under way.
pub enum Playing {
    /// Of what mirrors were fed with.
    Recorded(Box<Recorded>),
    /// Of a collector's files.
    Mrt(Box<Mrt>),
}

/// Tables that a replay has made.
pub struct Found {
    /// What the namespace was called; empty: the daemon's own.
    pub name: String,
    /// Its inode; 0: there is none.
    pub inode: u64,
    /// The tables.
    pub source: Arc<dyn Source>,
}

/// How a replay ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// All of the recording, or as much as was wanted.
    Whole,
    /// The user ended it.
    BrokenOff,
    /// The recording cannot be read further: where and why.
    Damaged(String),
    /// A collector's file cannot be read, or not all of it: where and why.
    /// The tables say that they miss rows.
    Incomplete(String),
}

impl End {
    /// Whether the recording could not be read further.
    pub fn is_damaged(&self) -> bool {
        matches!(self, Self::Damaged(_))
    }

    /// A damaged recording is an error, though what came before it is
    /// there.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Damaged(_) => ExitCode::FAILURE,
            Self::Incomplete(_) => ExitCode::from(INCOMPLETE),
            Self::Whole | Self::BrokenOff => ExitCode::SUCCESS,
        }
    }
}

impl Playing {
    /// At the beginning of files, which are in their order.
    pub fn new(files: Files, limits: Limits, until: Option<Until>) -> Self {
        match files {
            Files::Recorded(files) => {
                let played = Recorded::new(files, limits, until);
                Self::Recorded(Box::new(played))
            }
            Files::Mrt(files) => Self::Mrt(Box::new(Mrt::new(files, limits, until))),
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        match self {
            Self::Recorded(played) => played.progress(),
            Self::Mrt(played) => played.progress(),
        }
    }

    /// Namespaces whose tables are not whole, as far as the recording
    /// itself lacks them.
    pub fn incomplete(&self) -> usize {
        match self {
            Self::Recorded(played) => played.incomplete(),
            Self::Mrt(_) => 0,
        }
    }

    /// Feeds of which the recording does not say how they stood.
    pub fn incomplete_feeds(&self) -> usize {
        match self {
            Self::Recorded(played) => played.incomplete_feeds(),
            Self::Mrt(_) => 0,
        }
    }

    /// The tables that came since this was last called.
    pub fn take_new(&mut self) -> Vec<Found> {
        match self {
            Self::Recorded(played) => played.take_new(),
            Self::Mrt(played) => played.take_new(),
        }
    }

    /// Replays everything at once, unless `ended` says so now and then.
    pub fn finish(&mut self, ended: &mut dyn FnMut() -> bool) -> End {
        match self {
            Self::Recorded(played) => played.finish(ended),
            Self::Mrt(played) => played.finish(ended),
        }
    }

    /// Replays what is due by now; how long until the next record, or how
    /// it ended. A collector's files are not replayed in real time.
    pub fn due(&mut self) -> Result<Duration, End> {
        match self {
            Self::Recorded(played) => played.due(),
            Self::Mrt(played) => Err(played.finish(&mut || false)),
        }
    }
}
