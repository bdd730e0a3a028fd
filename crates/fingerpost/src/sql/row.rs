//! A row of an answer as pictures and files take it: its columns in the
//! statement's order.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// A row.
#[derive(Debug, Default)]
pub(super) struct Row(pub Vec<(String, Value)>);

impl Row {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let mut columns = self.0.iter();
        columns.find(|(known, _)| known == name).map(|(_, it)| it)
    }

    pub(super) fn names(&self) -> Vec<&String> {
        self.0.iter().map(|(name, _)| name).collect()
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Columns;

        impl<'de> Visitor<'de> for Columns {
            type Value = Row;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut columns: A) -> Result<Row, A::Error> {
                let mut row = Row::default();
                while let Some(column) = columns.next_entry()? {
                    row.0.push(column);
                }
                Ok(row)
            }
        }

        from.deserialize_map(Columns)
    }
}

/// A statement without what ends it.
pub(super) fn trimmed(statement: &str) -> &str {
    statement.trim().trim_end_matches(';')
}
