//! The changes of one owner's rows in a namespace, each rendered once for all who watch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use table::{Event, EventBatch, Events, Generation, Operation, Reader, Row, Tables};
use view::{Context, Names, Question, Watch};

use crate::budget::Lease;
use crate::clock::now_millis;
use crate::http::problem::Problem;

/// Bytes of rendered changes that are kept at most; less where the budget
/// of all who are answered has less room.
const MAX_BYTES: usize = 32 << 20;

/// Events that are rendered for a stream that begins in the past, at most.
const MAX_REACH: usize = 1 << 14;

/// The latest changes.
#[derive(Debug)]
pub struct Feed {
    reader: Reader,
    /// Whose rows, if not the kernel's.
    owner: Option<String>,
    names: Arc<Names>,
    batches: VecDeque<Batch>,
    bytes: usize,
    /// Their part of the budget.
    lease: Lease,
    /// All generations after this one are in `batches`.
    since: u64,
    latest: u64,
    /// The tables as of `latest`, or later: for the names of what goes.
    before: Arc<Tables>,
}

/// The changes of a generation.
#[derive(Debug)]
struct Batch {
    generation: u64,
    events: Arc<[Event]>,
    /// `event: …\ndata: {…}\n` of each event, one after the other.
    lines: Vec<u8>,
    /// Where each ends.
    ends: Vec<u32>,
    has_links: bool,
}

/// How far a stream got.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has everything up to a generation.
    UpTo(u64),
    /// What it has not seen is no more there.
    FellBehind,
}

impl Feed {
    /// From now on: the changes of the kernel's rows, or of a feeder's. An
    /// empty lease grows with what is kept.
    pub fn new(reader: Reader, owner: Option<String>, names: Arc<Names>, lease: Lease) -> Self {
        // By its whole name: what was left away may be another's later.
        let tables = reader.snapshot();
        let whole = |name: String| {
            tables
                .owner(&name)
                .map_or(name, |one| one.name().to_owned())
        };
        let owner = owner.map(whole);
        let of = owner.as_deref().and_then(|owner| reader.of(owner));
        let reader = of.unwrap_or(reader);
        let before = reader.snapshot();
        let latest = before.generation.0;
        Self {
            reader,
            owner,
            names,
            batches: VecDeque::new(),
            bytes: 0,
            lease,
            since: latest,
            latest,
            before,
        }
    }

    /// The newest generation that is in it.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// What questions watch.
    pub fn watches(&self, questions: &[Question]) -> Result<Vec<Watch>, Problem> {
        let context = context(&self.before, &self.names);
        let watches = questions
            .iter()
            .map(|question| Watch::new(question, context));
        Ok(watches.collect::<Result<_, _>>()?)
    }

    /// Takes in what happened. O(events).
    pub fn catch_up(&mut self) {
        self.follow_owner();
        let newest = self.reader.snapshot();
        if newest.generation.0 == self.latest {
            return;
        }
        let events = self
            .reader
            .events_after(Generation(self.latest), Duration::ZERO);
        match events {
            Events::Batches(batches) => {
                let after = self.reader.snapshot();
                for events in batches {
                    let batch = Batch::render(events, &self.before, &after, &self.names);
                    self.latest = batch.generation;
                    self.bytes += batch.bytes();
                    self.batches.push_back(batch);
                    // Not only at the end: there may be very many.
                    self.forget_oldest();
                }
                self.before = after;
            }
            Events::FellBehind => self.forget(),
        }
        self.fit();
    }

    /// Forgets the oldest as far as there is no room for it, and counts the
    /// rest.
    fn fit(&mut self) {
        self.forget_oldest();
        // Another may have taken the room just now: the next look mends it.
        self.lease.resize(self.bytes);
    }

    fn forget_oldest(&mut self) {
        let most = self.most();
        while self.bytes > most {
            let Some(batch) = self.batches.pop_front() else {
                break;
            };
            self.bytes -= batch.bytes();
            self.since = batch.generation;
        }
    }

    /// Bytes that may be kept now.
    fn most(&self) -> usize {
        (self.lease.octets() + self.lease.room()).min(MAX_BYTES)
    }

    /// A feeder that left may have joined again. Its generations go on
    /// behind those of before, so that nobody misses that.
    fn follow_owner(&mut self) {
        let owner = self.owner.as_deref();
        if let Some(now) = owner.and_then(|owner| self.reader.of(owner)) {
            self.reader = now;
        }
    }

