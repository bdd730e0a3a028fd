//! What a limit means to a listing that stands beside the tables. Pure.
//! Called by the mirror's machine.
//!
//! A full table has some of the kernel's rows. A listing of all of them is
//! compared with it: those that it has must be found there, or they would
//! be taken for gone; of the others only so many matter as it may have.
//! So a listing holds twice the limit at most.

use table::{Limits, TableFull, Tables};

use netlink::decode::Item;

/// No limit.
pub(super) const NONE: Limits = Limits {
    links: usize::MAX,
    addresses: usize::MAX,
    neighbours: usize::MAX,
    routes: usize::MAX,
    nexthops: usize::MAX,
    rules: usize::MAX,
    fdb: usize::MAX,
};

/// Rows that the table of a name has.
pub(super) fn rows(tables: &Tables, table: &str) -> usize {
    match table {
        "links" => tables.links.len(),
        "addresses" => tables.addresses.len(),
        "neighbours" => tables.neighbours.len(),
        "routes" => tables.routes.len(),
        "nexthops" => tables.nexthops.len(),
        "rules" => tables.rules.len(),
        "fdb" => tables.fdb.len(),
        _ => 0,
    }
}

/// Rows that the table of a name may have.
pub(super) fn of(limits: &Limits, table: &str) -> usize {
    match table {
        "links" => limits.links,
        "addresses" => limits.addresses,
        "neighbours" => limits.neighbours,
        "routes" => limits.routes,
        "nexthops" => limits.nexthops,
        "rules" => limits.rules,
        "fdb" => limits.fdb,
        _ => 0,
    }
}

/// Whether a row of a listing has a place beside the tables.
pub(super) fn check(
    limits: &Limits,
    tables: &Tables,
    fresh: &Tables,
    item: &Item,
) -> Result<(), TableFull> {
    let table = name_of(item);
    let limit = of(limits, table);
    if rows(fresh, table) < limit || has(tables, item) {
        return Ok(());
    }
    Err(TableFull { table, limit })
}

fn name_of(item: &Item) -> &'static str {
    match item {
        Item::Link(_) => "links",
        Item::Address(_) => "addresses",
        Item::Neighbour(_) => "neighbours",
        Item::Fdb(_) => "fdb",
        Item::Route(_) | Item::OtherRoute(_) => "routes",
        Item::Nexthop(_) => "nexthops",
        Item::Rule(_) => "rules",
    }
}

/// Whether the tables have a row in the place of this one.
fn has(tables: &Tables, item: &Item) -> bool {
    match item {
        Item::Link(row) => tables.links.get(row.index).is_some(),
        Item::Address(row) => tables.addresses.get(&row.key()).is_some(),
        Item::Neighbour(row) => tables.neighbours.get(&row.key()).is_some(),
        Item::Fdb(row) => tables.fdb.get(&row.key()).is_some(),
        Item::Route(row) => tables
            .routes
            .exact(row.table, row.prefix)
            .any(|old| (old.tos, old.metric) == (row.tos, row.metric)),
        Item::OtherRoute(row) => tables.routes.other().any(|old| old.key == row.key),
        Item::Nexthop(row) => tables.nexthops.get(row.id).is_some(),
        Item::Rule(row) => tables
            .rules
            .of_family(row.family)
            .any(|old| old.priority == row.priority),
    }
}
