//! Buckets of resilient groups: `NHA_RES_BUCKET` (`linux/nexthop.h`).

use table::row::nexthop_bucket::NexthopBucket;

use super::split;
use crate::attribute::Attributes;
use crate::kernel::nha;
use crate::malformed::Malformed;

/// Payload of `RTM_NEWNEXTHOPBUCKET`. O(bytes).
pub fn nexthop_bucket(payload: &[u8]) -> Result<NexthopBucket, Malformed> {
    let (_, mut attributes) = split::<8>(payload, "next hop's bucket")?;
    let mut told = NexthopBucket::default();
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            nha::ID => told.group = attribute.u32()?,
            nha::RES_BUCKET => bucket(attribute.nested(), &mut told)?,
            _ => {}
        }
    }
    Ok(told)
}

fn bucket(mut inside: Attributes<'_>, told: &mut NexthopBucket) -> Result<(), Malformed> {
    while let Some(attribute) = inside.step()? {
        match attribute.kind {
            nha::RES_BUCKET_INDEX => told.index = attribute.u16()?,
            nha::RES_BUCKET_IDLE_TIME => told.idle = u64::from_ne_bytes(attribute.array()?),
            nha::RES_BUCKET_NH_ID => told.nexthop = attribute.u32()?,
            _ => {}
        }
    }
    Ok(())
}
