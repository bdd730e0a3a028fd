//! Writes rows: as text, JSON, NDJSON, CSV or chosen columns, or only
//! their number. The one place where rows become bytes, whether they come
//! from a dump or from a snapshot.

mod sorted;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use table::{Address, FdbEntry, Link, Neighbour, Nexthop, Route, RouteBody, Rule};

use crate::address::OnLink;
use crate::columns::{Columns, checked};
use crate::context::{Context, Hidden, View, hidden};
use crate::fields::{Json, Value, Visit, push_json_text};
use crate::plan::KernelFilter;
use crate::question::{Format, Object, Output, Question};
use crate::selection::{BadQuestion, Selection};
use sorted::Sorted;

/// Bytes gathered before they are written.
const FLUSH_BYTES: usize = 64 << 10;

/// A row that can be shown.
pub(crate) trait Show {
    /// Tells its fields, in the order of `ip -j`.
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit);
    /// Writes it as `ip` does, with the line's end.
    fn text(&self, view: &View<'_>, out: &mut Vec<u8>);
}

/// Filters rows and writes them. Streams: a row is written when it comes,
/// in pieces of 64 KiB, and none is kept, but for `--sort` (rows as they
/// will be written, as many as there is room for: all of them come again
/// for the rest) and addresses that come one by one (they are shown below
/// their links).
#[derive(Debug)]
pub struct Printer<'a, W> {
    view: View<'a>,
    /// With nothing hidden: for columns and for sorting.
    full: View<'a>,
    selection: Selection,
    format: Format,
    count_only: bool,
    words: bool,
    netns: Option<Box<str>>,
    columns: Option<Columns>,
    sorted: Option<Sorted>,
    /// Whether a row was written: the next has a comma before it.
    has_written: bool,
    addresses: BTreeMap<u32, Vec<Arc<Address>>>,
    rows: u64,
    buffer: Vec<u8>,
    /// Bytes that went from `buffer` to `out`.
    flushed: usize,
    out: W,
}

/// Rows by a column, downwards if a `-` leads it.
fn sorted_by(object: Object, column: &str, room: usize) -> Result<Sorted, BadQuestion> {
    let (name, downwards) = match column.strip_prefix('-') {
        Some(name) => (name, true),
        None => (column, false),
    };
    Ok(Sorted::new(checked(object, name)?, downwards, room))
}

impl<'a, W: io::Write> Printer<'a, W> {
    /// Ready to print rows of a question's object. Names of the filter are
    /// resolved here, once. O(links) when the filter asks for properties of
    /// links, else O(log links).
    pub fn new(question: &Question, context: Context<'a>, out: W) -> Result<Self, BadQuestion> {
        Self::within(usize::MAX, question, context, out)
    }

    /// The same, with so much memory for rows that are sorted: they come
    /// until [`Printer::ends_round`] says that all are written.
    pub(crate) fn within(
        room: usize,
        question: &Question,
        context: Context<'a>,
        out: W,
    ) -> Result<Self, BadQuestion> {
        let mut printer = Self::silent(room, question, context, out)?;
        printer.view.hidden = hidden(question);
        printer.begin();
        Ok(printer)
    }

    /// The same before it has written anything, and hiding nothing.
    fn silent(
        room: usize,
        question: &Question,
        context: Context<'a>,
        out: W,
    ) -> Result<Self, BadQuestion> {
        let Output {
            format,
            ref fields,
            ref sort,
            count,
            statistics,
            words,
            ..
        } = question.output;
        let selection = Selection::new(question, &context)?;
        let columns = Columns::new(question.object, format, fields, statistics)?;
        let mut view = View::new(&context, &question.output, Hidden::default());
        view.family = selection.family;
        view.whole_links = selection.device.is_some() || question.filter.family.is_none();
        view.by_label = question.filter.label.is_some();
        let mut full = View::new(&context, &question.output, Hidden::default());
        full.details = true;
        full.brief = false;
        full.statistics |= columns.as_ref().is_some_and(|c| c.wants_statistics);
        let sort = sort.as_deref().filter(|_| !count);
        let sorted = sort.map(|by| sorted_by(question.object, by, room));
        let sorted = sorted.transpose()?;
        full.statistics |= sorted.is_some();
        Ok(Self {
            view,
            full,
            selection,
            format,
            count_only: count,
            words,
            netns: question.output.netns.as_deref().map(Box::from),
            columns,
            sorted,
            has_written: false,
            addresses: BTreeMap::new(),
            rows: 0,
            buffer: Vec::with_capacity(FLUSH_BYTES + FLUSH_BYTES / 8),
            flushed: 0,
            out,
        })
    }

