//! IPv6: a slot for each /16, a block of slots for the /32s within it, and
//! nodes of sorted keys ([`crate::keys`]) for what divides a /32.
//!
//! The slots of /16s are 256 KiB; a block is as much, and a /16 without
//! longer routes has none: its slot says the answer, and lookups end there.
//! A table of the global kind uses some eighty /16s: 20 MiB, of which
//! lookups touch the lines of /32s that exist.

#![allow(unsafe_code, reason = "hands a caller's word on to the lookup")]

mod lookup;
mod records;

use crate::Path;
use crate::address::Layout;
use crate::keys::FIRST;
use crate::store::Table;
use records::Records;

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

impl Layout for u128 {
    const BITS: u8 = 128;
    type Key = (Self, u8);
    type Compiled = Records;

    fn ends_within(self, len: u8) -> bool {
        self.checked_shl(len.into()).unwrap_or(0) == 0
    }

    #[inline]
    fn first_bits(self, count: u8) -> usize {
        (self >> (<Self as Layout>::BITS - count)) as usize
    }

    fn key(self, len: u8) -> (Self, u8) {
        (self, len)
    }

    #[inline]
    unsafe fn lookup(table: Table<'_>, path: Path, addresses: &[Self], next_hops: &mut [u16]) {
        // SAFETY: the caller's word is what is asked for.
        unsafe { lookup::lookup(table, path, addresses, next_hops) };
    }
}

#[cfg(test)]
mod tests;
