//! `struct ifaddrmsg` and `IFA_…` (`linux/if_addr.h`) to [`Address`].

use table::Address;

use super::{ends_at, link_of, split};
use crate::kernel::ifa;
use crate::malformed::Malformed;

const MESSAGE: &str = "address";
const HEADER: usize = 8;

/// Payload of `RTM_NEWADDR` or `RTM_DELADDR` of `AF_INET` or `AF_INET6`.
/// Lifetimes count from `now_millis` and are whole seconds: the end of one
/// differs by up to a second between two messages about the same address.
/// O(bytes).
pub fn address(payload: &[u8], now_millis: u64) -> Result<Address, Malformed> {
    let (header, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let [_, prefix_len, flags, scope, i0, i1, i2, i3] = *header;
    let link = link_of([i0, i1, i2, i3], MESSAGE, "ifa_index")?;
    let mut prefix = None;
    let mut local = None;
    let mut row = Address {
        link,
        local: std::net::Ipv4Addr::UNSPECIFIED.into(),
        prefix_len,
        peer: None,
        broadcast: None,
        anycast: None,
        label: None,
        scope,
        flags: flags.into(),
        valid_until_millis: None,
        preferred_until_millis: None,
        metric: 0,
        protocol: 0,
        created_centisecs: 0,
    };
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            ifa::ADDRESS => prefix = Some(attribute.address()?),
            ifa::LOCAL => local = Some(attribute.address()?),
            ifa::LABEL => row.label = Some(attribute.text()),
            ifa::BROADCAST => row.broadcast = Some(attribute.address()?),
            ifa::ANYCAST => row.anycast = Some(attribute.address()?),
            // struct ifa_cacheinfo: preferred, valid, when made, when changed.
            ifa::CACHEINFO => {
                let [p0, p1, p2, p3, v0, v1, v2, v3, c0, c1, c2, c3] = attribute.array()?;
                let preferred = u32::from_ne_bytes([p0, p1, p2, p3]);
                let valid = u32::from_ne_bytes([v0, v1, v2, v3]);
                row.created_centisecs = u32::from_ne_bytes([c0, c1, c2, c3]);
                row.preferred_until_millis = ends_at(preferred, now_millis);
                row.valid_until_millis = ends_at(valid, now_millis);
            }
            ifa::FLAGS => row.flags = attribute.u32()?,
            ifa::RT_PRIORITY => row.metric = attribute.u32()?,
            ifa::PROTO => row.protocol = attribute.u8()?,
            _ => {}
        }
    }
    row.local = local.or(prefix).ok_or(Malformed::Missing {
        message: MESSAGE,
        attribute: "IFA_LOCAL or IFA_ADDRESS",
    })?;
    row.peer = prefix.filter(|prefix| *prefix != row.local);
    check_prefix_len(&row)?;
    Ok(row)
}

fn check_prefix_len(row: &Address) -> Result<(), Malformed> {
    let max = if row.local.is_ipv4() { 32 } else { 128 };
    if row.prefix_len <= max {
        return Ok(());
    }
    Err(Malformed::Field {
        message: MESSAGE,
        field: "ifa_prefixlen",
        value: row.prefix_len.into(),
    })
}
