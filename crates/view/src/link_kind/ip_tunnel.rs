//! Tunnels of IP in IP: over IPv4, over IPv6, and those of IPsec.

use table::row::link::ip_tunnel::{IpTunnel, TunnelEncap, flag};
use table::row::link::vti::Vti;

use super::put::{Put, tos, ttl};
use crate::fields::{Value, Visit};

/// `SIT_ISATAP`, `linux/if_tunnel.h`.
const ISATAP: u16 = 1;

pub(super) fn show<V: Visit>(tunnel: &IpTunnel, put: &mut Put<'_, '_, V>) {
    put.yes("external", "external", tunnel.collect_metadata);
    protocol(put, ["ipip", "ip6ip", "mplsip"], tunnel.proto);
    put.end_point("remote", tunnel.remote);
    put.end_point("local", tunnel.local);
    put.device("link", "dev", tunnel.link);
    ttl(put, "ttl", tunnel.ttl.unwrap_or(0), "inherit");
    tos(put, tunnel.tos);
    let pmtudisc = tunnel.pmtudisc.unwrap_or(0);
    put.either("pmtudisc", ("pmtudisc", "nopmtudisc"), Some(pmtudisc));
    let flags = tunnel.sit_flags.unwrap_or(0);
    put.yes("isatap", "isatap", flags & ISATAP != 0);
    rapid_deployment(tunnel, put);
    mark(put, tunnel.fwmark);
    encap(put, &tunnel.encap);
}

/// IPv6 Rapid Deployment (RFC 5969).
fn rapid_deployment<V: Visit>(tunnel: &IpTunnel, put: &mut Put<'_, '_, V>) {
    let (Some(prefix), Some(len @ 1..)) = (tunnel.six_rd_prefix, tunnel.six_rd_prefixlen) else {
        return;
    };
    put.field("prefix", Value::Address(prefix.into()));
    put.field("prefixlen", Value::Number(len.into()));
    put.say("6rd-prefix", Value::Text(&format!("{prefix}/{len}")));
    let relay = tunnel.six_rd_relay_prefix;
    if let Some(relay) = relay.filter(|relay| !relay.is_unspecified()) {
        let len = tunnel.six_rd_relay_prefixlen.unwrap_or(0);
        put.field("relay_prefix", Value::Address(relay.into()));
        put.field("relay_prefixlen", Value::Number(len.into()));
        put.say("6rd-relay_prefix", Value::Text(&format!("{relay}/{len}")));
    }
}

pub(super) fn show_over_ipv6<V: Visit>(tunnel: &IpTunnel, put: &mut Put<'_, '_, V>) {
    put.yes("external", "external", tunnel.collect_metadata);
    protocol(put, ["ipip6", "ip6ip6", ""], tunnel.proto);
    put.end_point("remote", tunnel.remote);
    put.end_point("local", tunnel.local);
    put.device("link", "dev", tunnel.link);
    ttl(put, "hoplimit", tunnel.ttl.unwrap_or(0), "inherit");
    let flags = tunnel.flags.unwrap_or(0);
    ipv6_header(put, flags, tunnel.encap_limit, tunnel.flowinfo);
    put.yes("ip6_tnl_f_mip6_dev", "mip6", flags & flag::MIP6_DEV != 0);
    ipv6_local(put, flags, tunnel.fwmark);
    encap(put, &tunnel.encap);
}

pub(super) fn show_vti<V: Visit>(vti: &Vti, put: &mut Put<'_, '_, V>) {
    put.end_point("remote", vti.remote);
    put.end_point("local", vti.local);
    put.device("link", "dev", vti.link);
    for (name, key) in [("ikey", vti.ikey), ("okey", vti.okey)] {
        if let Some(key @ 1..) = key {
            key_of(put, name, key);
        }
    }
    mark(put, vti.fwmark);
}

/// A key, written as an IPv4 address.
pub(super) fn key_of<V: Visit>(put: &mut Put<'_, '_, V>, name: &'static str, key: u32) {
    let address = std::net::Ipv4Addr::from_bits(key);
    put.value(name, name, Value::Address(address.into()));
}

