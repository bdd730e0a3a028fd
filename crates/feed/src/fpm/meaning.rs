//! What a next-hop id means.
//!
//! Ids are zebra's own, and a zebra that was started anew gives the same
//! ids to other next hops. Routes hold what their id meant when they were
//! told, beside the id, as the kernel's do. So:
//!
//! - An object that changes changes all routes with its id, in one step
//!   for each distinct body.
//! - Since a peer began to tell all again, an id means nothing until it was
//!   told. A route that names it before has no next hop until then.
//! - Rows that were not told again keep what their id meant. If it comes to
//!   mean something else, they and the old object get an id of our own,
//!   counted down from the highest: it names the same thing as before.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use table::row::route::kind;
use table::{
    BodyId, Change, Feeder, NextHop, NextHops, Nexthop, Nexthops, RouteBody, RouteRef, TableFull,
};

use super::placing;

/// Meanings that are kept at hand.
const KNOWN: usize = 1 << 16;

/// What an id means: the next hops of a route with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Meaning {
    hops: NextHops,
    is_blackhole: bool,
}

/// What the ids of a feed mean.
#[derive(Debug)]
pub(super) struct Meanings {
    /// Ids told since the resync began; `None`: no resync is under way, and
    /// every object was.
    told: Option<HashSet<u32>>,
    /// What was looked up since the last change of an object.
    known: HashMap<u32, Meaning>,
    /// The last id of our own that was given away.
    last_own: u32,
}

impl Default for Meanings {
    fn default() -> Self {
        Self {
            told: None,
            known: HashMap::new(),
            last_own: u32::MAX,
        }
    }
}

impl Meanings {
    /// A resync begins: no id means anything to rows to come.
    pub(super) fn begin(&mut self) {
        self.told = Some(HashSet::new());
        self.known.clear();
    }

    /// It ended: what is there was told.
    pub(super) fn end(&mut self) {
        self.told = None;
    }

    /// Gives a route that was told the next hops that its id means now.
    pub(super) fn fill(&mut self, feeder: &mut Feeder, body: &mut RouteBody) {
        let Some(id) = body.nexthop_id else {
            return;
        };
        if !self.is_told(&feeder.tables().nexthops, id)
            && feeder.tables().nexthops.get(id).is_some()
        {
            // It is of the time before: nobody is to take it for this one.
            let own = self.free_id(&feeder.tables().nexthops);
            self.set_aside(feeder, id, own);
        }
        let meaning = match self.known.get(&id) {
            Some(meaning) => meaning.clone(),
            None => {
                let meaning = self.meaning(&feeder.tables().nexthops, id);
                if self.known.len() >= KNOWN {
                    self.known.clear();
                }
                self.known.insert(id, meaning.clone());
                meaning
            }
        };
        meaning.give(body);
    }

    /// An object is there, or changed.
    pub(super) fn put(&mut self, feeder: &mut Feeder, row: Nexthop) -> Result<(), TableFull> {
        let id = row.id;
        let old = feeder.tables().nexthops.get(id).cloned();
        let is_changed = old.as_deref() != Some(&row);
        let was_told = self.is_told(&feeder.tables().nexthops, id);
        if was_told && !is_changed {
            return Ok(());
        }
        let before = self.of_affected(feeder, id);
        if is_changed && !was_told {
            let own = self.free_id(&feeder.tables().nexthops);
            self.set_aside(feeder, id, own);
        }
        feeder.apply(Change::PutNexthop(row))?;
        if let Some(told) = &mut self.told {
            told.insert(id);
        }
        self.known.clear();
        for (id, before) in before {
            self.renew(feeder, id, &before, is_changed)?;
        }
        Ok(())
    }

    /// An object is gone. Routes that name it keep what it meant: they are
    /// told apart.
    pub(super) fn delete(&mut self, feeder: &mut Feeder, id: u32) -> Result<(), TableFull> {
        let mut before = self.of_affected(feeder, id);
        before.retain(|(of, _)| *of != id);
        feeder.apply(Change::DeleteNexthop(id))?;
        if let Some(told) = &mut self.told {
            told.remove(&id);
        }
        self.known.clear();
        for (id, before) in before {
            self.renew(feeder, id, &before, true)?;
        }
        Ok(())
    }

    /// What an id means, and each group that it is in and that was told.
    fn of_affected(&self, feeder: &Feeder, id: u32) -> Vec<(u32, Meaning)> {
        let nexthops = &feeder.tables().nexthops;
        let groups = nexthops.groups_with(id).map(|group| group.id);
        let groups = groups.filter(|group| self.is_told(nexthops, *group));
        [id].into_iter()
            .chain(groups)
            .map(|id| (id, self.meaning(nexthops, id)))
            .collect()
    }

    fn is_told(&self, nexthops: &Nexthops, id: u32) -> bool {
        match &self.told {
            Some(told) => told.contains(&id),
            None => nexthops.get(id).is_some(),
        }
    }

