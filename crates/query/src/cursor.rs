//! A cursor: the rows of a table that a plan leads to, some at a time, and
//! the values of those columns that are asked for. What a row has in them is
//! taken in one pass.

#![allow(
    unsafe_code,
    reason = "SQLite finds its own part at the head of a cursor"
)]

use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;
use std::sync::Arc;

use ipnet::IpNet;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{Context, Filters, VTabCursor, sqlite3_vtab_cursor};
use rusqlite::{Error, Result, ffi};
use table::{NextHop, Tables};
use translation::request::Table;
use view::{CellValue, Cells, ColumnType, FoundRow, Object, PrefixLookup, RowScan};

use crate::address_text;
use crate::function::failed;
use crate::listed::{self, Listed};
use crate::moment::{Counts, EarlierEvents, Moment, Scanned, WalkRight};
use crate::narrowing::Narrowing;
use crate::nat::{Narrowed, Walk};
use crate::schema::{From, Narrows, Rows, SqlColumn};
use crate::vtab::{Plan, TableOf, column_of, field_of};

/// Rows taken at first, for a statement may want few.
const FIRST_ROWS: usize = 16;
/// Rows taken at a time.
const MOST_ROWS: usize = 1024;
/// Hops of one route that have numbers of their own.
const MAX_HOPS: usize = 1 << 12;

/// Others that tell rows, a part at a time.
enum More {
    /// A translation, and the place among those that may be asked.
    Asked { walk: Walk, _right: WalkRight },
    /// Who knows what happened before.
    Before(EarlierEvents),
}

impl More {
    /// Takes some rows, or none for now; whether more may come.
    fn take(&mut self, rows: &mut Vec<Listed>) -> Result<bool, String> {
        match self {
            Self::Asked { walk, .. } => {
                walk.take(rows)?;
                Ok(!walk.is_over())
            }
            Self::Before(events) => {
                let Some(batch) = events.next() else {
                    return Ok(false);
                };
                let batch = batch?;
                let of = (batch.at_millis, None);
                listed::changes(of, &batch.events, &batch.tables, rows);
                Ok(true)
            }
        }
    }
}

/// A cursor over a table.
#[repr(C)]
pub(crate) struct Cursor {
    base: sqlite3_vtab_cursor,
    of: TableOf,
    plans: Vec<Rc<Plan>>,
    now: Option<Now>,
    /// Whose rows are looked at, where it is said.
    source: Option<String>,
    rows: Vec<FoundRow>,
    at: usize,
    /// The next hops of the route at hand.
    hops: Vec<NextHop>,
    hop: usize,
    listed: Vec<Listed>,
    /// Who tells more of what is listed.
    more: Option<More>,
    scan: Option<RowScan>,
    take: usize,
    longest: Option<Longest>,
    plan: Option<Rc<Plan>>,
    way: &'static str,
    counts: Counts,
    values: RefCell<Values>,
    /// Where texts are written, one after the other.
    text: RefCell<Vec<u8>>,
}

/// The moment that a cursor reads.
struct Now {
    moment: Arc<Moment>,
    tables: Arc<Tables>,
    by_prefix: PrefixLookup,
}

/// The columns that were asked for so far, and their values.
#[derive(Default)]
struct Values {
    /// The place of a column's cell, by the column's; none is `usize::MAX`.
    places: Vec<usize>,
    names: Vec<&'static str>,
    cells: Option<Cells>,
    /// Whether the cells are of the row at hand.
    is_fresh: bool,
}

impl Cursor {
    pub(crate) fn new(of: TableOf, plans: Vec<Rc<Plan>>) -> Self {
        Self {
            base: sqlite3_vtab_cursor::default(),
            of,
            plans,
            now: None,
            source: None,
            rows: Vec::new(),
            at: 0,
            hops: Vec::new(),
            hop: 0,
            listed: Vec::new(),
            more: None,
            scan: None,
            take: FIRST_ROWS,
            longest: None,
            plan: None,
            way: "",
            counts: Counts::default(),
            values: RefCell::default(),
            text: RefCell::default(),
        }
    }

