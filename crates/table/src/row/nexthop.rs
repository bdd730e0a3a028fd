//! A next-hop object.

use std::net::IpAddr;

use super::attributes::RawAttributes;
use super::encap::Encap;

/// A next-hop object or group (`RTM_NEWNEXTHOP`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Nexthop {
    /// `NHA_ID`, its key; never 0.
    pub id: u32,
    /// `nh_family`: `AF_UNSPEC` (0) for a group.
    pub family: u8,
    /// `nh_scope`.
    pub scope: u8,
    /// `nh_protocol`: `RTPROT_…`.
    pub protocol: u8,
    /// `nh_flags`: `RTNH_F_…` ([`super::route::hop_flag`]), without those
    /// that follow from its link's state.
    pub flags: u32,
    /// `NHA_BLACKHOLE`.
    pub blackhole: bool,
    /// `NHA_FDB`.
    pub fdb: bool,
    /// `NHA_OIF`.
    pub link: Option<u32>,
    /// `NHA_GATEWAY`.
    pub gateway: Option<IpAddr>,
    /// `NHA_ENCAP_TYPE` and `NHA_ENCAP`: how it wraps packets.
    pub encap: Option<Box<Encap>>,
    /// `NHA_GROUP`: empty unless a group.
    pub group: Vec<GroupMember>,
    /// `NHA_GROUP_TYPE`: 0 multipath, 1 resilient.
    pub group_kind: u16,
    /// `NHA_RES_GROUP` of a resilient group.
    pub resilient: Option<Resilient>,
    /// Attributes not named above, as they came.
    pub rest: RawAttributes,
}

/// A member of a group (`struct nexthop_grp`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupMember {
    /// Its `NHA_ID`.
    pub id: u32,
    /// Its weight, from 1.
    pub weight: u32,
}

/// `NHA_RES_GROUP_…`, without the unbalanced time, which nobody announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resilient {
    /// `NHA_RES_GROUP_BUCKETS`.
    pub buckets: u16,
    /// `NHA_RES_GROUP_IDLE_TIMER`, hundredths of a second.
    pub idle_timer_centisecs: u32,
    /// `NHA_RES_GROUP_UNBALANCED_TIMER`, hundredths of a second.
    pub unbalanced_timer_centisecs: u32,
}
