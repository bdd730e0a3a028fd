//! A VRF and its ports (`IFLA_VRF_…`, `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use crate::row::attributes::RawAttributes;

/// The routing table of a VRF; of a port, that of its VRF.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vrf {
    pub table: Option<u32>,
    pub rest: RawAttributes,
}
