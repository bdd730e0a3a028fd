//! `struct fib_rule_hdr` and `FRA_…` (`linux/fib_rules.h`) to [`Rule`].

use std::net::IpAddr;

use ipnet::IpNet;
use table::{RareMatch, Rule};

use super::split;
use crate::attribute::{Attribute, Kept};
use crate::kernel::fra;
use crate::malformed::Malformed;

const MESSAGE: &str = "rule";
const HEADER: usize = 12;

/// What is gathered while walking, until all of it is there.
#[derive(Default)]
struct Parts {
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    fwmark: Option<u32>,
    fwmask: Option<u32>,
    rare: RareMatch,
    kept: Kept,
}

impl Parts {
    fn rare(self) -> Option<Box<RareMatch>> {
        let rest = self.kept.into_attributes();
        let rare = RareMatch { rest, ..self.rare };
        (rare != RareMatch::default()).then(|| Box::new(rare))
    }
}

/// Payload of `RTM_NEWRULE` or `RTM_DELRULE` of `AF_INET` or `AF_INET6`.
/// O(bytes).
pub fn rule(payload: &[u8]) -> Result<Rule, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let [
        family,
        dst_len,
        src_len,
        tos,
        table,
        _,
        _,
        action,
        f0,
        f1,
        f2,
        f3,
    ] = *header;
    let mut row = Rule {
        family,
        tos,
        table: table.into(),
        action,
        flags: u32::from_ne_bytes([f0, f1, f2, f3]),
        ..Rule::default()
    };
    let mut parts = Parts::default();
    while let Some(attribute) = attributes.step()? {
        fill(&mut row, &mut parts, &attribute)?;
    }
    row.source = prefix(parts.source, src_len, "src_len")?;
    row.destination = prefix(parts.destination, dst_len, "dst_len")?;
    // A mark without a mask is compared whole; a mask without a mark wants
    // its bits to be zero.
    row.fwmark = match (parts.fwmark, parts.fwmask) {
        (None, None) => None,
        (mark, mask) => Some((mark.unwrap_or(0), mask.unwrap_or(u32::MAX))),
    };
    row.rare = parts.rare();
    Ok(row)
}

fn fill(row: &mut Rule, parts: &mut Parts, attribute: &Attribute<'_>) -> Result<(), Malformed> {
    match attribute.kind {
        fra::DST => parts.destination = Some(attribute.address()?),
        fra::SRC => parts.source = Some(attribute.address()?),
        fra::IIFNAME => row.iif = Some(attribute.text()),
        fra::OIFNAME => row.oif = Some(attribute.text()),
        fra::GOTO => row.goto = Some(attribute.u32()?),
        fra::PRIORITY => row.priority = attribute.u32()?,
        fra::FWMARK => parts.fwmark = Some(attribute.u32()?),
        fra::FWMASK => parts.fwmask = Some(attribute.u32()?),
        fra::FLOW => row.realms = Some(attribute.u32()?),
        fra::TUN_ID => row.tunnel_id = Some(u64::from_be_bytes(attribute.array()?)),
        fra::SUPPRESS_IFGROUP => row.suppress_group = unless_all_ones(attribute.u32()?),
        fra::SUPPRESS_PREFIXLEN => row.suppress_prefix_len = unless_all_ones(attribute.u32()?),
        fra::TABLE => row.table = attribute.u32()?,
        fra::L3MDEV => row.l3mdev = attribute.u8()? != 0,
        fra::UID_RANGE => {
            let [s0, s1, s2, s3, e0, e1, e2, e3] = attribute.array()?;
            let start = u32::from_ne_bytes([s0, s1, s2, s3]);
            row.uids = Some((start, u32::from_ne_bytes([e0, e1, e2, e3])));
        }
        fra::PROTOCOL => row.protocol = attribute.u8()?,
        fra::IP_PROTO => row.ip_protocol = Some(attribute.u8()?),
        fra::SPORT_RANGE => row.source_ports = Some(ports(attribute)?),
        fra::DPORT_RANGE => row.destination_ports = Some(ports(attribute)?),
        fra::PAD => {}
        _ => fill_rare(parts, attribute)?,
    }
    Ok(())
}

fn fill_rare(parts: &mut Parts, attribute: &Attribute<'_>) -> Result<(), Malformed> {
    let rare = &mut parts.rare;
    match attribute.kind {
        fra::DSCP => rare.dscp = Some(attribute.u8()?),
        fra::DSCP_MASK => rare.dscp_mask = Some(attribute.u8()?),
        // Both in network byte order.
        fra::FLOWLABEL => rare.flow_label = Some(u32::from_be_bytes(attribute.array()?)),
        fra::FLOWLABEL_MASK => rare.flow_label_mask = Some(u32::from_be_bytes(attribute.array()?)),
        fra::SPORT_MASK => rare.source_port_mask = Some(attribute.u16()?),
        fra::DPORT_MASK => rare.destination_port_mask = Some(attribute.u16()?),
        _ => parts.kept.keep(attribute),
    }
    Ok(())
}

/// The kernel writes -1 for "does not suppress".
fn unless_all_ones(value: u32) -> Option<u32> {
    (value != u32::MAX).then_some(value)
}

fn ports(attribute: &Attribute<'_>) -> Result<(u16, u16), Malformed> {
    let [s0, s1, e0, e1] = attribute.array()?;
    Ok((u16::from_ne_bytes([s0, s1]), u16::from_ne_bytes([e0, e1])))
}

fn prefix(
    address: Option<IpAddr>,
    len: u8,
    field: &'static str,
) -> Result<Option<IpNet>, Malformed> {
    let Some(address) = address else {
        return Ok(None);
    };
    match IpNet::new(address, len) {
        Ok(net) => Ok(Some(net)),
        Err(_) => Err(Malformed::Field {
            message: MESSAGE,
            field,
            value: len.into(),
        }),
    }
}
