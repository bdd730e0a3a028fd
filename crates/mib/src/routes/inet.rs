//! inetCidrRouteTable: every route of either family, each next hop a row.
//!
//! The index is (destination, length, policy, next hop). A route that the
//! rest tells apart has the policy `0.0`, which RFC 4292 gives to all that
//! need none: TOS 0, the kernel's own metric, and nobody before it in its
//! place. Any other has `0.0.TOS.metric.ordinal.repeat`, so that the names
//! of a prefix order as its routes do. One route, the one of `0.0`, is
//! taken ahead of those of a prefix; nothing is sorted but the next hops of
//! one route among themselves.

use std::iter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use smallvec::SmallVec;
use snmp::Value;
use snmp::oid::Name;
use table::{NextHop, RoutePlace, RouteRef, RouteRun, Routes};

use super::{hops, values};
use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;

/// Sub-identifiers of a policy that is not `0.0`.
const POLICY: u32 = 6;
/// Metric of a route that comes without: none, and `IP6_RT_PRIO_USER`.
const METRIC_V4: u32 = 0;
const METRIC_V6: u32 = 1_024;

/// A row: a route and one of its next hops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    route: RouteRef<'a>,
    hop: Option<&'a NextHop>,
    ordinal: u32,
    repeat: u32,
}

/// The place that has the policy `0.0` in a prefix.
fn plain_place(prefix: IpNet) -> RoutePlace {
    RoutePlace {
        prefix,
        tos: 0,
        metric: match prefix {
            IpNet::V4(_) => METRIC_V4,
            IpNet::V6(_) => METRIC_V6,
        },
        ordinal: RoutePlace::FIRST_ORDINAL,
    }
}

fn is_plain(ordinal: u32, route: &RouteRef<'_>) -> bool {
    let plain = plain_place(route.prefix);
    (route.tos, route.metric, ordinal) == (plain.tos, plain.metric, plain.ordinal)
}

/// inetCidrRouteTable.
pub(crate) struct InetTable;

impl Rows for InetTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 24, 7, 1];
    const COLUMNS: &'static [u32] = &[7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17];
    type Row<'a> = Row<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Row<'a>> {
        let routes = &objects.tables().routes;
        let table = objects.routing_table;
        let first = Family::from(routes, table, index);
        let is_v4 = matches!(first.prefix, IpNet::V4(_));
        let v6 = iter::once_with(move || {
            Family::of(routes, table, any_prefix(Ipv6Addr::UNSPECIFIED.into()))
        });
        first.chain(v6.filter(move |_| is_v4).flatten())
    }

    fn index(row: &Row<'_>, name: &mut Name) {
        index::put_inet(name, row.route.prefix.addr());
        index::put(name, row.route.prefix.prefix_len().into());
        if row.repeat == 0 && is_plain(row.ordinal, &row.route) {
            name.extend([2, 0, 0]);
        } else {
            name.extend([POLICY, 0, 0, row.route.tos.into(), row.route.metric]);
            name.extend([row.ordinal, row.repeat]);
        }
        hops::put(name, row.hop);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            7 => values::link(row.hop),
            8 => Value::Integer(values::kind_of(row.route.body, row.hop)),
            9 => Value::Integer(values::protocol(row.route.body)),
            // inetCidrRouteAge and inetCidrRouteNextHopAS: not known.
            10 | 11 => Value::Gauge32(0),
            12 => values::metric(&row.route),
            13..=16 => values::NO_METRIC,
            // active(1)
            _ => Value::Integer(1),
        })
    }
}

/// The rows of one family.
struct Family<'a> {
    routes: &'a Routes,
    table: u32,
    run: RouteRun<'a>,
    /// Read from `run` and not yet entered.
    next: Option<(u32, RouteRef<'a>)>,
    /// Whose routes these are.
    prefix: IpNet,
    /// The plain route of the prefix has been taken ahead, or its place is
    /// already behind.
    plain_is_done: bool,
    entered: Option<Entered<'a>>,
}

/// A route whose hops are being handed out.
struct Entered<'a> {
    route: RouteRef<'a>,
    ordinal: u32,
    /// What is left, the next one last.
    hops: SmallVec<[hops::Ranked; hops::INLINE]>,
}

/// Which hops of a route.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    All,
    Firsts,
    Repeats,
}

