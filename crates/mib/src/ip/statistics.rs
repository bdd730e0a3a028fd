//! What IP counts: the scalars of RFC 1213's ip group, ipSystemStatsTable
//! and ipIfStatsTable (RFC 4293), as last sampled; before the first sample
//! they have no instances.

use snmp::Value;
use snmp::oid::Name;
use table::{AF_INET, AF_INET6, IpCounters, IpPlace};

use crate::columns::Rows;
use crate::index::{self, IPV4, IPV6, Seek};
use crate::objects::Objects;

/// How long a sample lasts at most while somebody reads, milliseconds:
/// `ipSystemStatsRefreshRate`.
const REFRESH_MILLIS: u32 = 1_000;

fn of_system(family: u8) -> IpPlace {
    IpPlace { family, link: 0 }
}

/// ipForwarding (1) … ipFragCreates (19), ipRoutingDiscards (23),
/// ipv6IpForwarding (25), ipv6IpDefaultHopLimit (26).
pub(crate) fn group<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let tables = objects.tables();
    let settings = || tables.ip_settings.as_ref();
    // forwarding(1), notForwarding(2)
    let forwarding = |on: bool| Value::Integer(if on { 1 } else { 2 });
    Some(match sub {
        1 => forwarding(settings()?.v4_forwarding),
        2 => Value::Integer(settings()?.v4_default_ttl.into()),
        13 => Value::Integer(
            settings()?
                .v4_reassembly_secs
                .try_into()
                .unwrap_or(i32::MAX),
        ),
        25 => forwarding(settings()?.v6_forwarding),
        26 => Value::Integer(settings()?.v6_hop_limit.into()),
        _ => {
            let all = tables.ip_counters.get(&of_system(AF_INET))?;
            Value::Counter32(v4_scalar(all, sub)? as u32)
        }
    })
}

fn v4_scalar(all: &IpCounters, sub: u32) -> Option<u64> {
    Some(match sub {
        3 => all.in_receives,
        4 => all.in_header_errors,
        5 => all.in_address_errors,
        6 => all.out_forwarded,
        7 => all.in_unknown_protocols,
        8 => all.in_discards,
        9 => all.in_delivers,
        10 => all.out_requests,
        11 => all.out_discards,
        12 => all.out_no_routes,
        14 => all.reassembly_requests,
        15 => all.reassembly_oks,
        16 => all.reassembly_fails,
        17 => all.fragment_oks,
        18 => all.fragment_fails,
        19 => all.fragment_creates,
        _ => return None,
    })
}

/// A column of either table. `None`: no such counter.
fn column_of(all: &IpCounters, column: u32) -> Option<Value<'static>> {
    let (value, is_high) = match column {
        3 | 4 => (all.in_receives, column == 4),
        5 | 6 => (all.in_octets, column == 6),
        7 => (all.in_header_errors, false),
        8 => (all.in_no_routes, false),
        9 => (all.in_address_errors, false),
        10 => (all.in_unknown_protocols, false),
        11 => (all.in_truncated, false),
        // For others, whether a route was found or not.
        12 | 13 => (all.out_forwarded + all.in_no_routes, column == 13),
        14 => (all.reassembly_requests, false),
        15 => (all.reassembly_oks, false),
        16 => (all.reassembly_fails, false),
        17 => (all.in_discards, false),
        18 | 19 => (all.in_delivers, column == 19),
        20 | 21 => (all.out_requests, column == 21),
        22 => (all.out_no_routes, false),
        23 | 24 => (all.out_forwarded, column == 24),
        25 => (all.out_discards, false),
        26 => (all.fragment_oks + all.fragment_fails, false),
        27 => (all.fragment_oks, false),
        28 => (all.fragment_fails, false),
        29 => (all.fragment_creates, false),
        30 | 31 => (all.out_transmits, column == 31),
        32 | 33 => (all.out_octets, column == 33),
        34 | 35 => (all.in_multicasts, column == 35),
        36 | 37 => (all.in_multicast_octets, column == 37),
        38 | 39 => (all.out_multicasts, column == 39),
        40 | 41 => (all.out_multicast_octets, column == 41),
        42 | 43 => (all.in_broadcasts, column == 43),
        44 | 45 => (all.out_broadcasts, column == 45),
        // Discontinuity: as old as the system, or the link.
        46 => return Some(Value::TimeTicks(0)),
        47 => return Some(Value::Gauge32(REFRESH_MILLIS)),
        _ => return None,
    };
    Some(if is_high {
        Value::Counter64(value)
    } else {
        Value::Counter32(value as u32)
    })
}

/// Columns of broadcasts, which IPv6 has not.
fn is_of_broadcasts(column: u32) -> bool {
    matches!(column, 42..=45)
}

/// `InetVersion`: ipv4(1), ipv6(2).
fn version(place: &IpPlace) -> u32 {
    if place.family == AF_INET { IPV4 } else { IPV6 }
}

type Row<'a> = (&'a IpPlace, &'a IpCounters);

/// The sampled rows from a version and link on. O(log n), then O(1) a row.
fn rows<'a>(
    objects: &Objects<'a>,
    version: u32,
    link: u32,
) -> impl Iterator<Item = Row<'a>> + use<'a> {
    let family = match version {
        0 => 0,
        IPV4 => AF_INET,
        IPV6 => AF_INET6,
        _ => u8::MAX,
    };
    objects.tables().ip_counters.from(&IpPlace { family, link })
}

/// ipSystemStatsTable.
pub(crate) struct SystemStatsTable;

impl Rows for SystemStatsTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 31, 1, 1];
    const COLUMNS: &'static [u32] = &[
        3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
        27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
    ];
    type Row<'a> = Row<'a>;

    fn from<'a>(objects: &Objects<'a>, _: &[u32]) -> impl Iterator<Item = Row<'a>> {
        let counters = &objects.tables().ip_counters;
        let first = [AF_INET, AF_INET6].map(|family| counters.from(&of_system(family)).next());
        first
            .into_iter()
            .flatten()
            .filter(|(place, _)| place.link == 0)
    }

    fn index(row: &Row<'_>, name: &mut Name) {
        index::put(name, version(row.0));
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        if is_of_broadcasts(column) && row.0.family == AF_INET6 {
            return None;
        }
        column_of(row.1, column)
    }
}

/// ipIfStatsTable: Linux counts IPv6 by link, IPv4 as a whole only.
pub(crate) struct IfStatsTable;

impl Rows for IfStatsTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 31, 3, 1];
    const COLUMNS: &'static [u32] = &[
        3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27,
        28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 46, 47,
    ];
    type Row<'a> = Row<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Row<'a>> {
        let mut seek = Seek::new(index);
        let version = seek.number(u32::MAX);
        rows(objects, version, seek.number(u32::MAX)).filter(|(place, _)| place.link != 0)
    }

    fn index(row: &Row<'_>, name: &mut Name) {
        index::put(name, version(row.0));
        index::put(name, row.0.link);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        column_of(row.1, column)
    }
}

/// ipIfStatsTableLastChange.
pub(crate) fn last_change<'a>(objects: &Objects<'a>, _: u32) -> Option<Value<'a>> {
    let at = objects.moment.history.links_changed_at();
    Some(Value::TimeTicks(objects.moment.ticks(at)))
}
