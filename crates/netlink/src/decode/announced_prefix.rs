//! Prefixes that a router announced: `RTM_NEWPREFIX`
//! (`struct prefixmsg`, `linux/rtnetlink.h`; RFC 4861 §4.6.2).

use std::net::IpAddr;

use super::{link_of, split};
use crate::malformed::Malformed;

const MESSAGE: &str = "prefix";
/// Bytes of `struct prefixmsg`.
const HEADER: usize = 12;
/// `PREFIX_…`
const ADDRESS: u16 = 1;
const CACHEINFO: u16 = 2;
/// `IF_PREFIX_…`
const ONLINK: u8 = 1;
const AUTOCONF: u8 = 2;

/// What a router announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnnouncedPrefix {
    /// The link that it came in by.
    pub link: u32,
    /// The prefix.
    pub address: Option<IpAddr>,
    /// Its length.
    pub prefix_len: u8,
    /// Its addresses are on the link.
    pub is_on_link: bool,
    /// A host makes itself an address of it.
    pub makes_addresses: bool,
    /// Seconds that they are preferred, and valid.
    pub lifetimes: Option<(u32, u32)>,
}

/// Payload of `RTM_NEWPREFIX`. O(bytes).
pub fn announced_prefix(payload: &[u8]) -> Result<AnnouncedPrefix, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let [_, _, _, _, i0, i1, i2, i3, _, len, flags, _] = *header;
    let mut told = AnnouncedPrefix {
        link: link_of([i0, i1, i2, i3], MESSAGE, "prefix_ifindex")?,
        prefix_len: len,
        is_on_link: flags & ONLINK != 0,
        makes_addresses: flags & AUTOCONF != 0,
        ..AnnouncedPrefix::default()
    };
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            ADDRESS => told.address = Some(attribute.address()?),
            CACHEINFO => {
                let [p0, p1, p2, p3, v0, v1, v2, v3] = attribute.array()?;
                let preferred = u32::from_ne_bytes([p0, p1, p2, p3]);
                told.lifetimes = Some((preferred, u32::from_ne_bytes([v0, v1, v2, v3])));
            }
            _ => {}
        }
    }
    Ok(told)
}
