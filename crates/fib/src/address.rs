//! The two families, told apart by the number that is an address: `u32` for
//! IPv4, `u128` for IPv6. What differs between them stands here and in the
//! layouts ([`crate::v4`], [`crate::v6`]); all else is written once over it.

#![allow(unsafe_code, reason = "what a lookup asks of its caller")]

use std::fmt::{Debug, LowerHex};
use std::hash::Hash;

use crate::Path;
use crate::compiled::Compiled;
use crate::store::Table;

/// A whole number in host order that is an address: `u32` or `u128`. No
/// other type can be one.
pub trait Address: Copy + Ord + Hash + Debug + LowerHex + Send + Sync + 'static + Layout {}

impl Address for u32 {}
impl Address for u128 {}

/// How the table of a family is laid out, for its writer and its readers.
pub trait Layout: Sized {
    /// Bits of an address: 32 or 128.
    const BITS: u8;
    /// Orders prefixes, and the shorter of two with the same first address
    /// first.
    type Key: Copy + Ord;
    /// The writer's form of the routes.
    type Compiled: Compiled<Address = Self>;

    /// Whether all bits that are set are among the first `len`.
    fn ends_within(self, len: u8) -> bool;

    /// The first `count` bits, at most 32, as a number.
    fn first_bits(self, count: u8) -> usize;

    /// Where a prefix stands in order.
    fn key(self, len: u8) -> Self::Key;

    /// Looks up as many addresses as there are next hops.
    ///
    /// # Safety
    /// The table is one of this family, within a section of its domain, and
    /// the processor has the path's instructions.
    unsafe fn lookup(table: Table<'_>, path: Path, addresses: &[Self], next_hops: &mut [u16]);
}
