//! What the tables say of a route.

use std::net::IpAddr;

use snmp::Value;
use table::row::route::kind;
use table::{NextHop, RouteBody, RouteRef};

use crate::interfaces::integer;

/// What a row of ipCidrRouteTable and of ipRouteTable says of discarding:
/// their types know no blackhole(5).
const REJECT: i32 = 2;
const BLACKHOLE: i32 = 5;

/// `inetCidrRouteType`: other(1), reject(2), local(3), remote(4),
/// blackhole(5).
pub(super) fn kind_of(body: &RouteBody, hop: Option<&NextHop>) -> i32 {
    match body.kind {
        kind::BLACKHOLE => BLACKHOLE,
        kind::UNREACHABLE | kind::PROHIBIT => REJECT,
        kind::THROW | kind::NAT | kind::UNSPEC => 1,
        _ if hop.is_some_and(|hop| hop.gateway.is_some()) => 4,
        _ => 3,
    }
}

/// The same of the older tables, where a blackhole rejects.
pub(super) fn old_kind_of(body: &RouteBody, hop: Option<&NextHop>) -> i32 {
    match kind_of(body, hop) {
        BLACKHOLE => REJECT,
        kind => kind,
    }
}

/// `IANAipRouteProtocol` of an `RTPROT_…` (`/etc/iproute2/rt_protos`). What
/// `ip route add` makes, boot or static, is netmgmt(3); daemons that speak
/// several protocols are other(1).
pub(super) fn protocol(body: &RouteBody) -> i32 {
    match body.protocol {
        // redirect, ra
        1 | 9 => 4,
        // kernel
        2 => 2,
        // boot, static
        3 | 4 => 3,
        // dhcp
        16 => 19,
        // mrouted
        17 => 17,
        // bgp, isis, ospf, rip, eigrp
        186 => 14,
        187 => 9,
        188 => 13,
        189 => 8,
        192 => 16,
        _ => 1,
    }
}

/// The same up to `highest`, where an older MIB ends; beyond: other(1).
pub(super) fn protocol_up_to(highest: i32, body: &RouteBody) -> Value<'static> {
    let protocol = protocol(body);
    Value::Integer(if protocol > highest { 1 } else { protocol })
}

/// `…RouteMetric1`.
pub(super) fn metric(route: &RouteRef<'_>) -> Value<'static> {
    integer(route.metric)
}

/// `…RouteMetric2` and so on: not used.
pub(super) const NO_METRIC: Value<'static> = Value::Integer(-1);

/// `…RouteIfIndex`.
pub(super) fn link(hop: Option<&NextHop>) -> Value<'static> {
    integer(hop.map_or(0, |hop| hop.link))
}

/// An IPv4 gateway; 0.0.0.0 where there is none, or one of IPv6.
pub(super) fn v4_gateway(hop: Option<&NextHop>) -> [u8; 4] {
    match hop.and_then(|hop| hop.gateway) {
        Some(IpAddr::V4(v4)) => v4.octets(),
        _ => [0; 4],
    }
}

/// The mask of an IPv4 prefix length.
pub(super) fn mask(len: u8) -> [u8; 4] {
    let host = u32::MAX.checked_shr(len.into()).unwrap_or(0);
    (!host).to_be_bytes()
}

/// `ipDefaultRouterPreference` of a default route: `RTA_PREF`'s values are
/// those of the two bits in a router advertisement (RFC 4191).
pub(crate) fn preference_of_default(body: &RouteBody) -> i32 {
    match body.preference {
        Some(1) => 1,
        Some(3) => -1,
        Some(2) => -2,
        _ => 0,
    }
}
