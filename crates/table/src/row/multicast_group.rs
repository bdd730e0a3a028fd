//! Multicast groups of bridges (`linux/if_bridge.h`), as one listing or event
//! tells them: of who asks for them, and of no table.

use std::net::IpAddr;

/// `struct br_mdb_entry`'s flags.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod flag {
    pub const OFFLOAD: u8 = 1 << 0;
    pub const FAST_LEAVE: u8 = 1 << 1;
    pub const STAR_EXCL: u8 = 1 << 2;
    pub const BLOCKED: u8 = 1 << 3;
}

/// What a bridge tells of its groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BridgeGroups {
    /// The bridge.
    pub bridge: u32,
    /// Which port has which group.
    pub groups: Vec<MulticastGroup>,
    /// Ports behind which a multicast router is.
    pub routers: Vec<RouterPort>,
}

/// A group that is forwarded to a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MulticastGroup {
    /// The port; the bridge, where the host itself has joined.
    pub port: u32,
    /// The group.
    pub group: Group,
    /// Only from this one.
    pub source: Option<IpAddr>,
    /// It stays until it is deleted.
    pub is_permanent: bool,
    /// [`flag`].
    pub flags: u8,
    /// The VLAN; 0: none.
    pub vlan: u16,
    /// What else a listing tells; `None`: nothing, as of the host's own.
    pub details: Option<GroupDetails>,
}

/// What a listing tells of a port's group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupDetails {
    /// Until it goes, in hundredths of a second.
    pub timer: Option<u32>,
    /// 0: from the sources alone; else from all but them (RFC 3376 §3.2).
    pub filter_mode: Option<u8>,
    /// Sources, each with its timer in hundredths of a second.
    pub sources: Vec<(IpAddr, u32)>,
    /// Who made it (`RTPROT_…`).
    pub protocol: Option<u8>,
}

/// The address of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Of IP.
    Ip(IpAddr),
    /// Of the link layer.
    LinkLayer([u8; 6]),
}

/// A port behind which a multicast router is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouterPort {
    /// The port.
    pub port: u32,
    /// Until it is none, in hundredths of a second.
    pub timer: Option<u32>,
    /// `MDB_RTR_TYPE_…`.
    pub kind: Option<u8>,
}
