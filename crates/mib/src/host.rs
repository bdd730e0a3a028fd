//! HOST-RESOURCES-MIB (RFC 2790) as far as a router needs it: hrSystem,
//! hrStorage, hrDevice with processors and network interfaces. All of it as
//! last sampled; before the first sample it has no instances.
//!
//! Rows have the numbers that net-snmp gives them, so that a manager's
//! graphs go on.

mod devices;
mod storage;

use snmp::Value;

use crate::interfaces::integer;
use crate::objects::Objects;

pub(crate) use devices::{DeviceTable, NetworkTable, ProcessorTable};
pub(crate) use storage::{StorageTable, memory_size};

/// hrSystemUptime (1), hrSystemDate (2), hrSystemInitialLoadParameters (4),
/// hrSystemProcesses (6), hrSystemMaxProcesses (7).
pub(crate) fn system<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let machine = objects.tables().host.machine.as_ref()?;
    Some(match sub {
        // As of the sample: no clock that somebody may set is asked.
        1 => Value::TimeTicks(machine.uptime_centisecs as u32),
        2 => Value::OctetString(&machine.date_and_time),
        4 => Value::OctetString(at_most(machine.command_line.as_bytes(), 128)),
        6 => Value::Gauge32(machine.processes?),
        // As many as there is room for.
        _ => integer(0),
    })
}

/// A text where the module has room for so much.
fn at_most(text: &[u8], most: usize) -> &[u8] {
    text.get(..most).unwrap_or(text)
}
