//! Lines to the kernel, in packs, and its answers back to their lines.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::iter;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use linux::Namespace;
use linux::bulk::{Bulk, Heard, Options};
use linux::error::Refusal;
use linux::mirror;
use words::{Context, Names, Object, Verb};

use super::Change;
use super::asked::{Asked, read};
use super::lookup::Lookup;
use super::report::{Origin, Report};
use super::request::message;
use super::source::Source;
use super::undo::{Key, Undo};

/// What is asked for.
pub struct Job<'a> {
    pub object: Object,
    pub verb: Verb,
    pub change: &'a Change,
    pub namespace: &'a Namespace,
    /// Set on Ctrl-C.
    pub stop: &'a AtomicBool,
}

/// Reads lines and makes rows of them.
struct Feed<'a> {
    job: &'a Job<'a>,
    source: Source,
    line: String,
    links: Lookup,
    names: Names,
    now_millis: u64,
    /// Why no further line can be had.
    failed: Option<anyhow::Error>,
}

/// What both sides see: that which reads lines, and that which hears what
/// became of them.
struct State {
    report: Report,
    sent: Sent,
    undo: Option<Undo>,
    max_errors: Option<u64>,
    /// No further line is read.
    halted: bool,
    /// The kernel lets this user change nothing.
    is_denied: bool,
    /// Bytes of the input that were read.
    read: u64,
}

/// Lines that were sent and not answered yet: those of a pack.
#[derive(Default)]
struct Sent {
    /// Origin of the first in the run.
    first: usize,
    lines: Vec<Line>,
    texts: String,
}

struct Line {
    number: u64,
    /// Where its text ends in `texts`; it begins where the one before
    /// ends.
    end: usize,
    /// For undoing.
    key: Option<Key>,
    verb: Verb,
}

/// Applies the lines of a source; `len` are its octets, if known.
pub fn run(job: &Job<'_>, source: Source, len: Option<u64>) -> Result<ExitCode> {
    let place = match (&source, &job.change.file) {
        (Source::Once(_), _) => Origin::Words,
        (Source::File(_), Some(path)) if path.as_os_str() != "-" => {
            Origin::File(path.display().to_string())
        }
        (Source::File(_), _) => Origin::File("standard input".to_owned()),
        _ => Origin::Number,
    };
    let now_millis = mirror::now_millis();
    let atomic = job.change.atomic;
    let state = RefCell::new(State {
        report: Report::new(place, job.change.json, len),
        sent: Sent::default(),
        undo: atomic.then(|| Undo::new(now_millis)),
        max_errors: if atomic {
            Some(1)
        } else {
            job.change.max_errors
        },
        halted: false,
        is_denied: false,
        read: 0,
    });
    let mut feed = Feed {
        job,
        source,
        line: String::new(),
        links: Lookup::new(job.namespace)?,
        names: words::load(),
        now_millis,
        failed: None,
    };
    let options = Options {
        stop: Some(job.stop),
        ..Options::default()
    };
    let mut bulk = Bulk::open(job.namespace, options)?;
    let changes = iter::from_fn(|| feed.next(&state));
    let changes = changes.map(|asked| {
        // What does not fit a message is told by the engine.
        move |sequence, out: &mut Vec<u8>| {
            let _ = message(&asked, sequence, now_millis, out);
        }
    });
    let ended = bulk.run(changes, &mut |heard| state.borrow_mut().hear(heard));
    drop(bulk);
    finish(job, state.into_inner(), feed.failed, ended)
}

/// Puts back what was done if all or nothing was asked for, and reports.
fn finish(
    job: &Job<'_>,
    state: State,
    failed: Option<anyhow::Error>,
    ended: Result<linux::bulk::Ended, linux::Error>,
) -> Result<ExitCode> {
    let State {
        mut report, undo, ..
    } = state;
    let failed = failed.or(ended.err().map(Into::into));
    if let Some(error) = &failed {
        report.say(&format!("fingerpost: {error:#}"));
    }
    let stopped = job.stop.load(Ordering::Relaxed);
    let is_whole = report.failed == 0 && failed.is_none() && !stopped;
    let mut undone = None;
    if let Some(undo) = undo.filter(|_| !is_whole) {
        let back = undo.run(job.namespace, &mut |why| report.say(&why))?;
        if back.failed > 0 {
            report.say(&format!(
                "fingerpost: {} rows could not be put back as they were",
                back.failed
            ));
        }
        undone = Some(back.rows);
        report.done = 0;
    }
    report.end(undone, stopped)?;
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Feed<'_> {
    /// The next row; failures on the way to it are reported. `None`: there
    /// is none, or it is to end.
    fn next(&mut self, state: &RefCell<State>) -> Option<Asked> {
        let mut state = state.borrow_mut();
        while !state.halted {
            match self.read_next(&mut state) {
                Ok(Some(Ok(asked))) => return Some(asked),
                Ok(Some(Err(()))) => {}
                Ok(None) => return None,
                Err(error) => {
                    self.failed = Some(error);
                    return None;
                }
            }
        }
        None
    }

    /// The row of one line; `Err(())` inside: the line was at fault.
    fn read_next(&mut self, state: &mut State) -> Result<Option<Result<Asked, ()>>> {
        let Some((number, readable)) = self.source.next(&mut self.line)? else {
            return Ok(None);
        };
        state.read = self.source.read();
        let mut context = Context {
            links: &mut self.links,
            names: &self.names,
            family: self.job.change.family,
            verb: self.job.verb,
            now_millis: self.now_millis,
        };
        let asked = match readable {
            Ok(()) => read(&self.line, self.job.object, self.job.verb, &mut context),
            Err(unreadable) => Err(unreadable.why),
        };
        match asked {
            Ok(asked) => {
                let key = match &mut state.undo {
                    Some(undo) => Some(undo.before(self.job.namespace, &asked)?),
                    None => None,
                };
                state.sent.push(number, &self.line, key, asked.verb);
                Ok(Some(Ok(asked)))
            }
            Err(why) => {
                state.failed(number, &self.line, &why);
                Ok(Some(Err(())))
            }
        }
    }
}

