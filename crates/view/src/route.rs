//! Routes as `ip route` shows them.

use std::net::IpAddr;

use ipnet::IpNet;
use table::row::route::{flag, hop_flag, kind, protocol, scope, table_id};
use table::{AF_INET, AF_INET6, NextHop, NextHops, Route, RouteBody};

use crate::colour::{Colour, coloured};
use crate::column::Column;
use crate::context::View;
use crate::fields::{Value, Visit, push_name, push_plain};
use crate::format::{push_address, push_destination, push_u64};
use crate::nexthop::body_text;
use crate::printer::Show;
pub(crate) use crate::route_encap::{encap_fields, encap_text};
use crate::route_metrics::{metric_fields, metric_text};
use crate::route_path::{path_fields, path_text};
use words::Name;

/// The columns of a route.
pub(crate) const COLUMNS: &[Column] = &[
    Column::text("type"),
    Column::prefix("dst"),
    Column::any("from"),
    Column::number("nhid"),
    Column::any("encap"),
    Column::any("tos"),
    Column::address("gateway"),
    Column::any("via.family"),
    Column::address("via.host"),
    Column::text("dev"),
    Column::text("table"),
    Column::text("protocol"),
    Column::text("scope"),
    Column::address("prefsrc"),
    Column::number("metric"),
    Column::list("flags"),
    Column::any("mark").rare(),
    Column::any("flow.from"),
    Column::any("flow.to"),
    Column::any("uid").rare(),
    Column::list("cache").rare(),
    Column::any("iif").rare(),
    Column::prefix("match").rare(),
    Column::text("source").rare(),
    Column::list("not_applied").rare(),
    Column::number("metrics.mtu"),
    Column::any("metrics.window"),
    Column::any("metrics.rtt"),
    Column::any("metrics.rttvar"),
    Column::any("metrics.ssthresh"),
    Column::any("metrics.cwnd"),
    Column::any("metrics.advmss"),
    Column::any("metrics.reordering"),
    Column::any("metrics.hoplimit"),
    Column::any("metrics.initcwnd"),
    Column::any("metrics.rto_min"),
    Column::any("metrics.initrwnd"),
    Column::any("metrics.quickack"),
    Column::any("metrics.congestion"),
    Column::any("metrics.fastopen_no_cookie"),
    Column::list("metrics.locked").rare(),
    Column::number("expires"),
    Column::number("error"),
    Column::text("pref"),
    Column::row("nh_info").rare(),
    Column::number("path_id").rare(),
    Column::list("as_path"),
    Column::number("origin_as"),
    Column::text("origin"),
    Column::number("local_pref"),
    Column::number("med"),
    Column::list("communities"),
    Column::list("large_communities"),
    Column::list("extended_communities"),
    Column::any("nexthops.encap"),
    Column::address("nexthops.gateway"),
    Column::any("nexthops.via.family"),
    Column::address("nexthops.via.host"),
    Column::any("nexthops.flow.from"),
    Column::any("nexthops.flow.to"),
    Column::text("nexthops.dev"),
    Column::number("nexthops.weight"),
    Column::list("nexthops.flags"),
];

/// Types of routes by number.
pub(crate) const KINDS: [&str; 12] = [
    "none",
    "unicast",
    "local",
    "broadcast",
    "anycast",
    "multicast",
    "blackhole",
    "unreachable",
    "prohibit",
    "throw",
    "nat",
    "xresolve",
];

