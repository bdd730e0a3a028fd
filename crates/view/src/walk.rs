//! A question answered in pieces, for who cannot or will not take the
//! whole answer at once: each piece from whatever snapshot is newest then.
//!
//! A walk holds no snapshot between two pieces. It remembers the [`Place`]
//! of the last row and seeks it in the index that fits the filter, so that
//! a row that is there from the first piece to the last is told exactly
//! once, whatever else comes and goes. A row that comes or goes meanwhile
//! is told or not; a route that is asked for by what it points to (`dev`,
//! `via`, `nhid`) and gets another next hop is a new row.

mod place;
mod routes;

use std::io;
use std::sync::Arc;

use table::{Address, Tables};

use crate::answer::AnswerError;
use crate::context::Context;
use crate::printer::Printer;
use crate::question::{Object, Question};
use crate::selection::{BadQuestion, Selection};
pub use place::Place;
use words::Names;

/// How long a piece gets, which is how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Rows looked at, at most, wanted or not.
    pub looked_at: usize,
    /// Octets, about: no row is begun beyond.
    pub octets: usize,
}

impl Bounds {
    /// Some hundred microseconds.
    pub const USUAL: Self = Self {
        looked_at: 4096,
        octets: 32 << 10,
    };
    /// Some ten microseconds: to see whether an answer is short.
    pub const SMALL: Self = Self {
        looked_at: 256,
        octets: 8 << 10,
    };
}

/// The rows of a question, piece by piece.
#[derive(Debug, Clone)]
pub struct Walk {
    question: Question,
    after: Option<Place>,
    /// Rows that may still come.
    left: u64,
    rows: u64,
    begun: bool,
    end: Option<End>,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There are no more rows.
    OfTable,
    /// The limit is reached, and there may be more.
    OfLimit,
}

impl Walk {
    /// A walk from after a place on, of as many rows as `limit` says.
    pub fn new(question: Question, after: Option<Place>, limit: Option<u64>) -> Self {
        Self {
            question,
            after,
            left: limit.unwrap_or(u64::MAX),
            rows: 0,
            begun: false,
            end: None,
        }
    }

    /// The next piece as octets of the answer; `None` after the last.
    /// Addresses are a row each, with the fields of their link.
    ///
    /// O(log n) for the seek and at most some thousand rows looked at; an
    /// answer to a filter without an index takes several pieces, which may
    /// be empty. With properties of links in the filter O(links) more.
    pub fn piece(
        &mut self,
        tables: &Tables,
        names: &Names,
        now_millis: u64,
    ) -> Result<Option<Vec<u8>>, AnswerError> {
        self.bounded_piece(Bounds::USUAL, tables, names, now_millis)
    }

    /// The next piece, of another length.
    pub fn bounded_piece(
        &mut self,
        bounds: Bounds,
        tables: &Tables,
        names: &Names,
        now_millis: u64,
    ) -> Result<Option<Vec<u8>>, AnswerError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let context = Context {
            links: &tables.links,
            tables: Some(tables),
            now_millis,
            names,
        };
        let first = !std::mem::replace(&mut self.begun, true);
        let opened = Printer::piece(&self.question, context, self.rows, first);
        let mut printer = match opened {
            // The link was deleted under way, and its rows with it.
            Err(BadQuestion::NoSuchDevice(_)) if !first => return Ok(Some(self.cut())),
            opened => opened?,
        };
        let mut run = Run {
            most_rows: self.rows.saturating_add(self.left),
            bounds,
            looked_at: 0,
            last: None,
            printer: &mut printer,
        };
        let whole = run.object(self.question.object, tables, self.after.as_ref())?;
        let last = run.last.take();
        if let Some(last) = last {
            self.after = Some(last);
        }
        let shown = printer.rows() - self.rows;
        self.rows += shown;
        self.left -= shown;
        if whole {
            self.end = Some(End::OfTable);
        } else if self.left == 0 {
            self.end = Some(End::OfLimit);
        }
        Ok(Some(printer.finish_piece(self.end.is_some())?))
    }

    /// What closes an answer whose question makes no more sense.
    fn cut(&mut self) -> Vec<u8> {
        self.end = Some(End::OfTable);
        Printer::<Vec<u8>>::closing(&self.question, self.rows)
    }

    /// Ends the walk where it stands, as if its limit were reached; gives
    /// what closes the answer.
    pub fn stop(&mut self) -> Vec<u8> {
        if self.end.is_some() {
            return Vec::new();
        }
        self.end = Some(End::OfLimit);
        Printer::<Vec<u8>>::closing(&self.question, self.rows)
    }

    /// Rows told so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether the last piece was given.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Where a next walk goes on; `None`: there is nothing more.
    pub fn rest(&self) -> Option<&Place> {
        match self.end {
            Some(End::OfTable) => None,
            Some(End::OfLimit) | None => self.after.as_ref(),
        }
    }
}

