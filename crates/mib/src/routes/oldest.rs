//! ipRouteTable of RFC 1213, the oldest: IPv4 routes by destination alone.
//!
//! Of the routes to one address the longest prefix is shown, of those the
//! one that the kernel prefers, by its first next hop.

use std::net::Ipv4Addr;

use ipnet::{IpNet, Ipv4Net};
use snmp::Value;
use snmp::oid::Name;
use table::{RoutePlace, RouteRef, RouteRun};

use super::cidr::destination;
use super::values;
use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;
use crate::system::ZERO;

/// The last protocol that RFC 1213 knows: bgp(14).
const LAST_PROTOCOL: i32 = 14;

/// ipRouteTable.
pub(crate) struct RouteTable;

impl Rows for RouteTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 21, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
    type Row<'a> = RouteRef<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = RouteRef<'a>> {
        let destination: Ipv4Addr = Seek::new(index).v4();
        let prefix = Ipv4Net::new(destination, 0).unwrap_or_default();
        let place = RoutePlace::first_of(IpNet::V4(prefix));
        let mut run = objects.tables().routes.run(objects.routing_table, &place);
        Destinations {
            next: run.next().map(|(_, route)| route),
            run,
        }
    }

    fn index(route: &RouteRef<'_>, name: &mut Name) {
        index::put_octets(name, &destination(&route.prefix));
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        route: &'r RouteRef<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        let hop = route.body.next_hops.as_slice().first();
        Some(match column {
            1 => Value::IpAddress(destination(&route.prefix)),
            2 => values::link(hop),
            3 => values::metric(route),
            7 => Value::IpAddress(values::v4_gateway(hop)),
            8 => Value::Integer(match values::old_kind_of(route.body, hop) {
                // RFC 1213 has no reject: other(1), for invalid(2) would
                // say that the row is none.
                2 => 1,
                kind => kind,
            }),
            9 => values::protocol_up_to(LAST_PROTOCOL, route.body),
            // ipRouteAge: not known.
            10 => Value::Integer(0),
            11 => Value::IpAddress(values::mask(route.prefix.prefix_len())),
            13 => Value::ObjectIdentifier(ZERO),
            // ipRouteMetric2 to 5.
            _ => values::NO_METRIC,
        })
    }
}

/// The route shown of each destination.
struct Destinations<'a> {
    run: RouteRun<'a>,
    next: Option<RouteRef<'a>>,
}

impl<'a> Iterator for Destinations<'a> {
    type Item = RouteRef<'a>;

    fn next(&mut self) -> Option<RouteRef<'a>> {
        let mut best = self.next?;
        loop {
            self.next = self.run.next().map(|(_, route)| route);
            match self.next {
                Some(next) if next.prefix.addr() == best.prefix.addr() => {
                    if next.prefix.prefix_len() > best.prefix.prefix_len() {
                        best = next;
                    }
                }
                _ => return Some(best),
            }
        }
    }
}
