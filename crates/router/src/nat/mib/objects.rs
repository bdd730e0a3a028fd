//! What NATV2-MIB (RFC 7659 §4) has of a translation. All its workers are one
//! instance with one pool; realms are `internal` and `external`.
//!
//! What was counted for each subscriber is told where that is asked for
//! (`subscriber_counters yes`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;

use anyhow::Result;
use nat::{Config, Dependence, Direction, Pooling, Protocol, SubscriberView, Verdict};
use snmp::Value;
use snmp::agentx::OwnedValue;
use snmp::mib::{Mib, WalkSink};
use translation::request::Table;

use super::maps::{self, Maps, Part};
use super::thresholds::{INSTANCE_SECS, POOL_SECS, SUBSCRIBER_SECS, Values};
use super::{NATV2, Thresholds};
use crate::nat::control::answers::Overview;
use crate::nat::control::pieces::{Asking, Place, Rows, Wanted};

/// Entries, below [`NATV2`].
const SUBSCRIBERS: [u32; 3] = [1, 1, 1];
const INSTANCE: [u32; 3] = [2, 1, 1];
const PROTOCOL: [u32; 3] = [2, 2, 1];
const POOL: [u32; 3] = [2, 3, 1];
const RANGE: [u32; 3] = [2, 4, 1];
const ADDRESS_MAP: [u32; 3] = [2, 5, 1];
const PORT_MAP: [u32; 3] = [2, 6, 1];
/// Columns of a subscriber, and those that are told where it is counted.
const SUBSCRIBER_COLUMNS: [u32; 15] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17];
const COUNTED_COLUMNS: std::ops::RangeInclusive<u32> = 8..=12;
/// Columns of an address map and of a port map.
const ADDRESS_MAP_COLUMNS: std::ops::RangeInclusive<u32> = 6..=12;
const PORT_MAP_COLUMNS: std::ops::RangeInclusive<u32> = 7..=14;
/// `internal`, an IPv4 address, and a number: the alias address, so that a
/// map has the same one as long as it is there.
const ADDRESS_MAP_INDEX: [Part; 17] = index(&[Part::Same(1)], *b"internal", 32);
/// The protocol, `external`, an IPv4 address, and a port.
const PORT_MAP_INDEX: [Part; 18] = index(&[Part::Same(1), Part::Bits(8)], *b"external", 16);

/// An index: what stands first, a realm's name and an IPv4 address, each with
/// its length before it, and a number of some bits.
const fn index<const N: usize>(first: &[Part], realm: [u8; 8], last: u32) -> [Part; N] {
    let mut parts = [Part::Bits(8); N];
    let mut at = 0;
    while at < first.len() {
        parts[at] = first[at];
        at += 1;
    }
    parts[at] = Part::Same(realm.len() as u32);
    at += 1;
    let mut letter = 0;
    while letter < realm.len() {
        parts[at] = Part::Same(realm[letter] as u32);
        at += 1;
        letter += 1;
    }
    parts[at] = Part::Same(IPV4 as u32);
    parts[at + 1] = Part::Same(4);
    // Of the four octets each is eight bits.
    parts[N - 1] = Part::Bits(last);
    parts
}

/// An engine has fewer places than this: with the engine's number above them
/// they are an index.
const PLACES_BITS: u32 = 24;
/// Places looked at for some rows of subscribers.
const PIECE: usize = 256;
/// `InetAddressType`: ipv4 (RFC 4001).
const IPV4: i32 = 1;
/// No threshold.
const NONE: i32 = -1;

/// The objects at one moment; subscribers as they are when they are asked
/// for.
pub struct Objects<'a> {
    small: BTreeMap<Vec<u32>, OwnedValue>,
    asking: RefCell<&'a mut Asking>,
    maps: RefCell<&'a mut Maps>,
    /// The alias addresses, in order: what has one is of the pool.
    pool: Vec<Ipv4Addr>,
    started_ticks: u32,
    quota: u32,
    is_counted: bool,
    threshold: Option<i32>,
    /// The translation did not answer: what was told is not whole.
    failed: Cell<bool>,
}