/// A piece in the making.
struct Run<'p, 'a> {
    printer: &'p mut Printer<'a, Vec<u8>>,
    most_rows: u64,
    bounds: Bounds,
    looked_at: usize,
    /// The place of the last row looked at.
    last: Option<Place>,
}

/// Whether the rows came to their end before the piece was full.
type Whole = io::Result<bool>;

impl<'a> Run<'_, 'a> {
    fn is_full(&self) -> bool {
        self.looked_at >= self.bounds.looked_at
            || self.printer.rows() >= self.most_rows
            || self.printer.gathered() >= self.bounds.octets
    }

    /// Shows rows until there are no more or the piece is full.
    fn rows<R>(
        &mut self,
        rows: impl Iterator<Item = R>,
        show: impl Fn(&mut Printer<'a, Vec<u8>>, &R) -> io::Result<()>,
        place: impl Fn(&R) -> Place,
    ) -> Whole {
        let mut last = None;
        let mut whole = true;
        for row in rows {
            if self.is_full() {
                whole = false;
                break;
            }
            show(self.printer, &row)?;
            self.looked_at += 1;
            last = Some(row);
        }
        if let Some(last) = last {
            self.last = Some(place(&last));
        }
        Ok(whole)
    }

    fn object(
        &mut self,
        object: Object,
        tables: &Tables,
        after: Option<&Place>,
    ) -> Result<bool, AnswerError> {
        let selection = self.printer.selection().clone();
        let whole = match (object, after) {
            (Object::Link, None) => self.links(&selection, tables, None),
            (Object::Link, Some(Place::Link(after))) => {
                self.links(&selection, tables, Some(*after))
            }
            (Object::Addr, None) => self.addresses(&selection, tables, None),
            (Object::Addr, Some(place)) if place.address().is_some() => {
                self.addresses(&selection, tables, place.address())
            }
            (Object::Neigh, None) => self.neighbours(&selection, tables, None),
            (Object::Neigh, Some(place)) if place.neighbour().is_some() => {
                self.neighbours(&selection, tables, place.neighbour())
            }
            (Object::Route, None) => self.routes(&selection, tables, None),
            (Object::Route, Some(Place::Route(body, table, place))) => {
                self.routes(&selection, tables, Some((*body, *table, place.route())))
            }
            (Object::Nexthop, None) => self.nexthops(&selection, tables, None),
            (Object::Nexthop, Some(Place::Nexthop(after))) => {
                self.nexthops(&selection, tables, Some(*after))
            }
            (Object::Rule, None) => self.rules(tables, None),
            (Object::Rule, Some(place)) if place.rule().is_some() => {
                self.rules(tables, place.rule())
            }
            (Object::Fdb, None) => self.fdb(&selection, tables, None),
            (Object::Fdb, Some(place)) if place.fdb().is_some() => {
                self.fdb(&selection, tables, place.fdb())
            }
            _ => return Err(BadQuestion::ForeignPlace.into()),
        };
        Ok(whole?)
    }

    fn links(&mut self, selection: &Selection, tables: &Tables, after: Option<u32>) -> Whole {
        let all = &tables.links;
        let first = match after.map(|after| after.checked_add(1)) {
            None => 0,
            Some(Some(first)) => first,
            Some(None) => return Ok(true),
        };
        let show = |printer: &mut Printer<'a, _>, row: &&Arc<table::Link>| printer.link(row);
        let place = |row: &&Arc<table::Link>| Place::Link(row.index);
        match (selection.device, &selection.links) {
            (Some(device), _) => {
                let row = all.get(device).filter(|row| row.index >= first);
                self.rows(row.into_iter(), show, place)
            }
            (None, Some(some)) => {
                let rows = some.iter().filter(|index| **index >= first);
                self.rows(rows.filter_map(|index| all.get(*index)), show, place)
            }
            (None, None) => self.rows(all.from(first), show, place),
        }
    }

    fn addresses(
        &mut self,
        selection: &Selection,
        tables: &Tables,
        after: Option<table::AddressKey>,
    ) -> Whole {
        let all = &tables.addresses;
        let show =
            |printer: &mut Printer<'a, _>, row: &&Arc<Address>| match tables.links.get(row.link) {
                Some(link) => printer.on_link(link, &[row]),
                None => Ok(()),
            };
        let place = |row: &&Arc<Address>| Place::of_address(&row.key());
        let is_new = |row: &&Arc<Address>| after != Some(row.key());
        if let Some(net) = selection.inside() {
            let first = after.unwrap_or_else(|| place::first_address(0, net.network()));
            return self.rows(all.inside_from(net, &first).filter(is_new), show, place);
        }
        if let Some(links) = some_links(selection) {
            let start = after.map_or(0, |after| after.link);
            for link in links.into_iter().filter(|link| *link >= start) {
                let from = after.filter(|after| after.link == link);
                let first = from.unwrap_or_else(|| place::first_address_of(link));
                let rows = all.from(&first).take_while(|row| row.link == link);
                if !self.rows(rows.filter(is_new), show, place)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let first = after.unwrap_or_else(|| place::first_address_of(0));
        self.rows(all.from(&first).filter(is_new), show, place)
    }

    fn neighbours(
        &mut self,
        selection: &Selection,
        tables: &Tables,
        after: Option<table::NeighbourKey>,
    ) -> Whole {
        let all = &tables.neighbours;
        let show =
            |printer: &mut Printer<'a, _>, row: &&Arc<table::Neighbour>| printer.neighbour(row);
        let place = |row: &&Arc<table::Neighbour>| Place::of_neighbour(&row.key());
        let is_new = |row: &&Arc<table::Neighbour>| after != Some(row.key());
        let first = |link| place::first_neighbour_of(link);
        if let Some(mac) = selection.mac {
            let first = after.unwrap_or_else(|| first(0));
            let rows = all.by_lladdr_from(mac, &first);
            return self.rows(rows.filter(is_new), show, place);
        }
        let net = selection.inside();
        if let (None, Some(net)) = (selection.device, net) {
            let first = after.unwrap_or_else(|| place::first_neighbour(0, net.network()));
            let rows = all.inside_from(net, &first);
            return self.rows(rows.filter(is_new), show, place);
        }
        if let Some(links) = some_links(selection) {
            let start = after.map_or(0, |after| after.link);
            for link in links.into_iter().filter(|link| *link >= start) {
                let first = match (after.filter(|after| after.link == link), net) {
                    (Some(after), _) => after,
                    (None, Some(net)) => place::first_neighbour(link, net.network()),
                    (None, None) => first(link),
                };
                let rows = all.from(&first).take_while(|row| {
                    row.link == link && net.is_none_or(|net| net.contains(&row.address))
                });
                if !self.rows(rows.filter(is_new), show, place)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let first = after.unwrap_or_else(|| first(0));
        self.rows(all.from(&first).filter(is_new), show, place)
    }

    fn nexthops(&mut self, selection: &Selection, tables: &Tables, after: Option<u32>) -> Whole {
        let all = &tables.nexthops;
        let show = |printer: &mut Printer<'a, _>, row: &&Arc<table::Nexthop>| printer.nexthop(row);
        let place = |row: &&Arc<table::Nexthop>| Place::Nexthop(row.id);
        let first = match after.map(|after| after.checked_add(1)) {
            None => 0,
            Some(Some(first)) => first,
            Some(None) => return Ok(true),
        };
        match (selection.id, selection.device) {
            (Some(id), _) => {
                let row = all.get(id).filter(|row| row.id >= first);
                self.rows(row.into_iter(), show, place)
            }
            (None, Some(link)) => self.rows(all.of_link_from(link, first), show, place),
            (None, None) => self.rows(all.from(first), show, place),
        }
    }

    fn rules(&mut self, tables: &Tables, after: Option<table::RuleKey>) -> Whole {
        let first = after.unwrap_or(place::FIRST_RULE);
        let rows = tables.rules.from(&first);
        self.rows(
            rows.filter(|(key, _)| after != Some(*key)),
            |printer, (_, row)| printer.rule(row),
            |(key, _)| Place::Rule(key.family, key.priority, key.ordinal),
        )
    }

    fn fdb(
        &mut self,
        selection: &Selection,
        tables: &Tables,
        after: Option<table::FdbKey>,
    ) -> Whole {
        let all = &tables.fdb;
        let show = |printer: &mut Printer<'a, _>, row: &&Arc<table::FdbEntry>| printer.fdb(row);
        let place = |row: &&Arc<table::FdbEntry>| Place::of_fdb(&row.key());
        let is_new = |row: &&Arc<table::FdbEntry>| after != Some(row.key());
        if let Some(mac) = selection.mac {
            let first = after.unwrap_or_else(|| table::FdbKey::first_of(0, mac));
            return self.rows(all.by_lladdr_from(mac, &first).filter(is_new), show, place);
        }
        let device = selection.device;
        let first = after.unwrap_or_else(|| {
            table::FdbKey::first_of(device.unwrap_or(0), table::LinkLayerAddress::NONE)
        });
        let rows = all
            .from(&first)
            .take_while(|row| device.is_none_or(|device| device == row.link));
        self.rows(rows.filter(is_new), show, place)
    }
}

/// The links that a filter picks, in order; `None`: all.
fn some_links(selection: &Selection) -> Option<Vec<u32>> {
    match selection.device {
        Some(device) => Some(vec![device]),
        None => selection.links.clone(),
    }
}

#[cfg(test)]
mod tests;
