//! Oracle: two plain maps of prefixes, compared by what a person would call
//! the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::slice::from_ref;

use lab::Random;
use serde_json::Value;
use table::row::route::{NextHop, NextHops, RouteBody, kind, table_id};
use table::{
    Change, Event, Limits, Link, Nexthop, Operation, Placement, Reader, Route, Row, Writer,
};

use super::*;
use crate::walk::tests::body;

const SMALL: Bounds = Bounds {
    visited: 3,
    bytes: 200,
};

fn writer() -> Writer {
    let mut writer = Writer::new(Limits::default());
    let links = [1, 2].map(|index| {
        Change::PutLink(Link {
            index,
            name: format!("em{index}").into(),
            flags: 0x1_0043,
            ..Link::default()
        })
    });
    writer.commit(links).unwrap();
    writer
}

fn question(strict: bool) -> RouteDiffQuestion {
    RouteDiffQuestion {
        sources: ["kernel".to_owned(), "frr".to_owned()],
        strict,
        filter: Filter {
            table: Some("all".to_owned()),
            ..Filter::default()
        },
        output: Output {
            format: Format::Ndjson,
            ..Output::default()
        },
    }
}

/// All that two readers differ in, in pieces.
fn told(question: &RouteDiffQuestion, readers: [&Reader; 2], bounds: Bounds) -> Vec<u8> {
    let mut diff = RouteDiff::new(question.clone());
    let mut told = Vec::new();
    loop {
        let tables = readers.map(Reader::snapshot);
        let changes = readers.map(Reader::route_changes);
        let sides = [0, 1].map(|at| Side {
            tables: &tables[at],
            changes: &changes[at],
        });
        let piece = diff.piece(bounds, sides, &Names::default(), 100_000);
        match piece.unwrap() {
            Some(piece) => told.extend(piece),
            None => break,
        }
    }
    assert!(diff.is_over());
    told
}

fn lines(told: &[u8]) -> Vec<Value> {
    let lines = told
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn hop(gateway: u8, link: u32, weight: u16) -> NextHop {
    NextHop {
        gateway: Some(IpAddr::from([192, 0, 2, gateway])),
        link,
        weight,
        ..NextHop::default()
    }
}

fn with_hops(hops: &[NextHop]) -> RouteBody {
    RouteBody {
        next_hops: match hops {
            [] => NextHops::None,
            [hop] => NextHops::One(hop.clone()),
            many => NextHops::Many(many.into()),
        },
        ..body(1, 1, None)
    }
}

fn random_route(random: &mut Random) -> Route {
    const PREFIXES: [&str; 8] = [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.0.0.0/16",
        "10.1.0.0/16",
        "192.0.2.1/32",
        "::/0",
        "2001:db8::/32",
        "2001:db8:1::/48",
    ];
    let hops = random.below(3);
    let mut hops: Vec<_> = (0..hops)
        .map(|_| hop(random.below(2) as u8, 1 + random.below(2) as u32, 1))
        .collect();
    random.shuffle(&mut hops);
    let mut body = with_hops(&hops);
    if hops.is_empty() {
        body.kind = kind::BLACKHOLE;
    }
    body.protocol = [4, 186][random.below(2)];
    // A number of its own, which says nothing to the other source.
    body.nexthop_id = [None, Some(7)][random.below(2)];
    Route {
        table: [table_id::MAIN, 7][random.below(2)],
        prefix: PREFIXES[random.below(PREFIXES.len())].parse().unwrap(),
        tos: 0,
        metric: [0, 20][random.below(2)],
        body,
    }
}

type Rows = BTreeMap<(bool, u32, IpNet), Vec<(u32, Route)>>;

/// What a route says, for a person: order of hops and numbers left out.
fn words(route: &Route, strict: bool) -> String {
    let hops = route.body.next_hops.as_slice().iter();
    let mut hops: Vec<_> = hops
        .map(|hop| format!("{:?}/{}", hop.gateway, hop.link))
        .collect();
    hops.sort();
    let more = strict.then_some((route.metric, route.body.protocol));
    format!("{} {hops:?} {more:?}", route.body.kind)
}

fn model(sides: [&Rows; 2], strict: bool) -> BTreeMap<(bool, u32, IpNet), &'static str> {
    let places: BTreeSet<_> = sides.into_iter().flat_map(BTreeMap::keys).collect();
    let said = |rows: &Rows, place| -> Vec<String> {
        let rows = rows.get(place).map(Vec::as_slice).unwrap_or_default();
        let most = if strict { usize::MAX } else { 1 };
        rows.iter()
            .take(most)
            .map(|(_, route)| words(route, strict))
            .collect()
    };
    let differ = |place| match sides.map(|rows| said(rows, place)) {
        [first, second] if first == second => None,
        [_, second] if second.is_empty() => Some("missing"),
        [first, _] if first.is_empty() => Some("extra"),
        _ => Some("different"),
    };
    places
        .into_iter()
        .filter_map(|place| Some((*place, differ(place)?)))
        .collect()
}