impl<'a> Objects<'a> {
    /// Asks the translation. `started_ticks`: the master's clock as it
    /// started.
    pub fn look(
        asking: &'a mut Asking,
        maps: &'a mut Maps,
        thresholds: &Thresholds,
        started_ticks: u32,
    ) -> Result<(Self, Seen)> {
        let overview = Overview::of(asking)?;
        let seen = Seen::of(&overview);
        let small = Small {
            overview: &overview,
            thresholds,
            started_ticks,
        };
        let quota = overview.config.subscribers.quotas.ports.all;
        let objects = Self {
            small: small.all(),
            asking: RefCell::new(asking),
            maps: RefCell::new(maps),
            pool: sorted(&overview.config.addresses),
            is_counted: overview.config.subscribers.counted,
            threshold: thresholds.notify_subscriber_mappings,
            started_ticks,
            quota: if quota == u32::MAX { 0 } else { quota },
            failed: Cell::new(false),
        };
        Ok((objects, seen))
    }

    /// Whether the translation did not answer meanwhile.
    pub fn failed(&self) -> bool {
        self.failed.get()
    }

    /// Some subscribers from an index on, and where to go on.
    fn subscribers(&self, index: u32) -> (Vec<(u32, SubscriberView)>, Option<u32>) {
        let place = index.saturating_sub(1);
        let from = Place::new(
            (place >> PLACES_BITS) as usize,
            place & ((1 << PLACES_BITS) - 1),
        );
        let wanted = Wanted::Rows(Table::Subscribers, PIECE);
        let Ok(piece) = self.asking.borrow_mut().ask(wanted, from) else {
            self.failed.set(true);
            return (Vec::new(), None);
        };
        let Rows::Subscribers(rows) = piece.rows else {
            return (Vec::new(), None);
        };
        let rows = rows
            .into_iter()
            .map(|row| (index_of(from.engine(), row.place), row));
        let next = piece.next.map(|next| index_of(next.engine(), next.place()));
        (rows.collect(), next)
    }

    fn subscriber_value(&self, column: u32, row: &SubscriberView) -> OwnedValue {
        let of = row.subscriber;
        let counted = row.counted.unwrap_or_default();
        let bits = 32 - (of.last.to_bits() ^ of.first.to_bits()).count_ones();
        match column {
            2 => text("internal"),
            3 => OwnedValue::Integer(IPV4),
            4 => octets(of.first),
            5 => OwnedValue::Gauge32(bits),
            6 => OwnedValue::Gauge32(row.alias.is_some().into()),
            7 => OwnedValue::Gauge32(row.ports.iter().sum()),
            8 => OwnedValue::Counter64(counted.translated),
            9 => OwnedValue::Counter64(counted.addresses_made),
            10 => OwnedValue::Counter64(counted.mappings_made),
            11 => OwnedValue::Counter64(counted.addresses_exhausted),
            12 => OwnedValue::Counter64(counted.refused),
            // Its place may have been another's before.
            14 => OwnedValue::TimeTicks(
                self.started_ticks
                    .saturating_add((counted.since_millis / 10) as u32),
            ),
            15 => OwnedValue::Gauge32(self.quota),
            16 => threshold(self.threshold),
            _ => OwnedValue::Gauge32(SUBSCRIBER_SECS),
        }
    }

    fn subscriber_columns(&self) -> impl Iterator<Item = u32> {
        let is_told = |one: &u32| self.is_counted || !COUNTED_COLUMNS.contains(one);
        SUBSCRIBER_COLUMNS.into_iter().filter(is_told)
    }

    /// The index of the subscriber of an inside address; 0: there is none.
    fn subscriber_of(&self, inside: Ipv4Addr) -> u32 {
        let asking = &mut **self.asking.borrow_mut();
        let mut found = 0;
        let mut place = Some(Place::default());
        while let Some(from) = place {
            let Ok(piece) = asking.ask(Wanted::SubscriberAt(inside), from) else {
                self.failed.set(true);
                return 0;
            };
            if let Rows::Subscribers(rows) = &piece.rows
                && let Some(row) = rows.first()
            {
                found = index_of(from.engine(), row.place);
            }
            place = piece.next.filter(|_| found == 0);
        }
        found
    }

    fn address_map(&self, index: u64) -> Option<(u64, ())> {
        let maps = &mut **self.maps.borrow_mut();
        let collect = |sink: &mut dyn FnMut(u64, ())| maps::all_addresses(&self.asking, sink);
        self.or_fail(maps.addresses.at_or_behind(index, collect))
    }

    fn port_map(&self, index: u64) -> Option<(u64, maps::End)> {
        let maps = &mut **self.maps.borrow_mut();
        let collect = |sink: &mut dyn FnMut(u64, maps::End)| maps::all_ports(&self.asking, sink);
        self.or_fail(maps.ports.at_or_behind(index, collect))
    }

