//! ifRcvAddressTable: the link-layer addresses that a link takes frames for:
//! its own, the broadcast address, and what the kernel's lists of further
//! addresses (`bridge fdb … self`) have.

use std::iter;

use snmp::Value;
use snmp::oid::Name;
use table::row::link::{flag, hardware};
use table::{FdbEntry, FdbKey, Link, LinkLayerAddress, Tables};

use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;

/// ifRcvAddressTable.
pub(crate) struct ReceiveTable;

impl Rows for ReceiveTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 4, 1];
    const COLUMNS: &'static [u32] = &[2, 3];
    /// Link, address, and whether it is the link's own.
    type Row<'a> = (u32, LinkLayerAddress, bool);

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Self::Row<'a>> {
        let mut seek = Seek::new(index);
        let first = seek.number(u32::MAX);
        let from = seek.address();
        let tables = objects.tables();
        let links = tables.links.from(first);
        links.flat_map(move |link| {
            let is_first = link.index == first;
            let from = if is_first {
                from
            } else {
                LinkLayerAddress::NONE
            };
            let all = addresses(tables, link, from);
            all.map(|(address, is_own)| (link.index, address, is_own))
        })
    }

    fn index((link, address, _): &Self::Row<'_>, name: &mut Name) {
        index::put(name, *link);
        index::put(name, address.octets().len() as u32);
        index::put_octets(name, address.octets());
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        (_, _, is_own): &'r Self::Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(Value::Integer(match column {
            // active(1)
            2 => 1,
            // nonVolatile(3) with the link, volatile(2)
            _ if *is_own => 3,
            _ => 2,
        }))
    }
}

/// The order of the names: the shorter before the longer.
fn order(address: &LinkLayerAddress) -> impl Ord + use<> {
    (address.octets().len(), *address)
}

/// The addresses of a link from one on, ascending, each once.
fn addresses<'a>(
    tables: &'a Tables,
    link: &'a Link,
    from: LinkLayerAddress,
) -> impl Iterator<Item = (LinkLayerAddress, bool)> + use<'a> {
    let own = own(link);
    let mut listed = listed(tables, link, from).peekable();
    let mut last: Option<LinkLayerAddress> = None;
    iter::from_fn(move || {
        let is_next = |address: &LinkLayerAddress| {
            order(address) >= order(&from) && last.is_none_or(|last| order(&last) < order(address))
        };
        let own = own.into_iter().flatten().filter(is_next).min_by_key(order);
        while listed.peek().is_some_and(|address| !is_next(address)) {
            listed.next();
        }
        let next = match (own, listed.peek().copied()) {
            (Some(own), Some(listed)) if order(&listed) < order(&own) => listed,
            (own, listed) => own.or(listed)?,
        };
        last = Some(next);
        Some((next, own == Some(next)))
    })
}

/// Its own address and that for all. What is all zeros is none.
fn own(link: &Link) -> [Option<LinkLayerAddress>; 2] {
    let is_some = |address: &LinkLayerAddress| address.octets().iter().any(|octet| *octet != 0);
    let address = Some(link.address).filter(is_some);
    let broadcasts = link.flags & flag::BROADCAST != 0;
    let broadcast = Some(link.broadcast).filter(|address| broadcasts && is_some(address));
    [address, broadcast]
}

/// The first octets of addresses of groups, and the first behind them: those
/// of IEEE 802 and IPv4, and of IPv6.
const GROUPS: [(u8, u8); 2] = [(0x01, 0x02), (0x33, 0x34)];
const ANY: [(u8, u8); 1] = [(0x00, 0xff)];

/// What the kernel's lists of a link have, ascending. At a port of a bridge
/// stand stations by the thousand between them: there only groups, which no
/// station is, are looked for. A VXLAN's entries are remote stations.
fn listed<'a>(
    tables: &'a Tables,
    link: &'a Link,
    from: LinkLayerAddress,
) -> impl Iterator<Item = LinkLayerAddress> + use<'a> {
    // What is shorter is before all of Ethernet.
    let is_short = from.octets().len() < 6;
    let from = if is_short {
        LinkLayerAddress::NONE
    } else {
        from
    };
    let ranges: &[(u8, u8)] = match link.kind.as_deref() {
        _ if link.hardware != hardware::ETHER => &[],
        Some("vxlan") => &[],
        Some("bridge") => &GROUPS,
        _ if link.master.is_some() => &GROUPS,
        _ => &ANY,
    };
    let of_range = move |(first, behind): &'a (u8, u8)| {
        let lowest = [*first, 0, 0, 0, 0, 0];
        let lowest = LinkLayerAddress::new(&lowest).unwrap_or_default();
        let first = FdbKey::first_of(link.index, lowest.max(from));
        let rows = tables.fdb.from(&first).take_while(|row| {
            let octet = row.lladdr.octets().first();
            row.link == link.index && octet.is_some_and(|octet| octet < behind)
        });
        rows.filter(|row| is_own(row)).map(|row| row.lladdr)
    };
    ranges.iter().flat_map(of_range)
}

/// An entry of the device itself, which leads to no other place.
fn is_own(row: &FdbEntry) -> bool {
    row.master.is_none() && row.destination.is_none() && row.nexthop_id.is_none()
}
