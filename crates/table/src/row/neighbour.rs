//! An ARP or ND neighbour.

use std::net::IpAddr;

use super::link_layer_address::LinkLayerAddress;

/// A neighbour (`RTM_NEWNEIGH` of `AF_INET` and `AF_INET6`), without its
/// ages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// `ndm_ifindex`; 0 for a proxy entry of every link.
    pub link: u32,
    /// `NDA_DST`.
    pub address: IpAddr,
    /// Whether it is a proxy entry: another's address that we answer for.
    pub proxy: bool,
    /// `NDA_LLADDR`; none while incomplete.
    pub lladdr: LinkLayerAddress,
    /// `ndm_state`: [`state`].
    pub state: u16,
    /// `ndm_flags` and, from bit 8, `NDA_FLAGS_EXT`: [`flag`].
    pub flags: u32,
    /// `NDA_PROTOCOL`: who made it (`RTPROT_…`), 0 unless said.
    pub protocol: u8,
    /// `ndm_type`: `RTN_…`.
    pub kind: u8,
}

/// What tells neighbours apart in the kernel, in the table's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NeighbourKey {
    /// Index of its link.
    pub link: u32,
    /// Its address.
    pub address: IpAddr,
    /// Whether it is a proxy entry.
    pub proxy: bool,
}

impl Neighbour {
    /// Its key.
    pub fn key(&self) -> NeighbourKey {
        NeighbourKey {
            link: self.link,
            address: self.address,
            proxy: self.proxy,
        }
    }
}

/// `NUD_…`, `linux/neighbour.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod state {
    pub const NONE: u16 = 0;
    pub const INCOMPLETE: u16 = 1;
    pub const REACHABLE: u16 = 2;
    pub const STALE: u16 = 4;
    pub const DELAY: u16 = 8;
    pub const PROBE: u16 = 0x10;
    pub const FAILED: u16 = 0x20;
    pub const NOARP: u16 = 0x40;
    pub const PERMANENT: u16 = 0x80;
}

/// `NTF_…`, `linux/neighbour.h`; the extended ones shifted by 8.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod flag {
    pub const USE: u32 = 1;
    pub const SELF: u32 = 1 << 1;
    pub const MASTER: u32 = 1 << 2;
    pub const PROXY: u32 = 1 << 3;
    pub const EXT_LEARNED: u32 = 1 << 4;
    pub const OFFLOADED: u32 = 1 << 5;
    pub const STICKY: u32 = 1 << 6;
    pub const ROUTER: u32 = 1 << 7;
    pub const EXT_MANAGED: u32 = 1 << 8;
    pub const EXT_LOCKED: u32 = 1 << 9;
}
