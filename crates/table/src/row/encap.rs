//! How a next hop wraps packets: lightweight tunnels (`RTA_ENCAP`,
//! `linux/lwtunnel.h`).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::attributes::RawAttributes;
use super::segments::{Rpl, Seg6, Seg6Local};

/// A tunnel of a next hop. Behind a pointer in the row: few have one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Encap {
    /// What is known of it.
    pub tunnel: Tunnel,
    /// Attributes that have no field, or a value that none can hold, as
    /// they came.
    pub rest: RawAttributes,
}

/// The tunnels by their kinds (`RTA_ENCAP_TYPE`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the tunnel it names")]
pub enum Tunnel {
    Mpls(Mpls),
    Ip(IpTunnel<Ipv4Addr>),
    Ila(Ila),
    Ip6(IpTunnel<Ipv6Addr>),
    Seg6(Seg6),
    Bpf(Bpf),
    Seg6Local(Seg6Local),
    Rpl(Rpl),
    Ioam6(Ioam6),
    Xfrm(Xfrm),
    /// One with this number that Fingerpost does not know, or whose main
    /// attribute cannot be read: all of it is in [`Encap::rest`].
    Unknown(u16),
}

/// `LWTUNNEL_ENCAP_…`, `linux/lwtunnel.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod kind {
    pub const MPLS: u16 = 1;
    pub const IP: u16 = 2;
    pub const ILA: u16 = 3;
    pub const IP6: u16 = 4;
    pub const SEG6: u16 = 5;
    pub const BPF: u16 = 6;
    pub const SEG6_LOCAL: u16 = 7;
    pub const RPL: u16 = 8;
    pub const IOAM6: u16 = 9;
    pub const XFRM: u16 = 10;
}

impl Encap {
    /// Its number ([`kind`]).
    pub fn kind(&self) -> u16 {
        match self.tunnel {
            Tunnel::Mpls(_) => kind::MPLS,
            Tunnel::Ip(_) => kind::IP,
            Tunnel::Ila(_) => kind::ILA,
            Tunnel::Ip6(_) => kind::IP6,
            Tunnel::Seg6(_) => kind::SEG6,
            Tunnel::Bpf(_) => kind::BPF,
            Tunnel::Seg6Local(_) => kind::SEG6_LOCAL,
            Tunnel::Rpl(_) => kind::RPL,
            Tunnel::Ioam6(_) => kind::IOAM6,
            Tunnel::Xfrm(_) => kind::XFRM,
            Tunnel::Unknown(number) => number,
        }
    }
}

/// Labels pushed before the packet (RFC 3032).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Mpls {
    /// `MPLS_IPTUNNEL_DST`: twenty bits each, the outermost first.
    pub labels: Box<[u32]>,
    /// `MPLS_IPTUNNEL_TTL`.
    pub ttl: Option<u8>,
}

/// The outer header that a tunnel device of external mode makes, over IPv4
/// (`LWTUNNEL_IP_…`) or IPv6 (`LWTUNNEL_IP6_…`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IpTunnel<A> {
    /// `…_ID`: key, VNI or the like.
    pub id: Option<u64>,
    /// `…_DST`.
    pub destination: Option<A>,
    /// `…_SRC`.
    pub source: Option<A>,
    /// `…_TTL`, `…_HOPLIMIT`.
    pub ttl: Option<u8>,
    /// `…_TOS`, `…_TC`.
    pub tos: Option<u8>,
    /// `…_FLAGS`: `TUNNEL_…` (`linux/if_tunnel.h`).
    pub flags: Option<u16>,
    /// `…_OPTS`.
    pub options: Box<[TunnelOption]>,
}

/// One of which nothing is told. (Derived, it would want addresses to have
/// a default.)
impl<A> Default for IpTunnel<A> {
    fn default() -> Self {
        Self {
            id: None,
            destination: None,
            source: None,
            ttl: None,
            tos: None,
            flags: None,
            options: Box::default(),
        }
    }
}

/// What a tunnel's own header carries beside the id
/// (`LWTUNNEL_IP_OPTS_…`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are those of the tunnels' headers")]
pub enum TunnelOption {
    Geneve {
        class: u16,
        kind: u8,
        data: Box<[u8]>,
    },
    /// The group policy (`LWTUNNEL_IP_OPT_VXLAN_GBP`).
    Vxlan { group_policy: u32 },
    /// Version 1 has an index, version 2 direction and hardware id.
    Erspan {
        version: u8,
        index: Option<u32>,
        direction: Option<u8>,
        hardware_id: Option<u8>,
    },
}

/// Identifier-locator addressing (`ILA_ATTR_…`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs, reason = "the fields are the kernel's ILA_ATTR_…")]
pub struct Ila {
    /// The upper half of an address.
    pub locator: Option<u64>,
    pub checksum_mode: Option<u8>,
    pub identifier_kind: Option<u8>,
    pub hook_kind: Option<u8>,
}

/// Programs that see packets of a route (`LWT_BPF_…`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs, reason = "the fields are the kernel's LWT_BPF_…")]
pub struct Bpf {
    pub input: Option<BpfProgram>,
    pub output: Option<BpfProgram>,
    pub transmit: Option<BpfProgram>,
    pub transmit_headroom: Option<u32>,
}

/// A program: the kernel wants a descriptor and tells a name, and for
/// segment routing an id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct BpfProgram {
    /// `LWT_BPF_PROG_FD`, `SEG6_LOCAL_BPF_PROG`.
    pub number: Option<u32>,
    /// `…_PROG_NAME`.
    pub name: Option<Box<str>>,
}

/// In-situ measurements that packets carry (RFC 9197,
/// `IOAM6_IPTUNNEL_…`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ioam6 {
    /// `IOAM6_IPTUNNEL_MODE_…`.
    pub mode: Option<u8>,
    /// Where to, but inline.
    pub destination: Option<Ipv6Addr>,
    /// The trace option.
    pub trace: IoamTrace,
    /// Into so many packets (`IOAM6_IPTUNNEL_FREQ_K`).
    pub packets: Option<u32>,
    /// Of so many (`IOAM6_IPTUNNEL_FREQ_N`).
    pub of_packets: Option<u32>,
}

/// `struct ioam6_trace_hdr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct IoamTrace {
    /// Its namespace.
    pub namespace: u16,
    /// What a node adds, in words of four bytes (five bits).
    pub node_words: u8,
    /// A node had no room.
    pub overflow: bool,
    /// What is left, in words of four bytes (seven bits).
    pub words_left: u8,
    /// What a node writes: twenty-four bits.
    pub kind: u32,
}

/// An XFRM interface of external mode (`LWT_XFRM_…`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs, reason = "the fields are the kernel's LWT_XFRM_…")]
pub struct Xfrm {
    pub interface_id: Option<u32>,
    pub link: Option<u32>,
}
