//! The rows of an access path, from a position on, into a [`Sink`] (a
//! printer, or whoever takes rows as they are): the one place that follows
//! what [`crate::plan`] chose. A whole answer is the scan without bounds.

use std::io;
use std::sync::Arc;

use ipnet::IpNet;
use table::{
    Address, AddressKey, AddressPlace, FdbEntry, FdbKey, Link, LinkLayerAddress, Links, Neighbour,
    NeighbourKey, Nexthop, Rule, RuleKey, Tables,
};

use super::Bounds;
use super::position::{self, Position};
use super::sink::Sink;
use crate::answer_error::AnswerError;
use crate::plan::{Access, plan};
use crate::printer::Printer;
use crate::question::Object;
use crate::selection::BadQuestion;

/// Whether the rows came to their end before a bound was reached.
pub(super) type Ended = io::Result<bool>;

/// Rows between two looks at whether anybody waits for them.
const ROWS_BETWEEN_LOOKS: usize = 4_096;

/// A scan under way.
pub(crate) struct Scan<'p, S> {
    pub(super) sink: &'p mut S,
    pub(super) tables: &'p Tables,
    bounds: Bounds,
    /// Rows printed at most.
    pub(super) most_rows: u64,
    /// Rows looked at.
    visited: usize,
    /// Whether nobody waits for the rows any more.
    is_over: Option<&'p dyn Fn() -> bool>,
    /// The position of the last row looked at.
    pub(crate) last: Option<Position>,
}

impl<'p, S: Sink> Scan<'p, S> {
    /// A scan that ends at a bound, or when so many rows were printed.
    pub(crate) fn new(sink: &'p mut S, tables: &'p Tables, bounds: Bounds, most_rows: u64) -> Self {
        Self {
            sink,
            tables,
            bounds,
            most_rows,
            visited: 0,
            is_over: None,
            last: None,
        }
    }

    /// A scan of all rows.
    pub(crate) fn whole(sink: &'p mut S, tables: &'p Tables) -> Self {
        Self::new(sink, tables, Bounds::NONE, u64::MAX)
    }

    /// The same, until nobody waits for the rows any more, which is an error.
    pub(crate) fn until(self, is_over: &'p dyn Fn() -> bool) -> Self {
        Self {
            is_over: Some(is_over),
            ..self
        }
    }

    /// Prints the rows of the printer's selection that come after a
    /// position; whether these were the last. Addresses are a row each.
    ///
    /// A seek, then O(1) for each row of the access path.
    pub(crate) fn run(&mut self, after: Option<&Position>) -> Result<bool, AnswerError> {
        let selection = self.sink.selection();
        let access = plan(selection);
        let foreign = || AnswerError::from(BadQuestion::ForeignPosition);
        let is_plain = selection.is_by_table_only();
        let ended = match selection.object {
            Object::Link => {
                let after = key(after, Position::link).ok_or_else(foreign)?;
                self.links(&access, after)
            }
            Object::Addr => {
                let ended = match access {
                    Access::Inside(net) => {
                        let after = key(after, Position::address).ok_or_else(foreign)?;
                        self.addresses_inside(net, after)
                    }
                    access => {
                        let after = key(after, Position::address_place).ok_or_else(foreign)?;
                        self.addresses(&access, after)
                    }
                };
                return Ok(ended?);
            }
            Object::Neigh => {
                let after = key(after, Position::neighbour).ok_or_else(foreign)?;
                self.neighbours(&access, after)
            }
            Object::Route => {
                let after = key(after, Position::route).ok_or_else(foreign)?;
                match access {
                    Access::ByTable(tables, family) if is_plain && self.sink.only_counts() => {
                        return Ok(self.count_routes(tables, family, after));
                    }
                    access => self.routes(&access, after),
                }
            }
            Object::Nexthop => {
                let after = key(after, Position::nexthop).ok_or_else(foreign)?;
                self.nexthops(&access, after)
            }
            Object::Rule => {
                let after = key(after, Position::rule).ok_or_else(foreign)?;
                self.rules(&access, after)
            }
            Object::Fdb => {
                let after = key(after, Position::fdb).ok_or_else(foreign)?;
                self.fdb(&access, after)
            }
        };
        Ok(ended?)
    }

    /// Rows looked at so far.
    #[cfg(test)]
    pub(crate) fn visited(&self) -> usize {
        self.visited
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.visited >= self.bounds.visited
            || self.sink.rows() >= self.most_rows
            || self.sink.octets() >= self.bounds.bytes
    }

