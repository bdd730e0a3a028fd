//! IPv4: a slot for each /18, a record for the /24s within it, and records
//! behind that for the /24s that longer prefixes divide.
//!
//! `2^18` slots are 1 MiB. A slot leads to a record of 64 places
//! ([`crate::node`]); those with one answer share a record for each next
//! hop. A million BGP-like routes take 4.5 MiB in all, and most lookups
//! touch two lines: the slot's and the record's.

#![allow(unsafe_code, reason = "hands a caller's word on to the lookup")]

mod lookup;
mod records;

use crate::Path;
use crate::address::Layout;
use crate::store::Table;
use records::Records;

/// Bits that a slot stands for.
const SLOT_BITS: u8 = 18;
/// Bits of an address after those.
const REST_BITS: u8 = 32 - SLOT_BITS;
/// Slots.
const SLOTS: usize = 1 << SLOT_BITS;

impl Layout for u32 {
    const BITS: u8 = 32;
    type Key = u64;
    type Compiled = Records;

    fn ends_within(self, len: u8) -> bool {
        self.checked_shl(len.into()).unwrap_or(0) == 0
    }

    #[inline]
    fn first_bits(self, count: u8) -> usize {
        (self >> (<Self as Layout>::BITS - count)) as usize
    }

    fn key(self, len: u8) -> u64 {
        u64::from(self) << 8 | u64::from(len)
    }

    #[inline]
    unsafe fn lookup(table: Table<'_>, path: Path, addresses: &[Self], next_hops: &mut [u16]) {
        // SAFETY: the caller's word is what is asked for.
        unsafe { lookup::lookup(table, path, addresses, next_hops) };
    }
}

#[cfg(test)]
mod tests;
