//! A moment, which whoever has a clock tells the state machines.

use std::time::Duration;

/// A moment: since some start, for intervals; and by the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Since a moment that stays the same.
    pub monotonic: Duration,
    /// Since the UNIX epoch, milliseconds.
    pub millis: u64,
}
