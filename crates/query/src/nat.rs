//! Tables of a translation that runs in a process of its own (`nat_flows`
//! and its like). Its control socket is asked for a page of rows at a time,
//! and for no more rows than conditions leave of what its own filters know.
//! A walk is no moment: it tells each row once that stays.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::{IpNet, Ipv4Net};
use rusqlite::types::ValueRef;
use serde_json::Value as Json;
use translation::client::Connection;
use translation::request::{Filter, Request, Table};
use view::ColumnType;

use crate::address_text::parse;
use crate::function::Relation;
use crate::listed::{Listed, Value};
use crate::narrowing::{Compare, number, text};

/// Rows of the first page, for a statement may want few, and of each other.
const FIRST_PAGE: usize = 64;
const PAGE: usize = 1_000;
/// How long a page may take: a filter that fits few rows looks at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// Walks of a statement at a time: each holds a page.
pub(crate) const MOST_WALKS: usize = 8;

/// What a condition on a column narrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrows {
    Inside,
    Alias,
    AliasPort,
    Remote,
    Protocol,
    /// Inside addresses from here on.
    First,
    /// And up to here.
    Last,
}

/// The name of a column, where its value is in a row, and what it holds.
pub(crate) struct Column {
    pub name: &'static str,
    pub path: &'static [&'static str],
    pub holds: ColumnType,
    pub narrows: Option<Narrows>,
}

const fn plain(path: &'static [&'static str], name: &'static str, holds: ColumnType) -> Column {
    Column {
        name,
        path,
        holds,
        narrows: None,
    }
}

const fn number_of(path: &'static [&'static str], name: &'static str) -> Column {
    plain(path, name, ColumnType::Number)
}

const fn narrowing(column: Column, by: Narrows) -> Column {
    Column {
        narrows: Some(by),
        ..column
    }
}

const PROTOCOL: Column = narrowing(number_of(&["protocol"], "protocol"), Narrows::Protocol);
const INSIDE: Column = narrowing(
    plain(&["inside"], "inside", ColumnType::Address),
    Narrows::Inside,
);
const INSIDE_PORT: Column = number_of(&["inside_port"], "inside_port");
const ALIAS: Column = narrowing(
    plain(&["alias"], "alias", ColumnType::Address),
    Narrows::Alias,
);
const ALIAS_PORT: Column = narrowing(number_of(&["alias_port"], "alias_port"), Narrows::AliasPort);
const REMOTE: Column = narrowing(
    plain(&["remote"], "remote", ColumnType::Address),
    Narrows::Remote,
);
const REMOTE_PORT: Column = number_of(&["remote_port"], "remote_port");
const EXPIRES: Column = number_of(&["expires_millis"], "expires_millis");
const SUBSCRIBER: Column = plain(&["subscriber"], "subscriber", ColumnType::Text);
/// Of a subscriber's text, which may be a range.
const FIRST: Column = narrowing(
    plain(
        &["subscriber", "first"],
        "first_inside",
        ColumnType::Address,
    ),
    Narrows::First,
);
const LAST: Column = narrowing(
    plain(&["subscriber", "last"], "last_inside", ColumnType::Address),
    Narrows::Last,
);

