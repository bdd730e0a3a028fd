//! hrStorageTable and hrMemorySize.

use snmp::Value;
use snmp::oid::Name;
use table::{FileSystem, Machine, Memory};

use super::at_most;
use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::interfaces::integer;
use crate::objects::Objects;

/// hrStorageTypes.
const OTHER: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 1];
const RAM: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 2];
const VIRTUAL_MEMORY: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 3];
const FIXED_DISK: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 4];
const RAM_DISK: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 8];

/// The numbers of file systems are behind this one.
const FILE_SYSTEMS: u32 = 30;

/// hrMemorySize (2), KB.
pub(crate) fn memory_size<'a>(objects: &Objects<'a>, _: u32) -> Option<Value<'a>> {
    let machine = objects.tables().host.machine.as_ref()?;
    Some(integer(machine.memory.total))
}

/// A row of hrStorageTable.
#[derive(Clone, Copy)]
pub(crate) struct Storage<'a> {
    number: u32,
    kind: &'static [u32],
    description: &'a str,
    unit_bytes: u64,
    units: u64,
    used: u64,
}

/// Kinds of memory, KB, in the order of their numbers.
fn memory(all: &Memory) -> [Storage<'static>; 7] {
    let row = |number, kind, description, units: u64, used: u64| Storage {
        number,
        kind,
        description,
        unit_bytes: 1_024,
        units,
        used,
    };
    let used = all.total.saturating_sub(all.free);
    let swap_used = all.swap_total.saturating_sub(all.swap_free);
    let cached = all.cached + all.reclaimable;
    [
        row(1, RAM, "Physical memory", all.total, used),
        row(
            3,
            VIRTUAL_MEMORY,
            "Virtual memory",
            all.total + all.swap_total,
            used + swap_used,
        ),
        row(6, OTHER, "Memory buffers", all.total, all.buffers),
        row(7, OTHER, "Cached memory", cached, cached),
        row(8, OTHER, "Shared memory", all.shared, all.shared),
        row(10, VIRTUAL_MEMORY, "Swap space", all.swap_total, swap_used),
        row(11, OTHER, "Available memory", all.available, 0),
    ]
}

/// A file system; in larger units where its size is beyond an INTEGER.
fn file_system(of: &FileSystem) -> Storage<'_> {
    let is_memory = &*of.kind == "tmpfs";
    let mut row = Storage {
        number: FILE_SYSTEMS + of.number,
        kind: if is_memory { RAM_DISK } else { FIXED_DISK },
        description: &of.mounted_at,
        unit_bytes: of.unit_bytes,
        units: of.units,
        used: of.used_units,
    };
    while row.units > i32::MAX as u64 {
        (row.unit_bytes, row.units, row.used) = (row.unit_bytes * 2, row.units / 2, row.used / 2);
    }
    row
}

fn rows(machine: &Machine) -> impl Iterator<Item = Storage<'_>> {
    let file_systems = machine.file_systems.iter().map(file_system);
    memory(&machine.memory).into_iter().chain(file_systems)
}

/// hrStorageTable.
pub(crate) struct StorageTable;

impl Rows for StorageTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5, 6];
    type Row<'a> = Storage<'a>;

    /// All of them: they are 135 at most.
    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Storage<'a>> {
        let first = Seek::new(index).number(u32::MAX);
        let machine = objects.tables().host.machine.as_deref();
        let all = machine.into_iter().flat_map(rows);
        all.skip_while(move |row| row.number < first)
    }

    fn index(row: &Storage<'_>, name: &mut Name) {
        index::put(name, row.number);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r Storage<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            1 => integer(row.number),
            2 => Value::ObjectIdentifier(row.kind),
            3 => Value::OctetString(at_most(row.description.as_bytes(), 255)),
            4 => integer(row.unit_bytes),
            5 => integer(row.units),
            _ => integer(row.used),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_beyond_an_integer_is_told_in_larger_units() {
        let of = FileSystem {
            unit_bytes: 4_096,
            units: 1 << 33,
            used_units: 1 << 32,
            ..FileSystem::default()
        };
        let row = file_system(&of);
        assert_eq!(row.unit_bytes * row.units, 4_096 << 33);
        assert_eq!((row.units, row.used), (1 << 30, 1 << 29));
        let small = FileSystem {
            units: i32::MAX as u64,
            ..of
        };
        assert_eq!(file_system(&small).units, i32::MAX as u64);
    }
}
