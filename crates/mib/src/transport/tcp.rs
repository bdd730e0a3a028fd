//! TCP-MIB: scalars, tcpConnectionTable, tcpListenerTable.

use snmp::Value;
use snmp::oid::Name;
use table::Socket;

use super::put_end;
use crate::columns::Rows;
use crate::index::Seek;
use crate::interfaces::integer;
use crate::objects::Objects;

/// tcpRtoAlgorithm (1) … tcpHCOutSegs (18).
pub(crate) fn scalars<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let all = &objects.tables().host.protocols.as_ref()?.tcp;
    let counter = |counted: u64| Value::Counter32(counted as u32);
    Some(match sub {
        1 => integer(all.rto_algorithm),
        2 => integer(all.rto_min),
        3 => integer(all.rto_max),
        4 => integer(all.max_connections),
        5 => counter(all.active_opens),
        6 => counter(all.passive_opens),
        7 => counter(all.attempt_fails),
        8 => counter(all.established_resets),
        9 => Value::Gauge32(all.established.try_into().unwrap_or(u32::MAX)),
        10 => counter(all.in_segments),
        11 => counter(all.out_segments),
        12 => counter(all.retransmitted_segments),
        14 => counter(all.in_errors),
        15 => counter(all.out_resets),
        17 => Value::Counter64(all.in_segments),
        18 => Value::Counter64(all.out_segments),
        _ => return None,
    })
}

/// tcpConnectionTable.
pub(crate) struct ConnectionTable;

impl Rows for ConnectionTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 6, 19, 1];
    const COLUMNS: &'static [u32] = &[7, 8];
    type Row<'a> = &'a Socket;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Socket> {
        let mut seek = Seek::new(index);
        let ends = (seek.end(), seek.end());
        objects.tables().host.sockets.connections_from(ends)
    }

    fn index(row: &&Socket, name: &mut Name) {
        put_end(name, &row.local);
        put_end(name, &row.remote);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r &'a Socket,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            7 => Value::Integer(state(row.state)),
            _ => Value::Gauge32(0),
        })
    }
}

/// `tcpConnectionState` of the kernel's `TCP_…`.
fn state(kernel: u8) -> i32 {
    match kernel {
        1 => 5,
        2 => 3,
        // SYN_RECV, NEW_SYN_RECV
        3 | 12 => 4,
        4 => 6,
        5 => 7,
        6 => 11,
        8 => 8,
        9 => 9,
        10 => 2,
        11 => 10,
        _ => 1,
    }
}

/// tcpListenerTable.
pub(crate) struct ListenerTable;

impl Rows for ListenerTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 6, 20, 1];
    const COLUMNS: &'static [u32] = &[4];
    type Row<'a> = &'a Socket;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Socket> {
        let first = Seek::new(index).end();
        objects.tables().host.sockets.listeners_from(first)
    }

    fn index(row: &&Socket, name: &mut Name) {
        put_end(name, &row.local);
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
