//! Multicast groups of bridges: `MDBA_…` (`linux/if_bridge.h`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use table::row::multicast_group::{BridgeGroups, Group, GroupDetails, MulticastGroup, RouterPort};

use super::{link_of, split};
use crate::attribute::{Attribute, Attributes};
use crate::kernel::mdba;
use crate::malformed::Malformed;

const MESSAGE: &str = "multicast groups of a bridge";
/// Bytes of `struct br_port_msg`.
const HEADER: usize = 8;

/// Payload of `RTM_NEWMDB`, `RTM_DELMDB` and the answers to `RTM_GETMDB`.
/// O(bytes).
pub fn bridge_groups(payload: &[u8]) -> Result<BridgeGroups, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let [_, _, _, _, i0, i1, i2, i3] = *header;
    let mut told = BridgeGroups {
        bridge: link_of([i0, i1, i2, i3], MESSAGE, "ifindex")?,
        ..BridgeGroups::default()
    };
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            mdba::MDB => each(attribute.nested(), mdba::MDB_ENTRY, &mut |entry| {
                each(entry.nested(), mdba::MDB_ENTRY_INFO, &mut |info| {
                    told.groups.extend(group(info)?);
                    Ok(())
                })
            })?,
            mdba::ROUTER => each(attribute.nested(), mdba::ROUTER_PORT, &mut |port| {
                told.routers.push(router(port)?);
                Ok(())
            })?,
            _ => {}
        }
    }
    Ok(told)
}

fn each(
    mut all: Attributes<'_>,
    kind: u16,
    take: &mut dyn FnMut(&Attribute<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    while let Some(attribute) = all.step()? {
        if attribute.kind == kind {
            take(&attribute)?;
        }
    }
    Ok(())
}

/// A number, and attributes behind it.
fn with_number<'a, const N: usize>(
    attribute: &Attribute<'a>,
) -> Result<([u8; N], Attributes<'a>), Malformed> {
    let (start, rest) = attribute
        .value
        .split_first_chunk::<N>()
        .ok_or_else(|| attribute.bad_size())?;
    let offset = attribute.value_offset() + N;
    Ok((*start, Attributes::new(rest, MESSAGE, offset)))
}

/// `struct br_mdb_entry` and what stands behind it; `None`: of a family that
/// is none here.
fn group(info: &Attribute<'_>) -> Result<Option<MulticastGroup>, Malformed> {
    let (entry, mut attributes) = with_number::<{ mdba::ENTRY_BYTES }>(info)?;
    let [p0, p1, p2, p3, state, flags, v0, v1, rest @ ..] = entry;
    let [address @ .., k0, k1, _, _] = rest;
    let Some(group) = address_of(address, u16::from_be_bytes([k0, k1])) else {
        return Ok(None);
    };
    let mut details = None;
    let mut source = None;
    while let Some(attribute) = attributes.step()? {
        let known: &mut GroupDetails = details.get_or_insert_default();
        match attribute.kind {
            mdba::EATTR_TIMER => known.timer = Some(attribute.u32()?),
            mdba::EATTR_SRC_LIST => known.sources = sources(attribute.nested())?,
            mdba::EATTR_GROUP_MODE => known.filter_mode = Some(attribute.u8()?),
            mdba::EATTR_SOURCE => source = Some(attribute.address()?),
            mdba::EATTR_RTPROT => known.protocol = Some(attribute.u8()?),
            _ => {}
        }
    }
    Ok(Some(MulticastGroup {
        port: u32::from_ne_bytes([p0, p1, p2, p3]),
        group,
        source,
        is_permanent: state & mdba::PERMANENT != 0,
        flags,
        vlan: u16::from_ne_bytes([v0, v1]),
        details,
    }))
}

/// An address by the EtherType of its packets; 0: of the link layer.
fn address_of(octets: [u8; 16], protocol: u16) -> Option<Group> {
    let [a, b, c, d, e, f, ..] = octets;
    match protocol {
        mdba::ETH_P_IP => Some(Group::Ip(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))),
        mdba::ETH_P_IPV6 => Some(Group::Ip(IpAddr::V6(Ipv6Addr::from(octets)))),
        0 => Some(Group::LinkLayer([a, b, c, d, e, f])),
        _ => None,
    }
}

fn sources(list: Attributes<'_>) -> Result<Vec<(IpAddr, u32)>, Malformed> {
    let mut all = Vec::new();
    each(list, mdba::SRCLIST_ENTRY, &mut |entry| {
        let (mut address, mut timer) = (None, 0);
        let mut inside = entry.nested();
        while let Some(attribute) = inside.step()? {
            match attribute.kind {
                mdba::SRCATTR_ADDRESS => address = Some(attribute.address()?),
                mdba::SRCATTR_TIMER => timer = attribute.u32()?,
                _ => {}
            }
        }
        all.extend(address.map(|address| (address, timer)));
        Ok(())
    })?;
    Ok(all)
}

fn router(attribute: &Attribute<'_>) -> Result<RouterPort, Malformed> {
    let (port, mut attributes) = with_number::<4>(attribute)?;
    let mut told = RouterPort {
        port: u32::from_ne_bytes(port),
        ..RouterPort::default()
    };
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            mdba::ROUTER_PATTR_TIMER => told.timer = Some(attribute.u32()?),
            mdba::ROUTER_PATTR_TYPE => told.kind = Some(attribute.u8()?),
            _ => {}
        }
    }
    Ok(told)
}
