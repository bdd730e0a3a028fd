//! What is told back to zebra: which of its routes packets go by here
//! (`RTM_F_OFFLOAD`), and which they do not (`RTM_F_OFFLOAD_FAILED`). Only
//! where packets are forwarded by the feed.
//!
//! A route that was told is acknowledged once whoever forwards has looked at
//! the rows as they were published with it. What waits for that is bounded:
//! where more routes wait than are kept, all routes are gone through
//! instead. zebra is never waited for: bytes that it does not read stay
//! here, a few, and routes go on waiting as rows do, each once, as it is
//! when its turn comes.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink::encode;
use table::row::route::protocol;
use table::{AF_INET, AF_INET6, Feeder, Generation, RouteRef, Routes};

use super::frames;

/// A prefix of a table.
pub(super) type Place = (u32, IpNet);

/// Routes that wait, at most.
const MOST: usize = 1 << 16;
/// Bytes that wait for the peer to read them: once there are so many,
/// nothing more is made.
const FULL: usize = 64 << 10;
/// Routes that are looked at in one go.
const GO: usize = 4_096;

/// How whoever forwards by the feed stands to its routes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forwarded {
    /// Rows up to this generation were looked at.
    pub seen: Generation,
    /// The routing tables that packets are looked up in, each with its
    /// family (`AF_INET`, `AF_INET6`). Routes of others are not acknowledged.
    pub tables: BTreeSet<(u8, u32)>,
    /// Prefixes of a table by whose routes packets do not go since
    /// (`true`), or do again (`false`).
    pub refused: BTreeMap<(u32, IpNet), bool>,
}

/// Acknowledgements of one feed.
#[derive(Debug, Default)]
pub(super) struct Acknowledging {
    /// What is known of the forwarding; nothing before it began.
    seen: Option<Generation>,
    tables: BTreeSet<(u8, u32)>,
    refused: BTreeSet<Place>,
    /// Told since the rows were published last. While there are any nothing
    /// is made: the rows are newer than what readers see.
    fresh: Vec<Place>,
    /// Since then next hops changed, and routes with them.
    has_changed: bool,
    /// The newest generation of the rows, and the one of before which
    /// nothing may be made: routes changed with their next hops.
    published: Generation,
    not_before: Generation,
    /// Told, with the generation that has them; the newest of a place
    /// counts.
    waiting: VecDeque<(Generation, Place)>,
    newest: HashMap<Place, Generation>,
    walk: Option<Walk>,
    /// There was no room for what was told since the walk began.
    walk_again: bool,
    /// For the peer to read.
    bytes: Vec<u8>,
    counts: Counts,
}

/// How many were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// That a route is forwarded by.
    pub(super) forwarded: u64,
    /// That it is not.
    pub(super) refused: u64,
}

/// All routes gone through.
#[derive(Debug)]
struct Walk {
    /// Not before the forwarding has seen this.
    since: Generation,
    /// The last place that was dealt with.
    after: Option<Place>,
}

impl Acknowledging {
    /// Another connection: what waited for the one before is void.
    pub(super) fn begin(&mut self) {
        *self = Self {
            seen: self.seen,
            tables: std::mem::take(&mut self.tables),
            refused: std::mem::take(&mut self.refused),
            published: self.published,
            counts: self.counts,
            ..Self::default()
        };
    }

    /// The peer told a route.
    pub(super) fn told(&mut self, place: Place) {
        // One more than are kept says that there were too many.
        if self.fresh.len() <= MOST {
            self.fresh.push(place);
        }
    }

    /// It changed next hops, and the routes that go by them.
    pub(super) fn changed_hops(&mut self) {
        self.has_changed = true;
    }

    /// The rows were published.
    pub(super) fn published(&mut self, generation: Generation) {
        self.published = generation;
        if std::mem::take(&mut self.has_changed) {
            self.not_before = generation;
        }
        for place in std::mem::take(&mut self.fresh) {
            self.wait(place, generation);
        }
    }

    fn wait(&mut self, place: Place, generation: Generation) {
        if self.waiting.len() >= MOST {
            self.go_through_all();
        }
        self.newest.insert(place, generation);
        self.waiting.push_back((generation, place));
    }

    /// Goes through all routes instead of what waits, once all that was
    /// published so far was seen. A walk under way waits for that as well,
    /// and begins anew behind its end.
    fn go_through_all(&mut self) {
        self.waiting.clear();
        self.newest.clear();
        let since = self.published;
        match &mut self.walk {
            Some(walk) => {
                walk.since = since;
                self.walk_again |= walk.after.is_some();
            }
            None => self.walk = Some(Walk { since, after: None }),
        }
    }

