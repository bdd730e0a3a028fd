//! Routes of multicast packets: `RTM_NEWROUTE` of `RTNL_FAMILY_IPMR` and
//! `RTNL_FAMILY_IP6MR` (`linux/mroute.h`), for who shows them.

use std::net::IpAddr;

use super::route::HEADER;
use super::split;
use crate::attribute::Attribute;
use crate::kernel::rta;
use crate::malformed::Malformed;

/// `RTNH_F_OFFLOAD`, `RTNH_F_UNRESOLVED`.
const OFFLOAD: u32 = 8;
const UNRESOLVED: u32 = 32;

/// A route of multicast packets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MulticastRoute {
    /// Where they come from.
    pub source: Option<IpAddr>,
    /// The group that they go to.
    pub group: Option<IpAddr>,
    /// The link that they come in by.
    pub input: Option<u32>,
    /// Where they leave, each with the least time to live; `None`: nothing
    /// is said of it.
    pub outputs: Option<Vec<(u32, u8)>>,
    /// Nobody has said yet where they go.
    pub is_unresolved: bool,
    /// Hardware does it.
    pub is_offloaded: bool,
    /// `RTA_TABLE`
    pub table: u32,
    /// Packets, octets, packets by a wrong link.
    pub counted: Option<[u64; 3]>,
    /// Since it was used, in hundredths of a second.
    pub age: Option<u64>,
}

/// Payload of `RTM_NEWROUTE` or `RTM_DELROUTE` of these families. O(bytes).
pub fn multicast_route(payload: &[u8]) -> Result<MulticastRoute, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, "route of multicast packets")?;
    let [_, _, _, _, table, _, _, _, flags @ ..] = *header;
    let flags = u32::from_ne_bytes(flags);
    let mut told = MulticastRoute {
        table: table.into(),
        is_unresolved: flags & UNRESOLVED != 0,
        is_offloaded: flags & OFFLOAD != 0,
        ..MulticastRoute::default()
    };
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            rta::SRC => told.source = Some(attribute.address()?),
            rta::DST => told.group = Some(attribute.address()?),
            rta::IIF => told.input = Some(attribute.u32()?),
            rta::TABLE => told.table = attribute.u32()?,
            rta::MULTIPATH => told.outputs = Some(outputs(&attribute)?),
            rta::MFC_STATS => told.counted = Some(counted(&attribute)?),
            rta::EXPIRES => told.age = Some(u64::from_ne_bytes(attribute.array()?)),
            _ => {}
        }
    }
    Ok(told)
}

/// Each a `struct rtnexthop`, which has its length in its first two bytes.
fn outputs(attribute: &Attribute<'_>) -> Result<Vec<(u32, u8)>, Malformed> {
    let mut all = Vec::new();
    let mut rest = attribute.value;
    while let [l0, l1, _, hops, i0, i1, i2, i3, ..] = *rest {
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        all.push((u32::from_ne_bytes([i0, i1, i2, i3]), hops));
        let next = len.next_multiple_of(4);
        rest = match len {
            8.. => rest.get(next..).unwrap_or_default(),
            _ => return Err(attribute.bad_size()),
        };
    }
    Ok(all)
}

/// `struct rta_mfc_stats`
fn counted(attribute: &Attribute<'_>) -> Result<[u64; 3], Malformed> {
    let octets: [u8; 24] = attribute.array()?;
    let mut counted = [0; 3];
    for (number, octets) in counted.iter_mut().zip(octets.as_chunks::<8>().0) {
        *number = u64::from_ne_bytes(*octets);
    }
    Ok(counted)
}
