//! `struct ndmsg` and `NDA_…` (`linux/neighbour.h`) of `AF_BRIDGE` to
//! [`FdbEntry`].

use table::{FdbEntry, LinkLayerAddress, RawAttributes};

use super::link::lladdr;
use super::neighbour::{extended_flags, header};
use crate::attribute::Kept;
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
            nda::CACHEINFO | nda::PROBES => {}
            _ => kept.keep(&attribute),
        }
    }
    entry.rest = kept.into_attributes();
    Ok(entry)
}
