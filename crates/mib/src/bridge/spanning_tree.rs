//! dot1dStp and dot1dStpPortTable.

use snmp::Value;
use snmp::oid::Name;

use super::ports::{self, Port};
use super::shown;
use crate::columns::Rows;
use crate::interfaces::integer;
use crate::objects::Objects;

/// dot1dStpProtocolSpecification (1) … dot1dStpBridgeForwardDelay (14). What
/// the bridge would set as root is known only while it is.
pub(crate) fn spanning_tree<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let (_, bridge) = shown(objects)?;
    let is_root = bridge.root_id == bridge.bridge_id;
    let of_root = |centisecs: Option<u32>| centisecs.filter(|_| is_root).map(integer);
    match sub {
        // unknown(1) where it is off, ieee8021d(3)
        1 => Some(Value::Integer(if bridge.stp_state? == 0 { 1 } else { 3 })),
        2 => bridge.priority.map(integer),
        5 => bridge.root_id.as_ref().map(|id| Value::OctetString(&id.0)),
        6 => bridge.root_path_cost.map(integer),
        7 => bridge.root_port.map(integer),
        8 => bridge.max_age.map(integer),
        9 => bridge.hello_time.map(integer),
        11 => bridge.forward_delay.map(integer),
        12 => of_root(bridge.max_age),
        13 => of_root(bridge.hello_time),
        14 => of_root(bridge.forward_delay),
        _ => None,
    }
}

/// dot1dStpPortTable.
pub(crate) struct StpPortTable;

impl Rows for StpPortTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11];
    /// The designated port's octets as well.
    type Row<'a> = (Port<'a>, [u8; 2]);

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Self::Row<'a>> {
        ports::from(objects, index).map(|port| {
            let designated = port.settings.designated_port.unwrap_or(0);
            (port, designated.to_be_bytes())
        })
    }

    fn index((port, _): &Self::Row<'_>, name: &mut Name) {
        ports::put_index(name, port);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        (port, designated): &'r Self::Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        let settings = port.settings;
        match column {
            1 => Some(integer(port.number)),
            2 => settings.priority.map(integer),
            3 => settings
                .state
                .map(|state| Value::Integer(port_state(state))),
            // enabled(1), disabled(2)
            4 => settings
                .state
                .map(|state| Value::Integer(if state == 0 { 2 } else { 1 })),
            5 => settings.cost.map(|cost| integer(cost.min(u16::MAX.into()))),
            6 => settings
                .root_id
                .as_ref()
                .map(|id| Value::OctetString(&id.0)),
            7 => settings.designated_cost.map(integer),
            8 => settings
                .bridge_id
                .as_ref()
                .map(|id| Value::OctetString(&id.0)),
            9 => settings
                .designated_port
                .map(|_| Value::OctetString(designated)),
            _ => settings.cost.map(integer),
        }
    }
}

/// `dot1dStpPortState` of the kernel's `BR_STATE_…`.
fn port_state(kernel: u8) -> i32 {
    match kernel {
        1 => 3,
        2 => 4,
        3 => 5,
        4 => 2,
        _ => 1,
    }
}
