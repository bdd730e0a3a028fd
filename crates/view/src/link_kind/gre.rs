//! GRE and ERSPAN, over IPv4 and IPv6.

use table::row::link::gre::{Gre, bit};

use super::ip_tunnel::{encap, ipv6_header, ipv6_local, key_of, mark};
use super::put::{Put, tos, ttl};
use crate::fields::Visit;

pub(super) fn show<V: Visit>(gre: &Gre, over_ipv6: bool, put: &mut Put<'_, '_, V>) {
    put.yes("external", "external", gre.collect_metadata);
    put.end_point("remote", gre.remote);
    put.end_point("local", gre.local);
    put.device("link", "dev", gre.link);
    let flags = gre.flags.unwrap_or(0);
    let hops = gre.ttl.unwrap_or(0);
    if over_ipv6 {
        ttl(put, "hoplimit", hops, "inherit");
        ipv6_header(put, flags, gre.encap_limit, gre.flowinfo);
    } else {
        ttl(put, "ttl", hops, "inherit");
        tos(put, gre.tos);
        put.either("pmtudisc", ("", "nopmtudisc"), gre.pmtudisc);
        let ignores = gre.ignore_df.is_some_and(|on| on != 0);
        put.yes("ignore_df", "ignore-df", ignores);
    }
    options(gre, put);
    match over_ipv6 {
        true => ipv6_local(put, flags, gre.fwmark),
        false => mark(put, gre.fwmark),
    }
    erspan(gre, put);
    encap(put, &gre.encap);
}

/// What the header has (RFC 2890): keys, sequence numbers, checksums.
fn options<V: Visit>(gre: &Gre, put: &mut Put<'_, '_, V>) {
    let (incoming, outgoing) = (gre.iflags.unwrap_or(0), gre.oflags.unwrap_or(0));
    let keys = [("ikey", incoming, gre.ikey), ("okey", outgoing, gre.okey)];
    for (name, flags, key) in keys {
        if let Some(key) = key.filter(|_| flags & bit::KEY != 0) {
            key_of(put, name, key);
        }
    }
    let bits = [
        ("iseq", incoming & bit::SEQ),
        ("oseq", outgoing & bit::SEQ),
        ("icsum", incoming & bit::CSUM),
        ("ocsum", outgoing & bit::CSUM),
    ];
    for (key, bit) in bits {
        put.yes(key, key, bit != 0);
    }
}

fn erspan<V: Visit>(gre: &Gre, put: &mut Put<'_, '_, V>) {
    put.number("erspan_index", "erspan_index", gre.erspan_index);
    put.number("erspan_ver", "erspan_ver", gre.erspan_ver);
    let direction = gre.erspan_dir.map(|dir| match dir {
        0 => "ingress",
        _ => "egress",
    });
    put.word("erspan_dir", "erspan_dir", direction);
    put.hex("erspan_hwid", "erspan_hwid", gre.erspan_hwid);
}
