//! dot1dBase and dot1dBasePortTable.

use snmp::Value;
use snmp::oid::Name;

use super::ports::{self, Port};
use super::shown;
use crate::columns::Rows;
use crate::interfaces::integer;
use crate::objects::Objects;
use crate::system::ZERO;

/// dot1dBaseBridgeAddress (1), dot1dBaseNumPorts (2), dot1dBaseType (3).
pub(crate) fn base<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let (link, _) = shown(objects)?;
    Some(match sub {
        1 => Value::OctetString(link.address.octets()),
        2 => integer(objects.tables().links.of_master(link.index).count()),
        // transparent-only(2)
        _ => Value::Integer(2),
    })
}

/// dot1dBasePortTable.
pub(crate) struct PortTable;

impl Rows for PortTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 17, 1, 4, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5];
    type Row<'a> = Port<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Port<'a>> {
        ports::from(objects, index)
    }

    fn index(port: &Port<'_>, name: &mut Name) {
        ports::put_index(name, port);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        port: &'r Port<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            1 => integer(port.number),
            2 => integer(port.link.index),
            3 => Value::ObjectIdentifier(ZERO),
            // The kernel's bridge neither delays frames nor drops them for
            // their length here.
            _ => Value::Counter32(0),
        })
    }
}
