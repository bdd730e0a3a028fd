//! Whether a thread that waits for work has to be woken: so that who gives
//! work to one that is busy makes no system call, and who rests is never
//! forgotten. What wakes it (an `eventfd`) is the caller's.
//!
//! # Why it is right
//!
//! The one that gives puts its work where the other looks for it, and then
//! asks [`Wakeup::must_wake`]; the one that takes says that it rests, and then
//! looks once more ([`Wakeup::rests`]). A sequentially consistent fence stands
//! between the two steps on both sides. So either the taker's look sees the
//! work, or the giver sees that it rests. Of many givers one wakes it: the
//! one that takes the word back.
//!
//! The model in `tests/models.rs` runs all interleavings of it.

#[cfg(feature = "model")]
use loom::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(not(feature = "model"))]
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// What the givers of work and its taker have in common.
#[derive(Debug, Default)]
pub struct Wakeup {
    is_resting: AtomicBool,
}

impl Wakeup {
    /// Of one that does not rest.
    pub fn new() -> Self {
        Self {
            is_resting: AtomicBool::new(false),
        }
    }

    /// For a giver, when its work is where the taker looks: whether it has to
    /// wake the taker now.
    #[inline]
    pub fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        let found = || {
            let is_resting = &self.is_resting;
            is_resting.compare_exchange(true, false, Ordering::Relaxed, Ordering::Relaxed)
        };
        self.is_resting.load(Ordering::Relaxed) && found().is_ok()
    }

    /// For the taker: says that it rests, unless `has_nothing`, which looks
    /// for work, says no. Then it may wait until it is woken. In both cases
    /// [`Wakeup::wakes`] is next.
    pub fn rests(&self, has_nothing: impl FnOnce() -> bool) -> bool {
        self.is_resting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        has_nothing()
    }

    /// For the taker: says that it rests no more. A giver may have found it
    /// resting all the same, and what wakes it may still be on its way; it
    /// wakes the taker from its next rest then, for nothing.
    pub fn wakes(&self) {
        self.is_resting.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_wakes_who_rests() {
        let wakeup = Wakeup::new();
        assert!(!wakeup.must_wake());
        assert!(wakeup.rests(|| true));
        assert!(wakeup.must_wake() && !wakeup.must_wake());
        wakeup.wakes();
        assert!(!wakeup.rests(|| false));
        wakeup.wakes();
        assert!(!wakeup.must_wake());
    }
}
