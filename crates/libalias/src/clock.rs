//! What time it is, in milliseconds: for each instance its own, the one
//! shared by all, or a monotonic clock that is read once a second.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc;
use nix::time::{ClockId, clock_gettime};

/// `LIBALIAS_TIME_CLOCK`: no time was set, the clock is asked.
pub const CLOCK: u64 = u64::MAX;

/// The time of all instances without one of their own.
static SHARED: AtomicU64 = AtomicU64::new(CLOCK);

/// Sets the time of all instances without one of their own.
pub fn share(millis: u64) {
    SHARED.store(millis, Ordering::Relaxed);
}

/// An instance's clock.
#[derive(Debug)]
pub struct Clock {
    /// The time that was set for it, or [`CLOCK`].
    own: u64,
    /// What the machine's time of day was when the clock was read last, and
    /// what the clock said.
    second: libc::time_t,
    millis: u64,
}

impl Clock {
    /// One that nothing was set for.
    pub fn new() -> Self {
        Self {
            own: CLOCK,
            second: -1,
            millis: 0,
        }
    }

    /// Sets the time, or goes back to the machine's.
    pub fn set(&mut self, millis: u64) {
        self.own = millis;
    }

    /// The time. A nanosecond or two.
    ///
    /// The machine's clock is read where its second is another one than at
    /// the last reading: that costs a load, where even the coarse clock's
    /// reading takes as long as a fifth of a translation. So the time lags by
    /// a second at most; timeouts are seconds, and FreeBSD's clock ticks in
    /// seconds as well. Where somebody sets the time of day the clock is read
    /// and has gone on as ever.
    #[inline]
    pub fn now(&mut self) -> u64 {
        if self.own != CLOCK {
            return self.own;
        }
        let shared = SHARED.load(Ordering::Relaxed);
        if shared != CLOCK {
            return shared;
        }
        // SAFETY: NULL asks for the result alone.
        let second = unsafe { libc::time(ptr::null_mut()) };
        if second != self.second {
            self.second = second;
            self.millis = read();
        }
        self.millis
    }
}

/// Reads the machine's monotonic clock. It is asked by way of libc, for
/// valgrind hides the kernel's own page of it.
#[cold]
fn read() -> u64 {
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
        let mut clock = Clock::new();
        let before = clock.now();
        assert!(before > 0 && clock.now() >= before);
        let mut own = Clock::new();
        own.set(7);
        assert_eq!(own.now(), 7);
        share(11);
        assert_eq!((clock.now(), own.now()), (11, 7));
        share(CLOCK);
        assert!(clock.now() >= before);
        own.set(CLOCK);
        assert!(own.now() >= before);
        it_lags_by_a_second_at_most();
    }

    /// And never runs ahead. (No test of its own: the shared time is shared
    /// with that one.)
    fn it_lags_by_a_second_at_most() {
        let mut clock = Clock::new();
        let began = read();
        while read().saturating_sub(began) < 1_200 {
            let (before, now, after) = (read(), clock.now(), read());
            assert!(now <= after, "{now} {after}");
            assert!(before.saturating_sub(now) <= 1_100, "{before} {now}");
            std::thread::yield_now();
        }
        assert!(clock.now() > began);
    }
}
