//! When packets are due, on a schedule that does not drift: the number of
//! packets that may have been sent follows from the time since the start,
//! so that a late burst is followed by a larger one. Pure: time is an
//! argument.

/// A burst is what falls due in this time, at most a batch: small enough
/// for a receiver, large enough not to be all sleep.
const BURST_NANOS: f64 = 50_000.0;
/// A delay longer than this is not made up for: the schedule moves, and what
/// fell due is left out, or, where a count was promised, sent later.
const MOST_BEHIND_NANOS: f64 = 100_000_000.0;

/// The schedule of one sender.
#[derive(Debug, Clone)]
pub struct Pace {
    per_nano: f64,
    burst: u64,
    start_nanos: u64,
    sent: u64,
    slipped: u64,
    leaves_out: bool,
}

impl Pace {
    /// So many packets a second from a time on, at most `batch` at once.
    /// Whether what is late is left out, or sent later than it was due.
    pub fn new(per_second: f64, batch: usize, start_nanos: u64, leaves_out: bool) -> Self {
        let per_nano = per_second / 1e9;
        let burst = (per_nano * BURST_NANOS) as u64;
        Self {
            per_nano,
            burst: burst.clamp(1, batch.max(1) as u64),
            start_nanos,
            sent: 0,
            slipped: 0,
            leaves_out,
        }
    }

    /// How many packets are to be sent now: none, or a burst and what was
    /// missed.
    pub fn due(&mut self, now_nanos: u64) -> u64 {
        let passed = now_nanos.saturating_sub(self.start_nanos) as f64;
        // The first is due at once.
        let by_now = (passed * self.per_nano) as u64 + 1;
        let mut due = by_now.saturating_sub(self.sent);
        let most = (self.per_nano * MOST_BEHIND_NANOS) as u64 + self.burst;
        if due > most {
            let missed = due - most;
            if self.leaves_out {
                self.slipped += missed;
            }
            self.start_nanos += (missed as f64 / self.per_nano) as u64;
            due = most;
        }
        if due < self.burst { 0 } else { due }
    }

    /// Says that so many were sent.
    pub fn sent(&mut self, packets: u64) {
        self.sent += packets;
    }

    /// When the next burst is due.
    pub fn next_nanos(&self) -> u64 {
        let last_of_burst = (self.sent + self.burst - 1) as f64;
        // Rounded up, so that it is due when one wakes at that time.
        self.start_nanos + (last_of_burst / self.per_nano).ceil() as u64
    }

    /// Packets that fell due and were left out, because the way does not
    /// carry as many.
    pub fn slipped(&self) -> u64 {
        self.slipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that wakes `late` nanoseconds after each time it asked for.
    fn sent_in_a_second(rate: f64, batch: usize, late: u64) -> (u64, u64) {
        let mut pace = Pace::new(rate, batch, 1_000, true);
        let (mut now, mut sent, mut largest) = (1_000, 0, 0);
        while now < 1_000_001_000 {
            let due = pace.due(now);
            largest = largest.max(due);
            pace.sent(due);
            sent += due;
            now = pace.next_nanos().max(now) + late;
        }
        assert_eq!(pace.slipped(), 0);
        (sent, largest)
    }

    #[test]
    fn the_rate_is_kept_whether_one_wakes_in_time_or_late() {
        for rate in [1.0, 10.0, 999.0, 12_345.0, 1_000_000.0, 10_000_000.0] {
            for late in [0, 55_000, 3_000_000] {
                let (sent, _) = sent_in_a_second(rate, 64, late);
                // What falls due while it sleeps past the end is no error.
                let most_off = rate * 0.01_f64.max(2.0 * late as f64 / 1e9) + 65.0;
                let off = (sent as f64 - rate).abs();
                assert!(off <= most_off, "{rate} {late}: {sent}");
            }
        }
    }

    #[test]
    fn bursts_are_small() {
        assert_eq!(sent_in_a_second(1_000.0, 64, 0).1, 1);
        assert_eq!(sent_in_a_second(100_000.0, 64, 0).1, 5);
        assert!(sent_in_a_second(10_000_000.0, 64, 0).1 <= 65);
    }

    #[test]
    fn a_long_stop_is_not_made_up_for() {
        let mut pace = Pace::new(1_000.0, 64, 0, true);
        assert_eq!(pace.due(0), 1);
        pace.sent(1);
        let due = pace.due(10_000_000_000);
        assert!(due <= 101, "{due}");
        pace.sent(due);
        assert_eq!(pace.slipped(), 10_000 - due);
        // And goes on as before.
        assert_eq!(pace.due(10_000_000_000), 0);
        assert!(pace.due(10_005_000_000) <= 6);
    }

    #[test]
    fn what_was_promised_is_sent_later() {
        let mut pace = Pace::new(1_000.0, 64, 0, false);
        let due = pace.due(10_000_000_000);
        assert!((100..=102).contains(&due), "{due}");
        pace.sent(due);
        assert_eq!(pace.slipped(), 0);
        assert!(pace.due(10_005_000_000) <= 6);
    }

    #[test]
    fn one_is_due_when_one_wakes_at_the_time_asked_for() {
        for rate in [3.0, 7_777.7, 333_333.3, 9_999_999.0] {
            let mut pace = Pace::new(rate, 64, 123, true);
            for _ in 0..10_000 {
                let now = pace.next_nanos();
                let due = pace.due(now);
                assert!(due > 0, "{rate}");
                pace.sent(due);
            }
        }
    }
}
