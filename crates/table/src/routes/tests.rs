//! Routes against the obvious: a list that is filtered and sorted.

use proptest::prelude::*;

use super::*;
use crate::row::route::{NextHop, NextHops, kind, scope};
use crate::writer::Limits;

fn body(link: u32) -> RouteBody {
    RouteBody {
        kind: kind::UNICAST,
        protocol: 0,
        scope: scope::UNIVERSE,
        flags: 0,
        preferred_source: None,
        source: None,
        nexthop_id: link.is_multiple_of(3).then_some(link + 1),
        next_hops: NextHops::One(NextHop {
            link,
            gateway: Some(IpAddr::from([10, 0, 0, link as u8])),
            weight: 1,
            ..NextHop::default()
        }),
        metrics: Default::default(),
        preference: None,
        error: 0,
        expires_at_millis: None,
        rest: Default::default(),
        path: Default::default(),
    }
}

/// Prefixes that nest often: few bits vary.
fn prefix() -> impl Strategy<Value = IpNet> {
    prop_oneof![
        (any::<u8>(), 0u8..=32).prop_map(|(bits, len)| {
            let address = u32::from(bits) << 24 | u32::from(bits) << 3;
            u32::masked(address, len).to_net(len)
        }),
        (any::<u8>(), 0u8..=128).prop_map(|(bits, len)| {
            let high = u64::from(bits) << 56 | u64::from(bits);
            [high, u64::from(bits) << 60].masked(len).to_net(len)
        }),
    ]
}

fn route() -> impl Strategy<Value = Route> {
    (prefix(), 254u32..256, 0u32..3, 1u32..6).prop_map(|(prefix, table, metric, link)| Route {
        table,
        prefix,
        tos: 0,
        metric,
        body: body(link),
    })
}

#[derive(Debug, Clone)]
enum Step {
    Put(Route, Placement),
    Remove(usize),
}

fn placement() -> impl Strategy<Value = Placement> {
    prop_oneof![
        Just(Placement::First),
        Just(Placement::Last),
        Just(Placement::InsteadOfFirst),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (route(), placement()).prop_map(|(r, p)| Step::Put(r, p)),
        1 => any::<usize>().prop_map(Step::Remove),
    ]
}

fn same_place(a: &Route, b: &Route) -> bool {
    (a.table, a.prefix, a.metric) == (b.table, b.prefix, b.metric)
}

fn put_in_list(list: &mut Vec<Route>, route: Route, placement: Placement) {
    if list.contains(&route) {
        return;
    }
    let first = list.iter().position(|r| same_place(r, &route));
    match (placement, first) {
        (Placement::First, Some(at)) => list.insert(at, route),
        (Placement::InsteadOfFirst, Some(at)) => list[at] = route,
        _ => list.push(route),
    }
}

fn sort_key(route: &Route) -> impl Ord + use<> {
    let network = route.prefix.network();
    let len = route.prefix.prefix_len();
    (network.is_ipv6(), route.table, network, len, route.metric)
}

fn owned<'a>(routes: impl Iterator<Item = RouteRef<'a>>) -> Vec<Route> {
    routes.map(|r| r.with_body((**r.body).clone())).collect()
}

proptest! {
    #[test]
    fn answers_as_a_list_would(steps in proptest::collection::vec(step(), 1..80), probe in prefix()) {
        let mut routes = Routes::default();
        let mut interner = Interner::default();
        let mut list: Vec<Route> = Vec::new();
        for step in steps {
            match step {
                Step::Put(route, placement) => {
                    put_in_list(&mut list, route.clone(), placement);
                    routes.put(&mut interner, route, placement);
                }
                Step::Remove(at) if !list.is_empty() => {
                    let route = list.remove(at % list.len());
                    prop_assert!(routes.remove(&mut interner, &route.with_body(&route.body)));
                }
                Step::Remove(_) => {}
            }
        }
        same_as_list(&routes, list, probe)?;
    }

    /// A load is what putting each route would be, in order and out of it,
    /// and its routes can be changed like any other.
    #[test]
    fn a_load_is_as_good_as_putting_each(
        mut told in proptest::collection::vec((route(), placement()), 0..80),
        in_order in 0usize..80,
        removed in proptest::collection::vec(0usize..80, 0..80),
        probe in prefix(),
    ) {
        let ordered = in_order.min(told.len());
        told[..ordered].sort_by_key(|(route, _)| sort_key(route));
        let mut load = RouteLoad::new(&Limits::default());
        let unused = load.body(body(7));
        let mut list: Vec<Route> = Vec::new();
        for (route, placement) in told {
            let id = load.body(route.body.clone());
            load.put(route.table, route.prefix, route.metric, id, placement);
            put_in_list(&mut list, route, placement);
            prop_assert_eq!(load.len(), list.len());
        }
        // The same once more: what is done to one is not seen in the other.
        let (shared, _, refused) = load.shared().finish();
        prop_assert_eq!(refused, 0);
        let all = list.clone();
        let (mut routes, mut interner, refused) = load.finish();
        prop_assert_eq!(refused, 0);
        prop_assert_eq!(routes.of_body(unused).count(), 0);
        same_as_list(&routes, list.clone(), probe)?;
        for at in removed {
            if list.is_empty() {
                break;
            }
            let route = list.remove(at % list.len());
            prop_assert!(routes.remove(&mut interner, &route.with_body(&route.body)));
        }
        same_as_list(&routes, list, probe)?;
        same_as_list(&shared, all, probe)?;
    }
}

