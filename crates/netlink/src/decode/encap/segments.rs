//! `SEG6_IPTUNNEL_…`, `SEG6_LOCAL_…` and `RPL_IPTUNNEL_…` to the tunnels of
//! `table::row::segments`.

use std::net::{Ipv4Addr, Ipv6Addr};

use table::row::encap::kind;
use table::row::segments::{Flavors, Rpl, Seg6, Seg6Local, SegmentHeader, SegmentHmac};
use table::{Encap, Tunnel};

use super::{program, unknown};
use crate::attribute::{Attribute, Attributes};
use crate::kernel::lwtunnel::{rpl as rpl_of, seg6 as seg6_of, seg6_local as local};
use crate::malformed::Malformed;

/// Bytes of a routing header before its segments.
const ROUTING_HEADER: usize = 8;
/// Bytes of `struct sr6_tlv_hmac` after its type and length.
const HMAC: u8 = 38;

pub(super) fn seg6(attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    let whole = attributes.clone();
    let mut row = None;
    let rest = attributes.sort(|attribute| {
        if attribute.kind != seg6_of::SRH {
            return None;
        }
        let (mode, bytes) = attribute.value.split_first_chunk::<4>()?;
        row = Some(Seg6 {
            mode: u32::from_ne_bytes(*mode),
            header: segment_header(bytes)?,
        });
        Some(())
    })?;
    match row.map(Tunnel::Seg6) {
        Some(tunnel) => Ok(Encap { tunnel, rest }),
        None => unknown(kind::SEG6, whole),
    }
}

/// The bytes of a routing header of a type and this many bytes, that says
/// of itself how long it is.
fn routing_header(bytes: &[u8], kind: u8) -> Option<(&[u8; ROUTING_HEADER], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<ROUTING_HEADER>()?;
    let [_, eights, of, ..] = *header;
    (of == kind && bytes.len() == (usize::from(eights) + 1) * 8).then_some((header, rest))
}

/// `struct ipv6_sr_hdr`; `None` if it is not as the RFC has it, or has
/// anything but a HMAC behind its segments.
fn segment_header(bytes: &[u8]) -> Option<SegmentHeader> {
    let (header, rest) = routing_header(bytes, seg6_of::ROUTING_TYPE)?;
    let [next_header, _, _, left, last, flags, t0, t1] = *header;
    let (segments, behind) = rest.split_at_checked((usize::from(last) + 1) * 16)?;
    Some(SegmentHeader {
        next_header,
        left,
        flags,
        tag: u16::from_be_bytes([t0, t1]),
        segments: addresses(segments).rev().collect(),
        hmac: if behind.is_empty() {
            None
        } else {
            Some(hmac(behind)?)
        },
    })
}

fn addresses(bytes: &[u8]) -> impl DoubleEndedIterator<Item = Ipv6Addr> {
    let octets = bytes.as_chunks::<16>().0.iter();
    octets.map(|octets| Ipv6Addr::from(*octets))
}

/// `struct sr6_tlv_hmac`.
fn hmac(bytes: &[u8]) -> Option<SegmentHmac> {
    let ([seg6_of::TLV_HMAC, HMAC, 0, 0, k0, k1, k2, k3], digest) =
        bytes.split_first_chunk::<8>()?
    else {
        return None;
    };
    Some(SegmentHmac {
        key_id: u32::from_be_bytes([*k0, *k1, *k2, *k3]),
        digest: digest.try_into().ok()?,
    })
}

pub(super) fn seg6_local(attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    let mut row = Seg6Local::default();
    let rest = attributes.sort(|attribute| {
        let number = || attribute.exact().map(u32::from_ne_bytes);
        match attribute.kind {
            local::ACTION => row.action = Some(number()?),
            local::SRH => row.header = Some(segment_header(attribute.value)?),
            local::TABLE => row.table = Some(number()?),
            local::VRFTABLE => row.vrf_table = Some(number()?),
            local::NH4 => row.gateway4 = Some(Ipv4Addr::from(attribute.exact::<4>()?)),
            local::NH6 => row.gateway6 = Some(Ipv6Addr::from(attribute.exact::<16>()?)),
            local::IIF => row.input_link = Some(number()?),
            local::OIF => row.output_link = Some(number()?),
            local::BPF => row.program = Some(program(attribute)?),
            local::FLAVORS => row.flavors = Some(flavors(attribute)?),
            local::COUNTERS => row.counts = true,
            _ => return None,
        }
        Some(())
    })?;
    let tunnel = Tunnel::Seg6Local(row);
    Ok(Encap { tunnel, rest })
}

fn flavors(attribute: &Attribute<'_>) -> Option<Flavors> {
    let mut row = Flavors::default();
    attribute.nested().all(|attribute| {
        let byte = || attribute.exact().map(u8::from_ne_bytes);
        match attribute.kind {
            local::FLV_OPERATION => row.operations = Some(u32::from_ne_bytes(attribute.exact()?)),
            local::FLV_LCBLOCK_BITS => row.block_bits = Some(byte()?),
            local::FLV_LCNODE_FN_BITS => row.function_bits = Some(byte()?),
            _ => return None,
        }
        Some(())
    })?;
    Some(row)
}

pub(super) fn rpl(attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    let whole = attributes.clone();
    let mut row = None;
    let rest = attributes.sort(|attribute| {
        if attribute.kind != rpl_of::SRH {
            return None;
        }
        row = Some(rpl_header(attribute.value)?);
        Some(())
    })?;
    match row.map(Tunnel::Rpl) {
        Some(tunnel) => Ok(Encap { tunnel, rest }),
        None => unknown(kind::RPL, whole),
    }
}

/// `struct ipv6_rpl_sr_hdr`; `None` if its addresses are compressed.
fn rpl_header(bytes: &[u8]) -> Option<Rpl> {
    let (header, segments) = routing_header(bytes, rpl_of::ROUTING_TYPE)?;
    let [next_header, _, _, left, 0, 0, 0, 0] = *header else {
        return None;
    };
    let whole = segments.len().is_multiple_of(16);
    whole.then(|| Rpl {
        next_header,
        left,
        segments: addresses(segments).collect(),
    })
}
