//! ENTITY-MIB (RFC 6933), entPhysicalTable: the machine as one chassis, by
//! what it calls itself. What is inside, the kernel does not tell.

use snmp::Value;
use snmp::oid::Name;
use table::Machine;

use crate::columns::Rows;
use crate::index;
use crate::interfaces::truth;
use crate::objects::Objects;
use crate::system::ZERO;

/// entLastChangeTime (1): as old as the agent.
pub(crate) fn last_change<'a>(objects: &Objects<'a>, _: u32) -> Option<Value<'a>> {
    objects.tables().host.machine.as_ref()?;
    Some(Value::TimeTicks(0))
}

/// entPhysicalTable.
pub(crate) struct PhysicalEntityTable;

/// The number of the only row.
const CHASSIS: u32 = 1;

impl Rows for PhysicalEntityTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1];
    const COLUMNS: &'static [u32] = &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    type Row<'a> = &'a Machine;

    fn from<'a>(objects: &Objects<'a>, _: &[u32]) -> impl Iterator<Item = &'a Machine> {
        objects.tables().host.machine.as_deref().into_iter()
    }

    fn index(_: &&Machine, name: &mut Name) {
        index::put(name, CHASSIS);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        machine: &'r &'a Machine,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        let product = &machine.product;
        let text = |text: &'r str| Value::OctetString(text.as_bytes());
        Some(match column {
            2 | 13 => text(&product.name),
            3 => Value::ObjectIdentifier(ZERO),
            // entPhysicalContainedIn: in nothing.
            4 => Value::Integer(0),
            // chassis(3)
            5 => Value::Integer(3),
            // entPhysicalParentRelPos: there is no parent.
            6 => Value::Integer(-1),
            7 => text(&objects.moment.system.name),
            8 => text(&product.version),
            11 => text(&product.serial),
            12 => text(&product.vendor),
            16 => truth(false),
            // Firmware, software, alias and asset are not known.
            _ => Value::OctetString(&[]),
        })
    }
}
