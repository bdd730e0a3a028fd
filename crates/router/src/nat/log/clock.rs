//! The two clocks of what is written down: the time of day, which somebody
//! may set, and the time since the machine was started, which nobody does.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since 1970.
pub use linux::mirror::now_millis as wall_millis;

/// Milliseconds since the machine was started, sleep included.
pub fn boot_millis() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}
