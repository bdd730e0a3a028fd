//! Neighbours as `ip neigh` shows them.

use table::row::neighbour::{flag, state};
use table::{FdbEntry, Neighbour, NeighbourAges};

use crate::colour::{Colour, coloured};
use crate::column::Column;
use crate::context::View;
use crate::fields::{Value, Visit, push_name, push_plain};
use crate::format::{push_address, push_u64};
use crate::link::lladdr_value;
use crate::printer::Show;

/// The columns of a neighbour.
pub(crate) const COLUMNS: &[Column] = &[
    Column::address("dst"),
    Column::text("dev"),
    Column::lladdr("lladdr"),
    Column::flag("router"),
    Column::flag("proxy"),
    Column::flag("managed"),
    Column::flag("extern_learn"),
    Column::flag("offload"),
    Column::number("refcnt").sampled(),
    Column::number("used").sampled(),
    Column::number("confirmed").sampled(),
    Column::number("updated").sampled(),
    Column::number("probes").sampled(),
    Column::list("state"),
    Column::text("protocol"),
];

/// States in the order in which `ip` names them.
pub(crate) const STATES: [(u16, &str); 8] = [
    (state::INCOMPLETE, "INCOMPLETE"),
    (state::REACHABLE, "REACHABLE"),
    (state::STALE, "STALE"),
    (state::DELAY, "DELAY"),
    (state::PROBE, "PROBE"),
    (state::FAILED, "FAILED"),
    (state::NOARP, "NOARP"),
    (state::PERMANENT, "PERMANENT"),
];

const FLAGS: [(u32, &str); 5] = [
    (flag::ROUTER, "router"),
    (flag::PROXY, "proxy"),
    (flag::EXT_MANAGED, "managed"),
    (flag::EXT_LEARNED, "extern_learn"),
    (flag::OFFLOADED, "offload"),
];

/// The flags to show; a proxy entry is one whether or not the flag came
/// with it.
fn shown_flags(row: &Neighbour) -> u32 {
    row.flags | if row.proxy { flag::PROXY } else { 0 }
}

fn ages(row: &Neighbour, view: &View<'_>) -> Option<NeighbourAges> {
    let samples = &view.tables?.neighbour_samples;
    samples.get(&row.key()).map(|sample| sample.ages)
}

/// The hardware type decides how a link-layer address is written: asked
/// for only where the length leaves a doubt.
#[inline]
pub(crate) fn lladdr<'r>(row: &'r Neighbour, view: &View<'_>) -> Value<'r> {
    match row.lladdr.octets().len() {
        4 | 16 => lladdr_value(
            view.link(row.link).map_or(0, |link| link.hardware),
            &row.lladdr,
        ),
        _ => Value::LinkLayer(&row.lladdr),
    }
}

impl Show for Neighbour {
    #[inline]
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit) {
        visit.value("dst", Value::Address(self.address));
        if !view.hidden.dev && self.link != 0 {
            visit.value("dev", Value::Name(view.device(self.link)));
        }
        if !self.lladdr.is_none() {
            visit.value("lladdr", lladdr(self, view));
        }
        if view.brief {
            return;
        }
        let flags = shown_flags(self);
        if flags != 0 {
            for (bit, name) in FLAGS {
                if flags & bit != 0 {
                    visit.value(name, Value::Present);
                }
            }
        }
        if view.statistics {
            age_fields(self, view, visit);
        }
        if self.state != state::NONE {
            visit.list("state");
            for (bit, name) in STATES {
                if self.state & bit != 0 {
                    visit.item(Value::Text(name));
                }
            }
            visit.end_list();
        }
        if self.protocol != 0 {
            visit.value("protocol", Value::Name(view.names.protocol(self.protocol)));
        }
    }

    #[inline]
    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        if view.brief {
            return crate::brief::neighbour(self, view, out);
        }
        coloured(view, Colour::of_address(self.address), out, |out| {
            push_address(out, self.address);
            out.push(b' ');
        });
        let lladdr = (!self.lladdr.is_none()).then(|| lladdr(self, view));
        let link = if view.hidden.dev { 0 } else { self.link };
        place_text(link, lladdr, view, out);
        let flags = shown_flags(self);
        if flags != 0 {
            for (bit, name) in FLAGS {
                if flags & bit != 0 {
                    out.extend_from_slice(name.as_bytes());
                    out.push(b' ');
                }
            }
        }
        if view.statistics {
            age_text(self, view, out);
        }
        state_text(self.state, self.protocol, view, out);
        out.push(b'\n');
    }
}

#[inline]
fn state_text(of: u16, protocol: u8, view: &View<'_>, out: &mut Vec<u8>) {
    for (bit, name) in STATES {
        if of & bit != 0 {
            out.extend_from_slice(name.as_bytes());
            out.push(b' ');
        }
    }
    if protocol != 0 {
        out.extend_from_slice(b"proto ");
        push_name(out, view.names.protocol(protocol));
        out.push(b' ');
    }
}

/// A forwarding entry as `ip monitor` tells it, among neighbours.
pub(crate) fn monitor_text(row: &FdbEntry, view: &View<'_>, out: &mut Vec<u8>) {
    if let Some(destination) = row.destination {
        coloured(view, Colour::of_address(destination), out, |out| {
            push_address(out, destination);
            out.push(b' ');
        });
    }
    place_text(row.link, Value::LinkLayer(&row.lladdr), view, out);
    for (bit, name) in FLAGS {
        if row.flags & bit != 0 {
            out.extend_from_slice(name.as_bytes());
            out.push(b' ');
        }
    }
    state_text(row.state, row.protocol, view, out);
    out.push(b'\n');
}

/// On which link, and where there.
#[inline]
fn place_text<'r>(
    link: u32,
    lladdr: impl Into<Option<Value<'r>>>,
    view: &View<'_>,
    out: &mut Vec<u8>,
) {
    if link != 0 {
        out.extend_from_slice(b"dev ");
        coloured(view, Colour::Link, out, |out| {
            push_name(out, view.device(link));
            out.push(b' ');
        });
    }
    if let Some(lladdr) = lladdr.into() {
        out.extend_from_slice(b"lladdr ");
        coloured(view, Colour::LinkLayer, out, |out| {
            push_plain(out, lladdr);
            out.push(b' ');
        });
    }
}

fn age_fields(row: &Neighbour, view: &View<'_>, visit: &mut impl Visit) {
    let Some(ages) = ages(row, view) else {
        return;
    };
    if ages.references != 0 {
        visit.value("refcnt", Value::Number(ages.references.into()));
    }
    visit.value("used", Value::Number(ages.used_millis / 1000));
    visit.value("confirmed", Value::Number(ages.confirmed_millis / 1000));
    visit.value("updated", Value::Number(ages.updated_millis / 1000));
    visit.value("probes", Value::Number(ages.probes.into()));
}

fn age_text(row: &Neighbour, view: &View<'_>, out: &mut Vec<u8>) {
    let Some(ages) = ages(row, view) else {
        return;
    };
    if ages.references != 0 {
        out.extend_from_slice(b" ref ");
        push_u64(out, ages.references.into());
    }
    out.extend_from_slice(b" used ");
    push_u64(out, ages.used_millis / 1000);
    out.push(b'/');
    push_u64(out, ages.confirmed_millis / 1000);
    out.push(b'/');
    push_u64(out, ages.updated_millis / 1000);
    out.extend_from_slice(b"probes ");
    push_u64(out, ages.probes.into());
    out.push(b' ');
}
