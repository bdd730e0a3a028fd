//! [`Encap`] to `RTA_ENCAP` and `NHA_ENCAP`.

mod ip;
mod segments;

use table::row::encap::{Bpf, BpfProgram, Ila, Ioam6, IoamTrace, Mpls, Xfrm};
use table::{Encap, Tunnel};

use crate::attribute::NESTED;
use crate::build::Build;
use crate::kernel::lwtunnel::{bpf, ila, ioam6, mpls, xfrm};

/// A tunnel under the numbers of its attribute and of its kind's.
pub(super) fn put_encap(build: &mut Build<'_>, encap_in: u16, kind_in: u16, row: &Encap) {
    let nest = build.open(encap_in | NESTED);
    match &row.tunnel {
        Tunnel::Mpls(row) => put_mpls(build, row),
        Tunnel::Ip(row) => ip::put_tunnel(build, row),
        Tunnel::Ila(row) => put_ila(build, row),
        Tunnel::Ip6(row) => ip::put_tunnel(build, row),
        Tunnel::Seg6(row) => segments::put_seg6(build, row),
        Tunnel::Bpf(row) => put_bpf(build, row),
        Tunnel::Seg6Local(row) => segments::put_seg6_local(build, row),
        Tunnel::Rpl(row) => segments::put_rpl(build, row),
        Tunnel::Ioam6(row) => put_ioam6(build, row),
        Tunnel::Xfrm(row) => put_xfrm(build, row),
        Tunnel::Unknown(_) => {}
    }
    build.append(row.rest.bytes());
    build.close(&nest);
    build.put_u16(kind_in, row.kind());
}

fn put_mpls(build: &mut Build<'_>, row: &Mpls) {
    if !row.labels.is_empty() {
        let open = build.open(mpls::DST);
        for (at, label) in row.labels.iter().enumerate() {
            let bottom = u32::from(at + 1 == row.labels.len());
            build.append(&(label << 12 | bottom << 8).to_be_bytes());
        }
        build.close(&open);
    }
    put_byte(build, mpls::TTL, row.ttl);
}

fn put_byte(build: &mut Build<'_>, kind: u16, value: Option<u8>) {
    if let Some(value) = value {
        build.put_u8(kind, value);
    }
}

fn put_number(build: &mut Build<'_>, kind: u16, value: Option<u32>) {
    if let Some(value) = value {
        build.put_u32(kind, value);
    }
}

fn put_ila(build: &mut Build<'_>, row: &Ila) {
    if let Some(locator) = row.locator {
        build.put(ila::LOCATOR, &locator.to_be_bytes());
    }
    put_byte(build, ila::CSUM_MODE, row.checksum_mode);
    put_byte(build, ila::IDENT_TYPE, row.identifier_kind);
    put_byte(build, ila::HOOK_TYPE, row.hook_kind);
}

fn put_bpf(build: &mut Build<'_>, row: &Bpf) {
    put_program(build, bpf::IN, row.input.as_ref());
    put_program(build, bpf::OUT, row.output.as_ref());
    put_program(build, bpf::XMIT, row.transmit.as_ref());
    put_number(build, bpf::XMIT_HEADROOM, row.transmit_headroom);
}

fn put_program(build: &mut Build<'_>, kind: u16, row: Option<&BpfProgram>) {
    let Some(row) = row else {
        return;
    };
    let nest = build.open(kind | NESTED);
    put_number(build, bpf::PROG, row.number);
    if let Some(name) = &row.name {
        build.put_text(bpf::PROG_NAME, name);
    }
    build.close(&nest);
}

fn put_ioam6(build: &mut Build<'_>, row: &Ioam6) {
    put_number(build, ioam6::FREQ_K, row.packets);
    put_number(build, ioam6::FREQ_N, row.of_packets);
    put_byte(build, ioam6::MODE, row.mode);
    if let Some(destination) = row.destination {
        build.put_address(ioam6::DST, destination.into());
    }
    build.put(ioam6::TRACE, &trace(&row.trace));
}

/// `struct ioam6_trace_hdr`.
fn trace(row: &IoamTrace) -> [u8; 8] {
    let [n0, n1] = row.namespace.to_be_bytes();
    let node = row.node_words << 3 | u8::from(row.overflow) << 2;
    let [_, k0, k1, k2] = row.kind.to_be_bytes();
    [n0, n1, node, row.words_left & 0x7f, k0, k1, k2, 0]
}

fn put_xfrm(build: &mut Build<'_>, row: &Xfrm) {
    put_number(build, xfrm::IF_ID, row.interface_id);
    put_number(build, xfrm::LINK, row.link);
}
