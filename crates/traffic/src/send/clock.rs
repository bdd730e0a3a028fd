//! The two clocks of a sender, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// For durations.
#[inline]
pub fn monotonic() -> u64 {
    now(ClockId::Monotonic)
}

/// For the time that a payload carries: another host compares it.
pub fn real() -> u64 {
    now(ClockId::Realtime)
}

#[inline]
fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
