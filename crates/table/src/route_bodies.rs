//! What routes share, stored once: bodies by id, and ids by what a body
//! points to.

use std::borrow::Borrow;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::ordered::{Build, Ordered};
use crate::row::route::RouteBody;

/// The number of a shared body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId(pub(crate) u32);

impl BodyId {
    /// As a number: for who must write it down. It names the same body as
    /// long as a route has that body, within one start of the writer.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The id of a number that [`BodyId::number`] gave; of any other
    /// number, an id that may name nothing.
    pub fn of_number(number: u32) -> Self {
        Self(number)
    }
}

/// What bodies are found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKey {
    /// The link of one of its next hops.
    Link(u32),
    /// The gateway of one of its next hops.
    Gateway(IpAddr),
    /// Its next-hop object.
    Nexthop(u32),
    /// Its preferred source address.
    Source(IpAddr),
}

/// The bodies in use, part of each snapshot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bodies {
    by_id: Ordered<BodyId, Arc<RouteBody>>,
    by_link: Ordered<(u32, BodyId), ()>,
    /// Those of several next hops, without a next-hop object.
    several_by_link: Ordered<(u32, BodyId), ()>,
    /// Those with neither next hop nor next-hop object.
    without_hop: Ordered<BodyId, ()>,
    by_gateway: Ordered<(IpAddr, BodyId), ()>,
    by_nexthop: Ordered<(u32, BodyId), ()>,
    by_source: Ordered<(IpAddr, BodyId), ()>,
}

