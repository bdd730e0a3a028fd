//! A run of successors as an asker may see it.

use std::cell::Cell;
use std::ops::ControlFlow;

use crate::mib::{Mib, Value};
use crate::oid::{self, Name};
use crate::view::View;

/// What one request may cost, in units of some 0.1 µs: room for the longest
/// answer to a walk, and some 3 ms. What is not answered then is left out of
/// a bulk answer (RFC 3416 §4.2.3), whose asker goes on from there; a view of
/// many small holes, or a thousand names in one request, hold nobody up.
pub(super) const MOST_WORK: u32 = 1 << 15;
/// A row that is written.
const WRITTEN: u32 = 2;
/// A row that is passed over.
const PASSED: u32 = 1;
/// To seek a name, and to jump over a hole of a view.
pub(super) const SEEK: u32 = 16;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The sink had enough.
    Stopped,
    /// There is nothing more to be seen.
    OfView,
    /// The request has cost enough, or what there is could not be told.
    GaveUp,
}

/// What a request may still cost.
#[derive(Debug)]
pub(super) struct Patience(Cell<u32>);

impl Patience {
    /// All of it.
    pub(super) fn new() -> Self {
        Self(Cell::new(MOST_WORK))
    }

    /// Takes some; `false` if there is not so much left.
    pub(super) fn take(&self, units: u32) -> bool {
        let left = self.0.get().checked_sub(units);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    /// What was taken.
    pub(super) fn spent(&self) -> u32 {
        MOST_WORK - self.0.get()
    }

    /// Rows of so many runs that what is left is enough for, one at least.
    pub(super) fn rows_of(&self, runs: usize) -> usize {
        let each = self.0.get() as usize / runs.max(1);
        (each.saturating_sub(SEEK as usize) / WRITTEN as usize).max(1)
    }
}

/// What an asker may see of a context.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) mib: &'a dyn Mib,
    pub(super) view: &'a View,
    /// `Counter64` is passed over (RFC 3584 §4.2.2.1).
    pub(super) v1: bool,
    pub(super) patience: &'a Patience,
}

/// Why a run goes on elsewhere.
enum Gap {
    /// A name that is not in the view.
    Hole(Name),
    /// Nothing up to this name is seen by v1.
    Column(Name),
}

impl Scope<'_> {
    /// All that is to be seen behind `after`, until `sink` breaks. One seek
    /// and a run, one more for each hole in the view.
    pub(super) fn run(
        &self,
        after: &[u32],
        mut sink: impl FnMut(&[u32], Value<'_>) -> ControlFlow<()>,
    ) -> End {
        let mut from: Option<Name> = None;
        loop {
            if !self.patience.take(SEEK) {
                return End::GaveUp;
            }
            let mut end = End::OfView;
            let mut gap: Option<Gap> = None;
            let after = from.as_deref().unwrap_or(after);
            self.mib.walk(after, &mut |name, value| {
                if !self.view.contains(name) {
                    let name = name.iter().copied().take(oid::MAX_SUB_IDS).collect();
                    gap = Some(Gap::Hole(name));
                    return ControlFlow::Break(());
                }
                let is_hidden = self.v1 && matches!(value, Value::Counter64(_));
                if !self.patience.take(if is_hidden { PASSED } else { WRITTEN }) {
                    end = End::GaveUp;
                    return ControlFlow::Break(());
                }
                if is_hidden {
                    // All of a column is of one type.
                    gap = self.mib.column_end(name).map(Gap::Column);
                    return match gap {
                        Some(_) => ControlFlow::Break(()),
                        None => ControlFlow::Continue(()),
                    };
                }
                let flow = sink(name, value);
                if flow.is_break() {
                    end = End::Stopped;
                }
                flow
            });
            if end == End::OfView && self.mib.fell_short() {
                return End::GaveUp;
            }
            from = match gap {
                None => return end,
                Some(Gap::Column(behind)) => Some(behind),
                Some(Gap::Hole(hole)) => {
                    if !self.patience.take(SEEK) {
                        return End::GaveUp;
                    }
                    let Some(next) = self.view.next(&hole) else {
                        return End::OfView;
                    };
                    // The walk begins with `next` itself, if there is such a
                    // name.
                    Some(oid::before(&next).unwrap_or_default())
                }
            };
        }
    }
}
