//! Lightweight tunnels of next hops as `ip route` shows them.

use std::net::IpAddr;

use table::row::encap::{IpTunnel, Mpls};
use table::row::segments::{Seg6, Seg6Local};
use table::{Encap, Tunnel};

use crate::colour::{Colour, coloured};
use crate::context::View;
use crate::fields::{Value, Visit, push_plain};
use crate::format::push_u64;
use words::encap::{SEG6_ACTIONS, SEG6_MODES, TUNNEL_FLAGS};

/// `LWTUNNEL_ENCAP_…` of `linux/lwtunnel.h` by number.
const TYPES: [&str; 11] = [
    "none",
    "mpls",
    "ip",
    "ila",
    "ip6",
    "seg6",
    "bpf",
    "seg6local",
    "rpl",
    "ioam6",
    "xfrm",
];

fn type_name(kind: u16) -> Value<'static> {
    TYPES
        .get(usize::from(kind))
        .map_or(Value::Number(kind.into()), |name| Value::Text(name))
}

fn mode(header: &Seg6) -> Value<'static> {
    SEG6_MODES
        .get(header.mode as usize)
        .map_or(Value::Number(header.mode.into()), |name| Value::Text(name))
}

/// The fields that text and JSON have in common: JSON key, value.
fn each(tunnel: &Tunnel, view: &View<'_>, each: impl FnMut(&'static str, Value<'_>)) {
    match tunnel {
        Tunnel::Seg6Local(row) => seg6_local(row, view, each),
        Tunnel::Ip(tunnel) => ip(tunnel, ["ttl", "tos"], each),
        Tunnel::Ip6(tunnel) => ip(tunnel, ["hoplimit", "tc"], each),
        Tunnel::Mpls(tunnel) => mpls(tunnel, each),
        _ => {}
    }
}

fn ip<A: Copy + Into<IpAddr>>(
    tunnel: &IpTunnel<A>,
    [ttl, tos]: [&'static str; 2],
    mut each: impl FnMut(&'static str, Value<'_>),
) {
    if let Some(id) = tunnel.id {
        each("id", Value::Number(id));
    }
    for (key, address) in [("src", tunnel.source), ("dst", tunnel.destination)] {
        if let Some(address) = address {
            each(key, Value::Address(address.into()));
        }
    }
    for (key, number) in [(ttl, tunnel.ttl), (tos, tunnel.tos)] {
        if let Some(number) = number {
            each(key, Value::Number(number.into()));
        }
    }
    for (bit, name) in TUNNEL_FLAGS {
        if tunnel.flags.is_some_and(|flags| flags & bit != 0) {
            each(name, Value::True);
        }
    }
}

/// What is done with packets for a segment, and where they go then.
fn seg6_local(row: &Seg6Local, view: &View<'_>, mut each: impl FnMut(&'static str, Value<'_>)) {
    if let Some(action) = row.action {
        let name = SEG6_ACTIONS.get(action as usize);
        each("action", Value::Text(name.unwrap_or(&"unknown")));
    }
    for (key, table) in [("table", row.table), ("vrftable", row.vrf_table)] {
        if let Some(table) = table {
            each(key, Value::Name(view.names.table(table)));
        }
    }
    let gateway4 = row.gateway4.map(IpAddr::V4);
    let gateway6 = row.gateway6.map(IpAddr::V6);
    for (key, gateway) in [("nh4", gateway4), ("nh6", gateway6)] {
        if let Some(gateway) = gateway {
            each(key, Value::Address(gateway));
        }
    }
    for (key, link) in [("iif", row.input_link), ("oif", row.output_link)] {
        if let Some(link) = link {
            each(key, Value::Name(view.device(link)));
        }
    }
}

fn mpls(tunnel: &Mpls, mut each: impl FnMut(&'static str, Value<'_>)) {
    if !tunnel.labels.is_empty() {
        each("dst", Value::Text(&label_stack(&tunnel.labels)));
    }
    if let Some(ttl) = tunnel.ttl {
        each("ttl", Value::Number(ttl.into()));
    }
}

/// MPLS labels with slashes.
fn label_stack(labels: &[u32]) -> String {
    let mut text = Vec::new();
    for label in labels {
        if !text.is_empty() {
            text.push(b'/');
        }
        push_u64(&mut text, (*label).into());
    }
    String::from_utf8(text).unwrap_or_default()
}

/// The fields of a next hop's tunnel, if it has one. (Yes, they repeat the
/// keys of the route: so does `ip -j`.)
#[inline]
pub(crate) fn encap_fields(encap: Option<&Encap>, view: &View<'_>, visit: &mut impl Visit) {
    let Some(encap) = encap else {
        return;
    };
    visit.value("encap", type_name(encap.kind()));
    if let Tunnel::Seg6(tunnel) = &encap.tunnel {
        visit.value("mode", mode(tunnel));
        visit.list("segs");
        for segment in &tunnel.header.segments {
            visit.item(Value::Address((*segment).into()));
        }
        visit.end_list();
    }
    each(&encap.tunnel, view, |key, value| visit.value(key, value));
}

/// The same as text.
#[inline]
pub(crate) fn encap_text(encap: Option<&Encap>, view: &View<'_>, out: &mut Vec<u8>) {
    let Some(encap) = encap else {
        return;
    };
    let colour = match encap.tunnel {
        Tunnel::Ip(_) => Some(Colour::Inet),
        Tunnel::Ip6(_) | Tunnel::Seg6(_) => Some(Colour::Inet6),
        _ => None,
    };
    let mut word = |label: &str, value: Value<'_>| {
        let colour = colour.filter(|_| matches!(value, Value::Address(_)));
        coloured(view, colour, out, |out| {
            for part in [Value::Text(label), value] {
                if !matches!(part, Value::Text("")) {
                    push_plain(out, part);
                    out.push(b' ');
                }
            }
        });
    };
    word(" encap", type_name(encap.kind()));
    if let Tunnel::Seg6(tunnel) = &encap.tunnel {
        let segments = &tunnel.header.segments;
        word("mode", mode(tunnel));
        word("segs", Value::Number(segments.len() as u64));
        word("", Value::Text("["));
        for segment in segments {
            word("", Value::Address((*segment).into()));
        }
        word("", Value::Text("]"));
    }
    let is_mpls = matches!(encap.tunnel, Tunnel::Mpls(_));
    each(&encap.tunnel, view, |key, value| {
        // MPLS labels stand without a name of their own.
        match value {
            Value::True => word(key, Value::Text("")),
            value if is_mpls && key == "dst" => word("", value),
            value => word(key, value),
        }
    });
}
