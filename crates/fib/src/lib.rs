//! Longest-prefix match for the packet path: routes compiled into a table
//! of a few MiB, looked up in batches by any number of readers while one
//! writer changes it.
//!
//! [`fib`] makes an empty table and gives its two ends: a [`Writer`], which
//! the control side keeps, and a [`Reader`], of which each worker holds a
//! clone. The type of an address is the family: `u32` for IPv4, `u128` for
//! IPv6. A lookup takes a [`Section`](memory::quiescent::Section) of the table's
//! domain as proof that the worker is inside a batch; it writes nothing
//! shared and waits for nobody. What the writer takes out is used again
//! when all readers have passed between two batches.
//!
//! An answer is a next hop: a number from 1 to [`MAX_NEXT_HOP`] that means
//! something to the caller (in `dataplane`, an adjacency or a weighted
//! group of them), or 0 where no route matches. Several tables may share one
//! set of next hops.
//!
//! Called by `dataplane`; filled from `table` by the program. No socket, no
//! thread and no clock in here.

mod address;
mod compiled;
mod heap;
mod keys;
mod node;
mod order;
mod path;
mod reader;
mod route;
mod space;
mod store;
mod v4;
mod v6;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use memory::quiescent::Domain;

pub use address::Address;
pub use path::Path;
pub use reader::Reader;
pub use route::{Change, Change4, Change6, Config, Error, Route, Route4, Route6, Stats};
pub use writer::Writer;

/// The largest next hop.
pub const MAX_NEXT_HOP: u16 = 0x7fff;

/// The writer of an IPv4 table.
pub type Writer4 = Writer<u32>;
/// The writer of an IPv6 table.
pub type Writer6 = Writer<u128>;
/// A reader of an IPv4 table.
pub type Reader4 = Reader<u32>;
/// A reader of an IPv6 table.
pub type Reader6 = Reader<u128>;

/// An empty table: its writer and a reader. Lookups take sections of
/// `domain`. Address space for `config.max_bytes`; an IPv4 table begins with
/// 1 MiB of slots and, for the writer, 9 MiB of its own, an IPv6 table with
/// 256 KiB and 2 MiB.
pub fn fib<A: Address>(
    config: Config,
    domain: &Arc<Domain>,
) -> Result<(Writer<A>, Reader<A>), Error> {
    let writer = Writer::new(config, domain)?;
    let reader = Reader::new(Arc::clone(writer.shared()));
    Ok((writer, reader))
}