/// The name of a type of routes, or its number where these are wanted.
pub(crate) fn kind_name(number: u8, view: &View<'_>) -> Value<'static> {
    KINDS
        .get(usize::from(number))
        .filter(|_| !view.numeric)
        .map_or(Value::Name(Name::Number(number.into())), |name| {
            Value::Text(name)
        })
}

/// In the order in which `ip` names them.
const FLAGS: [(u32, &str); 11] = [
    (hop_flag::DEAD, "dead"),
    (hop_flag::ONLINK, "onlink"),
    (hop_flag::PERVASIVE, "pervasive"),
    (hop_flag::OFFLOAD, "offload"),
    (hop_flag::TRAP, "trap"),
    (flag::NOTIFY, "notify"),
    (hop_flag::LINKDOWN, "linkdown"),
    (hop_flag::UNRESOLVED, "unresolved"),
    (flag::OFFLOAD, "rt_offload"),
    (flag::TRAP, "rt_trap"),
    (flag::OFFLOAD_FAILED, "rt_offload_failed"),
];

/// The flags of a next hop that follow from the state of its link:
/// `DEAD` and `LINKDOWN` when it is down, `LINKDOWN` without a carrier
/// (the kernel's `fib_sync_down_dev` and `rt6_sync_down_dev`), and `DEAD`
/// as well where routes without a carrier are ignored (`fib_nexthop_info`).
#[inline]
pub(crate) fn derived_flags(link: u32, family: u8, view: &View<'_>) -> u32 {
    match view.link(link) {
        Some(link) if !link.is_up() => hop_flag::DEAD | hop_flag::LINKDOWN,
        Some(link) if !link.has_carrier() && link.ignores_linkdown(family) => {
            hop_flag::DEAD | hop_flag::LINKDOWN
        }
        Some(link) if !link.has_carrier() => hop_flag::LINKDOWN,
        _ => 0,
    }
}

/// The family of a route whose next hops the kernel marks by the state of
/// their links. It does not for the host's own addresses: IPv4 next hops of
/// scope "nowhere", IPv6 local and anycast routes.
#[inline]
fn follows_links(prefix: IpNet, body: &RouteBody) -> Option<u8> {
    match prefix {
        // Nor what an object refuses: that is over the loopback.
        IpNet::V4(_) if body.kind == kind::BLACKHOLE && body.nexthop_id.is_some() => None,
        IpNet::V4(_) if body.scope < scope::HOST && body.kind != kind::LOCAL => Some(AF_INET),
        IpNet::V6(_) if !matches!(body.kind, kind::LOCAL | kind::ANYCAST) && !is_reject(body) => {
            Some(AF_INET6)
        }
        _ => None,
    }
}

/// The family of a prefix.
pub(crate) fn family_of(prefix: IpNet) -> u8 {
    match prefix {
        IpNet::V4(_) => AF_INET,
        IpNet::V6(_) => AF_INET6,
    }
}

/// A route that refuses.
pub(crate) fn is_reject(body: &RouteBody) -> bool {
    matches!(
        body.kind,
        kind::BLACKHOLE | kind::UNREACHABLE | kind::PROHIBIT | kind::THROW
    )
}

/// The flags of a next hop: those of the row, which has `DEAD` only where
/// it does not follow from the link, and those that follow.
#[inline]
fn hop_flags(hop: &NextHop, follows: Option<u8>, view: &View<'_>) -> u32 {
    hop.flags
        | match follows {
            // An IPv6 hop dies with both marks (`fib6_ifdown`).
            Some(AF_INET6) if hop.flags & hop_flag::DEAD != 0 => hop_flag::LINKDOWN,
            _ if hop.flags & hop_flag::UNMARKED != 0 => 0,
            Some(family) if hop.link != 0 => derived_flags(hop.link, family, view),
            _ => 0,
        }
}

/// The flags of the route itself: of its only next hop; for IPv4 what all
/// of several share (the kernel's `fib_flags`), but for next-hop objects.
#[inline]
fn route_flags(body: &RouteBody, prefix: IpNet, follows: Option<u8>, view: &View<'_>) -> u32 {
    body.flags
        | match (&body.next_hops, prefix) {
            (NextHops::One(hop), _) => hop_flags(hop, follows, view),
            (NextHops::None, _) | (_, IpNet::V6(_)) => 0,
            (NextHops::Many(hops), IpNet::V4(_))
                if follows.is_some() && body.nexthop_id.is_none() =>
            {
                hops.iter()
                    .map(|hop| hop_flags(hop, follows, view))
                    .fold(hop_flag::DEAD | hop_flag::LINKDOWN, |all, of| all & of)
            }
            _ => 0,
        }
}

/// The next hop that stands in the route itself, and in no list.
fn only_hop(body: &RouteBody) -> Option<&NextHop> {
    match &body.next_hops {
        NextHops::One(hop) => Some(hop),
        NextHops::None | NextHops::Many(_) => None,
    }
}

#[inline]
pub(crate) fn flag_fields(flags: u32, visit: &mut impl Visit) {
    visit.list("flags");
    if flags != 0 {
        for (bit, name) in FLAGS {
            if flags & bit != 0 {
                visit.item(Value::Text(name));
            }
        }
    }
    visit.end_list();
}

#[inline]
pub(crate) fn flag_text(flags: u32, out: &mut Vec<u8>) {
    if flags == 0 {
        return;
    }
    for (bit, name) in FLAGS {
        if flags & bit != 0 {
            out.extend_from_slice(name.as_bytes());
            out.push(b' ');
        }
    }
}

/// `RTA_GATEWAY` of the route's own family, else `RTA_VIA`.
#[inline]
pub(crate) fn gateway_fields(gateway: Option<IpAddr>, prefix: IpNet, visit: &mut impl Visit) {
    match gateway {
        None => {}
        Some(gateway) if gateway.is_ipv4() == prefix.addr().is_ipv4() => {
            visit.value("gateway", Value::Address(gateway));
        }
        Some(gateway) => {
            visit.object("via");
            visit.value("family", Value::Text(family_name(gateway)));
            visit.value("host", Value::Address(gateway));
            visit.end_object();
        }
    }
}

#[inline]
pub(crate) fn gateway_text(
    gateway: Option<IpAddr>,
    prefix: IpNet,
    view: &View<'_>,
    out: &mut Vec<u8>,
) {
    let Some(gateway) = gateway else {
        return;
    };
    out.extend_from_slice(b"via ");
    if gateway.is_ipv4() != prefix.addr().is_ipv4() {
        out.extend_from_slice(family_name(gateway).as_bytes());
        out.push(b' ');
    }
    coloured(view, Colour::of_address(gateway), out, |out| {
        push_address(out, gateway);
        out.push(b' ');
    });
}

/// The link that a route leads over.
#[inline]
pub(crate) fn device_text(link: u32, view: &View<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"dev ");
    coloured(view, Colour::Link, out, |out| {
        labelled(out, b"", Value::Name(view.device(link)));
    });
}

