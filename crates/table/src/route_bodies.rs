//! What routes share, stored once: bodies by id, and ids by what a body
//! points to.

use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::ordered::Ordered;
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

    fn put(&mut self, id: BodyId, body: &Arc<RouteBody>) {
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
#[derive(Debug, Default)]
pub(crate) struct Interner {
    ids: HashMap<Arc<RouteBody>, Use, foldhash::fast::RandomState>,
    free: Vec<BodyId>,
    made: u32,
}

#[derive(Debug)]
struct Use {
    id: BodyId,
    routes: u32,
}

impl Interner {
    /// The id of an equal body, if one is in use.
    pub(crate) fn find(&self, body: &RouteBody) -> Option<BodyId> {
        self.ids.get(body).map(|found| found.id)
    }

    /// The stored body that equals this one.
    pub(crate) fn shared(&self, body: &RouteBody) -> Option<Arc<RouteBody>> {
        self.ids
            .get_key_value(body)
            .map(|(shared, _)| Arc::clone(shared))
    }

    /// The id for one more route with this body. O(1); allocates for a
    /// body not seen before only.
    pub(crate) fn take(&mut self, bodies: &mut Bodies, body: RouteBody) -> BodyId {
        if let Some(found) = self.ids.get_mut(&body) {
            found.routes += 1;
            return found.id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            BodyId(self.made)
        });
        let body = Arc::new(body);
        bodies.put(id, &body);
        self.ids.insert(body, Use { id, routes: 1 });
        id
    }

    /// Each body has so many routes more, by its number. O(bodies).
    pub(crate) fn add(&mut self, routes: &[u32]) {
        for found in self.ids.values_mut() {
            let more = routes.get(found.id.0 as usize).copied().unwrap_or(0);
            found.routes = found.routes.saturating_add(more);
        }
    }

    /// Each body has so many routes, by its number: a load counted them, and
    /// not one by one. Bodies without any go. O(bodies).
    pub(crate) fn count(&mut self, bodies: &mut Bodies, routes: &[u32]) {
        let free = &mut self.free;
        self.ids.retain(|body, found| {
            let counted = routes.get(found.id.0 as usize).copied();
            found.routes = counted.unwrap_or(0);
            if found.routes == 0 {
                bodies.remove(found.id, body);
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
        if self.ids.contains_key(&to) {
            return None;
        }
        let used = self.ids.remove(from)?;
        let (id, to) = (used.id, Arc::new(to));
        bodies.remove(id, from);
        bodies.put(id, &to);
        self.ids.insert(to, used);
        Some(id)
    }

    /// One route less with this body.
    pub(crate) fn give_back(&mut self, bodies: &mut Bodies, body: &RouteBody) {
        let Some(found) = self.ids.get_mut(body) else {
            return;
        };
        found.routes -= 1;
        if found.routes == 0 {
            let id = found.id;
            bodies.remove(id, body);
            self.ids.remove(body);
            self.free.push(id);
        }
    }
}
