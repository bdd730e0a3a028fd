//! The readers' end, one for both families. How records are read is the
//! layout's ([`crate::address::Layout::lookup`]).

#![allow(unsafe_code, reason = "a lookup is handed the table and its section")]

use std::marker::PhantomData;
use std::sync::Arc;

use memory::quiescent::Section;

use crate::Path;
use crate::address::Address;
use crate::store::{Shared, Table};

/// The readers' end of a table. A clone for each worker; all see the same
/// table.
#[derive(Debug, Clone)]
pub struct Reader<A> {
    shared: Arc<Shared>,
    path: Path,
    family: PhantomData<A>,
}

impl<A: Address> Reader<A> {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            path: Path::best(),
            family: PhantomData,
        }
    }

    /// The same reader with other instructions; `None` where the machine
    /// lacks them. For tests and measurements.
    pub fn with_path(&self, path: Path) -> Option<Self> {
        path.is_here().then(|| Self {
            shared: Arc::clone(&self.shared),
            path,
            family: PhantomData,
        })
    }

    /// The instructions it uses.
    pub fn path(&self) -> Path {
        self.path
    }

    /// The next hop of the longest prefix that holds each address, or 0
    /// where none does. Addresses are numbers in host order; the shorter of
    /// the two slices counts. A section of another domain finds nothing.
    ///
    /// Each answer is that of the table at some moment of the call. In
    /// batches of 64 and more, some 1 to 4 ns an IPv4 address, 2 ns an IPv6
    /// address that no route longer than /16 could hold, 3 to 8 others;
    /// writes nothing shared, allocates nothing, waits for nothing.
    #[inline]
    pub fn lookup(&self, section: &Section<'_>, addresses: &[A], next_hops: &mut [u16]) {
        self.lookup_in(self.shared.table(), section, addresses, next_hops);
    }

    /// The same, with lines asked for ahead or not, where the layout does.
    #[cfg(test)]
    pub(crate) fn lookup_as(
        &self,
        is_large: bool,
        section: &Section<'_>,
        addresses: &[A],
        next_hops: &mut [u16],
    ) {
        let table = Table {
            is_large,
            ..self.shared.table()
        };
        self.lookup_in(table, section, addresses, next_hops);
    }

    #[inline]
    fn lookup_in(
        &self,
        table: Table<'_>,
        section: &Section<'_>,
        addresses: &[A],
        next_hops: &mut [u16],
    ) {
        let n = addresses.len().min(next_hops.len());
        let (addresses, next_hops) = (&addresses[..n], &mut next_hops[..n]);
        if section.is_of(self.shared.domain()) {
            // SAFETY: the table is this reader's, which is of this family, and
            // the section is of its domain. Readers are only made with paths
            // that are here (`new`, `with_path`).
            unsafe { A::lookup(table, self.path, addresses, next_hops) };
        } else {
            next_hops.fill(0);
        }
    }
}
