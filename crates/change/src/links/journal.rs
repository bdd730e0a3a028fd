//! Where journals are, which one is meant, and their list.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use linux::links::journal::{End, Journal, Rows, Start, Work};
use linux::mirror::now_millis;
use rustix::process::geteuid;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Job;
use crate::complaint::complain;

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
    place(job.terms.journal.as_deref())
}

/// Where journals are: the place that was named, or the usual one, if there
/// is any.
pub fn place(named: Option<&Path>) -> Option<PathBuf> {
    if let Some(directory) = named {
        return Some(directory.to_owned());
    }
    if geteuid().is_root() {
        return Some(PathBuf::from(ROOT_S));
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty())?;
    Some(PathBuf::from(runtime).join("fingerpost/journal"))
}

/// The journal to go on with, taken over: that of an id, or the newest of
/// some work that has not ended. `done` says what was done to all its links
/// where it has.
pub fn to_resume(job: &Job<'_>, work: Work, id: Option<&str>, done: &str) -> Result<Journal> {
    let mut journal = find(job, work, id, &|end| end.is_none())?;
    match journal.end() {
        Some(End::Done) => bail!("{}: all its links were {done}", journal.id()),
        Some(End::Undone) => bail!("{}: it was taken back", journal.id()),
        None => journal.take_over()?,
    }
    Ok(journal)
}

/// The journal to take back, taken over: that of an id, or the newest of
/// some work that was not taken back.
pub fn to_undo(job: &Job<'_>, work: Work, id: Option<&str>) -> Result<Journal> {
    let mut journal = find(job, work, id, &|end| end != Some(End::Undone))?;
    if journal.end() == Some(End::Undone) {
        bail!("{}: it was taken back already", journal.id());
    }
    journal.take_over()?;
    Ok(journal)
}

/// What a journal keeps of the program's.
pub fn request<T: DeserializeOwned>(journal: &Journal) -> Result<T> {
    serde_json::from_value(journal.start.request.clone())
        .with_context(|| format!("journal {}: what was asked for", journal.id()))
}

fn find(
    job: &Job<'_>,
    work: Work,
    id: Option<&str>,
    fits: &dyn Fn(Option<End>) -> bool,
) -> Result<Journal> {
    let directory = directory(job).context("no place for journals: --journal DIR")?;
    let journal = match id {
        Some(id) => Some(Journal::named(&directory, id, &job.namespace)?),
        None => Journal::newest(&directory, work, &job.namespace, fits)?,
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

/// `5s`, `12m 5s`, `3h 12m`, `2d 3h`.
fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, ..) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// Lists all journals, the newest first.
pub fn list(job: &Job<'_>) -> Result<bool> {
    let directory = directory(job).context("no place for journals: --journal DIR")?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for journal in Journal::all(&directory)? {
        let start = &journal.start;
        let work = match start.work {
            Work::Add => "add",
            Work::Delete => "delete",
            Work::Set => "set",
            Work::Apply => "apply",
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
            let age = now_millis().saturating_sub(start.begun_millis) / 1000;
            writeln!(
                out,
                "{id} {work} {links} links {end} in {}, begun {} ago",
                start.namespace,
                span(age)
            )?;
        }
    }
    out.flush()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_span_has_two_units_at_most() {
        for (seconds, said) in [
            (0, "0s"),
            (59, "59s"),
            (725, "12m 5s"),
            (11_525, "3h 12m"),
            (183_600, "2d 3h"),
        ] {
            assert_eq!(span(seconds), said);
        }
    }
}
