//! [`Route`] to `struct rtmsg` and `RTA_…` (`linux/rtnetlink.h`).

use std::borrow::Borrow;
use std::net::IpAddr;

use ipnet::IpNet;
use table::row::route::{flag, hop_flag, kind as route_kind, table_id};
use table::{AF_INET, AF_INET6, NextHop, Route, RouteBody};

use super::Request;
use super::encap::put_encap;
use super::metrics::put_metrics;
use crate::attribute::{NESTED, attributes};
use crate::build::Build;
use crate::decode::Operation;
use crate::kernel::rta;
use crate::malformed::TooLong;
use crate::message::kind;

/// Told by the kernel, not to it.
const ONLY_TOLD: u32 = flag::OFFLOAD | flag::TRAP | flag::OFFLOAD_FAILED;

/// What a request may say of a next hop; the rest is told by the kernel.
const HOP_FLAGS: u32 = hop_flag::ONLINK | hop_flag::PERVASIVE;

/// `struct rtnexthop` counts hops from 0, in eight bits.
const MAX_WEIGHT: u16 = 256;

/// Appends `RTM_NEWROUTE` or `RTM_DELROUTE`. A route that uses a next-hop
/// object names it and no next hops (the kernel takes one or the other); an
/// expiry is sent in whole seconds; a weight is 256 at most.
pub fn route<B: Borrow<RouteBody>>(
    out: &mut Vec<u8>,
    request: &Request,
    row: &Route<B>,
) -> Result<(), TooLong> {
    put(out, request, row, 0)
}

/// Appends the `RTM_NEWROUTE` by which a forwarding plane tells a routing
/// daemon what became of a route of its: `RTM_F_OFFLOAD`, or
/// `RTM_F_OFFLOAD_FAILED`. The route is told whole, since the daemon takes
/// a next hop that is missing for one that is not forwarded to.
pub fn acknowledgement<B: Borrow<RouteBody>>(
    out: &mut Vec<u8>,
    row: &Route<B>,
    is_forwarded: bool,
) -> Result<(), TooLong> {
    let told = match is_forwarded {
        true => flag::OFFLOAD,
        false => flag::OFFLOAD_FAILED,
    };
    let request = Request {
        operation: Operation::New,
        flags: 0,
        sequence: 0,
        now_millis: 0,
    };
    put(out, &request, row, told)
}

/// `told` are flags beside the row's.
fn put<B: Borrow<RouteBody>>(
    out: &mut Vec<u8>,
    request: &Request,
    row: &Route<B>,
    told: u32,
) -> Result<(), TooLong> {
    let body = row.body.borrow();
    let hops = told_hops(body);
    let single = match hops {
        [hop] if hop.weight <= 1 => Some(hop),
        _ => None,
    };
    let header = header(row, body, single, told);
    let mut build = request.start(out, [kind::NEWROUTE, kind::DELROUTE], &header);
    if row.prefix.prefix_len() != 0 {
        build.put_address(rta::DST, row.prefix.network());
    }
    build.put_u32(rta::TABLE, row.table);
    if row.metric != 0 {
        build.put_u32(rta::PRIORITY, row.metric);
    }
    put_body(&mut build, request, body);
    match (single, hops) {
        (Some(hop), _) => {
            if hop.link != 0 {
                build.put_u32(rta::OIF, hop.link);
            }
            put_hop(&mut build, hop, row.prefix);
        }
        (None, []) => {}
        (None, hops) => put_multipath(&mut build, hops, row.prefix),
    }
    build.append(body.rest.bytes());
    build.end()
}

/// The next hops to send: none beside a next-hop object, nor beside a
/// `RTA_MULTIPATH` that was kept raw because it holds more than fields do.
fn told_hops(body: &RouteBody) -> &[NextHop] {
    let raw = attributes(body.rest.bytes())
        .flatten()
        .any(|(kind, _)| kind == rta::MULTIPATH);
    if raw || body.nexthop_id.is_some() {
        return &[];
    }
    body.next_hops.as_slice()
}