/// The protocol inside: IPv4, IPv6, MPLS, any.
fn protocol<V: Visit>(put: &mut Put<'_, '_, V>, names: [&str; 3], number: Option<u8>) {
    let [v4, v6, mpls] = names;
    let name = match number {
        Some(4) => v4,
        Some(41) => v6,
        Some(137) => mpls,
        Some(0) => "any",
        _ => "",
    };
    put.word("proto", "", Some(name).filter(|name| !name.is_empty()));
}

/// What of the IPv6 header around is taken from the packet inside, or set.
pub(super) fn ipv6_header<V: Visit>(
    put: &mut Put<'_, '_, V>,
    flags: u32,
    encap_limit: Option<u8>,
    flowinfo: Option<u32>,
) {
    let inherits = |bit: u32| flags & bit != 0;
    if inherits(flag::IGN_ENCAP_LIMIT) {
        put.yes("ip6_tnl_f_ign_encap_limit", "encaplimit none", true);
    } else {
        put.number("encap_limit", "encaplimit", encap_limit);
    }
    if inherits(flag::USE_ORIG_TCLASS) {
        put.yes("ip6_tnl_f_use_orig_tclass", "tclass inherit", true);
    } else if let Some(info) = flowinfo {
        let class = format!("{:#04x}", info >> 20 & 0xff);
        put.value("tclass", "tclass", Value::Text(&class));
    }
    if inherits(flag::USE_ORIG_FLOWLABEL) {
        put.yes("ip6_tnl_f_use_orig_flowlabel", "flowlabel inherit", true);
    } else if let Some(info) = flowinfo {
        let label = format!("{:#07x}", info & 0xf_ffff);
        put.value("flowlabel", "flowlabel", Value::Text(&label));
    }
    let copies = inherits(flag::RCV_DSCP_COPY);
    put.yes("ip6_tnl_f_rcv_dscp_copy", "dscp inherit", copies);
}

/// What concerns the machine alone.
pub(super) fn ipv6_local<V: Visit>(put: &mut Put<'_, '_, V>, flags: u32, fwmark: Option<u32>) {
    put.yes(
        "ip6_tnl_f_allow_local_remote",
        "allow-localremote",
        flags & flag::ALLOW_LOCAL_REMOTE != 0,
    );
    if flags & flag::USE_ORIG_FWMARK != 0 {
        put.yes("ip6_tnl_f_use_orig_fwmark", "fwmark inherit", true);
    } else {
        mark(put, fwmark);
    }
}

pub(super) fn mark<V: Visit>(put: &mut Put<'_, '_, V>, fwmark: Option<u32>) {
    put.hex("fwmark", "fwmark", fwmark.filter(|mark| *mark != 0));
}

/// `TUNNEL_ENCAP_FLAG_…`, `linux/if_tunnel.h`.
const ENCAP_FLAGS: [(u16, &str, &str, &str); 3] = [
    (1, "csum", "encap-csum", "noencap-csum"),
    (2, "csum6", "encap-csum6", "noencap-csum6"),
    (4, "remcsum", "encap-remcsum", "noencap-remcsum"),
];

/// UDP around the packets.
pub(super) fn encap<V: Visit>(put: &mut Put<'_, '_, V>, encap: &TunnelEncap) {
    let Some(kind @ 1..) = encap.kind else {
        return;
    };
    put.object("encap");
    put.raw("encap ");
    match kind {
        1 => put.value("type", "", Value::Text("fou")),
        2 => put.value("type", "", Value::Text("gue")),
        _ => {
            put.field("type", Value::Present);
            put.say_word("unknown");
        }
    }
    let sport = encap.sport.unwrap_or(0);
    put.field("sport", Value::Number(sport.into()));
    match sport {
        0 => put.say("encap-sport", Value::Text("auto")),
        sport => put.say("encap-sport", Value::Number(sport.into())),
    }
    put.number("dport", "encap-dport", encap.dport);
    let flags = encap.flags.unwrap_or(0);
    for (bit, key, on, off) in ENCAP_FLAGS {
        put.either(key, (on, off), Some(flags & bit));
    }
    put.end_object();
}