    /// The kind of row that is read, where rows are.
    fn object(&self) -> Option<Object> {
        match self.of.schema.rows {
            Rows::Of(object) => Some(object),
            Rows::Hops => Some(Object::Route),
            Rows::Events | Rows::Feeds | Rows::Peers | Rows::Nat(_) => None,
        }
    }

    /// Counts what was done by the plan of before.
    fn tell(&mut self) {
        let Some(plan) = self.plan.take() else {
            return;
        };
        let scanned = Scanned {
            table: self.of.schema.name,
            conditions: plan.shown.clone(),
            way: self.way,
        };
        self.of
            .running
            .count(scanned, std::mem::take(&mut self.counts));
    }

    /// The tables of whoever is asked for.
    fn begin(&mut self, source: Option<String>) -> Result<()> {
        if self.now.is_some() && self.source == source {
            return Ok(());
        }
        let moment = self.of.running.moment();
        let tables = match source.as_deref() {
            None | Some(table::KERNEL) => Arc::clone(&moment.tables),
            Some(name) => moment
                .tables
                .of(name)
                .ok_or_else(|| no_source(name, &moment))?,
        };
        self.now = Some(Now {
            moment,
            tables,
            by_prefix: PrefixLookup::default(),
        });
        self.source = source;
        Ok(())
    }

    /// Takes rows until there is one, or none is left.
    fn fill(&mut self) -> Result<()> {
        self.rows.clear();
        self.at = 0;
        let (Some(scan), Some(now)) = (&mut self.scan, &self.now) else {
            return Ok(());
        };
        while self.rows.is_empty() && !scan.is_over() {
            if self.of.running.is_over() {
                return Err(interrupted());
            }
            scan.take(&now.tables, self.take, &mut self.rows)
                .map_err(|error| failed(error.to_string()))?;
            self.counts.visited += self.rows.len() as u64;
            self.take = (self.take * 4).min(MOST_ROWS);
            if let Some(longest) = &mut self.longest {
                longest.keep(&mut self.rows);
            }
        }
        Ok(())
    }

    /// Begins to ask a translation for what a plan leaves of a table.
    fn ask(&mut self, table: Table, plan: Rc<Plan>, values: &Filters<'_>) -> Result<()> {
        let mut narrowed = Narrowed::default();
        for (condition, value) in plan.conditions.iter().zip(values.iter()) {
            if let Narrows::Nat(narrows) = condition.narrows {
                let taken = narrowed.take(narrows, condition.compare, value);
                taken.map_err(failed)?;
            }
        }
        (self.at, self.listed, self.more) = (0, Vec::new(), None);
        self.counts.times += 1;
        self.plan = Some(plan);
        if narrowed.is_empty {
            self.way = "nothing";
            return Ok(());
        }
        self.way = "the translation";
        let running = &self.of.running;
        let at = running.translation().map_err(failed)?;
        let right = WalkRight::take(running).map_err(failed)?;
        self.more = Some(More::Asked {
            walk: Walk::new(at, table, narrowed.finish(), running.deadline),
            _right: right,
        });
        self.go_on()
    }

    /// Takes rows that others tell until there is one, or none is left.
    fn go_on(&mut self) -> Result<()> {
        if self.more.is_none() {
            return Ok(());
        }
        self.listed.clear();
        self.at = 0;
        while self.listed.is_empty() {
            if self.of.running.is_over() {
                return Err(interrupted());
            }
            let Some(more) = &mut self.more else { break };
            if !more.take(&mut self.listed).map_err(failed)? {
                self.more = None;
            }
            self.counts.visited += self.listed.len() as u64;
        }
        Ok(())
    }

    /// Goes to a route that has next hops, from the one at hand on.
    fn find_hops(&mut self) -> Result<()> {
        self.hop = 0;
        self.hops.clear();
        while self.hops.is_empty() {
            let (Some(row), Some(now)) = (self.rows.get(self.at), &self.now) else {
                return Ok(());
            };
            if let FoundRow::Route(route, _) = row {
                self.hops = now.tables.nexthops.hops_of(&route.body).unwrap_or_default();
            }
            if self.hops.is_empty() {
                self.step()?;
            }
        }
        Ok(())
    }

    /// The next row that was found.
    fn step(&mut self) -> Result<()> {
        self.at += 1;
        self.values.get_mut().is_fresh = false;
        match self.at < self.rows.len() {
            true => Ok(()),
            false => self.fill(),
        }
    }

