//! The agent's clock: how long it is up. `sysUpTime`, `snmpEngineTime` and
//! all that is told by them run on it.
//!
//! It is `CLOCK_BOOTTIME`, which nobody sets and which goes on while the
//! host sleeps: a step of the time of day by NTP changes no rate and is no
//! start of the agent. One for all of [`super::Service`].

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Counts from the start of the agent. Copies are the same clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Duration,
}

impl Clock {
    /// The agent starts now.
    pub fn start() -> Self {
        Self {
            started: since_boot(),
        }
    }

    /// Milliseconds since the start.
    pub fn up_millis(self) -> u64 {
        since_boot().saturating_sub(self.started).as_millis() as u64
    }
}

/// The kernel always has this clock (Linux 2.6.39); one that had not would
/// stand still.
fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}
