//! Rules as `ip rule` shows them.

use ipnet::IpNet;
use table::Rule;
use table::row::route::protocol;
use table::row::rule::{action, flag};

use crate::colour::{Colour, coloured};
use crate::column::Column;
use crate::context::View;
use crate::fields::{Value, Visit, push_name, push_plain};
use crate::format::push_u64;
use crate::printer::Show;
use words::Name;

/// The columns of a rule.
pub(crate) const COLUMNS: &[Column] = &[
    Column::number("priority"),
    Column::flag("not"),
    Column::any("src"),
    Column::number("srclen"),
    Column::any("dst"),
    Column::number("dstlen"),
    Column::any("tos"),
    Column::any("fwmark"),
    Column::any("fwmask"),
    Column::any("iif"),
    Column::flag("iif_detached"),
    Column::any("oif"),
    Column::flag("oif_detached"),
    Column::flag("l3mdev"),
    Column::any("uid_start"),
    Column::any("uid_end"),
    Column::any("ipproto"),
    Column::any("sport"),
    Column::any("sport_start"),
    Column::any("sport_end"),
    Column::any("dport"),
    Column::any("dport_start"),
    Column::any("dport_end"),
    Column::any("tun_id"),
    Column::any("table"),
    Column::any("suppress_prefixlen"),
    Column::any("suppress_ifgroup"),
    Column::any("flow_from"),
    Column::any("flow_to"),
    Column::any("goto"),
    Column::flag("unresolved"),
    Column::flag("nop"),
    Column::any("action"),
    Column::any("protocol"),
];

/// The protocols of IP that rules are made for (`/etc/protocols`).
const IP_PROTOCOLS: [(u8, &str); 14] = [
    (1, "icmp"),
    (2, "igmp"),
    (4, "ipencap"),
    (6, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (41, "ipv6"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "ipv6-icmp"),
    (89, "ospf"),
    (112, "vrrp"),
    (132, "sctp"),
];

fn ip_protocol(number: u8) -> Name<'static> {
    IP_PROTOCOLS
        .iter()
        .find(|(of, _)| *of == number)
        .map_or(Name::Number(number.into()), |(_, name)| Name::Known(name))
}

/// `FRA_SUPPRESS_…` that is not set comes as -1.
const NOT_SET: u32 = u32::MAX;
const WHOLE_MARK: u32 = u32::MAX;

/// What is done with a packet that matches.
enum Target<'r> {
    Table(Name<'r>),
    NoTable,
    Goto(u32),
    Nop,
    Other(Value<'static>),
}

fn target<'r>(row: &Rule, view: &View<'r>) -> Target<'r> {
    match row.action {
        action::TO_TABLE | action::UNSPEC if row.table == 0 => Target::NoTable,
        action::TO_TABLE | action::UNSPEC => Target::Table(view.names.table(row.table)),
        action::GOTO => Target::Goto(row.goto.unwrap_or(0)),
        action::NOP => Target::Nop,
        other => Target::Other(crate::route::kind_name(other, view)),
    }
}

fn shows_protocol(row: &Rule, view: &View<'_>) -> bool {
    view.details || !matches!(row.protocol, protocol::UNSPEC | protocol::KERNEL)
}

fn prefix_fields(key: &'static str, len_key: &'static str, prefix: IpNet, visit: &mut impl Visit) {
    visit.value(key, Value::Address(prefix.addr()));
    if prefix.prefix_len() != prefix.max_prefix_len() {
        visit.value(len_key, Value::Number(prefix.prefix_len().into()));
    }
}