    fn field(&self, context: &mut Context, at: usize, column: &SqlColumn) -> Result<()> {
        let (Some(row), Some(now), Some(object)) =
            (self.rows.get(self.at), &self.now, self.object())
        else {
            return Ok(());
        };
        if let Some(value) = at_once(row, column, now) {
            return set(context, value);
        }
        let mut values = self.values.borrow_mut();
        let place = values.place(at, column, object);
        let is_fresh = std::mem::replace(&mut values.is_fresh, true);
        let Some(cells) = &mut values.cells else {
            return Ok(());
        };
        if !is_fresh {
            cells.take(row, &now.moment.context(&now.tables));
        }
        set(
            context,
            match cells.get(place) {
                CellValue::Missing if column.holds == ColumnType::Flag => ValueRef::Integer(0),
                CellValue::Missing => ValueRef::Null,
                CellValue::Number(number) => ValueRef::Integer(number),
                CellValue::Text(text) => ValueRef::Text(text),
            },
        )
    }
}

impl Values {
    /// The place of a column among the cells; it gets one.
    fn place(&mut self, at: usize, column: &SqlColumn, object: Object) -> usize {
        if let Some(place) = self.places.get(at).filter(|place| **place != usize::MAX) {
            return *place;
        }
        if self.places.len() <= at {
            self.places.resize(at + 1, usize::MAX);
        }
        let place = self.names.len();
        self.names.extend(field_of(column));
        if let Some(known) = self.places.get_mut(at) {
            *known = place;
        }
        self.cells = Some(Cells::new(object, self.names.iter().copied()));
        self.is_fresh = false;
        place
    }
}

/// Values that are at hand without a pass over the row.
fn at_once<'r>(row: &'r FoundRow, column: &SqlColumn, now: &'r Now) -> Option<ValueRef<'r>> {
    match (row, column.from) {
        (FoundRow::Link(link) | FoundRow::Address(link, _), From::Field("ifindex")) => {
            Some(ValueRef::Integer(link.index.into()))
        }
        (FoundRow::Link(link) | FoundRow::Address(link, _), From::Field("ifname")) => {
            Some(ValueRef::Text(link.name.as_bytes()))
        }
        (FoundRow::Nexthop(row), From::Field("id")) => Some(ValueRef::Integer(row.id.into())),
        (FoundRow::Route(row, _), From::Field("nhid")) => Some(
            row.body
                .nexthop_id
                .map_or(ValueRef::Null, |id| ValueRef::Integer(id.into())),
        ),
        (FoundRow::Route(row, _), From::Field("dev")) => {
            let [hop] = row.body.next_hops.as_slice() else {
                return None;
            };
            let name = now.tables.named_links().name(hop.link)?;
            Some(ValueRef::Text(name.as_bytes()))
        }
        _ => None,
    }
}

/// Takes the rows of a key, where that is what they are narrowed to: a join
/// asks for them in row after row. The way, in words; `None`: they are to be
/// looked for.
fn at_a_key(
    object: Object,
    by: &view::Narrowed,
    now: &mut Now,
    rows: &mut Vec<FoundRow>,
) -> Option<&'static str> {
    let tables = &*now.tables;
    match (object, by) {
        (Object::Link, &view::Narrowed { link: Some(at), .. }) => {
            rows.extend(tables.links.get(at).cloned().map(FoundRow::Link));
            Some("the row of a number")
        }
        (Object::Nexthop, &view::Narrowed { id: Some(at), .. }) => {
            rows.extend(tables.nexthops.get(at).cloned().map(FoundRow::Nexthop));
            Some("the row of a number")
        }
        (
            Object::Route,
            &view::Narrowed {
                exact: Some(net),
                table,
                ..
            },
        ) => now
            .by_prefix
            .routes(tables, table, net, FIRST_ROWS, rows)
            .then_some("the routes of a prefix"),
        _ => None,
    }
}

/// Of prefixes that cover something, the longest first, the first of each
/// table.
struct Longest {
    /// If it is this one.
    only: Option<IpNet>,
    /// The table that was come to last, and its prefix.
    first: Option<(u32, IpNet)>,
}

