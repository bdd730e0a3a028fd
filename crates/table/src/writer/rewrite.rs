//! What changes many rows at once: a body under all its routes, the id of a
//! next-hop object. For feeders.

use std::sync::Arc;

use super::Writer;
use crate::event::{Event, Operation, Row};
use crate::row::nexthop::Nexthop;
use crate::row::route::RouteBody;

impl Writer {
    /// [`super::Feeder::rewrite_body`].
    pub(super) fn rewrite_body(&mut self, from: &RouteBody, to: RouteBody) -> bool {
        let routes = &mut self.tables.routes;
        let former = Arc::new(from.clone());
        let Some(id) = routes.rewrite(&mut self.interner, from, to) else {
            return false;
        };
        self.changed = true;
        // Cheap to clone; the loop writes beside it.
        let routes = self.tables.routes.clone();
        for route in routes.of_body(id) {
            if self.pending.is_none() {
                break;
            }
            let row = route.to_shared();
            let before = row.with_body(Arc::clone(&former));
            self.record(Event::changed(Row::Route(before), Row::Route(row)));
        }
        true
    }

    /// Puts an object in place of the one that has this id.
    pub(super) fn renumber_nexthop(&mut self, id: u32, object: Nexthop) {
        let new = Arc::new(object);
        let is_other = id != new.id;
        if is_other && let Some(old) = self.tables.nexthops.remove(id) {
            self.record(Event::new(Operation::Deleted, Row::Nexthop(old)));
        }
        let old = self.tables.nexthops.put(Arc::clone(&new));
        self.put(old.map(Row::Nexthop), Row::Nexthop(new));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Change, Feeder, Limits, Writer as First};
    use super::*;
    use crate::event::Events;
    use crate::routes::Placement;
    use crate::row::nexthop::GroupMember;
    use crate::row::route::{NextHop, NextHops, Route};

    fn body(links: &[u32]) -> RouteBody {
        let hop = |link: &u32| NextHop {
            link: *link,
            weight: 1,
            ..NextHop::default()
        };
        RouteBody {
            kind: 1,
            protocol: 4,
            next_hops: match links {
                [one] => NextHops::One(hop(one)),
                many => NextHops::Many(many.iter().map(hop).collect()),
            },
            ..RouteBody::default()
        }
    }

    fn put(feeder: &mut Feeder, prefix: &str, body: RouteBody) {
        let row = Route {
            table: 254,
            prefix: prefix.parse().unwrap(),
            tos: 0,
            metric: 0,
            body,
        };
        feeder
            .apply(Change::PutRoute(row, Placement::InsteadOfFirst))
            .unwrap();
    }

    #[test]
    fn a_body_changes_under_its_routes_and_nobody_was_told_again_by_it() {
        let first = First::default();
        let mut feeder = first.feeders().join("frr", Limits::default()).unwrap();
        for prefix in ["10.0.0.0/8", "11.0.0.0/8", "2001:db8::/32"] {
            put(&mut feeder, prefix, body(&[1]));
        }
        put(&mut feeder, "12.0.0.0/8", body(&[2]));
        let seen = feeder.publish();
        feeder.begin();
        put(&mut feeder, "10.0.0.0/8", body(&[1]));
        assert_eq!(feeder.unconfirmed(), 3);
        assert!(feeder.rewrite_body(&body(&[1]), body(&[3, 4])));
        // The one is no more there, the other is in use.
        assert!(!feeder.rewrite_body(&body(&[1]), body(&[5])));
        assert!(!feeder.rewrite_body(&body(&[3, 4]), body(&[2])));
        feeder.publish();
        let tables = feeder.tables().clone();
        let routes = &tables.routes;
        let over = |link| routes.over_link(link).count();
        assert_eq!([1, 2, 3, 4].map(over), [0, 1, 3, 3]);
        let count = |count: crate::RouteCount| (count.routes, count.hops);
        assert_eq!(count(routes.count_v4(254)), (3, 5));
        assert_eq!(count(routes.count_v6(254)), (1, 2));
        let Events::Batches(batches) = feeder.reader().events_after(seen, Duration::ZERO) else {
            unreachable!()
        };
        assert_eq!(
            batches
                .iter()
                .map(|batch| batch.events.len())
                .sum::<usize>(),
            3
        );
        // One of the three was told; of the others one is told now.
        assert_eq!(feeder.unconfirmed(), 3);
        assert!(feeder.has_unconfirmed(&body(&[3, 4])));
        put(&mut feeder, "11.0.0.0/8", body(&[3, 4]));
        assert_eq!((feeder.unconfirmed(), feeder.end()), (2, 2));
        assert_eq!(feeder.tables().routes.len(), 2);
    }

    #[test]
    fn an_object_has_another_id_and_the_groups_that_were_not_told_again_know() {
        let first = First::default();
        let mut feeder = first.feeders().join("frr", Limits::default()).unwrap();
        let object = |id, members: &[u32]| Nexthop {
            id,
            group: members
                .iter()
                .map(|id| GroupMember { id: *id, weight: 1 })
                .collect(),
            ..Nexthop::default()
        };
        for (id, members) in [(1, &[][..]), (7, &[1]), (8, &[1])] {
            let change = Change::PutNexthop(object(id, members));
            feeder.apply(change).unwrap();
        }
        feeder.begin();
        feeder.apply(Change::PutNexthop(object(8, &[1]))).unwrap();
        feeder.renumber_nexthop(1, 99);
        feeder.renumber_nexthop(5, 98);
        let left: Vec<Nexthop> = feeder
            .tables()
            .nexthops
            .iter()
            .map(|row| (**row).clone())
            .collect();
        assert_eq!(left, [object(7, &[99]), object(8, &[1]), object(99, &[])]);
        assert_eq!((feeder.unconfirmed(), feeder.end()), (2, 2));
    }
}
