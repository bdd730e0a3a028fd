//! Any table as columns of rows: one seek for each column a walk enters,
//! then a run. For the tables of this crate.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use snmp::Value;
use snmp::mib::WalkSink;
use snmp::oid::Name;

use crate::index;
use crate::objects::Objects;

/// Takes the one value that was asked for.
pub(crate) type GetSink<'s> = dyn FnMut(Value<'_>) + 's;

/// A conceptual table (RFC 2578 §7.1.12).
pub(crate) trait Rows {
    /// Name of its entry.
    const ENTRY: &'static [u32];
    /// Its accessible columns, ascending.
    const COLUMNS: &'static [u32];
    /// A row, as it lies in the tables.
    type Row<'a>;

    /// The rows in the order of their indexes, from near `index` on: the
    /// first row is at or shortly before the first one at or behind
    /// `index`. A seek; O(1) a row from there.
    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Self::Row<'a>>;

    /// Appends the row's index.
    fn index(row: &Self::Row<'_>, name: &mut Name);

    /// The value of a column; `None`: this row has none. A value that is a
    /// name is put together in `scratch`, which comes empty.
    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        row: &'r Self::Row<'a>,
        scratch: &'r mut Name,
    ) -> Option<Value<'r>>;
}

/// All objects of the table behind `after`, column by column.
pub(crate) fn walk<R: Rows>(
    objects: &Objects<'_>,
    after: &[u32],
    sink: &mut WalkSink<'_>,
) -> ControlFlow<()> {
    let (columns, mut behind) = start::<R>(after);
    for &column in columns {
        run::<R>(objects, column, behind, sink)?;
        behind = &[];
    }
    ControlFlow::Continue(())
}

/// The columns that a walk from `after` is to see, and the index it has
/// behind it in the first of them (none: it begins at the first row).
fn start<R: Rows>(after: &[u32]) -> (&'static [u32], &[u32]) {
    let Some([column, index @ ..]) = after.strip_prefix(R::ENTRY) else {
        return (R::COLUMNS, &[]);
    };
    let first = R::COLUMNS.partition_point(|known| known < column);
    let columns = R::COLUMNS.get(first..).unwrap_or_default();
    match columns.first() {
        Some(known) if known == column => (columns, index),
        _ => (columns, &[]),
    }
}

fn run<R: Rows>(
    objects: &Objects<'_>,
    column: u32,
    behind: &[u32],
    sink: &mut WalkSink<'_>,
) -> ControlFlow<()> {
    let mut name: Name = R::ENTRY.iter().copied().collect();
    index::put(&mut name, column);
    let head = name.len();
    let mut scratch = Name::new();
    let mut is_behind = behind.is_empty();
    for row in R::from(objects, behind) {
        name.truncate(head);
        R::index(&row, &mut name);
        is_behind = is_behind || name.get(head..) > Some(behind);
        if !is_behind {
            continue;
        }
        scratch.clear();
        if let Some(value) = R::value(objects, column, &row, &mut scratch) {
            sink(&name, value)?;
        }
    }
    ControlFlow::Continue(())
}

/// The value of exactly one instance; `instance` is the name behind
/// [`Rows::ENTRY`].
pub(crate) fn get<R: Rows>(objects: &Objects<'_>, instance: &[u32], sink: &mut GetSink<'_>) {
    let Some((column, wanted)) = instance
        .split_first()
        .filter(|(column, _)| R::COLUMNS.contains(column))
    else {
        return sink(Value::NoSuchObject);
    };
    let mut name = Name::new();
    let mut scratch = Name::new();
    for row in R::from(objects, wanted) {
        name.clear();
        R::index(&row, &mut name);
        match (*name).cmp(wanted) {
            Ordering::Less => {}
            Ordering::Equal => {
                let value = R::value(objects, *column, &row, &mut scratch);
                return sink(value.unwrap_or(Value::NoSuchInstance));
            }
            Ordering::Greater => break,
        }
    }
    sink(Value::NoSuchInstance);
}
