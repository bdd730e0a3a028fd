//! The tables of SQL and their columns. Those of rows have the columns that
//! rows have everywhere ([`view::columns`]), under names that SQL takes
//! without quotes; what stands here beside them is SQL's own.

use std::fmt::Write;
use std::sync::LazyLock;

use translation::request::Table;
use view::{Column, ColumnType, Object};

use crate::address_text::COLLATION;
use crate::nat;

/// What the rows of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Those of a kind of row.
    Of(Object),
    /// The next hops of routes, one row each.
    Hops,
    /// What changed.
    Events,
    /// Who feeds rows beside the kernel.
    Feeds,
    /// The BGP peers that routers tell of.
    Peers,
    /// Those of a translation that runs.
    Nat(Table),
}

/// A table.
#[derive(Debug)]
pub(crate) struct Schema {
    pub name: &'static str,
    pub rows: Rows,
    pub columns: Vec<SqlColumn>,
}

/// A column.
#[derive(Debug)]
pub(crate) struct SqlColumn {
    pub name: String,
    pub from: From,
    pub holds: ColumnType,
    /// It is no part of `*`.
    pub is_hidden: bool,
    /// What a condition on it narrows.
    pub narrows: Narrows,
}

/// Where a column's values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The field of a row, by the name of its column.
    Field(&'static str),
    /// A route's prefix, which has a family even where it is a default.
    Prefix,
    /// A route's metric, 0 as well.
    Metric,
    /// Whose rows they are.
    Source,
    /// Of a next hop: its place among those of its route.
    Hop,
    Gateway,
    Device,
    Weight,
    /// The value at a place of a row that was listed.
    Listed(usize),
}

/// What an index finds by the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrows {
    Nothing,
    /// The index of the row's link.
    Link,
    /// The name of the row's link.
    LinkName,
    /// The address of the row.
    Host,
    /// The prefix of a route.
    Prefix,
    /// The same as `ip` writes it.
    Destination,
    Gateway,
    PreferredSource,
    /// The id of a next-hop object.
    Nexthop,
    Mac,
    /// The table of a route, by name.
    Table,
    /// Whose rows are looked at.
    Source,
    /// When it happened.
    Time,
    /// What a translation is asked for.
    Nat(nat::Narrows),
}

/// All tables.
pub(crate) static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let all = [
        ("links", Rows::Of(Object::Link)),
        ("addresses", Rows::Of(Object::Addr)),
        ("neighbours", Rows::Of(Object::Neigh)),
        ("routes", Rows::Of(Object::Route)),
        ("next_hops", Rows::Of(Object::Nexthop)),
        ("hops", Rows::Hops),
        ("rules", Rows::Of(Object::Rule)),
        ("fdb", Rows::Of(Object::Fdb)),
        (COUNTERS, Rows::Of(Object::Link)),
        ("events", Rows::Events),
        ("feeds", Rows::Feeds),
        ("peers", Rows::Peers),
        ("nat_flows", Rows::Nat(Table::Flows)),
        ("nat_mappings", Rows::Nat(Table::Mappings)),
        ("nat_subscribers", Rows::Nat(Table::Subscribers)),
        ("nat_blocks", Rows::Nat(Table::Blocks)),
        ("nat_pools", Rows::Nat(Table::Pools)),
        ("nat_leases", Rows::Nat(Table::Leases)),
        ("nat_helpers", Rows::Nat(Table::Helpers)),
    ];
    all.map(|(name, rows)| Schema::new(name, rows)).into()
});

/// The table of links' counters.
pub(crate) const COUNTERS: &str = "counters";

/// Names that are words of SQL, or that say too little by themselves.
const RENAMED: [(&str, &str); 4] = [
    ("table", "table_name"),
    ("from", "from_prefix"),
    ("group", "group_name"),
    ("not", "is_not"),
];

/// Words of SQL that would be short names of settings.
const WORDS: [&str; 8] = [
    "check", "default", "index", "limit", "order", "primary", "set", "unique",
];

/// Parts of names that say nothing in a table that has no others.
const LEFT_OUT: [&str; 6] = [
    "addr_info.",
    "stats64.",
    "linkinfo.info_data.",
    "linkinfo.info_slave_data.",
    "linkinfo.info_",
    "linkinfo.",
];

