//! When all that a peer is going to tell again has been told.
//!
//! The stream has no end mark. What tells rows that are gone from rows that
//! are on their way is that nothing moves: the number of rows that were not
//! told again has stopped to shrink, and the stream is quiet. A time alone
//! says nothing: a slow peer tells for minutes, and who sweeps meanwhile
//! takes away routes that are valid.

use std::time::Duration;

/// For so long no row was told again.
const SETTLED: Duration = Duration::from_secs(15);
/// A quiet stream has at most so many messages a second: a peer that tells
/// its table has thousands, a full table's ordinary changes are some ten.
const QUIET_PER_SEC: u64 = 100;
/// Over which that is counted. A peer that tells its table and finds its
/// buffer full waits for one second.
const WINDOW: Duration = Duration::from_secs(5);
/// For a stream that is never quiet: twenty times as long.
const SETTLED_BUSY: Duration = Duration::from_secs(300);

/// A resync under way, as far as its end can be seen.
#[derive(Debug)]
pub(crate) struct Settling {
    unconfirmed: usize,
    shrank_at: Duration,
    window_began: Duration,
    window_messages: u64,
    /// The last window was quiet.
    was_quiet: bool,
}

impl Settling {
    /// A resync begins with so many rows to be told again; so many messages
    /// have come since the feed began.
    pub(crate) fn begin(now: Duration, unconfirmed: usize, messages: u64) -> Self {
        Self {
            unconfirmed,
            shrank_at: now,
            window_began: now,
            window_messages: messages,
            was_quiet: false,
        }
    }

    /// How it stands now; whether it is settled. To be asked each second at
    /// least.
    pub(crate) fn is_settled(&mut self, now: Duration, unconfirmed: usize, messages: u64) -> bool {
        if unconfirmed < self.unconfirmed {
            self.shrank_at = now;
        }
        self.unconfirmed = unconfirmed;
        let most = QUIET_PER_SEC * WINDOW.as_secs();
        let is_quiet = messages.saturating_sub(self.window_messages) <= most;
        if now.saturating_sub(self.window_began) >= WINDOW {
            self.was_quiet = is_quiet;
            self.window_began = now;
            self.window_messages = messages;
        }
        let still = now.saturating_sub(self.shrank_at);
        still >= SETTLED_BUSY || still >= SETTLED && self.was_quiet && is_quiet
    }

    /// Whether nothing was told again for so long that it does for any
    /// stream, whatever it was like.
    pub(crate) fn has_rested(&self, now: Duration) -> bool {
        now.saturating_sub(self.shrank_at) >= SETTLED_BUSY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a stream settles, of so many messages each second and rows
    /// unconfirmed after each; `None`: not within a thousand seconds.
    fn settles(per_sec: impl Fn(u64) -> u64, unconfirmed: impl Fn(u64) -> usize) -> Option<u64> {
        let mut messages = 0;
        let mut settling = Settling::begin(Duration::ZERO, unconfirmed(0), messages);
        (1..1_000).find(|second| {
            messages += per_sec(*second);
            settling.is_settled(Duration::from_secs(*second), unconfirmed(*second), messages)
        })
    }

    #[test]
    fn nothing_is_swept_while_rows_are_told_again_however_long_that_takes() {
        // 800,000 routes in 58 s, as measured; and a peer that is slower.
        let after = |left: u64, each: u64| {
            move |at| usize::try_from(left.saturating_sub(each * at)).unwrap()
        };
        let told = settles(
            |at| if at < 58 { 14_000 } else { 0 },
            after(812_000, 14_000),
        );
        assert_eq!(told, Some(58 + 15));
        let slow = settles(|_| 10, after(6_000, 10));
        assert_eq!(slow, Some(600 + 15));
    }

    #[test]
    fn what_pauses_is_waited_for() {
        let paused = |at: u64| usize::try_from(100 - at / 10).unwrap();
        assert_eq!(settles(|_| 1, paused), None);
    }

    #[test]
    fn rows_that_are_gone_are_swept_once_the_stream_is_quiet() {
        assert_eq!(settles(|_| 0, |_| 7), Some(15));
        assert_eq!(settles(|_| 100, |_| 7), Some(15));
        let busy_first = settles(|at| if at <= 40 { 5_000 } else { 3 }, |_| 7);
        assert_eq!(busy_first, Some(45));
    }

    #[test]
    fn a_stream_that_is_never_quiet_settles_too() {
        assert_eq!(settles(|_| 5_000, |_| 7), Some(300));
    }
}
