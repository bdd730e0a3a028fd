//! IF-MIB (RFC 2863): ifNumber, ifTable, ifXTable, ifStackTable,
//! ifRcvAddressTable.
//!
//! Rows are links in the order of their indexes. Counters are those last
//! sampled; before the first sample they have no instances, which is
//! truer than a zero.

mod receive;
mod stack;

use snmp::Value;
use snmp::oid::Name;
use table::row::link::{flag, hardware};
use table::{Link, LinkCounters};

use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;
use crate::status::{admin_status, alias, oper_status};

pub(crate) use receive::ReceiveTable;
pub(crate) use stack::StackTable;

/// `TruthValue` (RFC 2579).
pub(crate) fn truth(value: bool) -> Value<'static> {
    Value::Integer(if value { 1 } else { 2 })
}

/// `ifNumber`.
pub(crate) fn number<'a>(objects: &Objects<'a>, _: u32) -> Option<Value<'a>> {
    Some(integer(objects.tables().links.len()))
}

/// `ifTableLastChange` (5) and `ifStackLastChange` (6).
pub(crate) fn last_changes<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let history = objects.moment.history;
    let at = match sub {
        5 => history.links_changed_at(),
        _ => history.stack_changed_at(),
    };
    Some(Value::TimeTicks(objects.moment.ticks(at)))
}

/// A count or size as an INTEGER, which ends at 2^31-1.
pub(crate) fn integer(number: impl TryInto<i32>) -> Value<'static> {
    Value::Integer(number.try_into().unwrap_or(i32::MAX))
}

/// `ifType` (IANAifType) of a kind of link, else of an `ARPHRD_…`: bridge,
/// l2vlan, ieee8023adLag have numbers of their own.
fn kind(link: &Link) -> i32 {
    match link.kind.as_deref() {
        Some("bridge") => return 209,
        Some("vlan") => return 135,
        Some("bond" | "team") => return 161,
        _ => {}
    }
    match link.hardware {
        hardware::ETHER => 6,
        hardware::LOOPBACK => 24,
        hardware::PPP => 23,
        hardware::INFINIBAND => 199,
        hardware::TUNNEL
        | hardware::TUNNEL6
        | hardware::SIT
        | hardware::IPGRE
        | hardware::IP6GRE => 131,
        _ => 1,
    }
}

/// An address of nothing but zeros, as the loopback's, is none.
fn physical_address(link: &Link) -> &[u8] {
    let octets = link.address.octets();
    if octets.iter().all(|&octet| octet == 0) {
        return &[];
    }
    octets
}

/// `ifHighSpeed`, Mb/s; 0, as for what has no bandwidth, where the kernel
/// does not know it.
fn high_speed(objects: &Objects<'_>, link: &Link) -> u32 {
    // It is sampled with the counters.
    objects.note_counters(link.index);
    let speeds = &objects.tables().link_speeds;
    speeds.get(&link.index).copied().unwrap_or(0)
}

/// `ifSpeed`, b/s: at most what it can say, which for 4.3 Gb/s and more
/// means to look at `ifHighSpeed`.
fn speed(objects: &Objects<'_>, link: &Link) -> u32 {
    high_speed(objects, link).saturating_mul(1_000_000)
}

fn seek<'a>(objects: &Objects<'a>, at: &[u32]) -> impl Iterator<Item = &'a Link> + use<'a> {
    let first = Seek::new(at).number(u32::MAX);
    objects.tables().links.from(first).map(|link| &**link)
}

/// ifTable.
pub(crate) struct IfTable;

impl Rows for IfTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1];
    const COLUMNS: &'static [u32] = &[
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
    ];
    type Row<'a> = &'a Link;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Link> {
        seek(objects, index)
    }

    fn index(link: &&Link, name: &mut Name) {
        index::put(name, link.index);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        link: &'r &'a Link,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            1 => integer(link.index),
            2 => Value::OctetString(link.name.as_bytes()),
            3 => Value::Integer(kind(link)),
            4 => integer(link.mtu),
            5 => Value::Gauge32(speed(objects, link)),
            6 => Value::OctetString(physical_address(link)),
            7 => Value::Integer(admin_status(link)),
            8 => Value::Integer(oper_status(link)),
            9 => {
                let at = objects.moment.history.link_changed_at(link.index);
                Value::TimeTicks(objects.moment.ticks(at))
            }
            // ifOutQLen and ifSpecific, deprecated.
            21 => Value::Gauge32(0),
            22 => Value::ObjectIdentifier(&[0, 0]),
            13 => Value::Counter32(objects.errors_of(link.index)?.rx_dropped as u32),
            _ => {
                let counters = objects.counters_of(link.index)?;
                // A Counter32 is the low half of its 64 bits (RFC 2863 §3.1.6).
                Value::Counter32(counter(counters, column)? as u32)
            }
        })
    }
}

/// The counter of an ifTable column. The kernel counts broadcasts received
/// with the other packets.
fn counter(counters: &LinkCounters, column: u32) -> Option<u64> {
    Some(match column {
        10 => counters.rx_bytes,
        11 => counters.rx_packets.saturating_sub(counters.multicast),
        12 => counters.multicast,
        14 => counters.rx_errors,
        // ifInUnknownProtos and ifOutNUcastPkts are not counted apart.
        15 | 18 => 0,
        16 => counters.tx_bytes,
        17 => counters.tx_packets,
        19 => counters.tx_dropped,
        20 => counters.tx_errors,
        _ => return None,
    })
}

/// ifXTable.
pub(crate) struct IfXTable;

impl Rows for IfXTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1];
    const COLUMNS: &'static [u32] = &[
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
    ];
    type Row<'a> = &'a Link;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Link> {
        seek(objects, index)
    }

    fn index(link: &&Link, name: &mut Name) {
        index::put(name, link.index);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        link: &'r &'a Link,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            1 => Value::OctetString(link.name.as_bytes()),
            // Notifications of it are made if there is anybody to send to.
            14 => Value::Integer(1),
            15 => Value::Gauge32(high_speed(objects, link)),
            16 => truth(link.flags & flag::PROMISC != 0 || link.promiscuity > 0),
            17 => truth(has_connector(link)),
            18 => Value::OctetString(alias(link.alias.as_deref()).as_bytes()),
            // The kernel's counters begin with the link.
            19 => {
                let at = objects.moment.history.link_came_at(link.index);
                Value::TimeTicks(objects.moment.ticks(at))
            }
            _ => {
                let counters = objects.counters_of(link.index)?;
                high_counter(counters, column)?
            }
        })
    }
}

/// Counters of packets that are no unicast, and 64-bit ones of all.
/// Broadcasts are counted with the multicasts or not at all.
fn high_counter(counters: &LinkCounters, column: u32) -> Option<Value<'static>> {
    let is_high = matches!(column, 6..=13);
    let counted = match column {
        6 => counters.rx_bytes,
        7 => counters.rx_packets.saturating_sub(counters.multicast),
        2 | 8 => counters.multicast,
        10 => counters.tx_bytes,
        11 => counters.tx_packets,
        3..=5 | 9 | 12 | 13 => 0,
        _ => return None,
    };
    Some(if is_high {
        Value::Counter64(counted)
    } else {
        Value::Counter32(counted as u32)
    })
}

/// Whether there is a plug: what is made in software has a kind.
fn has_connector(link: &Link) -> bool {
    link.kind.is_none() && link.hardware != hardware::LOOPBACK
}
