//! IPv6: a slot for each /16, a block of slots for the /32s within it, and
//! nodes of sorted keys ([`crate::keys`]) for what divides a /32.
//!
//! The slots of /16s are 256 KiB; a block is as much, and a /16 without
//! longer routes has none: its slot says the answer, and lookups end there.
//! A table of the global kind uses some eighty /16s: 20 MiB, of which
//! lookups touch the lines of /32s that exist.

mod lookup;
mod writer;

pub use lookup::Reader6;
pub use writer::Writer6;

use std::sync::Arc;

use memory::quiescent::Domain;

use crate::keys::FIRST;
use crate::route::{Config, Error};

/// Bits that a slot of the first kind stands for.
const TOP_BITS: u8 = 16;
/// Slots of the first kind.
const TOPS: usize = 1 << TOP_BITS;
/// Bits after those that a slot of a block stands for.
const BLOCK_BITS: u8 = FIRST - TOP_BITS;
/// Slots of a block.
const BLOCK: usize = 1 << BLOCK_BITS;

/// What a slot says, up to this, is the answer for all that it stands for;
/// what is more is where it leads, in bytes from the arena's start.
const MOST_ANSWER: u32 = crate::MAX_NEXT_HOP as u32;

/// An empty IPv6 table: its writer and a reader. Lookups take sections of
/// `domain`. Address space for `config.max_bytes`.
pub fn fib6(config: Config, domain: &Arc<Domain>) -> Result<(Writer6, Reader6), Error> {
    let writer = Writer6::new(config, domain)?;
    let reader = Reader6::new(Arc::clone(writer.shared()));
    Ok((writer, reader))
}

#[cfg(test)]
mod tests;