/// Puts a route in or takes one out, in the tables and in the map.
fn change(writer: &mut Writer, rows: &mut Rows, random: &mut Random, metric: u32) -> Vec<Event> {
    let mut route = random_route(random);
    // One route of a metric, as a routing daemon has it.
    route.metric = route.metric.max(metric);
    let place = (route.prefix.addr().is_ipv6(), route.table, route.prefix);
    let of = rows.entry(place).or_default();
    let mut changes = Vec::new();
    let old = of.iter().position(|(metric, _)| *metric == route.metric);
    if let Some(at) = old {
        let (_, old) = of.remove(at);
        let body = old.body.clone().into();
        changes.push(Change::DeleteRoute(old.with_body(body)));
    }
    if old.is_none() || random.below(2) == 0 {
        of.push((route.metric, route.clone()));
        of.sort_by_key(|(metric, _)| *metric);
        changes.push(Change::PutRoute(route.clone(), Placement::Last));
    }
    if of.is_empty() {
        rows.remove(&place);
    }
    writer.set_time(50_000);
    writer.commit(changes).unwrap();
    let row = Row::Route(route.with_body(route.body.clone().into()));
    let operation = Operation::Changed;
    vec![Event::new(operation, row)]
}

/// Family, table, prefix, difference.
type Key = [String; 4];

fn keys(values: &[Value]) -> Vec<Key> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    let key = |value| ["family", "table", "dst", "difference"].map(|key| text(value, key));
    values.iter().map(key).collect()
}

fn expected(model: &BTreeMap<(bool, u32, IpNet), &str>) -> Vec<Key> {
    let key = |((is_v6, table, prefix), kind): (&(bool, u32, IpNet), &&str)| {
        let mut dst = Vec::new();
        crate::format::push_destination(&mut dst, *prefix);
        let names = Names::default();
        let mut name = Vec::new();
        crate::fields::push_name(&mut name, names.table(*table));
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let family = if *is_v6 { "inet6" } else { "inet" };
        [family.to_owned(), text(name), text(dst), (*kind).to_owned()]
    };
    model.iter().map(key).collect()
}

#[test]
fn differences_are_those_of_plain_maps_whole_in_pieces_and_watched() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut writers = [writer(), writer()];
        let mut rows = [Rows::new(), Rows::new()];
        let readers = [writers[0].reader(), writers[1].reader()];
        let readers = [&readers[0], &readers[1]];
        let mut watch = RouteDiffWatch::new(question(false));
        let mut differing = BTreeSet::new();
        for _ in 0..40 {
            let side = random.below(2);
            let events = change(&mut writers[side], &mut rows[side], &mut random, 0);
            for strict in [false, true] {
                let question = question(strict);
                let model = expected(&model([&rows[0], &rows[1]], strict));
                for bounds in [Bounds::LONG, SMALL] {
                    let told = lines(&told(&question, readers, bounds));
                    assert_eq!(keys(&told), model, "seed {seed} strict {strict}");
                    assert!(told.iter().all(|line| line["since_millis"] == 50_000));
                }
                let mut counting = question.clone();
                counting.output.count = true;
                let count = told(&counting, readers, SMALL);
                assert_eq!(count, format!("{}\n", model.len()).into_bytes());
            }
            let tables = readers.map(Reader::snapshot);
            let changes = RouteChanges::default();
            let sides = tables.each_ref().map(|tables| Side {
                tables,
                changes: &changes,
            });
            let mut out = Vec::new();
            let names = Names::default();
            watch
                .changed(&events, sides, &names, 100_000, &mut out)
                .unwrap();
            for line in lines(&out) {
                let place = ["family", "table", "dst"].map(|key| line[key].to_string());
                match line["event"].as_str().unwrap() {
                    "differs" => drop(differing.insert(place)),
                    _ => assert!(differing.remove(&place), "seed {seed}"),
                }
            }
            let model = expected(&model([&rows[0], &rows[1]], false));
            let quoted = |[family, table, dst, _]: &Key| {
                [family, table, dst].map(|text| format!("\"{text}\""))
            };
            assert_eq!(differing, model.iter().map(quoted).collect(), "seed {seed}");
            // Everything anew says the same again, and nothing has gone.
            let mut anew = Vec::new();
            let told = watch.all(sides, &names, 100_000, &mut anew).unwrap();
            assert_eq!(told, differing.len() as u64);
        }
    }
}

