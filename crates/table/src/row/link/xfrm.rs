//! XFRM interfaces (`IFLA_XFRM_…`, `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use crate::row::attributes::RawAttributes;

/// Settings of an XFRM interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Xfrm {
    pub link: Option<u32>,
    pub if_id: Option<u32>,
    pub collect_metadata: bool,
    pub rest: RawAttributes,
}
