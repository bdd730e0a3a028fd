//! `fingerpost addr|route|neigh|rule|nexthop|fdb add|replace|change|delete`:
//! one, by pattern, or a million from a file, by the process that asks and
//! with its rights; no daemon takes part.
//!
//! Every way ends in lines of `ip`'s words (`source`); a line becomes a
//! row, the row a message, and messages go out in packs
//! ([`linux::bulk`]). Nothing is kept of a line that is done, but what
//! `--atomic` asks for (`undo`).

mod apply;
mod asked;
pub mod command;
mod lookup;
mod report;
mod request;
mod source;
pub(crate) mod undo;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result, bail};
use ipnet::IpNet;
use linux::Namespace;
use signal_hook::consts::{SIGINT, SIGTERM};
use words::{Object, Verb};

use crate::pattern::{self, Numbers};

pub use asked::{Asked, read_row};
pub use lookup::Lookup;
pub use request::message;
use source::{Source, Split};

/// What is to be changed.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// `ip`'s words.
    pub words: Vec<String>,
    /// Lines from here; `-`: standard input.
    pub file: Option<PathBuf>,
    /// Numbers for the pattern.
    pub numbers: Option<Numbers>,
    /// A prefix whose parts' first addresses are meant, and their length.
    pub split: Option<(IpNet, u8)>,
    /// The link of these.
    pub dev: Option<String>,
    /// A namespace other than the own.
    pub netns: Option<String>,
    /// `AF_INET` or `AF_INET6` where the words do not say it.
    pub family: Option<u8>,
    /// All or nothing.
    pub atomic: bool,
    /// It stops after so many failures.
    pub max_errors: Option<u64>,
    /// The result as JSON.
    pub json: bool,
}

/// Makes the change. Exit status 1 if any part of it was not made.
pub fn run(object: Object, verb: Verb, change: &Change) -> Result<ExitCode> {
    let namespace = Namespace::named_or_current(change.netns.as_deref())?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("catching signals")?;
    }
    let (source, len) = source(object, change, &stop)?;
    let job = apply::Job {
        object,
        verb,
        change,
        namespace: &namespace,
        stop: &stop,
    };
    apply::run(&job, source, len)
}

fn source(
    object: Object,
    change: &Change,
    stop: &Arc<AtomicBool>,
) -> Result<(Source, Option<u64>)> {
    let words = change.words.join(" ");
    if let Some(path) = &change.file {
        if !words.is_empty() {
            bail!("`{words}`: the words come from the file; nothing may be said beside --file");
        }
        return Source::file(path, object, stop);
    }
    if let Some((prefix, len)) = change.split {
        let link = match &change.dev {
            Some(link) => format!("dev {link} {words}"),
            None => words,
        };
        return Ok((Source::Split(Split::new(prefix, len, link)?), None));
    }
    let source = match &change.numbers {
        Some(numbers) if pattern::is_pattern(&words) => Source::Pattern {
            pattern: words,
            numbers: numbers.clone(),
        },
        Some(_) => bail!("`{words}`: with -n a place for the number is wanted, like 10.0.{{}}.1"),
        None => Source::Once(Some(words)),
    };
    Ok((source, None))
}
