//! The rows of a statement as a picture: the first column of numbers is the
//! axis below, each other a line.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use query::Question;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serve::control::protocol::Ask;
use view::Format;
use view::plot::{Plot, Series};

use crate::ask::{self, From};

/// Rows of a picture at most.
const MAX_ROWS: usize = 100_000;

/// A row: its columns in the statement's order.
#[derive(Debug, Default)]
pub(super) struct Row(Vec<(String, Value)>);

impl Row {
    fn get(&self, name: &str) -> Option<&Value> {
        let mut columns = self.0.iter();
        columns.find(|(known, _)| known == name).map(|(_, it)| it)
    }

    fn names(&self) -> Vec<&String> {
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

/// The rows of a statement, and how the asking ended.
pub(super) fn rows_of(statement: &str, from: &From) -> Result<(Vec<Row>, ExitCode)> {
    let ask = Ask::Sql(Box::new(Question {
        statement: format!(
            "select * from ({}) limit {}",
            trimmed(statement),
            MAX_ROWS + 1
        ),
        format: Format::Ndjson,
        explain: false,
    }));
    let mut text = Vec::new();
    let ended = ask::run(ask, from, &mut text)?;
    let rows = text
        .split(|octet| *octet == b'\n')
        .filter(|line| !line.is_empty());
    let rows: Vec<Row> = rows
        .map(serde_json::from_slice)
        .collect::<Result<_, _>>()
        .context("the daemon's answer is no JSON")?;
    if rows.len() > MAX_ROWS {
        bail!("a picture has {MAX_ROWS} rows at most: narrow the statement, or group its rows");
    }
    Ok((rows, ended))
}

/// A statement without what ends it.
fn trimmed(statement: &str) -> &str {
    statement.trim().trim_end_matches(';')
}

/// Writes the picture.
pub(super) fn write(statement: &str, rows: &[Row], file: &Path) -> Result<()> {
    let plot = plot(statement, rows)?;
    fs::write(file, plot.svg()).with_context(|| file.display().to_string())
}

fn plot(statement: &str, rows: &[Row]) -> Result<Plot> {
    let number = |row: &Row, name: &str| row.get(name).and_then(Value::as_f64);
    let names = rows.first().map(Row::names).unwrap_or_default();
    let is_number = |name: &&&String| rows.iter().any(|row| number(row, name).is_some());
    let names: Vec<&String> = names.iter().filter(is_number).copied().collect();
    let [x, others @ ..] = names.as_slice() else {
        bail!("there is nothing to draw: no column has numbers");
    };
    if others.is_empty() {
        bail!("there is nothing to draw over `{x}`: name a second column of numbers");
    }
    let series = others.iter().map(|name| Series {
        name: (*name).clone(),
        points: rows
            .iter()
            .filter_map(|row| Some((number(row, x)?, number(row, name)?)))
            .collect(),
    });
    let series: Vec<Series> = series.collect();
    let is_drawn = |(x, y): &(f64, f64)| *x > 0.0 && *y > 0.0;
    if !series.iter().any(|line| line.points.iter().any(is_drawn)) {
        bail!("there is nothing to draw: both axes are logarithmic, and nothing is above zero");
    }
    Ok(Plot {
        title: statement.split_whitespace().collect::<Vec<_>>().join(" "),
        x: (*x).clone(),
        y: match others {
            [one] => (*one).clone(),
            _ => String::new(),
        },
        series,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Row> {
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn numbers_are_drawn_over_the_first_of_them() {
        let some = rows("{\"dev\":\"a\",\"n\":1,\"m\":5}\n{\"dev\":\"b\",\"n\":2,\"m\":9}");
        let drawn = plot("select  1", &some).unwrap();
        assert_eq!((drawn.title.as_str(), drawn.x.as_str()), ("select 1", "n"));
        assert_eq!(drawn.series.len(), 1);
        assert_eq!(drawn.series[0].points, [(1.0, 5.0), (2.0, 9.0)]);
        assert!(drawn.svg().contains("<svg"));
        for none in ["", "{\"dev\":\"a\"}", "{\"n\":1}", "{\"n\":1,\"m\":0}"] {
            assert!(plot("x", &rows(none)).is_err(), "{none}");
        }
    }
}
