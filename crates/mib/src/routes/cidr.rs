//! ipCidrRouteTable of RFC 2096, deprecated and still read: IPv4 routes by
//! (destination, mask, TOS, next hop).
//!
//! Of routes that these do not tell apart, the one that the kernel prefers
//! is shown: the lowest metric, of those the first. Destination and mask
//! order as the table does; only the next hops of one (prefix, TOS) are put
//! in order among themselves.

use std::net::Ipv4Addr;

use ipnet::{IpNet, Ipv4Net};
use smallvec::SmallVec;
use snmp::Value;
use snmp::oid::Name;
use table::{NextHop, RoutePlace, RouteRef, RouteRun};

use super::values;
use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;
use crate::system::ZERO;

/// The last protocol that RFC 2096 knows: ciscoEigrp(16).
const LAST_PROTOCOL: i32 = 16;

/// A row: a route and one of its next hops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    route: RouteRef<'a>,
    hop: Option<&'a NextHop>,
    gateway: [u8; 4],
}

/// ipCidrRouteTable.
pub(crate) struct CidrTable;

impl Rows for CidrTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 24, 4, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    type Row<'a> = Row<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Row<'a>> {
        let mut seek = Seek::new(index);
        let destination = seek.v4();
        let mask = u32::from(seek.v4());
        // Masks order as lengths. What is no mask lies behind the longest
        // one that is in it.
        let len = mask.leading_ones() as u8;
        let is_mask = mask.count_ones() == u32::from(len);
        let tos = if is_mask { seek.number(0xff) } else { 0 };
        let prefix = Ipv4Net::new(destination, len).unwrap_or_default();
        let place = RoutePlace {
            tos: tos as u8,
            ..RoutePlace::first_of(IpNet::V4(prefix))
        };
        let mut run = objects.tables().routes.run(objects.routing_table, &place);
        Groups {
            next: run.next(),
            run,
            group: SmallVec::new(),
        }
    }

    fn index(row: &Row<'_>, name: &mut Name) {
        let prefix = row.route.prefix;
        index::put_octets(name, &destination(&prefix));
        index::put_octets(name, &values::mask(prefix.prefix_len()));
        index::put(name, row.route.tos.into());
        index::put_octets(name, &row.gateway);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        let route = &row.route;
        Some(match column {
            1 => Value::IpAddress(destination(&route.prefix)),
            2 => Value::IpAddress(values::mask(route.prefix.prefix_len())),
            3 => Value::Integer(route.tos.into()),
            4 => Value::IpAddress(row.gateway),
            5 => values::link(row.hop),
            6 => Value::Integer(values::old_kind_of(route.body, row.hop)),
            7 => values::protocol_up_to(LAST_PROTOCOL, route.body),
            9 => Value::ObjectIdentifier(ZERO),
            11 => values::metric(route),
            12..=15 => values::NO_METRIC,
            16 => Value::Integer(1),
            // ipCidrRouteAge (8) and ipCidrRouteNextHopAS (10): not known.
            _ => Value::Integer(0),
        })
    }
}

pub(super) fn destination(prefix: &IpNet) -> [u8; 4] {
    match prefix {
        IpNet::V4(v4) => v4.addr().octets(),
        IpNet::V6(_) => Ipv4Addr::UNSPECIFIED.octets(),
    }
}

/// Rows, the routes of one (prefix, TOS) at a time.
struct Groups<'a> {
    run: RouteRun<'a>,
    next: Option<(u32, RouteRef<'a>)>,
    /// What is left of the group, the next row last.
    group: SmallVec<[Row<'a>; 8]>,
}

impl<'a> Iterator for Groups<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        if let Some(row) = self.group.pop() {
            return Some(row);
        }
        let (_, route) = self.next?;
        self.next = self.run.next();
        let is_alone = !self
            .next
            .is_some_and(|(_, next)| is_one_group(&route, &next));
        match route.body.next_hops.as_slice() {
            [] if is_alone => return Some(row(route, None)),
            [hop] if is_alone => return Some(row(route, Some(hop))),
            _ => self.gather(route),
        }
        self.group.pop()
    }
}

fn is_one_group(a: &RouteRef<'_>, b: &RouteRef<'_>) -> bool {
    (a.prefix, a.tos) == (b.prefix, b.tos)
}

fn row<'a>(route: RouteRef<'a>, hop: Option<&'a NextHop>) -> Row<'a> {
    Row {
        route,
        hop,
        gateway: values::v4_gateway(hop),
    }
}

impl<'a> Groups<'a> {
    fn gather(&mut self, first: RouteRef<'a>) {
        self.add(first);
        while let Some((_, route)) = self.next.filter(|(_, next)| is_one_group(&first, next)) {
            self.add(route);
            self.next = self.run.next();
        }
        // A stable sort: the preferred route comes first and stays.
        self.group.sort_by_key(|row| row.gateway);
        self.group.dedup_by_key(|row| row.gateway);
        self.group.reverse();
    }

    fn add(&mut self, route: RouteRef<'a>) {
        match route.body.next_hops.as_slice() {
            [] => self.group.push(row(route, None)),
            hops => self
                .group
                .extend(hops.iter().map(|hop| row(route, Some(hop)))),
        }
    }
}
