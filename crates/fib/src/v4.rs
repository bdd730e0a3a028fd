//! IPv4: a slot for each /18, a record for the /24s within it, and records
//! behind that for the /24s that longer prefixes divide.
//!
//! `2^18` slots are 1 MiB. A slot leads to a record of 64 places
//! ([`crate::node`]); those with one answer share a record for each next
//! hop. A million BGP-like routes take 4.5 MiB in all, and most lookups
//! touch two lines: the slot's and the record's.

mod lookup;
mod writer;

pub use lookup::Reader4;
pub use writer::Writer4;

use std::sync::Arc;

use memory::quiescent::Domain;

use crate::route::{Config, Error};

/// Bits that a slot stands for.
const SLOT_BITS: u8 = 18;
/// Bits of an address after those.
const REST_BITS: u8 = 32 - SLOT_BITS;
/// Slots.
const SLOTS: usize = 1 << SLOT_BITS;

/// An empty IPv4 table: its writer and a reader. Lookups take sections of
/// `domain`. Address space for `config.max_bytes`; 1 MiB of slots and,
/// for the writer, 9 MiB of its own.
pub fn fib4(config: Config, domain: &Arc<Domain>) -> Result<(Writer4, Reader4), Error> {
    let writer = Writer4::new(config, domain)?;
    let reader = Reader4::new(Arc::clone(writer.shared()));
    Ok((writer, reader))
}

#[cfg(test)]
mod tests;
