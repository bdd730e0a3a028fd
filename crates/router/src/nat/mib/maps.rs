//! All address and port maps in the order of their objects (RFC 7659 §3.1.8,
//! §3.1.9), which no table of the engine has.
//!
//! While somebody walks, the first so many behind where he is are copied and
//! put in order: the tables are walked once for that, by a cursor between two
//! batches as for any question. Further ones are copied as he comes there. So
//! a copy is bounded in rows, in age and in how often it is made, and nothing
//! is left out; what comes and goes within its age may be told or not.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use packet::protocol;
use translation::request::Table;

use crate::nat::control::answers::each;
use crate::nat::control::pieces::{Asking, PLACES, Rows, Wanted};

/// Rows of a copy.
const MOST: usize = 128 << 10;
/// How long it is told from.
const AGE: Duration = Duration::from_secs(30);
/// Another one is not made before so many times what the last one took, at
/// most so long: a fifth of the thread's time, and of what it asks of the
/// translation.
const RESTS: u32 = 4;
const LONGEST_REST: Duration = Duration::from_secs(2);

/// Both tables, as far as they were copied.
#[derive(Debug, Default)]
pub struct Maps {
    pub addresses: Sorted<()>,
    pub ports: Sorted<End>,
}

/// An inside address and port.
pub type End = (u32, u16);

/// The index of an address map: inside and alias address.
pub fn address_index(inside: u32, alias: u32) -> u64 {
    u64::from(inside) << 32 | u64::from(alias)
}

/// What [`address_index`] was made of.
pub fn addresses_of(index: u64) -> (Ipv4Addr, Ipv4Addr) {
    let address = |bits: u64| Ipv4Addr::from_bits(bits as u32);
    (address(index >> 32), address(index))
}

/// The index of a port map: protocol, alias address and port.
pub fn port_index(protocol: u8, alias: u32, port: u16) -> u64 {
    u64::from(protocol) << 48 | u64::from(alias) << 16 | u64::from(port)
}

/// The first rows of a table from an index on, in order.
#[derive(Debug)]
pub struct Sorted<R> {
    begin: u64,
    rows: Vec<(u64, R)>,
    /// Whether there are none behind these.
    is_last: bool,
    made: Option<Instant>,
    took: Duration,
}

impl<R> Default for Sorted<R> {
    fn default() -> Self {
        Self {
            begin: 0,
            rows: Vec::new(),
            is_last: false,
            made: None,
            took: Duration::ZERO,
        }
    }
}

impl<R: Copy + Ord> Sorted<R> {
    /// The first row at an index or behind it. `collect` hands over all rows,
    /// in any order.
    pub fn at_or_behind(
        &mut self,
        index: u64,
        collect: impl FnOnce(&mut dyn FnMut(u64, R)) -> Result<()>,
    ) -> Result<Option<(u64, R)>> {
        if !self.covers(index) {
            self.copy(index, collect)?;
        }
        let at = self.rows.partition_point(|(known, _)| *known < index);
        Ok(self.rows.get(at).copied())
    }

    fn covers(&self, index: u64) -> bool {
        let is_fresh = self.made.is_some_and(|made| made.elapsed() < AGE);
        let reaches = self.rows.last().is_some_and(|(last, _)| index <= *last);
        is_fresh && index >= self.begin && (self.is_last || reaches)
    }

    fn copy(
        &mut self,
        begin: u64,
        collect: impl FnOnce(&mut dyn FnMut(u64, R)) -> Result<()>,
    ) -> Result<()> {
        let since = self.made.map_or(LONGEST_REST, |made| made.elapsed());
        let rest = (self.took * RESTS).min(LONGEST_REST).saturating_sub(since);
        thread::sleep(rest);
        let began = Instant::now();
        let mut smallest = Smallest::new(begin, MOST);
        self.made = None;
        collect(&mut |index, row| smallest.note(index, row))?;
        (self.rows, self.is_last) = smallest.end();
        (self.begin, self.made, self.took) = (begin, Some(Instant::now()), began.elapsed());
        Ok(())
    }

    /// Forgets a copy that nobody has asked for in time.
    pub fn age(&mut self) {
        if self.made.is_some_and(|made| made.elapsed() >= AGE) {
            *self = Self {
                took: self.took,
                ..Self::default()
            };
        }
    }
}

/// The smallest of many rows, each index once: of several rows that have it
/// the least.
struct Smallest<R> {
    begin: u64,
    most: usize,
    rows: Vec<(u64, R)>,
    /// The last index that may be among them.
    last: u64,
    is_cut: bool,
}