    /// Prints a link, if the filter has it.
    pub fn link(&mut self, row: &Link) -> io::Result<()> {
        if self.selection.link(row) {
            self.show(row)?;
        }
        Ok(())
    }

    /// Takes an address. Where addresses are shown below their links, it
    /// is kept (all addresses come before any is shown) and printed by
    /// [`Printer::finish`], in the order of links.
    pub fn address(&mut self, row: &Address) -> io::Result<()> {
        if self.count_only || self.columns.is_some() {
            return match self.view.link(row.link) {
                Some(link) => self.on_link(link, &[&Arc::new(row.clone())]),
                None => Ok(()),
            };
        }
        // That a link has any is known by its place.
        let of_link = self.addresses.entry(row.link).or_default();
        if self.selection.address(row) {
            of_link.push(Arc::new(row.clone()));
        }
        Ok(())
    }

    /// Prints a link with its addresses, if the filter has it: in text and
    /// JSON as one row, else a row for each address.
    pub(crate) fn on_link(&mut self, link: &Link, all: &[&Arc<Address>]) -> io::Result<()> {
        self.kept_on_link(link, all, all.is_empty())
    }

    /// The same where only addresses that the filter has were kept, and
    /// whether the link has none at all.
    fn kept_on_link(
        &mut self,
        link: &Link,
        all: &[&Arc<Address>],
        is_bare: bool,
    ) -> io::Result<()> {
        if !self.selection.link(link) {
            return Ok(());
        }
        let selection = &self.selection;
        let wanted: Vec<&Arc<Address>> = all
            .iter()
            .copied()
            .filter(|row| selection.address(row))
            .collect();
        if self.count_only {
            self.rows += wanted.len() as u64;
            return Ok(());
        }
        if self.columns.is_some() {
            return wanted.chunks(1).try_for_each(|one| {
                self.show(&OnLink {
                    link,
                    addresses: one,
                })
            });
        }
        // As in ip: a link without any is shown, unless a family is asked for.
        let picks = self.selection.picks_addresses();
        let left_out = picks && !(is_bare && self.selection.shows_bare_links())
            || (self.view.lines_of_addresses() && self.format == Format::Text);
        if wanted.is_empty() && left_out {
            return Ok(());
        }
        self.show(&OnLink {
            link,
            addresses: &wanted,
        })
    }

    /// Prints a neighbour, if the filter has it.
    #[inline]
    pub fn neighbour(&mut self, row: &Neighbour) -> io::Result<()> {
        if self.selection.neighbour(row) {
            self.show(row)?;
        }
        Ok(())
    }

    /// Prints a route, if the filter has it.
    #[inline]
    pub fn route(&mut self, row: &Route<&RouteBody>) -> io::Result<()> {
        if self.selection.route(row) {
            self.show(row)?;
        }
        Ok(())
    }

    /// Prints a next-hop object, if the filter has it.
    pub fn nexthop(&mut self, row: &Nexthop) -> io::Result<()> {
        if self.selection.nexthop(row) {
            self.show(row)?;
        }
        Ok(())
    }

