//! A run of successors as an asker may see it.

use std::cell::Cell;
use std::ops::ControlFlow;

use crate::mib::{Mib, Value};
use crate::oid::{self, Name};
use crate::view::View;

/// Rows that the runs of one request pass over in vain before they give up;
/// room for all 64-bit columns of 20,000 interfaces, which v1 does not see.
/// A view of many small holes, or a thousand names in one request, shall not
/// hold up everybody else.
const MAX_PASSED: usize = 1 << 18;
/// Rows that a jump over a hole of a view counts for.
const JUMP: usize = 1 << 6;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The sink had enough.
    Stopped,
    /// There is nothing more to be seen.
    OfView,
    /// There were too many holes, or what there is could not be told.
    GaveUp,
}

/// What the runs of one request may still pass over in vain.
#[derive(Debug)]
pub(super) struct Patience(Cell<usize>);

impl Patience {
    /// All of it.
    pub(super) fn new() -> Self {
        Self(Cell::new(MAX_PASSED))
    }

    /// Takes some; `false` if there is not so much left.
    fn take(&self, rows: usize) -> bool {
        let left = self.0.get().checked_sub(rows);
        self.0.set(left.unwrap_or(0));
        left.is_some()
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
            let mut end = End::OfView;
            let mut hole: Option<Name> = None;
            let after = from.as_deref().unwrap_or(after);
            self.mib.walk(after, &mut |name, value| {
                if !self.view.contains(name) {
                    hole = Some(name.iter().copied().take(oid::MAX_SUB_IDS).collect());
                    return ControlFlow::Break(());
                }
                if self.v1 && matches!(value, Value::Counter64(_)) {
                    if self.patience.take(1) {
                        return ControlFlow::Continue(());
                    }
                    end = End::GaveUp;
                    return ControlFlow::Break(());
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
            let Some(hole) = hole else {
                return end;
            };
            if !self.patience.take(JUMP) {
                return End::GaveUp;
            }
            let Some(next) = self.view.next(&hole) else {
                return End::OfView;
            };
            // The walk begins with `next` itself, if there is such a name.
            from = Some(oid::before(&next).unwrap_or_default());
        }
    }
}