static FLOWS: [Column; 10] = [
    PROTOCOL,
    plain(&["state"], "state", ColumnType::Text),
    INSIDE,
    INSIDE_PORT,
    ALIAS,
    ALIAS_PORT,
    REMOTE,
    REMOTE_PORT,
    number_of(&["idle_millis"], "idle_millis"),
    EXPIRES,
];
static MAPPINGS: [Column; 8] = [
    PROTOCOL,
    INSIDE,
    INSIDE_PORT,
    ALIAS,
    ALIAS_PORT,
    REMOTE,
    number_of(&["flows"], "flows"),
    EXPIRES,
];
static SUBSCRIBERS: [Column; 18] = [
    SUBSCRIBER,
    FIRST,
    LAST,
    ALIAS,
    number_of(&["ports", "tcp"], "ports_tcp"),
    number_of(&["ports", "udp"], "ports_udp"),
    number_of(&["ports", "other"], "ports_other"),
    number_of(&["sessions", "tcp"], "sessions_tcp"),
    number_of(&["sessions", "udp"], "sessions_udp"),
    number_of(&["sessions", "other"], "sessions_other"),
    number_of(&["half_open", "tcp"], "half_open_tcp"),
    number_of(&["half_open", "udp"], "half_open_udp"),
    number_of(&["blocks"], "blocks"),
    number_of(&["counted", "translated"], "translated"),
    number_of(&["counted", "addresses_made"], "addresses_made"),
    number_of(&["counted", "mappings_made"], "mappings_made"),
    number_of(&["counted", "addresses_exhausted"], "addresses_exhausted"),
    number_of(&["counted", "refused"], "refused"),
];
static BLOCKS: [Column; 10] = [
    SUBSCRIBER,
    FIRST,
    LAST,
    ALIAS,
    number_of(&["first_port"], "first_port"),
    number_of(&["last_port"], "last_port"),
    plain(&["deterministic"], "is_deterministic", ColumnType::Flag),
    number_of(&["used"], "used"),
    number_of(&["held_millis"], "held_millis"),
    number_of(&["idle_millis"], "idle_millis"),
];
static POOLS: [Column; 4] = [
    ALIAS,
    plain(&["open"], "is_open", ColumnType::Flag),
    number_of(&["blocks"], "blocks"),
    number_of(&["free_blocks"], "free_blocks"),
];
static LEASES: [Column; 9] = [
    PROTOCOL,
    INSIDE,
    INSIDE_PORT,
    ALIAS,
    ALIAS_PORT,
    number_of(&["ports"], "ports"),
    REMOTE,
    REMOTE_PORT,
    EXPIRES,
];
static HELPERS: [Column; 2] = [
    plain(&["helper"], "helper", ColumnType::Text),
    plain(&["on"], "is_on", ColumnType::Flag),
];

/// The columns of a table.
pub(crate) fn columns(table: Table) -> &'static [Column] {
    match table {
        Table::Flows => &FLOWS,
        Table::Mappings => &MAPPINGS,
        Table::Subscribers => &SUBSCRIBERS,
        Table::Blocks => &BLOCKS,
        Table::Pools => &POOLS,
        Table::Leases => &LEASES,
        Table::Helpers => &HELPERS,
    }
}

impl Narrows {
    /// Whether a condition narrows anything.
    pub(crate) fn knows(self, compare: Compare) -> bool {
        match (self, compare) {
            (_, Compare::Equal) => true,
            (Self::First, Compare::AtMost) | (Self::Last, Compare::AtLeast) => true,
            (Self::AliasPort | Self::Protocol | Self::Last, _) => false,
            (_, Compare::By(relation)) => relation != Relation::Longest,
            _ => false,
        }
    }

    /// Whether it holds addresses.
    pub(crate) fn is_address(self) -> bool {
        !matches!(self, Self::AliasPort | Self::Protocol)
    }
}

/// What conditions leave of a table.
#[derive(Debug, Default)]
pub(crate) struct Narrowed {
    filter: Filter,
    /// No row fits.
    pub is_empty: bool,
    /// Whose range begins at or before the one, and ends at or behind the
    /// other.
    first_at_most: Option<Ipv4Addr>,
    last_at_least: Option<Ipv4Addr>,
}

impl Narrowed {
    /// Takes a condition. The error is for whoever asks.
    pub(crate) fn take(
        &mut self,
        narrows: Narrows,
        compare: Compare,
        value: ValueRef<'_>,
    ) -> Result<(), String> {
        // Nothing compares with NULL.
        if matches!(value, ValueRef::Null) {
            self.is_empty = true;
            return Ok(());
        }
        match narrows {
            Narrows::AliasPort => self.number(value, |filter, port| filter.port = Some(port)),
            Narrows::Protocol => self.number(value, |filter, of| filter.protocol = Some(of)),
            _ => return self.address(narrows, compare, value),
        }
        Ok(())
    }

    fn number<T: TryFrom<i64>>(&mut self, value: ValueRef<'_>, set: fn(&mut Filter, T)) {
        match number(value).map(T::try_from) {
            Some(Ok(number)) => set(&mut self.filter, number),
            Some(Err(_)) => self.is_empty = true,
            // Another kind of number: it is looked at row by row.
            None => {}
        }
    }