/// The source that packets over a route have.
#[inline]
pub(crate) fn source_text(source: IpAddr, view: &View<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"src ");
    coloured(view, Colour::of_address(source), out, |out| {
        labelled(out, b"", Value::Address(source));
    });
}

fn family_name(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "inet" } else { "inet6" }
}

/// Realms: the source's in the upper half, if any.
pub(crate) fn flow_fields(realms: u32, view: &View<'_>, visit: &mut impl Visit) {
    if realms == 0 {
        return;
    }
    visit.object("flow");
    if realms >> 16 != 0 {
        visit.value("from", Value::Name(view.names.realm(realms >> 16)));
    }
    visit.value("to", Value::Name(view.names.realm(realms & 0xffff)));
    visit.end_object();
}

pub(crate) fn flow_text(realms: u32, view: &View<'_>, out: &mut Vec<u8>) {
    if realms == 0 {
        return;
    }
    if realms >> 16 != 0 {
        out.extend_from_slice(b"realms ");
        push_name(out, view.names.realm(realms >> 16));
        out.push(b'/');
    } else {
        out.extend_from_slice(b"realm ");
    }
    push_name(out, view.names.realm(realms & 0xffff));
    out.push(b' ');
}

/// Router preference (RFC 4191).
pub(crate) fn preference(number: u8) -> Value<'static> {
    match number {
        0 => Value::Text("medium"),
        1 => Value::Text("high"),
        3 => Value::Text("low"),
        other => Value::Number(other.into()),
    }
}

/// Which of the parts that have defaults are shown.
struct Shown {
    kind: bool,
    table: bool,
    protocol: bool,
    scope: bool,
    metric: bool,
}

