//! TUN and TAP devices (`IFLA_TUN_…`, `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use crate::row::attributes::RawAttributes;

/// Settings of a TUN or TAP device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tun {
    pub owner: Option<u32>,
    pub group: Option<u32>,
    /// `IFF_TUN` 1, `IFF_TAP` 2.
    pub kind: Option<u8>,
    pub pi: Option<u8>,
    pub vnet_hdr: Option<u8>,
    pub persist: Option<u8>,
    pub multi_queue: Option<u8>,
    pub num_queues: Option<u32>,
    pub num_disabled_queues: Option<u32>,
    pub rest: RawAttributes,
}
