//! hrDeviceTable with processors and network interfaces, hrProcessorTable,
//! hrNetworkTable.

use std::iter;

use snmp::Value;
use snmp::oid::Name;
use table::{Link, Machine, Processor};

use super::at_most;
use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::interfaces::integer;
use crate::objects::Objects;
use crate::system::ZERO;

/// hrDeviceTypes.
const PROCESSOR: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 3, 1, 3];
const NETWORK: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 3, 1, 4];

/// Devices are numbered by kind: a processor's number behind this one, a
/// link's index behind the other.
const PROCESSORS: u32 = 3 << 16;
const LINKS: u32 = 4 << 16;

/// A device.
#[derive(Clone, Copy)]
pub(crate) enum Device<'a> {
    Processor(&'a Processor, &'a Machine),
    Link(&'a Link),
}

impl Device<'_> {
    fn number(&self) -> u32 {
        match self {
            Self::Processor(one, _) => PROCESSORS + one.number,
            Self::Link(link) => LINKS.saturating_add(link.index),
        }
    }
}

/// The processors from a device's number on.
fn processors<'a>(objects: &Objects<'a>, first: u32) -> impl Iterator<Item = Device<'a>> {
    let machine = objects.tables().host.machine.as_deref();
    let first = first.saturating_sub(PROCESSORS);
    machine.into_iter().flat_map(move |machine| {
        let all = &machine.processors;
        let at = all.partition_point(|one| one.number < first);
        let rest = all.get(at..).unwrap_or_default();
        rest.iter().map(move |one| Device::Processor(one, machine))
    })
}

/// The links from a device's number on.
fn links<'a>(objects: &Objects<'a>, first: u32) -> impl Iterator<Item = Device<'a>> {
    let all = &objects.tables().links;
    // Seeking is put off until somebody comes here.
    iter::once_with(move || all.from(first.saturating_sub(LINKS)))
        .flatten()
        .map(|link| Device::Link(link))
}

fn put_index(name: &mut Name, device: &Device<'_>) {
    index::put(name, device.number());
}

/// hrDeviceTable.
pub(crate) struct DeviceTable;

impl Rows for DeviceTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 25, 3, 2, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5, 6];
    type Row<'a> = Device<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Device<'a>> {
        let first = Seek::new(index).number(u32::MAX);
        let before = (first < LINKS).then(|| processors(objects, first));
        before.into_iter().flatten().chain(links(objects, first))
    }

    fn index(row: &Device<'_>, name: &mut Name) {
        put_index(name, row);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        row: &'r Device<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        match (column, row) {
            (1, _) => Some(integer(row.number())),
            (2, Device::Processor(..)) => Some(Value::ObjectIdentifier(PROCESSOR)),
            (2, Device::Link(_)) => Some(Value::ObjectIdentifier(NETWORK)),
            (3, Device::Processor(_, machine)) => {
                let name = machine.processor_name.as_bytes();
                Some(Value::OctetString(at_most(name, 64)))
            }
            (3, Device::Link(link)) => Some(Value::OctetString(link.name.as_bytes())),
            (4, _) => Some(Value::ObjectIdentifier(ZERO)),
            // running(2), down(5)
            (5, Device::Link(link)) if !link.is_up() => Some(Value::Integer(5)),
            (5, _) => Some(Value::Integer(2)),
            // A processor's are not counted.
            (_, Device::Processor(..)) => None,
            (_, Device::Link(link)) => {
                let counters = objects.counters_of(link.index)?;
                let errors = counters.rx_errors.wrapping_add(counters.tx_errors);
                Some(Value::Counter32(errors as u32))
            }
        }
    }
}

/// hrProcessorTable.
pub(crate) struct ProcessorTable;

impl Rows for ProcessorTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 25, 3, 3, 1];
    const COLUMNS: &'static [u32] = &[1, 2];
    type Row<'a> = Device<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Device<'a>> {
        processors(objects, Seek::new(index).number(u32::MAX))
    }

    fn index(row: &Device<'_>, name: &mut Name) {
        put_index(name, row);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r Device<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        let Device::Processor(one, _) = row else {
            return None;
        };
        Some(match column {
            1 => Value::ObjectIdentifier(ZERO),
            _ => integer(one.load_percent),
        })
    }
}

/// hrNetworkTable.
pub(crate) struct NetworkTable;

impl Rows for NetworkTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 25, 3, 4, 1];
    const COLUMNS: &'static [u32] = &[1];
    type Row<'a> = Device<'a>;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Device<'a>> {
        links(objects, Seek::new(index).number(u32::MAX))
    }

    fn index(row: &Device<'_>, name: &mut Name) {
        put_index(name, row);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        _: u32,
        row: &'r Device<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        match row {
            Device::Link(link) => Some(integer(link.index)),
            Device::Processor(..) => None,
        }
    }
}
