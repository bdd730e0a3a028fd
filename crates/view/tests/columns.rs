//! Chosen columns on a namespace with a row of every kind: a column alone,
//! the same among all columns, and in the row told whole.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test or a benchmark ends at the first surprise, and tells it"
)]

mod support;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use fingerpost_view as view;
use ipnet::IpNet;
use serde_json::Value;
use support::{Rows, now_millis, rich};
use table::{LinkCounters, NeighbourAges, NeighbourSample, Sample, Tables};
use view::{ColumnType, Filter, Format, Names, Object, Output, Question, answer, columns};

/// A namespace's tables with samples for every row, and the time of them.
fn tables(tag: &str) -> Option<(Tables, u64)> {
    let netns = rich(tag)?;
    let mut tables = Rows::of(&netns).tables();
    let now = now_millis();
    let counters = |index: u32| LinkCounters {
        rx_bytes: u64::from(index) << 40,
        tx_compressed: index.into(),
        ..LinkCounters::default()
    };
    let links = tables.links.iter();
    let counters = links.map(|link| (link.index, counters(link.index).into()));
    tables.link_counters = Arc::new(Sample::new(now, counters.collect()));
    let ages = NeighbourAges {
        used_millis: 7000,
        references: 1,
        ..NeighbourAges::default()
    };
    let samples = tables
        .neighbours
        .iter()
        .map(|row| (row.key(), NeighbourSample { ages }))
        .collect();
    tables.neighbour_samples = Arc::new(Sample::new(now, samples));
    Some((tables, now))
}

fn shown(
    (tables, now): &(Tables, u64),
    object: Object,
    format: Format,
    fields: &[&str],
) -> Vec<String> {
    let question = Question {
        object,
        filter: Filter {
            table: (object == Object::Route).then(|| "all".into()),
            ..Filter::default()
        },
        output: Output {
            format,
            fields: fields.iter().map(|&field| field.into()).collect(),
            details: true,
            statistics: true,
            ..Output::default()
        },
    };
    let mut out = Vec::new();
    answer(&question, tables, &Names::default(), *now, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let header = usize::from(format == Format::Csv);
    text.lines().skip(header).map(Into::into).collect()
}

/// All columns, and the wholes that they are parts of.
fn names(object: Object) -> Vec<&'static str> {
    let mut names = BTreeSet::new();
    for column in columns(object) {
        let column = column.name;
        let dots = column.match_indices('.').map(|(at, _)| at);
        names.extend(dots.chain([column.len()]).map(|at| &column[..at]));
    }
    names.into_iter().collect()
}

/// Rows of JSON; each a map from the column to its value.
fn parsed(lines: &[String]) -> Vec<Value> {
    let parse = |line: &String| serde_json::from_str(line).unwrap();
    lines.iter().map(parse).collect()
}

/// The cells of a line of CSV, quotes taken off.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let cell = cells.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells
}

#[test]
fn a_column_alone_is_the_same_as_among_all() {
    let Some(tables) = tables("view-columns") else {
        return;
    };
    for object in Object::ALL {
        let forth = names(object);
        let back: Vec<_> = forth.iter().rev().copied().collect();
        let plain = columns(object).into_iter().map(|column| column.name);
        for names in [plain.collect(), forth, back] {
            let json = parsed(&shown(&tables, object, Format::Ndjson, &names));
            let csv = shown(&tables, object, Format::Csv, &names);
            let csv: Vec<_> = csv.iter().map(|line| cells(line)).collect();
            assert!(!json.is_empty() && json.len() == csv.len(), "{object:?}");
            for (at, name) in names.iter().enumerate() {
                let alone = parsed(&shown(&tables, object, Format::Ndjson, &[name]));
                let among: Vec<_> = json.iter().map(|row| row.get(name)).collect();
                let alone: Vec<_> = alone.iter().map(|row| row.get(name)).collect();
                assert_eq!(alone, among, "{object:?} {name}");
                let alone = shown(&tables, object, Format::Csv, &[name]);
                let alone: Vec<_> = alone.iter().map(|line| cells(line)).collect();
                let among: Vec<_> = csv.iter().map(|row| vec![row[at].clone()]).collect();
                assert_eq!(alone, among, "{object:?} {name}");
            }
        }
    }
}

