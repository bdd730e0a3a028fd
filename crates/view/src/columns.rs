//! Which columns each kind of row has, and rows as chosen columns: CSV,
//! `--fields`.

use crate::column::Column;
use crate::context::View;
use crate::fields::push_json_text;
use crate::printer::Show;
use crate::question::{Format, Object, Question};
use crate::selected_fields::{SelectedFields, Take};
use crate::selection::BadQuestion;
use crate::{address, fdb, link, link_kind, neighbour, nexthop, route, rule};

/// The columns of a kind of row.
pub fn columns(object: Object) -> Vec<Column> {
    let links = || {
        // The settings of a link's kind: many, and few rows have any.
        let settings = link_kind::COLUMNS
            .iter()
            .map(|name| Column::any(name).rare());
        link::COLUMNS.iter().copied().chain(settings)
    };
    match object {
        Object::Link => links().collect(),
        Object::Addr => links().chain(address::COLUMNS.iter().copied()).collect(),
        Object::Neigh => neighbour::COLUMNS.to_vec(),
        Object::Route => route::COLUMNS.to_vec(),
        Object::Nexthop => nexthop::COLUMNS.to_vec(),
        Object::Rule => rule::COLUMNS.to_vec(),
        Object::Fdb => fdb::COLUMNS.to_vec(),
    }
}

/// Whether any of some columns, or of the parts of a whole, is sampled.
pub fn are_sampled<'n>(object: Object, names: impl IntoIterator<Item = &'n str>) -> bool {
    let all = columns(object);
    names.into_iter().any(|name| {
        all.iter()
            .any(|column| column.sampled && is_or_is_in(column.name, name))
    })
}

/// Whether an answer shows timers of bridges, which are of use only while
/// they are new.
pub fn shows_timers(question: &Question) -> bool {
    let of_kinds = |name: &String| name == "linkinfo" || name.starts_with("linkinfo.");
    let output = &question.output;
    matches!(question.object, Object::Link | Object::Addr)
        && !output.count
        && (output.details || output.fields.iter().any(of_kinds))
}

