//! Ipvlan and ipvtap (`IFLA_IPVLAN_…`, `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use crate::row::attributes::RawAttributes;

/// Settings of an ipvlan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ipvlan {
    pub mode: Option<u16>,
    pub flags: Option<u16>,
    pub rest: RawAttributes,
}
