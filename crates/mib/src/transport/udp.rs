//! UDP-MIB: scalars and udpEndpointTable.

use snmp::Value;
use snmp::oid::Name;
use table::Socket;

use super::put_end;
use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;

/// udpInDatagrams (1) … udpOutDatagrams (4), udpHCInDatagrams (8),
/// udpHCOutDatagrams (9).
pub(crate) fn scalars<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let all = &objects.tables().host.protocols.as_ref()?.udp;
    let counter = |counted: u64| Value::Counter32(counted as u32);
    Some(match sub {
        1 => counter(all.in_datagrams),
        2 => counter(all.no_ports),
        3 => counter(all.in_errors),
        4 => counter(all.out_datagrams),
        8 => Value::Counter64(all.in_datagrams),
        _ => Value::Counter64(all.out_datagrams),
    })
}

/// udpEndpointTable. Its instance is the socket's inode.
pub(crate) struct EndpointTable;

impl Rows for EndpointTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 7, 7, 1];
    const COLUMNS: &'static [u32] = &[8];
    type Row<'a> = &'a Socket;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Socket> {
        let mut seek = Seek::new(index);
        let first = (seek.end(), seek.end(), seek.number(u32::MAX));
        objects.tables().host.sockets.udp_from(first)
    }

    fn index(row: &&Socket, name: &mut Name) {
        put_end(name, &row.local);
        put_end(name, &row.remote);
        index::put(name, row.inode);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        _: u32,
        _: &'r &'a Socket,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(Value::Gauge32(0))
    }
}
