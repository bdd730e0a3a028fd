//! ipv4InterfaceTable, ipv6InterfaceTable and ipv6ScopeZoneIndexTable: how
//! IP is set on links, as last sampled.
//!
//! A link is in a table when its kernel keeps that family for it, whether or
//! not it has addresses.

use snmp::Value;
use snmp::oid::Name;
use table::{IpInterface, Link, NeighbourTimes};

use super::statistics::last_change;
use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;

/// Of datagrams put together again, at most: what IP allows.
const REASSEMBLED: i32 = 65_535;

/// ipv4InterfaceTableLastChange (27), ipv6InterfaceTableLastChange (29):
/// when a link came or went. ipAddressSpinLock (33): nothing is ever set.
pub(crate) fn scalars<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    match sub {
        33 => Some(Value::Integer(0)),
        _ => last_change(objects, sub),
    }
}

/// A link and how IP is set on it.
type Row<'a> = (&'a Link, &'a IpInterface, NeighbourTimes);

/// The links from an index on that a family is set on. A seek, then
/// O(log n) a row.
fn rows<'a>(
    objects: &Objects<'a>,
    at: &[u32],
    family: fn(&IpInterface) -> Option<NeighbourTimes>,
) -> impl Iterator<Item = Row<'a>> + use<'a> {
    let first = Seek::new(at).number(u32::MAX);
    let tables = objects.tables();
    let sampled = tables.host.ip_interfaces.from(&first);
    sampled.filter_map(move |(index, set)| {
        let link = tables.links.get(*index)?;
        Some((&**link, set, family(set)?))
    })
}

fn millis(value: u64) -> Value<'static> {
    Value::Gauge32(value.try_into().unwrap_or(u32::MAX))
}

/// ipv4InterfaceTable.
pub(crate) struct V4Table;

impl Rows for V4Table {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 28, 1];
    const COLUMNS: &'static [u32] = &[2, 3, 4];
    type Row<'a> = Row<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Row<'a>> {
        rows(objects, index, |set| set.v4)
    }

    fn index((link, ..): &Row<'_>, name: &mut Name) {
        index::put(name, link.index);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        (_, _, times): &'r Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            2 => Value::Integer(REASSEMBLED),
            // up(1): the kernel has no switch for it.
            3 => Value::Integer(1),
            _ => millis(times.retransmit_millis),
        })
    }
}

/// ipv6InterfaceTable.
pub(crate) struct V6Table;

impl Rows for V6Table {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 30, 1];
    const COLUMNS: &'static [u32] = &[2, 3, 5, 6, 7, 8];
    /// The interface identifier as well, where it is known.
    type Row<'a> = (Row<'a>, Option<[u8; 8]>);

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Self::Row<'a>> {
        rows(objects, index, |set| set.v6).map(|row| (row, identifier(row.0)))
    }

    fn index(((link, ..), _): &Self::Row<'_>, name: &mut Name) {
        index::put(name, link.index);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        ((link, set, times), identifier): &'r Self::Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            2 => Value::Gauge32(REASSEMBLED as u32),
            3 => Value::OctetString(identifier.as_ref().map_or(&[], |octets| octets)),
            // up(1), down(2)
            5 => Value::Integer(if link.v6_disabled { 2 } else { 1 }),
            6 => millis(times.reachable_millis),
            7 => millis(times.retransmit_millis),
            // forwarding(1), notForwarding(2)
            _ => Value::Integer(if set.forwards_v6 { 1 } else { 2 }),
        })
    }
}

/// `IN6_ADDR_GEN_MODE_EUI64`.
const EUI64: u8 = 0;

/// The modified EUI-64 of a link that forms its addresses with it (RFC 4291
/// appendix A). Where it does otherwise the kernel does not tell.
fn identifier(link: &Link) -> Option<[u8; 8]> {
    let octets: [u8; 6] = link.address.octets().try_into().ok()?;
    let is_used = link.addr_gen_mode == Some(EUI64) && octets != [0; 6];
    let [a, b, c, d, e, f] = octets;
    is_used.then_some([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// ipv6ScopeZoneIndexTable: the kernel has a zone for each link, and none of
/// any other scope.
pub(crate) struct ZoneTable;

impl Rows for ZoneTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 36, 1];
    const COLUMNS: &'static [u32] = &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
    type Row<'a> = Row<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Row<'a>> {
        rows(objects, index, |set| set.v6)
    }

    fn index((link, ..): &Row<'_>, name: &mut Name) {
        index::put(name, link.index);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        (link, ..): &'r Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        // ipv6ScopeZoneIndexLinkLocal is the first of them.
        Some(Value::Gauge32(if column == 2 { link.index } else { 0 }))
    }
}
