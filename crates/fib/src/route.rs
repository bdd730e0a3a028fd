//! What goes into a table, its limits, and what can be wrong with it.

use std::io;

use crate::MAX_NEXT_HOP;
use crate::address::Address;

/// A prefix and where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route<A> {
    /// The first address of the prefix, in host order: `192.0.2.0` is
    /// `0xc000_0200`.
    pub prefix: A,
    /// Bits of the prefix: 0 to 32, or 128.
    pub len: u8,
    /// 1 to [`MAX_NEXT_HOP`].
    pub next_hop: u16,
}

/// A route that is there from now on, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Change<A> {
    /// The first address of the prefix, in host order.
    pub prefix: A,
    /// Bits of the prefix: 0 to 32, or 128.
    pub len: u8,
    /// Where the prefix leads now: 1 to [`MAX_NEXT_HOP`]. `None` withdraws
    /// it; that of a prefix that is not there changes nothing.
    pub next_hop: Option<u16>,
}

impl<A> From<Route<A>> for Change<A> {
    fn from(route: Route<A>) -> Self {
        Self {
            prefix: route.prefix,
            len: route.len,
            next_hop: Some(route.next_hop),
        }
    }
}

/// An IPv4 route.
pub type Route4 = Route<u32>;
/// An IPv6 route.
pub type Route6 = Route<u128>;
/// A change of an IPv4 route.
pub type Change4 = Change<u32>;
/// A change of an IPv6 route.
pub type Change6 = Change<u128>;

/// The limits of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Most routes. What goes beyond is refused; what was there stays.
    pub max_routes: usize,
    /// Most bytes of the structure that is looked up in, rounded up to
    /// whole huge pages. Address space: pages are taken when used. A
    /// million routes take some 5 MiB, and while much of a table changes at
    /// once, up to twice that. Beyond 4 GiB they are not used.
    pub max_bytes: usize,
}

impl Default for Config {
    /// 4 million routes, 256 MiB.
    fn default() -> Self {
        Self {
            max_routes: 4_000_000,
            max_bytes: 256 << 20,
        }
    }
}

/// What a table holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Routes.
    pub routes: usize,
    /// Bytes of the structure that lookups read.
    pub lookup_bytes: usize,
    /// Bytes from its first to its last, holes between included.
    pub spread_bytes: usize,
    /// Bytes that wait until no reader can be reading them.
    pub retired_bytes: usize,
}

/// Why a table or a change of it was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A length over 32, or 128. No change of the slice was made.
    #[error("change {at}: a prefix length of {len} bits: at most {max}")]
    Length {
        /// Which of the slice, from 0.
        at: usize,
        /// The length.
        len: u8,
        /// The family's bits.
        max: u8,
    },
    /// A prefix with bits set after its length. No change of the slice was
    /// made.
    #[error("change {at}: the prefix has bits set after its {len}: clear them")]
    HostBits {
        /// Which of the slice, from 0.
        at: usize,
        /// The length.
        len: u8,
    },
    /// 0, or over [`MAX_NEXT_HOP`]. No change of the slice was made.
    #[error("change {at}: next hop {next_hop}: 1 to {MAX_NEXT_HOP} are possible")]
    NextHop {
        /// Which of the slice, from 0.
        at: usize,
        /// The next hop.
        next_hop: u16,
    },
    /// The table has as many routes as it may have. The changes before this
    /// one were made, this one and those after it were not.
    #[error("change {at}: the table is full with {max_routes} routes: raise `max_routes`")]
    Full {
        /// Which of the slice, from 0.
        at: usize,
        /// The limit.
        max_routes: usize,
    },
    /// No space to compile the routes into. They are kept, lookups answer
    /// there as before, and the next call tries again: space comes back
    /// when readers have passed.
    #[error(
        "{waiting} parts of the table wait for space in {max_bytes} bytes: raise `max_bytes`, or apply again when readers have passed"
    )]
    NoSpace {
        /// Parts of the table that answer as before.
        waiting: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// The kernel gave no memory.
    #[error("reserving {bytes} bytes of address space: {source}")]
    Memory {
        /// How many were asked for.
        bytes: usize,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Whether a change is one that a table can take.
pub(crate) fn check<A: Address>(at: usize, change: &Change<A>) -> Result<(), Error> {
    let (len, max) = (change.len, A::BITS);
    if len > max {
        return Err(Error::Length { at, len, max });
    }
    if !change.prefix.ends_within(len) {
        return Err(Error::HostBits { at, len });
    }
    match change.next_hop {
        Some(next_hop) if next_hop == 0 || next_hop > MAX_NEXT_HOP => {
            Err(Error::NextHop { at, next_hop })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_table_can_take_is_named() {
        let change = |prefix, len, next_hop| Change {
            prefix,
            len,
            next_hop,
        };
        let of = |change: Change4| check(7, &change).map_err(|error| error.to_string());
        assert!(of(change(0, 0, Some(1))).is_ok());
        assert!(of(change(u32::MAX, 32, None)).is_ok());
        assert!(of(change(0, 33, None)).unwrap_err().contains("33 bits"));
        assert!(
            of(change(1, 31, None))
                .unwrap_err()
                .contains("after its 31")
        );
        assert!(of(change(1, 0, None)).is_err());
        assert!(of(change(0, 0, Some(0))).is_err());
        assert!(
            of(change(0, 0, Some(0x8000)))
                .unwrap_err()
                .contains("32768")
        );
        let six = Change {
            prefix: 1_u128,
            len: 128,
            next_hop: Some(1),
        };
        assert!(check(0, &six).is_ok());
        assert!(check(0, &Change { len: 127, ..six }).is_err());
    }
}