impl<R: Copy + Ord> Smallest<R> {
    fn new(begin: u64, most: usize) -> Self {
        Self {
            begin,
            most,
            rows: Vec::new(),
            last: u64::MAX,
            is_cut: false,
        }
    }

    fn note(&mut self, index: u64, row: R) {
        if index < self.begin {
            return;
        }
        if index > self.last {
            self.is_cut = true;
            return;
        }
        self.rows.push((index, row));
        if self.rows.len() >= 2 * self.most {
            self.settle();
        }
    }

    fn settle(&mut self) {
        self.rows.sort_unstable();
        self.rows.dedup_by_key(|(index, _)| *index);
        if self.rows.len() > self.most {
            self.rows.truncate(self.most);
            self.is_cut = true;
            self.last = self.rows.last().map_or(u64::MAX, |(last, _)| *last);
        }
    }

    /// The rows, and whether these are all from where they begin.
    fn end(mut self) -> (Vec<(u64, R)>, bool) {
        self.settle();
        (self.rows, !self.is_cut)
    }
}

/// Hands over all address maps: of each flow and shared mapping its own.
pub fn all_addresses(asking: &RefCell<&mut Asking>, sink: &mut dyn FnMut(u64, ())) -> Result<()> {
    all(asking, &mut |end| {
        sink(address_index(end.inside, end.alias), ());
    })
}

/// Hands over all port maps. Where mapping depends on the remote several
/// inside ends may have one alias end; the least of them is told.
pub fn all_ports(asking: &RefCell<&mut Asking>, sink: &mut dyn FnMut(u64, End)) -> Result<()> {
    all(asking, &mut |end| {
        if has_ports(end.protocol) {
            let index = port_index(end.protocol, end.alias, end.alias_port);
            sink(index, (end.inside, end.inside_port));
        }
    })
}

fn has_ports(of: u8) -> bool {
    use protocol::{ICMP, TCP, UDP, UDP_LITE};
    matches!(of, TCP | UDP | UDP_LITE | ICMP)
}

/// An inside end and the alias end that stands for it.
struct Mapped {
    protocol: u8,
    inside: u32,
    inside_port: u16,
    alias: u32,
    alias_port: u16,
}

fn all(asking: &RefCell<&mut Asking>, sink: &mut dyn FnMut(Mapped)) -> Result<()> {
    let asking = &mut **asking.borrow_mut();
    for table in [Table::Flows, Table::Mappings, Table::Leases] {
        each(asking, &Wanted::Rows(table, PLACES), &mut |rows| {
            hand_over(&rows, sink);
            Ok(())
        })?;
    }
    Ok(())
}

fn hand_over(rows: &Rows, sink: &mut dyn FnMut(Mapped)) {
    let mut note = |of, inside, inside_port, alias, alias_port| {
        // What passes as it is has no map.
        if let (IpAddr::V4(inside), IpAddr::V4(alias)) = (inside, alias)
            && inside != alias
        {
            sink(Mapped {
                protocol: of,
                inside: inside.to_bits(),
                inside_port,
                alias: alias.to_bits(),
                alias_port,
            });
        }
    };
    match rows {
        Rows::Flows(rows) => rows.iter().for_each(|row| {
            note(
                row.protocol,
                row.inside,
                row.inside_port,
                row.alias,
                row.alias_port,
            );
        }),
        Rows::Mappings(rows) => rows.iter().for_each(|row| {
            note(
                row.protocol,
                row.inside,
                row.inside_port,
                row.alias,
                row.alias_port,
            );
        }),
        Rows::Leases(rows) => {
            for row in rows {
                for step in 0..row.ports {
                    let ports =
                        [row.inside_port, row.alias_port].map(|port| port.wrapping_add(step));
                    note(row.protocol, row.inside, ports[0], row.alias, ports[1]);
                }
            }
        }
        _ => {}
    }
}

/// A part of the name of a row behind its column: the same in all of them, or
/// some bits of its index.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    Same(u32),
    Bits(u32),
}

/// The name of a row by its index.
pub fn name_of(parts: &[Part], index: u64) -> Vec<u32> {
    let mut left = bits_of(parts);
    let part = |part: &Part| match part {
        Part::Same(number) => *number,
        Part::Bits(bits) => {
            left -= bits;
            ((index >> left) & mask(*bits)) as u32
        }
    };
    parts.iter().map(part).collect()
}

