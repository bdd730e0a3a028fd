//! Types and values as they stand in `alias.h`. For the modules beside.

use std::ffi::{c_int, c_uint, c_void};
use std::net::Ipv4Addr;

/// `struct libalias`: never made, only named (see `registry`).
#[repr(C)]
pub struct LibAlias {
    _opaque: [u8; 0],
}

/// `struct alias_link`: never made, only named (see `instance`).
#[repr(C)]
pub struct AliasLink {
    _opaque: [u8; 0],
}

/// `struct in_addr`: an address in network byte order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct InAddr {
    s_addr: u32,
}

impl InAddr {
    /// The address.
    pub fn address(self) -> Ipv4Addr {
        Ipv4Addr::from(self.s_addr.to_ne_bytes())
    }

    /// The address, or `None` for INADDR_ANY.
    pub fn given(self) -> Option<Ipv4Addr> {
        Some(self.address()).filter(|address| !address.is_unspecified())
    }
}

impl From<Ipv4Addr> for InAddr {
    fn from(address: Ipv4Addr) -> Self {
        Self {
            s_addr: u32::from_ne_bytes(address.octets()),
        }
    }
}

/// `struct libalias_packet`: a packet of a batch.
#[repr(C)]
pub struct BatchPacket {
    /// The packet's first byte.
    pub packet: *mut c_void,
    /// Bytes that there are.
    pub maxpacketsize: c_int,
    /// What became of it.
    pub result: c_int,
}

/// `PKT_ALIAS_ERROR`.
pub const ERROR: c_int = -1;
/// `PKT_ALIAS_OK`.
pub const OK: c_int = 1;
/// `PKT_ALIAS_IGNORED`.
pub const IGNORED: c_int = 2;
/// `PKT_ALIAS_UNRESOLVED_FRAGMENT`.
pub const UNRESOLVED_FRAGMENT: c_int = 3;
/// `PKT_ALIAS_FOUND_HEADER_FRAGMENT`.
pub const FOUND_HEADER_FRAGMENT: c_int = 4;

/// `PKT_ALIAS_DENY_INCOMING`.
pub const DENY_INCOMING: c_uint = 0x02;
/// `PKT_ALIAS_SAME_PORTS`.
pub const SAME_PORTS: c_uint = 0x04;
/// `PKT_ALIAS_USE_SOCKETS`.
pub const USE_SOCKETS: c_uint = 0x08;
/// `PKT_ALIAS_UNREGISTERED_ONLY`.
pub const UNREGISTERED_ONLY: c_uint = 0x10;
/// `PKT_ALIAS_RESET_ON_ADDR_CHANGE`.
pub const RESET_ON_ADDR_CHANGE: c_uint = 0x20;
/// `PKT_ALIAS_PROXY_ONLY`.
pub const PROXY_ONLY: c_uint = 0x40;
/// `PKT_ALIAS_REVERSE`.
pub const REVERSE: c_uint = 0x80;
/// `PKT_ALIAS_UNREGISTERED_CGN`.
pub const UNREGISTERED_CGN: c_uint = 0x400;
/// `PKT_ALIAS_UDP_EIM`.
pub const UDP_EIM: c_uint = 0x800;

/// `LIBALIAS_MAX_LINKS`.
pub const MAX_LINKS: usize = 1 << 20;
