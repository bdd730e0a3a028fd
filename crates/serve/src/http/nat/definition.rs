//! What can be asked of a translation over HTTP, and what its rows have: the
//! routes and the OpenAPI document are made of it.

use serde_json::{Map, Value, json};
use translation::request::{Filter, Table};

use super::super::definition::{Parameter, Value as Kind};

/// A table of a translation.
#[derive(Debug)]
pub struct NatTable {
    /// Its path.
    pub path: &'static str,
    /// Which it is.
    pub table: Table,
    /// One of its rows, in words.
    pub row: &'static str,
    /// All of it, in words.
    pub summary: &'static str,
    /// What a row has.
    columns: &'static [(&'static str, Column)],
}

/// What stands in a column.
#[derive(Debug, Clone, Copy)]
enum Column {
    Text,
    TextOrNull,
    Number,
    NumberOrNull,
    Switch,
    /// Numbers by TCP, UDP, all others.
    Classes,
    /// Numbers by TCP, UDP.
    TwoClasses,
    /// What is counted of a subscriber, where that is asked for.
    Counted,
}

use Column::{Classes, Counted, Number, NumberOrNull, Switch, Text, TextOrNull, TwoClasses};

/// All tables.
pub static TABLES: &[NatTable] = &[
    NatTable {
        path: "/v1/nat/flows",
        table: Table::Flows,
        row: "NatFlow",
        summary: "Conversations of a translation, as `nat show flows --json` shows them",
        columns: &[
            ("protocol", Number),
            ("state", Text),
            ("inside", Text),
            ("inside_port", Number),
            ("alias", Text),
            ("alias_port", Number),
            ("remote", Text),
            ("remote_port", Number),
            ("idle_millis", Number),
            ("expires_millis", Number),
        ],
    },
    NatTable {
        path: "/v1/nat/mappings",
        table: Table::Mappings,
        row: "NatMapping",
        summary: "Outside ports that conversations share",
        columns: &[
            ("protocol", Number),
            ("inside", Text),
            ("inside_port", Number),
            ("alias", Text),
            ("alias_port", Number),
            ("remote", TextOrNull),
            ("flows", Number),
            ("expires_millis", Number),
        ],
    },
    NatTable {
        path: "/v1/nat/subscribers",
        table: Table::Subscribers,
        row: "NatSubscriber",
        summary: "Who counts, and what each has",
        columns: &[
            ("subscriber", Text),
            ("alias", TextOrNull),
            ("ports", Classes),
            ("sessions", Classes),
            ("half_open", TwoClasses),
            ("blocks", Number),
            ("counted", Counted),
        ],
    },
    NatTable {
        path: "/v1/nat/blocks",
        table: Table::Blocks,
        row: "NatBlock",
        summary: "Blocks of outside ports that somebody has",
        columns: &[
            ("subscriber", Text),
            ("alias", Text),
            ("first_port", NumberOrNull),
            ("last_port", NumberOrNull),
            ("deterministic", Switch),
            ("used", Number),
            ("held_millis", Number),
            ("idle_millis", NumberOrNull),
        ],
    },
    NatTable {
        path: "/v1/nat/pools",
        table: Table::Pools,
        row: "NatPool",
        summary: "Outside addresses; with several workers a row for each one's share",
        columns: &[
            ("alias", Text),
            ("open", Switch),
            ("blocks", Number),
            ("free_blocks", Number),
        ],
    },
    NatTable {
        path: "/v1/nat/leases",
        table: Table::Leases,
        row: "NatLease",
        summary: "Ports that inside hosts asked for (PCP, NAT-PMP)",
        columns: &[
            ("protocol", Number),
            ("inside", Text),
            ("inside_port", Number),
            ("alias", Text),
            ("alias_port", Number),
            ("ports", Number),
            ("remote", TextOrNull),
            ("remote_port", NumberOrNull),
            ("expires_millis", Number),
        ],
    },
    NatTable {
        path: "/v1/nat/helpers",
        table: Table::Helpers,
        row: "NatHelper",
        summary: "Protocols that are helped",
        columns: &[("helper", Text), ("on", Switch)],
    },
];

/// Whose an alias port is.
pub const WHO: [Parameter; 2] = [
    Parameter {
        name: "alias",
        help: "The outside address",
        value: Kind::Text,
    },
    Parameter {
        name: "port",
        help: "The outside port",
        value: Kind::Number(65_535),
    },
];

