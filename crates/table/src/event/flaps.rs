//! How often the routes of an owner changed, prefix by prefix, as far back
//! as its events are kept: nothing is kept beside them.

use std::collections::HashMap;

use ipnet::IpNet;

use super::{Batch, Log, Operation, Row};

/// How the routes of one prefix changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flaps {
    /// Times that a route came.
    pub added: u32,
    /// Times that one changed in its place.
    pub changed: u32,
    /// Times that one went.
    pub deleted: u32,
    /// The first of these, milliseconds since the UNIX epoch.
    pub first_millis: u64,
    /// The last.
    pub last_millis: u64,
}

/// How the routes of an owner changed.
#[derive(Debug, Clone, Default)]
pub struct RouteFlaps {
    /// Changes up to this moment may be forgotten; milliseconds since the
    /// UNIX epoch, 0: none is.
    pub forgotten_at_millis: u64,
    /// By table and prefix.
    pub prefixes: HashMap<(u32, IpNet), Flaps>,
}

impl Flaps {
    /// All of them.
    pub fn times(&self) -> u64 {
        u64::from(self.added) + u64::from(self.changed) + u64::from(self.deleted)
    }

    /// Those of another prefix beside these.
    pub fn and(self, other: &Self) -> Self {
        let first = match (self.times(), other.times()) {
            (0, _) => other.first_millis,
            (_, 0) => self.first_millis,
            _ => self.first_millis.min(other.first_millis),
        };
        Self {
            added: self.added.saturating_add(other.added),
            changed: self.changed.saturating_add(other.changed),
            deleted: self.deleted.saturating_add(other.deleted),
            first_millis: first,
            last_millis: self.last_millis.max(other.last_millis),
        }
    }

    fn count(&mut self, operation: Operation, at_millis: u64) {
        if self.times() == 0 {
            self.first_millis = at_millis;
        }
        self.last_millis = self.last_millis.max(at_millis);
        let counter = match operation {
            Operation::Added => &mut self.added,
            Operation::Changed => &mut self.changed,
            Operation::Deleted => &mut self.deleted,
        };
        *counter = counter.saturating_add(1);
    }
}

impl RouteFlaps {
    fn count(&mut self, batch: &Batch, is_wanted: &dyn Fn(u32, IpNet) -> bool) {
        for event in &*batch.events {
            if let Row::Route(route) = &event.row
                && is_wanted(route.table, route.prefix)
            {
                let place = (route.table, route.prefix);
                let flaps = self.prefixes.entry(place).or_default();
                flaps.count(event.operation, batch.at_millis);
            }
        }
    }
}

impl Log {
    /// How the routes changed since a moment, of the tables and prefixes that
    /// are wanted. O(events kept), outside of the lock.
    pub(crate) fn route_flaps(
        &self,
        since_millis: u64,
        is_wanted: &dyn Fn(u32, IpNet) -> bool,
    ) -> RouteFlaps {
        let (forgotten_at_millis, closed, open) = self.all();
        let mut flaps = RouteFlaps {
            forgotten_at_millis,
            prefixes: HashMap::new(),
        };
        let batches = closed.iter().flat_map(|chunk| &**chunk).chain(&open);
        for batch in batches.filter(|batch| batch.at_millis >= since_millis) {
            flaps.count(batch, is_wanted);
        }
        flaps
    }

    /// When routes changed since a moment: table, prefix, milliseconds since
    /// the UNIX epoch, the oldest first. O(events kept), outside of the lock.
    pub(crate) fn route_times(&self, since_millis: u64, each: &mut dyn FnMut(u32, IpNet, u64)) {
        let (_, closed, open) = self.all();
        let batches = closed.iter().flat_map(|chunk| &**chunk).chain(&open);
        for batch in batches.filter(|batch| batch.at_millis >= since_millis) {
            for event in &*batch.events {
                if let Row::Route(route) = &event.row {
                    each(route.table, route.prefix, batch.at_millis);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Event, Generation, MAX_EVENTS};
    use super::*;
    use crate::row::route::{Route, RouteBody};

    fn event(operation: Operation, prefix: &str) -> Event {
        let route = Route {
            table: 254,
            prefix: prefix.parse().unwrap(),
            tos: 0,
            metric: 0,
            body: Arc::new(RouteBody::default()),
        };
        Event::new(operation, Row::Route(route))
    }

    fn of(flaps: &RouteFlaps, prefix: &str) -> Flaps {
        let place = (254, prefix.parse().unwrap());
        flaps.prefixes.get(&place).copied().unwrap_or_default()
    }

    #[test]
    fn each_change_counts_once_in_its_time() {
        use Operation::{Added, Changed, Deleted};
        let log = Log::default();
        let (one, other) = ("10.0.0.0/8", "2001:db8::/32");
        for (at, operation, prefix) in [
            (10, Added, one),
            (20, Deleted, one),
            (30, Added, one),
            (30, Added, other),
            (40, Changed, one),
        ] {
            log.push(Generation(at), at, Some(vec![event(operation, prefix)]));
        }
        let all = log.route_flaps(0, &|_, _| true);
        assert_eq!(all.forgotten_at_millis, 0);
        let expected = Flaps {
            added: 2,
            changed: 1,
            deleted: 1,
            first_millis: 10,
            last_millis: 40,
        };
        assert_eq!(of(&all, one), expected);
        assert_eq!((all.prefixes.len(), of(&all, one).times()), (2, 4));
        let late = log.route_flaps(30, &|_, _| true);
        assert_eq!(
            (of(&late, one).times(), of(&late, one).first_millis),
            (2, 30)
        );
        let some = log.route_flaps(0, &|_, prefix| prefix.to_string() == other);
        assert_eq!((some.prefixes.len(), of(&some, other).added), (1, 1));
        let sum = of(&all, one).and(&of(&all, other)).and(&Flaps::default());
        assert_eq!(
            (sum.times(), sum.first_millis, sum.last_millis),
            (5, 10, 40)
        );
    }

    #[test]
    fn what_is_forgotten_is_said() {
        let log = Log::default();
        for at in 1..=MAX_EVENTS as u64 + 300 {
            log.push(
                Generation(at),
                at,
                Some(vec![event(Operation::Changed, "10.0.0.0/8")]),
            );
        }
        let flaps = log.route_flaps(0, &|_, _| true);
        let kept = of(&flaps, "10.0.0.0/8");
        assert!(
            flaps.forgotten_at_millis >= 300,
            "{}",
            flaps.forgotten_at_millis
        );
        assert_eq!(kept.first_millis, flaps.forgotten_at_millis + 1);
        assert!(kept.times() <= MAX_EVENTS as u64);
    }
}