#[test]
fn a_run_of_any_length_is_loaded() {
    for length in [64, 65, 200] {
        let mut load = RouteLoad::new(&Limits::default());
        let ids: Vec<_> = (0..length).map(|at| load.body(body(at))).collect();
        for id in ids.iter().chain(&ids) {
            load.put(254, u32::to_net(10 << 24, 8), 0, *id, Placement::Last);
        }
        let (routes, interner, _) = load.finish();
        let bodies = routes
            .iter()
            .map(|route| interner.find(route.body).unwrap());
        assert_eq!(bodies.collect::<Vec<_>>(), ids);
        assert!(ids.iter().all(|id| routes.of_body(*id).count() == 1));
    }
}

/// Every index says what the list does.
fn same_as_list(routes: &Routes, mut list: Vec<Route>, probe: IpNet) -> Result<(), TestCaseError> {
    list.sort_by_key(sort_key);
    prop_assert_eq!(owned(routes.iter()), list.clone());
    prop_assert_eq!(routes.len(), list.len());
    same_run_and_count(routes, &list, probe)?;

    let in_main = |r: &&Route| r.table == 254;
    let within: Vec<Route> = list
        .iter()
        .filter(in_main)
        .filter(|r| probe.contains(&r.prefix))
        .cloned()
        .collect();
    prop_assert_eq!(owned(routes.within(254, probe)), within);

    let mut covering: Vec<Route> = list
        .iter()
        .filter(in_main)
        .filter(|r| r.prefix.contains(&probe))
        .cloned()
        .collect();
    covering.sort_by_key(|r| (std::cmp::Reverse(r.prefix.prefix_len()), r.metric));
    prop_assert_eq!(owned(routes.covering(254, probe)), covering);

    for link in 1..6 {
        let over = list.iter().filter(|r| r.body == body(link)).count();
        prop_assert_eq!(routes.over_link(link).count(), over);
        prop_assert_eq!(
            routes.via(IpAddr::from([10, 0, 0, link as u8])).count(),
            over
        );
    }
    let distinct: std::collections::HashSet<_> = list.iter().map(|r| &r.body).collect();
    prop_assert_eq!(routes.distinct_bodies(), distinct.len());
    Ok(())
}

/// What is asked by place: the run from a prefix on, each route at the
/// place the run gave, and the counts.
fn same_run_and_count(routes: &Routes, list: &[Route], probe: IpNet) -> Result<(), TestCaseError> {
    for v6 in [false, true] {
        let mine = |r: &&Route| r.table == 254 && r.prefix.addr().is_ipv6() == v6;
        let hops = |r: &Route| r.body.next_hops.as_slice().len().max(1);
        let count = RouteCount {
            routes: list.iter().filter(mine).count(),
            hops: list.iter().filter(mine).map(hops).sum(),
        };
        let counted = if v6 {
            routes.count_v6(254)
        } else {
            routes.count_v4(254)
        };
        prop_assert_eq!(counted, count);
    }
    let run: Vec<_> = routes.run(254, &RoutePlace::first_of(probe)).collect();
    let from = (probe.addr(), probe.prefix_len());
    let expected = list.iter().filter(|r| {
        let same_family = r.prefix.addr().is_ipv6() == probe.addr().is_ipv6();
        r.table == 254 && same_family && (r.prefix.addr(), r.prefix.prefix_len()) >= from
    });
    prop_assert_eq!(
        owned(run.iter().map(|(_, r)| *r)),
        expected.cloned().collect::<Vec<_>>()
    );
    let first = RoutePlace::first_of(probe);
    prop_assert_eq!(routes.run_len(254, &first), run.len());
    prop_assert_eq!(routes.run_nth(254, &first, run.len()), None);
    for (skip, (ordinal, route)) in run.into_iter().enumerate() {
        let place = RoutePlace {
            prefix: route.prefix,
            tos: route.tos,
            metric: route.metric,
            ordinal,
        };
        prop_assert_eq!(routes.at(254, &place), Some(route));
        prop_assert_eq!(routes.run_nth(254, &first, skip), Some(place));
    }
    Ok(())
}

