//! IEEE 802.1Q and 802.1ad (`IFLA_VLAN_…`, `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use crate::row::attributes::RawAttributes;

/// Settings of a VLAN.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vlan {
    pub id: Option<u16>,
    /// `VLAN_FLAG_…`, and which of them are meant.
    pub flags: Option<(u32, u32)>,
    /// Priorities of the machine and of the frame, pairs of from and to.
    pub egress_qos: Box<[(u32, u32)]>,
    pub ingress_qos: Box<[(u32, u32)]>,
    /// `ETH_P_8021Q`, `ETH_P_8021AD`.
    pub protocol: Option<u16>,
    pub rest: RawAttributes,
}
