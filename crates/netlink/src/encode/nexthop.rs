//! [`Nexthop`] to `struct nhmsg` and `NHA_…` (`linux/nexthop.h`).

use table::row::route::hop_flag;
use table::{GroupMember, Nexthop, Resilient};

use super::Request;
use super::encap::put_encap;
use crate::attribute::NESTED;
use crate::build::Build;
use crate::decode::Operation;
use crate::kernel::nha;
use crate::malformed::TooLong;
use crate::message::kind;

/// Appends `RTM_NEWNEXTHOP`, or `RTM_DELNEXTHOP`, which names the id and
/// nothing else. The scope is the kernel's to tell, as are all flags but
/// `ONLINK`. A weight is 65536 at most (256 before Linux 6.12).
pub fn nexthop(out: &mut Vec<u8>, request: &Request, row: &Nexthop) -> Result<(), TooLong> {
    let kinds = [kind::NEWNEXTHOP, kind::DELNEXTHOP];
    if request.operation == Operation::Delete {
        let mut build = request.start(out, kinds, &[0; 8]);
        // Without one the kernel chooses.
        if row.id != 0 {
            build.put_u32(nha::ID, row.id);
        }
        return build.end();
    }
    let [f0, f1, f2, f3] = (row.flags & hop_flag::ONLINK).to_ne_bytes();
    let header = [row.family, 0, row.protocol, 0, f0, f1, f2, f3];
    let mut build = request.start(out, kinds, &header);
    // Without one the kernel chooses.
    if row.id != 0 {
        build.put_u32(nha::ID, row.id);
    }
    if !row.group.is_empty() {
        put_group(&mut build, row);
    }
    if row.blackhole {
        build.put(nha::BLACKHOLE, &[]);
    }
    if row.fdb {
        build.put(nha::FDB, &[]);
    }
    if let Some(link) = row.link {
        build.put_u32(nha::OIF, link);
    }
    if let Some(gateway) = row.gateway {
        build.put_address(nha::GATEWAY, gateway);
    }
    if let Some(encap) = &row.encap {
        put_encap(&mut build, nha::ENCAP, nha::ENCAP_TYPE, encap);
    }
    build.append(row.rest.bytes());
    build.end()
}

fn put_group(build: &mut Build<'_>, row: &Nexthop) {
    let group = build.open(nha::GROUP);
    for GroupMember { id, weight } in &row.group {
        let below = u16::try_from(weight.saturating_sub(1)).unwrap_or(u16::MAX);
        let [low, high] = below.to_le_bytes();
        build.append(&id.to_ne_bytes());
        build.append(&[low, high, 0, 0]);
    }
    build.close(&group);
    build.put_u16(nha::GROUP_TYPE, row.group_kind);
    if let Some(Resilient {
        buckets,
        idle_timer_centisecs,
        unbalanced_timer_centisecs,
    }) = row.resilient
    {
        let nest = build.open(nha::RES_GROUP | NESTED);
        build.put_u16(nha::RES_GROUP_BUCKETS, buckets);
        build.put_u32(nha::RES_GROUP_IDLE_TIMER, idle_timer_centisecs);
        build.put_u32(nha::RES_GROUP_UNBALANCED_TIMER, unbalanced_timer_centisecs);
        build.close(&nest);
    }
}
