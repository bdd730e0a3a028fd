//! Rows as they are, and the values of their columns, for who has a language
//! of questions of its own (SQL): it narrows rows by what it has resolved,
//! the planner chooses the way to them, and what comes is looked at by who
//! asked. Nothing else is left out.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use table::{
    Address, FdbEntry, Link, LinkLayerAddress, Neighbour, Nexthop, RouteRef, Rule, SharedRoute,
    Tables,
};

use crate::address::OnLink;
use crate::answer_error::AnswerError;
use crate::columns::are_sampled;
use crate::context::{Context, Hidden, View};
use crate::plan::{Access, plan};
use crate::printer::Show;
use crate::question::{Object, Output};
use crate::selected_fields::{CellValue, SelectedFields, Take};
use crate::selection::{InTable, Selection};
use crate::walk::{Bounds, Position, Scan, Sink};

/// What rows are narrowed by: all of it holds for each row that is wanted.
/// What a kind of row does not have narrows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Narrowed {
    /// `AF_INET`, `AF_INET6`.
    pub family: Option<u8>,
    /// The link: of a route that of any of its next hops.
    pub link: Option<u32>,
    /// Addresses and prefixes inside this one.
    pub within: Option<IpNet>,
    /// Routes of exactly this prefix; addresses that are this host.
    pub exact: Option<IpNet>,
    /// Routes that cover this prefix.
    pub covering: Option<IpNet>,
    /// Routes from a prefix to another, by address, then length; both of one
    /// family.
    pub between: Option<(IpNet, IpNet)>,
    /// Links by index, next hops by id, ends included.
    pub numbers: Option<(u32, u32)>,
    /// The link-layer address.
    pub mac: Option<LinkLayerAddress>,
    /// The table of routes.
    pub table: Option<u32>,
    /// Routes by preferred source.
    pub source: Option<IpAddr>,
    /// Routes by a gateway.
    pub gateway: Option<IpAddr>,
    /// Next hops by id; routes by the id that they name.
    pub id: Option<u32>,
    /// Rules by priority.
    pub priority: Option<u32>,
}

/// A row, as the tables have it.
#[derive(Debug, Clone)]
pub enum FoundRow {
    /// A link.
    Link(Arc<Link>),
    /// An address and its link.
    Address(Arc<Link>, Arc<Address>),
    /// A neighbour.
    Neighbour(Arc<Neighbour>),
    /// A route, and which it is of those with its table, prefix, TOS and
    /// metric.
    Route(SharedRoute, u32),
    /// A next-hop object.
    Nexthop(Arc<Nexthop>),
    /// A rule.
    Rule(Arc<Rule>),
    /// A forwarding entry.
    Fdb(Arc<FdbEntry>),
}

/// Rows on their way, some at a time.
#[derive(Debug)]
pub struct RowScan {
    selection: Selection,
    after: Option<Position>,
    is_over: bool,
}

impl RowScan {
    /// The rows of a table that are not narrowed out.
    pub fn new(object: Object, by: &Narrowed) -> Self {
        let mut selection = Selection::all_of(object);
        selection.family = by.family;
        selection.device = by.link;
        selection.within = by.within;
        selection.exact = by.exact;
        selection.covering = by.covering;
        selection.between = by.between;
        selection.numbers = by.numbers;
        selection.mac = by.mac;
        selection.in_table = by.table.map_or(InTable::Any, InTable::Only);
        selection.source = by.source;
        selection.gateway = by.gateway;
        selection.id = by.id;
        selection.priority = by.priority;
        Self {
            selection,
            after: None,
            is_over: false,
        }
    }

    /// The way to the rows, in words.
    pub fn way(&self) -> &'static str {
        match plan(&self.selection) {
            Access::All => "all rows",
            Access::Key(_) => "the row of a number",
            Access::Keys(..) => "a range of numbers",
            Access::ByLink(..) => "the rows of a link",
            Access::Inside(_) => "the addresses inside a prefix",
            Access::ByMac(_) => "the rows of a link-layer address",
            Access::ByPriority(_, Some(_)) => "the rules of a priority",
            Access::ByPriority(_, None) => "the rules of a family",
            Access::ByBody(_) => "the routes by what they point to",
            Access::Exact(..) => "the routes of a prefix",
            Access::Covering(..) => "the routes that cover a prefix, the longest first",
            Access::Within(..) => "the routes inside a prefix",
            Access::Between(..) => "a range of prefixes",
            Access::ByTable(InTable::Only(_), _) => "the routes of a table",
            Access::ByTable(InTable::Any, Some(_)) => "the routes of a family",
            Access::ByTable(InTable::Any, None) => "all rows",
        }
    }

    /// Whether all rows have come.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Appends the next rows, as many as that; all calls must be with the
    /// same tables. A seek, then O(1) a row.
    pub fn take(
        &mut self,
        tables: &Tables,
        most: usize,
        out: &mut Vec<FoundRow>,
    ) -> Result<(), AnswerError> {
        if self.is_over {
            return Ok(());
        }
        let mut taken = Taken {
            selection: &self.selection,
            rows: out,
        };
        let bounds = Bounds {
            visited: most,
            bytes: usize::MAX,
        };
        let mut scan = Scan::new(&mut taken, tables, bounds, u64::MAX);
        self.is_over = scan.run(self.after.as_ref())?;
        if let Some(last) = scan.last.take() {
            self.after = Some(last);
        }
        Ok(())
    }
}

