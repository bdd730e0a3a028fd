//! Oracle: [`crate::answer`] for what a walk tells while nothing changes,
//! and a list of the rows that stay for what it tells while much does.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::IpNet;
use lab::Random;
use table::row::neighbour::state;
use table::row::route::{NextHop, NextHops, RouteBody};
use table::{
    Address, Change, FdbEntry, Limits, Link, LinkLayerAddress, Neighbour, Nexthop, Placement,
    RawAttributes, Route, Rule, Writer,
};

use super::*;
use crate::{Filter, Format, Object, Output, answer};

pub(crate) fn mac(last: u8) -> LinkLayerAddress {
    LinkLayerAddress::new(&[2, 0, 0, 0, 0, last]).unwrap()
}

pub(crate) fn neighbour(link: u32, number: u32, lladdr: u8) -> Neighbour {
    Neighbour {
        link,
        address: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number)),
        proxy: false,
        lladdr: mac(lladdr),
        state: state::STALE,
        flags: 0,
        protocol: 0,
        kind: 1,
    }
}

pub(crate) fn body(link: u32, gateway: u8, nexthop: Option<u32>) -> RouteBody {
    RouteBody {
        kind: 1,
        protocol: 4,
        nexthop_id: nexthop,
        next_hops: NextHops::One(NextHop {
            link,
            gateway: Some(IpAddr::from([192, 0, 2, gateway])),
            weight: 1,
            ..NextHop::default()
        }),
        scope: 0,
        flags: 0,
        preferred_source: None,
        source: None,
        metrics: None,
        preference: None,
        error: 0,
        expires_at_millis: None,
        rest: RawAttributes::default(),
        path: Default::default(),
    }
}

pub(crate) fn route(table: u32, prefix: IpNet, metric: u32, body: RouteBody) -> Route {
    Route {
        table,
        prefix,
        tos: 0,
        metric,
        body,
    }
}

pub(crate) fn v4(number: u32, len: u8) -> IpNet {
    IpNet::new(Ipv4Addr::from(0x1400_0000 + (number << 8)).into(), len)
        .unwrap()
        .trunc()
}

fn v6(number: u16) -> IpNet {
    format!("2001:db8:{number:x}::/48").parse().unwrap()
}

/// Some hundred rows in every table.
fn filled() -> Writer {
    let mut writer = Writer::new(Limits::default());
    let mut changes = Vec::new();
    for index in 1..=40 {
        changes.push(Change::PutLink(Link {
            index,
            name: format!("l{index}").into(),
            flags: 0x1_1043,
            master: (index % 5 == 0).then_some(1),
            ..Link::default()
        }));
        for number in 0..20 {
            let local = IpAddr::from([10, 1, index as u8, number]);
            changes.push(Change::PutAddress(Address::new(index, local, 24)));
            let lladdr = number % 3;
            changes.push(Change::PutNeighbour(neighbour(
                index,
                u32::from(number),
                lladdr,
            )));
            changes.push(Change::PutFdb(fdb(index, lladdr, number.into())));
        }
        changes.push(Change::PutNexthop(Nexthop {
            id: index,
            link: Some(1 + index % 3),
            ..Nexthop::default()
        }));
        changes.push(Change::PutRule(Rule {
            family: table::AF_INET,
            priority: index / 4,
            table: index,
            ..Rule::default()
        }));
    }
    for number in 0..300 {
        for (table, metric) in [(254, 0), (254, 7), (100, 0)] {
            let hops = body(1 + number % 3, (number % 4) as u8, Some(number % 5));
            let len = 20 + (number % 9) as u8;
            let row = route(table, v4(number, len), metric, hops);
            changes.push(Change::PutRoute(row, Placement::Last));
        }
        let hops = body(2, 1, None);
        let row = route(254, v6(number as u16), 1024, hops);
        changes.push(Change::PutRoute(row, Placement::Last));
    }
    writer.commit(changes).unwrap();
    writer
}

pub(crate) fn fdb(link: u32, lladdr: u8, vlan: u16) -> FdbEntry {
    FdbEntry {
        link,
        lladdr: mac(lladdr),
        vlan: Some(vlan),
        master: None,
        destination: None,
        port: None,
        vni: None,
        source_vni: None,
        via_link: None,
        link_netns_id: None,
        nexthop_id: None,
        state: state::PERMANENT,
        flags: 0,
        protocol: 0,
        activity: None,
        rest: RawAttributes::default(),
    }
}

