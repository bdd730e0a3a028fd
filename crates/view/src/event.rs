//! Changes as they happen, one JSON line each: for `--watch`.

use std::sync::Arc;

use table::{Event, Operation, Row};

use crate::address::OnLink;
use crate::context::{Context, Hidden, View};
use crate::printer::json_row;
use crate::question::{Object, Output, Question};
use crate::selection::{BadQuestion, Selection};

/// Which events a question is about. Made anew when links change, whose
/// names the filter may hold: O(links) at worst.
#[derive(Debug, Clone)]
pub struct Watch {
    selection: Selection,
}

impl Watch {
    /// The events of a question's object that its filter has.
    pub fn new(question: &Question, context: Context<'_>) -> Result<Self, BadQuestion> {
        Selection::new(question, &context).map(|selection| Self { selection })
    }

    /// Whether an event is among them.
    pub fn wants(&self, event: &Event) -> bool {
        let selection = &self.selection;
        match (&event.row, selection.object) {
            (Row::Link(row), Object::Link) => selection.link(row),
            (Row::Address(row), Object::Addr) => selection.address(row),
            (Row::Neighbour(row), Object::Neigh) => selection.neighbour(row),
            (Row::Route(row), Object::Route) => selection.route(&row.with_body(&*row.body)),
            (Row::Nexthop(row), Object::Nexthop) => selection.nexthop(row),
            (Row::Rule(row), Object::Rule) => selection.rule(row),
            (Row::Fdb(row), Object::Fdb) => selection.fdb(row),
            _ => false,
        }
    }
}

/// An event as one line of JSON: `event` (`added`, `changed`, `deleted`),
/// `object` (`neigh`, …), then the fields of the row as `ip -j` has them
/// (for an address: those of its link, and itself as its only
/// `addr_info`), `time_millis` (since the UNIX epoch), and of a row that
/// changed `before`, its fields as they were. Routes of families that are
/// not interpreted give nothing.
pub fn event(event: &Event, at_millis: u64, context: Context<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(256);
    let (operation, object) = event_names(event)?;
    let begins = [("event", operation), ("object", object)];
    let output = Output::default();
    put_row(&event.row, &begins, &context, &output, &mut out);
    // What is told of the event stands behind the row's own fields.
    out.pop();
    out.extend_from_slice(format!(",\"time_millis\":{at_millis}").as_bytes());
    if let Some(before) = &event.before {
        out.extend_from_slice(b",\"before\":");
        put_row(before, &[], &context, &output, &mut out);
    }
    out.extend_from_slice(b"}\n");
    Some(out)
}

/// A row's fields as an object of JSON that can be given back: with what
/// `ip -j` does not tell of metrics.
pub fn row(row: &Row, context: Context<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let output = Output {
        locks: true,
        ..Output::default()
    };
    put_row(row, &[], &context, &output, &mut out);
    out
}

/// What happened, and to what, as lines of events have it; `None`: it is not
/// told.
pub fn event_names(event: &Event) -> Option<(&'static str, &'static str)> {
    let operation = match event.operation {
        Operation::Added => "added",
        Operation::Changed => "changed",
        Operation::Deleted => "deleted",
    };
    Some((operation, object_of(&event.row)?.name()))
}

/// What a row is in events; `None`: it is not told.
fn object_of(row: &Row) -> Option<Object> {
    Some(match row {
        Row::Link(_) => Object::Link,
        Row::Address(_) => Object::Addr,
        Row::Neighbour(_) => Object::Neigh,
        Row::Route(_) => Object::Route,
        Row::OtherRoute(_) => return None,
        Row::Nexthop(_) => Object::Nexthop,
        Row::Rule(_) => Object::Rule,
        Row::Fdb(_) => Object::Fdb,
    })
}

/// Writes a row's fields, behind others, as an object of JSON.
fn put_row(
    row: &Row,
    begins: &[(&'static str, &str)],
    context: &Context<'_>,
    output: &Output,
    out: &mut Vec<u8>,
) {
    let view = View::new(context, output, Hidden::default());
    match row {
        Row::Link(row) => json_row(&**row, &view, begins, out),
        Row::Address(row) => {
            let gone;
            let link = match context.links.get(row.link) {
                Some(link) => link,
                None => {
                    gone = Arc::new(table::Link {
                        index: row.link,
                        ..table::Link::default()
                    });
                    &gone
                }
            };
            let row = OnLink {
                link,
                addresses: &[row],
            };
            json_row(&row, &view, begins, out);
        }
        Row::Neighbour(row) => json_row(&**row, &view, begins, out),
        Row::Route(row) => {
            let row = row.with_body(&*row.body);
            json_row(&row, &view, begins, out);
        }
        Row::OtherRoute(_) => {}
        Row::Nexthop(row) => json_row(&**row, &view, begins, out),
        Row::Rule(row) => json_row(&**row, &view, begins, out),
        Row::Fdb(row) => json_row(&**row, &view, begins, out),
    }
}
