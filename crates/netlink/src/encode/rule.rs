//! [`Rule`] to `struct fib_rule_hdr` and `FRA_…` (`linux/fib_rules.h`).

use ipnet::IpNet;
use table::row::route::table_id;
use table::row::rule::flag;
use table::{RareMatch, Rule};

use super::Request;
use crate::build::Build;
use crate::kernel::fra;
use crate::malformed::TooLong;
use crate::message::kind;

/// Appends `RTM_NEWRULE` or `RTM_DELRULE`. Of the flags only `INVERT` is
/// the user's; the others are the kernel's to tell.
pub fn rule(out: &mut Vec<u8>, request: &Request, row: &Rule) -> Result<(), TooLong> {
    put_rule(out, request, row, Some(row.priority))
}

/// The same without its priority: the kernel puts a new rule before those
/// that are there, and deletes the first that is alike wherever it is.
pub fn unplaced_rule(out: &mut Vec<u8>, request: &Request, row: &Rule) -> Result<(), TooLong> {
    put_rule(out, request, row, None)
}

fn put_rule(
    out: &mut Vec<u8>,
    request: &Request,
    row: &Rule,
    priority: Option<u32>,
) -> Result<(), TooLong> {
    let len = |net: Option<IpNet>| net.map_or(0, |net| net.prefix_len());
    let table = u8::try_from(row.table).unwrap_or(table_id::UNSPEC as u8);
    let [f0, f1, f2, f3] = (row.flags & flag::INVERT).to_ne_bytes();
    let header = [
        row.family,
        len(row.destination),
        len(row.source),
        row.tos,
        table,
        0,
        0,
        row.action,
        f0,
        f1,
        f2,
        f3,
    ];
    let mut build = request.start(out, [kind::NEWRULE, kind::DELRULE], &header);
    put_selectors(&mut build, row);
    if let Some(priority) = priority {
        build.put_u32(fra::PRIORITY, priority);
    }
    put_numbers(&mut build, row);
    if let Some(rare) = &row.rare {
        put_rare(&mut build, rare);
    }
    build.end()
}

fn put_selectors(build: &mut Build<'_>, row: &Rule) {
    if let Some(source) = row.source {
        build.put_address(fra::SRC, source.addr());
    }
    if let Some(destination) = row.destination {
        build.put_address(fra::DST, destination.addr());
    }
    if let Some(iif) = &row.iif {
        build.put_text(fra::IIFNAME, iif);
    }
    if let Some(oif) = &row.oif {
        build.put_text(fra::OIFNAME, oif);
    }
    if let Some((start, end)) = row.uids {
        let open = build.open(fra::UID_RANGE);
        build.append(&start.to_ne_bytes());
        build.append(&end.to_ne_bytes());
        build.close(&open);
    }
    if let Some(protocol) = row.ip_protocol {
        build.put_u8(fra::IP_PROTO, protocol);
    }
    put_ports(build, fra::SPORT_RANGE, row.source_ports);
    put_ports(build, fra::DPORT_RANGE, row.destination_ports);
    if let Some(id) = row.tunnel_id {
        build.put(fra::TUN_ID, &id.to_be_bytes());
    }
}

fn put_ports(build: &mut Build<'_>, kind: u16, ports: Option<(u16, u16)>) {
    if let Some((start, end)) = ports {
        let open = build.open(kind);
        build.append(&start.to_ne_bytes());
        build.append(&end.to_ne_bytes());
        build.close(&open);
    }
}

fn put_numbers(build: &mut Build<'_>, row: &Rule) {
    build.put_u32(fra::TABLE, row.table);
    let numbers = [
        (fra::FWMARK, row.fwmark.map(|(mark, _)| mark)),
        (fra::FWMASK, row.fwmark.map(|(_, mask)| mask)),
        (fra::GOTO, row.goto),
        (fra::SUPPRESS_PREFIXLEN, row.suppress_prefix_len),
        (fra::SUPPRESS_IFGROUP, row.suppress_group),
        (fra::FLOW, row.realms),
    ];
    for (kind, number) in numbers {
        if let Some(number) = number {
            build.put_u32(kind, number);
        }
    }
    if row.l3mdev {
        build.put_u8(fra::L3MDEV, 1);
    }
    if row.protocol != 0 {
        build.put_u8(fra::PROTOCOL, row.protocol);
    }
}

fn put_rare(build: &mut Build<'_>, rare: &RareMatch) {
    let bytes = [(fra::DSCP, rare.dscp), (fra::DSCP_MASK, rare.dscp_mask)];
    for (kind, byte) in bytes {
        if let Some(byte) = byte {
            build.put_u8(kind, byte);
        }
    }
    let labels = [
        (fra::FLOWLABEL, rare.flow_label),
        (fra::FLOWLABEL_MASK, rare.flow_label_mask),
    ];
    for (kind, label) in labels {
        if let Some(label) = label {
            build.put(kind, &label.to_be_bytes());
        }
    }
    let masks = [
        (fra::SPORT_MASK, rare.source_port_mask),
        (fra::DPORT_MASK, rare.destination_port_mask),
    ];
    for (kind, mask) in masks {
        if let Some(mask) = mask {
            build.put_u16(kind, mask);
        }
    }
    build.append(rare.rest.bytes());
}
