//! The routes of one family in their two orders, and how they come and go.

use std::sync::{Arc, OnceLock};

use super::key::{BodyKey, Key, RunKey};
use super::{Placement, Put, RouteCount};
use crate::ordered::{Build, Iter, Ordered};
use crate::prefix::RouteAddress;
use crate::route_bodies::{Bodies, BodyId, Interner};
use crate::row::route::{Route, RouteBody};

/// To each route of a body its ordinal.
type ByBody<A> = Ordered<BodyKey<A>, u32>;

/// Where numbering of a run starts: half of the numbers are before it.
pub(super) const FIRST_ORDINAL: u32 = 1 << 31;

/// The routes of one family.
#[derive(Debug, Clone)]
pub(super) struct Family<A: RouteAddress> {
    pub(super) by_prefix: Ordered<Key<A>, BodyId>,
    /// To each route of a body its ordinal; see [`Family::by_body`].
    by_body: ByBody<A>,
    /// The same of routes that were loaded whole, made when it is asked for.
    loaded: Option<Arc<OnceLock<ByBody<A>>>>,
    /// How many there are, by table.
    pub(super) counts: Ordered<u32, RouteCount>,
}

impl<A: RouteAddress> Default for Family<A> {
    fn default() -> Self {
        Self {
            by_prefix: Ordered::default(),
            by_body: Ordered::default(),
            loaded: None,
            counts: Ordered::default(),
        }
    }
}

impl<A: RouteAddress> Family<A> {
    pub(super) fn heap_bytes(&self) -> usize {
        let loaded = self.loaded.as_ref().and_then(|loaded| loaded.get());
        let by_body = loaded.unwrap_or(&self.by_body).heap_bytes();
        self.by_prefix.heap_bytes() + by_body + self.counts.heap_bytes()
    }

    /// Of routes that were loaded whole. Their order by body is made when it
    /// is first asked for: a file that is asked for prefixes alone never
    /// needs it, and it is half of the memory and of the time of a load.
    pub(super) fn of_load(
        by_prefix: Ordered<Key<A>, BodyId>,
        counts: Ordered<u32, RouteCount>,
    ) -> Self {
        Self {
            by_prefix,
            counts,
            by_body: Ordered::default(),
            loaded: Some(Arc::default()),
        }
    }

    /// To each route of a body its ordinal. O(1); the first time after a
    /// load O(n), some 60 ms for a million, for which others who need it
    /// wait.
    pub(super) fn by_body(&self) -> &ByBody<A> {
        match &self.loaded {
            None => &self.by_body,
            Some(loaded) => loaded.get_or_init(|| by_body(&self.by_prefix)),
        }
    }

    /// The same, to be changed.
    fn by_body_mut(&mut self) -> &mut ByBody<A> {
        if let Some(loaded) = self.loaded.take() {
            let made = loaded.get_or_init(|| by_body(&self.by_prefix));
            self.by_body = made.clone();
        }
        &mut self.by_body
    }

    /// The routes with a body.
    pub(super) fn of_body(&self, id: BodyId) -> impl Iterator<Item = Key<A>> {
        self.of_body_from(id, Key::first_of(0, A::ZERO, 0).run())
    }

    /// The routes with a body from a run on (itself included).
    pub(super) fn of_body_from(&self, id: BodyId, from: RunKey<A>) -> impl Iterator<Item = Key<A>> {
        self.by_body()
            .from(&from.with_body(id))
            .take_while(move |(key, _)| key.body() == id)
            .map(|(key, ordinal)| key.run().at(*ordinal))
    }

    /// The route of a run with this body.
    pub(super) fn find(&self, id: BodyId, run: RunKey<A>) -> Option<Key<A>> {
        let ordinal = self.by_body().get(&run.with_body(id))?;
        Some(run.at(*ordinal))
    }

    /// The routes of a run in their order.
    pub(super) fn run(&self, run: RunKey<A>) -> impl Iterator<Item = (&Key<A>, &BodyId)> {
        self.by_prefix
            .from(&run.at(0))
            .take_while(move |(key, _)| key.run() == run)
    }

    /// How many routes a run has. O(log n).
    pub(super) fn run_len(&self, run: RunKey<A>) -> usize {
        let behind = self.by_prefix.rank(&run.at(u32::MAX));
        let last = usize::from(self.by_prefix.contains_key(&run.at(u32::MAX)));
        behind + last - self.by_prefix.rank(&run.at(0))
    }