    /// What an id means to a route that is told now. O(members of a group).
    fn meaning(&self, nexthops: &Nexthops, id: u32) -> Meaning {
        let object = |id: u32| nexthops.get(id).filter(|_| self.is_told(nexthops, id));
        let Some(of) = object(id) else {
            return Meaning::default();
        };
        let mut hops: Vec<NextHop> = match of.group.is_empty() {
            true => hop(of, 1).into_iter().collect(),
            false => of
                .group
                .iter()
                .filter_map(|member| hop(object(member.id)?, member.weight))
                .collect(),
        };
        let is_blackhole = of.blackhole
            || hops.is_empty()
                && of
                    .group
                    .iter()
                    .any(|one| object(one.id).is_some_and(|of| of.blackhole));
        let hops = match hops.len() {
            0 => NextHops::None,
            1 => hops.pop().map_or(NextHops::None, |one| {
                NextHops::One(NextHop { weight: 1, ..one })
            }),
            _ => NextHops::Many(hops.into()),
        };
        Meaning { hops, is_blackhole }
    }

    /// Gives the routes of an id what it means now. Those with next hops
    /// of the meaning before may have been told since the resync began;
    /// those with others were not.
    fn renew(
        &mut self,
        feeder: &mut Feeder,
        id: u32,
        before: &Meaning,
        is_changed: bool,
    ) -> Result<(), TableFull> {
        let after = self.meaning(&feeder.tables().nexthops, id);
        let mut own = None;
        for (number, body) in bodies(feeder, id) {
            if after.is_of(&body) {
                continue;
            }
            // After a resync what zebra does not tell again follows its id.
            let is_split = self.told.is_some() && feeder.has_unconfirmed(&body);
            if before.is_of(&body) && !is_split {
                change_all(feeder, number, &body, &after)?;
                continue;
            }
            if before.is_of(&body) {
                change_told(feeder, number, &after)?;
            }
            if is_changed {
                let own = *own.get_or_insert_with(|| self.free_id(&feeder.tables().nexthops));
                keep_under(feeder, &body, own);
            }
        }
        Ok(())
    }

    /// Gives an object of before, and the routes that mean it, an id of our
    /// own.
    fn set_aside(&mut self, feeder: &mut Feeder, id: u32, own: u32) {
        feeder.renumber_nexthop(id, own);
        for (_, body) in bodies(feeder, id) {
            // Without next hops it is of a route that waits for the new one.
            if body.next_hops != NextHops::None || body.kind == kind::BLACKHOLE {
                keep_under(feeder, &body, own);
            }
        }
    }

    fn free_id(&mut self, nexthops: &Nexthops) -> u32 {
        // Who has used four billion of them up begins anew.
        while nexthops.get(self.last_own).is_some() {
            self.last_own = self.last_own.wrapping_sub(1);
        }
        let free = self.last_own;
        self.last_own = self.last_own.wrapping_sub(1);
        free
    }
}

impl Meaning {
    /// Whether a body has these next hops.
    fn is_of(&self, body: &RouteBody) -> bool {
        let is_blackhole = match body.kind {
            kind::UNICAST => false,
            kind::BLACKHOLE => true,
            _ => self.is_blackhole,
        };
        self.hops == body.next_hops && self.is_blackhole == is_blackhole
    }

    fn give(&self, body: &mut RouteBody) {
        body.next_hops = self.hops.clone();
        match (self.is_blackhole, body.kind) {
            (true, kind::UNICAST) => body.kind = kind::BLACKHOLE,
            (false, kind::BLACKHOLE) => body.kind = kind::UNICAST,
            _ => {}
        }
    }
}

/// The next hop that an object is; none for a blackhole and for a group.
fn hop(object: &Nexthop, weight: u32) -> Option<NextHop> {
    (!object.blackhole && object.group.is_empty()).then(|| NextHop {
        link: object.link.unwrap_or(0),
        gateway: object.gateway,
        flags: object.flags,
        weight: u16::try_from(weight).unwrap_or(u16::MAX),
        realms: 0,
        encap: object.encap.clone(),
    })
}

fn bodies(feeder: &Feeder, id: u32) -> Vec<(BodyId, Arc<RouteBody>)> {
    let bodies = feeder.tables().routes.bodies_of_nexthop(id);
    bodies.map(|(id, body)| (id, Arc::clone(body))).collect()
}

/// Gives all routes with a body what its id means now.
fn change_all(
    feeder: &mut Feeder,
    number: BodyId,
    body: &RouteBody,
    to: &Meaning,
) -> Result<(), TableFull> {
    let mut new = body.clone();
    to.give(&mut new);
    if feeder.rewrite_body(body, new) {
        return Ok(());
    }
    // Others have that body already.
    change_each(feeder, number, to, |_, _| true)
}

/// Gives the routes with a body that were told since the resync began what
/// its id means now, one by one.
fn change_told(feeder: &mut Feeder, number: BodyId, to: &Meaning) -> Result<(), TableFull> {
    change_each(feeder, number, to, |feeder, old| {
        !feeder.is_unconfirmed(&old.with_body(&**old.body))
    })
}

fn change_each(
    feeder: &mut Feeder,
    number: BodyId,
    to: &Meaning,
    is_meant: impl Fn(&Feeder, RouteRef<'_>) -> bool,
) -> Result<(), TableFull> {
    let routes = feeder.tables().routes.clone();
    for old in routes.of_body(number) {
        if is_meant(feeder, old) {
            let mut body = (**old.body).clone();
            to.give(&mut body);
            placing::replace(feeder, &old.to_shared(), old.with_body(body))?;
        }
    }
    Ok(())
}

/// Gives all routes with a body another id, which no other has.
fn keep_under(feeder: &mut Feeder, body: &RouteBody, own: u32) {
    let new = RouteBody {
        nexthop_id: Some(own),
        ..body.clone()
    };
    feeder.rewrite_body(body, new);
}
