//! dot1dTp: the forwarding table by address, and by VLAN (dot1qTpFdbTable).

use std::iter;

use snmp::Value;
use snmp::oid::Name;
use table::row::neighbour::state;
use table::{FdbEntry, LinkLayerAddress, Station};

use super::ports::{self, Port, number_of};
use super::{shown, vlans};
use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::interfaces::integer;
use crate::objects::Objects;

/// dot1dTpAgingTime (2).
pub(crate) fn forwarding<'a>(objects: &Objects<'a>, _: u32) -> Option<Value<'a>> {
    let (_, bridge) = shown(objects)?;
    Some(integer(bridge.ageing_time? / 100))
}

/// `dot1dTpFdbStatus`: learned(3), self(4), mgmt(5).
fn status(row: &FdbEntry) -> i32 {
    match row.state {
        all if all & state::PERMANENT != 0 => 4,
        all if all & state::NOARP != 0 => 5,
        _ => 3,
    }
}

/// Addresses of Ethernet; others have no place in these tables.
fn is_mac(row: &FdbEntry) -> bool {
    row.lladdr.octets().len() == 6
}

/// Behind all VLANs.
const LAST: u16 = u16::MAX;

/// dot1dTpFdbTable: each address once, whatever VLANs it is in.
pub(crate) struct ForwardingTable;

impl Rows for ForwardingTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 17, 4, 3, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3];
    type Row<'a> = &'a FdbEntry;

    /// A seek of O(log n) a row: an address may be in thousands of VLANs.
    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a FdbEntry> {
        let fdb = &objects.tables().fdb;
        let mut next = shown(objects).map(|(link, _)| Station {
            master: link.index,
            lladdr: Seek::new(index).mac(),
            vlan: None,
        });
        let rows = iter::from_fn(move || {
            let row = fdb.stations_from(&next?).next()?;
            next = Some(Station {
                vlan: Some(LAST),
                ..row.station()?
            });
            Some(&**row)
        });
        rows.filter(|row| is_mac(row))
    }

    fn index(row: &&FdbEntry, name: &mut Name) {
        index::put_octets(name, row.lladdr.octets());
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        row: &'r &'a FdbEntry,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            1 => Value::OctetString(row.lladdr.octets()),
            2 => integer(number_of(objects.tables(), row.link)),
            _ => Value::Integer(status(row)),
        })
    }
}

/// dot1qTpFdbTable: stations by VLAN, of a bridge that filters them: the
/// kernel has some in VLAN 1 of any other. The filtering database of a VLAN
/// has its number.
pub(crate) struct VlanForwardingTable;

impl Rows for VlanForwardingTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1];
    const COLUMNS: &'static [u32] = &[2, 3];
    type Row<'a> = &'a FdbEntry;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a FdbEntry> {
        let mut seek = Seek::new(index);
        let vlan = seek.number(LAST.into()) as u16;
        let lladdr: LinkLayerAddress = seek.mac();
        let fdb = &objects.tables().fdb;
        let first = vlans::filtering(objects).map(|master| Station {
            master,
            lladdr,
            vlan: Some(vlan),
        });
        let rows = first
            .into_iter()
            .flat_map(|first| fdb.vlan_stations_from(&first));
        rows.map(|row| &**row).filter(|row| is_mac(row))
    }

    fn index(row: &&FdbEntry, name: &mut Name) {
        index::put(name, row.vlan.unwrap_or(0).into());
        index::put_octets(name, row.lladdr.octets());
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        row: &'r &'a FdbEntry,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            2 => integer(number_of(objects.tables(), row.link)),
            _ => Value::Integer(status(row)),
        })
    }
}

/// dot1dTpPortTable: the counters of the ports' links.
pub(crate) struct PortCounterTable;

impl Rows for PortCounterTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 17, 4, 4, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5];
    type Row<'a> = Port<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Port<'a>> {
        ports::from(objects, index)
    }

    fn index(port: &Port<'_>, name: &mut Name) {
        ports::put_index(name, port);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        port: &'r Port<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        let counters = || objects.counters_of(port.link.index);
        Some(match column {
            1 => integer(port.number),
            2 => integer(port.link.mtu),
            3 => Value::Counter32(counters()?.rx_packets as u32),
            4 => Value::Counter32(counters()?.tx_packets as u32),
            _ => {
                let errors = objects.errors_of(port.link.index)?;
                Value::Counter32(errors.rx_dropped as u32)
            }
        })
    }
}
