//! What the events kept of all owners may take together. For the log.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Octets of all logs of the process at most, about: with a daemon of many
/// namespaces a bound for each alone is none.
const MAX_ALL_BYTES: usize = 64 << 20;

/// Of all logs that are not told another one.
pub(super) static OF_PROCESS: Budget = Budget::new(MAX_ALL_BYTES);

/// A bound in octets for several logs, and what they take.
#[derive(Debug)]
pub(super) struct Budget {
    most: usize,
    taken: AtomicUsize,
}

impl Budget {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            taken: AtomicUsize::new(0),
        }
    }

    /// A log takes so many octets after so many.
    pub(super) fn moved(&self, before: usize, now: usize) {
        // Each is exact for one log, and the sum is no more than a number.
        if now >= before {
            self.taken.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.taken.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// What a log that takes so many octets may take: no more than it leaves
    /// free, so that one that comes new finds room, and all together stay
    /// within the bound (the dynamic threshold of shared switch buffers).
    pub(super) fn allowed(&self, own: usize) -> usize {
        let others = self.taken.load(Ordering::Relaxed).saturating_sub(own);
        self.most.saturating_sub(others) / 2
    }
}
