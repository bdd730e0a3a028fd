//! The rows of a statement as they are written: a table for people, JSON,
//! CSV. They stream: of a table as many are held as its widths are made of.

use std::io::{self, Write};

use rusqlite::types::ValueRef;
use view::{Format, csv_line, push_json_text, table_line};

/// Octets gathered before they are written.
const FLUSH_BYTES: usize = 32 << 10;
/// Rows that the widths of a table are made of, and octets of them.
const ROWS_OF_WIDTHS: usize = 100;
const BYTES_OF_WIDTHS: usize = 64 << 10;
/// Columns are no wider for one long value.
const MAX_WIDTH: usize = 60;

/// Writes rows.
#[derive(Debug)]
pub(crate) struct Output<W> {
    format: Format,
    names: Vec<String>,
    widths: Vec<usize>,
    /// Rows of a table whose widths are not known yet.
    held: Vec<Vec<Vec<u8>>>,
    held_bytes: usize,
    buffer: Vec<u8>,
    cells: Vec<Vec<u8>>,
    pub rows: u64,
    out: W,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(format: Format, names: Vec<String>, out: W) -> Self {
        let mut output = Self {
            format,
            widths: names.iter().map(|name| name.chars().count()).collect(),
            names,
            held: Vec::new(),
            held_bytes: 0,
            buffer: Vec::new(),
            cells: Vec::new(),
            rows: 0,
            out,
        };
        match format {
            Format::Json => output.buffer.push(b'['),
            Format::Csv => csv_line(
                output.names.iter().map(String::as_bytes),
                &mut output.buffer,
            ),
            Format::Text | Format::Ndjson => {}
        }
        output
    }

    /// A row, in the order of the columns.
    pub(crate) fn row<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) -> io::Result<()> {
        match self.format {
            Format::Json | Format::Ndjson => self.json(values),
            Format::Csv | Format::Text => {
                let mut cells = std::mem::take(&mut self.cells);
                cells.resize_with(self.names.len(), Vec::new);
                for (cell, value) in cells.iter_mut().zip(values) {
                    cell.clear();
                    push_value(cell, value);
                }
                match self.format {
                    Format::Csv => {
                        csv_line(cells.iter().map(Vec::as_slice), &mut self.buffer);
                        self.cells = cells;
                    }
                    _ => self.line(cells),
                }
            }
        }
        self.rows += 1;
        match self.buffer.len() >= FLUSH_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes what is left, and what closes the answer.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.release();
        if self.format == Format::Json {
            self.buffer.extend_from_slice(b"]\n");
        }
        self.flush()?;
        self.out.flush()
    }

    /// Writes what there is of an answer that is cut off.
    pub(crate) fn cut(&mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.release();
        }
        self.flush()?;
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn json<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) {
        let out = &mut self.buffer;
        if self.format == Format::Json && self.rows > 0 {
            out.push(b',');
        }
        out.push(b'{');
        for (at, (name, value)) in self.names.iter().zip(values).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            push_json_text(out, name);
            out.push(b':');
            match value {
                ValueRef::Text(_) | ValueRef::Blob(_) => {
                    let mut text = Vec::new();
                    push_value(&mut text, value);
                    push_json_text(out, &String::from_utf8_lossy(&text));
                }
                ValueRef::Null => out.extend_from_slice(b"null"),
                ValueRef::Real(number) if !number.is_finite() => out.extend_from_slice(b"null"),
                _ => push_value(out, value),
            }
        }
        out.push(b'}');
        if self.format == Format::Ndjson {
            out.push(b'\n');
        }
    }

    /// A line of a table, or one that waits for the widths.
    fn line(&mut self, mut cells: Vec<Vec<u8>>) {
        for cell in &mut cells {
            // One line a row, and nothing that a terminal would obey.
            let text = String::from_utf8_lossy(cell);
            if text.chars().any(char::is_control) {
                let shown: String = text
                    .chars()
                    .map(|c| if c.is_control() { ' ' } else { c })
                    .collect();
                *cell = shown.into_bytes();
            }
        }
        if self.rows >= ROWS_OF_WIDTHS as u64 || self.held_bytes > BYTES_OF_WIDTHS {
            self.release();
            let cells_and_widths = cells.iter().map(Vec::as_slice).zip(&self.widths);
            table_line(cells_and_widths, &mut self.buffer);
            self.cells = cells;
            return;
        }
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(cell.len().min(MAX_WIDTH));
        }
        self.held_bytes += cells.iter().map(Vec::len).sum::<usize>();
        self.held.push(cells);
    }

    /// Writes the head of a table and the rows that waited.
    fn release(&mut self) {
        if self.format != Format::Text || self.names.is_empty() {
            return;
        }
        if self.held_bytes != usize::MAX {
            let names = self.names.iter().map(String::as_bytes);
            table_line(names.zip(&self.widths), &mut self.buffer);
        }
        for cells in std::mem::take(&mut self.held) {
            table_line(
                cells.iter().map(Vec::as_slice).zip(&self.widths),
                &mut self.buffer,
            );
        }
        self.held_bytes = usize::MAX;
    }
}

/// A value as text; octets that are none in hexadecimal.
fn push_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    // Writing to a vector does not fail.
    let _ = match value {
        ValueRef::Null => Ok(()),
        ValueRef::Integer(number) => write!(out, "{number}"),
        ValueRef::Real(number) => write!(out, "{number}"),
        ValueRef::Text(text) => out.write_all(text),
        ValueRef::Blob(octets) => octets
            .iter()
            .try_for_each(|octet| write!(out, "{octet:02x}")),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format, rows: &[[ValueRef<'_>; 2]]) -> String {
        let mut out = Vec::new();
        let names = vec!["prefix".to_owned(), "n".to_owned()];
        let mut output = Output::new(format, names, &mut out);
        for row in rows {
            output.row(row.iter().copied()).unwrap();
        }
        output.finish().unwrap();
        assert_eq!(output.rows, rows.len() as u64);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_written_in_each_format() {
        let rows = [
            [ValueRef::Text(b"10.0.0.0/8"), ValueRef::Integer(-7)],
            [ValueRef::Text(b"a\"b\n"), ValueRef::Null],
            [ValueRef::Blob(&[1, 255]), ValueRef::Real(0.5)],
        ];
        assert_eq!(
            written(Format::Ndjson, &rows),
            "{\"prefix\":\"10.0.0.0/8\",\"n\":-7}\n{\"prefix\":\"a\\\"b\\n\",\"n\":null}\n\
             {\"prefix\":\"01ff\",\"n\":0.5}\n"
        );
        assert_eq!(
            written(Format::Csv, &rows),
            "prefix,n\n10.0.0.0/8,-7\n\"a\"\"b\n\",\n01ff,0.5\n"
        );
        assert_eq!(
            written(Format::Text, &rows),
            "prefix      n\n10.0.0.0/8  -7\na\"b         -\n01ff        0.5\n"
        );
        assert_eq!(
            written(Format::Json, &rows[..1]),
            "[{\"prefix\":\"10.0.0.0/8\",\"n\":-7}]\n"
        );
        assert_eq!(written(Format::Json, &[]), "[]\n");
        assert_eq!(written(Format::Text, &[]), "prefix  n\n");
    }

    #[test]
    fn a_long_table_streams() {
        let rows = vec![[ValueRef::Text(b"x"), ValueRef::Integer(1)]; 3 * ROWS_OF_WIDTHS];
        let text = written(Format::Text, &rows);
        assert_eq!(text.lines().count(), 3 * ROWS_OF_WIDTHS + 1);
    }
}
