//! What `bridge link`, `bridge mdb`, `bridge vlan` and `ip nexthop bucket`
//! list, as iproute2 writes it: rows that are in no table. Called by the
//! program's faces of `ip` and `bridge`.

use std::net::IpAddr;

use table::row::link::bridge::BridgePort;
use table::row::multicast_group::{Group, GroupDetails, MulticastGroup, RouterPort, flag};
use table::row::nexthop_bucket::NexthopBucket;
use table::{FdbEntry, Link, LinkLayerAddress};

use crate::colour::{Colour, coloured};
use crate::context::{Context, Hidden, View};
use crate::fields::{Json, Value, Visit, push_name, push_plain};
use crate::format::{push_address, push_lladdr};
use crate::link::{below_fields, flag_fields, name_text, push_flags};
use crate::link_kind::bridge::STATES;
use crate::link_kind::put::Put;
use crate::printer::Show as _;
use crate::question::{Format, Output};

/// A row.
#[derive(Debug, Clone, Copy)]
pub enum BridgeRow<'a> {
    /// A port of a bridge, and what it is set to, if that is told.
    Port(&'a Link, Option<&'a BridgePort>),
    /// A multicast group of a bridge.
    Group(u32, &'a MulticastGroup),
    /// Ports of a bridge behind which multicast routers are.
    Routers(u32, &'a [RouterPort]),
    /// A port of a bridge behind which a multicast router is, as an event
    /// tells it.
    Router(u32, u32),
    /// A forwarding entry.
    Entry(&'a FdbEntry),
    /// VLANs of a port: first, last, whether it is that of untagged frames,
    /// whether frames leave without a tag.
    Vlans(u32, &'a [(u16, u16, bool, bool)]),
    /// A bucket of a resilient group.
    Bucket(&'a NexthopBucket),
}

impl BridgeRow<'_> {
    /// Appends the row's text with its line's end, or its JSON without what
    /// separates it from others. O(row).
    pub fn write(&self, output: &Output, context: &Context<'_>, out: &mut Vec<u8>) {
        let view = View::new(context, output, Hidden::default());
        if output.format == Format::Text {
            return self.text(&view, out);
        }
        match self {
            // A field of an object that the caller has opened.
            Self::Routers(bridge, ports) => router_fields(*bridge, ports, &view, out),
            row => {
                out.push(b'{');
                row.fields(&view, &mut Json { out });
                out.push(b'}');
            }
        }
    }

    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Port(link, port) => port_text(link, *port, view, out),
            Self::Group(bridge, group) => group_text(*bridge, group, view, out),
            Self::Routers(bridge, ports) => router_text(*bridge, ports, view, out),
            Self::Router(bridge, port) => {
                out.extend_from_slice(b"router port dev ");
                push_name(out, view.device(*port));
                out.extend_from_slice(b" master ");
                push_name(out, view.device(*bridge));
                out.push(b'\n');
            }
            Self::Entry(entry) => entry.text(view, out),
            Self::Vlans(link, vlans) => vlan_text(*link, vlans, view, out),
            Self::Bucket(bucket) => bucket_text(bucket, out),
        }
    }

    fn fields(&self, view: &View<'_>, json: &mut Json<'_>) {
        match self {
            Self::Port(link, port) => port_fields(link, *port, view, json),
            Self::Group(bridge, group) => group_fields(*bridge, group, view, json),
            // Of events, which are text.
            Self::Routers(..) | Self::Router(..) | Self::Entry(_) => {}
            Self::Vlans(link, vlans) => vlan_fields(*link, vlans, view, json),
            Self::Bucket(bucket) => bucket_fields(bucket, json),
        }
    }
}

fn port_fields(link: &Link, port: Option<&BridgePort>, view: &View<'_>, json: &mut Json<'_>) {
    json.value("ifindex", Value::Number(link.index.into()));
    below_fields(link, view, json);
    json.value("ifname", Value::Text(&link.name));
    flag_fields(link, view, json);
    json.value("mtu", Value::Number(link.mtu.into()));
    if let Some(master) = link.master {
        json.value("master", Value::Name(view.device(master)));
    }
    if let Some(port) = port {
        settings(port, &mut Put::fields(json, view));
    }
}

fn port_text(link: &Link, port: Option<&BridgePort>, view: &View<'_>, out: &mut Vec<u8>) {
    push_plain(out, Value::Number(link.index.into()));
    out.extend_from_slice(b": ");
    coloured(view, Colour::Link, out, |out| {
        name_text(link, view, out);
        out.extend_from_slice(b": ");
    });
    out.push(b'<');
    push_flags(link, view, out);
    out.extend_from_slice(b"> mtu ");
    push_plain(out, Value::Number(link.mtu.into()));
    out.push(b' ');
    if let Some(master) = link.master {
        out.extend_from_slice(b"master ");
        push_name(out, view.device(master));
        out.push(b' ');
    }
    if let Some(port) = port {
        settings(port, &mut Put::<Json<'_>>::text(out, view));
    }
    out.push(b'\n');
}

fn settings<V: Visit>(port: &BridgePort, put: &mut Put<'_, '_, V>) {
    match port.state {
        Some(other @ 5..) => {
            put.number("state", "state", Some(other));
        }
        state => put.named("state", "state", STATES, state),
    }
    put.number("priority", "priority", port.priority);
    put.number("cost", "cost", port.cost);
    if !put.view.details {
        return;
    }
    put.line("    ");
    let switches = [
        ("hairpin", port.mode),
        ("guard", port.guard),
        ("root_block", port.protect),
        ("fastleave", port.fast_leave),
        ("learning", port.learning),
        ("learning_sync", port.learning_sync),
        ("flood", port.unicast_flood),
        ("mcast_flood", port.mcast_flood),
        ("bcast_flood", port.bcast_flood),
    ];
    for (key, switch) in switches {
        put.on_off(key, switch);
    }
    put.number("mcast_router", "mcast_router", port.multicast_router);
    let switches = [
        ("mcast_to_unicast", port.mcast_to_ucast),
        ("neigh_suppress", port.neigh_suppress),
        ("vlan_tunnel", port.vlan_tunnel),
    ];
    for (key, switch) in switches {
        put.on_off(key, switch);
    }
    put.device("backup_port", "backup_port", port.backup_port);
    put.on_off("isolated", port.isolated);
    put.on_off("locked", port.locked);
}

fn colour_of(group: Group) -> Colour {
    match group {
        Group::Ip(address) => Colour::of_address(address),
        Group::LinkLayer(_) => Colour::LinkLayer,
    }
}

fn push_group(group: Group, out: &mut Vec<u8>) {
    match group {
        Group::Ip(address) => push_address(out, address),
        Group::LinkLayer(octets) => {
            if let Some(address) = LinkLayerAddress::new(&octets) {
                push_lladdr(out, &address);
            }
        }
    }
}

/// `   1.25`
fn timer(hundredths: u32) -> String {
    format!("{:4}.{:02}", hundredths / 100, hundredths % 100)
}

fn state(group: &MulticastGroup) -> &'static str {
    match group.is_permanent {
        true => "permanent",
        false => "temp",
    }
}

fn filter_mode(mode: u8) -> &'static str {
    match mode {
        1 => "include",
        _ => "exclude",
    }
}

