//! Those who feed rows of their own beside the first owner's: a routing
//! daemon's feed, a file.

use std::sync::{Arc, Mutex};

use super::owners::{JoinError, locked};
use super::stale::{Stale, Unconfirmed};
use super::{Change, Limits, Reader, Refused, Shared, TableFull, Writer, first_refused};
use crate::event::Generation;
use crate::links::Links;
use crate::routes::RouteLoad;
use crate::row::nexthop::Nexthop;
use crate::row::route::{Route, RouteBody};
use crate::status::{Phase, Status};
use crate::writer::Tables;

/// Where feeders join a writer. Cheap to clone; for any thread.
#[derive(Debug, Clone)]
pub struct Feeders {
    pub(super) first: Arc<Shared>,
}

/// An owner of rows beside the first. Its tables, limits, events and
/// next-hop ids are its own. Dropped, it leaves and its rows with it.
#[derive(Debug)]
pub struct Feeder {
    name: Arc<str>,
    writer: Writer,
    first: Arc<Shared>,
    status: Arc<Mutex<Status>>,
    /// What has been said of refused rows.
    told_refused: Refused,
    stale: Option<Stale>,
}

impl Feeders {
    /// A new owner with no rows. Its name is what it is asked for by.
    pub fn join(&self, name: &str, limits: Limits) -> Result<Feeder, JoinError> {
        let mut registry = locked(&self.first.registry);
        registry.admit(name)?;
        let mut writer = Writer::new(limits);
        writer.tables.generation = registry.newest();
        // Who saw another of this name takes a snapshot.
        writer.without_events();
        writer.changed = true;
        writer.publish();
        let (name, status) = (Arc::from(name), Arc::default());
        registry.enter(&name, &writer.shared, &status);
        self.first.show_owners(&registry);
        Ok(Feeder {
            name,
            writer,
            first: Arc::clone(&self.first),
            status,
            told_refused: Refused::default(),
            stale: None,
        })
    }
}

impl Feeder {
    /// What it is asked for by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A reader of its rows.
    pub fn reader(&self) -> Reader {
        Reader {
            shared: Arc::clone(&self.writer.shared),
            first: Some(Arc::clone(&self.first)),
        }
    }

    /// The first owner's links, which its rows mean: as of now.
    pub fn named_links(&self) -> Links {
        self.first.published.load().links.clone()
    }

    /// Its rows with all changes so far, published or not.
    pub fn tables(&self) -> &Tables {
        &self.writer.tables
    }

    /// Takes other limits, for rows to come.
    pub fn set_limits(&mut self, limits: Limits) {
        self.writer.set_limits(limits);
    }

    /// Says when the changes that come now happen, milliseconds since the
    /// UNIX epoch.
    pub fn set_time(&mut self, now_millis: u64) {
        self.writer.set_time(now_millis);
    }

    /// Says that the changes up to the next [`Feeder::publish`] are not to
    /// be kept for watchers: a first load.
    pub fn without_events(&mut self) {
        self.writer.without_events();
    }

    /// Changes what is told of how it fares.
    pub fn update_status(&self, change: impl FnOnce(&mut Status)) {
        change(&mut locked(&self.status));
    }

    /// Applies one change; readers see it after [`Feeder::publish`].
    /// O(log n). During a resync, a row that was not told again yet makes
    /// room for one that is told.
    pub fn apply(&mut self, change: Change) -> Result<(), TableFull> {
        let Some(stale) = &mut self.stale else {
            return self.writer.apply(change);
        };
        stale.goes(&self.writer, &change);
        let told = change.clone();
        let refused = self.writer.tables.refused;
        if let Err(full) = self.writer.apply(change) {
            let at_limit = self.writer.tables.len_of(full.table) == full.limit;
            if !at_limit || !stale.make_room(full.table, &mut self.writer) {
                return Err(full);
            }
            self.writer.tables.refused = refused;
            self.writer.apply(told.clone())?;
        }
        stale.told(&self.writer, &told);
        Ok(())
    }

    /// Puts the routes of a load in the place of all that it has; readers
    /// see them after [`Feeder::publish`].
    pub fn replace_routes(&mut self, load: RouteLoad) {
        self.writer.replace_routes(load);
    }