impl<'a> Family<'a> {
    /// The rows from near an index on.
    fn from(routes: &'a Routes, table: u32, index: &[u32]) -> Self {
        let mut seek = Seek::new(index);
        let address = seek.inet();
        let longest = any_prefix(address).max_prefix_len();
        let len = seek.number(longest.into()) as u8;
        let prefix = IpNet::new(address, len).unwrap_or(any_prefix(address));
        let policy = seek.number(POLICY);
        if policy < POLICY {
            return Self::of(routes, table, prefix);
        }
        seek.fixed(0);
        seek.fixed(0);
        let place = RoutePlace {
            prefix,
            tos: seek.number(u8::MAX.into()) as u8,
            metric: seek.number(u32::MAX),
            ordinal: seek.number(u32::MAX),
        };
        Self {
            plain_is_done: true,
            ..Self::at(routes, table, &place)
        }
    }

    /// The rows from a prefix on.
    fn of(routes: &'a Routes, table: u32, prefix: IpNet) -> Self {
        let mut family = Self::at(routes, table, &RoutePlace::first_of(prefix));
        family.look_for_plain();
        family
    }

    fn at(routes: &'a Routes, table: u32, place: &RoutePlace) -> Self {
        let mut run = routes.run(table, place);
        Self {
            routes,
            table,
            next: run.next(),
            run,
            prefix: place.prefix,
            plain_is_done: false,
            entered: None,
        }
    }

    /// The next route is the first of its prefix: if another of them is
    /// the plain one, that one comes first.
    fn look_for_plain(&mut self) {
        let Some((ordinal, route)) = self.next else {
            return;
        };
        self.prefix = route.prefix;
        self.plain_is_done = false;
        if is_plain(ordinal, &route) {
            return;
        }
        let mut ahead = self.run.clone();
        if ahead
            .next()
            .is_none_or(|(_, ahead)| ahead.prefix != route.prefix)
        {
            return;
        }
        let place = plain_place(route.prefix);
        if let Some(plain) = self.routes.at(self.table, &place) {
            self.plain_is_done = true;
            self.entered = Some(Entered::new(place.ordinal, plain, Part::Firsts));
        }
    }

    /// Goes on to the next route. What has one hop at most, nearly all,
    /// gives its row at once; `Some(None)`: the rows are in `entered`.
    fn enter_next(&mut self) -> Option<Option<Row<'a>>> {
        let (ordinal, route) = self.next?;
        if route.prefix != self.prefix {
            self.look_for_plain();
            if self.entered.is_some() {
                return Some(None);
            }
        }
        self.next = self.run.next();
        let is_behind = self.plain_is_done && is_plain(ordinal, &route);
        let hops = route.body.next_hops.as_slice();
        if hops.len() <= 1 && !is_behind {
            return Some(Some(Row {
                route,
                hop: hops.first(),
                ordinal,
                repeat: 0,
            }));
        }
        let part = if is_behind { Part::Repeats } else { Part::All };
        self.entered = Some(Entered::new(ordinal, route, part));
        Some(None)
    }
}

impl<'a> Iterator for Family<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        loop {
            if let Some(entered) = &mut self.entered {
                if let Some(row) = entered.next() {
                    return Some(row);
                }
                self.entered = None;
            }
            if let Some(row) = self.enter_next()? {
                return Some(row);
            }
        }
    }
}

impl<'a> Entered<'a> {
    fn new(ordinal: u32, route: RouteRef<'a>, part: Part) -> Self {
        let mut hops = hops::ranked(route.body.next_hops.as_slice());
        hops.retain(|hop| match part {
            Part::All => true,
            Part::Firsts => hop.repeat == 0,
            Part::Repeats => hop.repeat != 0,
        });
        hops.reverse();
        Self {
            route,
            ordinal,
            hops,
        }
    }

    fn next(&mut self) -> Option<Row<'a>> {
        let ranked = self.hops.pop()?;
        let all = self.route.body.next_hops.as_slice();
        Some(Row {
            route: self.route,
            hop: all.get(usize::from(ranked.at)),
            ordinal: self.ordinal,
            repeat: ranked.repeat,
        })
    }
}

/// The default route of an address's family, its address as it is.
fn any_prefix(address: IpAddr) -> IpNet {
    let zero = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    IpNet::new(zero, 0).unwrap_or_default()
}
