//! Changes as they happen, a line of JSON each: in the daemon for a
//! client, and in a process of its own with `--direct`.

use std::io::Write;
use std::time::Duration;

use table::{Event, Events, Operation, Reader, Row, Tables};
use view::{AnswerError, Context, Names, Question, Watch};

/// How often it is looked whether anybody still watches.
const LOOK: Duration = Duration::from_millis(500);

/// What is written in place of changes that came too fast for the watcher:
/// it has missed some, and should ask for the rows again.
const FELL_BEHIND: &[u8] = b"{\"event\":\"fell_behind\"}\n";

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
    let mut before = reader.snapshot();
    let mut seen = before.generation;
    let mut wanted = Watch::new(question, context(&before, names, now()))?;
    let mut rows = 0;
    // Whoever waits for the first change can tell that it is watching.
    out.flush()?;
    while !ended() {
        let batches = match reader.events_after(seen, LOOK) {
            Events::Batches(batches) => batches,
            Events::FellBehind => {
                out.write_all(FELL_BEHIND)?;
                before = reader.snapshot();
                seen = before.generation;
                wanted = Watch::new(question, context(&before, names, now()))?;
                Vec::new()
            }
        };
        for (generation, batch) in batches {
            let after = reader.snapshot();
            if batch.iter().any(|event| matches!(event.row, Row::Link(_)))
                && let Ok(anew) = Watch::new(question, context(&after, names, now()))
            {
                wanted = anew;
            }
            let told = Told {
                before: &before,
                after: &after,
                names,
                now_millis: now(),
            };
            rows += write_batch(&batch, &wanted, &told, out)?;
            before = after;
            seen = generation;
        }
        out.flush()?;
    }
    Ok(rows)
}

/// What the words of a batch are taken from.
struct Told<'a> {
    before: &'a Tables,
    after: &'a Tables,
    names: &'a Names,
    now_millis: u64,
}

/// Writes the wanted events of a batch. A row that is gone is told with
/// the names of before: its link may be gone with it.
fn write_batch(
    batch: &[Event],
    wanted: &Watch,
    told: &Told<'_>,
    out: &mut impl Write,
) -> Result<u64, AnswerError> {
    let mut rows = 0;
    for event in batch.iter().filter(|event| wanted.wants(event)) {
        let tables = if event.operation == Operation::Deleted {
            told.before
        } else {
            told.after
        };
        if let Some(line) = view::event(event, context(tables, told.names, told.now_millis)) {
            out.write_all(&line)?;
            rows += 1;
        }
    }
    Ok(rows)
}

fn context<'a>(tables: &'a Tables, names: &'a Names, now_millis: u64) -> Context<'a> {
    Context {
        links: tables.named_links(),
        tables: Some(tables),
        now_millis,
        names,
    }
}
