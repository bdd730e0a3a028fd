//! [`Address`] to `struct ifaddrmsg` and `IFA_…` (`linux/if_addr.h`).

use table::{AF_INET, AF_INET6, Address};

use super::Request;
use crate::kernel::ifa;
use crate::malformed::TooLong;
use crate::message::kind;

/// Appends `RTM_NEWADDR` or `RTM_DELADDR`.
pub fn address(out: &mut Vec<u8>, request: &Request, row: &Address) -> Result<(), TooLong> {
    let family = if row.local.is_ipv4() {
        AF_INET
    } else {
        AF_INET6
    };
    let [i0, i1, i2, i3] = row.link.to_ne_bytes();
    // The low byte of the flags, for kernels without IFA_FLAGS.
    let header = [
        family,
        row.prefix_len,
        row.flags as u8,
        row.scope,
        i0,
        i1,
        i2,
        i3,
    ];
    let mut build = request.start(out, [kind::NEWADDR, kind::DELADDR], &header);
    build.put_address(ifa::LOCAL, row.local);
    build.put_address(ifa::ADDRESS, row.peer.unwrap_or(row.local));
    if let Some(broadcast) = row.broadcast {
        build.put_address(ifa::BROADCAST, broadcast);
    }
    if let Some(anycast) = row.anycast {
        build.put_address(ifa::ANYCAST, anycast);
    }
    if let Some(label) = &row.label {
        build.put_text(ifa::LABEL, label);
    }
    build.put_u32(ifa::FLAGS, row.flags);
    let ends = row.valid_until_millis.is_some() || row.preferred_until_millis.is_some();
    if ends || row.created_centisecs != 0 {
        build.put(ifa::CACHEINFO, &cacheinfo(request, row));
    }
    if row.metric != 0 {
        build.put_u32(ifa::RT_PRIORITY, row.metric);
    }
    if row.protocol != 0 {
        build.put_u8(ifa::PROTO, row.protocol);
    }
    build.end()
}

/// `struct ifa_cacheinfo`. Its time stamps are the kernel's to make: what a
/// request says of them is passed over.
fn cacheinfo(request: &Request, row: &Address) -> [u8; 16] {
    let remaining = |until: Option<u64>| match until {
        Some(until) => request.remaining_secs(until),
        None => ifa::INFINITY,
    };
    let mut info = [0; 16];
    let (fields, _) = info.as_chunks_mut::<4>();
    if let [preferred, valid, created, ..] = fields {
        *created = row.created_centisecs.to_ne_bytes();
        *preferred = remaining(row.preferred_until_millis).to_ne_bytes();
        *valid = remaining(row.valid_until_millis).to_ne_bytes();
    }
    info
}
