//! A moment, which whoever has a clock tells the state machines.

use std::time::{Duration, Instant};

use table::When;

/// A moment: since some start, for intervals; and by the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Since a moment that stays the same.
    pub monotonic: Duration,
    /// Since the UNIX epoch, milliseconds.
    pub millis: u64,
    /// The same as this process' clock has it; `None`: of a recording.
    pub instant: Option<Instant>,
}

impl Now {
    /// For the status of a feed.
    pub(crate) fn when(self) -> When {
        When {
            millis: self.millis,
            instant: self.instant,
        }
    }
}