    /// Pool 1, or none.
    fn pool_of(&self, alias: Ipv4Addr) -> OwnedValue {
        OwnedValue::Gauge32(self.pool.binary_search(&alias).is_ok().into())
    }

    fn or_fail<T>(&self, found: Result<Option<T>>) -> Option<T> {
        found.unwrap_or_else(|_| {
            self.failed.set(true);
            None
        })
    }

    fn address_map_value(&self, column: u32, index: u64) -> OwnedValue {
        let (inside, alias) = maps::addresses_of(index);
        match column {
            6 | 9 => OwnedValue::Integer(IPV4),
            7 => octets(inside),
            8 => text("external"),
            10 => octets(alias),
            11 => self.pool_of(alias),
            _ => OwnedValue::Gauge32(self.subscriber_of(inside)),
        }
    }

    fn port_map_value(&self, column: u32, index: u64, (inside, port): maps::End) -> OwnedValue {
        let (inside, alias) = (Ipv4Addr::from_bits(inside), index >> 16);
        match column {
            7 => text("internal"),
            8 | 10 => OwnedValue::Integer(IPV4),
            9 | 11 => octets(inside),
            12 => OwnedValue::Gauge32(port.into()),
            13 => self.pool_of(Ipv4Addr::from_bits(alias as u32)),
            _ => OwnedValue::Gauge32(self.subscriber_of(inside)),
        }
    }

    /// All maps behind a name, column by column.
    fn walk_maps(&self, after: &[u32], sink: &mut WalkSink<'_>) -> ControlFlow<()> {
        self.walk_table(after, &ADDRESS_TABLE, sink)?;
        self.walk_table(after, &PORT_TABLE, sink)
    }

    fn walk_table(
        &self,
        after: &[u32],
        table: &MapTable,
        sink: &mut WalkSink<'_>,
    ) -> ControlFlow<()> {
        let entry = [&NATV2[..], &table.entry].concat();
        let (first, behind) = match after.strip_prefix(&entry[..]) {
            Some([]) => (0, &[][..]),
            Some([column, behind @ ..]) => (*column, behind),
            None if after < &entry[..] => (0, &[][..]),
            None => return ControlFlow::Continue(()),
        };
        for column in table.columns.clone().filter(|one| *one >= first) {
            let mut next = match column == first {
                true => maps::behind(table.index, behind),
                false => Some(0),
            };
            while let Some((index, value)) = next.and_then(|next| (table.row)(self, column, next)) {
                let name = [&entry[..], &[column], &maps::name_of(table.index, index)].concat();
                sink(&name, value.value())?;
                next = index.checked_add(1);
            }
        }
        ControlFlow::Continue(())
    }

    fn get_map(&self, table: &MapTable, instance: &[u32]) -> OwnedValue {
        let [column, rest @ ..] = instance else {
            return OwnedValue::NoSuchObject;
        };
        if !table.columns.contains(column) {
            return OwnedValue::NoSuchObject;
        }
        // A whole name is the one before what is behind it.
        let index = match maps::behind(table.index, rest) {
            Some(behind) => behind.checked_sub(1),
            None => Some(u64::MAX),
        };
        let index = index.filter(|index| maps::name_of(table.index, *index) == rest);
        let found = index.and_then(|index| {
            let (at, value) = (table.row)(self, *column, index)?;
            (at == index).then_some(value)
        });
        found.unwrap_or(OwnedValue::NoSuchInstance)
    }

    /// All subscribers behind a name, column by column.
    fn walk_subscribers(&self, after: &[u32], sink: &mut WalkSink<'_>) -> ControlFlow<()> {
        let entry = [&NATV2[..], &SUBSCRIBERS].concat();
        let (column, mut index) = match after.strip_prefix(&entry[..]) {
            Some([]) => (0, 0),
            Some([column]) => (*column, 0),
            Some([column, index, ..]) => (*column, *index),
            None if after < &entry[..] => (0, 0),
            None => return ControlFlow::Continue(()),
        };
        for known in self.subscriber_columns().filter(|one| *one >= column) {
            // Index 0 is nobody's.
            let mut from = Some(if known == column {
                index.saturating_add(1)
            } else {
                1
            });
            index = 0;
            while let Some(at) = from {
                let (rows, next) = self.subscribers(at);
                for (number, row) in rows {
                    let name = [&entry[..], &[known, number]].concat();
                    sink(&name, self.subscriber_value(known, &row).value())?;
                }
                from = next;
            }
        }
        ControlFlow::Continue(())
    }

