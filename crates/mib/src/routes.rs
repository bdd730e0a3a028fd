//! Routes: IP-FORWARD-MIB (RFC 4292, and RFC 2096's table) and RFC 1213's
//! ipRouteTable. The order of rows and which route wins where a table
//! cannot tell two apart: `docs/decisions/011-routes-as-snmp-rows.md`.

mod cidr;
mod hops;
mod inet;
mod oldest;
mod values;

use snmp::Value;

use crate::objects::Objects;

pub(crate) use cidr::CidrTable;
pub(crate) use inet::InetTable;
pub(crate) use oldest::RouteTable;
pub(crate) use values::preference_of_default;

/// `ipCidrRouteNumber` (3), `inetCidrRouteNumber` (6): the next hops of the
/// routes, which are the rows but for what ipCidrRouteTable cannot tell
/// apart. O(log tables).
pub(crate) fn numbers<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let routes = &objects.tables().routes;
    let v4 = routes.count_v4(objects.routing_table).hops;
    let all = match sub {
        3 => v4,
        _ => v4 + routes.count_v6(objects.routing_table).hops,
    };
    Some(Value::Gauge32(all.try_into().unwrap_or(u32::MAX)))
}

/// `inetCidrRouteDiscards` and `ipRoutingDiscards`: Linux discards no valid
/// route for want of room.
pub(crate) fn discards<'a>(_: &Objects<'a>, _: u32) -> Option<Value<'a>> {
    Some(Value::Counter32(0))
}
