//! IP in IP (RFC 2003), 6in4 (RFC 4213), and what IPv6 carries
//! (RFC 2473) (`IFLA_IPTUN_…`, `linux/if_tunnel.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::row::attributes::RawAttributes;

/// Settings of an IP tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IpTunnel {
    pub link: Option<u32>,
    pub local: Option<IpAddr>,
    pub remote: Option<IpAddr>,
    pub ttl: Option<u8>,
    pub tos: Option<u8>,
    pub encap_limit: Option<u8>,
    pub flowinfo: Option<u32>,
    /// Of `sit`: `SIT_ISATAP`.
    pub sit_flags: Option<u16>,
    /// Of `ip6tnl`: [`flag`].
    pub flags: Option<u32>,
    pub proto: Option<u8>,
    pub pmtudisc: Option<u8>,
    /// Of IPv6 Rapid Deployment (RFC 5969), as its relay prefix.
    pub six_rd_prefix: Option<Ipv6Addr>,
    pub six_rd_relay_prefix: Option<Ipv4Addr>,
    pub six_rd_prefixlen: Option<u16>,
    pub six_rd_relay_prefixlen: Option<u16>,
    pub encap: TunnelEncap,
    pub collect_metadata: bool,
    pub fwmark: Option<u32>,
    pub rest: RawAttributes,
}

/// UDP around the packets of a tunnel (`TUNNEL_ENCAP_…`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TunnelEncap {
    /// 0: none.
    pub kind: Option<u16>,
    pub flags: Option<u16>,
    pub sport: Option<u16>,
    pub dport: Option<u16>,
}

/// `IP6_TNL_F_…`, `linux/ip6_tunnel.h`.
pub mod flag {
    pub const IGN_ENCAP_LIMIT: u32 = 0x1;
    pub const USE_ORIG_TCLASS: u32 = 0x2;
    pub const USE_ORIG_FLOWLABEL: u32 = 0x4;
    pub const MIP6_DEV: u32 = 0x8;
    pub const RCV_DSCP_COPY: u32 = 0x10;
    pub const USE_ORIG_FWMARK: u32 = 0x20;
    pub const ALLOW_LOCAL_REMOTE: u32 = 0x40;
}
