//! FINGERPOST-MIB (`docs/FINGERPOST-MIB.txt`): whether the tables that all
//! other objects are made from are complete, what they refused, and when
//! they were last compared with the kernel's.
//!
//! There is no registered number of ours: the module stands in the arc that
//! NET-SNMP-MIB leaves to everybody (`netSnmpPlaypen`), decision 044.

use std::time::Duration;

use snmp::Value;
use snmp::oid::Name;
use table::{Owner, Phase, Refused, Status, Tables};

use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;

/// `fingerpostMIB`.
pub(crate) const ROOT: &[u32] = &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 26224, 1];
/// `fpSource`.
pub(crate) const SOURCE: &[u32] = &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 26224, 1, 1, 1];
/// Its scalars.
pub(crate) const SOURCE_SCALARS: &[u32] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];

/// `TruthValue` (RFC 2579).
fn truth(is_so: bool) -> Value<'static> {
    Value::Integer(if is_so { 1 } else { 2 })
}

/// `FpState`: loading(1), live(2), resyncing(3), degraded(4), ended(5),
/// disconnected(6).
fn state(status: &Status) -> Value<'static> {
    Value::Integer(match status.phase {
        Phase::Loading => 1,
        Phase::Live if status.misses_nothing() => 2,
        Phase::Resyncing => 3,
        Phase::Live => 4,
        Phase::Ended(_) => 5,
        Phase::Disconnected(_) => 6,
    })
}

fn gauge(number: u64) -> Value<'static> {
    Value::Gauge32(number.try_into().unwrap_or(u32::MAX))
}

/// Milliseconds of an age.
fn age(age: Duration) -> Value<'static> {
    gauge(age.as_millis() as u64)
}

/// fpState (1) … fpLastScanDuration (12), fpCountersAge (13).
pub(crate) fn source<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let known = objects.moment.health.known();
    let status = &known.status;
    let scanned = status.last_scan;
    Some(match sub {
        1 => state(status),
        2 => truth(known.incomplete.is_none()),
        3 => Value::OctetString(known.incomplete.as_deref().unwrap_or_default().as_bytes()),
        4 => Value::Counter64(status.events),
        5 => Value::Counter64(status.refused.values().sum()),
        6 => Value::Counter32(status.resyncs as u32),
        7 => Value::Counter32(status.overruns as u32),
        8 => Value::Counter32(status.scans as u32),
        9 => Value::Counter32(status.drift as u32),
        // No scan, no age of it.
        10 => gauge(
            objects
                .moment
                .now
                .saturating_duration_since(scanned?)
                .as_secs(),
        ),
        11 => scanned.map(|_| gauge(status.last_scan_drift))?,
        12 => scanned.map(|_| gauge(status.last_scan_time.as_millis() as u64))?,
        _ => {
            let moment = &objects.moment;
            age(moment
                .now
                .saturating_duration_since(moment.sampled.counters?))
        }
    })
}

/// fpTableTable: a row for each table.
pub(crate) struct TableTable;

/// Name and rows of the table of an index from 0 on.
fn table_of(tables: &Tables, at: usize) -> Option<(&'static str, usize)> {
    let name = Refused::default().by_table().get(at)?.0;
    Some((name, rows(tables, name)))
}

fn rows(tables: &Tables, name: &str) -> usize {
    match name {
        "links" => tables.links.len(),
        "addresses" => tables.addresses.len(),
        "neighbours" => tables.neighbours.len(),
        "routes" => tables.routes.len(),
        "nexthops" => tables.nexthops.len(),
        "rules" => tables.rules.len(),
        _ => tables.fdb.len(),
    }
}

impl Rows for TableTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 26224, 1, 1, 2, 1];
    /// fpTableName, fpTableRows, fpTableComplete, fpTableRefused.
    const COLUMNS: &'static [u32] = &[2, 3, 4, 5];
    /// Index from 1, name and rows.
    type Row<'a> = (u32, &'static str, usize);

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Self::Row<'a>> {
        let first = Seek::new(index).number(u32::MAX).max(1);
        let tables = objects.tables();
        (first..).map_while(move |number| {
            let (name, rows) = table_of(tables, number as usize - 1)?;
            Some((number, name, rows))
        })
    }

    fn index(row: &Self::Row<'_>, name: &mut Name) {
        index::put(name, row.0);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        row: &'r Self::Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        let status = &objects.moment.health.known().status;
        Some(match column {
            2 => Value::OctetString(row.1.as_bytes()),
            3 => gauge(row.2 as u64),
            4 => truth(is_complete(status, row.1)),
            _ => Value::Counter64(status.refused.get(row.1).copied().unwrap_or(0)),
        })
    }
}

/// Whether a table misses nothing: while all are listed again, or no more
/// followed, nobody can say so of any.
fn is_complete(status: &Status, table: &str) -> bool {
    let is_followed = matches!(status.phase, Phase::Live | Phase::Ended(_));
    is_followed && !status.has_gap && !status.incomplete.contains(table)
}

/// fpLinkTable: how old the counters of each link are.
pub(crate) struct LinkTable;

impl Rows for LinkTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 26224, 1, 1, 4, 1];
    /// fpLinkCountersAge.
    const COLUMNS: &'static [u32] = &[2];
    type Row<'a> = u32;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = u32> {
        let first = Seek::new(index).number(u32::MAX);
        objects.tables().links.from(first).map(|link| link.index)
    }

    fn index(link: &u32, name: &mut Name) {
        index::put(name, *link);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        _: u32,
        link: &'r u32,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        objects.counters_age(*link).map(age)
    }
}

/// fpFeederTable: a row for each owner of rows beside the kernel's, by its
/// name.
pub(crate) struct FeederTable;

impl Rows for FeederTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 26224, 1, 1, 3, 1];
    /// fpFeederState, fpFeederComplete, fpFeederRoutes, fpFeederNexthops,
    /// fpFeederRefused.
    const COLUMNS: &'static [u32] = &[2, 3, 4, 5, 6];
    type Row<'a> = (&'a Owner, Status);

    /// There are a thousand at most ([`table::MAX_FEEDERS`]): all are
    /// looked at.
    fn from<'a>(objects: &Objects<'a>, _: &[u32]) -> impl Iterator<Item = Self::Row<'a>> {
        let mut owners: Vec<&'a Owner> = objects.tables().owners().collect();
        // A name as an index begins with its length.
        owners.sort_by_key(|owner| (owner.name().len(), owner.name()));
        owners.into_iter().map(|owner| (owner, owner.status()))
    }

    fn index((owner, _): &Self::Row<'_>, name: &mut Name) {
        index::put(name, owner.name().len() as u32);
        index::put_octets(name, owner.name().as_bytes());
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        (owner, status): &'r Self::Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            2 => state(status),
            3 => truth(status.is_whole()),
            4 => gauge(owner.tables().routes.len() as u64),
            5 => gauge(owner.tables().nexthops.len() as u64),
            _ => Value::Counter64(status.refused.values().sum()),
        })
    }
}