impl Schema {
    fn new(name: &'static str, rows: Rows) -> Self {
        let columns = match rows {
            Rows::Of(object) => of_rows(name, object),
            Rows::Hops => of_hops(),
            Rows::Events => events(&[
                ("generation", ColumnType::Number),
                ("event", ColumnType::Text),
                ("object", ColumnType::Text),
                ("change", ColumnType::Text),
            ]),
            Rows::Feeds => listed(&[
                ("name", ColumnType::Text),
                ("phase", ColumnType::Text),
                ("complete", ColumnType::Flag),
                ("routes", ColumnType::Number),
                ("next_hops", ColumnType::Number),
                ("unconfirmed", ColumnType::Number),
                ("peer", ColumnType::Text),
                ("listening", ColumnType::Text),
                ("since_millis", ColumnType::Number),
                ("messages", ColumnType::Number),
            ]),
            Rows::Peers => listed(&[
                ("source", ColumnType::Text),
                ("router", ColumnType::Text),
                ("address", ColumnType::Address),
                ("asn", ColumnType::Number),
                ("bgp_id", ColumnType::Address),
                ("rib", ColumnType::Text),
                ("distinguisher", ColumnType::Text),
                ("up", ColumnType::Flag),
                ("ups", ColumnType::Number),
                ("downs", ColumnType::Number),
                ("routes", ColumnType::Number),
            ]),
            Rows::Nat(table) => of_translation(table),
        };
        let mut schema = Self {
            name,
            rows,
            columns,
        };
        if !matches!(rows, Rows::Feeds | Rows::Peers | Rows::Nat(_)) {
            let source = SqlColumn {
                is_hidden: true,
                ..own("source", From::Source, ColumnType::Text, Narrows::Source)
            };
            schema.columns.retain(|column| column.name != source.name);
            schema.columns.push(source);
        }
        schema
    }

    /// What SQLite is told of it.
    pub(crate) fn declaration(&self) -> String {
        let mut sql = "create table x(".to_owned();
        for (at, column) in self.columns.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let holds = match column.holds {
                ColumnType::Number | ColumnType::Flag => "integer",
                ColumnType::Address | ColumnType::Prefix => "text",
                ColumnType::LinkLayer | ColumnType::Text | ColumnType::List | ColumnType::Row => {
                    "text"
                }
                _ => "numeric",
            };
            let order = match column.holds {
                ColumnType::Address | ColumnType::Prefix => format!(" collate {COLLATION}"),
                ColumnType::LinkLayer => " collate nocase".to_owned(),
                _ => String::new(),
            };
            let hidden = if column.is_hidden { " hidden" } else { "" };
            // Writing to a string does not fail.
            let _ = write!(sql, "{comma}\"{}\" {holds}{hidden}{order}", column.name);
        }
        sql.push(')');
        sql
    }

    /// A column by its name.
    pub(crate) fn column(&self, name: &str) -> Option<&SqlColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}

fn own(name: &str, from: From, holds: ColumnType, narrows: Narrows) -> SqlColumn {
    SqlColumn {
        name: name.to_owned(),
        from,
        holds,
        is_hidden: false,
        narrows,
    }
}

fn listed(columns: &[(&str, ColumnType)]) -> Vec<SqlColumn> {
    let column = |(at, (name, holds)): (usize, &(&str, ColumnType))| {
        own(name, From::Listed(at), *holds, Narrows::Nothing)
    };
    columns.iter().enumerate().map(column).collect()
}

/// The columns of what changed, behind when it did.
fn events(others: &[(&str, ColumnType)]) -> Vec<SqlColumn> {
    let time = [("time_millis", ColumnType::Number)];
    let mut columns = listed(&[&time, others].concat());
    if let Some(first) = columns.first_mut() {
        first.narrows = Narrows::Time;
    }
    columns
}

/// The columns of a translation's table.
fn of_translation(table: Table) -> Vec<SqlColumn> {
    let column = |(at, column): (usize, &nat::Column)| {
        let narrows = column.narrows.map_or(Narrows::Nothing, Narrows::Nat);
        own(column.name, From::Listed(at), column.holds, narrows)
    };
    nat::columns(table).iter().enumerate().map(column).collect()
}

/// The columns of a kind of row.
fn of_rows(table: &str, object: Object) -> Vec<SqlColumn> {
    let all = view::columns(object);
    let mut columns = Vec::new();
    if object == Object::Route {
        columns.push(own(
            "prefix",
            From::Prefix,
            ColumnType::Prefix,
            Narrows::Prefix,
        ));
    }
    for column in all.iter().filter(|column| is_of(table, object, column)) {
        let from = match (object, column.name) {
            (Object::Route, "metric") => From::Metric,
            (_, name) => From::Field(name),
        };
        let short = short_name(column.name);
        let is_taken = |name: &str| columns.iter().any(|known: &SqlColumn| known.name == name);
        let name = match is_taken(&short) || WORDS.contains(&&*short) {
            true => plain(column.name),
            false => short,
        };
        if is_taken(&name) {
            continue;
        }
        columns.push(SqlColumn {
            name,
            from,
            holds: column.holds,
            is_hidden: is_hidden(table, object, column),
            narrows: narrows(object, column.name),
        });
    }
    columns
}