    /// Prints a rule, if the filter has it.
    pub fn rule(&mut self, row: &Rule) -> io::Result<()> {
        if self.selection.rule(row) {
            self.show(row)?;
        }
        Ok(())
    }

    /// Prints a forwarding entry, if the filter has it.
    pub fn fdb(&mut self, row: &FdbEntry) -> io::Result<()> {
        if self.selection.fdb(row) {
            self.show(row)?;
        }
        Ok(())
    }

    /// Prints something that no filter is about.
    pub(crate) fn one(&mut self, row: &impl Show) -> io::Result<()> {
        self.show(row)
    }

    /// Rows printed so far (with addresses kept for the end apart).
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Prints what was kept, closes the JSON, writes what is left and gives
    /// the output back. An empty answer is `[]`.
    pub fn finish(mut self) -> io::Result<W> {
        self.close()?;
        Ok(self.out)
    }

    /// As [`Printer::finish`]; gives the number of rows.
    pub(crate) fn close(&mut self) -> io::Result<u64> {
        self.kept_addresses()?;
        self.ends_round()?;
        if self.count_only {
            crate::format::push_u64(&mut self.buffer, self.rows);
            self.buffer.push(b'\n');
        } else if self.format == Format::Json {
            self.buffer.extend_from_slice(b"]\n");
        }
        self.flush()?;
        self.out.flush()?;
        Ok(self.rows)
    }

    /// How often all rows have to come to be sorted, about; known once they
    /// came for the first time, and nothing was written.
    pub(crate) fn rounds(&self) -> u64 {
        self.sorted.as_ref().map_or(1, Sorted::rounds)
    }

    /// All rows came, maybe not for the first time: writes those that were
    /// sorted. Whether others are left, for which all must come again.
    pub(crate) fn ends_round(&mut self) -> io::Result<bool> {
        let Some(sorted) = &mut self.sorted else {
            return Ok(false);
        };
        let (rows, is_more_left) = sorted.end_round();
        for row in rows {
            self.separate();
            self.buffer.extend_from_slice(&row);
            if self.buffer.len() >= FLUSH_BYTES {
                self.flush()?;
            }
        }
        Ok(is_more_left)
    }

    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// What of the filter a dump of the kernel can leave out by itself.
    pub fn kernel_filter(&self) -> KernelFilter {
        KernelFilter::of(&self.selection)
    }

    /// Whether only the number of rows is wanted.
    pub(crate) fn only_counts(&self) -> bool {
        self.count_only
    }

