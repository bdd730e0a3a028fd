//! Tunnels of IPsec that have a route (`IFLA_VTI_…`,
//! `linux/if_tunnel.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use std::net::IpAddr;

use crate::row::attributes::RawAttributes;

/// Settings of a virtual tunnel interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vti {
    pub link: Option<u32>,
    pub ikey: Option<u32>,
    pub okey: Option<u32>,
    pub local: Option<IpAddr>,
    pub remote: Option<IpAddr>,
    pub fwmark: Option<u32>,
    pub rest: RawAttributes,
}