/// The least index whose name is behind this one; `None`: there is none.
pub fn behind(parts: &[Part], name: &[u32]) -> Option<u64> {
    let mut left = bits_of(parts);
    let mut index = 0_u128;
    let mut name = name.iter().copied();
    for part in parts {
        let Some(number) = name.next() else {
            // All that begin so are behind it.
            return u64::try_from(index).ok();
        };
        let beyond = index + (1 << left);
        match part {
            Part::Same(same) if number < *same => return u64::try_from(index).ok(),
            Part::Same(same) if number > *same => return next_of(parts, beyond),
            Part::Same(_) => {}
            Part::Bits(bits) if u64::from(number) > mask(*bits) => return next_of(parts, beyond),
            Part::Bits(bits) => {
                left -= bits;
                index |= u128::from(number) << left;
            }
        }
    }
    next_of(parts, index + 1)
}

fn next_of(parts: &[Part], index: u128) -> Option<u64> {
    let index = u64::try_from(index).ok()?;
    let bits = bits_of(parts);
    (bits == u64::BITS || index >> bits == 0).then_some(index)
}

fn bits_of(parts: &[Part]) -> u32 {
    let bits = |part: &Part| match part {
        Part::Same(_) => 0,
        Part::Bits(bits) => *bits,
    };
    parts.iter().map(bits).sum()
}

fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use lab::Random;

    use super::*;

    const PARTS: [Part; 6] = [
        Part::Same(1),
        Part::Bits(2),
        Part::Same(4),
        Part::Same(7),
        Part::Bits(3),
        Part::Bits(8),
    ];

    #[test]
    fn behind_a_name_is_what_comes_next_in_order() {
        let names: Vec<Vec<u32>> = (0..1 << 13).map(|index| name_of(&PARTS, index)).collect();
        assert!(names.is_sorted());
        let mut random = Random::new(3);
        for _ in 0..20_000 {
            let len = random.below(8);
            let near = name_of(&PARTS, random.number() % (1 << 13));
            let mut asked: Vec<u32> = near.into_iter().chain([3, 9]).take(len).collect();
            if let Some(number) = asked.last_mut() {
                let others = [
                    *number,
                    *number + 1,
                    number.saturating_sub(1),
                    0,
                    300,
                    u32::MAX,
                ];
                *number = others[random.below(others.len())];
            }
            let at = names.partition_point(|name| *name <= asked);
            let expected = (at < names.len()).then_some(at as u64);
            assert_eq!(behind(&PARTS, &asked), expected, "{asked:?}");
        }
        let all = [Part::Bits(32), Part::Bits(32)];
        assert_eq!(behind(&all, &[u32::MAX, u32::MAX]), None);
        assert_eq!(behind(&all, &[u32::MAX]), Some(u64::from(u32::MAX) << 32));
    }

    /// Rows at random, some of them with one index, told piece by piece as if
    /// there was room for few: each once, in order, with the least of its rows.
    #[test]
    fn pieces_of_few_rows_are_all_rows_in_order() {
        let mut random = Random::new(8);
        for most in [1, 2, 7, 100, 5_000] {
            let rows: Vec<(u64, u32)> = (0..1_000)
                .map(|_| (random.number() % 700, random.below(50) as u32))
                .collect();
            let mut expected = rows.clone();
            expected.sort_unstable();
            expected.dedup_by_key(|(index, _)| *index);
            let (mut found, mut begin) = (Vec::new(), 0);
            loop {
                let mut smallest = Smallest::new(begin, most);
                rows.iter()
                    .for_each(|(index, row)| smallest.note(*index, *row));
                let (piece, is_last) = smallest.end();
                assert!(piece.len() <= most);
                found.extend(&piece);
                match found.last() {
                    Some((last, _)) if !is_last => begin = last + 1,
                    _ => break,
                }
            }
            assert_eq!(found, expected, "{most}");
        }
    }

    #[test]
    fn a_copy_is_made_once_for_all_rows_that_it_has() {
        let rows = [(5, 'e'), (3, 'c'), (9, 'i')];
        let made = std::cell::Cell::new(0);
        let mut sorted = Sorted::default();
        let at = |sorted: &mut Sorted<char>, index| {
            let found = sorted.at_or_behind(index, |sink| {
                made.set(made.get() + 1);
                rows.iter().for_each(|(index, row)| sink(*index, *row));
                Ok(())
            });
            found.unwrap()
        };
        assert_eq!(at(&mut sorted, 4), Some((5, 'e')));
        assert_eq!(at(&mut sorted, 6), Some((9, 'i')));
        assert_eq!(at(&mut sorted, 10), None);
        assert_eq!(made.get(), 1);
        // Before where it begins.
        assert_eq!(at(&mut sorted, 0), Some((3, 'c')));
        assert_eq!(made.get(), 2);
        let failed = sorted.at_or_behind(u64::MAX, |_| anyhow::bail!("gone"));
        assert_eq!(failed.unwrap(), None, "it was known already");
    }
}
