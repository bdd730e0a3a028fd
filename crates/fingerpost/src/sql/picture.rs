//! The rows of a statement as a picture: the first column of numbers is the
//! axis below, each other a line. On a terminal, where a column of text tells
//! rows apart or there is no second column of numbers, each row has bars.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use query::Question;
use serde_json::Value;
use serve::control::protocol::Ask;
use view::Format;
use view::plot::{self, Plot, Series};

use super::row::{Row, trimmed};
use crate::ask::From;
use crate::replay::past;

/// Characters of a line, where no terminal says how many it has.
const WIDTH: usize = 80;
/// Rows of a picture at most.
const MAX_ROWS: usize = 100_000;
/// Why there is no picture.
const NO_NUMBERS: &str = "there is nothing to draw: no column has numbers";

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
    let ended = past::run(ask, from, &mut text)?;
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

/// Writes the picture.
pub(super) fn write(statement: &str, rows: &[Row], file: &Path) -> Result<()> {
    let plot = plot(statement, rows)?;
    fs::write(file, plot.svg()).with_context(|| file.display().to_string())
}

/// Draws the picture with characters.
pub(super) fn draw(rows: &[Row], out: &mut impl Write) -> Result<()> {
    let winsize = rustix::termios::tcgetwinsize(io::stdout());
    let width = winsize.map_or(0, |size| usize::from(size.ws_col));
    let width = if width == 0 { WIDTH } else { width };
    Ok(out.write_all(drawn(rows, width)?.as_bytes())?)
}

fn drawn(rows: &[Row], width: usize) -> Result<String> {
    let names = names(rows);
    let numbers = numbers(rows);
    let [x, others @ ..] = numbers.as_slice() else {
        bail!(NO_NUMBERS);
    };
    let texts: Vec<&&String> = names
        .iter()
        .filter(|name| !numbers.contains(name))
        .collect();
    if texts.is_empty() && !others.is_empty() {
        return Ok(plot::lines(x, &series(rows, x, others), width));
    }
    let label = |(at, row): (usize, &Row)| {
        let text = |name: &&&String| {
            row.get(name)
                .and_then(Value::as_str)
                .unwrap_or("-")
                .to_owned()
        };
        match texts.is_empty() {
            true => (at + 1).to_string(),
            false => texts.iter().map(text).collect::<Vec<_>>().join(" "),
        }
    };
    let labels: Vec<String> = rows.iter().enumerate().map(label).collect();
    let bars = numbers.iter().map(|name| {
        let of_row = |(label, row): (&String, &Row)| Some((label.clone(), number(row, name)?));
        let values: Vec<(String, f64)> = labels.iter().zip(rows).filter_map(of_row).collect();
        plot::bars(name, &values, width)
    });
    Ok(bars.collect::<Vec<_>>().join("\n"))
}

fn number(row: &Row, name: &str) -> Option<f64> {
    row.get(name).and_then(Value::as_f64)
}

fn names(rows: &[Row]) -> Vec<&String> {
    rows.first().map(Row::names).unwrap_or_default()
}

/// The columns of numbers.
fn numbers(rows: &[Row]) -> Vec<&String> {
    let is_number = |name: &&String| rows.iter().any(|row| number(row, name).is_some());
    names(rows).into_iter().filter(is_number).collect()
}

fn series(rows: &[Row], x: &str, others: &[&String]) -> Vec<Series> {
    let series = others.iter().map(|name| Series {
        name: (*name).clone(),
        points: rows
            .iter()
            .filter_map(|row| Some((number(row, x)?, number(row, name)?)))
            .collect(),
    });
    series.collect()
}

fn plot(statement: &str, rows: &[Row]) -> Result<Plot> {
    let numbers = numbers(rows);
    let [x, others @ ..] = numbers.as_slice() else {
        bail!(NO_NUMBERS);
    };
    if others.is_empty() {
        bail!("there is nothing to draw over `{x}`: name a second column of numbers");
    }
    let series = series(rows, x, others);
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
        let lines = plot("select  1", &some).unwrap();
        assert_eq!((lines.title.as_str(), lines.x.as_str()), ("select 1", "n"));
        assert_eq!(lines.series.len(), 1);
        assert_eq!(lines.series[0].points, [(1.0, 5.0), (2.0, 9.0)]);
        assert!(lines.svg().contains("<svg"));
        assert!(drawn(&rows("{\"dev\":\"a\"}"), 80).is_err());
        let bars = drawn(&some, 40).unwrap();
        assert_eq!(
            bars,
            "n\na            1 ████████████\nb            2 ████████████████████████\n\n\
             m\na            5 █████████████▍\nb            9 ████████████████████████\n"
        );
        let lines = drawn(&rows("{\"n\":1,\"m\":0}\n{\"n\":2,\"m\":null}"), 80).unwrap();
        assert!(lines.contains("* m"), "{lines}");
        let one = drawn(&rows("{\"n\":7}"), 80).unwrap();
        assert!(one.starts_with("n\n1 "), "{one}");
        for none in ["", "{\"dev\":\"a\"}", "{\"n\":1}", "{\"n\":1,\"m\":0}"] {
            assert!(plot("x", &rows(none)).is_err(), "{none}");
        }
    }
}