#[inline]
fn shown(row: &Route<&RouteBody>, view: &View<'_>) -> Shown {
    let body = row.body;
    let hidden = &view.hidden;
    let details = view.details;
    Shown {
        kind: body.kind != kind::UNICAST || details,
        table: row.table != 0 && (row.table != table_id::MAIN || details) && !hidden.table,
        protocol: (body.protocol != protocol::BOOT || details) && !hidden.protocol,
        scope: (body.scope != scope::UNIVERSE || details) && !hidden.scope,
        // The kernel sends the metric of every IPv6 route, even 0.
        metric: (row.metric != 0 || row.prefix.addr().is_ipv6()) && !hidden.metric,
    }
}

impl Show for Route<&RouteBody> {
    #[inline]
    fn fields(&self, view: &View<'_>, visit: &mut impl Visit) {
        let body = self.body;
        let shown = shown(self, view);
        let follows = follows_links(self.prefix, body);
        if shown.kind {
            visit.value("type", kind_name(body.kind, view));
        }
        visit.value("dst", Value::Destination(self.prefix));
        if let Some(source) = body.source {
            visit.value("from", Value::Destination(source.into()));
        }
        if let Some(nexthop) = body.nexthop_id {
            visit.value("nhid", Value::Number(nexthop.into()));
        }
        let hops = body.next_hops.as_slice();
        let only = only_hop(body);
        encap_fields(only.and_then(|hop| hop.encap.as_deref()), view, visit);
        if self.tos != 0 {
            visit.value("tos", Value::Name(view.names.ds_field(self.tos)));
        }
        if let Some(hop) = only {
            if !view.hidden.gateway {
                gateway_fields(hop.gateway, self.prefix, visit);
            }
            if !view.hidden.dev && hop.link != 0 {
                visit.value("dev", Value::Name(view.device(hop.link)));
            }
        }
        if shown.table {
            visit.value("table", Value::Name(view.names.table(self.table)));
        }
        if shown.protocol {
            visit.value("protocol", Value::Name(view.names.protocol(body.protocol)));
        }
        if shown.scope {
            visit.value("scope", Value::Name(view.names.scope(body.scope)));
        }
        if let Some(source) = body.preferred_source.filter(|_| !view.hidden.source) {
            visit.value("prefsrc", Value::Address(source));
        }
        if shown.metric {
            visit.value("metric", Value::Number(self.metric.into()));
        }
        flag_fields(route_flags(body, self.prefix, follows, view), visit);
        flow_fields(only.map_or(0, |hop| hop.realms), view, visit);
        metric_fields(body.metrics.as_deref(), view, visit);
        if let Some(at) = body.expires_at_millis {
            visit.value("expires", Value::Number(view.secs_until(at)));
        }
        if body.error != 0 {
            visit.value("error", Value::Signed(body.error.into()));
        }
        if let Some(number) = body.preference {
            visit.value("pref", preference(number));
        }
        path_fields(&body.path, visit);
        if let Some(object) = view.object_of(body) {
            visit.object("nh_info");
            object.fields(view, visit);
            visit.end_object();
        }
        if matches!(body.next_hops, NextHops::Many(_)) {
            visit.list("nexthops");
            for hop in hops {
                visit.object_item();
                hop_fields(hop, self.prefix, follows, view, visit);
                visit.end_item();
            }
            visit.end_list();
        }
    }

