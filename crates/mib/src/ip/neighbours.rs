//! ipNetToMediaTable and ipNetToPhysicalTable: neighbours in order.
//!
//! Proxy entries have no physical address and entries of `NOARP` are no
//! neighbours (`ip neigh` hides them too): neither is shown.

use std::iter;
use std::net::{IpAddr, Ipv4Addr};

use snmp::Value;
use snmp::oid::Name;
use table::row::neighbour::state;
use table::{Neighbour, NeighbourKey, Neighbours};

use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::interfaces::integer;
use crate::objects::Objects;

fn is_shown(row: &Neighbour) -> bool {
    !row.proxy && row.link != 0 && row.state & state::NOARP == 0 && row.state != state::NONE
}

/// `ipNetToMediaType`, `ipNetToPhysicalType`: invalid(2) where the lookup
/// failed, dynamic(3), static(4).
fn kind(row: &Neighbour) -> i32 {
    match row.state {
        all if all & state::PERMANENT != 0 => 4,
        all if all & state::FAILED != 0 => 2,
        _ => 3,
    }
}

/// `ipNetToPhysicalState`.
fn reachability(row: &Neighbour) -> i32 {
    match row.state {
        all if all & (state::REACHABLE | state::PERMANENT) != 0 => 1,
        all if all & state::STALE != 0 => 2,
        all if all & state::DELAY != 0 => 3,
        all if all & state::PROBE != 0 => 4,
        all if all & state::FAILED != 0 => 5,
        all if all & state::INCOMPLETE != 0 => 7,
        _ => 6,
    }
}

fn first_of(link: u32, address: IpAddr) -> NeighbourKey {
    NeighbourKey {
        link,
        address,
        proxy: false,
    }
}

/// ipNetToMediaTable: IPv4 neighbours by link and address.
pub(crate) struct MediaTable;

impl Rows for MediaTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 22, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4];
    type Row<'a> = &'a Neighbour;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Neighbour> {
        let mut seek = Seek::new(index);
        let link = seek.number(u32::MAX);
        let all = &objects.tables().neighbours;
        v4_rows(all, first_of(link, seek.v4().into()))
    }

    fn index(row: &&Neighbour, name: &mut Name) {
        index::put(name, row.link);
        index::put_octets(name, &octets(row));
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r &'a Neighbour,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            1 => integer(row.link),
            2 => Value::OctetString(row.lladdr.octets()),
            3 => Value::IpAddress(octets(row)),
            _ => Value::Integer(kind(row)),
        })
    }
}

fn octets(row: &Neighbour) -> [u8; 4] {
    match row.address {
        IpAddr::V4(v4) => v4.octets(),
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED.octets(),
    }
}

fn run(all: &Neighbours, first: NeighbourKey) -> impl Iterator<Item = &Neighbour> {
    all.from(&first).map(|row| &**row)
}

/// IPv4 neighbours; those of IPv6, behind them on each link, are leapt
/// over with one seek a link.
fn v4_rows(all: &Neighbours, first: NeighbourKey) -> impl Iterator<Item = &Neighbour> {
    let mut rows = run(all, first);
    iter::from_fn(move || {
        loop {
            let row = rows.next()?;
            if row.address.is_ipv6() {
                let next = row.link.checked_add(1)?;
                rows = run(all, first_of(next, Ipv4Addr::UNSPECIFIED.into()));
            } else if is_shown(row) {
                return Some(row);
            }
        }
    })
}

/// ipNetToPhysicalTable: neighbours of both families.
pub(crate) struct PhysicalTable;

impl Rows for PhysicalTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 35, 1];
    const COLUMNS: &'static [u32] = &[4, 5, 6, 7, 8];
    type Row<'a> = &'a Neighbour;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Neighbour> {
        let mut seek = Seek::new(index);
        let link = seek.number(u32::MAX);
        let first = first_of(link, seek.inet());
        run(&objects.tables().neighbours, first).filter(|row| is_shown(row))
    }

    fn index(row: &&Neighbour, name: &mut Name) {
        index::put(name, row.link);
        index::put_inet(name, row.address);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        row: &'r &'a Neighbour,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            4 => Value::OctetString(row.lladdr.octets()),
            5 => Value::TimeTicks(last_updated(objects, row)),
            6 => Value::Integer(kind(row)),
            7 => Value::Integer(reachability(row)),
            // active(1)
            _ => Value::Integer(1),
        })
    }
}

/// `ipNetToPhysicalLastUpdated`, from the ages last sampled; 0 without.
fn last_updated(objects: &Objects<'_>, row: &Neighbour) -> u32 {
    let moment = &objects.moment;
    let at = || {
        let sample = objects.tables().neighbour_samples.get(&row.key())?;
        let begun = moment.sampled.neighbours?;
        let age = moment.now.saturating_duration_since(begun).as_millis() as u64;
        moment
            .up_millis
            .checked_sub(age + sample.ages.updated_millis)
    };
    at().map_or(0, |at| moment.ticks(at))
}
