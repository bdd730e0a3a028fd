//! When a notification is due: as a value comes to its threshold, and no more
//! often than once an interval (RFC 7659 §3.1.2): one that comes to it within
//! the interval is told when that is over, if it is there still. By the time
//! it is given.

use super::Thresholds;

/// Between two notifications about a pool, and about the translation
/// (`natv2PoolNotificationInterval`, `natv2InstanceNotificationInterval`: as
/// RFC 7659 has them by default).
pub const POOL_SECS: u32 = 20;
pub const INSTANCE_SECS: u32 = 10;

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

/// A threshold, and whether it was told that the value is at it.
#[derive(Debug, Clone, Copy, Default)]
struct Watch {
    is_told: bool,
    told_millis: Option<u64>,
}

impl Watch {
    /// Whether it is to be told now.
    fn look(&mut self, is_at: bool, now_millis: u64, secs: u32) -> bool {
        self.is_told &= is_at;
        let interval = u64::from(secs) * 1_000;
        let rests = |told: u64| now_millis.saturating_sub(told) < interval;
        if !is_at || self.is_told || self.told_millis.is_some_and(rests) {
            return false;
        }
        (self.is_told, self.told_millis) = (true, Some(now_millis));
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

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Thresholds = Thresholds {
        notify_pool_high: Some(80),
        notify_pool_low: Some(20),
        notify_mappings: Some(100),
        notify_subscribers: None,
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
    fn what_comes_within_the_interval_is_told_behind_it() {
        let mut watched = Watched::default();
        let mut look = |usage, secs: u64| watched.look(&AT, values(usage, 0), secs * 1_000);
        assert_eq!(look(80, 0), [Due::PoolUsageHigh]);
        assert_eq!(look(50, 1), []);
        assert_eq!(look(90, 2), []);
        assert_eq!(look(90, 19), [], "at its end");
        assert_eq!(look(90, 20), [Due::PoolUsageHigh]);
        assert_eq!(look(90, 60), [], "once");
        assert_eq!(look(50, 61), []);
        assert_eq!(look(90, 62), [Due::PoolUsageHigh]);
        assert_eq!(look(50, 63), []);
        assert_eq!(look(90, 64), []);
        assert_eq!(look(50, 81), []);
        assert_eq!(look(50, 82), [], "it is not there any more");
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
}