    fn address(
        &mut self,
        narrows: Narrows,
        compare: Compare,
        value: ValueRef<'_>,
    ) -> Result<(), String> {
        let Some(text) = text(value) else {
            return Ok(());
        };
        let net = match compare {
            Compare::By(relation) => Some(relation.prefix(&text)?),
            _ => parse(&text),
        };
        // What is no address is no row's, and is behind all addresses.
        let Some(net) = net else {
            self.is_empty |= compare == Compare::Equal;
            return Ok(());
        };
        let is_host = net.prefix_len() == net.max_prefix_len();
        let is_around = match compare {
            Compare::By(Relation::Within) => true,
            Compare::By(Relation::InRange) => text.contains('/'),
            _ => false,
        };
        let IpNet::V4(net) = net else {
            self.is_empty |= compare != Compare::AtLeast && compare != Compare::AtMost;
            return Ok(());
        };
        if !is_host && !is_around {
            self.is_empty |= !matches!(compare, Compare::AtLeast | Compare::AtMost);
            return Ok(());
        }
        match compare {
            Compare::AtMost => self.first_at_most = Some(net.addr()),
            Compare::AtLeast => self.last_at_least = Some(net.addr()),
            Compare::Equal | Compare::By(_) => self.within(narrows, net.trunc()),
        }
        Ok(())
    }

    fn within(&mut self, narrows: Narrows, net: Ipv4Net) {
        let of = match narrows {
            Narrows::Alias => &mut self.filter.alias,
            Narrows::Remote => &mut self.filter.remote,
            _ => &mut self.filter.inside,
        };
        *of = Some(net);
    }

    /// What the translation is asked for.
    pub(crate) fn finish(mut self) -> Filter {
        if let (Some(first), Some(last)) = (self.first_at_most, self.last_at_least)
            && first == last
            && self.filter.inside.is_none()
        {
            self.filter.inside = Some(first.into());
        }
        self.filter
    }
}

/// A walk through a table.
#[derive(Debug)]
pub(crate) struct Walk {
    at: Arc<Path>,
    table: Table,
    filter: Filter,
    page: usize,
    next: Next,
    deadline: Instant,
}

/// Where a walk goes on.
#[derive(Debug)]
enum Next {
    Begins,
    Behind(String),
    Over,
}

impl Walk {
    pub(crate) fn new(at: Arc<Path>, table: Table, filter: Filter, deadline: Instant) -> Self {
        Self {
            at,
            table,
            filter,
            page: FIRST_PAGE,
            next: Next::Begins,
            deadline,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.next, Next::Over)
    }

    /// Takes a page of rows; it may be empty before the end.
    pub(crate) fn take(&mut self, rows: &mut Vec<Listed>) -> Result<(), String> {
        let after = match &self.next {
            Next::Begins => None,
            Next::Behind(place) => Some(place.clone()),
            Next::Over => return Ok(()),
        };
        let request = Request::Show {
            table: self.table,
            filter: self.filter.clone(),
            count: false,
            limit: Some(self.page),
            top: None,
            after,
        };
        let left = self.deadline.saturating_duration_since(Instant::now());
        let patience = left.min(PATIENCE);
        let (columns, most) = (columns(self.table), self.page);
        let asked = Connection::open(&self.at).and_then(|connection| {
            connection.ask(&request, Some(patience), &mut |row| {
                anyhow::ensure!(rows.len() < most, "it gives more rows than were asked for");
                let values = columns.iter().map(|column| value(&row, column.path));
                rows.push(Listed::Values(values.collect()));
                Ok(())
            })
        });
        self.next = match asked.map_err(|error| format!("the translation: {error:#}"))? {
            Some(place) => Next::Behind(place),
            None => Next::Over,
        };
        self.page = PAGE;
        Ok(())
    }
}

/// A value of a row.
fn value(row: &Json, path: &[&str]) -> Value {
    match path {
        [name @ "subscriber", end] => match row.get(*name).and_then(Json::as_str) {
            Some(range) => end_of(range, *end == "first").into(),
            None => Value::None,
        },
        _ => {
            let found = path.iter().try_fold(row, |row, name| row.get(*name));
            match found {
                Some(Json::String(text)) => text.as_str().into(),
                Some(Json::Bool(is)) => (*is).into(),
                Some(Json::Number(number)) => number.as_u64().into(),
                _ => Value::None,
            }
        }
    }
}

