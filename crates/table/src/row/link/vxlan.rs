//! VXLAN (RFC 7348; `IFLA_VXLAN_…`, `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use std::net::IpAddr;

use crate::row::attributes::RawAttributes;

/// Settings of a VXLAN.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vxlan {
    pub id: Option<u32>,
    /// Where frames for unknown stations go: a group, or one remote.
    pub group: Option<IpAddr>,
    pub link: Option<u32>,
    pub local: Option<IpAddr>,
    pub ttl: Option<u8>,
    pub tos: Option<u8>,
    pub learning: Option<u8>,
    pub ageing: Option<u32>,
    pub limit: Option<u32>,
    /// Source ports, the lowest and the highest.
    pub port_range: Option<(u16, u16)>,
    pub proxy: Option<u8>,
    pub rsc: Option<u8>,
    pub l2miss: Option<u8>,
    pub l3miss: Option<u8>,
    pub port: Option<u16>,
    pub udp_csum: Option<u8>,
    pub udp_zero_csum6_tx: Option<u8>,
    pub udp_zero_csum6_rx: Option<u8>,
    pub remcsum_tx: Option<u8>,
    pub remcsum_rx: Option<u8>,
    pub gbp: bool,
    pub remcsum_nopartial: bool,
    pub collect_metadata: Option<u8>,
    pub label: Option<u32>,
    pub gpe: bool,
    pub ttl_inherit: Option<u8>,
    pub df: Option<u8>,
    pub vnifilter: Option<u8>,
    pub localbypass: Option<u8>,
    pub label_policy: Option<u32>,
    /// Bits of the header, in network byte order, that need not be 0.
    pub reserved_bits: Option<[u8; 8]>,
    pub rest: RawAttributes,
}
