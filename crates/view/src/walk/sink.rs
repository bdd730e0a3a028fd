//! Who takes the rows of a scan: a printer writes them, `rows` hands them on
//! as they are.

use std::io;
use std::sync::Arc;

use table::{Address, FdbEntry, Link, Neighbour, Nexthop, RouteRef, Rule};

use crate::printer::Printer;
use crate::selection::Selection;

/// Takes the rows of a scan, one by one, and leaves out those that it does
/// not want.
pub(crate) trait Sink {
    /// What the rows are narrowed by.
    fn selection(&self) -> &Selection;
    /// Rows taken so far.
    fn rows(&self) -> u64;
    /// Octets made of them.
    fn octets(&self) -> usize;
    /// Whether only the number of rows is wanted.
    fn only_counts(&self) -> bool;
    /// Takes rows that are only counted.
    fn count(&mut self, rows: u64);

    fn link(&mut self, row: &Arc<Link>) -> io::Result<()>;
    fn address(&mut self, link: &Arc<Link>, row: &Arc<Address>) -> io::Result<()>;
    fn neighbour(&mut self, row: &Arc<Neighbour>) -> io::Result<()>;
    /// A route, and which of its run it is.
    fn route(&mut self, row: &RouteRef<'_>, ordinal: u32) -> io::Result<()>;
    fn nexthop(&mut self, row: &Arc<Nexthop>) -> io::Result<()>;
    fn rule(&mut self, row: &Arc<Rule>) -> io::Result<()>;
    fn fdb(&mut self, row: &Arc<FdbEntry>) -> io::Result<()>;
}

impl<W: io::Write> Sink for Printer<'_, W> {
    fn selection(&self) -> &Selection {
        self.selection()
    }

    #[inline]
    fn rows(&self) -> u64 {
        self.rows()
    }

    #[inline]
    fn octets(&self) -> usize {
        self.printed()
    }

    fn only_counts(&self) -> bool {
        self.only_counts()
    }

    fn count(&mut self, rows: u64) {
        self.count(rows);
    }

    fn link(&mut self, row: &Arc<Link>) -> io::Result<()> {
        self.link(row)
    }

    fn address(&mut self, link: &Arc<Link>, row: &Arc<Address>) -> io::Result<()> {
        self.on_link(link, &[row])
    }

    #[inline]
    fn neighbour(&mut self, row: &Arc<Neighbour>) -> io::Result<()> {
        self.neighbour(row)
    }

    #[inline]
    fn route(&mut self, row: &RouteRef<'_>, _: u32) -> io::Result<()> {
        self.route(&row.with_body(&**row.body))
    }

    fn nexthop(&mut self, row: &Arc<Nexthop>) -> io::Result<()> {
        self.nexthop(row)
    }

    fn rule(&mut self, row: &Arc<Rule>) -> io::Result<()> {
        self.rule(row)
    }

    fn fdb(&mut self, row: &Arc<FdbEntry>) -> io::Result<()> {
        self.fdb(row)
    }
}
