//! GRE over IPv4 and IPv6 (RFC 2784, RFC 2890) and ERSPAN
//! (`IFLA_GRE_…`, `linux/if_tunnel.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use std::net::IpAddr;

use super::ip_tunnel::TunnelEncap;
use crate::row::attributes::RawAttributes;

/// Settings of a GRE tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gre {
    pub link: Option<u32>,
    pub iflags: Option<u16>,
    pub oflags: Option<u16>,
    pub ikey: Option<u32>,
    pub okey: Option<u32>,
    pub local: Option<IpAddr>,
    pub remote: Option<IpAddr>,
    pub ttl: Option<u8>,
    pub tos: Option<u8>,
    pub pmtudisc: Option<u8>,
    pub encap_limit: Option<u8>,
    pub flowinfo: Option<u32>,
    /// `IP6_TNL_F_…`: [`super::ip_tunnel::flag`].
    pub flags: Option<u32>,
    pub encap: TunnelEncap,
    pub collect_metadata: bool,
    pub ignore_df: Option<u8>,
    pub fwmark: Option<u32>,
    pub erspan_index: Option<u32>,
    pub erspan_ver: Option<u8>,
    pub erspan_dir: Option<u8>,
    pub erspan_hwid: Option<u16>,
    pub rest: RawAttributes,
}

/// Bits of `iflags` and `oflags`.
pub mod bit {
    pub const CSUM: u16 = 0x8000;
    pub const KEY: u16 = 0x2000;
    pub const SEQ: u16 = 0x1000;
}
