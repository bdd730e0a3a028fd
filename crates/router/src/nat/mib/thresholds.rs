//! When a notification is due: as a value comes to its threshold, and no more
//! often than once an interval (RFC 7659 §3.1.2). By the time it is given.

use std::collections::HashMap;

use super::Thresholds;

/// Between two notifications about a pool, and about the translation
/// (`natv2PoolNotificationInterval`, `natv2InstanceNotificationInterval`: as
/// RFC 7659 has them by default).
pub const POOL_SECS: u32 = 20;
pub const INSTANCE_SECS: u32 = 10;
/// Between two about one subscriber (`natv2SubscriberNotificationInterval`).
pub const SUBSCRIBER_SECS: u32 = 60;
/// Subscribers at their threshold that are remembered, and told of at one look:
/// others are told at a later one.
const REMEMBERED: usize = 1 << 16;
const TOLD_AT_ONCE: usize = 100;

/// What may be told, by the number of its notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Due {
    PoolUsageLow = 1,
    PoolUsageHigh = 2,
    AddressMapEntriesHigh = 3,
    PortMapEntriesHigh = 4,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Values {
    /// Of the protocol with most, percent.
    pub pool_usage: u8,
    pub subscribers: u64,
    pub mappings: u64,
}

/// A threshold, and whether the value is at it.
#[derive(Debug, Clone, Copy, Default)]
struct Watch {
    is_at: bool,
    told_millis: Option<u64>,
}