impl Bodies {
    /// All bodies of a load, the first with the number 1. Each index is
    /// built whole, where putting them one by one goes down every tree for
    /// each; and each body is looked at once, for they lie far apart.
    pub(crate) fn of_load(all: &[Arc<RouteBody>]) -> Self {
        let mut by_id = Build::default();
        let (mut by_link, mut several_by_link) = (Vec::new(), Vec::new());
        let (mut by_gateway, mut without_hop) = (Vec::new(), Vec::new());
        let (mut by_nexthop, mut by_source) = (Vec::new(), Vec::new());
        for (id, body) in (1..).map(BodyId).zip(all) {
            by_id.push(id, Arc::clone(body));
            let hops = body.next_hops.as_slice();
            if hops.is_empty() && body.nexthop_id.is_none() {
                without_hop.push(id);
            }
            for hop in hops {
                by_link.push((hop.link, id));
                if hops.len() > 1 && body.nexthop_id.is_none() {
                    several_by_link.push((hop.link, id));
                }
                by_gateway.extend(hop.gateway.map(|gateway| (gateway, id)));
            }
            by_nexthop.extend(body.nexthop_id.map(|nexthop| (nexthop, id)));
            by_source.extend(body.preferred_source.map(|source| (source, id)));
        }
        Self {
            by_id: by_id.finish(),
            by_link: index(by_link),
            several_by_link: index(several_by_link),
            without_hop: index(without_hop),
            by_gateway: index(by_gateway),
            by_nexthop: index(by_nexthop),
            by_source: index(by_source),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: BodyId) -> Option<&Arc<RouteBody>> {
        self.by_id.get(&id)
    }

    /// The bodies with a key, from an id on. A seek, then O(1) a body.
    pub(crate) fn with(&self, key: BodyKey, from: BodyId) -> impl Iterator<Item = BodyId> {
        let (number, address) = match key {
            BodyKey::Link(link) => (Some((&self.by_link, link)), None),
            BodyKey::Nexthop(id) => (Some((&self.by_nexthop, id)), None),
            BodyKey::Gateway(gateway) => (None, Some((&self.by_gateway, gateway))),
            BodyKey::Source(source) => (None, Some((&self.by_source, source))),
        };
        let number = number.map(|(index, of)| run_from(index, of, from));
        let address = address.map(|(index, of)| run_from(index, of, from));
        let number = number.into_iter().flatten();
        number.chain(address.into_iter().flatten())
    }

    pub(crate) fn preferring(&self, source: IpAddr) -> impl Iterator<Item = BodyId> {
        run(&self.by_source, source)
    }

    pub(crate) fn over_link(&self, link: u32) -> impl Iterator<Item = BodyId> {
        run(&self.by_link, link)
    }

    pub(crate) fn several_over_link(&self, link: u32) -> impl Iterator<Item = BodyId> {
        run(&self.several_by_link, link)
    }

    /// The bodies that could be the same to a kernel as this one, or parts
    /// of it, `at_most` so many and some more than once: those that prefer
    /// the same source where that is part of what tells routes apart
    /// (IPv4); that share a next-hop object or a next hop's link with it,
    /// or have neither.
    pub(crate) fn like(&self, body: &RouteBody, is_v4: bool, at_most: usize) -> Vec<BodyId> {
        if let Some(source) = body.preferred_source.filter(|_| is_v4) {
            return self.preferring(source).take(at_most).collect();
        }
        if let Some(nexthop) = body.nexthop_id {
            return self.of_nexthop(nexthop).take(at_most).collect();
        }
        let hops = body.next_hops.as_slice().iter();
        let over_links = hops.flat_map(|hop| self.over_link(hop.link));
        let without_hop = self.without_hop.iter().map(|(id, ())| *id);
        over_links.chain(without_hop).take(at_most).collect()
    }

    pub(crate) fn via(&self, gateway: IpAddr) -> impl Iterator<Item = BodyId> {
        run(&self.by_gateway, gateway)
    }

    pub(crate) fn of_nexthop(&self, nexthop: u32) -> impl Iterator<Item = BodyId> {
        run(&self.by_nexthop, nexthop)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.by_id.heap_bytes()
            + self.by_link.heap_bytes()
            + self.several_by_link.heap_bytes()
            + self.without_hop.heap_bytes()
            + self.by_gateway.heap_bytes()
            + self.by_nexthop.heap_bytes()
            + self.by_source.heap_bytes()
            + self.len() * (size_of::<RouteBody>() + 16)
    }

    pub(crate) fn put(&mut self, id: BodyId, body: &Arc<RouteBody>) {
        let hops = body.next_hops.as_slice();
        if hops.is_empty() && body.nexthop_id.is_none() {
            self.without_hop.insert(id, ());
        }
        for hop in hops {
            self.by_link.insert((hop.link, id), ());
            if hops.len() > 1 && body.nexthop_id.is_none() {
                self.several_by_link.insert((hop.link, id), ());
            }
            if let Some(gateway) = hop.gateway {
                self.by_gateway.insert((gateway, id), ());
            }
        }
        if let Some(nexthop) = body.nexthop_id {
            self.by_nexthop.insert((nexthop, id), ());
        }
        if let Some(source) = body.preferred_source {
            self.by_source.insert((source, id), ());
        }
        self.by_id.insert(id, Arc::clone(body));
    }

    fn remove(&mut self, id: BodyId, body: &RouteBody) {
        self.without_hop.remove(&id);
        for hop in body.next_hops.as_slice() {
            self.by_link.remove(&(hop.link, id));
            self.several_by_link.remove(&(hop.link, id));
            if let Some(gateway) = hop.gateway {
                self.by_gateway.remove(&(gateway, id));
            }
        }
        if let Some(nexthop) = body.nexthop_id {
            self.by_nexthop.remove(&(nexthop, id));
        }
        if let Some(source) = body.preferred_source {
            self.by_source.remove(&(source, id));
        }
        self.by_id.remove(&id);
    }
}

/// A tree of keys, some perhaps more than once.
fn index<K: Ord + Clone>(mut keys: Vec<K>) -> Ordered<K, ()> {
    // Bodies of one link or gateway, which are most, are in order already.
    if !keys.is_sorted() {
        keys.sort_unstable();
    }
    let mut build = Build::default();
    for key in keys {
        build.push(key, ());
    }
    build.finish()
}

fn run<K: Ord + Copy>(index: &Ordered<(K, BodyId), ()>, of: K) -> impl Iterator<Item = BodyId> {
    run_from(index, of, BodyId(0))
}

fn run_from<K: Ord + Copy>(
    index: &Ordered<(K, BodyId), ()>,
    of: K,
    from: BodyId,
) -> impl Iterator<Item = BodyId> {
    let rows = index.from(&(of, from));
    rows.take_while(move |((key, _), ())| *key == of)
        .map(|((_, id), ())| *id)
}

/// The writer's side: finds the id of an equal body, counts its routes,
/// and frees what no route uses any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interner {
    hasher: foldhash::fast::RandomState,
    ids: HashTable<Use>,
    free: Vec<BodyId>,
    made: u32,
}

#[derive(Debug, Clone)]
struct Use {
    /// Kept: a body takes longer to be hashed than to be found.
    hash: u64,
    body: Arc<RouteBody>,
    id: BodyId,
    routes: u32,
}

