//! What became of the changes: counted, each failure told with where it
//! was asked for; a bar meanwhile on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

/// So many failures stand in the JSON result; all of them are written to
/// standard error.
const MAX_TOLD: usize = 100;
/// So much of a line is shown.
const MAX_SHOWN: usize = 200;
/// The bar is drawn anew after so many changes.
const BAR_STEP: u64 = 4096;

/// What a place in the input is called.
#[derive(Debug, Clone)]
pub enum Origin {
    /// The words themselves.
    Words,
    /// A number of a pattern or a part.
    Number,
    /// A line of this file.
    File(String),
}

/// Counts and failures.
pub struct Report {
    place: Origin,
    json: bool,
    began: Instant,
    bar: ProgressBar,
    pub done: u64,
    pub failed: u64,
    told: Vec<serde_json::Value>,
}

impl Report {
    /// `len`: octets of the file, if that is known.
    pub fn new(place: Origin, json: bool, len: Option<u64>) -> Self {
        let bar = match place {
            Origin::Words => ProgressBar::hidden(),
            _ => bar(len),
        };
        Self {
            place,
            json,
            began: Instant::now(),
            bar,
            done: 0,
            failed: 0,
            told: Vec::new(),
        }
    }

    /// One is done; `read` octets of the input were read for it.
    pub fn done(&mut self, read: u64) {
        self.done += 1;
        if self.done.is_multiple_of(BAR_STEP) {
            self.bar.set_position(read);
        }
    }

    /// One is not.
    pub fn failed(&mut self, number: u64, line: &str, why: &str) {
        self.failed += 1;
        let end = line.floor_char_boundary(MAX_SHOWN);
        let shown = line.get(..end).unwrap_or(line).trim();
        if self.json && self.told.len() < MAX_TOLD {
            self.told
                .push(json!({ "place": number, "words": shown, "error": why }));
        }
        let text = match &self.place {
            Origin::Words => format!("fingerpost: {why}: {shown}"),
            Origin::Number => format!("fingerpost: {number}: {why}: {shown}"),
            Origin::File(name) => format!("fingerpost: {name}:{number}: {why}: {shown}"),
        };
        self.say(&text);
    }

    /// A line on standard error, beside the bar.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| {
            // With standard error closed nobody is left to be told.
            let _ = writeln!(io::stderr().lock(), "{text}");
        });
    }

    /// The end: what was done, as JSON or for more than one change in
    /// words.
    pub fn end(self, undone: Option<u64>, stopped: bool) -> Result<()> {
        self.bar.finish_and_clear();
        let seconds = self.began.elapsed().as_secs_f64();
        let mut out = io::stdout().lock();
        if self.json {
            let mut result = json!({
                "done": self.done,
                "failed": self.failed,
                "stopped": stopped,
                "seconds": seconds,
                "errors": self.told,
            });
            if let (Some(undone), Some(object)) = (undone, result.as_object_mut()) {
                object.insert("undone".to_owned(), undone.into());
            }
            writeln!(out, "{result}")?;
        } else if !matches!(self.place, Origin::Words) {
            let rate = self.done as f64 / seconds.max(1e-6);
            let undone = undone.map_or_else(String::new, |rows| {
                format!("; put back as it was: {rows} rows")
            });
            writeln!(
                out,
                "{} done, {} failed, {seconds:.2} s, {rate:.0}/s{undone}{}",
                self.done,
                self.failed,
                if stopped {
                    "; stopped before the end"
                } else {
                    ""
                },
            )?;
        }
        out.flush()?;
        Ok(())
    }
}

/// A bar on a terminal, nothing elsewhere.
fn bar(len: Option<u64>) -> ProgressBar {
    let Some(len) = len.filter(|_| io::stderr().is_terminal()) else {
        return ProgressBar::hidden();
    };
    let bar = ProgressBar::new(len);
    match ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes}, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