    /// Applies all changes and publishes them. A full table refuses its new
    /// rows and stops none of the others; the first refusal is told.
    pub fn commit(
        &mut self,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<Generation, TableFull> {
        let refused = first_refused(changes, |change| self.apply(change));
        let generation = self.publish();
        refused.map_or(Ok(generation), Err)
    }

    /// Publishes what was applied since. The other owners' rows are shared
    /// as they are.
    pub fn publish(&mut self) -> Generation {
        let generation = self.writer.publish();
        self.tell_refused();
        let mut registry = locked(&self.first.registry);
        if registry.update(&self.name) {
            self.first.show_owners(&registry);
        }
        generation
    }

    /// Begins a resync: all its rows are to be told again. One step,
    /// whatever their number; readers see them meanwhile. A resync that was
    /// under way begins anew.
    pub fn begin(&mut self) {
        self.stale = Some(Stale::all(&self.writer));
        self.update_status(|status| {
            if status.phase == Phase::Live {
                status.phase = Phase::Resyncing;
                status.resyncs += 1;
            }
        });
        self.writer.forget_refused();
        self.tell_refused();
    }

    /// Rows that were not told again since the resync that is under way
    /// began. O(1).
    pub fn unconfirmed(&self) -> usize {
        self.stale.as_ref().map_or(0, Stale::len)
    }

    /// Those rows as they are now; `None`: no resync is under way. O(1).
    pub fn unconfirmed_rows(&self) -> Option<Unconfirmed> {
        let stale = self.stale.as_ref()?;
        Some(Unconfirmed::of(stale, &self.writer))
    }

    /// Whether a route was not told again since. O(log n).
    pub fn is_unconfirmed(&self, route: &Route<&RouteBody>) -> bool {
        let stale = self.stale.as_ref();
        stale.is_some_and(|stale| stale.has_route(&self.writer, route))
    }

    /// Whether a route with this body was not told again since. O(log n).
    pub fn has_unconfirmed(&self, body: &RouteBody) -> bool {
        let stale = self.stale.as_ref();
        stale.is_some_and(|stale| stale.has_body(&self.writer, body))
    }

    /// Gives all routes with a body another one, in their places. Who was
    /// not told again stays so. False, and nothing done, where no route has
    /// the first body or some have the second already. O(1) but for the
    /// events, and O(routes with it) where the number of next hops changes.
    pub fn rewrite_body(&mut self, from: &RouteBody, to: RouteBody) -> bool {
        self.writer.rewrite_body(from, to)
    }

    /// Gives a next-hop object another id, which must be free, also as a
    /// member of the groups that were not told again since. Where it was
    /// not told again it stays so. O(log n) for each of the groups.
    pub fn renumber_nexthop(&mut self, id: u32, new: u32) {
        let nexthops = &self.writer.tables.nexthops;
        let Some(old) = nexthops.get(id) else {
            return;
        };
        let renumbered = Nexthop {
            id: new,
            ..(**old).clone()
        };
        let mut moved = vec![(id, renumbered)];
        let is_left = |id| self.stale.as_ref().is_some_and(|left| left.has_nexthop(id));
        for group in nexthops.groups_with(id).filter(|group| is_left(group.id)) {
            let mut group = (**group).clone();
            for member in group.group.iter_mut().filter(|member| member.id == id) {
                member.id = new;
            }
            moved.push((group.id, group));
        }
        for (id, object) in moved {
            if let Some(stale) = &mut self.stale {
                stale.renumbered(id, object.clone());
            }
            self.writer.renumber_nexthop(id, object);
        }
    }

    /// Ends it: sweeps what was not told again, publishes, and gives the
    /// number of rows swept. O(log n) for each of those.
    pub fn end(&mut self) -> usize {
        self.end_but(|_| false)
    }

    /// The same, but the routes of some tables stay unconfirmed: nobody
    /// tells them again. O(rows that were not told again).
    pub fn end_but(&mut self, stays: impl Fn(u32) -> bool) -> usize {
        let stale = self.stale.take();
        let swept = stale.map_or(0, |mut stale| {
            let left = stale.split_off(stays);
            self.stale = (left.len() > 0).then_some(left);
            stale.sweep(&mut self.writer)
        });
        self.publish();
        self.update_status(|status| status.phase = Phase::Live);
        swept
    }

    /// Says in the status what was refused and which tables miss rows.
    fn tell_refused(&mut self) {
        let refused = self.writer.tables.refused;
        if refused == self.told_refused {
            return;
        }
        let before = std::mem::replace(&mut self.told_refused, refused).by_table();
        self.update_status(|status| {
            status.incomplete.clear();
            for ((table, now), (_, before)) in refused.by_table().into_iter().zip(before) {
                // Less than before: it was forgotten, and counted anew.
                let new = now.checked_sub(before).unwrap_or(now);
                *status.refused.entry(table).or_default() += new;
                if now > 0 {
                    status.incomplete.insert(table);
                }
            }
        });
    }
}

impl Drop for Feeder {
    /// Its rows leave the snapshot in one step, and its readers see none.
    fn drop(&mut self) {
        // First: who finds no rows finds why.
        let ended = format!("{} left", self.name);
        self.update_status(|status| status.phase = Phase::Ended(ended));
        // The memory is given back here, and not while others wait.
        let rows = self.writer.shared.published.load();
        let last = self.writer.clear();
        let mut registry = locked(&self.first.registry);
        registry.remove(&self.name, last);
        self.first.show_owners(&registry);
        drop(registry);
        drop(rows);
    }
}