const FLAGS: [(u8, &str); 4] = [
    (flag::OFFLOAD, "offload"),
    (flag::FAST_LEAVE, "fast_leave"),
    (flag::STAR_EXCL, "added_by_star_ex"),
    (flag::BLOCKED, "blocked"),
];

fn flags_of(group: &MulticastGroup) -> impl Iterator<Item = &'static str> {
    let flags = group.flags;
    let set = FLAGS.iter().filter(move |(bit, _)| flags & bit != 0);
    set.map(|(_, name)| *name)
}

fn group_text(bridge: u32, row: &MulticastGroup, view: &View<'_>, out: &mut Vec<u8>) {
    coloured(view, Colour::Link, out, |out| {
        out.extend_from_slice(b"dev ");
        push_name(out, view.device(bridge));
    });
    out.extend_from_slice(b" port ");
    push_name(out, view.device(row.port));
    coloured(view, colour_of(row.group), out, |out| {
        out.extend_from_slice(b" grp ");
        push_group(row.group, out);
    });
    if let Some(source) = row.source {
        coloured(view, Colour::of_address(source), out, |out| {
            out.extend_from_slice(b" src ");
            push_address(out, source);
        });
    }
    out.push(b' ');
    out.extend_from_slice(state(row).as_bytes());
    if let Some(details) = row.details.as_ref().filter(|_| view.details) {
        details_text(details, view, out);
    }
    for flag in flags_of(row) {
        out.push(b' ');
        out.extend_from_slice(flag.as_bytes());
    }
    if row.vlan != 0 {
        out.extend_from_slice(format!(" vid {}", row.vlan).as_bytes());
    }
    let known = row.details.as_ref().filter(|_| view.statistics);
    if let Some(hundredths) = known.and_then(|known| known.timer) {
        out.push(b' ');
        out.extend_from_slice(timer(hundredths).as_bytes());
    }
    out.push(view.line_break());
}

