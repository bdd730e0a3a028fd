//! A walk in pages, each of a new snapshot, while routes come and go: what
//! was there throughout is told exactly once, and names only ascend.

#[cfg(test)]
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use support::{Rest, any_route, walk_from};
use table::{Change, Placement, Route, Writer};

/// The tables of routes: ipRouteTable, and IP-FORWARD-MIB.
const TABLES: [&[u32]; 2] = [&[1, 3, 6, 1, 2, 1, 4, 21], &[1, 3, 6, 1, 2, 1, 4, 24]];

fn shared(route: &Route) -> Route<Arc<table::RouteBody>> {
    route.with_body(Arc::new(route.body.clone()))
}

/// Names told by a walk of the tables of routes; asks for `page` bindings
/// at a time and calls `between` after each page.
fn paged(writer: &mut Writer, page: usize, mut between: impl FnMut(&mut Writer)) -> Vec<Vec<u32>> {
    let rest = Rest::default();
    let mut told = Vec::new();
    for root in TABLES {
        let mut after = root.to_vec();
        loop {
            let tables = writer.reader().snapshot();
            let bindings = walk_from(&rest.objects(&tables), &after, page);
            let inside = bindings
                .iter()
                .take_while(|(name, _)| name.starts_with(root));
            let names: Vec<_> = inside.map(|(name, _)| name.clone()).collect();
            let is_end = names.len() < page;
            after = names.last().cloned().unwrap_or(after);
            told.extend(names);
            if is_end {
                break;
            }
            between(writer);
        }
    }
    told
}

proptest! {
    #[test]
    fn what_stays_is_told_once(
        stable in proptest::collection::vec(any_route(), 1..15),
        moving in proptest::collection::vec((any_route(), any::<bool>()), 1..40),
        page in 1usize..8,
    ) {
        let mut writer = Writer::default();
        let put = |(route, _): &(Route, Placement)| Change::PutRoute(route.clone(), Placement::Last);
        writer.commit(stable.iter().map(put)).unwrap();
        let throughout = paged(&mut writer, usize::MAX, |_| {});

        let (mut here, mut next) = (Vec::new(), 0);
        let told = paged(&mut writer, page, |writer| {
            let ((route, placement), prepend) = &moving[next % moving.len()];
            next += 1;
            let is_stable = stable.iter().any(|(stable, _)| stable == route);
            if is_stable || next > 400 {
                return;
            }
            if let Some(at) = here.iter().position(|other| other == route) {
                let gone: Route = here.swap_remove(at);
                writer.commit([Change::DeleteRoute(shared(&gone))]).unwrap();
            } else {
                let first = *prepend || *placement == Placement::First;
                let placement = if first { Placement::First } else { Placement::Last };
                here.push(route.clone());
                writer.commit([Change::PutRoute(route.clone(), placement)]).unwrap();
            }
        });

        prop_assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "backwards, or twice");
        let mut times: BTreeMap<&Vec<u32>, usize> = BTreeMap::new();
        for name in &told {
            *times.entry(name).or_default() += 1;
        }
        for name in &throughout {
            prop_assert_eq!(times.get(name), Some(&1), "{:?}", name);
        }
    }
}