/// Whether a column has a name, or is part of a whole of that name.
fn is_or_is_in(column: &str, name: &str) -> bool {
    let rest = column.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A name that is a column's, or that of a whole that some columns are parts
/// of.
pub(crate) fn checked(object: Object, name: &str) -> Result<&str, BadQuestion> {
    let all = columns(object);
    match all.iter().any(|column| is_or_is_in(column.name, name)) {
        true => Ok(name),
        false => Err(BadQuestion::UnknownField {
            name: name.into(),
            valid: valid(&all),
        }),
    }
}

/// The names to choose from. The settings of kinds are named by their
/// whole: there are hundreds.
fn valid(all: &[Column]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for column in all {
        let whole = column.name.match_indices('.').nth(1);
        let name = match whole {
            Some((at, _)) if column.rare => &column.name[..at],
            _ => column.name,
        };
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// Rows as chosen columns.
#[derive(Debug)]
pub(crate) struct Columns {
    selected: SelectedFields,
    /// Widest so far, for the plain table.
    widths: Vec<usize>,
    format: Format,
    pub(crate) wants_statistics: bool,
}

impl Columns {
    /// The columns asked for; all when CSV is asked for without a choice;
    /// `None` when rows are to be shown whole.
    pub(crate) fn new(
        object: Object,
        format: Format,
        fields: &[String],
        statistics: bool,
    ) -> Result<Option<Self>, BadQuestion> {
        let names = if !fields.is_empty() {
            fields
                .iter()
                .map(|name| checked(object, name))
                .collect::<Result<Vec<_>, _>>()?
        } else if format == Format::Csv {
            let shown = |column: &Column| (statistics || !column.sampled) && !column.rare;
            let all = columns(object).into_iter();
            all.filter(shown).map(|column| column.name).collect()
        } else {
            return Ok(None);
        };
        let take = match format {
            Format::Json | Format::Ndjson => Take::Json,
            Format::Csv | Format::Text => Take::Plain,
        };
        Ok(Some(Self {
            widths: names.iter().map(|name| name.len()).collect(),
            wants_statistics: are_sampled(object, names.iter().copied()),
            selected: SelectedFields::new(names, take),
            format,
        }))
    }

    /// The line above the rows, if the format has one.
    pub(crate) fn header(&self, netns: Option<&str>, out: &mut Vec<u8>) {
        let names = self.selected.names().map(str::as_bytes);
        match self.format {
            Format::Json | Format::Ndjson => {}
            Format::Csv => {
                let netns = netns.map(|_| &b"netns"[..]);
                csv_line(netns.into_iter().chain(names), out);
            }
            Format::Text => {
                if netns.is_some() {
                    out.extend_from_slice(b"netns  ");
                }
                table_line(names.zip(&self.widths), out);
            }
        }
    }

    /// A row, in one pass over its fields.
    #[inline]
    pub(crate) fn row(
        &mut self,
        row: &impl Show,
        view: &View<'_>,
        netns: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        self.selected.row(|selected| row.fields(view, selected));
        match self.format {
            Format::Json | Format::Ndjson => self.json(netns, out),
            Format::Csv => {
                let netns = netns.map(str::as_bytes);
                csv_line(netns.into_iter().chain(self.selected.cells()), out);
            }
            Format::Text => {
                for (width, cell) in self.widths.iter_mut().zip(self.selected.cells()) {
                    *width = cell.len().max(*width);
                }
                if let Some(netns) = netns {
                    out.extend_from_slice(netns.as_bytes());
                    out.extend_from_slice(b"  ");
                }
                table_line(self.selected.cells().zip(&self.widths), out);
            }
        }
    }

    fn json(&self, netns: Option<&str>, out: &mut Vec<u8>) {
        out.push(b'{');
        let mut first = true;
        let mut key = |name: &str, out: &mut Vec<u8>| {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            push_json_text(out, name);
            out.push(b':');
        };
        if let Some(netns) = netns {
            key("netns", out);
            push_json_text(out, netns);
        }
        for (name, cell) in self.selected.names().zip(self.selected.cells()) {
            if !cell.is_empty() {
                key(name, out);
                out.extend_from_slice(cell);
            }
        }
        out.push(b'}');
    }
}

/// A line of CSV (RFC 4180, with a plain line feed at its end).
pub fn csv_line<'c>(cells: impl Iterator<Item = &'c [u8]>, out: &mut Vec<u8>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        // As most cells of a row are.
        if cell.is_empty() {
            continue;
        }
        let runs = is_formula(cell);
        let special = |b: &u8| matches!(b, b',' | b'"' | b'\n' | b'\r');
        if !runs && !cell.iter().any(special) {
            out.extend_from_slice(cell);
            continue;
        }
        out.push(b'"');
        if runs {
            out.push(b'\'');
        }
        for byte in cell {
            out.push(*byte);
            if *byte == b'"' {
                out.push(b'"');
            }
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

/// Whether a spreadsheet would take a cell for a formula: whoever may name
/// a link could run something there. Numbers are none.
#[inline]
fn is_formula(cell: &[u8]) -> bool {
    match cell {
        [b'=' | b'+' | b'@' | b'\t' | b'\r', ..] => true,
        [b'-', rest @ ..] => !rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// A line of a table: cells as wide as the widest so far, two spaces
/// between them; `-` where there is nothing, so that who splits a line at
/// its spaces finds each column.
pub fn table_line<'c>(cells: impl Iterator<Item = (&'c [u8], &'c usize)>, out: &mut Vec<u8>) {
    for (cell, width) in cells {
        let cell = if cell.is_empty() { b"-" } else { cell };
        out.extend_from_slice(cell);
        out.resize(out.len() + 2 + width.saturating_sub(cell.len()), b' ');
    }
    let end = out.iter().rposition(|b| *b != b' ').map_or(0, |at| at + 1);
    out.truncate(end);
    out.push(b'\n');
}