fn range_fields(keys: [&'static str; 3], range: Option<(u16, u16)>, visit: &mut impl Visit) {
    match range {
        None => {}
        Some((first, last)) if first == last => visit.value(keys[0], Value::Number(first.into())),
        Some((first, last)) => {
            visit.value(keys[1], Value::Number(first.into()));
            visit.value(keys[2], Value::Number(last.into()));
        }
    }
}

impl Show for Rule {
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit) {
        visit.value("priority", Value::Number(self.priority.into()));
        if self.flags & flag::INVERT != 0 {
            visit.value("not", Value::Present);
        }
        match self.source {
            Some(source) => prefix_fields("src", "srclen", source, visit),
            None => visit.value("src", Value::Text("all")),
        }
        if let Some(destination) = self.destination {
            prefix_fields("dst", "dstlen", destination, visit);
        }
        selector_fields(self, view, visit);
        target_fields(self, view, visit);
        if shows_protocol(self, view) {
            visit.value("protocol", Value::Name(view.names.protocol(self.protocol)));
        }
    }

    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        push_u64(out, self.priority.into());
        out.extend_from_slice(b":\t");
        if self.flags & flag::INVERT != 0 {
            out.extend_from_slice(b"not ");
        }
        out.extend_from_slice(b"from ");
        match self.source {
            Some(source) => prefix_text(source, view, out),
            None => out.extend_from_slice(b"all"),
        }
        if let Some(destination) = self.destination {
            out.extend_from_slice(b" to ");
            prefix_text(destination, view, out);
        }
        selector_text(self, view, out);
        target_text(self, view, out);
        if shows_protocol(self, view) {
            let name = view.names.protocol(self.protocol);
            word(out, " proto ", Value::Name(name));
        }
        out.push(b'\n');
    }
}

/// As C's `%#x` has it: zero has no prefix.
fn hex(number: u32) -> Value<'static> {
    match number {
        0 => Value::Text("0"),
        _ => Value::Hex(number.into()),
    }
}

fn selector_fields(row: &Rule, view: &View<'_>, visit: &mut impl Visit) {
    if row.tos != 0 {
        visit.value("tos", Value::Name(view.names.ds_field(row.tos)));
    }
    if let Some((mark, mask)) = row.fwmark {
        visit.value("fwmark", hex(mark));
        if mask != WHOLE_MARK {
            visit.value("fwmask", hex(mask));
        }
    }
    if let Some(iif) = &row.iif {
        visit.value("iif", Value::Text(iif));
        if row.flags & flag::IIF_DETACHED != 0 {
            visit.value("iif_detached", Value::Present);
        }
    }
    if let Some(oif) = &row.oif {
        visit.value("oif", Value::Text(oif));
        if row.flags & flag::OIF_DETACHED != 0 {
            visit.value("oif_detached", Value::Present);
        }
    }
    if row.l3mdev {
        visit.value("l3mdev", Value::Present);
    }
    if let Some((first, last)) = row.uids {
        visit.value("uid_start", Value::Number(first.into()));
        visit.value("uid_end", Value::Number(last.into()));
    }
    if let Some(number) = row.ip_protocol {
        visit.value("ipproto", Value::Name(ip_protocol(number)));
    }
    range_fields(
        ["sport", "sport_start", "sport_end"],
        row.source_ports,
        visit,
    );
    range_fields(
        ["dport", "dport_start", "dport_end"],
        row.destination_ports,
        visit,
    );
    if let Some(id) = row.tunnel_id {
        visit.value("tun_id", Value::Number(id));
    }
}

fn target_fields(row: &Rule, view: &View<'_>, visit: &mut impl Visit) {
    let target = target(row, view);
    if let Target::Table(name) = target
        && !row.l3mdev
    {
        visit.value("table", Value::Name(name));
    }
    if let Some(len) = row.suppress_prefix_len.filter(|len| *len != NOT_SET) {
        visit.value("suppress_prefixlen", Value::Number(len.into()));
    }
    if let Some(group) = row.suppress_group.filter(|group| *group != NOT_SET) {
        visit.value("suppress_ifgroup", Value::Name(view.names.group(group)));
    }
    if let Some(realms) = row.realms.filter(|realms| *realms != 0) {
        if realms >> 16 != 0 {
            visit.value("flow_from", Value::Name(view.names.realm(realms >> 16)));
        }
        visit.value("flow_to", Value::Name(view.names.realm(realms & 0xffff)));
    }
    match target {
        Target::Table(_) | Target::NoTable => {}
        Target::Goto(priority) => {
            visit.value("goto", Value::Number(priority.into()));
            if row.flags & flag::UNRESOLVED != 0 {
                visit.value("unresolved", Value::Present);
            }
        }
        Target::Nop => visit.value("nop", Value::Present),
        Target::Other(name) => visit.value("action", name),
    }
}

