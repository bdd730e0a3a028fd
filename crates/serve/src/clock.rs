//! The host's clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use table::When;

/// Milliseconds since the UNIX epoch.
pub fn now_millis() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

/// Tells how long ago something was. A step of the time of day changes
/// nothing of it, but of what is in a recording.
#[derive(Debug, Clone, Copy)]
pub struct Age {
    now: Instant,
    now_millis: u64,
}

impl Age {
    /// As of now.
    pub fn now() -> Self {
        Self {
            now: Instant::now(),
            now_millis: now_millis(),
        }
    }

    /// Seconds since a moment.
    pub fn secs(self, when: When) -> u64 {
        when.age(self.now, self.now_millis).as_secs()
    }
}
