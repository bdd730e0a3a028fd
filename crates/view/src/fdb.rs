//! Forwarding entries as `bridge fdb` shows them.

use table::FdbEntry;
use table::row::neighbour::{flag, state};

use crate::colour::{Colour, coloured};
use crate::column::Column;
use crate::context::View;
use crate::fields::{Value, Visit, push_plain};
use crate::format::push_hex;
use crate::printer::Show;
use crate::route::device_text;

/// The columns of a forwarding entry.
pub(crate) const COLUMNS: &[Column] = &[
    Column::lladdr("mac"),
    Column::text("ifname"),
    Column::address("dst"),
    Column::number("vlan"),
    Column::any("port"),
    Column::number("vni"),
    Column::number("src_vni"),
    Column::any("viaIf"),
    Column::number("nhid"),
    Column::any("linkNetNsId"),
    Column::list("flags"),
    Column::text("master"),
    Column::any("state"),
];

const FLAGS: [(u32, &str); 7] = [
    (flag::SELF, "self"),
    (flag::ROUTER, "router"),
    (flag::EXT_LEARNED, "extern_learn"),
    (flag::OFFLOADED, "offload"),
    (flag::MASTER, "master"),
    (flag::STICKY, "sticky"),
    (flag::EXT_LOCKED, "locked"),
];

enum State {
    Word(&'static str),
    Other(u16),
}

fn state_of(row: &FdbEntry) -> State {
    if row.state & state::PERMANENT != 0 {
        State::Word("permanent")
    } else if row.state & state::NOARP != 0 {
        State::Word("static")
    } else if row.state & state::STALE != 0 {
        State::Word("stale")
    } else if row.state & state::REACHABLE != 0 {
        State::Word("")
    } else {
        State::Other(row.state)
    }
}

fn push_state(out: &mut Vec<u8>, row: &FdbEntry) {
    match state_of(row) {
        State::Word(word) => out.extend_from_slice(word.as_bytes()),
        State::Other(bits) => {
            out.extend_from_slice(b"state=0x");
            push_hex(out, bits.into());
        }
    }
}

/// The fields in which text and JSON differ by their name only: JSON key,
/// text label, value.
fn each_place(
    row: &FdbEntry,
    view: &View<'_>,
    mut each: impl FnMut(&'static str, &'static str, Value<'_>),
) {
    if let Some(destination) = row.destination {
        each("dst", "dst ", Value::Address(destination));
    }
    let numbers = [
        ("vlan", "vlan ", row.vlan.map(u32::from)),
        ("port", "port ", row.port.map(u32::from)),
        ("vni", "vni ", row.vni),
        ("src_vni", "src_vni ", row.source_vni),
    ];
    for (key, label, number) in numbers {
        if let Some(number) = number {
            each(key, label, Value::Number(number.into()));
        }
    }
    if let Some(link) = row.via_link {
        each("viaIf", "via ", Value::Name(view.device(link)));
    }
    if let Some(nexthop) = row.nexthop_id {
        each("nhid", "nhid ", Value::Number(nexthop.into()));
    }
    if let Some(id) = row.link_netns_id {
        each("linkNetNsId", "link-netnsid ", Value::Signed(id.into()));
    }
}

impl Show for FdbEntry {
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit) {
        visit.value("mac", Value::LinkLayer(&self.lladdr));
        if !view.hidden.dev && self.link != 0 {
            visit.value("ifname", Value::Name(view.device(self.link)));
        }
        each_place(self, view, |key, _, value| visit.value(key, value));
        visit.list("flags");
        for (bit, name) in FLAGS {
            if self.flags & bit != 0 {
                visit.item(Value::Text(name));
            }
        }
        visit.end_list();
        if let Some(master) = self.master {
            visit.value("master", Value::Name(view.device(master)));
        }
        match state_of(self) {
            State::Word(word) => visit.value("state", Value::Text(word)),
            State::Other(_) => {
                let mut text = Vec::new();
                push_state(&mut text, self);
                let text = String::from_utf8(text).unwrap_or_default();
                visit.value("state", Value::Text(&text));
            }
        }
    }

    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        word(out, view, "", Value::LinkLayer(&self.lladdr));
        if !view.hidden.dev && self.link != 0 {
            device_text(self.link, view, out);
        }
        each_place(self, view, |_, label, value| word(out, view, label, value));
        for (bit, name) in FLAGS {
            if self.flags & bit != 0 {
                word(out, view, "", Value::Text(name));
            }
        }
        if let Some(master) = self.master {
            word(out, view, "master ", Value::Name(view.device(master)));
        }
        push_state(out, self);
        out.push(b'\n');
    }
}

/// A label and a value; an address has a colour.
fn word(out: &mut Vec<u8>, view: &View<'_>, label: &str, value: Value<'_>) {
    let colour = match value {
        Value::LinkLayer(_) => Some(Colour::LinkLayer),
        Value::Address(address) => Some(Colour::of_address(address)),
        _ => None,
    };
    out.extend_from_slice(label.as_bytes());
    coloured(view, colour, out, |out| {
        push_plain(out, value);
        out.push(b' ');
    });
}
