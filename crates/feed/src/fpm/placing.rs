//! Which route another stands for: zebra has one for each table, prefix and
//! source prefix, whatever its metric, TOS or protocol.

use table::{Change, Feeder, Placement, Route, SharedRoute, TableFull};

/// Puts a route in place of the one that zebra had there. O(log n).
pub(super) fn put(feeder: &mut Feeder, row: Route) -> Result<(), TableFull> {
    let mut there = of_place(feeder, &row);
    let Some(old) = there.next() else {
        drop(there);
        return feeder.apply(Change::PutRoute(row, Placement::Last));
    };
    let others: Vec<SharedRoute> = there.collect();
    for other in others {
        feeder.apply(Change::DeleteRoute(other))?;
    }
    replace(feeder, &old, row)
}

/// Takes the route out that zebra has there.
pub(super) fn delete(feeder: &mut Feeder, row: &Route) -> Result<(), TableFull> {
    let there: Vec<SharedRoute> = of_place(feeder, row).collect();
    for old in there {
        feeder.apply(Change::DeleteRoute(old))?;
    }
    Ok(())
}

/// Puts a route in place of one that is there.
pub(super) fn replace(feeder: &mut Feeder, old: &SharedRoute, row: Route) -> Result<(), TableFull> {
    let is_same_run = (old.tos, old.metric) == (row.tos, row.metric);
    if is_same_run && *old.body == row.body {
        return feeder.apply(Change::PutRoute(row, Placement::Last));
    }
    let routes = &feeder.tables().routes;
    let is_alone = routes.exact(row.table, row.prefix).nth(1).is_none();
    if is_same_run && is_alone {
        return feeder.apply(Change::PutRoute(row, Placement::InsteadOfFirst));
    }
    // First: a full table has a place for it then.
    feeder.apply(Change::DeleteRoute(old.clone()))?;
    feeder.apply(Change::PutRoute(row, Placement::Last))
}

fn of_place<'a>(feeder: &'a Feeder, row: &Route) -> impl Iterator<Item = SharedRoute> + use<'a> {
    let source = row.body.source;
    let there = feeder.tables().routes.exact(row.table, row.prefix);
    let there = there.filter(move |old| old.body.source == source);
    there.map(|old| old.to_shared())
}
