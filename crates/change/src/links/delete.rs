//! `link delete`: deleting a choice of links, going on with it, and
//! bringing them back.

use std::collections::HashMap;
use std::io::{self, Write};

use anyhow::{Context, Result};
use linux::links::journal::{End, Journal, Rows, Start, Work};
use linux::links::{self, Agreed, Along, Deletion, Listing, Told, Way};
use serde::{Deserialize, Serialize};
use serde_json::json;
use table::Link;

use super::beside::{self, Beside};
use super::report::Report;
use super::{Job, Select, journal};
use crate::complaint::complain;

/// So many of what would go along are named.
const MAX_NAMED: usize = 20;

/// What a journal keeps of the program's.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Request {
    cascade: bool,
    #[serde(default)]
    beside: Beside,
}

/// Deletes a choice of links.
pub fn delete(job: &Job<'_>, select: &Select, terms: super::Deletion) -> Result<bool> {
    let listing = Listing::read(&job.namespace)?;
    let chosen = select.choose(&listing)?;
    let deletion = Deletion::plan_from(&job.namespace, listing, &mut |link| {
        chosen.indexes.contains_key(&link.index)
    })?;
    if terms.dry_run {
        return show(job, &deletion, &chosen.missing);
    }
    let report = Report::new(job, "", "deleted", deletion.links().len());
    for (name, why) in &chosen.missing {
        report.fail(name, "delete it", why, None);
    }
    for link in deletion.not_virtual() {
        let why = "it is no virtual link; nobody can delete it";
        report.fail(&link.name, "delete it", why, None);
    }
    let mut failed = chosen.missing.len() + deletion.not_virtual().len();
    let is_refused = failed > 0 && job.terms.atomic;
    if is_refused {
        report.note(
            "hint",
            "nothing was deleted",
            Some("nothing was deleted".into()),
        );
        report.end(0, failed)?;
        return Ok(false);
    }
    let strangers: Vec<&Along> = deletion.along().iter().filter(|a| !a.is_peer).collect();
    if !terms.cascade && !strangers.is_empty() {
        refuse(job, &strangers);
        failed += deletion.links().len();
        report.end(0, failed)?;
        return Ok(false);
    }
    let group = match deletion.way() {
        Way::Group { group, .. } => group,
        _ => 0,
    };
    let mut start = Start::new(Work::Delete, &job.namespace, group, deletion.links().len());
    let mut request = Request {
        cascade: terms.cascade,
        ..Request::default()
    };
    let journal = if deletion.links().is_empty() {
        None
    } else {
        let mut rows = Vec::new();
        if !job.terms.no_journal {
            rows = links::rows(&deletion)?;
            request.beside = beside::read(&mut rows, &job.namespace)?;
        }
        start.request = serde_json::to_value(&request)?;
        journal::begin(job, start, &rows)?
    };
    run(job, &deletion, terms.cascade, journal, &report, failed)
}

fn run(
    job: &Job<'_>,
    deletion: &Deletion,
    cascade: bool,
    mut journal: Option<Journal>,
    report: &Report,
    failed: usize,
) -> Result<bool> {
    let terms = links::Terms {
        along: if cascade { Agreed::All } else { Agreed::Peers },
        atomic: job.terms.atomic,
    };
    let deleted = deletion.run(terms, job.how(), &mut |told| match told {
        Told::Done { .. } => report.step(),
        Told::Failed(failure) => report.failed(&failure),
        Told::Sent(_) => {}
    });
    let hint = journal.as_ref().map(|journal| {
        let id = journal.id();
        format!("to go on: fingerpost link delete --resume {id}; to bring back what is deleted: --undo {id}")
    });
    let deleted = match (deleted, hint.clone()) {
        (Ok(deleted), _) => deleted,
        (Err(error), Some(hint)) => return Err(error).context(hint),
        (Err(error), None) => return Err(error.into()),
    };
    let failed = failed + deleted.failed;
    let is_done = failed == 0 && !deleted.stopped;
    say_how(report, deleted.way);
    report.note("gone", deleted.gone, gone(deleted.gone));
    report.note("stopped", deleted.stopped, None);
    report.note("waited_seconds", deleted.cost.waited.as_secs_f64(), None);
    let along = deletion.along().len();
    if along > 0 {
        let text = format!("{along} more went along with them");
        report.note("along", along, (deleted.done > 0).then_some(text));
    }
    if let Some(journal) = &mut journal {
        report.note("journal", journal.id(), None);
        if is_done || deleted.done == deletion.links().len() {
            journal.ended(End::Done)?;
        } else if let (Some(hint), false) = (hint, job.terms.atomic) {
            report.note("hint", hint.clone(), Some(hint));
        }
    }
    if job.terms.atomic && !is_done && deleted.done > 0 {
        bring_back(job, journal.as_mut(), report)?;
        report.end(0, failed)?;
        return Ok(false);
    }
    report.end(deleted.done, failed)?;
    Ok(is_done)
}

fn gone(gone: usize) -> Option<String> {
    (gone > 0).then(|| format!("{gone} were deleted by somebody else meanwhile"))
}