fn word(out: &mut Vec<u8>, label: &str, value: Value<'_>) {
    out.extend_from_slice(label.as_bytes());
    push_plain(out, value);
}

/// A prefix, whose address alone has a colour.
fn prefix_text(prefix: IpNet, view: &View<'_>, out: &mut Vec<u8>) {
    if prefix.prefix_len() == 0 {
        return push_plain(out, Value::Destination(prefix));
    }
    coloured(view, Colour::of_address(prefix.addr()), out, |out| {
        push_plain(out, Value::Address(prefix.addr()));
    });
    if prefix.prefix_len() != prefix.max_prefix_len() {
        out.push(b'/');
        push_u64(out, prefix.prefix_len().into());
    }
}

fn link_text(label: &str, name: &str, view: &View<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(label.as_bytes());
    coloured(view, Colour::Link, out, |out| {
        out.extend_from_slice(name.as_bytes());
    });
}

fn selector_text(row: &Rule, view: &View<'_>, out: &mut Vec<u8>) {
    if row.tos != 0 {
        word(out, " tos ", Value::Name(view.names.ds_field(row.tos)));
    }
    if let Some((mark, mask)) = row.fwmark {
        word(out, " fwmark ", hex(mark));
        if mask != WHOLE_MARK {
            word(out, "/", hex(mask));
        }
    }
    if let Some(iif) = &row.iif {
        link_text(" iif ", iif, view, out);
        if row.flags & flag::IIF_DETACHED != 0 {
            out.extend_from_slice(b" [detached]");
        }
    }
    if let Some(oif) = &row.oif {
        link_text(" oif ", oif, view, out);
        if row.flags & flag::OIF_DETACHED != 0 {
            out.extend_from_slice(b" [detached]");
        }
    }
    if let Some((first, last)) = row.uids {
        word(out, " uidrange ", Value::Number(first.into()));
        word(out, "-", Value::Number(last.into()));
    }
    if let Some(number) = row.ip_protocol {
        word(out, " ipproto ", Value::Name(ip_protocol(number)));
    }
    let ports = [
        (" sport ", row.source_ports),
        (" dport ", row.destination_ports),
    ];
    for (label, range) in ports {
        if let Some((first, last)) = range {
            word(out, label, Value::Number(first.into()));
            if first != last {
                word(out, "-", Value::Number(last.into()));
            }
        }
    }
    if let Some(id) = row.tunnel_id {
        word(out, " tun_id ", Value::Number(id));
    }
}

fn target_text(row: &Rule, view: &View<'_>, out: &mut Vec<u8>) {
    let target = target(row, view);
    if row.l3mdev {
        out.extend_from_slice(b" lookup [l3mdev-table]");
    } else if let Target::Table(name) = target {
        word(out, " lookup ", Value::Name(name));
    }
    if let Some(len) = row.suppress_prefix_len.filter(|len| *len != NOT_SET) {
        word(out, " suppress_prefixlength ", Value::Number(len.into()));
    }
    if let Some(group) = row.suppress_group.filter(|group| *group != NOT_SET) {
        word(
            out,
            " suppress_ifgroup ",
            Value::Name(view.names.group(group)),
        );
    }
    if let Some(realms) = row.realms.filter(|realms| *realms != 0) {
        out.extend_from_slice(b" realms ");
        if realms >> 16 != 0 {
            push_name(out, view.names.realm(realms >> 16));
            out.push(b'/');
        }
        push_name(out, view.names.realm(realms & 0xffff));
    }
    match target {
        Target::Table(_) | Target::NoTable => {}
        Target::Goto(priority) => {
            word(out, " goto ", Value::Number(priority.into()));
            if row.flags & flag::UNRESOLVED != 0 {
                out.extend_from_slice(b" [unresolved]");
            }
        }
        Target::Nop => out.extend_from_slice(b" nop"),
        Target::Other(name) => word(out, " ", name),
    }
}
