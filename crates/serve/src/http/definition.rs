//! What can be asked, each defined once: the routes, their parameters and
//! the OpenAPI document are made from these tables and from the words of
//! the command line ([`view::conditions`]).

use table::Tables;
use view::Object;

/// A table that can be asked for.
#[derive(Debug)]
pub struct Table {
    /// Its path.
    pub path: &'static str,
    /// What it has.
    pub object: Object,
    /// One of its rows, in words.
    pub row: &'static str,
    /// All of it, in words.
    pub summary: &'static str,
    /// How many rows it has.
    pub rows: fn(&Tables) -> u64,
}

impl Table {
    /// Its name: the end of its path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

/// A parameter that no word of the command line stands for.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    /// What its value is.
    pub value: Value,
}

/// The value of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// Any text.
    Text,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A number up to.
    Number(u64),
    /// True or false.
    Switch,
}

/// All tables.
pub static TABLES: &[Table] = &[
    Table {
        path: "/v1/links",
        object: Object::Link,
        row: "Link",
        summary: "Links, as `ip -j link` shows them",
        rows: |tables| tables.links.len() as u64,
    },
    Table {
        path: "/v1/addresses",
        object: Object::Addr,
        row: "Address",
        summary: "Addresses, one a row, as `ip -j addr` shows them with their link",
        rows: |tables| tables.addresses.len() as u64,
    },
    Table {
        path: "/v1/neighbours",
        object: Object::Neigh,
        row: "Neighbour",
        summary: "ARP and ND neighbours, as `ip -j neigh` shows them",
        rows: |tables| tables.neighbours.len() as u64,
    },
    Table {
        path: "/v1/routes",
        object: Object::Route,
        row: "Route",
        summary: "Routes, as `ip -j route` shows them",
        rows: |tables| tables.routes.len() as u64,
    },
    Table {
        path: "/v1/nexthops",
        object: Object::Nexthop,
        row: "Nexthop",
        summary: "Next-hop objects, as `ip -j nexthop` shows them",
        rows: |tables| tables.nexthops.len() as u64,
    },
    Table {
        path: "/v1/rules",
        object: Object::Rule,
        row: "Rule",
        summary: "Rules of policy routing, as `ip -j rule` shows them",
        rows: |tables| tables.rules.len() as u64,
    },
    Table {
        path: "/v1/fdb",
        object: Object::Fdb,
        row: "FdbEntry",
        summary: "Bridge and VXLAN forwarding entries, as `bridge -j fdb` shows them",
        rows: |tables| tables.fdb.len() as u64,
    },
];

/// Which namespace.
pub const NETNS: Parameter = Parameter {
    name: "netns",
    help: "Of this namespace, by the name that the daemon mirrors it under; without: its own",
    value: Value::Text,
};

/// How rows are written.
pub const OUTPUT: &[Parameter] = &[
    Parameter {
        name: "format",
        help: "What rows are written as, whatever Accept says",
        value: Value::OneOf(&["json", "ndjson", "csv"]),
    },
    Parameter {
        name: "fields",
        help: "Columns by name, between commas; nested ones with dots",
        value: Value::Text,
    },
    Parameter {
        name: "details",
        help: "More details, as `ip -d`",
        value: Value::Switch,
    },
    Parameter {
        name: "statistics",
        help: "Counters and ages, as `ip -s`, at most two seconds old",
        value: Value::Switch,
    },
    Parameter {
        name: "words",
        help: "In each row the line of text that `ip` shows for it, as `words`",
        value: Value::Switch,
    },
    Parameter {
        name: "count",
        help: "Only the number of rows",
        value: Value::Switch,
    },
];

/// Conditions in one text.
pub const FILTER: Parameter = Parameter {
    name: "filter",
    help: "Conditions as they stand on the command line behind `show`: `dev eth0 proto bgp`. \
           They go before parameters that say the same",
    value: Value::Text,
};

