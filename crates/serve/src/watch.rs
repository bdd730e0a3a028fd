//! Changes as they happen, a line of JSON each: in the daemon for a
//! client, and in a process of its own with `--direct`.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use table::{Event, EventBatch, Events, Generation, Operation, Reader, Row, Tables};
use view::{AnswerError, Context, Names, Question, Watch};

/// How often it is looked whether anybody still watches.
const LOOK: Duration = Duration::from_millis(500);

/// What is written in place of changes that came too fast for the watcher:
/// it has missed some, and should ask for the rows again.
const FELL_BEHIND: &[u8] = b"{\"event\":\"fell_behind\"}\n";

/// Bytes of changes that are told in one go, about.
const ROOM: usize = 256 << 10;

/// Generations that are looked at in one go, at most.
const GENERATIONS: usize = 1 << 10;

/// A generation with more bytes to tell than so many is not told change by
/// change: some 20,000 links that changed, each as it was and as it is.
const MOST: usize = 8 << 20;

/// Writes the changes that a question is about, from now on, until `ended`
/// says so. `now` is the time that remaining lifetimes are reckoned from,
/// milliseconds since the UNIX epoch. Gives the number of changes.
pub fn watch(
    reader: &Reader,
    question: &Question,
    names: &Names,
    now: &dyn Fn() -> u64,
    out: &mut impl Write,
    ended: &dyn Fn() -> bool,
) -> Result<u64, AnswerError> {
    let mut watching = Watching::begin(reader, question, names, now())?;
    let mut rows = 0;
    // Whoever waits for the first change can tell that it is watching.
    out.flush()?;
    while !ended() {
        let mut told = Vec::new();
        rows += watching.tell(now(), &mut |_| true, &mut told)?;
        out.write_all(&told)?;
        out.flush()?;
    }
    Ok(rows)
}

/// Somebody who watches. It holds the tables of the last change that was
/// told, for the names of what goes, until it lets go.
pub(crate) struct Watching<'a> {
    reader: &'a Reader,
    question: &'a Question,
    names: &'a Names,
    before: Option<Arc<Tables>>,
    seen: Generation,
    wanted: Watch,
}

impl<'a> Watching<'a> {
    /// From now on.
    pub(crate) fn begin(
        reader: &'a Reader,
        question: &'a Question,
        names: &'a Names,
        now_millis: u64,
    ) -> Result<Self, AnswerError> {
        let before = reader.snapshot();
        Ok(Self {
            reader,
            question,
            names,
            seen: before.generation,
            wanted: Watch::new(question, context(&before, names, now_millis))?,
            before: Some(before),
        })
    }

    /// Holds no tables until the next change is told: who waits for a
    /// client, maybe for long. What goes meanwhile may be told without the
    /// names of links that went with it.
    pub(crate) fn let_go(&mut self) {
        self.before = None;
    }

    /// Writes the changes since the last time, some of them when there are
    /// many; waits a moment for one. Gives their number. `may_take` says
    /// whether `out` may take so many octets: one that may not falls behind.
    pub(crate) fn tell(
        &mut self,
        now_millis: u64,
        may_take: &mut dyn FnMut(usize) -> bool,
        out: &mut Vec<u8>,
    ) -> Result<u64, AnswerError> {
        let events = self.reader.some_events_after(self.seen, GENERATIONS, LOOK);
        let batches = match events {
            Events::Batches(batches) => batches,
            Events::FellBehind => {
                self.fall_behind(now_millis, out)?;
                return Ok(0);
            }
        };
        let mut rows = 0;
        for batch in batches {
            let EventBatch {
                generation,
                at_millis,
                events: batch,
            } = batch;
            let after = self.reader.snapshot();
            if batch.iter().any(|event| matches!(event.row, Row::Link(_)))
                && let Ok(anew) = Watch::new(self.question, context(&after, self.names, now_millis))
            {
                self.wanted = anew;
            }
            let told = Told {
                before: self.before.as_ref().unwrap_or(&after),
                after: &after,
                names: self.names,
                now_millis,
                at_millis,
            };
            let end = out.len();
            let mut may_take = |octets: usize| octets - end <= MOST && may_take(octets);
            let Some(told) = write_batch(&batch, &self.wanted, &told, &mut may_take, out) else {
                out.truncate(end);
                // What is told makes room once it is sent.
                if end == 0 {
                    self.fall_behind(now_millis, out)?;
                }
                return Ok(rows);
            };
            rows += told;
            self.before = Some(after);
            self.seen = generation;
            if out.len() >= ROOM {
                break;
            }
        }
        Ok(rows)
    }

