//! Longest-prefix match for the packet path: routes compiled into a table
//! of a few MiB, looked up in batches by any number of readers while one
//! writer changes it.
//!
//! [`fib4`] and [`fib6`] make an empty table and give its two ends: a
//! writer ([`Writer4`], [`Writer6`]), which the control side keeps, and a
//! reader ([`Reader4`], [`Reader6`]), of which each worker holds a clone. A
//! lookup takes a [`Section`](memory::quiescent::Section) of the table's
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

mod keys;
mod node;
mod path;
mod route;
mod space;
mod store;
mod v4;
mod v6;

pub use path::Path;
pub use route::{Change, Change4, Change6, Config, Error, Route, Route4, Route6, Stats};
pub use v4::{Reader4, Writer4, fib4};
pub use v6::{Reader6, Writer6, fib6};

/// The largest next hop.
pub const MAX_NEXT_HOP: u16 = 0x7fff;
