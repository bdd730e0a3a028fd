//! SQL over a namespace, within bounds: for the control socket, for HTTP, and
//! for who has a mirror of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use query::{Asked, Earlier, Limits, Moment, Translation};
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

/// Why what is recorded has no translation.
pub const NOT_KEPT: &str =
    "what a translation has (`nat_…`) is no part of a recording or a history";

/// The bounds of a statement that has so much memory.
pub fn limits(memory: usize) -> Limits {
    Limits {
        time: TIME,
        rows: ROWS,
        memory: memory.min(MEMORY),
    }
}

/// Where a translation is asked on behalf of whoever asks; else why not:
/// none is configured, or it is one of those who are not told.
pub fn translation(at: Option<Arc<Path>>, is_told: bool) -> Translation {
    match (at, is_told) {
        (_, false) => Err(
            "who talks to whom (`nat_…`) is told to root and the daemon's own user, and over HTTP \
             with a token"
                .to_owned(),
        ),
        (None, true) => Err(
            "this daemon asks no translation: `[nat]` of its configuration says \
                             where one is asked"
                .to_owned(),
        ),
        (Some(at), true) => Ok(at),
    }
}

/// What a statement is about.
#[derive(Clone)]
pub struct About<'n> {
    /// Its tables.
    pub namespace: &'n Namespace,
    /// Names of numbers.
    pub names: Arc<Names>,
    /// Where the translation beside it is asked; else why it is not.
    pub translation: Translation,
    /// Who tells what happened before; `None`: nobody.
    pub earlier: Option<Arc<dyn Earlier>>,
}

impl Asked for About<'_> {
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

    fn translation(&self) -> Translation {
        self.translation.clone()
    }

    fn earlier(&self) -> Option<Arc<dyn Earlier>> {
        self.earlier.clone()
    }
}