    /// Shows rows until there are no more or a bound is reached.
    #[inline]
    pub(super) fn rows<R>(
        &mut self,
        rows: impl Iterator<Item = R>,
        show: impl Fn(&mut S, &R) -> io::Result<()>,
        position: impl Fn(&R) -> Position,
    ) -> Ended {
        let mut last = None;
        let mut ended = true;
        for row in rows {
            if self.is_full() {
                ended = false;
                break;
            }
            show(self.sink, &row)?;
            self.visited += 1;
            if self.visited.is_multiple_of(ROWS_BETWEEN_LOOKS)
                && self.is_over.is_some_and(|it| it())
            {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            last = Some(row);
        }
        if let Some(last) = last.filter(|_| self.bounds != Bounds::NONE) {
            self.last = Some(position(&last));
        }
        Ok(ended)
    }

    fn links(&mut self, access: &Access, after: Option<u32>) -> Ended {
        let all = &self.tables.links;
        let show = |sink: &mut S, row: &&Arc<Link>| sink.link(row);
        let position = |row: &&Arc<Link>| Position::Link(row.index);
        let Some(first) = behind(after) else {
            return Ok(true);
        };
        match access {
            Access::Key(index) => {
                let row = all.get(*index).filter(|row| row.index >= first);
                self.rows(row.into_iter(), show, position)
            }
            Access::Keys(low, high) => {
                let rows = all.from(first.max(*low));
                self.rows(rows.take_while(|row| row.index <= *high), show, position)
            }
            Access::ByLink(links, _) => {
                let links = from_link(links, first).iter();
                self.rows(links.filter_map(|link| all.get(*link)), show, position)
            }
            _ => self.rows(all.from(first), show, position),
        }
    }

    fn address(links: &Links, sink: &mut S, row: &Arc<Address>) -> io::Result<()> {
        match links.get(row.link) {
            Some(link) => sink.address(link, row),
            None => Ok(()),
        }
    }

    fn addresses_inside(&mut self, net: IpNet, after: Option<AddressKey>) -> Ended {
        let (all, links) = (&self.tables.addresses, &self.tables.links);
        let show = |sink: &mut S, row: &&Arc<Address>| Self::address(links, sink, row);
        let position = |row: &&Arc<Address>| Position::of_address(&row.key());
        let first = after.unwrap_or_else(|| position::first_address(net.network()));
        let rows = all.inside_from(net, &first);
        let is_new = |row: &&Arc<Address>| after != Some(row.key());
        self.rows(rows.filter(is_new), show, position)
    }

    fn addresses(&mut self, access: &Access, after: Option<AddressPlace>) -> Ended {
        let (all, links) = (&self.tables.addresses, &self.tables.links);
        let show = |sink: &mut S, (_, row): &(AddressPlace, &Arc<Address>)| {
            Self::address(links, sink, row)
        };
        let position =
            |(place, _): &(AddressPlace, &Arc<Address>)| Position::of_address_place(place);
        let is_new = |(place, _): &(AddressPlace, &Arc<Address>)| after != Some(*place);
        let Access::ByLink(some, _) = access else {
            let first = after.unwrap_or(AddressPlace::first_of(0));
            return self.rows(all.from(&first).filter(is_new), show, position);
        };
        for link in from_link(some, after.map_or(0, |after| after.link)) {
            let after = after.filter(|after| after.link == *link);
            let first = after.unwrap_or(AddressPlace::first_of(*link));
            let rows = all
                .from(&first)
                .take_while(|(place, _)| place.link == *link);
            if !self.rows(rows.filter(is_new), show, position)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn neighbours(&mut self, access: &Access, after: Option<NeighbourKey>) -> Ended {
        let all = &self.tables.neighbours;
        let show = |sink: &mut S, row: &&Arc<Neighbour>| sink.neighbour(row);
        let position = |row: &&Arc<Neighbour>| Position::of_neighbour(&row.key());
        let is_new = |row: &&Arc<Neighbour>| after != Some(row.key());
        match access {
            Access::ByMac(mac) => {
                let first = after.unwrap_or_else(|| position::first_neighbour_of(0));
                let rows = all.by_lladdr_from(*mac, &first).filter(is_new);
                self.rows(rows, show, position)
            }
            Access::Inside(net) => {
                let first = after.unwrap_or_else(|| position::first_neighbour(0, net.network()));
                let rows = all.inside_from(*net, &first).filter(is_new);
                self.rows(rows, show, position)
            }
            Access::ByLink(links, net) => {
                for link in from_link(links, after.map_or(0, |after| after.link)) {
                    let after = after.filter(|after| after.link == *link);
                    let first = after.unwrap_or_else(|| match net {
                        Some(net) => position::first_neighbour(*link, net.network()),
                        None => position::first_neighbour_of(*link),
                    });
                    let rows = all.from(&first).take_while(|row| {
                        row.link == *link && net.is_none_or(|net| net.contains(&row.address))
                    });
                    if !self.rows(rows.filter(is_new), show, position)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => {
                let first = after.unwrap_or_else(|| position::first_neighbour_of(0));
                self.rows(all.from(&first).filter(is_new), show, position)
            }
        }
    }

    fn nexthops(&mut self, access: &Access, after: Option<u32>) -> Ended {
        let all = &self.tables.nexthops;
        let show = |sink: &mut S, row: &&Arc<Nexthop>| sink.nexthop(row);
        let position = |row: &&Arc<Nexthop>| Position::Nexthop(row.id);
        let Some(first) = behind(after) else {
            return Ok(true);
        };
        match access {
            Access::Key(id) => {
                let row = all.get(*id).filter(|row| row.id >= first);
                self.rows(row.into_iter(), show, position)
            }
            Access::Keys(low, high) => {
                let rows = all.from(first.max(*low));
                self.rows(rows.take_while(|row| row.id <= *high), show, position)
            }
            // Planned for one link only: their order is that of their ids.
            Access::ByLink(links, _) if links.len() == 1 => {
                let rows = links.iter().flat_map(|link| all.of_link_from(*link, first));
                self.rows(rows, show, position)
            }
            _ => self.rows(all.from(first), show, position),
        }
    }

    fn rules(&mut self, access: &Access, after: Option<RuleKey>) -> Ended {
        let show = |sink: &mut S, (_, row): &(RuleKey, &Arc<Rule>)| sink.rule(row);
        let position = |(key, _): &(RuleKey, &Arc<Rule>)| Position::of_rule(key);
        let (family, priority) = match access {
            Access::ByPriority(family, priority) => (Some(*family), *priority),
            _ => (None, None),
        };
        let first = RuleKey {
            family: family.unwrap_or(0),
            priority: priority.unwrap_or(0),
            ordinal: 0,
        };
        let from = after.map_or(first, |after| after.max(first));
        let rows = self.tables.rules.from(&from).take_while(|(key, _)| {
            family.is_none_or(|family| family == key.family)
                && priority.is_none_or(|priority| priority == key.priority)
        });
        self.rows(rows.filter(|(key, _)| after != Some(*key)), show, position)
    }

    fn fdb(&mut self, access: &Access, after: Option<FdbKey>) -> Ended {
        let all = &self.tables.fdb;
        let show = |sink: &mut S, row: &&Arc<FdbEntry>| sink.fdb(row);
        let position = |row: &&Arc<FdbEntry>| Position::of_fdb(&row.key());
        let is_new = |row: &&Arc<FdbEntry>| after != Some(row.key());
        let first_of = |link| FdbKey::first_of(link, LinkLayerAddress::NONE);
        match access {
            Access::ByMac(mac) => {
                let first = after.unwrap_or_else(|| FdbKey::first_of(0, *mac));
                let rows = all.by_lladdr_from(*mac, &first).filter(is_new);
                self.rows(rows, show, position)
            }
            Access::ByLink(links, _) => {
                for link in from_link(links, after.map_or(0, |after| after.link)) {
                    let after = after.filter(|after| after.link == *link);
                    let first = after.unwrap_or_else(|| first_of(*link));
                    let rows = all.from(&first).take_while(|row| row.link == *link);
                    if !self.rows(rows.filter(is_new), show, position)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => {
                let first = after.unwrap_or_else(|| first_of(0));
                self.rows(all.from(&first).filter(is_new), show, position)
            }
        }
    }
}

impl<W: io::Write> Scan<'_, Printer<'_, W>> {
    /// Prints the links of an address path, each with its addresses: what
    /// `ip addr` shows. Whole, for it has no position between two links.
    pub(crate) fn addresses_below_links(&mut self) -> io::Result<()> {
        let (all, links) = (&self.tables.addresses, &self.tables.links);
        let access = plan(self.sink.selection());
        let mut of_link = |link: &Link| {
            let rows: Vec<_> = all.of_link(link.index).collect();
            self.visited += rows.len();
            self.sink.on_link(link, &rows)
        };
        match access {
            Access::Inside(net) => {
                let mut rows: Vec<_> = all.inside(net).collect();
                self.visited += rows.len();
                rows.sort_by_key(|row| all.place_of(&row.key()));
                rows.chunk_by(|a, b| a.link == b.link).try_for_each(|rows| {
                    let link = rows.first().and_then(|row| links.get(row.link));
                    link.map_or(Ok(()), |link| self.sink.on_link(link, rows))
                })
            }
            Access::ByLink(some, _) => some
                .iter()
                .filter_map(|link| links.get(*link))
                .try_for_each(|link| of_link(link)),
            _ => links.iter().try_for_each(|link| of_link(link)),
        }
    }
}

/// The key that a position says, if one is given; `None`: the position is
/// another table's.
fn key<K>(after: Option<&Position>, of: impl Fn(&Position) -> Option<K>) -> Option<Option<K>> {
    after.map(of).map_or(Some(None), |key| key.map(Some))
}

/// The number after another; `None`: there is none.
fn behind(after: Option<u32>) -> Option<u32> {
    after.map_or(Some(0), |after| after.checked_add(1))
}

/// The links of an ordered list from one on.
fn from_link(links: &[u32], first: u32) -> &[u32] {
    &links[links.partition_point(|link| *link < first)..]
}