    fn get_subscriber(&self, instance: &[u32]) -> OwnedValue {
        let [column, rest @ ..] = instance else {
            return OwnedValue::NoSuchObject;
        };
        if !self.subscriber_columns().any(|known| known == *column) {
            return OwnedValue::NoSuchObject;
        }
        let index = match rest {
            [index] if *index > 0 => *index,
            _ => return OwnedValue::NoSuchInstance,
        };
        let (rows, _) = self.subscribers(index);
        let found = rows.iter().find(|(number, _)| *number == index);
        found.map_or(OwnedValue::NoSuchInstance, |(_, row)| {
            self.subscriber_value(*column, row)
        })
    }

    fn get_small(&self, name: &[u32]) -> OwnedValue {
        if let Some(value) = self.small.get(name) {
            return value.clone();
        }
        // An entry's name, and a column: is there any of it?
        let column = name.get(..NATV2.len() + 4).unwrap_or(name);
        let mut of_column = self.small.range(column.to_vec()..);
        let is_known = of_column
            .next()
            .is_some_and(|(one, _)| one.starts_with(column));
        match is_known && name.len() > column.len() {
            true => OwnedValue::NoSuchInstance,
            false => OwnedValue::NoSuchObject,
        }
    }
}

impl Mib for Objects<'_> {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        for (place, name) in names.iter().enumerate() {
            let value = match name
                .strip_prefix(&NATV2[..])
                .and_then(|of| of.split_at_checked(3))
            {
                Some((entry, instance)) if entry == SUBSCRIBERS => self.get_subscriber(instance),
                Some((entry, instance)) if entry == ADDRESS_MAP => {
                    self.get_map(&ADDRESS_TABLE, instance)
                }
                Some((entry, instance)) if entry == PORT_MAP => self.get_map(&PORT_TABLE, instance),
                _ => self.get_small(name),
            };
            sink(place, value.value());
        }
    }

    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>) {
        if self.walk_subscribers(after, sink).is_break() {
            return;
        }
        let behind = (
            std::ops::Bound::Excluded(after.to_vec()),
            std::ops::Bound::Unbounded,
        );
        for (name, value) in self.small.range(behind) {
            if sink(name, value.value()).is_break() {
                return;
            }
        }
        let _ = self.walk_maps(after, sink);
    }
}

/// A table of maps: its columns, its index, and the first row at or behind
/// an index, with what a column says of it.
struct MapTable {
    entry: [u32; 3],
    columns: std::ops::RangeInclusive<u32>,
    index: &'static [Part],
    row: fn(&Objects<'_>, u32, u64) -> Option<(u64, OwnedValue)>,
}

const ADDRESS_TABLE: MapTable = MapTable {
    entry: ADDRESS_MAP,
    columns: ADDRESS_MAP_COLUMNS,
    index: &ADDRESS_MAP_INDEX,
    row: |of, column, index| {
        let (index, ()) = of.address_map(index)?;
        Some((index, of.address_map_value(column, index)))
    },
};

const PORT_TABLE: MapTable = MapTable {
    entry: PORT_MAP,
    columns: PORT_MAP_COLUMNS,
    index: &PORT_MAP_INDEX,
    row: |of, column, index| {
        let (index, end) = of.port_map(index)?;
        Some((index, of.port_map_value(column, index, end)))
    },
};

/// The index of a subscriber: its engine's number and its place there.
pub fn index_of(engine: usize, place: u32) -> u32 {
    let engine = u32::try_from(engine).unwrap_or(u32::MAX >> PLACES_BITS);
    ((engine << PLACES_BITS) | place).saturating_add(1)
}

/// What thresholds are held against, and notifications tell.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub values: Values,
    /// The protocol that has most mappings, and how many.
    pub most: (u32, u32),
    pub mappings_made: u64,
    pub subscribers_made: u64,
}

impl Seen {
    fn of(overview: &Overview) -> Self {
        let statistics = &overview.statistics;
        let counted = PROTOCOLS.map(|(number, of)| (statistics.of(of).mappings as u64, number));
        let (most, number) = counted.into_iter().max().unwrap_or_default();
        let config = &overview.config;
        let ports = u64::from(ports(config)) * config.addresses.len() as u64;
        let made = Protocol::ALL.map(|of| statistics.of(of).mappings_made);
        let usage = (most * 100).checked_div(ports).unwrap_or(0).min(100);
        Self {
            values: Values {
                pool_usage: usage as u8,
                subscribers: statistics.subscribers as u64,
                mappings: all_mappings(overview),
            },
            most: (number, most as u32),
            mappings_made: made.iter().sum(),
            subscribers_made: statistics.subscribers_made,
        }
    }
}