#[test]
fn a_route_keeps_its_ordinal_when_others_come_before_it() {
    let mut routes = Routes::default();
    let mut interner = Interner::default();
    for link in [1, 2, 3] {
        let route = Route {
            table: 254,
            prefix: "10.0.0.0/8".parse().unwrap(),
            tos: 0,
            metric: 0,
            body: body(link),
        };
        routes.put(&mut interner, route, Placement::First);
    }
    let run = routes.run(254, &RoutePlace::first_of("0.0.0.0/0".parse().unwrap()));
    let ordinals: Vec<_> = run
        .map(|(o, r)| (o, r.body.next_hops.as_slice()[0].link))
        .collect();
    let first = RoutePlace::FIRST_ORDINAL;
    assert_eq!(ordinals, [(first - 2, 3), (first - 1, 2), (first, 1)]);
}

#[test]
fn a_run_that_is_never_empty_may_be_renumbered() {
    let mut routes = Routes::default();
    let mut interner = Interner::default();
    let at = |link: u32| Route {
        table: 254,
        prefix: "fe80::/64".parse().unwrap(),
        tos: 0,
        metric: 256,
        body: body(link),
    };
    routes.put(&mut interner, at(1), Placement::Last);
    for link in 2..40_000 {
        routes.put(&mut interner, at(link), Placement::Last);
        let old = at(link - 1);
        assert!(routes.remove(&mut interner, &old.with_body(&old.body)));
    }
    assert_eq!(owned(routes.iter()), [at(39_999)]);
    assert_eq!(routes.distinct_bodies(), 1);
}

#[test]
fn a_load_takes_no_more_than_the_limit_and_counts_the_rest() {
    let limits = Limits {
        routes: 3,
        ..Limits::default()
    };
    for order in [[1, 2, 3, 4, 5], [3, 1, 2, 5, 4]] {
        let mut load = RouteLoad::new(&limits);
        assert!(load.is_empty());
        let id = load.body(body(1));
        for number in order {
            load.put(254, u32::to_net(number << 24, 8), 0, id, Placement::Last);
        }
        let (routes, interner, refused) = load.finish();
        assert_eq!((routes.len(), refused), (3, 2));
        assert_eq!(interner.find(&body(1)), Some(id));
    }
}

#[test]
fn a_full_table_costs_at_most_55_bytes_a_route() {
    let mut routes = Routes::default();
    let mut interner = Interner::default();
    let mut random = memory::Random::new(1);
    let count = 200_000;
    for number in 0..count {
        let mut body = body(1);
        body.nexthop_id = Some(random.below(359) as u32);
        let route = Route {
            table: 254,
            prefix: u32::to_net(0x0100_0000 + (number << 8), 24),
            tos: 0,
            metric: 0,
            body,
        };
        routes.put(&mut interner, route, Placement::Last);
    }
    let bodies = routes.bodies.heap_bytes();
    let each = (routes.heap_bytes() - bodies) as f64 / f64::from(count);
    assert_eq!(routes.len(), count as usize);
    assert!(each <= 55.0, "{each:.1} bytes");
}

/// Routes of a table of the Internet's size have at most 55 bytes each, all
/// indexes included, in whatever order they come.
#[test]
fn a_route_has_few_bytes_in_every_order() {
    const ROWS: u32 = 100_000;
    let mut random: Vec<u32> = (0..ROWS).collect();
    memory::Random::new(1).shuffle(&mut random);
    let orders: [(&str, Vec<u32>); 4] = [
        ("ascending", (0..ROWS).collect()),
        ("descending", (0..ROWS).rev().collect()),
        ("random", random),
        (
            "eight in turn",
            (0..ROWS).map(|n| n % 8 * (ROWS / 8) + n / 8).collect(),
        ),
    ];
    for (name, order) in orders {
        let (mut routes, mut interner) = (Routes::default(), Interner::default());
        for n in order {
            let route = Route {
                table: 254,
                prefix: u32::masked(n << 8, 24).to_net(24),
                tos: 0,
                metric: 0,
                body: body(n % 5 + 1),
            };
            routes.put(&mut interner, route, Placement::Last);
        }
        let bytes = routes.heap_bytes() as f64 / f64::from(ROWS);
        assert!(bytes <= 55.0, "{name}: {bytes:.1} bytes a route");
    }
}
