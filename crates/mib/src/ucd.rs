//! The objects of UCD-SNMP-MIB that every manager asks for: memory, laTable,
//! systemStats; as last sampled. They mean what net-snmp means by them.

use std::io::Write;

use snmp::Value;
use snmp::oid::Name;
use table::Machine;

use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::interfaces::integer;
use crate::objects::Objects;

/// A load that is no cause for alarm however high: net-snmp's own default.
const NO_ALARM: &[u8] = b"0.00";

fn machine<'a>(objects: &Objects<'a>) -> Option<&'a Machine> {
    objects.tables().host.machine.as_deref()
}

/// memIndex (1) … memSysAvail (27), KB.
pub(crate) fn memory<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let all = &machine(objects)?.memory;
    let kib = match sub {
        3 | 18 => all.swap_total,
        4 | 19 => all.swap_free,
        5 | 20 => all.total,
        6 | 21 => all.free,
        11 | 22 => all.free + all.swap_free,
        13 | 24 => all.shared,
        14 | 25 => all.buffers,
        15 | 26 => all.cached + all.reclaimable,
        27 => all.available,
        1 => return Some(Value::Integer(0)),
        _ => return Some(Value::OctetString(b"swap")),
    };
    Some(match sub {
        18.. => Value::Counter64(kib),
        _ => integer(kib),
    })
}

/// ssCpuRawUser (50) … ssCpuNumCpus (67).
pub(crate) fn system_stats<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let machine = machine(objects)?;
    let times = &machine.processor_times;
    let counted = match sub {
        50 => times.user,
        51 => times.nice,
        // All that the kernel does, interrupts included.
        52 => times.system + times.irq + times.softirq,
        53 => times.idle,
        54 => times.iowait,
        55 => times.system,
        56 => times.irq,
        // Blocks of 512 bytes.
        57 => machine.paged_out_kib.wrapping_mul(2),
        58 => machine.paged_in_kib.wrapping_mul(2),
        59 => machine.interrupts,
        60 => machine.context_switches,
        61 => times.softirq,
        62 => machine.swapped_in,
        63 => machine.swapped_out,
        64 => times.steal,
        65 => times.guest,
        66 => times.guest_nice,
        1 => return Some(Value::Integer(1)),
        2 => return Some(Value::OctetString(b"systemStats")),
        _ => return Some(integer(machine.processors.len())),
    };
    Some(Value::Counter32(counted as u32))
}

/// The longest text of a load: "42949672.95".
const LOAD_BYTES: usize = 12;

/// A row of laTable: its number, the load in hundredths, and in words.
pub(crate) struct Load {
    number: u32,
    hundredths: u32,
    text: [u8; LOAD_BYTES],
    text_len: usize,
}

impl Load {
    fn new(number: u32, hundredths: u32) -> Self {
        let mut text = [0; LOAD_BYTES];
        let mut rest = text.as_mut_slice();
        // It has room for any.
        let _ = write!(rest, "{}.{:02}", hundredths / 100, hundredths % 100);
        let text_len = LOAD_BYTES - rest.len();
        Self {
            number,
            hundredths,
            text,
            text_len,
        }
    }

    fn text(&self) -> &[u8] {
        self.text.get(..self.text_len).unwrap_or_default()
    }
}

/// laTable: the load over 1, 5 and 15 minutes.
pub(crate) struct LoadTable;

impl Rows for LoadTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 4, 1, 2021, 10, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5, 100, 101];
    type Row<'a> = Load;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Load> {
        let first = Seek::new(index).number(u32::MAX);
        let loads = machine(objects).map(|machine| machine.load_hundredths);
        let rows = (1..).zip(loads.into_iter().flatten());
        rows.filter(move |(number, _)| *number >= first)
            .map(|(number, load)| Load::new(number, load))
    }

    fn index(row: &Load, name: &mut Name) {
        index::put(name, row.number);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r Load,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match (column, row.number) {
            (1, number) => integer(number),
            (2, 1) => Value::OctetString(b"Load-1"),
            (2, 2) => Value::OctetString(b"Load-5"),
            (2, _) => Value::OctetString(b"Load-15"),
            (3, _) => Value::OctetString(row.text()),
            (4, _) => Value::OctetString(NO_ALARM),
            (5, _) => integer(row.hundredths),
            // noError(0)
            (100, _) => Value::Integer(0),
            _ => Value::OctetString(&[]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_told_in_words() {
        let text =
            |hundredths| String::from_utf8_lossy(Load::new(1, hundredths).text()).into_owned();
        assert_eq!(text(5), "0.05");
        assert_eq!(text(1_207), "12.07");
        assert_eq!(text(u32::MAX), "42949672.95");
    }
}
