//! `fingerpost apply`, `diff`, `export`: links and rows as files say they
//! are to be. By the process that asks and with its rights; no daemon takes
//! part.
//!
//! A file's text becomes tables with their places (`source`, of the types in
//! [`mod@file`]), these what is wanted (`wanted`), and beside the links that are
//! there (`resolved`) and the rows that are read (`look`) the requests that
//! lead from one to the other (`difference`), which are shown (`shown`) or
//! carried out (`apply`): at once, under a journal and a keeper that takes
//! them back (`keep`), or again and again (`watch`). [`import`] makes such a
//! file out of others' files.

mod apply;
pub mod command;
mod difference;
mod export;
pub mod file;
pub mod import;
mod keep;
mod key;
mod listed;
mod look;
mod narrow;
mod numbers;
mod resolved;
mod shown;
mod source;
mod wanted;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use linux::Namespace;

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Task {
    /// Show what would change.
    Diff,
    /// Change it.
    Apply(Applying),
    /// Keep it so; or only tell what is not.
    Watch {
        /// Nothing is changed.
        tell: bool,
    },
    /// What was applied stays: of a journal, or of the newest.
    Confirmed(Option<String>),
    /// Take back what an applier left that was killed.
    Recover,
    /// Watch over an applier: of a journal.
    Keep {
        /// The journal's.
        id: String,
        /// So long it waits to be confirmed.
        confirm: Option<Duration>,
    },
    /// Write the current state as a file.
    Export,
}

/// How files are applied.
#[derive(Debug, Clone, Copy, Default)]
pub struct Applying {
    /// All or nothing.
    pub atomic: bool,
    /// Taken back after this time, unless it is confirmed.
    pub confirm: Option<Duration>,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// What is to be done.
    pub task: Task,
    /// What is wanted stands in these.
    pub files: Vec<PathBuf>,
    /// A namespace other than the own.
    pub netns: Option<String>,
    /// What carries our mark and no file wants goes.
    pub prune: bool,
    /// The result as lines of JSON.
    pub json: bool,
    /// With colours: `auto` is on a terminal.
    pub colour: Option<bool>,
    /// Journals are kept here instead of the usual place.
    pub journal: Option<PathBuf>,
}

/// What the work goes on with.
struct Job<'a> {
    namespace: Namespace,
    wanted: &'a Wanted,
    names: words::Names,
    stop: Arc<AtomicBool>,
    began: Instant,
}

impl Job<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// How many links and rows the text of a file says, where they are so many
/// at most. What makes no sense is an error, as far as that can be told
/// without a kernel's tables.
pub fn counted(text: &str, most: usize) -> Result<(usize, usize), String> {
    let mut said = source::Said::default();
    source::parse(&"text".into(), text, &mut said)?;
    let wanted = wanted::Wanted::within(said, most)?;
    Ok((wanted.links.len(), wanted.rows.len()))
}

/// What a file says makes no sense: nothing was done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Senseless(String);

/// Does it. Exit status 0: all is as asked (of a difference: there is
/// none); 1: something is not, and was named (there is a difference); 2:
/// what was asked for makes no sense, and nothing was done.
pub fn run(wanted: &Wanted) -> Result<ExitCode> {
    let namespace = Namespace::named_or_current(wanted.netns.as_deref())?;
    let stop = crate::links::stop_by_signals()?;
    let job = Job {
        namespace,
        wanted,
        names: words::load(),
        stop,
        began: Instant::now(),
    };
    let done = match &wanted.task {
        Task::Diff => shown::diff(&job).map(|differs| !differs),
        Task::Apply(how) => apply::run(&job, *how),
        Task::Watch { tell } => watch::run(&job, *tell),
        Task::Confirmed(id) => keep::confirmed(&job, id.as_deref()),
        Task::Recover => keep::recover_all(&job),
        Task::Keep { id, confirm } => keep::run(&job, id, *confirm),
        Task::Export => export::run(&job).map(|()| true),
    };
    match done {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(error) if error.is::<Senseless>() => {
            crate::complaint::complain(&format!("{error}; nothing was done"));
            Ok(ExitCode::from(2))
        }
        Err(error) => Err(error),
    }
}