    pub(super) fn put(
        &mut self,
        bodies: &mut Bodies,
        interner: &mut Interner,
        address: A,
        route: Route,
        placement: Placement,
    ) -> Put {
        let run = RunKey::of(address, &route);
        let last = self.last_of(run);
        let same = last.and_then(|_| self.find(interner.find(&route.body)?, run));
        if same.is_some() {
            return Put::Same;
        }
        match placement {
            Placement::Last => self.append(run, last, interner.take(bodies, route.body)),
            Placement::First => self.prepend(run, interner.take(bodies, route.body)),
            Placement::At(ordinal) => {
                let id = interner.take(bodies, route.body);
                match self.by_prefix.contains_key(&run.at(ordinal)) {
                    true => self.append(run, last, id),
                    false => self.put_key(run.at(ordinal), id),
                }
            }
            Placement::InsteadOfFirst if last.is_some() => {
                return self.replace_first(bodies, interner, run, route);
            }
            Placement::InsteadOfFirst => {
                self.append(run, None, interner.take(bodies, route.body));
            }
        }
        Put::Added
    }

    /// Whether [`Family::put`] would make the family longer.
    pub(super) fn would_add(
        &self,
        interner: &Interner,
        address: A,
        route: &Route,
        placement: Placement,
    ) -> bool {
        let run = RunKey::of(address, route);
        let has_equal = || {
            let id = interner.find(&route.body);
            id.is_some_and(|id| self.find(id, run).is_some())
        };
        match placement {
            Placement::InsteadOfFirst => self.last_of(run).is_none(),
            Placement::First | Placement::Last | Placement::At(_) => !has_equal(),
        }
    }

    pub(super) fn remove(&mut self, address: A, route: &Route<&RouteBody>, id: BodyId) -> bool {
        let run = RunKey::of(address, route);
        let Some(ordinal) = self.by_body_mut().remove(&run.with_body(id)) else {
            return false;
        };
        self.by_prefix.remove(&run.at(ordinal)).is_some()
    }

    /// The ordinal of the last route of a run.
    fn last_of(&self, run: RunKey<A>) -> Option<u32> {
        let (key, _) = self.by_prefix.last_to(&run.at(u32::MAX))?;
        (key.run() == run).then(|| key.ordinal())
    }

    fn append(&mut self, run: RunKey<A>, last: Option<u32>, id: BodyId) {
        let ordinal = match last {
            Some(u32::MAX) => self.renumber(run).1,
            Some(last) => last + 1,
            None => FIRST_ORDINAL,
        };
        self.put_key(run.at(ordinal), id);
    }

    /// The others keep their numbers: who walks the table names routes by
    /// them.
    fn prepend(&mut self, run: RunKey<A>, id: BodyId) {
        let first = self.run(run).next().map(|(key, _)| key.ordinal());
        let ordinal = match first {
            Some(0) => self.renumber(run).0,
            Some(first) => first - 1,
            None => FIRST_ORDINAL,
        };
        self.put_key(run.at(ordinal), id);
    }

    fn replace_first(
        &mut self,
        bodies: &mut Bodies,
        interner: &mut Interner,
        run: RunKey<A>,
        route: Route,
    ) -> Put {
        let first = self.run(run).next();
        let Some((key, old)) = first.map(|(key, id)| (*key, *id)) else {
            return Put::Same;
        };
        let Some(old_body) = bodies.get(old).cloned() else {
            return Put::Same;
        };
        let replaced = route.with_body(Arc::clone(&old_body));
        let id = interner.take(bodies, route.body);
        self.by_body_mut().remove(&run.with_body(old));
        self.put_key(key, id);
        interner.give_back(bodies, &old_body);
        Put::Replaced(replaced)
    }

    fn put_key(&mut self, key: Key<A>, id: BodyId) {
        // First: it is made of the routes that are there.
        self.by_body_mut()
            .insert(key.run().with_body(id), key.ordinal());
        self.by_prefix.insert(key, id);
    }

    /// Numbers a run anew around the middle; gives the numbers before its
    /// first route and behind its last. Two billion routes come and go at
    /// one end of a run before it is needed, so a change costs O(log n) all
    /// the same.
    fn renumber(&mut self, run: RunKey<A>) -> (u32, u32) {
        // First: it is made of the routes that are there.
        self.by_body_mut();
        let routes: Vec<(Key<A>, BodyId)> = self.run(run).map(|(key, id)| (*key, *id)).collect();
        for (key, _) in &routes {
            self.by_prefix.remove(key);
        }
        // A run is shorter than the numbers: rows are counted in 32 bits.
        let half = u32::try_from(routes.len() / 2).unwrap_or(FIRST_ORDINAL - 1);
        let before = FIRST_ORDINAL - 1 - half.min(FIRST_ORDINAL - 1);
        let mut next = before;
        for (_, id) in routes {
            next = next.saturating_add(1);
            self.put_key(run.at(next), id);
        }
        (before, next.saturating_add(1))
    }
}