fn details_text(details: &GroupDetails, view: &View<'_>, out: &mut Vec<u8>) {
    if let Some(mode) = details.filter_mode {
        out.extend_from_slice(b" filter_mode ");
        out.extend_from_slice(filter_mode(mode).as_bytes());
    }
    if !details.sources.is_empty() {
        out.extend_from_slice(b" source_list ");
        for (at, (address, hundredths)) in details.sources.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"" } else { b"," });
            coloured(view, Colour::of_address(*address), out, |out| {
                push_address(out, *address);
            });
            out.push(b'/');
            out.extend_from_slice(timer(*hundredths).as_bytes());
        }
    }
    if let Some(protocol) = details.protocol {
        out.extend_from_slice(b" proto ");
        push_name(out, view.names.protocol(protocol));
        out.push(b' ');
    }
}

fn group_fields(bridge: u32, row: &MulticastGroup, view: &View<'_>, json: &mut Json<'_>) {
    json.value("index", Value::Number(bridge.into()));
    json.value("dev", Value::Name(view.device(bridge)));
    json.value("port", Value::Name(view.device(row.port)));
    let mut address = Vec::new();
    push_group(row.group, &mut address);
    let address = String::from_utf8(address).unwrap_or_default();
    json.value("grp", Value::Text(&address));
    if let Some(source) = row.source {
        json.value("src", Value::Address(source));
    }
    json.value("state", Value::Text(state(row)));
    if let Some(details) = row.details.as_ref().filter(|_| view.details) {
        if let Some(mode) = details.filter_mode {
            json.value("filter_mode", Value::Text(filter_mode(mode)));
        }
        if !details.sources.is_empty() {
            source_fields(&details.sources, json);
        }
        if let Some(protocol) = details.protocol {
            json.value("protocol", Value::Name(view.names.protocol(protocol)));
        }
    }
    json.list("flags");
    flags_of(row).for_each(|flag| json.item(Value::Text(flag)));
    json.end_list();
    if row.vlan != 0 {
        json.value("vid", Value::Number(row.vlan.into()));
    }
    let known = row.details.as_ref().filter(|_| view.statistics);
    if let Some(hundredths) = known.and_then(|known| known.timer) {
        json.value("timer", Value::Text(&timer(hundredths)));
    }
}

fn source_fields(sources: &[(IpAddr, u32)], json: &mut Json<'_>) {
    json.list("source_list");
    for (address, hundredths) in sources {
        json.object_item();
        json.value("address", Value::Address(*address));
        json.value("timer", Value::Text(&timer(*hundredths)));
        json.end_item();
    }
    json.end_list();
}

/// `MDB_RTR_TYPE_TEMP` and `MDB_RTR_TYPE_TEMP_QUERY`: found by what it sent.
fn router_kind(kind: u8) -> &'static str {
    match kind {
        1 | 3 => "temp",
        _ => "permanent",
    }
}

fn router_text(bridge: u32, ports: &[RouterPort], view: &View<'_>, out: &mut Vec<u8>) {
    let head = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"router ports on ");
        push_name(out, view.device(bridge));
        out.extend_from_slice(b": ");
    };
    if !view.statistics {
        head(out);
    }
    for port in ports {
        if !view.statistics {
            push_name(out, view.device(port.port));
            out.push(b' ');
            continue;
        }
        head(out);
        push_name(out, view.device(port.port));
        if let Some(hundredths) = port.timer {
            out.push(b' ');
            out.extend_from_slice(timer(hundredths).as_bytes());
        }
        if let Some(kind) = port.kind {
            out.push(b' ');
            out.extend_from_slice(router_kind(kind).as_bytes());
        }
        out.push(b'\n');
    }
    if !view.statistics {
        out.push(view.line_break());
    }
}

