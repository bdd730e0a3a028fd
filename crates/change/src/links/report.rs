//! What becomes of links: each failure told as it comes, a bar meanwhile
//! on a terminal, and at the end counts and rate. With `--json` a line for
//! each failure and one at the end.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use linux::links::{self, Failure};
use serde_json::{Map, Value, json};

use super::Job;
use crate::complaint::complain;

/// The bar is drawn anew after so many links.
const BAR_STEP: u64 = 128;

/// Counts, failures, and the bar.
pub struct Report {
    json: bool,
    /// Kind of the links, for advice.
    kind: String,
    /// `made`, `deleted`, `changed`.
    verb: &'static str,
    began: Instant,
    bar: ProgressBar,
    seen: Cell<u64>,
    advised: RefCell<Option<String>>,
    more: RefCell<Map<String, Value>>,
    notes: RefCell<Vec<String>>,
}

impl Report {
    /// Of so many links.
    pub fn new(job: &Job<'_>, kind: &str, verb: &'static str, links: usize) -> Self {
        Self {
            json: job.terms.json,
            kind: kind.to_owned(),
            verb,
            began: job.began,
            bar: bar(links),
            seen: Cell::new(0),
            advised: RefCell::new(None),
            more: RefCell::default(),
            notes: RefCell::default(),
        }
    }

    /// One more link is through.
    pub fn step(&self) {
        self.seen.set(self.seen.get() + 1);
        if self.seen.get().is_multiple_of(BAR_STEP) {
            self.bar.set_position(self.seen.get());
        }
    }

    /// Something of one failed.
    pub fn failed(&self, failure: &Failure) {
        let advice = links::advice(&self.kind, &failure.refusal);
        self.fail(
            &failure.name,
            &failure.tried,
            &failure.refusal.to_string(),
            advice,
        );
    }

    /// The same in words.
    pub fn fail(&self, name: &str, tried: &str, why: &str, advice: Option<String>) {
        if self.json {
            let mut line = json!({ "link": name, "tried": tried, "error": why });
            if let (Some(advice), Some(line)) = (&advice, line.as_object_mut()) {
                line.insert("advice".to_owned(), advice.as_str().into());
            }
            self.bar.suspend(|| {
                // A reader that is gone is noticed at the end.
                let _ = writeln!(io::stdout().lock(), "{line}");
            });
        } else {
            self.bar
                .suspend(|| complain(&format!("{name}: cannot {tried}: {why}")));
        }
        if advice.is_some() {
            *self.advised.borrow_mut() = advice;
        }
    }

    /// Something to be said at the end: to people, and to programs.
    pub fn note(&self, key: &str, value: impl Into<Value>, text: Option<String>) {
        self.more.borrow_mut().insert(key.to_owned(), value.into());
        self.notes.borrow_mut().extend(text);
    }

    /// The end, in one line.
    pub fn end(&self, done: usize, failed: usize) -> Result<()> {
        self.bar.finish_and_clear();
        let seconds = self.began.elapsed().as_secs_f64();
        if let (Some(advice), false) = (&*self.advised.borrow(), self.json) {
            complain(advice);
        }
        let mut out = io::stdout().lock();
        if self.json {
            let mut line = Map::new();
            line.insert(self.verb.to_owned(), done.into());
            line.insert("failed".to_owned(), failed.into());
            line.insert("seconds".to_owned(), seconds.into());
            line.append(&mut self.more.borrow_mut());
            writeln!(out, "{}", Value::Object(line))?;
        } else {
            let rate = done as f64 / seconds.max(1e-6);
            let failed = match failed {
                0 => String::new(),
                _ => format!(", {failed} failed"),
            };
            writeln!(
                out,
                "{done} links {}{failed}, {seconds:.3} s, {rate:.0}/s",
                self.verb
            )?;
            for note in self.notes.borrow().iter() {
                writeln!(out, "{note}")?;
            }
        }
        out.flush()?;
        Ok(())
    }
}

/// A bar on a terminal, nothing elsewhere.
fn bar(len: usize) -> ProgressBar {
    if !io::stderr().is_terminal() || len < BAR_STEP as usize {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(len as u64);
    let template = "{wide_bar} {human_pos}/{human_len} links, {per_sec}, {eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