const FILTERS: [Parameter; 5] = [
    Parameter {
        name: "inside",
        help: "Of an inside address or prefix",
        value: Kind::Text,
    },
    Parameter {
        name: "alias",
        help: "Of an outside address of the translation or a prefix",
        value: Kind::Text,
    },
    Parameter {
        name: "port",
        help: "Of an outside port of the translation",
        value: Kind::Number(65_535),
    },
    Parameter {
        name: "remote",
        help: "With a remote address or prefix",
        value: Kind::Text,
    },
    Parameter {
        name: "protocol",
        help: "Of a protocol: tcp, udp, icmp, gre or a number",
        value: Kind::Text,
    },
];

const PAGES: [Parameter; 4] = [
    Parameter {
        name: "limit",
        help: "Rows of a page at most; without: 1000. The Link header (`rel=\"next\"`) leads to \
               the next page; without it there is none",
        value: Kind::Number(super::MAX_LIMIT),
    },
    Parameter {
        name: "after",
        help: "Where the page before ended, as its Link header has it. A walk page by page tells \
               every row that is there throughout exactly once, whatever comes and goes",
        value: Kind::Text,
    },
    Parameter {
        name: "count",
        help: "Only the number of rows",
        value: Kind::Switch,
    },
    Parameter {
        name: "top",
        help: "So many inside addresses instead, those with the most rows; of subscribers those \
               with the most sessions",
        value: Kind::Number(super::MAX_LIMIT),
    },
];

/// How rows are written.
pub const FORMAT: Parameter = Parameter {
    name: "format",
    help: "What rows are written as, whatever Accept says",
    value: Kind::OneOf(&["json", "ndjson"]),
};

impl NatTable {
    /// What can be said of it.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        let table = self.table;
        let filters = FILTERS.iter().filter(move |one| has(table, one.name));
        filters.chain(&PAGES).chain([&FORMAT])
    }

    /// A row, as the document describes it.
    pub fn schema(&self) -> Value {
        let number = || json!({"type": "integer", "minimum": 0});
        let of = |names: &[&str]| {
            let fields = names.iter().map(|name| ((*name).to_owned(), number()));
            let fields: Map<String, Value> = fields.collect();
            json!({"type": "object", "properties": fields, "additionalProperties": false})
        };
        let columns = self.columns.iter().map(|(name, column)| {
            let schema = match column {
                Text => json!({"type": "string"}),
                TextOrNull => json!({"type": ["string", "null"]}),
                Number => number(),
                NumberOrNull => json!({"type": ["integer", "null"]}),
                Switch => json!({"type": "boolean"}),
                Classes => of(&["tcp", "udp", "other"]),
                TwoClasses => of(&["tcp", "udp"]),
                Counted => of(&[
                    "translated",
                    "addresses_made",
                    "mappings_made",
                    "addresses_exhausted",
                    "refused",
                ]),
            };
            ((*name).to_owned(), schema)
        });
        let columns: Map<String, Value> = columns.collect();
        json!({"type": "object", "properties": columns, "additionalProperties": false})
    }
}

/// Whether rows of a table can be chosen by a word.
fn has(table: Table, word: &str) -> bool {
    let any = Some(ipnet::Ipv4Net::default());
    let mut filter = Filter::default();
    match word {
        "inside" => filter.inside = any,
        "alias" => filter.alias = any,
        "remote" => filter.remote = any,
        "port" => filter.port = Some(0),
        _ => filter.protocol = Some(0),
    }
    filter.stray(table).is_none()
}

/// What was counted, as the document describes it.
pub fn statistics_schema() -> Value {
    json!({
        "type": "object",
        "description": "Packets by direction and verdict, counts by protocol, and how much there is",
        "additionalProperties": true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_filters_of_its_rows() {
        let names = |number: usize| -> Vec<&str> {
            let all = TABLES[number].parameters();
            all.map(|one| one.name).collect()
        };
        let last = ["limit", "after", "count", "top", "format"];
        let flows = ["inside", "alias", "port", "remote", "protocol"];
        assert_eq!(names(0), [&flows[..], &last].concat());
        assert_eq!(names(4), [&["alias"][..], &last].concat());
        assert_eq!(names(6), last);
    }
}
