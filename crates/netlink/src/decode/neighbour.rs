//! `struct ndmsg` and `NDA_…` (`linux/neighbour.h`) to [`Neighbour`].

use table::row::neighbour::flag;
use table::{LinkLayerAddress, Neighbour, NeighbourAges};

use super::link::lladdr;
use super::{link_of, split};
use crate::attribute::Attributes;
use crate::kernel::{MILLIS_PER_TICK, nda};
use crate::malformed::Malformed;

const MESSAGE: &str = "neighbour";
const HEADER: usize = 12;

/// `struct ndmsg` without its family.
pub(super) struct Header {
    pub(super) link: u32,
    pub(super) state: u16,
    pub(super) flags: u32,
    pub(super) kind: u8,
}

pub(super) fn header<'a>(
    payload: &'a [u8],
    message: &'static str,
) -> Result<(Header, Attributes<'a>), Malformed> {
    let (header, attributes) = split::<HEADER>(payload, message)?;
    let [_, _, _, _, i0, i1, i2, i3, s0, s1, flags, kind] = *header;
    let header = Header {
        link: link_of([i0, i1, i2, i3], message, "ndm_ifindex")?,
        state: u16::from_ne_bytes([s0, s1]),
        flags: flags.into(),
        kind,
    };
    Ok((header, attributes))
}

/// `NDA_FLAGS_EXT` as the rows keep it: above the eight bits of
/// `ndm_flags`.
pub(super) fn extended_flags(flags: u32) -> u32 {
    flags << 8
}

/// Payload of `RTM_NEWNEIGH` or `RTM_DELNEIGH` of `AF_INET` or `AF_INET6`.
/// O(bytes), no allocation.
pub fn neighbour(payload: &[u8]) -> Result<Neighbour, Malformed> {
    let (header, mut attributes) = header(payload, MESSAGE)?;
    let mut address = None;
    let mut lladdr_of = LinkLayerAddress::NONE;
    let mut flags = header.flags;
    let mut protocol = 0;
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            nda::DST => address = Some(attribute.address()?),
            nda::LLADDR => lladdr_of = lladdr(&attribute)?,
            nda::FLAGS_EXT => flags |= extended_flags(attribute.u32()?),
            nda::PROTOCOL => protocol = attribute.u8()?,
            _ => {}
        }
    }
    let address = address.ok_or(Malformed::Missing {
        message: MESSAGE,
        attribute: "NDA_DST",
    })?;
    Ok(Neighbour {
        link: header.link,
        address,
        proxy: flags & flag::PROXY != 0,
        lladdr: lladdr_of,
        state: header.state,
        flags,
        protocol,
        kind: header.kind,
    })
}

/// `NDA_CACHEINFO` (`struct nda_cacheinfo`) and `NDA_PROBES` of a
/// neighbour's or forwarding entry's message. `None` when it has none (a
/// proxy entry) or cannot be read. O(attributes), no allocation.
pub fn neighbour_ages(payload: &[u8]) -> Option<NeighbourAges> {
    let (_, mut attributes) = header(payload, MESSAGE).ok()?;
    let mut ages = None;
    let mut probes = 0;
    while let Some(attribute) = attributes.step().ok()? {
        match attribute.kind {
            nda::CACHEINFO => ages = Some(cacheinfo(attribute.array().ok()?)),
            nda::PROBES => probes = attribute.u32().ok()?,
            _ => {}
        }
    }
    ages.map(|ages| NeighbourAges { probes, ..ages })
}

fn cacheinfo(bytes: [u8; 16]) -> NeighbourAges {
    let [
        c0,
        c1,
        c2,
        c3,
        s0,
        s1,
        s2,
        s3,
        p0,
        p1,
        p2,
        p3,
        r0,
        r1,
        r2,
        r3,
    ] = bytes;
    let millis = |bytes| u64::from(u32::from_ne_bytes(bytes)) * MILLIS_PER_TICK;
    NeighbourAges {
        confirmed_millis: millis([c0, c1, c2, c3]),
        used_millis: millis([s0, s1, s2, s3]),
        updated_millis: millis([p0, p1, p2, p3]),
        references: u32::from_ne_bytes([r0, r1, r2, r3]),
        probes: 0,
    }
}