/// Protocols that have a row, by number.
const PROTOCOLS: [(u32, Protocol); 3] =
    [(1, Protocol::Icmp), (6, Protocol::Tcp), (17, Protocol::Udp)];

fn all_mappings(overview: &Overview) -> u64 {
    let of = Protocol::ALL.map(|of| overview.statistics.of(of).mappings as u64);
    of.iter().sum()
}

/// Ports of an address.
fn ports(config: &Config) -> u32 {
    u32::from(*config.ports.end()) - u32::from(*config.ports.start()) + 1
}

/// The tables of few rows.
struct Small<'a> {
    overview: &'a Overview,
    thresholds: &'a Thresholds,
    started_ticks: u32,
}

impl Small<'_> {
    fn all(&self) -> BTreeMap<Vec<u32>, OwnedValue> {
        let mut all = BTreeMap::new();
        let mut put = |entry: [u32; 3], column: u32, index: &[u32], value| {
            let name = [&NATV2[..], &entry, &[column], index].concat();
            all.insert(name, value);
        };
        for (column, value) in self.instance() {
            put(INSTANCE, column, &[1], value);
        }
        for (number, of) in PROTOCOLS {
            let of = self.overview.statistics.of(of);
            let columns = [
                (3, OwnedValue::Gauge32(gauge(of.mappings as u64))),
                (4, OwnedValue::Counter64(of.translated)),
                (5, OwnedValue::Counter64(of.mappings_made)),
                (6, OwnedValue::Counter64(of.refused)),
            ];
            for (column, value) in columns {
                put(PROTOCOL, column, &[1, number], value);
            }
        }
        for (column, value) in self.pool() {
            put(POOL, column, &[1, 1], value);
        }
        for (row, (first, last)) in ranges(&self.overview.config.addresses) {
            put(RANGE, 4, &[1, 1, row], octets(first));
            put(RANGE, 5, &[1, 1, row], octets(last));
        }
        all
    }

    /// Of mapping and filtering there is one value: UDP's.
    fn instance(&self) -> Vec<(u32, OwnedValue)> {
        let statistics = &self.overview.statistics;
        let config = &self.overview.config;
        let packets = |verdict| {
            let of = |direction| statistics.packets(direction, verdict);
            OwnedValue::Counter64(of(Direction::Out) + of(Direction::In))
        };
        let made = Protocol::ALL.map(|of| statistics.of(of).mappings_made);
        let translated = Protocol::ALL.map(|of| statistics.of(of).translated);
        let refused = Protocol::ALL.map(|of| statistics.of(of).refused);
        // Fragments that find no room are told as a full table as well.
        let too_many = statistics.packets(Direction::Out, Verdict::TableFull);
        let full = too_many.saturating_sub(statistics.fragments_refused);
        let addressless = statistics.addresses_exhausted;
        let failed = refused.iter().sum::<u64>();
        let failed = failed.saturating_sub(too_many + addressless);
        let fragments = match config.limits.fragments.held_bytes {
            0 => 1,
            _ => 2,
        };
        let pending = config.limits.fragments.datagrams as u64;
        let mut all = vec![
            (2, text("fingerpost")),
            (3, dependence(config.udp.mapping)),
            (4, dependence(config.udp.filtering)),
            (
                5,
                OwnedValue::Integer((config.pooling == Pooling::Paired).into()),
            ),
            (6, OwnedValue::Integer(fragments)),
            (8, OwnedValue::Gauge32(gauge(all_mappings(self.overview)))),
            (9, OwnedValue::Counter64(translated.iter().sum())),
            (11, OwnedValue::Counter64(made.iter().sum())),
            (12, OwnedValue::Counter64(0)),
            (13, OwnedValue::Counter64(full)),
            (15, OwnedValue::Counter64(addressless)),
            (16, OwnedValue::Counter64(failed)),
            (17, OwnedValue::Counter64(statistics.fragments_dropped)),
            (18, packets(Verdict::HelperRefused)),
            (19, OwnedValue::TimeTicks(self.started_ticks)),
            (20, threshold(self.thresholds.notify_subscribers)),
            (21, threshold(self.thresholds.notify_mappings)),
            (22, OwnedValue::Gauge32(INSTANCE_SECS)),
            (23, OwnedValue::Gauge32(0)),
            (
                24,
                OwnedValue::Gauge32(gauge(self.overview.flows_max as u64)),
            ),
            (25, OwnedValue::Gauge32(gauge(pending))),
        ];
        // Who has which address is known where subscribers are.
        if self.knows_subscribers() {
            let subscribers = statistics.subscribers as u64;
            let most = self.overview.subscribers_max as u64;
            all.extend([
                (7, OwnedValue::Gauge32(gauge(subscribers))),
                (10, OwnedValue::Counter64(statistics.subscribers_made)),
                (14, OwnedValue::Counter64(statistics.subscribers_refused)),
                (26, OwnedValue::Gauge32(gauge(most))),
            ]);
        }
        all
    }

    fn pool(&self) -> Vec<(u32, OwnedValue)> {
        let statistics = &self.overview.statistics;
        let config = &self.overview.config;
        let made = Protocol::ALL.map(|of| statistics.of(of).mappings_made);
        let addressless = statistics.addresses_exhausted;
        let exhausted = statistics.packets(Direction::Out, Verdict::PortsExhausted);
        let exhausted = exhausted.saturating_sub(addressless);
        let percent = |at: Option<u8>| threshold(at.map(i32::from));
        let mut all = vec![
            (3, text("external")),
            (4, OwnedValue::Integer(IPV4)),
            (5, OwnedValue::Gauge32((*config.ports.start()).into())),
            (6, OwnedValue::Gauge32((*config.ports.end()).into())),
            (8, OwnedValue::Gauge32(gauge(all_mappings(self.overview)))),
            (10, OwnedValue::Counter64(made.iter().sum())),
            (11, OwnedValue::Counter64(addressless)),
            (12, OwnedValue::Counter64(exhausted)),
            (13, OwnedValue::TimeTicks(self.started_ticks)),
            (14, percent(self.thresholds.notify_pool_low)),
            (15, percent(self.thresholds.notify_pool_high)),
            (18, OwnedValue::Gauge32(POOL_SECS)),
        ];
        if self.knows_subscribers() {
            let subscribers = statistics.subscribers as u64;
            all.push((7, OwnedValue::Gauge32(gauge(subscribers))));
            all.push((9, OwnedValue::Counter64(statistics.subscribers_made)));
        }
        all
    }

    fn knows_subscribers(&self) -> bool {
        let config = &self.overview.config;
        config.blocks.is_some()
            || config.subscribers.quotas.are_any()
            || !config.subscribers.inside.is_empty()
    }
}

