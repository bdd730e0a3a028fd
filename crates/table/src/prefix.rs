//! Prefixes as keys: what differs between the families.

use std::fmt::Debug;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// An address of one family as a number that orders like its octets.
pub(crate) trait RouteAddress: Copy + Ord + Debug + Hash {
    /// A table's number and an address as one number.
    type InTable: Copy + Ord + Debug;
    /// The lowest address.
    const ZERO: Self;
    /// The address in a table, in the order of tables first.
    fn in_table(self, table: u32) -> Self::InTable;
    /// The bits that two addresses have in common from the left.
    fn common_bits(self, other: Self) -> u8;
    /// The address with all but the first `len` bits cleared.
    fn masked(self, len: u8) -> Self;
    /// The last address of the prefix.
    fn last(self, len: u8) -> Self;
    /// As a prefix of a length.
    fn to_net(self, len: u8) -> IpNet;
}

impl RouteAddress for u32 {
    type InTable = u64;
    const ZERO: Self = 0;

    #[inline(always)]
    fn in_table(self, table: u32) -> u64 {
        u64::from(table) << 32 | u64::from(self)
    }

    fn common_bits(self, other: Self) -> u8 {
        (self ^ other).leading_zeros() as u8
    }

    fn masked(self, len: u8) -> Self {
        self & !u32::MAX.checked_shr(len.into()).unwrap_or(0)
    }

    fn last(self, len: u8) -> Self {
        self | u32::MAX.checked_shr(len.into()).unwrap_or(0)
    }

    fn to_net(self, len: u8) -> IpNet {
        IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::from(self), len.min(32)))
    }
}

/// Two halves instead of a `u128`, whose alignment would pad each key.
pub(crate) type Halves = [u64; 2];

fn whole(halves: Halves) -> u128 {
    u128::from(halves[0]) << 64 | u128::from(halves[1])
}

fn halves(whole: u128) -> Halves {
    [(whole >> 64) as u64, whole as u64]
}

impl RouteAddress for Halves {
    type InTable = (u32, u128);
    const ZERO: Self = [0; 2];

    #[inline(always)]
    fn in_table(self, table: u32) -> (u32, u128) {
        (table, whole(self))
    }

    fn common_bits(self, other: Self) -> u8 {
        (whole(self) ^ whole(other)).leading_zeros() as u8
    }

    fn masked(self, len: u8) -> Self {
        halves(whole(self) & !u128::MAX.checked_shr(len.into()).unwrap_or(0))
    }

    fn last(self, len: u8) -> Self {
        halves(whole(self) | u128::MAX.checked_shr(len.into()).unwrap_or(0))
    }

    fn to_net(self, len: u8) -> IpNet {
        IpNet::V6(Ipv6Net::new_assert(
            Ipv6Addr::from(whole(self)),
            len.min(128),
        ))
    }
}

/// An address of either family.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Either {
    V4(u32),
    V6(Halves),
}

pub(crate) fn either(address: IpAddr) -> Either {
    match address {
        IpAddr::V4(v4) => Either::V4(v4.into()),
        IpAddr::V6(v6) => Either::V6(halves(v6.into())),
    }
}