    /// Whoever forwards got further.
    pub(super) fn forwarded(&mut self, news: Forwarded) {
        self.seen = Some(news.seen);
        let before = std::mem::replace(&mut self.tables, news.tables);
        if !self.tables.is_subset(&before) {
            self.go_through_all();
        }
        for (place, is_refused) in news.refused {
            match is_refused {
                true => self.refused.insert(place),
                false => self.refused.remove(&place),
            };
            // Another one may be on its way already; and what zebra told of
            // it since may not have been seen.
            if !self.newest.contains_key(&place) {
                self.wait(place, self.published);
            }
        }
    }

    /// Bytes for the peer, as far as they were made.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// So many of them were taken.
    pub(super) fn taken(&mut self, bytes: usize) {
        self.bytes.drain(..bytes.min(self.bytes.len()));
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Makes what can be made now, a bounded piece. False: there is nothing
    /// more to make before something happens.
    pub(super) fn make(&mut self, feeder: &Feeder) -> bool {
        let Some(seen) = self.seen.filter(|seen| *seen >= self.not_before) else {
            return false;
        };
        if !self.fresh.is_empty() || self.has_changed {
            return false;
        }
        for _ in 0..GO {
            if self.bytes.len() >= FULL {
                return false;
            }
            if self
                .waiting
                .front()
                .is_some_and(|(since, _)| *since <= seen)
            {
                self.next(feeder);
            } else if !self.step(feeder, seen) {
                return false;
            }
        }
        true
    }

    /// The first that waits.
    fn next(&mut self, feeder: &Feeder) {
        let Some((generation, place)) = self.waiting.pop_front() else {
            return;
        };
        if self.newest.get(&place) == Some(&generation) {
            self.newest.remove(&place);
            self.acknowledge(feeder, place);
        }
    }

    /// The next place of a walk; false where there is none.
    fn step(&mut self, feeder: &Feeder, seen: Generation) -> bool {
        let Some(walk) = self.walk.as_mut().filter(|walk| walk.since <= seen) else {
            return false;
        };
        let Some(place) = next_place(&feeder.tables().routes, &self.tables, walk.after) else {
            let since = self.published;
            let again = std::mem::take(&mut self.walk_again);
            self.walk = again.then_some(Walk { since, after: None });
            return again;
        };
        walk.after = Some(place);
        // What was told since comes by itself.
        if !self.newest.contains_key(&place) {
            self.acknowledge(feeder, place);
        }
        true
    }

    /// Makes the acknowledgements of a place.
    fn acknowledge(&mut self, feeder: &Feeder, place: Place) {
        let (table, prefix) = place;
        if !self.tables.contains(&(family_of(prefix), table)) {
            return;
        }
        let is_taken = !self.refused.contains(&place);
        for route in feeder.tables().routes.exact(table, prefix) {
            let row = route.with_body(&**route.body);
            // Packets are forwarded by their destination alone.
            let is_for_all =
                row.tos == 0 && row.body.source.is_none_or(|net| net.prefix_len() == 0);
            let is_forwarded = is_taken && is_for_all;
            if !is_of_a_daemon(&route) || feeder.is_unconfirmed(&row) {
                continue;
            }
            let is_made = frames::append(&mut self.bytes, |bytes| {
                encode::acknowledgement(bytes, &row, is_forwarded).is_ok()
            });
            // One that is too long for a frame did not come by one.
            if !is_made {
                continue;
            }
            match is_forwarded {
                true => self.counts.forwarded += 1,
                false => self.counts.refused += 1,
            }
        }
    }
}

/// The place behind another, in the order of families, tables and prefixes.
/// Some seeks.
fn next_place(
    routes: &Routes,
    tables: &BTreeSet<(u8, u32)>,
    after: Option<Place>,
) -> Option<Place> {
    let first = after.map_or((0, 0), |(table, prefix)| (family_of(prefix), table));
    tables.range(first..).find_map(|&(family, table)| {
        let from = match (after, family) {
            (Some((_, prefix)), _) if (family, table) == first => prefix,
            (_, AF_INET) => IpNet::V4(Ipv4Net::default()),
            _ => IpNet::V6(Ipv6Net::default()),
        };
        let mut places = routes.from(table, from).map(|route| (table, route.prefix));
        places.find(|place| Some(*place) != after)
    })
}

fn family_of(prefix: IpNet) -> u8 {
    match prefix {
        IpNet::V4(_) => AF_INET,
        IpNet::V6(_) => AF_INET6,
    }
}

/// Whether a routing daemon has made a route, and may wait to hear of it:
/// not those that zebra learned from the kernel.
fn is_of_a_daemon(route: &RouteRef<'_>) -> bool {
    route.body.protocol > protocol::STATIC
}