/// Whether two routes of a prefix count as the same.
fn agree(strict: bool, first: RouteBody, second: RouteBody, objects: &[Nexthop]) -> bool {
    let mut writers = [writer(), writer()];
    for (writer, body) in writers.iter_mut().zip([first, second]) {
        let nexthops = objects.iter().cloned().map(Change::PutNexthop);
        writer.commit(nexthops).unwrap();
        let route = Route {
            table: table_id::MAIN,
            prefix: "10.0.0.0/8".parse().unwrap(),
            tos: 0,
            metric: 0,
            body,
        };
        writer
            .commit([Change::PutRoute(route, Placement::Last)])
            .unwrap();
    }
    let readers = [writers[0].reader(), writers[1].reader()];
    told(&question(strict), [&readers[0], &readers[1]], Bounds::LONG).is_empty()
}

#[test]
fn ways_are_the_same_by_gateway_link_weight_and_type() {
    let [a, b, c] = [hop(1, 1, 1), hop(2, 1, 1), hop(3, 2, 2)];
    let same =
        |one: &[NextHop], other: &[NextHop]| agree(false, with_hops(one), with_hops(other), &[]);
    assert!(same(
        &[a.clone(), b.clone(), c.clone()],
        &[c.clone(), a.clone(), b.clone()]
    ));
    assert!(!same(&[a.clone(), b.clone()], &[a.clone(), a.clone()]));
    assert!(!same(from_ref(&a), &[a.clone(), a.clone()]));
    // Weight counts among several, the link where both have one.
    assert!(same(&[hop(1, 1, 1)], &[hop(1, 1, 9)]));
    assert!(!same(
        &[a.clone(), hop(2, 1, 1)],
        &[a.clone(), hop(2, 1, 2)]
    ));
    assert!(!same(&[hop(1, 1, 1)], &[hop(1, 2, 1)]));
    assert!(same(&[hop(1, 1, 1)], &[hop(1, 0, 1)]));
    // Marks of the kernel count nowhere, properties where it is strict.
    let dead = NextHop {
        flags: 1,
        ..a.clone()
    };
    assert!(same(from_ref(&dead), from_ref(&a)));
    let bgp = RouteBody {
        protocol: 186,
        ..with_hops(from_ref(&a))
    };
    assert!(agree(false, with_hops(from_ref(&a)), bgp.clone(), &[]));
    assert!(!agree(true, with_hops(from_ref(&a)), bgp, &[]));
    let refused = |kind| RouteBody {
        kind,
        ..with_hops(&[])
    };
    assert!(agree(
        false,
        refused(kind::BLACKHOLE),
        refused(kind::BLACKHOLE),
        &[]
    ));
    assert!(!agree(
        false,
        refused(kind::BLACKHOLE),
        refused(kind::PROHIBIT),
        &[]
    ));
}

#[test]
fn a_next_hop_object_stands_for_its_members() {
    let object = |id, gateway: u8| Nexthop {
        id,
        link: Some(1),
        gateway: Some(IpAddr::from([192, 0, 2, gateway])),
        ..Nexthop::default()
    };
    let by_object = |id| RouteBody {
        nexthop_id: Some(id),
        ..with_hops(&[])
    };
    let objects = [object(5, 1), object(6, 2)];
    let plain = || with_hops(&[hop(1, 1, 1)]);
    assert!(agree(false, by_object(5), plain(), &objects));
    assert!(!agree(false, by_object(6), plain(), &objects));
}