    /// Takes rows that are only counted.
    pub(crate) fn count(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// Bytes printed so far.
    pub(crate) fn printed(&self) -> usize {
        self.flushed + self.buffer.len()
    }

    fn begin(&mut self) {
        if self.count_only {
            return;
        }
        if self.format == Format::Json {
            self.buffer.push(b'[');
        }
        if let Some(columns) = &self.columns {
            columns.header(self.netns.as_deref(), &mut self.buffer);
        }
    }

    fn kept_addresses(&mut self) -> io::Result<()> {
        if self.selection.object != Object::Addr || self.count_only || self.columns.is_some() {
            return Ok(());
        }
        let kept = std::mem::take(&mut self.addresses);
        // Links were asked for, not addresses: those without are shown too.
        if kept.is_empty() && self.rows > 0 {
            return Ok(());
        }
        let links = self.view.links;
        for link in links.iter() {
            let rows = kept.get(&link.index);
            let of_link: Vec<&Arc<Address>> = rows.into_iter().flatten().collect();
            self.kept_on_link(link, &of_link, rows.is_none())?;
        }
        Ok(())
    }

    #[inline]
    fn show(&mut self, row: &impl Show) -> io::Result<()> {
        if self.sorted.is_some() {
            self.gather(row);
            return Ok(());
        }
        self.rows += 1;
        if self.count_only {
            return Ok(());
        }
        self.separate();
        self.one_of_rows(row);
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// What stands between two rows.
    #[inline]
    fn separate(&mut self) {
        if self.format == Format::Json && std::mem::replace(&mut self.has_written, true) {
            self.buffer.push(b',');
        }
    }

    /// A row, in the columns that are asked for.
    #[inline]
    fn one_of_rows(&mut self, row: &impl Show) {
        match &mut self.columns {
            Some(columns) => {
                let netns = self.netns.as_deref();
                columns.row(row, &self.full, netns, &mut self.buffer);
            }
            None => self.whole(row),
        }
        if self.format == Format::Ndjson {
            self.buffer.push(b'\n');
        }
    }

    /// A row that is to be written in order.
    fn gather(&mut self, row: &impl Show) {
        let Some(sorted) = &mut self.sorted else {
            return;
        };
        self.rows += u64::from(sorted.is_first_round());
        sorted.fields().row(|by| row.fields(&self.full, by));
        let Some(place) = sorted.place() else {
            return;
        };
        let start = self.buffer.len();
        self.one_of_rows(row);
        if let (Some(sorted), Some(text)) = (&mut self.sorted, self.buffer.get(start..)) {
            sorted.gather(place, text);
        }
        self.buffer.truncate(start);
    }

    /// A row with all its fields.
    #[inline]
    fn whole(&mut self, row: &impl Show) {
        let out = &mut self.buffer;
        if self.format == Format::Text {
            if let Some(netns) = &self.netns {
                out.extend_from_slice(netns.as_bytes());
                out.extend_from_slice(b"  ");
            }
            return row.text(&self.view, out);
        }
        out.push(b'{');
        if let Some(netns) = &self.netns {
            out.extend_from_slice(b"\"netns\":");
            push_json_text(out, netns);
        }
        row.fields(&self.view, &mut Json { out });
        if self.words {
            let text = line(row, &self.view);
            Json { out }.value("words", Value::Text(&text));
        }
        out.push(b'}');
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.flushed += self.buffer.len();
        self.buffer.clear();
        Ok(())
    }
}

impl<'a> Printer<'a, Vec<u8>> {
    /// Ready to print a piece of an answer of which `rows` were printed
    /// before; `first`: it is the first piece. `hides`: fields are left out
    /// where the filter names their value. Rows are not sorted.
    pub(crate) fn piece(
        question: &Question,
        context: Context<'a>,
        rows: u64,
        first: bool,
        hides: bool,
    ) -> Result<Self, BadQuestion> {
        let mut printer = Self::silent(usize::MAX, question, context, Vec::new())?;
        printer.rows = rows;
        printer.has_written = rows > 0;
        if hides {
            printer.view.hidden = hidden(question);
        }
        if first {
            printer.begin();
        }
        Ok(printer)
    }

    /// The piece; with what closes the answer, if it is the last.
    pub(crate) fn finish_piece(mut self, last: bool) -> io::Result<Vec<u8>> {
        if last {
            return self.finish();
        }
        self.flush()?;
        Ok(self.out)
    }

    /// What closes an answer of so many rows.
    pub(crate) fn closing(question: &Question, rows: u64) -> Vec<u8> {
        match (question.output.count, question.output.format) {
            (true, _) => format!("{rows}\n").into_bytes(),
            (false, Format::Json) => b"]\n".to_vec(),
            (false, _) => Vec::new(),
        }
    }
}

/// A row as text, its blanks one space each. What is no text in UTF-8 is
/// shown as such.
fn line(row: &impl Show, view: &View<'_>) -> String {
    let mut text = Vec::new();
    row.text(view, &mut text);
    let text = String::from_utf8_lossy(&text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One row as a JSON object with some fields before its own.
pub(crate) fn json_row(
    row: &impl Show,
    view: &View<'_>,
    before: &[(&'static str, &str)],
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    let mut json = Json { out };
    for (key, text) in before {
        json.value(key, Value::Text(text));
    }
    row.fields(view, &mut json);
    out.push(b'}');
}

#[cfg(test)]
mod tests;