fn header<B>(row: &Route<B>, body: &RouteBody, single: Option<&NextHop>, told: u32) -> [u8; 12] {
    let family = match row.prefix {
        IpNet::V4(_) => AF_INET,
        IpNet::V6(_) => AF_INET6,
    };
    let src_len = body.source.map_or(0, |source| source.prefix_len());
    // RTA_TABLE says it; the byte cannot, above 255.
    let table = u8::try_from(row.table).unwrap_or(table_id::UNSPEC as u8);
    let hop_flags = single.map_or(0, |hop| hop.flags & HOP_FLAGS);
    let [f0, f1, f2, f3] = (body.flags & !ONLY_TOLD | hop_flags | told).to_ne_bytes();
    [
        family,
        row.prefix.prefix_len(),
        src_len,
        row.tos,
        table,
        body.protocol,
        body.scope,
        told_kind(body),
        f0,
        f1,
        f2,
        f3,
    ]
}

/// A route that uses a blackhole object is told as a blackhole, but it was
/// made, and is found, as a unicast one.
fn told_kind(body: &RouteBody) -> u8 {
    match body.kind {
        route_kind::BLACKHOLE if body.nexthop_id.is_some() => route_kind::UNICAST,
        other => other,
    }
}

fn put_body(build: &mut Build<'_>, request: &Request, body: &RouteBody) {
    if let Some(source) = body.preferred_source {
        build.put_address(rta::PREFSRC, source);
    }
    if let Some(source) = body.source {
        build.put_address(rta::SRC, source.network().into());
    }
    if let Some(id) = body.nexthop_id {
        build.put_u32(rta::NH_ID, id);
    }
    if let Some(metrics) = &body.metrics {
        put_metrics(build, metrics);
    }
    if let Some(preference) = body.preference {
        build.put_u8(rta::PREF, preference);
    }
    if let Some(until) = body.expires_at_millis {
        build.put_u32(rta::EXPIRES, request.remaining_secs(until));
    }
}

/// All of a next hop but its link, flags and weight.
fn put_hop(build: &mut Build<'_>, hop: &NextHop, prefix: IpNet) {
    match (hop.gateway, prefix) {
        (Some(gateway @ IpAddr::V4(_)), IpNet::V4(_))
        | (Some(gateway @ IpAddr::V6(_)), IpNet::V6(_)) => build.put_address(rta::GATEWAY, gateway),
        (Some(gateway), _) => put_via(build, gateway),
        (None, _) => {}
    }
    if hop.realms != 0 {
        build.put_u32(rta::FLOW, hop.realms);
    }
    if let Some(encap) = &hop.encap {
        put_encap(build, rta::ENCAP, rta::ENCAP_TYPE, encap);
    }
}

/// `struct rtvia`: a gateway of another family than the route's.
fn put_via(build: &mut Build<'_>, gateway: IpAddr) {
    let via = build.open(rta::VIA);
    match gateway {
        IpAddr::V4(v4) => {
            build.append(&u16::from(AF_INET).to_ne_bytes());
            build.append(&v4.octets());
        }
        IpAddr::V6(v6) => {
            build.append(&u16::from(AF_INET6).to_ne_bytes());
            build.append(&v6.octets());
        }
    }
    build.close(&via);
}

fn put_multipath(build: &mut Build<'_>, hops: &[NextHop], prefix: IpNet) {
    let multipath = build.open(rta::MULTIPATH | NESTED);
    for hop in hops {
        let flags = (hop.flags & HOP_FLAGS) as u8;
        let weight = hop.weight.clamp(1, MAX_WEIGHT) - 1;
        let open = build.open_hop(flags, weight as u8, hop.link);
        put_hop(build, hop, prefix);
        build.close(&open);
    }
    build.close(&multipath);
}
