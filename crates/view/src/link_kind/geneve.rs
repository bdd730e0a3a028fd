//! Geneve.

use std::net::IpAddr;

use table::row::link::geneve::Geneve;

use super::put::{Put, tos, ttl};
use super::vxlan::{checksums, dont_fragment};
use crate::fields::{Value, Visit};

pub(super) fn show<V: Visit>(geneve: &Geneve, put: &mut Put<'_, '_, V>) {
    put.yes("external", "external", geneve.collect_metadata);
    put.number("id", "id", geneve.id);
    let is_group = |remote: &IpAddr| remote.is_ipv6() && remote.is_multicast();
    let is_shown = |remote: &IpAddr| !(remote.is_unspecified() || is_group(remote));
    let remote = geneve.remote.filter(is_shown);
    let key = match remote {
        Some(remote) if remote.is_ipv6() => "remote6",
        _ => "remote",
    };
    put.address(key, "remote", remote);
    let inherits = geneve.ttl_inherit.is_some_and(|on| on != 0);
    match geneve.ttl {
        _ if inherits => put.say("ttl", Value::Text("inherit")),
        Some(number) => ttl(put, "ttl", number, "auto"),
        None => {}
    }
    tos(put, geneve.tos);
    dont_fragment(put, geneve.df);
    put.hex(
        "label",
        "flowlabel",
        geneve.label.filter(|label| *label != 0),
    );
    put.number("port", "dstport", geneve.port);
    checksums(
        put,
        [
            geneve.udp_csum,
            geneve.udp_zero_csum6_tx,
            geneve.udp_zero_csum6_rx,
        ],
    );
    put.yes(
        "inner_proto_inherit",
        "innerprotoinherit",
        geneve.inner_proto_inherit,
    );
}
