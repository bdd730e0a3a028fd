//! Tunnels of source routing: segments over IPv6 (RFC 8754, RFC 8986) and
//! RPL (RFC 6554).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::encap::BpfProgram;

/// Packets get a list of segments (`SEG6_IPTUNNEL_SRH`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Seg6 {
    /// `SEG6_IPTUN_MODE_…`.
    pub mode: u32,
    /// The header that they get.
    pub header: SegmentHeader,
}

/// A segment routing header (RFC 8754, `struct ipv6_sr_hdr`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SegmentHeader {
    /// What follows; 0 until it is known.
    pub next_header: u8,
    /// Segments yet to be visited.
    pub left: u8,
    /// `SR6_FLAG1_…`.
    pub flags: u8,
    /// Marks packets that belong together.
    pub tag: u16,
    /// In the order of travel (a header has them the other way round); 1
    /// to 127.
    pub segments: Box<[Ipv6Addr]>,
    /// `SR6_TLV_HMAC`.
    pub hmac: Option<SegmentHmac>,
}

/// What proves a header (RFC 8754 section 2.1.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are the RFC's")]
pub struct SegmentHmac {
    pub key_id: u32,
    pub digest: [u8; 32],
}

/// What a node does with packets for a segment of its own
/// (`SEG6_LOCAL_…`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs, reason = "the fields are the kernel's SEG6_LOCAL_…")]
pub struct Seg6Local {
    /// `SEG6_LOCAL_ACTION_…`.
    pub action: Option<u32>,
    pub header: Option<SegmentHeader>,
    pub table: Option<u32>,
    pub vrf_table: Option<u32>,
    pub gateway4: Option<Ipv4Addr>,
    pub gateway6: Option<Ipv6Addr>,
    pub input_link: Option<u32>,
    pub output_link: Option<u32>,
    pub program: Option<BpfProgram>,
    pub flavors: Option<Flavors>,
    /// Whether it counts. The counts are no part of a row: they move
    /// without an announcement.
    pub counts: bool,
}

/// Variants of an action (RFC 8986 section 4.16, `SEG6_LOCAL_FLV_…`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flavors {
    /// A bit for each `SEG6_LOCAL_FLV_OP_…`.
    pub operations: Option<u32>,
    /// Bits of the locator's block (`…_LCBLOCK_BITS`).
    pub block_bits: Option<u8>,
    /// Bits of node and function (`…_LCNODE_FN_BITS`).
    pub function_bits: Option<u8>,
}

/// A source route of RPL, not compressed (`RPL_IPTUNNEL_SRH`,
/// `struct ipv6_rpl_sr_hdr`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Rpl {
    /// What follows; 0 until it is known.
    pub next_header: u8,
    /// Segments yet to be visited.
    pub left: u8,
    /// As the header has them, 127 at most.
    pub segments: Box<[Ipv6Addr]>,
}
