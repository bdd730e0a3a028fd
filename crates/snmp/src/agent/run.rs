//! A run of successors as an asker may see it.

use std::ops::ControlFlow;

use crate::mib::{Mib, Value};
use crate::oid::{self, Name};
use crate::view::View;

/// How often a run jumps over what is not to be seen before it gives up: a
/// view of many small holes shall not hold up everybody else.
const MAX_JUMPS: usize = 4_096;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The sink had enough.
    Stopped,
    /// There is nothing more to be seen.
    OfView,
    /// There were too many holes.
    GaveUp,
}

/// What an asker may see of a context.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) mib: &'a dyn Mib,
    pub(super) view: &'a View,
    /// `Counter64` is passed over (RFC 3584 §4.2.2.1).
    pub(super) v1: bool,
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
        for _ in 0..MAX_JUMPS {
            let mut end = End::OfView;
            let mut hole: Option<Name> = None;
            let after = from.as_deref().unwrap_or(after);
            self.mib.walk(after, &mut |name, value| {
                if !self.view.contains(name) {
                    hole = Some(name.iter().copied().take(oid::MAX_SUB_IDS).collect());
                    return ControlFlow::Break(());
                }
                if self.v1 && matches!(value, Value::Counter64(_)) {
                    return ControlFlow::Continue(());
                }
                let flow = sink(name, value);
                if flow.is_break() {
                    end = End::Stopped;
                }
                flow
            });
            let Some(hole) = hole else {
                return end;
            };
            let Some(next) = self.view.next(&hole) else {
                return End::OfView;
            };
            // The walk begins with `next` itself, if there is such a name.
            from = Some(oid::before(&next).unwrap_or_default());
        }
        End::GaveUp
    }
}
