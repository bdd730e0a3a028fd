//! When to scan for drift and when to fill up what was refused. Pure: time
//! is an argument. Called by the mirror's worker.
//!
//! A scan soon after the start, and one after each burst of changes that
//! has settled; all of them together take no more than a hundredth of the
//! time, whatever the tables' size.

use std::time::{Duration, Instant};

/// Without an event for so long, a burst has settled.
const SETTLED: Duration = Duration::from_secs(1);
/// Between two listings of everything, at least.
const SHORTEST: Duration = Duration::from_secs(5);
/// And so many times as long as the last one took.
const SHARE: u32 = 100;

/// When everything was listed last, and what came since.
#[derive(Debug)]
pub(super) struct Schedule {
    /// No listing of everything before this.
    not_before: Instant,
    /// Announcements when it was done.
    events_then: u64,
    /// Announcements now, and when the last came.
    events: u64,
    last_event: Instant,
    /// Nothing was compared yet.
    is_fresh: bool,
}

impl Schedule {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            not_before: now,
            events_then: 0,
            events: 0,
            last_event: now,
            is_fresh: true,
        }
    }

    /// So many announcements came until now.
    pub(super) fn note(&mut self, events: u64, now: Instant) {
        if events != self.events {
            self.events = events;
            self.last_event = now;
        }
    }

    /// Everything was listed for the first time.
    pub(super) fn loaded(&mut self, begun: Instant, now: Instant) {
        self.not_before = now + SHARE * (now - begun);
        self.last_event = now;
    }

    /// Everything was listed again.
    pub(super) fn listed(&mut self, begun: Instant, now: Instant) {
        self.not_before = now + SHORTEST.max(SHARE * (now - begun));
        self.events_then = self.events;
        self.is_fresh = false;
    }

    /// Whether it has been long enough.
    pub(super) fn may_list(&self, now: Instant) -> bool {
        now >= self.not_before
    }

    /// When to scan next, unless more comes: after the start, and once what
    /// came since the last scan has settled.
    pub(super) fn scan_at(&self) -> Option<Instant> {
        let has_news = self.is_fresh || self.events != self.events_then;
        has_news.then(|| self.not_before.max(self.last_event + SETTLED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_scan_follows_the_start_and_each_burst_that_settles() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        schedule.loaded(start, start);
        assert_eq!(schedule.scan_at(), Some(start + SECOND));
        schedule.listed(start + SECOND, start + SECOND);
        assert_eq!(schedule.scan_at(), None, "nothing came");
        schedule.note(7, start + 2 * SECOND);
        assert_eq!(schedule.scan_at(), Some(start + 6 * SECOND), "not so soon");
        schedule.note(8, start + 8 * SECOND);
        assert_eq!(schedule.scan_at(), Some(start + 9 * SECOND));
        schedule.note(8, start + 9 * SECOND);
        schedule.listed(start + 9 * SECOND, start + 10 * SECOND);
        assert_eq!(schedule.scan_at(), None);
        schedule.note(9, start + 11 * SECOND);
        let next = start + 110 * SECOND;
        assert_eq!(schedule.scan_at(), Some(next), "a hundredth of the time");
        assert!(!schedule.may_list(next - SECOND) && schedule.may_list(next));
    }
}
