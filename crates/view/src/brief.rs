//! Rows as `ip -br` shows them: a table of the most important, a line each;
//! or the same fields of JSON.

use std::sync::Arc;

use table::{Address, Link, Neighbour};

use crate::address::put_prefix;
use crate::colour::{Colour, coloured};
use crate::context::View;
use crate::fields::{Value, Visit, push_name, push_plain};
use crate::format::push_address;
use crate::link::{
    below_fields, flag_fields, lladdr_value, name_text, oper_state, push_flags, push_lladdr_of,
    push_oper_state, state_colour,
};

/// Name and state, which each line begins with.
fn head(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    coloured(view, Colour::Link, out, |out| {
        padded(out, 16, |out| name_text(link, view, out));
    });
    coloured(view, state_colour(link), out, |out| {
        padded(out, 14, |out| push_oper_state(link, out));
    });
}

/// What `write` appends, in so many columns at least, and a blank.
fn padded(out: &mut Vec<u8>, width: usize, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out);
    if out.len() < start + width {
        out.resize(start + width, b' ');
    }
    out.push(b' ');
}

/// A link.
pub(crate) fn link(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    head(link, view, out);
    if !link.address.is_none() {
        coloured(view, Colour::LinkLayer, out, |out| {
            push_lladdr_of(link, out);
            out.push(b' ');
        });
    }
    out.push(b'<');
    push_flags(link, view, out);
    out.extend_from_slice(b"> \n");
}

/// Name and state as fields.
fn head_fields(link: &Link, view: &View<'_>, visit: &mut impl Visit) {
    below_fields(link, view, visit);
    visit.value("ifname", Value::Text(&link.name));
    visit.value("operstate", oper_state(link));
}

/// A link as fields.
pub(crate) fn link_fields(link: &Link, view: &View<'_>, visit: &mut impl Visit) {
    head_fields(link, view, visit);
    if !link.address.is_none() {
        visit.value("address", lladdr_value(link.hardware, &link.address));
    }
    flag_fields(link, view, visit);
}

/// A link with its addresses.
pub(crate) fn addresses(link: &Link, all: &[&Arc<Address>], view: &View<'_>, out: &mut Vec<u8>) {
    head(link, view, out);
    for address in all {
        put_prefix(address, view, out);
    }
    out.push(b'\n');
}

/// A link with its addresses, as fields.
pub(crate) fn address_fields(
    link: &Link,
    all: &[&Arc<Address>],
    view: &View<'_>,
    visit: &mut impl Visit,
) {
    head_fields(link, view, visit);
    visit.list("addr_info");
    for address in all {
        visit.object_item();
        crate::address::prefix_fields(address, visit);
        visit.end_item();
    }
    visit.end_list();
}

/// A neighbour.
pub(crate) fn neighbour(row: &Neighbour, view: &View<'_>, out: &mut Vec<u8>) {
    coloured(view, Colour::of_address(row.address), out, |out| {
        padded(out, 39, |out| push_address(out, row.address));
    });
    if !view.hidden.dev && row.link != 0 {
        coloured(view, Colour::Link, out, |out| {
            padded(out, 16, |out| push_name(out, view.device(row.link)));
        });
    }
    if !row.lladdr.is_none() {
        coloured(view, Colour::LinkLayer, out, |out| {
            push_plain(out, crate::neighbour::lladdr(row, view));
        });
    }
    out.push(b'\n');
}