#[test]
fn a_filter_takes_the_prefixes_of_which_either_route_fits() {
    let mut writers = [writer(), writer()];
    let mut random = Random::new(1);
    let mut rows = [Rows::new(), Rows::new()];
    for at in 0..200 {
        change(&mut writers[at % 2], &mut rows[at % 2], &mut random, 0);
    }
    let readers = [writers[0].reader(), writers[1].reader()];
    let readers = [&readers[0], &readers[1]];
    let asked = |filter: Filter| {
        let question = RouteDiffQuestion {
            filter,
            ..question(false)
        };
        keys(&lines(&told(&question, readers, SMALL)))
    };
    let all = asked(question(false).filter);
    let some = |wanted: &dyn Fn(&Key) -> bool| -> Vec<_> {
        all.iter().filter(|key| wanted(key)).cloned().collect()
    };
    let main = Filter::default();
    assert_eq!(asked(main.clone()), some(&|[_, table, ..]| table == "main"));
    let within = Filter {
        to: Some("10.0.0.0/8".parse().unwrap()),
        ..main.clone()
    };
    let inside = some(&|[_, table, dst, _]| table == "main" && dst.starts_with("10."));
    assert_eq!(asked(within), inside);
    let exact = Filter {
        exact: Some("10.1.0.0/16".parse().unwrap()),
        ..main.clone()
    };
    let only = some(&|[_, table, dst, _]| table == "main" && dst == "10.1.0.0/16");
    assert_eq!(asked(exact), only);
    let six = Filter {
        family: Some(6),
        ..main
    };
    let v6 = some(&|[family, table, ..]| table == "main" && family == "inet6");
    assert_eq!(asked(six), v6);
}

#[test]
fn text_says_where_and_how_long() {
    let mut writers = [writer(), writer()];
    let route = |gateway| Route {
        table: table_id::MAIN,
        prefix: "10.0.0.0/8".parse().unwrap(),
        tos: 0,
        metric: 20,
        body: body(1, gateway, None),
    };
    let put = |gateway| Change::PutRoute(route(gateway), Placement::Last);
    for (at, writer) in writers.iter_mut().enumerate() {
        writer.set_time(88_000);
        writer.commit([put(1 + at as u8)]).unwrap();
    }
    let only = Route {
        prefix: "10.9.0.0/16".parse().unwrap(),
        ..route(1)
    };
    writers[1].set_time(40_000);
    writers[1].without_events();
    writers[1]
        .commit([Change::PutRoute(only, Placement::Last)])
        .unwrap();
    let readers = [writers[0].reader(), writers[1].reader()];
    let mut question = question(false);
    question.output.format = Format::Text;
    let text = told(&question, [&readers[0], &readers[1]], SMALL);
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "10.0.0.0/8 differs for 12s\n    \
         kernel: 10.0.0.0/8 via 192.0.2.1 dev em1 proto static metric 20\n    \
         frr: 10.0.0.0/8 via 192.0.2.2 dev em1 proto static metric 20\n\
         10.9.0.0/16 only in frr for 1m or longer\n    \
         frr: 10.9.0.0/16 via 192.0.2.1 dev em1 proto static metric 20\n"
    );
    question.output.format = Format::Json;
    let told = told(&question, [&readers[0], &readers[1]], SMALL);
    let all: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(all[0]["first"][0]["gateway"], "192.0.2.1");
    assert_eq!(all[1]["difference"], "extra");
    assert_eq!(all[1]["first"], serde_json::json!([]));
    assert_eq!(all[1]["or_earlier"], true);
}

#[test]
fn more_differences_than_can_be_watched_are_refused() {
    let mut writers = [writer(), writer()];
    let put = |at: u32| {
        let prefix = ipnet::Ipv4Net::new((at << 8).into(), 24).unwrap();
        let route = Route {
            table: table_id::MAIN,
            prefix: prefix.into(),
            tos: 0,
            metric: 0,
            body: body(1, 1, None),
        };
        Change::PutRoute(route, Placement::Last)
    };
    let mut watched = |range: std::ops::Range<u32>| {
        writers[0].commit(range.map(put)).unwrap();
        let readers = [writers[0].reader(), writers[1].reader()];
        let tables = readers.each_ref().map(Reader::snapshot);
        let changes = RouteChanges::default();
        let sides = tables.each_ref().map(|tables| Side {
            tables,
            changes: &changes,
        });
        let mut watch = RouteDiffWatch::new(question(false));
        watch.all(sides, &Names::default(), 0, &mut Vec::new())
    };
    assert_eq!(watched(0..1 << 13).unwrap(), 1 << 13);
    let refused = watched(1 << 13..(1 << 13) + 1).unwrap_err().to_string();
    assert!(refused.contains("8192"), "{refused}");
}