/// An end of a range of addresses, or the address that is alone.
fn end_of(range: &str, is_first: bool) -> &str {
    match range.split_once('-') {
        Some((first, _)) if is_first => first,
        Some((_, last)) => last,
        None => range,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed(conditions: &[(Narrows, Compare, ValueRef<'_>)]) -> Option<Filter> {
        let mut narrowed = Narrowed::default();
        for (narrows, compare, value) in conditions {
            narrowed.take(*narrows, *compare, *value).unwrap();
        }
        (!narrowed.is_empty).then(|| narrowed.finish())
    }

    fn text(text: &str) -> ValueRef<'_> {
        ValueRef::Text(text.as_bytes())
    }

    #[test]
    fn conditions_become_the_translation_s_own_filters() {
        let filter = narrowed(&[
            (Narrows::Inside, Compare::Equal, text("10.0.0.7")),
            (
                Narrows::Alias,
                Compare::By(Relation::Within),
                text("192.0.2.0/24"),
            ),
            (
                Narrows::Remote,
                Compare::By(Relation::Covers),
                text("198.51.100.9"),
            ),
            (
                Narrows::AliasPort,
                Compare::Equal,
                ValueRef::Integer(65_535),
            ),
            (Narrows::Protocol, Compare::Equal, text("17")),
        ]);
        let expected = Filter {
            inside: "10.0.0.7/32".parse().ok(),
            alias: "192.0.2.0/24".parse().ok(),
            remote: "198.51.100.9/32".parse().ok(),
            port: Some(65_535),
            protocol: Some(17),
        };
        assert_eq!(filter, Some(expected));
        let whose = narrowed(&[
            (Narrows::First, Compare::AtMost, text("10.0.0.7")),
            (Narrows::Last, Compare::AtLeast, text("10.0.0.7")),
        ]);
        assert_eq!(whose.unwrap().inside, "10.0.0.7/32".parse().ok());
    }

    #[test]
    fn what_no_row_has_is_not_asked_for_and_what_cannot_be_said_narrows_nothing() {
        for (narrows, compare, value) in [
            (Narrows::Inside, Compare::Equal, ValueRef::Null),
            (Narrows::Inside, Compare::Equal, text("fd00::1")),
            (Narrows::Inside, Compare::Equal, text("10.0.0.0/8")),
            (Narrows::Inside, Compare::Equal, text("somebody")),
            (
                Narrows::AliasPort,
                Compare::Equal,
                ValueRef::Integer(65_536),
            ),
            (Narrows::Protocol, Compare::Equal, ValueRef::Integer(-1)),
            (
                Narrows::Remote,
                Compare::By(Relation::Covers),
                text("10.0.0.0/8"),
            ),
        ] {
            assert_eq!(narrowed(&[(narrows, compare, value)]), None, "{narrows:?}");
        }
        for (narrows, compare, value) in [
            (Narrows::AliasPort, Compare::Equal, ValueRef::Real(1.5)),
            (Narrows::Last, Compare::AtLeast, text("10.0.0.7")),
            (Narrows::First, Compare::AtMost, text("fd00::1")),
        ] {
            let filter = narrowed(&[(narrows, compare, value)]);
            assert_eq!(filter, Some(Filter::default()), "{narrows:?}");
        }
        let mut wrong = Narrowed::default();
        let within = Compare::By(Relation::Within);
        assert!(wrong.take(Narrows::Inside, within, text("10/8")).is_err());
        assert!(!Narrows::Inside.knows(Compare::By(Relation::Longest)));
        assert!(!Narrows::AliasPort.knows(Compare::AtLeast));
    }

    #[test]
    fn a_range_has_two_ends() {
        for (range, first, last) in [
            ("10.0.0.7", "10.0.0.7", "10.0.0.7"),
            ("10.0.0.0-10.0.0.15", "10.0.0.0", "10.0.0.15"),
        ] {
            assert_eq!((end_of(range, true), end_of(range, false)), (first, last));
        }
    }
}