    fn forget(&mut self) {
        self.before = self.reader.snapshot();
        self.latest = self.before.generation.0;
        self.since = self.latest;
        self.batches.clear();
        self.bytes = 0;
        self.lease.resize(0);
    }

    /// Goes back to a generation that a stream has seen before anybody
    /// else watched, if the tables still tell and it is not much. For a
    /// stream that begins: one that falls behind is told so, and costs the
    /// others nothing. O(events), some ten milliseconds at most.
    pub fn reach_back(&mut self, seen: u64) {
        if seen >= self.since {
            return;
        }
        let events = self.reader.events_after(Generation(seen), Duration::ZERO);
        let Events::Batches(batches) = events else {
            return;
        };
        let missing: Vec<_> = batches
            .into_iter()
            .filter(|batch| batch.generation.0 <= self.since)
            .collect();
        let count: usize = missing.iter().map(|batch| batch.events.len()).sum();
        if count > MAX_REACH {
            return;
        }
        let mut bytes = self.bytes;
        let mut older = Vec::new();
        for events in missing {
            let batch = Batch::render(events, &self.before, &self.before, &self.names);
            bytes += batch.bytes();
            older.push(batch);
        }
        if bytes <= self.most() {
            for batch in older.into_iter().rev() {
                self.batches.push_front(batch);
            }
            self.bytes = bytes;
            self.since = seen;
            self.lease.resize(bytes);
        }
    }

    /// Writes the changes after `seen` that are wanted, about as many
    /// octets as there is room for, whole generations. Names that a filter
    /// has are looked up again when links change.
    pub fn take(
        &mut self,
        seen: u64,
        questions: &[Question],
        wanted: &mut Vec<Watch>,
        start: &str,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Taken {
        if seen > self.latest || seen < self.since {
            return Taken::FellBehind;
        }
        let first = self
            .batches
            .partition_point(|batch| batch.generation <= seen);
        let mut seen = seen;
        for batch in self.batches.range(first..) {
            if out.len() >= room {
                return Taken::UpTo(seen);
            }
            if batch.has_links
                && let Ok(anew) = self.watches(questions)
            {
                *wanted = anew;
            }
            batch.write(wanted, start, out);
            seen = batch.generation;
        }
        Taken::UpTo(self.latest)
    }
}

impl Batch {
    /// A row that is gone is told with the names of before: its link may
    /// be gone with it.
    fn render(of: EventBatch, before: &Tables, after: &Tables, names: &Names) -> Self {
        let events = of.events;
        let mut lines = Vec::with_capacity(events.len() * 200);
        let mut ends = Vec::with_capacity(events.len());
        for event in events.iter() {
            let tables = if event.operation == Operation::Deleted {
                before
            } else {
                after
            };
            if let Some(line) = view::event(event, of.at_millis, context(tables, names)) {
                lines.extend_from_slice(match event.operation {
                    Operation::Added => b"event: added\ndata: ",
                    Operation::Changed => b"event: changed\ndata: ",
                    Operation::Deleted => b"event: deleted\ndata: ",
                });
                lines.extend_from_slice(&line);
            }
            ends.push(u32::try_from(lines.len()).unwrap_or(u32::MAX));
        }
        Self {
            generation: of.generation.0,
            has_links: events.iter().any(|event| matches!(event.row, Row::Link(_))),
            events,
            lines,
            ends,
        }
    }

    fn bytes(&self) -> usize {
        self.lines.len() + self.ends.len() * (4 + size_of::<Event>() + 64) + size_of::<Self>()
    }

    /// Writes the wanted events; the last one has the generation as its
    /// id, so that a stream that is cut between them gets them all again.
    fn write(&self, wanted: &[Watch], start: &str, out: &mut Vec<u8>) {
        let mut from = 0;
        let mut last = None;
        for (event, end) in self.events.iter().zip(&self.ends) {
            let line = self.lines.get(from..*end as usize).unwrap_or_default();
            from = *end as usize;
            if line.is_empty() || !wanted.iter().any(|watch| watch.wants(event)) {
                continue;
            }
            last = Some(out.len());
            out.extend_from_slice(line);
            out.push(b'\n');
        }
        if let Some(at) = last {
            let id = format!("id: {start}-{}\n", self.generation);
            let line = out.split_off(at);
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(&line);
        }
    }
}

fn context<'a>(tables: &'a Tables, names: &'a Names) -> Context<'a> {
    Context {
        links: tables.named_links(),
        tables: Some(tables),
        now_millis: now_millis(),
        names,
    }
}

#[cfg(test)]
mod tests;