fn dependence(of: Dependence) -> OwnedValue {
    OwnedValue::Integer(match of {
        Dependence::Endpoint => 0,
        Dependence::Address => 1,
        Dependence::AddressAndPort => 2,
    })
}

fn threshold(at: Option<i32>) -> OwnedValue {
    OwnedValue::Integer(at.unwrap_or(NONE))
}

fn gauge(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn text(text: &str) -> OwnedValue {
    OwnedValue::OctetString(text.as_bytes().into())
}

fn octets(address: Ipv4Addr) -> OwnedValue {
    OwnedValue::OctetString(address.octets().into())
}

fn sorted(addresses: &[Ipv4Addr]) -> Vec<Ipv4Addr> {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted
}

/// Addresses in a row, from 1.
fn ranges(addresses: &[Ipv4Addr]) -> impl Iterator<Item = (u32, (Ipv4Addr, Ipv4Addr))> {
    let mut ranges: Vec<(Ipv4Addr, Ipv4Addr)> = Vec::new();
    for address in sorted(addresses) {
        match ranges.last_mut() {
            Some((_, last)) if last.to_bits() + 1 == address.to_bits() => *last = address,
            _ => ranges.push((address, address)),
        }
    }
    (1..).zip(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_as_ranges() {
        let at = |text: &str| -> Ipv4Addr { text.parse().unwrap() };
        let addresses = ["192.0.2.2", "192.0.2.1", "192.0.2.9"].map(at);
        let found: Vec<_> = ranges(&addresses).collect();
        let first = (at("192.0.2.1"), at("192.0.2.2"));
        assert_eq!(found, [(1, first), (2, (at("192.0.2.9"), at("192.0.2.9")))]);
        assert_eq!(ranges(&[]).count(), 0);
    }
}
