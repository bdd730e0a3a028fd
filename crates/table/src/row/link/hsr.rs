//! HSR and PRP (IEC 62439-3; `IFLA_HSR_…`, `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use crate::row::attributes::RawAttributes;

/// Settings and state of a redundant link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hsr {
    pub slave1: Option<u32>,
    pub slave2: Option<u32>,
    pub multicast_spec: Option<u8>,
    pub supervision_addr: Option<[u8; 6]>,
    pub seq_nr: Option<u16>,
    pub version: Option<u8>,
    pub protocol: Option<u8>,
    pub interlink: Option<u32>,
    pub rest: RawAttributes,
}
