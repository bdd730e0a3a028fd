//! An IP address of a link.

use std::net::{IpAddr, Ipv6Addr};

/// An address (`RTM_NEWADDR`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `ifa_index`.
    pub link: u32,
    /// `IFA_LOCAL`, or `IFA_ADDRESS` where there is no `IFA_LOCAL`.
    pub local: IpAddr,
    /// `ifa_prefixlen`.
    pub prefix_len: u8,
    /// `IFA_ADDRESS` where it differs from `local`: the other end of a
    /// point-to-point link.
    pub peer: Option<IpAddr>,
    /// `IFA_BROADCAST`.
    pub broadcast: Option<IpAddr>,
    /// `IFA_ANYCAST`.
    pub anycast: Option<IpAddr>,
    /// `IFA_LABEL` (IPv4).
    pub label: Option<Box<str>>,
    /// `ifa_scope`: `RT_SCOPE_…` ([`super::route::scope`]).
    pub scope: u8,
    /// `IFA_FLAGS`: [`flag`].
    pub flags: u32,
    /// When it stops being valid, milliseconds since the UNIX epoch;
    /// `None`: never. (The kernel tells what remains, in seconds.)
    pub valid_until_millis: Option<u64>,
    /// When it stops being preferred; `None`: never.
    pub preferred_until_millis: Option<u64>,
    /// `IFA_RT_PRIORITY`: metric of its prefix route.
    pub metric: u32,
    /// `IFA_PROTO`: who made it (`IFAPROT_…`), 0 unless said.
    pub protocol: u8,
    /// `cstamp` of `IFA_CACHEINFO`: when it was made, hundredths of a
    /// second of the kernel's clock; it starts again from 0 after 497 days.
    pub created_centisecs: u32,
}

/// What tells addresses apart in the kernel. Ordered by address, then link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressKey {
    /// The address itself.
    pub local: IpAddr,
    /// Index of its link.
    pub link: u32,
    /// Length of its prefix.
    pub prefix_len: u8,
    /// The other end (IPv4 allows one address towards several).
    pub peer: Option<IpAddr>,
}

impl Address {
    /// An address of which nothing is known but where it is: of universe
    /// scope (0), for ever, with neither peer nor broadcast.
    pub fn new(link: u32, local: IpAddr, prefix_len: u8) -> Self {
        Self {
            link,
            local,
            prefix_len,
            peer: None,
            broadcast: None,
            anycast: None,
            label: None,
            scope: 0,
            flags: 0,
            valid_until_millis: None,
            preferred_until_millis: None,
            metric: 0,
            protocol: 0,
            created_centisecs: 0,
        }
    }

    /// Its key.
    pub fn key(&self) -> AddressKey {
        AddressKey {
            local: self.local,
            link: self.link,
            prefix_len: self.prefix_len,
            peer: self.peer,
        }
    }
}

/// Scope of an IPv6 address as a number of RFC 4291 section 2.7
/// (`ipv6_addr_src_scope`): the kernel lists the wider before the narrower.
pub fn reach(address: Ipv6Addr) -> u8 {
    if address.is_multicast() {
        (address.segments()[0] & 0xf) as u8
    } else if address.is_unspecified() {
        0
    } else if address.is_loopback() || address.is_unicast_link_local() {
        2
    } else if address.segments()[0] & 0xffc0 == 0xfec0 {
        5
    } else {
        14
    }
}

/// `IFA_F_…`, `linux/if_addr.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod flag {
    /// Of IPv4 addresses; of IPv6 ones it says temporary.
    pub const SECONDARY: u32 = 1;
    pub const NODAD: u32 = 1 << 1;
    pub const OPTIMISTIC: u32 = 1 << 2;
    pub const DADFAILED: u32 = 1 << 3;
    pub const HOMEADDRESS: u32 = 1 << 4;
    pub const DEPRECATED: u32 = 1 << 5;
    pub const TENTATIVE: u32 = 1 << 6;
    pub const PERMANENT: u32 = 1 << 7;
    pub const MANAGETEMPADDR: u32 = 1 << 8;
    pub const NOPREFIXROUTE: u32 = 1 << 9;
    pub const MCAUTOJOIN: u32 = 1 << 10;
    pub const STABLE_PRIVACY: u32 = 1 << 11;
}