impl Longest {
    /// Leaves the others out of the rows that come next.
    fn keep(&mut self, rows: &mut Vec<FoundRow>) {
        rows.retain(|row| {
            let FoundRow::Route(route, _) = row else {
                return false;
            };
            let of = (route.table, route.prefix);
            let first = match self.first {
                Some(first) if first.0 == of.0 => first,
                _ => *self.first.insert(of),
            };
            first == of && self.only.is_none_or(|only| route.prefix == only)
        });
    }
}

fn set(context: &mut Context, value: ValueRef<'_>) -> Result<()> {
    context.set_result(ToSqlOutput::Borrowed(value))
}

fn no_source(name: &str, moment: &Moment) -> Error {
    let shown: String = name.chars().take(64).collect();
    let owners = moment.tables.owners().map(|owner| owner.name());
    let known: Vec<&str> = [table::KERNEL].into_iter().chain(owners).collect();
    failed(format!(
        "no source `{shown}` feeds rows here; there are: {}",
        known.join(", ")
    ))
}

/// The error of a statement that is to end.
fn interrupted() -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None)
}

// SAFETY: SQLite's part is the first field, and the layout is C's.
unsafe impl VTabCursor for Cursor {
    fn filter(&mut self, number: c_int, _: Option<&str>, values: &Filters<'_>) -> Result<()> {
        let plan = usize::try_from(number)
            .ok()
            .and_then(|at| self.plans.get(at));
        let plan = plan.ok_or_else(|| failed("a plan that nobody made".to_owned()))?;
        let plan = Rc::clone(plan);
        if self
            .plan
            .as_ref()
            .is_some_and(|before| !Rc::ptr_eq(before, &plan))
        {
            self.tell();
        }
        self.values.get_mut().is_fresh = false;
        let value = |at: usize| values.iter().nth(at).unwrap_or(ValueRef::Null);
        let source = plan
            .conditions
            .iter()
            .position(|of| of.narrows == Narrows::Source);
        let source = match source.map(value) {
            Some(ValueRef::Text(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        };
        self.begin(source)?;
        let object = self.object();
        let Some(now) = &mut self.now else {
            return Ok(());
        };
        if let Rows::Nat(table) = self.of.schema.rows {
            return self.ask(table, plan, values);
        }
        let mut narrowing = Narrowing::default();
        for (condition, value) in plan.conditions.iter().zip(values.iter()) {
            let (narrows, compare) = (condition.narrows, condition.compare);
            narrowing
                .take(narrows, compare, value, &now.tables, &now.moment.names)
                .map_err(failed)?;
        }
        narrowing.finish();
        self.rows.clear();
        self.hops.clear();
        self.listed.clear();
        (self.at, self.hop, self.scan) = (0, 0, None);
        self.take = FIRST_ROWS;
        self.longest = narrowing.longest.map(|_| Longest {
            only: narrowing.only,
            first: None,
        });
        self.more = None;
        self.counts.times += 1;
        self.plan = Some(plan);
        if narrowing.is_empty {
            self.way = "nothing";
            return Ok(());
        }
        let Some(object) = object else {
            self.way = "all rows";
            if let (Rows::Events, Some(earlier)) = (self.of.schema.rows, self.of.running.earlier())
            {
                self.way = "the history";
                let (from, until) = narrowing.times;
                self.more = Some(More::Before(earlier.between(from, until)));
                return self.go_on();
            }
            self.listed = listed::rows(self.of.schema.rows, &now.moment, narrowing.times);
            self.counts.visited += self.listed.len() as u64;
            return Ok(());
        };
        match at_a_key(object, &narrowing.by, now, &mut self.rows) {
            Some(way) => {
                self.way = way;
                self.counts.visited += self.rows.len() as u64;
            }
            None => {
                let scan = RowScan::new(object, &narrowing.by);
                self.way = scan.way();
                self.scan = Some(scan);
                self.fill()?;
            }
        }
        match self.of.schema.rows {
            Rows::Hops => self.find_hops(),
            _ => Ok(()),
        }
    }

    fn next(&mut self) -> Result<()> {
        match self.of.schema.rows {
            Rows::Of(_) => self.step(),
            Rows::Hops => {
                self.hop += 1;
                if self.hop < self.hops.len() {
                    return Ok(());
                }
                self.step()?;
                self.find_hops()
            }
            Rows::Events | Rows::Feeds | Rows::Peers | Rows::Nat(_) => {
                self.at += 1;
                match self.at < self.listed.len() {
                    true => Ok(()),
                    false => self.go_on(),
                }
            }
        }
    }

    fn eof(&self) -> bool {
        self.at >= self.rows.len().max(self.listed.len())
    }

    fn column(&self, context: &mut Context, at: c_int) -> Result<()> {
        let Some(column) = column_of(self.of.schema, at) else {
            return Ok(());
        };
        let route = match self.rows.get(self.at) {
            Some(FoundRow::Route(route, _)) => Some(route),
            _ => None,
        };
        match (column.from, route, self.hops.get(self.hop)) {
            (From::Listed(place), ..) => match (self.listed.get(self.at), &self.now) {
                (Some(row), Some(now)) => set(context, row.value(place, &now.moment).as_ref()),
                _ => Ok(()),
            },
            (From::Source, ..) => {
                let source = self.source.as_deref().unwrap_or(table::KERNEL);
                set(context, ValueRef::Text(source.as_bytes()))
            }
            (From::Prefix, Some(route), _) => {
                let mut text = self.text.borrow_mut();
                text.clear();
                address_text::push(&mut text, route.prefix);
                set(context, ValueRef::Text(&text))
            }
            (From::Metric, Some(route), _) => set(context, ValueRef::Integer(route.metric.into())),
            (From::Hop, ..) => set(context, ValueRef::Integer(self.hop as i64)),
            (From::Weight, _, Some(hop)) => set(context, ValueRef::Integer(hop.weight.into())),
            (From::Gateway, _, Some(hop)) => match hop.gateway {
                Some(gateway) => {
                    let mut text = self.text.borrow_mut();
                    text.clear();
                    view::push_address(&mut text, gateway);
                    set(context, ValueRef::Text(&text))
                }
                None => Ok(()),
            },
            (From::Device, _, Some(hop)) if hop.link != 0 => {
                let links = self.now.as_ref().map(|now| now.tables.named_links());
                match links.and_then(|links| links.name(hop.link)) {
                    Some(name) => set(context, ValueRef::Text(name.as_bytes())),
                    None => {
                        let name = format!("if{}", hop.link);
                        set(context, ValueRef::Text(name.as_bytes()))
                    }
                }
            }
            (From::Field(_), ..) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                self.field(context, at, column)
            }
            _ => Ok(()),
        }
    }

    /// What tells a row from the others of its table: the place where it is
    /// kept, which it has as long as the moment; a route, which has none, is
    /// given a number.
    fn rowid(&self) -> Result<i64> {
        let Some(row) = self.rows.get(self.at) else {
            let number = self.listed.get(self.at).and_then(Listed::number);
            return number.ok_or_else(|| failed(NOT_NUMBERED.to_owned()));
        };
        Ok(match row {
            FoundRow::Link(row) => place(row),
            FoundRow::Address(_, row) => place(row),
            FoundRow::Neighbour(row) => place(row),
            FoundRow::Nexthop(row) => place(row),
            FoundRow::Rule(row) => place(row),
            FoundRow::Fdb(row) => place(row),
            FoundRow::Route(row, ordinal) => {
                let tables = self
                    .now
                    .as_ref()
                    .map_or(0, |now| Arc::as_ptr(&now.tables) as usize);
                let key = (tables, row.table, row.prefix, row.tos, row.metric, *ordinal);
                let number = self
                    .of
                    .running
                    .number_of(key)
                    .filter(|_| self.hop < MAX_HOPS);
                let number = number.ok_or_else(|| failed(TOO_MANY_NUMBERED.to_owned()))?;
                number * MAX_HOPS as i64 + self.hop as i64
            }
        })
    }
}

const NOT_NUMBERED: &str = "conditions joined by `or` lead to events of a history: write a statement \
                            for each, and `union all` between them";

const TOO_MANY_NUMBERED: &str = "conditions joined by `or` lead to too many routes: write a \
                                 statement for each, and `union` between them";

fn place<T>(row: &Arc<T>) -> i64 {
    Arc::as_ptr(row) as usize as i64
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.tell();
    }
}
