//! `/assets/columns.js`: the columns of each table, made of the one list that
//! the OpenAPI document, JSON and CSV are made of ([`view::columns`]), and the
//! words of its filters, made of the list of the command line.

use serde_json::{Map, Value, json};
use view::{Column, ColumnType, Object, conditions};

use crate::http::definition::TABLES;

/// The module's text.
pub fn script() -> String {
    let tables: Map<String, Value> = TABLES
        .iter()
        .map(|table| {
            let columns = view::columns(table.object).iter().map(column).collect();
            (table.name().to_owned(), Value::Array(columns))
        })
        .collect();
    let words: Map<String, Value> = TABLES
        .iter()
        .map(|table| (table.name().to_owned(), words(table.object)))
        .collect();
    format!(
        "// The columns of each table, as the daemon has them.\n\nexport const COLUMNS = {};\n\n\
         // The words of a filter: what each is, and its value if it has one.\n\n\
         export const WORDS = {};\n",
        Value::Object(tables),
        Value::Object(words)
    )
}

/// The words that a filter of an object takes: ip's, or the flag where ip
/// has none.
fn words(object: Object) -> Value {
    let of_object = conditions::of_object(conditions::FILTERS, object);
    let all = of_object.flat_map(|word| {
        let own = word.bare.is_empty().then(|| format!("--{}", word.flag));
        let spoken = word.bare.iter().map(|bare| (*bare).to_owned());
        let value = word.value;
        let each = spoken.chain(own);
        each.map(move |bare| json!({"word": bare, "value": value, "about": word.help}))
    });
    Value::Array(all.collect())
}

fn column(column: &Column) -> Value {
    json!({"name": column.name, "holds": holds(column.holds), "sampled": column.sampled})
}

fn holds(holds: ColumnType) -> &'static str {
    match holds {
        ColumnType::Text => "text",
        ColumnType::Number => "number",
        ColumnType::Flag => "flag",
        ColumnType::List => "list",
        ColumnType::Address => "address",
        ColumnType::Prefix => "prefix",
        ColumnType::LinkLayer => "link_layer",
        _ => "any",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("tables.js");

    /// The names that the page takes from the list for a table: those of
    /// `one("name", …)` and of `made("key", "title", ["name", …], …)`.
    fn names(section: &str) -> Vec<&str> {
        let ones = section.split("one(\"").skip(1);
        let mut names: Vec<&str> = ones.filter_map(|rest| rest.split('"').next()).collect();
        for made in section.split("made(\"").skip(1) {
            let list = made
                .split('[')
                .nth(1)
                .and_then(|rest| rest.split(']').next());
            let list = list.unwrap_or_default();
            names.extend(list.split('"').skip(1).step_by(2));
        }
        names
    }

    #[test]
    fn what_the_page_shows_is_in_the_list() {
        for table in TABLES {
            let section = PAGE
                .split(&format!("id: \"{}\"", table.name()))
                .nth(1)
                .unwrap();
            let section = section.split("\n  },\n").next().unwrap();
            let names = names(section);
            assert!(names.len() > 1 || table.name() == "rules", "{names:?}");
            let columns = view::columns(table.object);
            for name in names {
                let is_there = columns.iter().any(|column| column.name == name);
                assert!(is_there, "{}: {name}", table.name());
            }
        }
    }

    #[test]
    fn the_script_has_every_column_of_every_table() {
        let script = script();
        let (_, json) = script.split_once("COLUMNS = ").unwrap();
        let (json, words) = json.split_once(";\n").unwrap();
        let all: Value = serde_json::from_str(json).unwrap();
        let (_, words) = words.split_once("WORDS = ").unwrap();
        let words: Value = serde_json::from_str(words.trim_end().trim_end_matches(';')).unwrap();
        let of = |table: &str| words[table].as_array().unwrap().clone();
        assert!(of("neighbours").iter().any(|one| one["word"] == "nud"));
        assert!(of("routes").iter().any(|one| one["word"] == "--source"));
        for table in TABLES {
            let told = all[table.name()].as_array().unwrap();
            let told: Vec<&str> = told
                .iter()
                .map(|one| one["name"].as_str().unwrap())
                .collect();
            let columns = view::columns(table.object);
            let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
            assert_eq!(told, names);
        }
        let ages = all["neighbours"].as_array().unwrap().iter();
        assert_eq!(ages.filter(|one| one["sampled"] == true).count(), 5);
    }
}