impl State {
    fn hear(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Done(place) => {
                if let Some(undo) = &mut self.undo {
                    undo.done(self.sent.take_key(place));
                }
                self.report.done(self.read);
            }
            Heard::Refused(place, refusal) => self.refused(place, &refusal),
            Heard::Lost(place) => {
                if let Some(undo) = &mut self.undo {
                    undo.done(self.sent.take_key(place));
                }
                self.refused_as(
                    place,
                    "the kernel's answer was lost; look whether it was done",
                );
            }
            Heard::Sent(sent) => self.sent.clear(sent.places.end),
            Heard::Echo(..) => {}
        }
    }

    fn refused(&mut self, place: usize, refusal: &Refusal) {
        if refusal.source.kind() == ErrorKind::PermissionDenied {
            self.halted = true;
            if self.is_denied {
                self.report.failed += 1;
                return;
            }
            self.is_denied = true;
            self.refused_as(
                place,
                "only root (CAP_NET_ADMIN) may change the kernel's tables; nothing further is tried",
            );
            return;
        }
        let verb = self.sent.verb(place);
        self.refused_as(place, &explained(refusal, verb));
    }

    fn refused_as(&mut self, place: usize, why: &str) {
        let (number, text) = self.sent.line(place);
        self.report.failed(number, text, why);
        self.count();
    }

    fn failed(&mut self, number: u64, line: &str, why: &str) {
        self.report.failed(number, line, why);
        self.count();
    }

    fn count(&mut self) {
        self.halted |= self.max_errors.is_some_and(|max| self.report.failed >= max);
    }
}

impl Sent {
    fn push(&mut self, number: u64, text: &str, key: Option<Key>, verb: Verb) {
        self.texts.push_str(text);
        self.lines.push(Line {
            number,
            end: self.texts.len(),
            key,
            verb,
        });
    }

    fn clear(&mut self, first: usize) {
        self.first = first;
        self.lines.clear();
        self.texts.clear();
    }

    fn at(&self, place: usize) -> Option<&Line> {
        self.lines.get(place.checked_sub(self.first)?)
    }

    fn take_key(&mut self, place: usize) -> Option<Key> {
        let line = self.lines.get_mut(place.checked_sub(self.first)?)?;
        line.key.take()
    }

    fn verb(&self, place: usize) -> Option<Verb> {
        self.at(place).map(|line| line.verb)
    }

    /// Number and text of a line.
    fn line(&self, place: usize) -> (u64, &str) {
        let Some(line) = self.at(place) else {
            return (0, "");
        };
        let start = place
            .checked_sub(1)
            .and_then(|before| self.at(before))
            .map_or(0, |before| before.end);
        (
            line.number,
            self.texts.get(start..line.end).unwrap_or_default(),
        )
    }
}

/// Why the kernel refused, in words where its own are about nothing in
/// particular.
fn explained(refusal: &Refusal, verb: Option<Verb>) -> String {
    let deletes = verb == Some(Verb::Delete);
    let hint = match refusal
        .source
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::EXIST) => "it is there already; `replace` would change it",
        Some(
            rustix::io::Errno::SRCH | rustix::io::Errno::NOENT | rustix::io::Errno::ADDRNOTAVAIL,
        ) if deletes => "there is none like it",
        Some(rustix::io::Errno::NETUNREACH) => {
            "its gateway is not reachable directly; `onlink` would say that it is"
        }
        Some(rustix::io::Errno::NETDOWN) => "its link is down",
        Some(rustix::io::Errno::NODEV) => "its link is gone",
        _ => return refusal.to_string(),
    };
    format!("{hint} ({refusal})")
}