fn question(object: Object, filter: Filter) -> Question {
    Question {
        object,
        filter,
        output: Output {
            format: Format::Ndjson,
            fields: match object {
                // One row each, as a walk has them.
                Object::Addr => vec!["ifname".to_owned(), "addr_info.local".to_owned()],
                _ => Vec::new(),
            },
            ..Output::default()
        },
    }
}

fn filters(object: Object) -> Vec<Filter> {
    let name = |name: &str| Some(name.to_owned());
    let net = |net: &str| Some(net.parse::<IpNet>().unwrap());
    let none = Filter::default;
    let mut all = vec![none()];
    match object {
        Object::Link => all.extend([
            Filter {
                dev: name("l7"),
                ..none()
            },
            Filter {
                name: name("l[12]*"),
                ..none()
            },
        ]),
        Object::Addr => all.extend([
            Filter {
                dev: name("l7"),
                ..none()
            },
            Filter {
                master: name("l1"),
                ..none()
            },
            Filter {
                to: net("10.1.8.0/21"),
                ..none()
            },
        ]),
        Object::Neigh => all.extend([
            Filter {
                dev: name("l7"),
                ..none()
            },
            Filter {
                mac: name("02:00:00:00:00:01"),
                ..none()
            },
            Filter {
                to: net("10.0.0.8/29"),
                ..none()
            },
            Filter {
                to: net("10.0.0.8/29"),
                dev: name("l9"),
                ..none()
            },
            Filter {
                to: net("10.0.0.8/29"),
                master: name("l1"),
                ..none()
            },
            Filter {
                master: name("l1"),
                ..none()
            },
        ]),
        Object::Route => all.extend([
            Filter {
                table: name("all"),
                ..none()
            },
            Filter {
                table: name("all"),
                family: Some(4),
                ..none()
            },
            Filter {
                family: Some(6),
                ..none()
            },
            Filter {
                exact: Some(v4(40, 24)),
                ..none()
            },
            Filter {
                covering: net("20.0.9.1/32"),
                ..none()
            },
            Filter {
                to: net("20.0.16.0/20"),
                ..none()
            },
            Filter {
                via: name("192.0.2.1").map(|a| a.parse().unwrap()),
                ..none()
            },
            Filter {
                id: Some(3),
                ..none()
            },
            Filter {
                dev: name("l2"),
                ..none()
            },
            Filter {
                dev: name("l2"),
                table: name("100"),
                ..none()
            },
        ]),
        Object::Nexthop => all.extend([
            Filter {
                id: Some(9),
                ..none()
            },
            Filter {
                dev: name("l2"),
                ..none()
            },
        ]),
        Object::Rule => all.push(Filter {
            priority: Some(3),
            ..none()
        }),
        Object::Fdb => all.extend([
            Filter {
                dev: name("l7"),
                ..none()
            },
            Filter {
                mac: name("02:00:00:00:00:01"),
                ..none()
            },
            Filter {
                mac: name("02:00:00:00:00:01"),
                dev: name("l7"),
                ..none()
            },
        ]),
    }
    all
}

fn whole(question: &Question, tables: &Tables) -> Vec<String> {
    // Fields whose value the filter names are hidden there, not here.
    let mut shown = question.clone();
    if shown.output.fields.is_empty() {
        shown.output.fields = keys(question.object);
    }
    let mut out = Vec::new();
    answer(&shown, tables, &Names::default(), 0, &mut out).unwrap();
    lines(&out)
}

fn keys(object: Object) -> Vec<String> {
    let keys: &[&str] = match object {
        Object::Link => &["ifindex"],
        Object::Addr => &["ifname", "addr_info.local"],
        Object::Neigh => &["dst", "dev"],
        Object::Route => &["dst", "table", "metric"],
        Object::Nexthop => &["id"],
        Object::Rule => &["priority", "table"],
        Object::Fdb => &["ifname", "mac", "vlan"],
    };
    keys.iter().map(|key| (*key).to_owned()).collect()
}