/// Routes in the order of prefixes by their bodies: sorted by counting the
/// routes of each body. O(n).
fn by_body<A: RouteAddress>(rows: &Ordered<Key<A>, BodyId>) -> ByBody<A> {
    // Where the routes of each body begin.
    let mut ends: Vec<u32> = Vec::new();
    for (_, id) in rows.iter() {
        let behind = id.0 as usize + 1;
        if ends.len() <= behind {
            ends.resize(behind + 1, 0);
        }
        ends[behind] += 1;
    }
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    let none = RunKey::new(0, A::ZERO, 0, 0, 0);
    let mut sorted: Vec<(BodyKey<A>, u32)> = vec![(none.with_body(BodyId(0)), 0); rows.len()];
    for (key, id) in rows.iter() {
        let end = &mut ends[id.0 as usize];
        sorted[*end as usize] = (key.run().with_body(*id), key.ordinal());
        *end += 1;
    }
    let mut build = Build::default();
    for (key, ordinal) in sorted {
        build.push(key, ordinal);
    }
    build.finish()
}

/// The prefixes of a table that cover an address, the longest first: the
/// routes of each, in their order.
///
/// The longest covering prefix is the last key at or before (address,
/// length) that covers it. A key found there that does not cover it has
/// `common` bits in common, and no covering prefix can be longer than that:
/// go on from (address masked to `common`, `common`).
pub(super) struct Covering<'a, A: RouteAddress> {
    pub(super) family: &'a Family<A>,
    pub(super) table: u32,
    pub(super) address: A,
    /// Longest length still to be looked for.
    pub(super) len: Option<u8>,
}

impl<'a, A: RouteAddress> Iterator for Covering<'a, A> {
    type Item = OfPrefix<'a, A>;

    fn next(&mut self) -> Option<OfPrefix<'a, A>> {
        loop {
            let len = self.len.take()?;
            let probe = Key::last_of(self.table, self.address, len);
            let rows = self.family.by_prefix.from_last_to(&probe)?;
            let run = rows.key()?.run();
            if run.table() != self.table {
                return None;
            }
            let common = run.address().common_bits(self.address);
            let found = run.len();
            if found <= common {
                self.len = found.checked_sub(1);
                return Some(OfPrefix::new(self.family, rows, run));
            }
            self.len = Some(common);
        }
    }
}

/// The routes of one prefix of a table, in their order.
pub(super) struct OfPrefix<'a, A: RouteAddress> {
    rows: Iter<'a, Key<A>, BodyId>,
    run: RunKey<A>,
}

impl<'a, A: RouteAddress> OfPrefix<'a, A> {
    /// `last`: at the last of them. Nearly always it is the only one, and
    /// the row before it tells.
    fn new(family: &'a Family<A>, last: Iter<'a, Key<A>, BodyId>, run: RunKey<A>) -> Self {
        let is_first = last
            .key_before()
            .is_some_and(|before| !before.is_beside(run));
        let rows = if is_first {
            last
        } else {
            let first = Key::first_of(run.table(), run.address(), run.len());
            family.by_prefix.from(&first)
        };
        Self { rows, run }
    }
}

impl<'a, A: RouteAddress> Iterator for OfPrefix<'a, A> {
    type Item = (&'a Key<A>, &'a BodyId);

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next().filter(|(key, _)| key.is_beside(self.run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunKey<u32> {
        RunKey::new(254, 0x0a00_0000, 8, 0, 0)
    }

    fn ids(family: &Family<u32>) -> Vec<BodyId> {
        let ids: Vec<_> = family.run(run()).map(|(_, id)| *id).collect();
        for (key, id) in family.run(run()) {
            assert_eq!(family.find(*id, run()), Some(*key));
        }
        assert_eq!(family.run_len(run()), ids.len());
        ids
    }

    #[test]
    fn a_run_whose_numbers_end_is_numbered_anew_and_keeps_its_order() {
        for length in [1, 2, 7] {
            let bodies: Vec<BodyId> = (1..=length).map(BodyId).collect();
            let mut at_the_end = Family::default();
            let mut at_the_start = Family::default();
            for (id, ordinal) in bodies.iter().zip(0..) {
                at_the_end.put_key(run().at(u32::MAX - length + 1 + ordinal), *id);
                at_the_start.put_key(run().at(ordinal), *id);
            }
            let last = at_the_end.last_of(run());
            assert_eq!(last, Some(u32::MAX));
            at_the_end.append(run(), last, BodyId(99));
            assert_eq!(ids(&at_the_end), [&bodies[..], &[BodyId(99)]].concat());
            at_the_start.prepend(run(), BodyId(99));
            assert_eq!(ids(&at_the_start), [&[BodyId(99)], &bodies[..]].concat());
        }
    }
}
