//! Routes of families that are not interpreted (MPLS, multicast
//! forwarding), kept as they came: [`OtherRoute`].

use table::{OtherRoute, OtherRouteKey};

use super::route::HEADER;
use super::split;
use crate::attribute::Kept;
use crate::kernel::rta;
use crate::malformed::Malformed;

/// Payload of `RTM_NEWROUTE` or `RTM_DELROUTE` of any family. O(bytes).
/// Left out: `RTA_MFC_STATS` and `RTA_EXPIRES` of multicast forwarding,
/// which move without an announcement.
pub fn other_route(payload: &[u8]) -> Result<OtherRoute, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, "route")?;
    let [family, _, _, _, table, ..] = *header;
    let mut table = u32::from(table);
    let mut place = [&[][..]; 3];
    let mut kept = Kept::default();
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            rta::TABLE => table = attribute.u32()?,
            rta::DST => place[0] = attribute.value,
            rta::SRC => place[1] = attribute.value,
            rta::IIF => place[2] = attribute.value,
            rta::MFC_STATS | rta::EXPIRES | rta::PAD => continue,
            _ => {}
        }
        kept.keep(&attribute);
    }
    Ok(OtherRoute {
        key: OtherRouteKey {
            family,
            table,
            place: place.concat().into(),
        },
        header: *header,
        attributes: kept.into_attributes(),
    })
}
