//! `fingerpost link add|delete|set`: links by the thousand, made, deleted
//! and changed at a flat cost each, by the process that asks and with its
//! rights; no daemon takes part. And `link journal`: what can be gone on
//! with or taken back.
//!
//! Called by `main`; the work itself is [`linux::links`].

mod add;
mod beside;
pub mod command;
mod configuration;
mod delete;
mod grammar;
mod journal;
mod plan;
mod renames;
mod report;
mod select;
mod set;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result};
use linux::Namespace;
use linux::links::How;
use linux::links::journal::Work;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::complaint::complain;

pub(crate) use journal::place as journals;
pub(crate) use plan::check_name;
pub use plan::{Plan, Split};
pub use select::Select;
pub use set::Settings;

/// What is to be done with links.
#[derive(Debug)]
pub enum Wanted {
    /// Make them.
    Add(Box<Plan>),
    /// Delete them.
    Delete(Select, Deletion),
    /// Change them.
    Set(Select, Box<Settings>),
    /// Go on with a journal of some work: its id, or the newest.
    Resume(Work, Option<String>),
    /// Take it back.
    Undo(Work, Option<String>),
    /// List the journals.
    Journal,
}

/// How links are deleted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deletion {
    /// What the kernel takes along may go.
    pub cascade: bool,
    /// Only say what would go.
    pub dry_run: bool,
}

/// What is said of every command.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// A namespace other than the own.
    pub netns: Option<String>,
    /// All or nothing.
    pub atomic: bool,
    /// The result as lines of JSON.
    pub json: bool,
    /// No journal is kept.
    pub no_journal: bool,
    /// Journals are kept here instead of the usual place.
    pub journal: Option<PathBuf>,
}

/// What the work goes on with.
struct Job<'a> {
    namespace: Namespace,
    terms: &'a Terms,
    stop: Arc<AtomicBool>,
    began: Instant,
}

impl Job<'_> {
    fn how(&self) -> How<'_> {
        How {
            stop: Some(&self.stop),
            ..How::default()
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Set by the first SIGINT or SIGTERM; a second one ends the process, and the
/// journal remains.
pub fn stop_by_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("hearing of Ctrl-C")?;
    }
    Ok(stop)
}

/// Does it. Exit status 0: all is as asked; 1: something is not, and was
/// named; 2: what was asked for makes no sense, and nothing was done.
pub fn run(wanted: &Wanted, terms: &Terms) -> Result<ExitCode> {
    let began = Instant::now();
    let namespace = Namespace::named_or_current(terms.netns.as_deref())?;
    let stop = stop_by_signals()?;
    let job = Job {
        namespace,
        terms,
        stop,
        began,
    };
    let is_done = match wanted {
        Wanted::Add(plan) => match plan.check() {
            Ok(()) => add::add(&job, plan)?,
            Err(why) => return senseless(&why),
        },
        Wanted::Delete(select, deletion) => match select.check() {
            Ok(()) => delete::delete(&job, select, *deletion)?,
            Err(why) => return senseless(&why),
        },
        Wanted::Set(select, settings) => match select.check().and_then(|()| settings.check()) {
            Ok(()) => set::set(&job, select, settings)?,
            Err(why) => return senseless(&why),
        },
        Wanted::Resume(Work::Add, id) => add::resume(&job, id.as_deref())?,
        Wanted::Undo(Work::Add, id) => add::undo(&job, id.as_deref())?,
        Wanted::Resume(Work::Delete, id) => delete::resume(&job, id.as_deref())?,
        Wanted::Undo(Work::Delete, id) => delete::undo(&job, id.as_deref())?,
        Wanted::Resume(Work::Set, id) => set::resume(&job, id.as_deref())?,
        Wanted::Undo(Work::Set, id) => set::undo(&job, id.as_deref())?,
        Wanted::Resume(Work::Apply, _) | Wanted::Undo(Work::Apply, _) => {
            return senseless("files are applied, and taken back, by `fingerpost apply`");
        }
        Wanted::Journal => journal::list(&job)?,
    };
    Ok(if is_done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What was asked for makes no sense.
fn senseless(why: &str) -> Result<ExitCode> {
    complain(&format!("{why}; nothing was done"));
    Ok(ExitCode::from(2))
}