fn router_fields(bridge: u32, ports: &[RouterPort], view: &View<'_>, out: &mut Vec<u8>) {
    let mut name = Vec::new();
    push_name(&mut name, view.device(bridge));
    let mut json = Json { out };
    json.key(&String::from_utf8(name).unwrap_or_default());
    json.out.push(b'[');
    for port in ports {
        json.object_item();
        json.value("port", Value::Name(view.device(port.port)));
        if view.statistics {
            if let Some(hundredths) = port.timer {
                json.value("timer", Value::Text(&timer(hundredths)));
            }
            if let Some(kind) = port.kind {
                json.value("type", Value::Text(router_kind(kind)));
            }
        }
        json.end_item();
    }
    json.out.push(b']');
}

/// The width of a port's name (`IFNAMSIZ`) and two blanks.
const PORT_WIDTH: usize = 18;

fn vlan_text(link: u32, vlans: &[(u16, u16, bool, bool)], view: &View<'_>, out: &mut Vec<u8>) {
    for (at, (first, last, is_pvid, untagged)) in vlans.iter().enumerate() {
        if at == 0 {
            coloured(view, Colour::Link, out, |out| {
                let from = out.len();
                push_name(out, view.device(link));
                out.resize(out.len().max(from + PORT_WIDTH), b' ');
            });
        } else {
            out.resize(out.len() + PORT_WIDTH, b' ');
        }
        let range = match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        out.extend_from_slice(range.as_bytes());
        out.extend_from_slice(if *is_pvid { b" PVID" } else { b"" });
        out.extend_from_slice(if *untagged { b" Egress Untagged" } else { b"" });
        out.push(view.line_break());
    }
}

fn vlan_fields(link: u32, vlans: &[(u16, u16, bool, bool)], view: &View<'_>, json: &mut Json<'_>) {
    json.value("ifname", Value::Name(view.device(link)));
    json.list("vlans");
    for (first, last, is_pvid, untagged) in vlans {
        json.object_item();
        json.value("vlan", Value::Number((*first).into()));
        if first != last {
            json.value("vlanEnd", Value::Number((*last).into()));
        }
        // That it is a range is a flag of its own, which `bridge` does not name.
        if *is_pvid || *untagged || first != last {
            json.list("flags");
            if *is_pvid {
                json.item(Value::Text("PVID"));
            }
            if *untagged {
                json.item(Value::Text("Egress Untagged"));
            }
            json.end_list();
        }
        json.end_item();
    }
    json.end_list();
}

/// Seconds as `%g` writes them: six digits that count, and from a million on
/// with an exponent.
fn idle(hundredths: u64) -> String {
    const DIGITS: i32 = 6;
    let seconds = hundredths as f64 / 100.0;
    let rounded = format!("{seconds:.5e}");
    let Some((digits, exponent)) = rounded.split_once('e') else {
        return rounded;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if exponent >= DIGITS => format!("{}e+{exponent:02}", shortest(digits)),
        Ok(exponent) => {
            let places = usize::try_from(DIGITS - 1 - exponent).unwrap_or_default();
            shortest(&format!("{seconds:.places$}")).to_owned()
        }
        Err(_) => seconds.to_string(),
    }
}

/// A number without the zeros behind its point.
fn shortest(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

fn bucket_text(row: &NexthopBucket, out: &mut Vec<u8>) {
    let text = format!(
        "id {} index {} idle_time {} nhid {} \n",
        row.group,
        row.index,
        idle(row.idle),
        row.nexthop
    );
    out.extend_from_slice(text.as_bytes());
}

fn bucket_fields(row: &NexthopBucket, json: &mut Json<'_>) {
    json.value("id", Value::Number(row.group.into()));
    json.object("bucket");
    json.value("index", Value::Number(row.index.into()));
    json.key("idle_time");
    json.out.extend_from_slice(idle(row.idle).as_bytes());
    json.value("nhid", Value::Number(row.nexthop.into()));
    json.end_object();
    json.list("flags");
    json.end_list();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_c_writes_them() {
        for (hundredths, written) in [
            (0, "0"),
            (1, "0.01"),
            (150, "1.5"),
            (1_000, "10"),
            (9_999_999, "100000"),
            (1_234_567, "12345.7"),
            (99_999_950, "1e+06"),
            (123_456_789, "1.23457e+06"),
        ] {
            assert_eq!(idle(hundredths), written, "{hundredths}");
        }
    }
}
