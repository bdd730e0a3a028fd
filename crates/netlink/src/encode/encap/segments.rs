//! The tunnels of `table::row::segments` to `SEG6_IPTUNNEL_…`,
//! `SEG6_LOCAL_…` and `RPL_IPTUNNEL_…`.

use table::row::segments::{Flavors, Rpl, Seg6, Seg6Local, SegmentHeader, SegmentHmac};

use super::{put_byte, put_number, put_program};
use crate::attribute::NESTED;
use crate::build::Build;
use crate::kernel::lwtunnel::{rpl as rpl_of, seg6 as seg6_of, seg6_local as local};

/// Bytes of `struct sr6_tlv_hmac`.
const HMAC: usize = 40;

pub(super) fn put_seg6(build: &mut Build<'_>, row: &Seg6) {
    let open = build.open(seg6_of::SRH);
    build.append(&row.mode.to_ne_bytes());
    append_header(build, &row.header);
    build.close(&open);
}

/// The length of a routing header, as it says it of itself: in eights of
/// bytes after the first.
fn eights(build: &mut Build<'_>, kind: u16, behind: usize) -> u8 {
    u8::try_from(behind / 8).unwrap_or_else(|_| {
        build.refuse(kind, behind);
        0
    })
}

/// `struct ipv6_sr_hdr`.
fn append_header(build: &mut Build<'_>, row: &SegmentHeader) {
    let hmac = row.hmac.as_ref().map_or(0, |_| HMAC);
    let eights = eights(build, seg6_of::SRH, row.segments.len() * 16 + hmac);
    let last = row.segments.len().saturating_sub(1) as u8;
    let [t0, t1] = row.tag.to_be_bytes();
    build.append(&[
        row.next_header,
        eights,
        seg6_of::ROUTING_TYPE,
        row.left,
        last,
        row.flags,
        t0,
        t1,
    ]);
    for segment in row.segments.iter().rev() {
        build.append(&segment.octets());
    }
    if let Some(SegmentHmac { key_id, digest }) = &row.hmac {
        build.append(&[seg6_of::TLV_HMAC, HMAC as u8 - 2, 0, 0]);
        build.append(&key_id.to_be_bytes());
        build.append(digest);
    }
}

pub(super) fn put_seg6_local(build: &mut Build<'_>, row: &Seg6Local) {
    put_number(build, local::ACTION, row.action);
    if let Some(header) = &row.header {
        let open = build.open(local::SRH);
        append_header(build, header);
        build.close(&open);
    }
    put_number(build, local::TABLE, row.table);
    put_number(build, local::VRFTABLE, row.vrf_table);
    if let Some(gateway) = row.gateway4 {
        build.put_address(local::NH4, gateway.into());
    }
    if let Some(gateway) = row.gateway6 {
        build.put_address(local::NH6, gateway.into());
    }
    put_number(build, local::IIF, row.input_link);
    put_number(build, local::OIF, row.output_link);
    put_program(build, local::BPF, row.program.as_ref());
    if row.counts {
        put_counters(build);
    }
    if let Some(flavors) = &row.flavors {
        put_flavors(build, flavors);
    }
}

/// The kernel wants all three, and counts from 0 whatever they say.
fn put_counters(build: &mut Build<'_>) {
    let nest = build.open(local::COUNTERS | NESTED);
    for kind in [local::CNT_PACKETS, local::CNT_BYTES, local::CNT_ERRORS] {
        build.put(kind, &[0; 8]);
    }
    build.close(&nest);
}

fn put_flavors(build: &mut Build<'_>, row: &Flavors) {
    let nest = build.open(local::FLAVORS | NESTED);
    put_number(build, local::FLV_OPERATION, row.operations);
    put_byte(build, local::FLV_LCBLOCK_BITS, row.block_bits);
    put_byte(build, local::FLV_LCNODE_FN_BITS, row.function_bits);
    build.close(&nest);
}

/// `struct ipv6_rpl_sr_hdr`, nothing compressed.
pub(super) fn put_rpl(build: &mut Build<'_>, row: &Rpl) {
    let open = build.open(rpl_of::SRH);
    let eights = eights(build, rpl_of::SRH, row.segments.len() * 16);
    build.append(&[row.next_header, eights, rpl_of::ROUTING_TYPE, row.left]);
    build.append(&[0; 4]);
    for segment in &row.segments {
        build.append(&segment.octets());
    }
    build.close(&open);
}