pub(crate) fn lines(bytes: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A walk to its end by pages of a size.
pub(crate) fn paged(question: &Question, tables: &Tables, limit: u64) -> Vec<String> {
    let mut after = None;
    let mut rows = Vec::new();
    loop {
        let mut walk = Walk::new(question.clone(), after, Some(limit));
        while let Some(piece) = walk.piece(tables, &Names::default(), 0).unwrap() {
            rows.extend(lines(&piece));
        }
        assert!(walk.rows() <= limit);
        match walk.rest() {
            None => return rows,
            // As a cursor carries it.
            Some(position) => {
                let written = serde_json::to_string(position).unwrap();
                after = Some(serde_json::from_str(&written).unwrap());
            }
        }
    }
}

#[test]
fn pages_of_any_size_are_the_whole_answer_by_every_index() {
    let writer = filled();
    for object in Object::ALL {
        for filter in filters(object) {
            let mut question = question(object, filter);
            question.output.fields = keys(object);
            let whole = whole(&question, writer.tables());
            assert!(!whole.is_empty(), "{question:?}");
            for limit in [1, 2, 7, 64, 10_000] {
                let paged = paged(&question, writer.tables(), limit);
                assert_eq!(paged, whole, "{limit} {question:?}");
            }
        }
    }
}

#[test]
fn a_json_walk_without_a_limit_is_one_array() {
    let writer = filled();
    for object in Object::ALL {
        let mut question = question(object, Filter::default());
        question.output.format = Format::Json;
        let mut walk = Walk::new(question, None, None);
        let mut out = Vec::new();
        while let Some(piece) = walk.piece(writer.tables(), &Names::default(), 0).unwrap() {
            out.extend_from_slice(&piece);
        }
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
        assert_eq!(rows.len() as u64, walk.rows(), "{object:?}");
        assert!(walk.rest().is_none());
    }
}

#[test]
fn an_answer_in_pieces_is_the_answer_byte_for_byte() {
    let writer = filled();
    let small = Bounds {
        visited: 5,
        bytes: 400,
    };
    for object in Object::ALL {
        for filter in filters(object) {
            for format in [Format::Text, Format::Json, Format::Ndjson, Format::Csv] {
                let mut question = question(object, filter.clone());
                question.output.format = format;
                let Some(mut walk) = Walk::of_answer(&question) else {
                    assert_eq!(object, Object::Addr);
                    continue;
                };
                let (mut pieces, mut whole) = (Vec::new(), Vec::new());
                while let Some(piece) = walk
                    .bounded_piece(small, writer.tables(), &Names::default(), 0)
                    .unwrap()
                {
                    pieces.extend_from_slice(&piece);
                }
                let rows = answer(&question, writer.tables(), &Names::default(), 0, &mut whole);
                assert_eq!(walk.rows(), rows.unwrap(), "{question:?}");
                assert_eq!(lines(&pieces), lines(&whole), "{question:?}");
            }
        }
    }
    let mut sorted = question(Object::Link, Filter::default());
    sorted.output.sort = Some("ifname".to_owned());
    assert!(Walk::of_answer(&sorted).is_none());
}

#[test]
fn a_count_comes_at_the_end_of_all_pieces() {
    let writer = filled();
    let mut question = question(Object::Route, Filter::default());
    question.filter.table = Some("all".to_owned());
    question.output.count = true;
    let mut walk = Walk::new(question, None, None);
    let mut out = Vec::new();
    while let Some(piece) = walk.piece(writer.tables(), &Names::default(), 0).unwrap() {
        out.extend_from_slice(&piece);
    }
    assert_eq!(lines(&out), [writer.tables().routes.len().to_string()]);
}

#[test]
fn a_position_of_another_table_is_refused() {
    let writer = filled();
    let mut walk = Walk::new(
        question(Object::Route, Filter::default()),
        Some(Position::Link(1)),
        None,
    );
    let refused = walk.piece(writer.tables(), &Names::default(), 0);
    assert!(matches!(
        refused,
        Err(AnswerError::BadQuestion(BadQuestion::ForeignPosition))
    ));
}

#[test]
fn a_stopped_walk_is_whole_json_and_goes_on() {
    let writer = filled();
    let mut question = question(Object::Route, Filter::default());
    question.output.format = Format::Json;
    let mut walk = Walk::new(question, None, None);
    let mut out = walk
        .piece(writer.tables(), &Names::default(), 0)
        .unwrap()
        .unwrap();
    out.extend(walk.stop());
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
    assert!(!rows.is_empty() && walk.rest().is_some());
}

#[test]
fn what_is_skipped_or_counted_among_whole_tables_is_not_looked_at() {
    let writer = filled();
    let tables = writer.tables();
    for filter in filters(Object::Route).into_iter().take(3) {
        let mut question = question(Object::Route, filter);
        question.output.fields = keys(Object::Route);
        let whole = whole(&question, tables);
        let mut counting = question.clone();
        counting.output.count = true;
        let first = position_after(&counting, tables, None, 1).unwrap();
        for begin in [None, Some(first)] {
            let told = usize::from(begin.is_some());
            for skip in [1, 2, 299, 300, 301, whole.len() - told] {
                let at = position_after(&counting, tables, begin.clone(), skip as u64);
                let rest = at.map_or(Vec::new(), |at| {
                    let mut walk = Walk::new(question.clone(), Some(at), None);
                    let piece = walk.piece(tables, &Names::default(), 0).unwrap().unwrap();
                    lines(&piece)
                });
                assert_eq!(rest, whole[told + skip..][..rest.len()]);
                assert_eq!(rest.is_empty(), told + skip == whole.len());
            }
        }
    }
}

/// Where a walk goes on that passed over some rows, within one piece of no
/// length.
fn position_after(
    counting: &Question,
    tables: &Tables,
    after: Option<Position>,
    skip: u64,
) -> Option<Position> {
    let none = Bounds {
        visited: 0,
        bytes: 0,
    };
    let mut walk = Walk::new(counting.clone(), after, Some(skip));
    walk.bounded_piece(none, tables, &Names::default(), 0)
        .unwrap();
    assert!(walk.is_over() && walk.rows() == skip, "{skip} {counting:?}");
    walk.rest().cloned()
}

/// Random changes to the rows with odd numbers, between any two pages.
fn churn(writer: &mut Writer, random: &mut Random) {
    let mut changes = Vec::new();
    for _ in 0..random.below(40) {
        let number = 2 * random.below(1000) as u32 + 1;
        let put = random.below(2) == 0;
        let row = neighbour(1 + number % 7, number, (number % 3) as u8);
        changes.push(match put {
            true => Change::PutNeighbour(row),
            false => Change::DeleteNeighbour(row.key()),
        });
        let row = route(254, v4(number, 24), 0, body(1, (number % 4) as u8, None));
        changes.push(match put {
            true => Change::PutRoute(row, Placement::Last),
            false => Change::DeleteRoute(row.with_body(Arc::new(row.body.clone()))),
        });
    }
    writer.commit(changes).unwrap();
}

#[test]
fn a_row_that_stays_is_told_once_whatever_comes_and_goes() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let mut writer = Writer::new(Limits::default());
        let links = (1..=8).map(|index| {
            Change::PutLink(Link {
                index,
                name: format!("l{index}").into(),
                ..Link::default()
            })
        });
        writer.commit(links).unwrap();
        for number in (0..2000).step_by(2) {
            let row = neighbour(1 + number % 7, number, (number % 3) as u8);
            let hops = body(1, (number % 4) as u8, None);
            writer
                .commit([
                    Change::PutNeighbour(row),
                    Change::PutRoute(route(254, v4(number, 24), 0, hops), Placement::Last),
                ])
                .unwrap();
        }
        for (object, filter) in [
            (Object::Neigh, Filter::default()),
            (
                Object::Neigh,
                Filter {
                    mac: Some("02:00:00:00:00:01".to_owned()),
                    ..Filter::default()
                },
            ),
            (Object::Route, Filter::default()),
            (
                Object::Route,
                Filter {
                    via: Some("192.0.2.2".parse().unwrap()),
                    ..Filter::default()
                },
            ),
        ] {
            let mut question = question(object, filter);
            question.output.fields = vec!["dst".to_owned()];
            let stays: Vec<String> = whole(&question, writer.tables())
                .into_iter()
                .filter(|line| is_even(line, object))
                .collect();
            let mut told: BTreeMap<String, usize> = BTreeMap::new();
            let mut after = None;
            loop {
                let limit = 1 + random.below(90) as u64;
                let mut walk = Walk::new(question.clone(), after.take(), Some(limit));
                while let Some(piece) = walk.piece(writer.tables(), &Names::default(), 0).unwrap() {
                    for line in lines(&piece) {
                        *told.entry(line).or_default() += 1;
                    }
                    churn(&mut writer, &mut random);
                }
                match walk.rest() {
                    Some(position) => after = Some(position.clone()),
                    None => break,
                }
            }
            for line in &stays {
                assert_eq!(told.get(line), Some(&1), "seed {seed}: {line}");
            }
            assert!(told.values().all(|times| *times == 1) || object == Object::Route);
        }
    }
}

/// Whether a row is one that stays: its number is even.
fn is_even(line: &str, object: Object) -> bool {
    let row: serde_json::Value = serde_json::from_str(line).unwrap();
    let dst = row["dst"].as_str().unwrap();
    let address = dst.split('/').next().unwrap();
    let number = u32::from(address.parse::<Ipv4Addr>().unwrap());
    match object {
        Object::Route => (number >> 8) % 2 == 0,
        _ => number % 2 == 0,
    }
}
