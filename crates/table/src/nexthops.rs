//! The table of next-hop objects.

use std::sync::Arc;

use crate::ordered::Ordered;
use crate::row::nexthop::Nexthop;
use crate::row::route::{NextHop, RouteBody, hop_flag, scope};

/// Next-hop objects by id, by link, and groups by member.
#[derive(Debug, Clone, Default)]
pub struct Nexthops {
    by_id: Ordered<u32, Arc<Nexthop>>,
    by_link: Ordered<(u32, u32), ()>,
    by_member: Ordered<(u32, u32), ()>,
}

impl Nexthops {
    /// Number of objects. O(1).
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The object of an id. O(log n).
    pub fn get(&self, id: u32) -> Option<&Arc<Nexthop>> {
        self.by_id.get(&id)
    }

    /// The next hops of a route, out of its next-hop object where it does
    /// not repeat them; `None` for an object that is a blackhole. O(members
    /// of the group, each O(log n)).
    pub fn hops_of(&self, route: &RouteBody) -> Option<Vec<NextHop>> {
        let own = route.next_hops.as_slice();
        let Some(object) = route.nexthop_id.and_then(|id| self.get(id)) else {
            return Some(own.to_vec());
        };
        if object.blackhole {
            return None;
        }
        if !own.is_empty() {
            let mut own = own.to_vec();
            own.iter_mut().for_each(|hop| self.note_scope(object, hop));
            return Some(own);
        }
        let hop = |id: u32, weight: u32| {
            let member = self.get(id)?;
            Some(NextHop {
                link: member.link.unwrap_or(0),
                gateway: member.gateway,
                flags: member.flags | passed_over(member),
                weight: u16::try_from(weight).unwrap_or(u16::MAX),
                realms: 0,
                encap: member.encap.clone(),
            })
        };
        if object.group.is_empty() {
            return Some(hop(object.id, 1).into_iter().collect());
        }
        let members = object.group.iter();
        Some(members.filter_map(|m| hop(m.id, m.weight)).collect())
    }

    /// Marks a hop that a route repeats of its object.
    fn note_scope(&self, object: &Nexthop, hop: &mut NextHop) {
        let members = object.group.iter().filter_map(|member| self.get(member.id));
        let mut members = members.map(|member| &**member).chain([object]);
        let of_hop =
            |member: &&Nexthop| member.link == Some(hop.link) && member.gateway == hop.gateway;
        hop.flags |= members.find(of_hop).map_or(0, passed_over);
    }

    /// All in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Nexthop>> {
        self.by_id.iter().map(|(_, row)| row)
    }

    /// All from an id on (itself included). A seek, then O(1) a row.
    pub fn from(&self, id: u32) -> impl Iterator<Item = &Arc<Nexthop>> {
        self.by_id.from(&id).map(|(_, row)| row)
    }

    /// The objects over a link from an id on (itself included). A seek,
    /// then O(log n) a row.
    pub fn of_link_from(&self, link: u32, id: u32) -> impl Iterator<Item = &Arc<Nexthop>> {
        self.by_link
            .from(&(link, id))
            .take_while(move |((of, _), ())| *of == link)
            .filter_map(|((_, id), ())| self.get(*id))
    }

    /// The objects over a link. A seek, then O(rows returned).
    pub fn of_link(&self, link: u32) -> impl Iterator<Item = &Arc<Nexthop>> {
        run(&self.by_link, link).filter_map(|id| self.get(id))
    }

    /// The groups that an object is in. A seek, then O(rows returned).
    pub fn groups_with(&self, member: u32) -> impl Iterator<Item = &Arc<Nexthop>> {
        run(&self.by_member, member).filter_map(|id| self.get(id))
    }

    /// Bytes of heap, rows included.
    pub fn heap_bytes(&self) -> usize {
        let rows: usize = self
            .iter()
            .map(|row| size_of::<Nexthop>() + 16 + row.group.len() * 8)
            .sum();
        self.by_id.heap_bytes() + self.by_link.heap_bytes() + self.by_member.heap_bytes() + rows
    }

    pub(crate) fn put(&mut self, row: Arc<Nexthop>) -> Option<Arc<Nexthop>> {
        let old = self.remove(row.id);
        if let Some(link) = row.link {
            self.by_link.insert((link, row.id), ());
        }
        for member in &row.group {
            self.by_member.insert((member.id, row.id), ());
        }
        self.by_id.insert(row.id, row);
        old
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Arc<Nexthop>> {
        let old = self.by_id.remove(&id)?;
        if let Some(link) = old.link {
            self.by_link.remove(&(link, id));
        }
        for member in &old.group {
            self.by_member.remove(&(member.id, id));
        }
        Some(old)
    }
}

fn run(index: &Ordered<(u32, u32), ()>, first: u32) -> impl Iterator<Item = u32> {
    index
        .from(&(first, 0))
        .take_while(move |((of, _), ())| *of == first)
        .map(|((_, id), ())| *id)
}

/// A mark for a gateway that was the host itself when the object was made:
/// that the kernel has of it (`nhc_scope`), whatever the address is now.
fn passed_over(object: &Nexthop) -> u32 {
    let by_v4 = object.gateway.is_some_and(|gateway| gateway.is_ipv4());
    match by_v4 && object.scope == scope::HOST {
        true => hop_flag::OWN_ONCE,
        false => 0,
    }
}