fn say_how(report: &Report, way: Way) {
    let (name, text) = match way {
        Way::Nothing => ("nothing", None),
        Way::One => ("one", None),
        Way::Group { group, moved: 0 } => (
            "group",
            Some(format!("as the group {group} that they were made in")),
        ),
        Way::Group { group, moved } => (
            "group",
            Some(format!(
                "as the group {group}, into which {moved} were moved"
            )),
        ),
        Way::Each { threads } => (
            "each",
            Some(format!(
                "one by one in {threads} threads: the kernel deleted no group"
            )),
        ),
    };
    report.note("way", name, text);
}

/// Says what would go along, and that nothing was done.
fn refuse(job: &Job<'_>, along: &[&Along]) {
    if job.terms.json {
        for along in along {
            let line = json!({
                "along": &*along.link.name, "with": &*along.with,
                "index": along.link.index, "netns": along.elsewhere,
            });
            // A reader that is gone is noticed at the end.
            let _ = writeln!(io::stdout().lock(), "{line}");
        }
    }
    for along in along.iter().take(MAX_NAMED) {
        complain(&format!("{} would go along", described(along)));
    }
    if let Some(more) = along.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        complain(&format!("and {more} more"));
    }
    complain("nothing was deleted: name them as well, or say --cascade");
}

fn described(along: &Along) -> String {
    let name = if along.link.name.is_empty() {
        format!("a link (index {})", along.link.index)
    } else {
        along.link.name.to_string()
    };
    let kind = along.link.kind.as_deref().unwrap_or_default();
    let place = match along.elsewhere.as_deref() {
        None => String::new(),
        Some("") => " in a namespace that cannot be found".to_owned(),
        Some(place) => format!(" in the namespace {place}"),
    };
    format!("{name} ({kind}, with {}){place}", along.with)
}

/// `--dry-run`
fn show(job: &Job<'_>, deletion: &Deletion, missing: &[(String, &str)]) -> Result<bool> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for link in deletion.links() {
        if job.terms.json {
            writeln!(
                out,
                "{}",
                json!({ "link": &*link.name, "index": link.index })
            )?;
        } else {
            writeln!(out, "{}", link.name)?;
        }
    }
    for along in deletion.along() {
        if job.terms.json {
            let line = json!({
                "along": &*along.link.name, "with": &*along.with,
                "index": along.link.index, "netns": along.elsewhere,
            });
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "along: {}", described(along))?;
        }
    }
    out.flush()?;
    for (name, why) in missing {
        complain(&format!("{name}: {why}"));
    }
    Ok(missing.is_empty())
}

/// Goes on with a deletion.
pub fn resume(job: &Job<'_>, id: Option<&str>) -> Result<bool> {
    let journal = journal::to_resume(job, Work::Delete, id, "deleted")?;
    let rows = journal.rows()?;
    let here = rows.first().map_or(&[][..], |rows| &rows.links);
    let here: HashMap<u32, &Link> = here.iter().map(|row| (row.index, row)).collect();
    // A new link of the same name is none of them.
    let is_meant = |link: &Link| {
        let row = here.get(&link.index);
        row.is_some_and(|row| links::is_same(row, link))
    };
    let deletion = Deletion::plan(&job.namespace, &mut |link| is_meant(link))?;
    let cascade = journal::request::<Request>(&journal)?.cascade;
    let report = Report::new(job, "", "deleted", deletion.links().len());
    run(job, &deletion, cascade, Some(journal), &report, 0)
}

/// Brings back what a deletion has deleted.
pub fn undo(job: &Job<'_>, id: Option<&str>) -> Result<bool> {
    let mut journal = journal::to_undo(job, Work::Delete, id)?;
    let report = Report::new(job, "", "made again", journal.start.links);
    let (done, failed) = bring_back(job, Some(&mut journal), &report)?;
    report.end(done, failed)?;
    Ok(failed == 0)
}

fn bring_back(
    job: &Job<'_>,
    journal: Option<&mut Journal>,
    report: &Report,
) -> Result<(usize, usize)> {
    let Some(journal) = journal else {
        complain("without a journal nothing can be brought back");
        return Ok((0, 0));
    };
    let rows: Vec<Rows> = journal.rows()?;
    let group = journal.start.group;
    let request: Request = journal::request(journal)?;
    let how = linux::links::How::default();
    let of_links = rows.clone();
    let back = links::recreate(
        &job.namespace,
        of_links,
        group,
        how,
        &mut |told| match told {
            Told::Done { .. } => report.step(),
            Told::Failed(failure) => report.failed(&failure),
            Told::Sent(_) => {}
        },
    )?;
    let beside = request.beside.put_back(&rows, &job.namespace, report)?;
    beside.tell(report);
    let failed = back.failed + beside.failed;
    if failed == 0 {
        journal.ended(End::Undone)?;
    }
    report.note("kept", back.kept, None);
    report.note("brought_back", back.made, None);
    let text = format!("not brought back: {}", links::LOST);
    report.note("journal", journal.id(), Some(text));
    Ok((back.made, failed))
}