    /// Goes on from the newest tables, and says so.
    fn fall_behind(&mut self, now_millis: u64, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        out.extend_from_slice(FELL_BEHIND);
        let newest = self.reader.snapshot();
        self.seen = newest.generation;
        self.wanted = Watch::new(self.question, context(&newest, self.names, now_millis))?;
        self.before = Some(newest);
        Ok(())
    }
}

/// What the words of a batch are taken from.
struct Told<'a> {
    before: &'a Tables,
    after: &'a Tables,
    names: &'a Names,
    now_millis: u64,
    /// When it happened.
    at_millis: u64,
}

/// Writes the wanted events of a batch; `None`: they are more than there
/// is room for. A row that is gone is told with the names of before: its
/// link may be gone with it.
fn write_batch(
    batch: &[Event],
    wanted: &Watch,
    told: &Told<'_>,
    may_take: &mut dyn FnMut(usize) -> bool,
    out: &mut Vec<u8>,
) -> Option<u64> {
    let mut rows = 0;
    for event in batch.iter().filter(|event| wanted.wants(event)) {
        let tables = if event.operation == Operation::Deleted {
            told.before
        } else {
            told.after
        };
        let context = context(tables, told.names, told.now_millis);
        if let Some(line) = view::event(event, told.at_millis, context) {
            out.extend_from_slice(&line);
            rows += 1;
        }
        if !may_take(out.len()) {
            return None;
        }
    }
    Some(rows)
}

fn context<'a>(tables: &'a Tables, names: &'a Names, now_millis: u64) -> Context<'a> {
    Context {
        links: tables.named_links(),
        tables: Some(tables),
        now_millis,
        names,
    }
}

#[cfg(test)]
mod tests {
    use table::{Change, Link, Writer};
    use view::{Filter, Object, Output};

    use super::*;

    fn link(index: u32) -> Change {
        Change::PutLink(Link {
            index,
            name: format!("test{index}").into(),
            ..Link::default()
        })
    }

    #[test]
    fn without_memory_for_what_happened_a_watcher_falls_behind() {
        let mut writer = Writer::default();
        let reader = writer.reader();
        let question = Question {
            object: Object::Link,
            filter: Filter::default(),
            output: Output::default(),
        };
        let names = Names::default();
        let mut watching = Watching::begin(&reader, &question, &names, 0).unwrap();
        let mut tell = |most: usize| {
            let mut out = Vec::new();
            let mut may_take = |octets| octets <= most;
            let rows = watching.tell(0, &mut may_take, &mut out).unwrap();
            (rows, String::from_utf8(out).unwrap())
        };
        writer.commit((1..=100).map(link)).unwrap();
        let fell_behind = String::from_utf8(FELL_BEHIND.to_vec()).unwrap();
        assert_eq!(tell(1_000), (0, fell_behind));
        // Two that fit one by one, and not together.
        writer.commit((200..204).map(link)).unwrap();
        writer.commit((204..208).map(link)).unwrap();
        let one = tell(1_000);
        assert!(one.0 == 4 && one.1.contains("test203"), "{one:?}");
        let other = tell(1_000);
        assert!(other.0 == 4 && other.1.contains("test207"), "{other:?}");
        // It goes on with what comes next.
        writer.commit([link(101)]).unwrap();
        let (rows, told) = tell(1_000);
        assert!(rows == 1 && told.contains("test101"), "{told}");
    }
}
