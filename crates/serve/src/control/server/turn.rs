//! Whose turn it is to have rows sorted: one client at a time. For
//! `connection` alone.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at whether who waits is there still.
const LOOK: Duration = Duration::from_millis(100);

/// A turn that one takes at a time.
#[derive(Debug, Default)]
pub(super) struct Turn {
    taken: Mutex<bool>,
    free: Condvar,
}

/// It is ours until this is dropped.
#[derive(Debug)]
pub(super) struct Taken<'a>(&'a Turn);

impl Turn {
    /// Waits for it, up to `patience`, and no longer than `is_over` says.
    pub(super) fn take(
        &self,
        patience: Duration,
        mut is_over: impl FnMut() -> bool,
    ) -> Option<Taken<'_>> {
        let deadline = Instant::now() + patience;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if is_over() || Instant::now() >= deadline {
                return None;
            }
            if !*taken {
                *taken = true;
                return Some(Taken(self));
            }
            let waited = self.free.wait_timeout(taken, LOOK);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = false;
        drop(taken);
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn one_has_it_and_who_waits_in_vain_is_let_go() {
        let turn = Turn::default();
        let long = Duration::from_secs(60);
        let first = turn.take(long, || false).unwrap();
        assert!(turn.take(Duration::ZERO, || false).is_none());
        let looks = Cell::new(0);
        let leaves = || {
            looks.set(looks.get() + 1);
            looks.get() > 2
        };
        assert!(turn.take(long, leaves).is_none(), "it has gone meanwhile");
        drop(first);
        assert!(turn.take(long, || false).is_some());
    }
}
