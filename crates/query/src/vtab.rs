//! The tables as SQLite sees them: what conditions of a statement are looked
//! up in an index, and cursors over rows. Made for each connection by
//! `session`.

#![allow(
    unsafe_code,
    reason = "SQLite finds its own part at the head of a table"
)]

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int};
use std::rc::Rc;
use std::sync::Arc;

use rusqlite::vtab::{
    IndexConstraintOp, IndexFlags, IndexInfo, Module, VTab, VTabConfig, VTabConnection,
    sqlite3_vtab,
};
use rusqlite::{Connection, Result, ffi};
use translation::request::Table;
use view::Object;

use crate::cursor::Cursor;
use crate::function::{Relation, failed, find};
use crate::heap;
use crate::moment::Running;
use crate::narrowing::Compare;
use crate::nat;
use crate::schema::{From, Narrows, Rows, SCHEMAS, Schema, SqlColumn};

/// Conditions of a table that are handed on at most: SQLite leaves out its
/// own check of no more than sixteen.
const MOST_CONDITIONS: usize = 16;

/// A table of a connection.
#[repr(C)]
pub(crate) struct SqlTable {
    base: sqlite3_vtab,
    of: TableOf,
    /// What was planned: the number of a plan is its place.
    plans: RefCell<Vec<Rc<Plan>>>,
}

/// Which table, of which statement.
#[derive(Debug, Clone)]
pub(crate) struct TableOf {
    pub schema: &'static Schema,
    pub running: Arc<Running>,
}

/// Conditions that are handed on, in the order of their values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub conditions: Vec<Condition>,
    /// The same in words.
    pub shown: String,
}

/// A condition that is handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Condition {
    pub narrows: Narrows,
    pub compare: Compare,
}

/// Makes all tables known to a connection.
pub(crate) fn register(connection: &Connection, running: &Arc<Running>) -> Result<()> {
    for schema in SCHEMAS.iter() {
        let of = TableOf {
            schema,
            running: Arc::clone(running),
        };
        connection.create_module(schema.name, module(), Some(of))?;
    }
    Ok(())
}

/// A table that is there without being made, and that has a say in which
/// functions of its columns are looked up.
fn module() -> &'static Module<'static, SqlTable> {
    const MODULE: Module<'static, SqlTable> = {
        let plain = Module::<SqlTable>::eponymous_only_module();
        // SAFETY: a module is SQLite's struct, and transparent around it.
        let mut raw: ffi::sqlite3_module = unsafe { std::mem::transmute_copy(&plain) };
        raw.xFindFunction = Some(find);
        // SAFETY: the same, back.
        unsafe { std::mem::transmute(raw) }
    };
    const { &MODULE }
}

// SAFETY: SQLite's part is the first field, and the layout is C's.
unsafe impl<'vtab> VTab<'vtab> for SqlTable {
    type Aux = TableOf;
    type Cursor = Cursor;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&TableOf>,
        _module: &[u8],
        _database: &[u8],
        _table: &[u8],
        _arguments: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let of = aux.ok_or_else(|| failed("a table without a place".to_owned()))?;
        db.config(VTabConfig::Innocuous)?;
        let declared = CString::new(of.schema.declaration())
            .map_err(|_| failed("a name with a zero in it".to_owned()))?;
        let table = Self {
            base: sqlite3_vtab::default(),
            of: of.clone(),
            plans: RefCell::default(),
        };
        Ok((Cow::Owned(declared), table))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut plan = Plan::default();
        let mut columns = Vec::new();
        let mut chosen = Vec::new();
        for (at, constraint) in info.constraints().enumerate() {
            let column = usize::try_from(constraint.column()).ok();
            let Some(column) = column.and_then(|at| self.of.schema.columns.get(at)) else {
                continue;
            };
            let Some(compare) = compare_of(&constraint.operator()) else {
                continue;
            };
            let must_be_told =
                compare == Compare::By(Relation::Longest) || column.narrows == Narrows::Source;
            if !constraint.is_usable() {
                // Nobody but the table can answer these.
                match must_be_told && compare.applies_to(column.narrows, self.of.schema.rows) {
                    true => return Ok(false),
                    false => continue,
                }
            }
            if compare.applies_to(column.narrows, self.of.schema.rows)
                && plan.conditions.len() < MOST_CONDITIONS
                && (matches!(compare, Compare::By(_))
                    || is_in_its_order(column, info.collation(at)?))
            {
                let narrows = column.narrows;
                plan.conditions.push(Condition { narrows, compare });
                columns.push(&*column.name);
                chosen.push((at, compare.says_all(narrows)));
            }
        }
        for (place, (at, says_all)) in chosen.iter().enumerate() {
            let mut usage = info.constraint_usage(*at);
            usage.set_argv_index(place as c_int + 1);
            usage.set_omit(*says_all);
        }
        let shown = plan.conditions.iter().zip(&columns);
        let shown: Vec<_> = shown.map(|(of, column)| of.compare.shown(column)).collect();
        plan.shown = shown.join(" and ");
        let cost = Cost::of(&plan, self.of.schema, &self.of.running);
        info.set_estimated_cost(cost.rows + cost.begun);
        info.set_estimated_rows(cost.rows.max(1.0) as i64);
        if cost.is_one {
            info.set_idx_flags(IndexFlags::SQLITE_INDEX_SCAN_UNIQUE);
        }
        if self.is_in_order(&plan, info) {
            info.set_order_by_consumed(true);
        }
        heap::grant(plan.shown.len() + 1024);
        info.set_idx_str(&plan.shown);
        info.set_idx_num(self.number_of(plan));
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<Cursor> {
        let plans = self.plans.borrow().clone();
        Ok(Cursor::new(self.of.clone(), plans))
    }
}