impl Watch {
    /// Whether it is to be told now.
    fn look(&mut self, is_at: bool, now_millis: u64, secs: u32) -> bool {
        let was_at = std::mem::replace(&mut self.is_at, is_at);
        let interval = u64::from(secs) * 1_000;
        let rests = |told: u64| now_millis.saturating_sub(told) < interval;
        if !is_at || was_at || self.told_millis.is_some_and(rests) {
            return false;
        }
        self.told_millis = Some(now_millis);
        true
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Watched {
    low: Watch,
    high: Watch,
    addresses: Watch,
    mappings: Watch,
    /// A pool that never was in use has not become so.
    was_above: bool,
}

impl Watched {
    /// Looks at the values, and says what is due.
    pub fn look(&mut self, at: &Thresholds, values: Values, now_millis: u64) -> Vec<Due> {
        let usage = values.pool_usage;
        let is_low = at.notify_pool_low.is_some_and(|low| usage <= low);
        self.was_above |= at.notify_pool_low.is_some_and(|low| usage > low);
        let is_high = at.notify_pool_high.is_some_and(|high| usage >= high);
        let reached = |most: Option<i32>, value: u64| {
            most.is_some_and(|most| value >= u64::from(most.unsigned_abs()))
        };
        let is_many = reached(at.notify_subscribers, values.subscribers);
        let is_full = reached(at.notify_mappings, values.mappings);
        let looks = [
            (
                Due::PoolUsageLow,
                self.low
                    .look(is_low && self.was_above, now_millis, POOL_SECS),
            ),
            (
                Due::PoolUsageHigh,
                self.high.look(is_high, now_millis, POOL_SECS),
            ),
            (
                Due::AddressMapEntriesHigh,
                self.addresses.look(is_many, now_millis, INSTANCE_SECS),
            ),
            (
                Due::PortMapEntriesHigh,
                self.mappings.look(is_full, now_millis, INSTANCE_SECS),
            ),
        ];
        let due = looks.iter().filter(|(_, is)| *is);
        due.map(|(what, _)| *what).collect()
    }
}

/// Subscribers, each with a threshold of its mappings.
#[derive(Debug, Default)]
pub struct WatchedSubscribers {
    /// Those at it, by index, and as of which look.
    at: HashMap<u32, (Watch, u64)>,
    look: u64,
    told: usize,
}

impl WatchedSubscribers {
    /// A look at all of them begins.
    pub fn begin(&mut self) {
        self.look += 1;
        self.told = 0;
    }

    /// A subscriber that is at its threshold: whether it is to be told now.
    pub fn is_due(&mut self, index: u32, now_millis: u64) -> bool {
        if self.told >= TOLD_AT_ONCE || self.at.len() >= REMEMBERED && !self.at.contains_key(&index)
        {
            return false;
        }
        let (watch, seen) = self.at.entry(index).or_default();
        // One that was below at the last look comes to it now.
        watch.is_at &= *seen + 1 >= self.look;
        *seen = self.look;
        let is_due = watch.look(true, now_millis, SUBSCRIBER_SECS);
        self.told += usize::from(is_due);
        is_due
    }

    /// The look is over: who was below it for an interval is forgotten.
    pub fn end(&mut self, now_millis: u64) {
        let interval = u64::from(SUBSCRIBER_SECS) * 1_000;
        let look = self.look;
        self.at.retain(|_, (watch, seen)| {
            let told = watch.told_millis.unwrap_or(0);
            *seen == look || now_millis.saturating_sub(told) < interval
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Thresholds = Thresholds {
        notify_pool_high: Some(80),
        notify_pool_low: Some(20),
        notify_mappings: Some(100),
        notify_subscribers: None,
        notify_subscriber_mappings: None,
    };

    fn values(pool_usage: u8, mappings: u64) -> Values {
        Values {
            pool_usage,
            mappings,
            subscribers: 1 << 40,
        }
    }

    #[test]
    fn it_is_told_as_the_value_comes_to_its_threshold() {
        let mut watched = Watched::default();
        let mut look =
            |usage, mappings, secs: u64| watched.look(&AT, values(usage, mappings), secs * 1_000);
        assert_eq!(look(0, 99, 0), [], "below all, and never above");
        assert_eq!(look(79, 100, 1), [Due::PortMapEntriesHigh]);
        assert_eq!(look(80, 101, 2), [Due::PoolUsageHigh]);
        assert_eq!(look(99, 500, 100), [], "it is so still");
        assert_eq!(look(21, 99, 101), []);
        assert_eq!(look(20, 99, 102), [Due::PoolUsageLow]);
        assert_eq!(
            look(80, 100, 103),
            [Due::PoolUsageHigh, Due::PortMapEntriesHigh]
        );
    }

    #[test]
    fn no_more_often_than_once_an_interval() {
        let mut watched = Watched::default();
        let mut told = 0;
        for tick in 0..100_u64 {
            let usage = if tick % 2 == 0 { 80 } else { 50 };
            told += watched.look(&AT, values(usage, 0), tick * 1_000).len();
        }
        assert_eq!(told, 5, "in 100 seconds, one in 20");
    }

    #[test]
    fn a_subscriber_is_told_as_it_comes_to_its_threshold_and_not_too_often() {
        let mut watched = WatchedSubscribers::default();
        let mut look = |of: &[u32], secs: u64| {
            watched.begin();
            let due = of.iter().filter(|one| watched.is_due(**one, secs * 1_000));
            let due: Vec<u32> = due.copied().collect();
            watched.end(secs * 1_000);
            (due, watched.at.len())
        };
        assert_eq!(look(&[1, 2], 0), (vec![1, 2], 2));
        assert_eq!(look(&[1, 3], 10), (vec![3], 3), "1 is so still");
        assert_eq!(look(&[1, 2], 20), (vec![], 3), "2 was told a moment ago");
        assert_eq!(look(&[1], 65), (vec![], 2), "2 is forgotten");
        assert_eq!(look(&[1, 2, 3], 80), (vec![2, 3], 3));
        assert_eq!(look(&[], 200), (vec![], 0));
        // Many at once: some at this look, the others at the next ones.
        let many: Vec<u32> = (0..250).collect();
        let told = [300, 305, 310, 315].map(|secs| look(&many, secs).0.len());
        assert_eq!(told, [100, 100, 50, 0]);
    }
}
