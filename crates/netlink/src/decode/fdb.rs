//! `struct ndmsg` and `NDA_…` (`linux/neighbour.h`) of `AF_BRIDGE` to
//! [`FdbEntry`].

use table::{FdbEntry, LinkLayerAddress, RawAttributes};

use super::link::lladdr;
use super::neighbour::{extended_flags, header};
use crate::attribute::{Attribute, Kept};
use crate::kernel::nda;
use crate::malformed::Malformed;

/// Payload of `RTM_NEWNEIGH` or `RTM_DELNEIGH` of `AF_BRIDGE`. Ages are
/// left out. O(bytes); allocates only for attributes without a field.
pub fn fdb(payload: &[u8]) -> Result<FdbEntry, Malformed> {
    let (header, mut attributes) = header(payload, "forwarding entry")?;
    let mut kept = Kept::default();
    let mut entry = FdbEntry {
        link: header.link,
        lladdr: LinkLayerAddress::NONE,
        vlan: None,
        master: None,
        destination: None,
        port: None,
        vni: None,
        source_vni: None,
        via_link: None,
        link_netns_id: None,
        nexthop_id: None,
        state: header.state,
        flags: header.flags,
        protocol: 0,
        activity: None,
        rest: RawAttributes::default(),
    };
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            nda::DST => entry.destination = Some(attribute.address()?),
            nda::LLADDR => entry.lladdr = lladdr(&attribute)?,
            nda::VLAN => entry.vlan = Some(attribute.u16()?),
            // The only one in network byte order.
            nda::PORT => entry.port = Some(u16::from_be_bytes(attribute.array()?)),
            nda::VNI => entry.vni = Some(attribute.u32()?),
            nda::SRC_VNI => entry.source_vni = Some(attribute.u32()?),
            nda::IFINDEX => entry.via_link = Some(attribute.u32()?),
            nda::MASTER => entry.master = Some(attribute.u32()?),
            nda::LINK_NETNSID => entry.link_netns_id = Some(attribute.i32()?),
            nda::NH_ID => entry.nexthop_id = Some(attribute.u32()?),
            nda::FLAGS_EXT => entry.flags |= extended_flags(attribute.u32()?),
            nda::PROTOCOL => entry.protocol = attribute.u8()?,
            nda::FDB_EXT_ATTRS => match activity(&attribute) {
                Some(activity) => entry.activity = Some(activity),
                None => kept.keep(&attribute),
            },
            nda::CACHEINFO | nda::PROBES => {}
            _ => kept.keep(&attribute),
        }
    }
    entry.rest = kept.into_attributes();
    Ok(entry)
}

/// `NFEA_ACTIVITY_NOTIFY`, if that is all there is.
fn activity(attribute: &Attribute<'_>) -> Option<u8> {
    let mut activity = None;
    attribute.nested().all(|attribute| {
        if attribute.kind != nda::NFEA_ACTIVITY_NOTIFY {
            return None;
        }
        activity = Some(u8::from_ne_bytes(attribute.exact()?));
        Some(())
    })?;
    activity
}