/// What a row has at a path, found by walking the row.
fn found<'r>(row: &'r Value, path: &[&str], many: &mut bool) -> Vec<&'r Value> {
    let Some((key, rest)) = path.split_first() else {
        return vec![row];
    };
    match row.get(key) {
        None => Vec::new(),
        Some(Value::Array(items)) if !rest.is_empty() => {
            *many = true;
            let inside = items.iter().flat_map(|item| found(item, rest, many));
            inside.collect()
        }
        Some(value) => found(value, rest, many),
    }
}

#[test]
fn columns_are_what_the_whole_row_has_at_their_names() {
    let Some(tables) = tables("view-whole") else {
        return;
    };
    let mut compared = 0;
    // As columns, addresses are rows of their own.
    for object in Object::ALL.into_iter().filter(|of| *of != Object::Addr) {
        let names = names(object);
        let whole = parsed(&shown(&tables, object, Format::Ndjson, &[]));
        let chosen = parsed(&shown(&tables, object, Format::Ndjson, &names));
        assert_eq!(whole.len(), chosen.len(), "{object:?}");
        for (whole, chosen) in whole.iter().zip(&chosen) {
            // A tunnel repeats keys of its route, as `ip -j` has it.
            if whole.get("encap").is_some() {
                continue;
            }
            for name in &names {
                let path: Vec<_> = name.split('.').collect();
                let mut many = false;
                let found = found(whole, &path, &mut many);
                let expected = match (found.as_slice(), many) {
                    ([], _) => None,
                    ([one], false) => Some((*one).clone()),
                    (several, _) => Some(several.iter().map(|&one| one.clone()).collect()),
                };
                compared += usize::from(expected.is_some());
                assert_eq!(chosen.get(name), expected.as_ref(), "{object:?} {name}");
            }
        }
    }
    assert!(compared > 500, "only {compared} values were compared");
}

/// Whether a value is of a column's type.
fn is_of(value: &Value, holds: ColumnType) -> bool {
    let text = value.as_str();
    match holds {
        ColumnType::Text | ColumnType::LinkLayer => text.is_some(),
        ColumnType::Number => value.is_i64() || value.is_u64(),
        ColumnType::Flag => value.is_null() || value.is_boolean(),
        ColumnType::List => value
            .as_array()
            .is_some_and(|items| items.iter().all(Value::is_string)),
        ColumnType::Row => value.is_object(),
        ColumnType::Address => text.is_some_and(|text| text.parse::<IpAddr>().is_ok()),
        ColumnType::Prefix => text.is_some_and(|text| {
            text == "default" || text.parse::<IpAddr>().is_ok() || text.parse::<IpNet>().is_ok()
        }),
        _ => !value.is_array() && !value.is_object(),
    }
}

#[test]
fn a_column_holds_what_its_type_says() {
    let Some(tables) = tables("view-typed") else {
        return;
    };
    let mut compared = 0;
    for object in Object::ALL {
        let columns = columns(object);
        let names: Vec<_> = columns.iter().map(|column| column.name).collect();
        let rows = parsed(&shown(&tables, object, Format::Ndjson, &names));
        for (row, column) in rows
            .iter()
            .flat_map(|row| columns.iter().map(move |of| (row, of)))
        {
            let Some(value) = row.get(column.name) else {
                continue;
            };
            // Through a list, a column has a value for each of its items.
            let through = ["addr_info", "nexthops", "metrics", "group"];
            let values = match value {
                Value::Array(items) if through.iter().any(|list| column.name.starts_with(list)) => {
                    items.clone()
                }
                one => vec![one.clone()],
            };
            compared += values.len();
            for value in values {
                assert!(
                    is_of(&value, column.holds),
                    "{object:?} {column:?}: {value}"
                );
            }
        }
    }
    assert!(compared > 500, "only {compared} values were compared");
}
