//! Rows as `ip -br` shows them: a table of the most important, a line each.

use std::sync::Arc;

use table::{Address, Link, Neighbour};

use crate::address::put_prefix;
use crate::context::View;
use crate::fields::{push_name, push_plain};
use crate::format::push_address;
use crate::link::{name_text, push_flags, push_lladdr_of, push_oper_state};

/// Name and state, which each line begins with.
fn head(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    padded(out, 16, |out| name_text(link, view, out));
    padded(out, 14, |out| push_oper_state(link, out));
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
        push_lladdr_of(link, out);
    }
    out.extend_from_slice(b" <");
    push_flags(link, view, out);
    out.extend_from_slice(b"> \n");
}

/// A link with its addresses.
pub(crate) fn addresses(link: &Link, all: &[&Arc<Address>], view: &View<'_>, out: &mut Vec<u8>) {
    head(link, view, out);
    for address in all {
        put_prefix(address, out);
    }
    out.push(b'\n');
}

/// A neighbour.
pub(crate) fn neighbour(row: &Neighbour, view: &View<'_>, out: &mut Vec<u8>) {
    padded(out, 39, |out| push_address(out, row.address));
    if !view.hidden.dev && row.link != 0 {
        padded(out, 16, |out| push_name(out, view.device(row.link)));
    }
    if !row.lladdr.is_none() {
        push_plain(out, crate::neighbour::lladdr(row, view));
    }
    out.push(b'\n');
}
