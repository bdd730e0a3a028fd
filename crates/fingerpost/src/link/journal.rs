//! Where journals are, which one is meant, and their list.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use linux::links::journal::{End, Journal, Rows, Start, Work};
use rustix::process::geteuid;
use serde_json::json;

use super::Job;
use super::report::complain;

/// Where root's are. They need not outlive a reboot.
const ROOT_S: &str = "/run/fingerpost-journal";

/// Begins one, unless none is wanted or there is no place for it.
pub fn begin(job: &Job<'_>, start: Start, rows: &[Rows]) -> Result<Option<Journal>> {
    if job.terms.no_journal {
        return Ok(None);
    }
    let Some(directory) = directory(job) else {
        if job.terms.atomic {
            bail!("--atomic needs a place for a journal: --journal DIR");
        }
        complain("no journal is kept: there is no XDG_RUNTIME_DIR (--journal DIR names a place)");
        return Ok(None);
    };
    let journal = Journal::begin(&directory, start, rows)
        .context("nothing was done (--no-journal works without one)")?;
    Ok(Some(journal))
}

fn directory(job: &Job<'_>) -> Option<PathBuf> {
    if let Some(directory) = &job.terms.journal {
        return Some(directory.clone());
    }
    if geteuid().is_root() {
        return Some(PathBuf::from(ROOT_S));
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty())?;
    Some(PathBuf::from(runtime).join("fingerpost/journal"))
}

/// What a journal is looked for to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// To go on with what has not ended.
    Resume,
    /// To take back what was not taken back.
    Undo,
}

/// The journal of an id, or the newest of some work.
pub fn find(job: &Job<'_>, work: Work, to: To, id: Option<&str>) -> Result<Journal> {
    let directory = directory(job).context("no place for journals: --journal DIR")?;
    let journal = match id {
        Some(id) => Some(Journal::named(&directory, id, &job.namespace)?),
        None => Journal::newest(&directory, work, &job.namespace, &|end| match to {
            To::Resume => end.is_none(),
            To::Undo => end != Some(End::Undone),
        }),
    };
    let journal = journal.with_context(|| {
        format!(
            "{} holds no journal for this namespace (`fingerpost link journal` lists them)",
            directory.display()
        )
    })?;
    if journal.start.work != work {
        bail!(
            "{}: it is of another command (`fingerpost link journal` says which)",
            journal.id()
        );
    }
    Ok(journal)
}

/// Lists all journals, the newest first.
pub fn list(job: &Job<'_>) -> Result<bool> {
    let directory = directory(job).context("no place for journals: --journal DIR")?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for journal in Journal::all(&directory) {
        let start = &journal.start;
        let work = match start.work {
            Work::Add => "add",
            Work::Delete => "delete",
            Work::Set => "set",
        };
        let end = match journal.end() {
            Some(End::Done) => "done",
            Some(End::Undone) => "undone",
            None => "open",
        };
        if job.terms.json {
            let line = json!({
                "id": journal.id(), "work": work, "links": start.links, "state": end,
                "namespace": start.namespace, "begun_millis": start.begun_millis,
                "group": start.group,
            });
            writeln!(out, "{line}")?;
        } else {
            let (id, links) = (journal.id(), start.links);
            writeln!(
                out,
                "{id} {work} {links} links {end} in {}",
                start.namespace
            )?;
        }
    }
    out.flush()?;
    Ok(true)
}
