//! Macvlan and macvtap (`IFLA_MACVLAN_…`, `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use crate::row::attributes::RawAttributes;

/// Settings of a macvlan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Macvlan {
    pub mode: Option<u32>,
    pub flags: Option<u16>,
    /// The source addresses it takes in mode `source`.
    pub macaddr_data: Box<[[u8; 6]]>,
    pub macaddr_count: Option<u32>,
    pub bc_queue_len: Option<u32>,
    pub bc_queue_len_used: Option<u32>,
    pub bc_cutoff: Option<i32>,
    pub rest: RawAttributes,
}