/// For who asks for the routes of one prefix after another: the numbers of
/// the tables that have routes, by family.
#[derive(Debug, Default)]
pub struct PrefixLookup {
    v4: Option<Vec<u32>>,
    v6: Option<Vec<u32>>,
}

impl PrefixLookup {
    /// Appends the routes of exactly a prefix, of one table or of all, in
    /// their order. Whether these are all; when there are more than `most`,
    /// nothing is appended. O(log n) a table; all calls must be with the
    /// same tables.
    pub fn routes(
        &mut self,
        tables: &Tables,
        table: Option<u32>,
        prefix: IpNet,
        most: usize,
        out: &mut Vec<FoundRow>,
    ) -> bool {
        let before = out.len();
        let mut put = |ordinal: u32, row: RouteRef<'_>| {
            let has_room = out.len() - before < most;
            if has_room {
                out.push(FoundRow::Route(row.to_shared(), ordinal));
            }
            has_room
        };
        let mut of_table = |table: u32| tables.routes.each_of_prefix(table, prefix, &mut put);
        let are_all = match table {
            Some(only) => of_table(only),
            None => self.numbers(tables, prefix).iter().copied().all(of_table),
        };
        if !are_all {
            out.truncate(before);
        }
        are_all
    }

    fn numbers(&mut self, tables: &Tables, prefix: IpNet) -> &[u32] {
        match prefix {
            IpNet::V4(_) => self
                .v4
                .get_or_insert_with(|| tables.routes.tables_v4(0).collect()),
            IpNet::V6(_) => self
                .v6
                .get_or_insert_with(|| tables.routes.tables_v6(0).collect()),
        }
    }
}

/// Keeps the rows that come.
struct Taken<'t> {
    selection: &'t Selection,
    rows: &'t mut Vec<FoundRow>,
}

impl Sink for Taken<'_> {
    fn selection(&self) -> &Selection {
        self.selection
    }

    fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    fn octets(&self) -> usize {
        0
    }

    fn only_counts(&self) -> bool {
        false
    }

    fn count(&mut self, _: u64) {}

    fn link(&mut self, row: &Arc<Link>) -> io::Result<()> {
        self.rows.push(FoundRow::Link(Arc::clone(row)));
        Ok(())
    }

    fn address(&mut self, link: &Arc<Link>, row: &Arc<Address>) -> io::Result<()> {
        let row = FoundRow::Address(Arc::clone(link), Arc::clone(row));
        self.rows.push(row);
        Ok(())
    }

    fn neighbour(&mut self, row: &Arc<Neighbour>) -> io::Result<()> {
        self.rows.push(FoundRow::Neighbour(Arc::clone(row)));
        Ok(())
    }

    fn route(&mut self, row: &RouteRef<'_>, ordinal: u32) -> io::Result<()> {
        self.rows.push(FoundRow::Route(row.to_shared(), ordinal));
        Ok(())
    }

    fn nexthop(&mut self, row: &Arc<Nexthop>) -> io::Result<()> {
        self.rows.push(FoundRow::Nexthop(Arc::clone(row)));
        Ok(())
    }

    fn rule(&mut self, row: &Arc<Rule>) -> io::Result<()> {
        self.rows.push(FoundRow::Rule(Arc::clone(row)));
        Ok(())
    }

    fn fdb(&mut self, row: &Arc<FdbEntry>) -> io::Result<()> {
        self.rows.push(FoundRow::Fdb(Arc::clone(row)));
        Ok(())
    }
}

/// The values of chosen columns of a row, taken in one pass over it.
#[derive(Debug)]
pub struct Cells {
    selected: SelectedFields,
    output: Output,
}

impl Cells {
    /// Of columns by their names ([`crate::columns`]).
    pub fn new<'n>(object: Object, names: impl IntoIterator<Item = &'n str> + Clone) -> Self {
        Self {
            output: Output {
                details: true,
                statistics: are_sampled(object, names.clone()),
                ..Output::default()
            },
            selected: SelectedFields::new(names, Take::Typed),
        }
    }

    /// Takes a row's values.
    pub fn take(&mut self, row: &FoundRow, context: &Context<'_>) {
        let view = View::new(context, &self.output, Hidden::default());
        self.selected.row(|selected| match row {
            FoundRow::Link(row) => row.fields(&view, selected),
            FoundRow::Address(link, address) => {
                let addresses = &[address];
                OnLink { link, addresses }.fields(&view, selected);
            }
            FoundRow::Neighbour(row) => row.fields(&view, selected),
            FoundRow::Route(row, _) => row.with_body(&*row.body).fields(&view, selected),
            FoundRow::Nexthop(row) => row.fields(&view, selected),
            FoundRow::Rule(row) => row.fields(&view, selected),
            FoundRow::Fdb(row) => row.fields(&view, selected),
        });
    }

    /// What the row that was taken last has in a column, by its place among
    /// the names.
    pub fn get(&self, at: usize) -> CellValue<'_> {
        self.selected.typed(at)
    }
}
