//! SQL over a namespace, within bounds: for the control socket, for HTTP, and
//! for who has a mirror of its own.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use query::{Answered, Asked, Limits, Moment, Question, SqlError};
use view::{Names, Object};

use crate::namespace::Namespace;

/// Time that a statement may take, from its text to its last row being taken.
pub const TIME: Duration = Duration::from_secs(30);
/// Rows of an answer at most.
pub const ROWS: u64 = 10_000_000;
/// Memory that a statement may take where nobody else is answered.
pub const MEMORY: usize = 32 << 20;
/// Memory without which no statement is begun.
pub const MIN_MEMORY: usize = 1 << 20;
/// Which part of what its source may take a statement gets: the rest is for
/// what is made of its rows, and for others of that source.
pub const PART: usize = 2;

/// The bounds of a statement that has so much memory.
pub fn limits(memory: usize) -> Limits {
    Limits {
        time: TIME,
        rows: ROWS,
        memory: memory.min(MEMORY),
    }
}

/// A namespace that statements are about.
struct Tables<'n> {
    namespace: &'n Namespace,
    names: Arc<Names>,
}

impl Asked for Tables<'_> {
    fn moment(&self) -> Moment {
        Moment {
            tables: self.namespace.tables(),
            names: Arc::clone(&self.names),
            now_millis: self.namespace.source.now_millis(),
            reader: self.namespace.source.reader(),
        }
    }

    fn refresh(&self, object: Object, statistics: bool) {
        self.namespace.refresh(object, statistics);
    }
}

/// Answers a statement about a namespace. `is_gone` says that nobody waits
/// for it any more.
pub fn answer(
    question: &Question,
    namespace: &Namespace,
    names: &Arc<Names>,
    limits: &Limits,
    is_gone: impl FnMut() -> bool + Send + 'static,
    out: &mut dyn Write,
) -> Result<Answered, SqlError> {
    let names = Arc::clone(names);
    let asked = Tables { namespace, names };
    query::answer(question, &asked, limits, is_gone, out)
}