impl Interner {
    fn of(&self, body: &RouteBody) -> Option<&Use> {
        let hash = self.hasher.hash_one(body);
        self.ids.find(hash, |one| one.is(hash, body))
    }

    /// The id of an equal body, if one is in use.
    pub(crate) fn find(&self, body: &RouteBody) -> Option<BodyId> {
        self.of(body).map(|found| found.id)
    }

    /// The stored body that equals this one.
    pub(crate) fn shared(&self, body: &RouteBody) -> Option<Arc<RouteBody>> {
        self.of(body).map(|found| Arc::clone(&found.body))
    }

    /// The id for one more route with this body. O(1); allocates for a
    /// body not seen before only.
    pub(crate) fn take(&mut self, bodies: &mut Bodies, body: RouteBody) -> BodyId {
        let (id, new) = self.take_unlisted(body);
        if let Some(body) = new {
            bodies.put(id, &body);
        }
        id
    }

    /// The same; a body that was not seen before is given, and not yet
    /// among the bodies.
    pub(crate) fn take_unlisted(
        &mut self,
        body: impl Borrow<RouteBody> + Into<Arc<RouteBody>>,
    ) -> (BodyId, Option<Arc<RouteBody>>) {
        let hash = self.hasher.hash_one(body.borrow());
        let is_it = |one: &Use| one.is(hash, body.borrow());
        match self.ids.entry(hash, is_it, |one| one.hash) {
            Entry::Occupied(mut found) => {
                let found = found.get_mut();
                found.routes += 1;
                (found.id, None)
            }
            Entry::Vacant(place) => {
                let id = self.free.pop().unwrap_or_else(|| {
                    self.made += 1;
                    BodyId(self.made)
                });
                let body = body.into();
                place.insert(Use {
                    hash,
                    body: Arc::clone(&body),
                    id,
                    routes: 1,
                });
                (id, Some(body))
            }
        }
    }

    /// Each body has so many routes more, by its number. O(bodies).
    pub(crate) fn add(&mut self, routes: &[u32]) {
        for found in self.ids.iter_mut() {
            let more = routes.get(found.id.0 as usize).copied().unwrap_or(0);
            found.routes = found.routes.saturating_add(more);
        }
    }

    /// Each body has so many routes, by its number: a load counted them, and
    /// not one by one. Bodies without any go. O(bodies).
    pub(crate) fn count(&mut self, bodies: &mut Bodies, routes: &[u32]) {
        let free = &mut self.free;
        self.ids.retain(|found| {
            let counted = routes.get(found.id.0 as usize).copied();
            found.routes = counted.unwrap_or(0);
            if found.routes == 0 {
                bodies.remove(found.id, &found.body);
                free.push(found.id);
            }
            found.routes > 0
        });
    }

    /// Gives all routes with a body another one; its id, which stays.
    /// `None`, and nothing done, where no route has the first or some have
    /// the second. O(its next hops), whatever the number of routes.
    pub(crate) fn rewrite(
        &mut self,
        bodies: &mut Bodies,
        from: &RouteBody,
        to: RouteBody,
    ) -> Option<BodyId> {
        let hash = self.hasher.hash_one(&to);
        if self.ids.find(hash, |one| one.is(hash, &to)).is_some() {
            return None;
        }
        let used = self.remove(from)?;
        let (id, body) = (used.id, Arc::new(to));
        bodies.remove(id, from);
        bodies.put(id, &body);
        let used = Use { hash, body, ..used };
        self.ids.insert_unique(hash, used, |one| one.hash);
        Some(id)
    }

    /// One route less with this body.
    pub(crate) fn give_back(&mut self, bodies: &mut Bodies, body: &RouteBody) {
        let hash = self.hasher.hash_one(body);
        let Ok(mut found) = self.ids.find_entry(hash, |one| one.is(hash, body)) else {
            return;
        };
        found.get_mut().routes -= 1;
        if found.get().routes == 0 {
            let (used, _) = found.remove();
            bodies.remove(used.id, body);
            self.free.push(used.id);
        }
    }

    fn remove(&mut self, body: &RouteBody) -> Option<Use> {
        let hash = self.hasher.hash_one(body);
        let found = self.ids.find_entry(hash, |one| one.is(hash, body)).ok()?;
        Some(found.remove().0)
    }
}

impl Use {
    #[inline]
    fn is(&self, hash: u64, body: &RouteBody) -> bool {
        self.hash == hash && *self.body == *body
    }
}
