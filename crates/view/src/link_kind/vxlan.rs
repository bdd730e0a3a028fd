//! VXLAN.

use table::row::link::vxlan::Vxlan;

use super::put::{Put, tos, ttl};
use crate::fields::{Value, Visit};

pub(super) fn show<V: Visit>(vxlan: &Vxlan, put: &mut Put<'_, '_, V>) {
    let is_on = |switch: Option<u8>| switch.is_some_and(|on| on != 0);
    put.yes("external", "external", is_on(vxlan.collect_metadata));
    if is_on(vxlan.vnifilter) {
        put.field("vnifilter", Value::True);
        // `ip` has no space behind it.
        put.raw("vnifilter");
    }
    put.number("id", "id", vxlan.id);
    ends(vxlan, put);
    put.device("link", "dev", vxlan.link);
    ports(vxlan, put);
    put.either("learning", ("", "nolearning"), vxlan.learning);
    let switches = [
        ("proxy", vxlan.proxy),
        ("rsc", vxlan.rsc),
        ("l2miss", vxlan.l2miss),
        ("l3miss", vxlan.l3miss),
    ];
    for (key, switch) in switches {
        put.yes(key, key, is_on(switch));
    }
    tos(put, vxlan.tos);
    match vxlan.ttl {
        _ if is_on(vxlan.ttl_inherit) => put.say("ttl", Value::Text("inherit")),
        Some(number) => ttl(put, "ttl", number, "auto"),
        None => {}
    }
    dont_fragment(put, vxlan.df);
    put.hex(
        "label",
        "flowlabel",
        vxlan.label.filter(|label| *label != 0),
    );
    match vxlan.ageing {
        Some(0) => {
            put.field("ageing", Value::Number(0));
            put.say("ageing", Value::Text("none"));
        }
        ageing => put.number("ageing", "ageing", ageing),
    }
    put.number("limit", "maxaddr", vxlan.limit.filter(|limit| *limit != 0));
    checksums(
        put,
        [
            vxlan.udp_csum,
            vxlan.udp_zero_csum6_tx,
            vxlan.udp_zero_csum6_rx,
        ],
    );
    put.yes("remcsum_tx", "remcsumtx", is_on(vxlan.remcsum_tx));
    put.yes("remcsum_rx", "remcsumrx", is_on(vxlan.remcsum_rx));
    put.yes("gbp", "gbp", vxlan.gbp);
    put.yes("gpe", "gpe", vxlan.gpe);
}

/// The bit of IPv4 (`VXLAN_DF_…`, `GENEVE_DF_…`, `linux/if_link.h`).
pub(super) fn dont_fragment<V: Visit>(put: &mut Put<'_, '_, V>, df: Option<u8>) {
    match df {
        Some(0) => put.field("df", Value::Text("unset")),
        df => put.named("df", "df", &["", "set", "inherit"], df),
    }
}

fn ends<V: Visit>(vxlan: &Vxlan, put: &mut Put<'_, '_, V>) {
    let group = vxlan.group.filter(|group| !group.is_unspecified());
    let (key, word) = match group {
        Some(group) if group.is_multicast() && group.is_ipv6() => ("group6", "group"),
        Some(group) if group.is_multicast() => ("group", "group"),
        Some(group) if group.is_ipv6() => ("remote6", "remote"),
        _ => ("remote", "remote"),
    };
    put.address(key, word, group);
    let local = vxlan.local.filter(|local| !local.is_unspecified());
    let is_ipv6 = local.is_some_and(|local| local.is_ipv6());
    put.address(if is_ipv6 { "local6" } else { "local" }, "local", local);
}

fn ports<V: Visit>(vxlan: &Vxlan, put: &mut Put<'_, '_, V>) {
    if let Some((low, high)) = vxlan.port_range {
        put.object("port_range");
        put.field("low", Value::Number(low.into()));
        put.field("high", Value::Number(high.into()));
        put.end_object();
        put.say("srcport", Value::Text(&format!("{low} {high}")));
    }
    put.number("port", "dstport", vxlan.port);
}

/// Checksums of UDP: over IPv4; none over IPv6 to be sent, or taken.
pub(super) fn checksums<V: Visit>(put: &mut Put<'_, '_, V>, [v4, tx, rx]: [Option<u8>; 3]) {
    put.either("udp_csum", ("udpcsum", "noudpcsum"), v4);
    put.either(
        "udp_zero_csum6_tx",
        ("udp6zerocsumtx", "noudp6zerocsumtx"),
        tx,
    );
    put.either(
        "udp_zero_csum6_rx",
        ("udp6zerocsumrx", "noudp6zerocsumrx"),
        rx,
    );
}
