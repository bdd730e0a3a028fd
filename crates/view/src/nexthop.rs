//! Next-hop objects as `ip nexthop` shows them.

use table::Nexthop;

use crate::colour::{Colour, coloured};
use crate::column::Column;
use crate::context::View;
use crate::fields::{Value, Visit, push_plain};
use crate::format::push_u64;
use crate::printer::Show;
use crate::route::{derived_flags, device_text, encap_fields, encap_text, flag_fields, flag_text};

/// The columns of a next-hop object.
pub(crate) const COLUMNS: &[Column] = &[
    Column::number("id"),
    Column::number("group.id"),
    Column::number("group.weight"),
    Column::text("type"),
    Column::number("resilient_args.buckets"),
    Column::any("resilient_args.idle_timer"),
    Column::any("resilient_args.unbalanced_timer"),
    Column::any("resilient_args.unbalanced_time").rare(),
    Column::any("encap"),
    Column::address("gateway"),
    Column::text("dev"),
    Column::text("scope"),
    Column::flag("blackhole"),
    Column::text("protocol"),
    Column::list("flags"),
    Column::any("fdb"),
];

fn flags(row: &Nexthop, view: &View<'_>) -> u32 {
    row.flags
        | row
            .link
            .map_or(0, |link| derived_flags(link, row.family, view))
}

impl Show for Nexthop {
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit) {
        visit.value("id", Value::Number(self.id.into()));
        if !self.group.is_empty() {
            visit.list("group");
            for member in &self.group {
                visit.object_item();
                visit.value("id", Value::Number(member.id.into()));
                if member.weight > 1 {
                    visit.value("weight", Value::Number(member.weight.into()));
                }
                visit.end_item();
            }
            visit.end_list();
        }
        if let Some(resilient) = &self.resilient {
            visit.value("type", Value::Text("resilient"));
            visit.object("resilient_args");
            visit.value("buckets", Value::Number(resilient.buckets.into()));
            visit.value("idle_timer", secs(resilient.idle_timer_centisecs));
            visit.value(
                "unbalanced_timer",
                secs(resilient.unbalanced_timer_centisecs),
            );
            if let Some(time) = view.unbalanced(self.id) {
                visit.value("unbalanced_time", Value::Number(time / 100));
            }
            visit.end_object();
        }
        encap_fields(self.encap.as_deref(), view, visit);
        if let Some(gateway) = self.gateway {
            visit.value("gateway", Value::Address(gateway));
        }
        if let Some(link) = self.link {
            visit.value("dev", Value::Name(view.device(link)));
        }
        if self.scope != 0 || view.details {
            visit.value("scope", Value::Name(view.names.scope(self.scope)));
        }
        if self.blackhole {
            visit.value("blackhole", Value::Present);
        }
        if self.protocol != 0 || view.details {
            visit.value("protocol", Value::Name(view.names.protocol(self.protocol)));
        }
        flag_fields(flags(self, view), visit);
        if self.fdb {
            visit.value("fdb", Value::Present);
        }
    }

    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        body_text(self, view, out);
        out.push(b'\n');
    }
}

/// The row in one line, without the line's end.
pub(crate) fn body_text(row: &Nexthop, view: &View<'_>, out: &mut Vec<u8>) {
    let word = |out: &mut Vec<u8>, label: &str, value: Value<'_>| {
        out.extend_from_slice(label.as_bytes());
        push_plain(out, value);
        out.push(b' ');
    };
    word(out, "id ", Value::Number(row.id.into()));
    group_text(row, out);
    if let Some(resilient) = &row.resilient {
        out.extend_from_slice(b"type resilient ");
        word(out, "buckets ", Value::Number(resilient.buckets.into()));
        word(out, "idle_timer ", secs(resilient.idle_timer_centisecs));
        let unbalanced = secs(resilient.unbalanced_timer_centisecs);
        word(out, "unbalanced_timer ", unbalanced);
        if let Some(time) = view.unbalanced(row.id) {
            word(out, "unbalanced_time ", Value::Number(time / 100));
        }
    }
    encap_text(row.encap.as_deref(), view, out);
    if let Some(gateway) = row.gateway {
        out.extend_from_slice(b"via ");
        coloured(view, Colour::of_address(gateway), out, |out| {
            word(out, "", Value::Address(gateway));
        });
    }
    if let Some(link) = row.link {
        device_text(link, view, out);
    }
    if row.scope != 0 || view.details {
        word(out, "scope ", Value::Name(view.names.scope(row.scope)));
    }
    if row.blackhole {
        out.extend_from_slice(b"blackhole ");
    }
    if row.protocol != 0 || view.details {
        let protocol = view.names.protocol(row.protocol);
        word(out, "proto ", Value::Name(protocol));
    }
    flag_text(flags(row, view), out);
    if row.fdb {
        out.extend_from_slice(b"fdb");
    }
}

fn group_text(row: &Nexthop, out: &mut Vec<u8>) {
    if row.group.is_empty() {
        return;
    }
    out.extend_from_slice(b"group ");
    for (at, member) in row.group.iter().enumerate() {
        if at > 0 {
            out.push(b'/');
        }
        push_u64(out, member.id.into());
        if member.weight > 1 {
            out.push(b',');
            push_u64(out, member.weight.into());
        }
    }
    out.push(b' ');
}

/// Whole seconds, as `ip` shows the timers of a resilient group.
fn secs(centisecs: u32) -> Value<'static> {
    Value::Number((centisecs / 100).into())
}
