//! `struct nhmsg` and `NHA_…` (`linux/nexthop.h`) to [`Nexthop`].

use table::{GroupMember, Nexthop, Resilient};

use super::encap::encap;
use super::route::OF_THE_LINK;
use super::split;
use crate::attribute::{Attribute, Attributes, Kept};
use crate::kernel::nha;
use crate::malformed::Malformed;

const MESSAGE: &str = "next hop";
const HEADER: usize = 8;

/// Payload of `RTM_NEWNEXTHOP` or `RTM_DELNEXTHOP`. O(bytes). Left out:
/// statistics, and `NHA_OP_FLAGS`, which is about the answer.
pub fn nexthop(payload: &[u8]) -> Result<Nexthop, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let [family, scope, protocol, _, f0, f1, f2, f3] = *header;
    let mut row = Nexthop {
        family,
        scope,
        protocol,
        flags: u32::from_ne_bytes([f0, f1, f2, f3]) & !OF_THE_LINK,
        ..Nexthop::default()
    };
    let mut encap_of = Attributes::default();
    let mut encap_type = None;
    let mut kept = Kept::default();
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            nha::ID => row.id = attribute.u32()?,
            nha::GROUP => row.group = group(&attribute)?,
            nha::GROUP_TYPE => row.group_kind = attribute.u16()?,
            nha::BLACKHOLE => row.blackhole = true,
            nha::OIF => row.link = Some(attribute.u32()?),
            nha::GATEWAY => row.gateway = Some(attribute.address()?),
            nha::ENCAP_TYPE => encap_type = Some(attribute.u16()?),
            nha::ENCAP => encap_of = attribute.nested(),
            nha::FDB => row.fdb = true,
            nha::RES_GROUP => row.resilient = Some(resilient(attribute.nested())?),
            nha::OP_FLAGS | nha::GROUP_STATS | nha::HW_STATS_ENABLE | nha::HW_STATS_USED => {}
            _ => kept.keep(&attribute),
        }
    }
    if row.id == 0 {
        return Err(Malformed::Missing {
            message: MESSAGE,
            attribute: "NHA_ID",
        });
    }
    if let Some(kind) = encap_type {
        row.encap = Some(Box::new(encap(kind, encap_of)?));
    }
    row.rest = kept.into_attributes();
    Ok(row)
}

/// How long a resilient group has been unbalanced, hundredths of a second:
/// no part of its row, since nobody announces it. O(attributes).
pub fn nexthop_unbalanced(payload: &[u8]) -> Option<u64> {
    let (_, mut attributes) = split::<HEADER>(payload, MESSAGE).ok()?;
    while let Some(attribute) = attributes.step().ok()? {
        if attribute.kind != nha::RES_GROUP {
            continue;
        }
        let mut inside = attribute.nested();
        while let Some(attribute) = inside.step().ok()? {
            if attribute.kind == nha::RES_GROUP_UNBALANCED_TIME {
                return attribute.value.try_into().ok().map(u64::from_ne_bytes);
            }
        }
    }
    None
}

/// An array of `struct nexthop_grp`: id, the weight less one in a low and
/// (since Linux 6.12, reserved as zero before) a high byte.
fn group(attribute: &Attribute<'_>) -> Result<Vec<GroupMember>, Malformed> {
    let (members, []) = attribute.value.as_chunks::<8>() else {
        return Err(attribute.bad_size());
    };
    let member = |[i0, i1, i2, i3, low, high, _, _]: &[u8; 8]| GroupMember {
        id: u32::from_ne_bytes([*i0, *i1, *i2, *i3]),
        weight: u32::from(u16::from_le_bytes([*low, *high])) + 1,
    };
    Ok(members.iter().map(member).collect())
}

fn resilient(mut attributes: Attributes<'_>) -> Result<Resilient, Malformed> {
    let mut row = Resilient::default();
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            nha::RES_GROUP_BUCKETS => row.buckets = attribute.u16()?,
            nha::RES_GROUP_IDLE_TIMER => row.idle_timer_centisecs = attribute.u32()?,
            nha::RES_GROUP_UNBALANCED_TIMER => row.unbalanced_timer_centisecs = attribute.u32()?,
            _ => {}
        }
    }
    Ok(row)
}