impl SqlTable {
    /// The place of a plan among those of the table.
    fn number_of(&self, plan: Plan) -> c_int {
        let mut plans = self.plans.borrow_mut();
        let known = plans.iter().position(|known| **known == plan);
        let at = known.unwrap_or_else(|| {
            plans.push(Rc::new(plan));
            plans.len() - 1
        });
        c_int::try_from(at).unwrap_or(c_int::MAX)
    }

    /// Whether the rows of a plan come in the order that is asked for.
    fn is_in_order(&self, plan: &Plan, info: &IndexInfo) -> bool {
        let mut wanted = info.order_bys();
        let (Some(first), None) = (wanted.next(), wanted.next()) else {
            return false;
        };
        let column = usize::try_from(first.column()).ok();
        let column = column.and_then(|at| self.of.schema.columns.get(at));
        let Some(column) = column.filter(|_| !first.is_order_by_desc()) else {
            return false;
        };
        let has = |narrows| plan.conditions.iter().any(|of| of.narrows == narrows);
        let all_are =
            |some: &[Narrows]| plan.conditions.iter().all(|of| some.contains(&of.narrows));
        let goes_on = |of: &Condition| {
            !matches!(
                of.compare,
                Compare::By(Relation::Covers | Relation::Longest | Relation::InRange)
            )
        };
        match (self.of.schema.rows, column.narrows) {
            (Rows::Of(Object::Route), Narrows::Prefix) => {
                has(Narrows::Table)
                    && all_are(&[Narrows::Table, Narrows::Prefix, Narrows::Source])
                    && plan.conditions.iter().all(goes_on)
            }
            (Rows::Of(Object::Link), Narrows::Link) => {
                all_are(&[Narrows::Link, Narrows::LinkName, Narrows::Source])
            }
            (Rows::Of(Object::Nexthop), Narrows::Nexthop) => {
                all_are(&[Narrows::Nexthop, Narrows::Source])
            }
            _ => false,
        }
    }
}

/// Whether a condition compares as the column's own values are compared:
/// else an index of them would not find all.
fn is_in_its_order(column: &SqlColumn, collation: &str) -> bool {
    match column.narrows {
        Narrows::LinkName | Narrows::Table | Narrows::Source => {
            collation.eq_ignore_ascii_case("binary")
        }
        Narrows::Prefix | Narrows::Destination | Narrows::Host => {
            collation.eq_ignore_ascii_case(crate::address_text::COLLATION)
        }
        Narrows::Nat(narrows) if narrows.is_address() => {
            collation.eq_ignore_ascii_case(crate::address_text::COLLATION)
        }
        _ => true,
    }
}

