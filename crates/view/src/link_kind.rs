//! What `ip -d link` tells of a link's own kind, and of a port of its
//! master: one small file a kind, each a list of settings in the order of
//! `ip`, told to a [`Put`] that writes fields or text. For `link` alone.

mod bond;
pub(crate) mod bridge;
mod columns;
mod geneve;
mod gre;
mod hsr;
mod ip_tunnel;
mod macvlan;
pub(crate) mod put;
mod tun;
mod vlan;
mod vxlan;

use table::row::link::ipvlan::Ipvlan;
use table::row::link::vrf::Vrf;
use table::row::link::xfrm::Xfrm;
use table::{KindData, Link, PortData};

use crate::context::View;
use crate::fields::{Json, Visit};
pub(crate) use columns::COLUMNS;
use put::Put;

/// The settings of a link's kind as `info_data`.
pub(crate) fn fields(link: &Link, view: &View<'_>, visit: &mut impl Visit) {
    if has_settings(link.kind.as_deref().unwrap_or_default()) {
        visit.object("info_data");
        show(link, &mut Put::fields(visit, view));
        visit.end_object();
    }
}

/// The settings of a link's kind, each with a space behind it.
pub(crate) fn text(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    show(link, &mut Put::<Json<'_>>::text(out, view));
}

/// The settings of a port as `info_slave_data`.
pub(crate) fn port_fields(link: &Link, view: &View<'_>, visit: &mut impl Visit) {
    if let Some("bond" | "bridge" | "vrf") = link.slave_kind.as_deref() {
        visit.object("info_slave_data");
        show_port(link, &mut Put::fields(visit, view));
        visit.end_object();
    }
}

/// The settings of a port, each with a space behind it.
pub(crate) fn port_text(link: &Link, view: &View<'_>, out: &mut Vec<u8>) {
    show_port(link, &mut Put::<Json<'_>>::text(out, view));
}

/// Whether `info_data` is shown, if only empty.
fn has_settings(kind: &str) -> bool {
    SHOWN.contains(&kind)
}

/// Kinds of whose settings `ip` has something to tell.
const SHOWN: &[&str] = &[
    "bond",
    "bridge",
    "erspan",
    "geneve",
    "gre",
    "gretap",
    "hsr",
    "ip6erspan",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "ipvlan",
    "ipvtap",
    "macvlan",
    "macvtap",
    "sit",
    "tun",
    "vlan",
    "vrf",
    "vti",
    "vti6",
    "vxlan",
    "xfrm",
];

fn show<V: Visit>(link: &Link, put: &mut Put<'_, '_, V>) {
    let kind = link.kind.as_deref().unwrap_or_default();
    match &link.kind_data {
        KindData::None | KindData::Unknown(_) => {}
        KindData::Bond(data) => bond::show(data, put),
        KindData::Bridge(data) => bridge::show(data, link.index, put),
        KindData::Geneve(data) => geneve::show(data, put),
        KindData::Gre(data) => gre::show(data, kind.starts_with("ip6"), put),
        KindData::Hsr(data) => hsr::show(data, put),
        KindData::IpTunnel(data) if kind == "ip6tnl" => ip_tunnel::show_over_ipv6(data, put),
        KindData::IpTunnel(data) => ip_tunnel::show(data, put),
        KindData::Ipvlan(data) => ipvlan(data, put),
        KindData::Macvlan(data) => macvlan::show(data, put),
        KindData::Tun(data) => tun::show(data, put),
        KindData::Vlan(data) => vlan::show(data, put),
        KindData::Vrf(data) => vrf(data, put),
        KindData::Vti(data) => ip_tunnel::show_vti(data, put),
        KindData::Vxlan(data) => vxlan::show(data, put),
        KindData::Xfrm(data) => xfrm(data, put),
    }
}

fn show_port<V: Visit>(link: &Link, put: &mut Put<'_, '_, V>) {
    match &link.slave_data {
        PortData::None | PortData::Unknown(_) => {}
        PortData::Bond(data) => bond::show_port(data, put),
        PortData::Bridge(data) => bridge::show_port(data, link.index, put),
        PortData::Vrf(data) => vrf(data, put),
    }
}

fn vrf<V: Visit>(data: &Vrf, put: &mut Put<'_, '_, V>) {
    put.number("table", "table", data.table);
}

fn ipvlan<V: Visit>(data: &Ipvlan, put: &mut Put<'_, '_, V>) {
    if data.mode.is_some() {
        put.raw(" ");
    }
    let mode = data.mode.map(|mode| match mode {
        0 => "l2",
        1 => "l3",
        2 => "l3s",
        _ => "unknown",
    });
    put.word("mode", "mode", mode);
    match data.flags {
        Some(flags) if flags & 1 != 0 => put.yes("private", "private", true),
        Some(flags) if flags & 2 != 0 => put.yes("vepa", "vepa", true),
        Some(_) => put.yes("bridge", "bridge", true),
        None => {}
    }
}

fn xfrm<V: Visit>(data: &Xfrm, put: &mut Put<'_, '_, V>) {
    if data.collect_metadata {
        put.yes("external", "external", true);
    } else {
        put.hex("if_id", "if_id", data.if_id);
    }
}
