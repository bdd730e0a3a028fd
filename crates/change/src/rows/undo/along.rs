//! What the kernel takes along with links that are changed: a link that
//! goes down loses its IPv6 addresses, and with it go neighbours, next hops
//! and routes through it. Read before the change, and put back when the
//! link is as it was.

use std::collections::HashSet;

use anyhow::Result;
use linux::Namespace;
use netlink::decode::Item;
use table::row::neighbour::state;
use words::Object;

use super::{Kept, Rows, Undo, comes_back, dumps, keep, object, order, rows_of};

/// The rows that stand on links and do not come back by themselves:
/// addresses, neighbours that somebody made, next hops and their groups,
/// routes that are not the kernel's own. O(rows of the tables); for a
/// single link the kernel picks its own.
pub fn along_with(
    namespace: &Namespace,
    links: &HashSet<u32>,
    now_millis: u64,
) -> Result<Vec<Item>> {
    let mut one = links.iter().copied();
    let only = one.next().filter(|_| one.next().is_none());
    // Groups are of no link: all are listed.
    let nexthops = rows_of(
        namespace,
        &dumps(Object::Nexthop, None),
        now_millis,
        &|_| true,
    )?;
    let mut all: Vec<Item> = nexthops.into_iter().map(|row| item(row.2)).collect();
    let mut gone = HashSet::new();
    for groups in [false, true] {
        for row in &all {
            let Item::Nexthop(row) = row else { continue };
            let goes = row.link.is_some_and(|link| links.contains(&link))
                || groups && row.group.iter().any(|member| gone.contains(&member.id));
            gone.extend(goes.then_some(row.id));
        }
    }
    all.retain(|row| matches!(row, Item::Nexthop(row) if gone.contains(&row.id)));
    for object in [Object::Addr, Object::Neigh, Object::Route] {
        let rows = rows_of(namespace, &dumps(object, only), now_millis, &|row| {
            is_lasting(row) && (stands_on(row, links) || uses(row, &gone))
        })?;
        all.extend(rows.into_iter().map(|row| item(row.2)));
    }
    Ok(all)
}

/// Whether a row stands on one of some links.
pub fn stands_on(row: &Item, links: &HashSet<u32>) -> bool {
    match row {
        Item::Address(row) => links.contains(&row.link),
        Item::Neighbour(row) => links.contains(&row.link),
        Item::Nexthop(row) => row.link.is_some_and(|link| links.contains(&link)),
        Item::Route(row) => {
            let hops = row.body.next_hops.as_slice();
            hops.iter().any(|hop| links.contains(&hop.link))
        }
        _ => false,
    }
}

/// Puts other links in the place of those that a row names.
pub fn relink(item: &mut Item, now: &dyn Fn(u32) -> u32) {
    match item {
        Item::Address(row) => row.link = now(row.link),
        Item::Neighbour(row) => row.link = now(row.link),
        Item::Nexthop(row) => row.link = row.link.map(now),
        Item::Route(row) => {
            for hop in row.body.next_hops.as_mut_slice() {
                hop.link = now(hop.link);
            }
        }
        Item::Fdb(row) => {
            row.link = now(row.link);
            row.master = row.master.map(now);
            row.via_link = row.via_link.map(now);
        }
        Item::Rule(_) | Item::Link(_) | Item::OtherRoute(_) => {}
    }
}

/// Whether it is a route by one of some next-hop objects.
fn uses(row: &Item, nexthops: &HashSet<u32>) -> bool {
    match row {
        Item::Route(row) => row.body.nexthop_id.is_some_and(|id| nexthops.contains(&id)),
        _ => false,
    }
}

/// Whether somebody made it, and not the kernel, which makes its own again.
fn is_lasting(row: &Item) -> bool {
    match row {
        Item::Neighbour(row) if !row.proxy => {
            row.state & (state::PERMANENT | state::NOARP) != 0 && !row.address.is_multicast()
        }
        row => comes_back(row),
    }
}

pub(super) fn item(kept: Kept) -> Item {
    match kept {
        Kept::Route(route) => {
            let body = (*route.body).clone();
            Item::Route(route.with_body(body))
        }
        Kept::Other(item) => *item,
    }
}

impl Undo {
    /// So that rows of these keys are as they were, too: what is new of them
    /// goes.
    pub fn touching(mut self, rows: &[Item]) -> Self {
        for row in rows {
            if let Some(key) = super::key(row) {
                let object = object(&key);
                let kept = self.before.entry(order(object));
                kept.or_insert_with(|| (object, Rows::new()));
                self.touched.insert(key);
            }
        }
        self
    }

    /// With rows that were there before: those of them that are gone, and
    /// have not expired, come back.
    pub fn of(rows: Vec<Item>, now_millis: u64) -> Self {
        let mut undo = Self::new(now_millis);
        undo.took_along = true;
        let mut bodies = HashSet::new();
        for row in rows {
            let ends = match &row {
                Item::Address(row) => row.valid_until_millis,
                Item::Route(row) => row.body.expires_at_millis,
                _ => None,
            };
            let Some(key) = super::key(&row) else {
                continue;
            };
            if ends.is_none_or(|ends| ends > now_millis) {
                let object = object(&key);
                let kept = undo.before.entry(order(object));
                let (_, kept) = kept.or_insert_with(|| (object, Rows::new()));
                keep(row, kept, &mut bodies);
            }
        }
        for (_, rows) in undo.before.values_mut() {
            rows.sort_by(|(left, _, _), (right, _, _)| left.cmp(right));
        }
        undo
    }
}
