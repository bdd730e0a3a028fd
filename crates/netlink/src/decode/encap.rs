//! `RTA_ENCAP` and `NHA_ENCAP` to [`Encap`].
//!
//! An attribute that is not known, or whose value no field can hold, is
//! kept as it came; only one that claims more bytes than there are is an
//! error.

mod ip;
mod segments;

use std::net::{Ipv4Addr, Ipv6Addr};

use table::row::encap::{Bpf, BpfProgram, Ila, Ioam6, IoamTrace, Mpls, Xfrm, kind};
use table::{Encap, Tunnel};

use crate::attribute::{Attribute, Attributes};
use crate::kernel::lwtunnel::{bpf, ila, ioam6, mpls, xfrm};
use crate::malformed::Malformed;

/// A tunnel with this number and these attributes. O(bytes).
pub(super) fn encap(number: u16, attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    match number {
        kind::MPLS => mpls_labels(attributes),
        kind::IP => ip::tunnel::<Ipv4Addr, 4>(attributes, Tunnel::Ip),
        kind::ILA => identifier_locator(attributes),
        kind::IP6 => ip::tunnel::<Ipv6Addr, 16>(attributes, Tunnel::Ip6),
        kind::SEG6 => segments::seg6(attributes),
        kind::BPF => programs(attributes),
        kind::SEG6_LOCAL => segments::seg6_local(attributes),
        kind::RPL => segments::rpl(attributes),
        kind::IOAM6 => measurements(attributes),
        kind::XFRM => xfrm_interface(attributes),
        other => unknown(other, attributes),
    }
}

/// One of which nothing is read.
fn unknown(number: u16, attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    Ok(Encap {
        rest: attributes.sort(|_| None)?,
        tunnel: Tunnel::Unknown(number),
    })
}

fn mpls_labels(attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    let mut row = Mpls::default();
    let rest = attributes.sort(|attribute| {
        match attribute.kind {
            mpls::DST => row.labels = label_stack(attribute.value)?,
            mpls::TTL => row.ttl = Some(u8::from_ne_bytes(attribute.exact()?)),
            _ => return None,
        }
        Some(())
    })?;
    let tunnel = Tunnel::Mpls(row);
    Ok(Encap { tunnel, rest })
}

/// Entries of RFC 3032 without class and TTL, of which the last says so.
fn label_stack(bytes: &[u8]) -> Option<Box<[u32]>> {
    let (entries, []) = bytes.as_chunks::<4>() else {
        return None;
    };
    let label = |(at, entry): (usize, &[u8; 4])| {
        let entry = u32::from_be_bytes(*entry);
        let bottom = u32::from(at + 1 == entries.len());
        (entry & 0xfff == bottom << 8).then_some(entry >> 12)
    };
    entries.iter().enumerate().map(label).collect()
}

fn identifier_locator(attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    let mut row = Ila::default();
    let rest = attributes.sort(|attribute| {
        match attribute.kind {
            ila::LOCATOR => row.locator = Some(u64::from_be_bytes(attribute.exact()?)),
            ila::CSUM_MODE => row.checksum_mode = Some(u8::from_ne_bytes(attribute.exact()?)),
            ila::IDENT_TYPE => row.identifier_kind = Some(u8::from_ne_bytes(attribute.exact()?)),
            ila::HOOK_TYPE => row.hook_kind = Some(u8::from_ne_bytes(attribute.exact()?)),
            ila::PAD => {}
            _ => return None,
        }
        Some(())
    })?;
    let tunnel = Tunnel::Ila(row);
    Ok(Encap { tunnel, rest })
}

fn programs(attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    let mut row = Bpf::default();
    let rest = attributes.sort(|attribute| {
        match attribute.kind {
            bpf::IN => row.input = Some(program(attribute)?),
            bpf::OUT => row.output = Some(program(attribute)?),
            bpf::XMIT => row.transmit = Some(program(attribute)?),
            bpf::XMIT_HEADROOM => {
                row.transmit_headroom = Some(u32::from_ne_bytes(attribute.exact()?));
            }
            _ => return None,
        }
        Some(())
    })?;
    let tunnel = Tunnel::Bpf(row);
    Ok(Encap { tunnel, rest })
}

fn program(attribute: &Attribute<'_>) -> Option<BpfProgram> {
    let mut row = BpfProgram::default();
    attribute.nested().all(|attribute| {
        match attribute.kind {
            bpf::PROG => row.number = Some(u32::from_ne_bytes(attribute.exact()?)),
            bpf::PROG_NAME => row.name = Some(attribute.exact_text()?),
            _ => return None,
        }
        Some(())
    })?;
    Some(row)
}

fn measurements(attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    let whole = attributes.clone();
    let mut trace_told = None;
    let mut row = Ioam6 {
        mode: None,
        destination: None,
        trace: IoamTrace::default(),
        packets: None,
        of_packets: None,
    };
    let rest = attributes.sort(|attribute| {
        match attribute.kind {
            ioam6::MODE => row.mode = Some(u8::from_ne_bytes(attribute.exact()?)),
            ioam6::DST => row.destination = Some(Ipv6Addr::from(attribute.exact::<16>()?)),
            ioam6::TRACE => trace_told = Some(trace(attribute.exact()?)?),
            ioam6::FREQ_K => row.packets = Some(u32::from_ne_bytes(attribute.exact()?)),
            ioam6::FREQ_N => row.of_packets = Some(u32::from_ne_bytes(attribute.exact()?)),
            _ => return None,
        }
        Some(())
    })?;
    let Some(trace) = trace_told else {
        return unknown(kind::IOAM6, whole);
    };
    row.trace = trace;
    let tunnel = Tunnel::Ioam6(row);
    Ok(Encap { tunnel, rest })
}

/// `struct ioam6_trace_hdr`; `None` if a bit is set that means nothing.
fn trace(bytes: [u8; 8]) -> Option<IoamTrace> {
    let [n0, n1, node, left, k0, k1, k2, reserved] = bytes;
    if node & 3 != 0 || left & 0x80 != 0 || reserved != 0 {
        return None;
    }
    Some(IoamTrace {
        namespace: u16::from_be_bytes([n0, n1]),
        node_words: node >> 3,
        overflow: node & 4 != 0,
        words_left: left,
        kind: u32::from_be_bytes([0, k0, k1, k2]),
    })
}

fn xfrm_interface(attributes: Attributes<'_>) -> Result<Encap, Malformed> {
    let mut row = Xfrm::default();
    let rest = attributes.sort(|attribute| {
        match attribute.kind {
            xfrm::IF_ID => row.interface_id = Some(u32::from_ne_bytes(attribute.exact()?)),
            xfrm::LINK => row.link = Some(u32::from_ne_bytes(attribute.exact()?)),
            _ => return None,
        }
        Some(())
    })?;
    let tunnel = Tunnel::Xfrm(row);
    Ok(Encap { tunnel, rest })
}