    #[inline]
    fn text(&self, view: &View<'_>, out: &mut Vec<u8>) {
        let body = self.body;
        let shown = shown(self, view);
        let follows = follows_links(self.prefix, body);
        if shown.kind {
            push_plain(out, kind_name(body.kind, view));
            out.push(b' ');
        }
        let is_default = self.prefix.prefix_len() == 0;
        let colour = (!is_default).then(|| Colour::of_address(self.prefix.addr()));
        coloured(view, colour, out, |out| {
            push_destination(out, self.prefix);
            out.push(b' ');
        });
        if let Some(source) = body.source {
            coloured(view, Colour::Inet6, out, |out| {
                labelled(out, b"from ", Value::Destination(source.into()));
            });
        }
        if let Some(nexthop) = body.nexthop_id {
            labelled(out, b"nhid ", Value::Number(nexthop.into()));
        }
        let hops = body.next_hops.as_slice();
        let only = only_hop(body);
        encap_text(only.and_then(|hop| hop.encap.as_deref()), view, out);
        if self.tos != 0 {
            labelled(out, b"tos ", Value::Name(view.names.ds_field(self.tos)));
        }
        if let Some(hop) = only {
            if !view.hidden.gateway {
                gateway_text(hop.gateway, self.prefix, view, out);
            }
            if !view.hidden.dev && hop.link != 0 {
                device_text(hop.link, view, out);
            }
        }
        if shown.table {
            labelled(out, b"table ", Value::Name(view.names.table(self.table)));
        }
        if shown.protocol {
            let name = view.names.protocol(body.protocol);
            labelled(out, b"proto ", Value::Name(name));
        }
        if shown.scope {
            labelled(out, b"scope ", Value::Name(view.names.scope(body.scope)));
        }
        if let Some(source) = body.preferred_source.filter(|_| !view.hidden.source) {
            source_text(source, view, out);
        }
        if shown.metric {
            labelled(out, b"metric ", Value::Number(self.metric.into()));
        }
        flag_text(route_flags(body, self.prefix, follows, view), out);
        flow_text(only.map_or(0, |hop| hop.realms), view, out);
        metric_text(body.metrics.as_deref(), out);
        tail_text(body, view, out);
        if let Some(object) = view.object_of(body) {
            out.extend_from_slice(b"\n\tnh_info ");
            body_text(object, view, out);
        }
        if matches!(body.next_hops, NextHops::Many(_)) {
            for hop in hops {
                out.push(view.line_break());
                hop_text(hop, self.prefix, follows, view, out);
            }
        }
        out.push(b'\n');
    }
}

#[inline]
pub(crate) fn labelled(out: &mut Vec<u8>, label: &[u8], value: Value<'_>) {
    out.extend_from_slice(label);
    push_plain(out, value);
    out.push(b' ');
}

fn tail_text(body: &RouteBody, view: &View<'_>, out: &mut Vec<u8>) {
    if let Some(at) = body.expires_at_millis {
        out.extend_from_slice(b"expires ");
        push_u64(out, view.secs_until(at));
        out.extend_from_slice(b"sec ");
    }
    if body.error != 0 {
        labelled(out, b"error ", Value::Signed(body.error.into()));
    }
    if let Some(number) = body.preference {
        out.extend_from_slice(b"pref ");
        push_plain(out, preference(number));
        if !body.path.is_empty() {
            out.push(b' ');
        }
    }
    path_text(&body.path, out);
}

pub(crate) fn hop_fields(
    hop: &NextHop,
    prefix: IpNet,
    follows: Option<u8>,
    view: &View<'_>,
    visit: &mut impl Visit,
) {
    encap_fields(hop.encap.as_deref(), view, visit);
    gateway_fields(hop.gateway, prefix, visit);
    flow_fields(hop.realms, view, visit);
    if hop.link != 0 {
        visit.value("dev", Value::Name(view.device(hop.link)));
    }
    visit.value("weight", Value::Number(hop.weight.into()));
    flag_fields(hop_flags(hop, follows, view), visit);
}

pub(crate) fn hop_text(
    hop: &NextHop,
    prefix: IpNet,
    follows: Option<u8>,
    view: &View<'_>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"\tnexthop ");
    encap_text(hop.encap.as_deref(), view, out);
    gateway_text(hop.gateway, prefix, view, out);
    flow_text(hop.realms, view, out);
    if hop.link != 0 {
        labelled(out, b"dev ", Value::Name(view.device(hop.link)));
    }
    labelled(out, b"weight ", Value::Number(hop.weight.into()));
    flag_text(hop_flags(hop, follows, view), out);
}

#[cfg(test)]
mod tests;
