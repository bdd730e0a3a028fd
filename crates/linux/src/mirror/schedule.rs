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
    /// Since when somebody waits for a scan, until one is done.
    asked: Option<Instant>,
    /// When to look again at what a scan could not explain.
    look_again_at: Option<Instant>,
}

impl Schedule {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            not_before: now,
            events_then: 0,
            events: 0,
            last_event: now,
            is_fresh: true,
            asked: None,
            look_again_at: None,
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

    /// Somebody asks for a scan, now.
    pub(super) fn asked(&mut self, now: Instant) {
        self.asked = self.asked.or(Some(now));
    }

    /// A scan found what it could not explain, and is to look again then.
    pub(super) fn look_again(&mut self, at: Instant) {
        self.look_again_at = Some(at);
    }

    /// A scan is done.
    pub(super) fn scanned(&mut self) {
        self.asked = None;
        self.look_again_at = None;
    }

    /// Everything is listed: what a scan before could not explain needs no
    /// look of its own. Who waits for a scan still does, until one is done.
    pub(super) fn forget_suspects(&mut self) {
        self.look_again_at = None;
    }

    /// When to scan next, unless more comes: first what a scan could not
    /// explain is looked at again; else what somebody waits for, `periodic`,
    /// after the start, and once what came since the last scan has settled,
    /// but for where listings are recorded.
    pub(super) fn scan_at(&self, periodic: Instant, is_recorded: bool) -> Instant {
        if let Some(at) = self.look_again_at {
            return at;
        }
        let has_news = self.is_fresh || self.events != self.events_then;
        let settled = self.not_before.max(self.last_event + SETTLED);
        let settled = (has_news && !is_recorded).then_some(settled);
        let times = [settled, self.asked].into_iter().flatten();
        times.fold(periodic, Instant::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Without a periodic scan for a long time, and without a recording.
    fn next(schedule: &Schedule, start: Instant) -> Option<Instant> {
        let periodic = start + 1_000 * SECOND;
        let at = schedule.scan_at(periodic, false);
        (at != periodic).then_some(at)
    }

    #[test]
    fn a_scan_follows_the_start_and_each_burst_that_settles() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        schedule.loaded(start, start);
        assert_eq!(next(&schedule, start), Some(start + SECOND));
        schedule.listed(start + SECOND, start + SECOND);
        assert_eq!(next(&schedule, start), None, "nothing came");
        schedule.note(7, start + 2 * SECOND);
        let soon = start + 6 * SECOND;
        assert_eq!(next(&schedule, start), Some(soon), "not so soon");
        schedule.note(8, start + 8 * SECOND);
        assert_eq!(next(&schedule, start), Some(start + 9 * SECOND));
        assert_eq!(schedule.scan_at(start, true), start, "recorded");
        schedule.note(8, start + 9 * SECOND);
        schedule.listed(start + 9 * SECOND, start + 10 * SECOND);
        assert_eq!(next(&schedule, start), None);
        schedule.note(9, start + 11 * SECOND);
        let at = start + 110 * SECOND;
        assert_eq!(next(&schedule, start), Some(at), "a hundredth of the time");
        assert!(!schedule.may_list(at - SECOND) && schedule.may_list(at));
    }

    #[test]
    fn who_waits_for_a_scan_does_until_one_is_done() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        schedule.listed(start, start);
        schedule.asked(start + SECOND);
        assert_eq!(next(&schedule, start), Some(start + SECOND));
        // It finds what has to be confirmed, and that something was lost.
        schedule.forget_suspects();
        schedule.look_again(start + 2 * SECOND);
        assert_eq!(next(&schedule, start), Some(start + 2 * SECOND));
        // Everything is listed anew before it is.
        schedule.forget_suspects();
        schedule.listed(start + SECOND, start + SECOND);
        assert_eq!(next(&schedule, start), Some(start + SECOND));
        schedule.scanned();
        assert_eq!(next(&schedule, start), None);
    }
}