/// Whether a table has a column of its rows: addresses have those of their
/// link in `links`, and counters nothing else.
fn is_of(table: &str, object: Object, column: &Column) -> bool {
    let names_link = matches!(column.name, "ifindex" | "ifname");
    match object {
        Object::Addr => names_link || column.name.starts_with("addr_info."),
        Object::Link if table == COUNTERS => names_link || column.sampled,
        _ => true,
    }
}

fn is_hidden(table: &str, object: Object, column: &Column) -> bool {
    column.rare
        || column.sampled && table != COUNTERS
        || object == Object::Route && (column.name == "dst" || column.name.contains('.'))
}

fn short_name(name: &str) -> String {
    let rest = LEFT_OUT.iter().find_map(|part| name.strip_prefix(part));
    plain(rest.unwrap_or(name))
}

/// A name that SQL takes without quotes.
fn plain(name: &str) -> String {
    let name = name.replace(['.', '-'], "_").to_ascii_lowercase();
    let renamed = RENAMED.iter().find(|(known, _)| *known == name);
    renamed.map_or(name, |(_, name)| (*name).to_owned())
}

fn narrows(object: Object, name: &str) -> Narrows {
    match (object, name) {
        (Object::Link | Object::Addr, "ifindex") => Narrows::Link,
        (Object::Link | Object::Addr | Object::Fdb, "ifname") => Narrows::LinkName,
        (Object::Neigh | Object::Route | Object::Nexthop, "dev") => Narrows::LinkName,
        (Object::Addr, "addr_info.local") | (Object::Neigh, "dst") => Narrows::Host,
        (Object::Neigh, "lladdr") | (Object::Fdb, "mac") => Narrows::Mac,
        (Object::Route, "dst") => Narrows::Destination,
        (Object::Route, "gateway" | "via.host") => Narrows::Gateway,
        (Object::Route, "prefsrc") => Narrows::PreferredSource,
        (Object::Route, "nhid") | (Object::Nexthop, "id") => Narrows::Nexthop,
        (Object::Route, "table") => Narrows::Table,
        _ => Narrows::Nothing,
    }
}

/// The columns of next hops: what tells their route, then their own.
fn of_hops() -> Vec<SqlColumn> {
    let text = ColumnType::Text;
    let number = ColumnType::Number;
    let field = |name, narrows| own(&plain(name), From::Field(name), text, narrows);
    let mut nhid = field("nhid", Narrows::Nexthop);
    nhid.holds = number;
    vec![
        own("prefix", From::Prefix, ColumnType::Prefix, Narrows::Prefix),
        field("table", Narrows::Table),
        own("metric", From::Metric, number, Narrows::Nothing),
        field("protocol", Narrows::Nothing),
        nhid,
        own("hop", From::Hop, number, Narrows::Nothing),
        own(
            "gateway",
            From::Gateway,
            ColumnType::Address,
            Narrows::Nothing,
        ),
        own("dev", From::Device, text, Narrows::Nothing),
        own("weight", From::Weight, number, Narrows::Nothing),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_columns_of_rows_have_a_name_that_needs_no_quotes_and_is_no_other_s() {
        for schema in SCHEMAS.iter() {
            let mut names: Vec<_> = schema.columns.iter().map(|column| &column.name).collect();
            for name in &names {
                let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
                assert!(name.bytes().all(is_plain), "{}.{name}", schema.name);
            }
            names.sort_unstable();
            assert!(names.is_sorted_by(|a, b| a < b), "{}", schema.name);
        }
        let routes = SCHEMAS
            .iter()
            .find(|schema| schema.name == "routes")
            .unwrap();
        let shown = routes.columns.iter().filter(|column| !column.is_hidden);
        let shown: Vec<&str> = shown.map(|column| &*column.name).collect();
        assert!(shown.starts_with(&["prefix", "type"]), "{shown:?}");
        for name in ["table_name", "gateway", "dev", "nhid", "metric", "as_path"] {
            assert!(shown.contains(&name), "{name}: {shown:?}");
        }
        for hidden in ["dst", "via_host", "nexthops_dev", "source"] {
            assert!(routes.column(hidden).unwrap().is_hidden, "{hidden}");
        }
        let counters = SCHEMAS
            .iter()
            .find(|schema| schema.name == COUNTERS)
            .unwrap();
        let names: Vec<&str> = counters
            .columns
            .iter()
            .map(|column| &*column.name)
            .collect();
        assert!(
            names.starts_with(&["ifindex", "ifname", "rx_bytes"]),
            "{names:?}"
        );
    }
}
