//! Rows as `ip monitor` writes them: those of the listings but for what an
//! event does not tell. Called by the program's face of `ip`.

use table::{Address, FdbEntry, Link, Neighbour, Nexthop, Route, Rule};

use crate::colour::{Colour, coloured};
use crate::context::{Context, Hidden, View};
use crate::fields::push_name;
use crate::link::HeadOf;
use crate::printer::Show as _;
use crate::question::Output;
use crate::{address, link, neighbour};

/// A row that an event tells of.
#[derive(Debug, Clone, Copy)]
pub enum Monitored<'a> {
    /// A link.
    Link {
        /// The link.
        row: &'a Link,
        /// What happened to it (`IFLA_EVENT`), if that is told.
        happened: Option<&'a str>,
        /// A bridge tells of its port.
        is_port: bool,
    },
    /// An address.
    Address(&'a Address),
    /// A neighbour.
    Neighbour(&'a Neighbour),
    /// A forwarding entry.
    Fdb(&'a FdbEntry),
    /// A route.
    Route(&'a Route),
    /// A next-hop object.
    Nexthop(&'a Nexthop),
    /// A rule.
    Rule(&'a Rule),
}

/// Appends the name of a link, in its colour, and a blank.
pub fn device(index: u32, output: &Output, context: &Context<'_>, out: &mut Vec<u8>) {
    let view = View::new(context, output, Hidden::default());
    coloured(&view, Colour::Link, out, |out| {
        push_name(out, view.device(index));
        out.push(b' ');
    });
}

/// Appends the name of a link, in its colour, filled up with blanks.
pub fn padded_device(
    index: u32,
    width: usize,
    output: &Output,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) {
    let view = View::new(context, output, Hidden::default());
    coloured(&view, Colour::Link, out, |out| {
        let from = out.len();
        push_name(out, view.device(index));
        out.resize(out.len().max(from + width), b' ');
    });
}

/// Appends the text of a row, with its line's end. `of_one_link`: events of
/// one link are asked for, which is not told again of routes and neighbours.
/// O(row).
pub fn monitored(
    row: Monitored<'_>,
    of_one_link: bool,
    output: &Output,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) {
    let hidden = Hidden {
        dev: of_one_link,
        ..Hidden::default()
    };
    let view = View::new(context, output, hidden);
    match row {
        Monitored::Link {
            row,
            happened,
            is_port,
        } => {
            let of = match is_port {
                true => HeadOf::MonitorPort,
                false => HeadOf::Monitor,
            };
            link::monitor_text(row, of, happened, &view, out);
        }
        Monitored::Address(row) => address::monitor_text(row, &view, out),
        Monitored::Neighbour(row) => row.text(&view, out),
        Monitored::Fdb(row) => neighbour::monitor_text(row, &view, out),
        Monitored::Route(row) => row.with_body(&row.body).text(&view, out),
        Monitored::Nexthop(row) => row.text(&view, out),
        Monitored::Rule(row) => row.text(&view, out),
    }
}
