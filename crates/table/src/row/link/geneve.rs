//! Geneve (RFC 8926; `IFLA_GENEVE_…`, `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use std::net::IpAddr;

use crate::row::attributes::RawAttributes;

/// Settings of a Geneve tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Geneve {
    pub id: Option<u32>,
    pub remote: Option<IpAddr>,
    pub ttl: Option<u8>,
    pub tos: Option<u8>,
    pub port: Option<u16>,
    pub collect_metadata: bool,
    pub udp_csum: Option<u8>,
    pub udp_zero_csum6_tx: Option<u8>,
    pub udp_zero_csum6_rx: Option<u8>,
    pub label: Option<u32>,
    pub ttl_inherit: Option<u8>,
    pub df: Option<u8>,
    pub inner_proto_inherit: bool,
    /// Source ports, the lowest and the highest.
    pub port_range: Option<(u16, u16)>,
    pub rest: RawAttributes,
}