fn compare_of(operator: &IndexConstraintOp) -> Option<Compare> {
    use IndexConstraintOp as Op;
    Some(match operator {
        Op::SQLITE_INDEX_CONSTRAINT_EQ => Compare::Equal,
        Op::SQLITE_INDEX_CONSTRAINT_GT | Op::SQLITE_INDEX_CONSTRAINT_GE => Compare::AtLeast,
        Op::SQLITE_INDEX_CONSTRAINT_LT | Op::SQLITE_INDEX_CONSTRAINT_LE => Compare::AtMost,
        Op::SQLITE_INDEX_CONSTRAINT_FUNCTION(number) => {
            Compare::By(Relation::of_constraint(*number)?)
        }
        _ => return None,
    })
}

/// What a plan costs, about: for SQLite to choose which table is looked up
/// for the rows of which.
struct Cost {
    rows: f64,
    /// Before the first row.
    begun: f64,
    is_one: bool,
}

impl Cost {
    fn of(plan: &Plan, schema: &Schema, running: &Running) -> Self {
        let moment = running.moment();
        let tables = &moment.tables;
        let all = match schema.rows {
            Rows::Of(Object::Link) => tables.links.len(),
            Rows::Of(Object::Addr) => tables.addresses.len(),
            Rows::Of(Object::Neigh) => tables.neighbours.len(),
            Rows::Of(Object::Route) => tables.routes.len(),
            Rows::Of(Object::Nexthop) => tables.nexthops.len(),
            Rows::Of(Object::Rule) => tables.rules.len(),
            Rows::Of(Object::Fdb) => tables.fdb.len(),
            Rows::Hops => tables.routes.len() * 2,
            Rows::Events => 10_000,
            Rows::Feeds | Rows::Peers => 10,
            Rows::Nat(Table::Flows | Table::Mappings) => 100_000,
            Rows::Nat(Table::Subscribers | Table::Blocks) => 10_000,
            Rows::Nat(Table::Pools | Table::Leases | Table::Helpers) => 100,
        } as f64;
        let links = tables.links.len().max(1) as f64;
        let next_hops = tables.nexthops.len().max(20) as f64;
        // Routes that share all that they point to, on average.
        let alike = all / tables.routes.distinct_bodies().max(1) as f64;
        let of = |condition: &Condition| -> f64 {
            match (condition.narrows, condition.compare) {
                (Narrows::Link | Narrows::LinkName, Compare::Equal) => match schema.rows {
                    Rows::Of(Object::Link) => 1.0,
                    _ => all / links,
                },
                (Narrows::Nexthop, Compare::Equal) => match schema.rows {
                    Rows::Of(Object::Nexthop) => 1.0,
                    _ => all / next_hops,
                },
                (Narrows::Prefix | Narrows::Destination | Narrows::Host, Compare::Equal) => 2.0,
                (Narrows::Mac, _) => 2.0,
                (_, Compare::By(Relation::Within)) => all / 100.0,
                (_, Compare::By(_)) => 8.0,
                (Narrows::Gateway, _) => alike * 2.0,
                (Narrows::Nat(nat::Narrows::Protocol | nat::Narrows::Alias), _) => all / 2.0,
                (Narrows::Nat(_), _) => all / 1_000.0,
                (Narrows::PreferredSource, _) => all / 20.0,
                (_, Compare::AtLeast | Compare::AtMost) => all / 2.0,
                _ => all * 0.9,
            }
        };
        let conditions = plan.conditions.iter().map(of);
        let rows = conditions.fold(all, f64::min);
        let is_one = plan.conditions.iter().any(|condition| {
            condition.compare == Compare::Equal
                && matches!(
                    (schema.rows, condition.narrows),
                    (Rows::Of(Object::Link), Narrows::Link | Narrows::LinkName)
                        | (Rows::Of(Object::Nexthop), Narrows::Nexthop)
                )
        });
        // A translation looks at all its rows, whatever is asked for.
        let begun = match schema.rows {
            Rows::Nat(_) => all,
            _ => 5.0,
        };
        Self {
            rows,
            begun,
            is_one,
        }
    }
}

/// Which of a table's columns, if it is one of rows.
pub(crate) fn column_of(schema: &'static Schema, at: c_int) -> Option<&'static SqlColumn> {
    schema.columns.get(usize::try_from(at).ok()?)
}

/// Whether a column has a row's own field.
pub(crate) fn field_of(column: &SqlColumn) -> Option<&'static str> {
    match column.from {
        From::Field(name) => Some(name),
        _ => None,
    }
}
