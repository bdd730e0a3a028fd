//! What time it is, in milliseconds: for each instance its own, the one
//! shared by all, or a coarse monotonic clock. Asked at most once a call.

use std::sync::atomic::{AtomicU64, Ordering};

use nix::time::{ClockId, clock_gettime};

/// `LIBALIAS_TIME_CLOCK`: no time was set, the clock is asked.
pub const CLOCK: u64 = u64::MAX;

/// The time of all instances without one of their own.
static SHARED: AtomicU64 = AtomicU64::new(CLOCK);

/// Sets the time of all instances without one of their own.
pub fn share(millis: u64) {
    SHARED.store(millis, Ordering::Relaxed);
}

/// The time of an instance whose own time is `own`. A few nanoseconds.
#[inline]
pub fn now(own: u64) -> u64 {
    if own != CLOCK {
        return own;
    }
    let shared = SHARED.load(Ordering::Relaxed);
    if shared != CLOCK {
        return shared;
    }
    // The coarse clock is a read of memory: it ticks every few
    // milliseconds, and timeouts are seconds. It is asked by way of libc,
    // for valgrind hides the kernel's own page of it.
    let Ok(time) = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE) else {
        return 0;
    };
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let millis = u64::try_from(time.tv_nsec()).unwrap_or(0) / 1_000_000;
    seconds.wrapping_mul(1_000).wrapping_add(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_time_comes_before_the_shared_one_and_that_before_the_clock() {
        let before = now(CLOCK);
        assert!(before > 0 && now(CLOCK) >= before);
        assert_eq!(now(7), 7);
        share(11);
        assert_eq!((now(CLOCK), now(7)), (11, 7));
        share(CLOCK);
        assert!(now(CLOCK) >= before);
    }
}