/// Pages.
pub const PAGES: &[Parameter] = &[
    Parameter {
        name: "limit",
        help: "Rows of a page at most. The Link header (`rel=\"next\"`) leads to the next page; \
               without it there is none. Without a limit all rows are streamed",
        value: Value::Number(super::rows::MAX_LIMIT),
    },
    Parameter {
        name: "skip",
        help: "Rows to pass over first, after the place that `after` says: how a page in the \
               middle is reached. Among all routes of a table that costs no \
               more than the first page; with other filters the rows are counted one by one, in \
               pieces between which others are answered",
        value: Value::Number(super::rows::MAX_SKIP),
    },
    Parameter {
        name: "after",
        help: "Where the page before ended, as its Link header has it. A walk page by page tells \
               every row that is there throughout exactly once, whatever comes and goes",
        value: Value::Text,
    },
];

/// Of `/v1/routes/get`.
pub const ADDRESS: Parameter = Parameter {
    name: "address",
    help: "Where the packet goes",
    value: Value::Text,
};

/// Of `/v1/routes/diff`.
pub const DIFF: [Parameter; 6] = [
    Parameter {
        name: "first",
        help: "A source of routes: `kernel`, or a feed",
        value: Value::Text,
    },
    Parameter {
        name: "second",
        help: "The source that it is compared with",
        value: Value::Text,
    },
    Parameter {
        name: "strict",
        help: "Compare all routes of a prefix, with metric, protocol, scope, source and metrics; \
               without: the type and the next hops of the best",
        value: Value::Switch,
    },
    Parameter {
        name: "format",
        help: "What differences are written as, whatever Accept says",
        value: Value::OneOf(&["json", "ndjson"]),
    },
    Parameter {
        name: "count",
        help: "Only the number of prefixes that differ",
        value: Value::Switch,
    },
    Parameter {
        name: "details",
        help: "More details of each route, as `ip -d`",
        value: Value::Switch,
    },
];

/// Of `/v1/routes/why`.
pub const WHY: [Parameter; 3] = [
    Parameter {
        name: "prefix",
        help: "A prefix or an address",
        value: Value::Text,
    },
    Parameter {
        name: "table",
        help: "The table, by name or number; without: main",
        value: Value::Text,
    },
    Parameter {
        name: "details",
        help: "More details of each route, as `ip -d`",
        value: Value::Switch,
    },
];

/// Of `/v1/routes/flaps`.
pub const FLAPS: [Parameter; 7] = [
    Parameter {
        name: "source",
        help: "Prefix by prefix of this source: `kernel`, or a feed; without: a sum for each",
        value: Value::Text,
    },
    Parameter {
        name: "table",
        help: "Only in this table, by name or number; without: in all",
        value: Value::Text,
    },
    Parameter {
        name: "within",
        help: "Only prefixes within this one",
        value: Value::Text,
    },
    Parameter {
        name: "secs",
        help: "Over so many seconds; without: 3600",
        value: Value::Number(u32::MAX as u64),
    },
    Parameter {
        name: "limit",
        help: "So many at most; without: 100",
        value: Value::Number(view::route_flaps::MAX_LIMIT as u64),
    },
    Parameter {
        name: "sort",
        help: "Sorted by changes, added, changed, deleted, last or name, downwards behind `-`; \
               without: -changes",
        value: Value::Text,
    },
    Parameter {
        name: "parts",
        help: "The time in so many parts, with how often each prefix of `source` changed in \
               each; without: none",
        value: Value::Number(view::route_flaps::MAX_PARTS as u64),
    },
];

/// Of `/v1/changes`.
pub const CHANGES: &[Parameter] = &[
    Parameter {
        name: "object",
        help: "Changes of these tables, between commas (links, addresses, neighbours, routes, \
               nexthops, rules, fdb); without: of all. With one, its filters may be said too",
        value: Value::Text,
    },
    Parameter {
        name: "from",
        help: "Changes after this generation, as the Fingerpost-Generation header of an answer \
               or the id of an event has it; Last-Event-ID says the same. Without: from now on",
        value: Value::Text,
    },
];
