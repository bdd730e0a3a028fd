//! EtherLike-MIB (RFC 3635), dot3StatsTable: the errors that the kernel
//! counts apart, and duplex where the driver tells it. Columns of what it
//! lumps together have no instances.

use snmp::Value;
use snmp::oid::Name;
use table::Link;
use table::row::link::hardware;

use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::interfaces::integer;
use crate::objects::Objects;

/// dot3StatsTable.
pub(crate) struct EthernetTable;

impl Rows for EthernetTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 10, 7, 2, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 8, 9, 11, 19];
    type Row<'a> = &'a Link;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Link> {
        let first = Seek::new(index).number(u32::MAX);
        let links = objects.tables().links.from(first).map(|link| &**link);
        links.filter(|link| link.hardware == hardware::ETHER)
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
        let tables = objects.tables();
        if column == 1 {
            return Some(integer(link.index));
        }
        if column == 19 {
            // Taken with the counters.
            objects.note_counters(link.index);
            // unknown(1), halfDuplex(2), fullDuplex(3)
            let known = tables.host.duplex.get(&link.index);
            let told = known.map_or(1, |duplex| i32::from(*duplex) + 2);
            return Some(Value::Integer(told));
        }
        let counters = objects.errors_of(link.index)?;
        let counted = match column {
            2 => counters.rx_frame_errors,
            3 => counters.rx_crc_errors,
            8 => counters.tx_window_errors,
            9 => counters.tx_aborted_errors,
            _ => counters.tx_carrier_errors,
        };
        Some(Value::Counter32(counted as u32))
    }
}
