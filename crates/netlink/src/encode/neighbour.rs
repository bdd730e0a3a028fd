//! [`Neighbour`] and [`FdbEntry`] to `struct ndmsg` and `NDA_…`
//! (`linux/neighbour.h`).

use table::row::neighbour::flag::{PROXY, SELF};
use table::{AF_INET, AF_INET6, FdbEntry, Neighbour};

use super::Request;
use crate::attribute::NESTED;
use crate::build::Build;
use crate::kernel::{AF_BRIDGE, nda};
use crate::malformed::TooLong;
use crate::message::kind;

const KINDS: [u16; 2] = [kind::NEWNEIGH, kind::DELNEIGH];

/// Bits of a row's flags that are `ndm_flags`; those above are
/// `NDA_FLAGS_EXT`.
const EXTENDED_SHIFT: u32 = 8;

fn ndmsg(family: u8, link: u32, state: u16, flags: u32, kind: u8) -> [u8; 12] {
    let [i0, i1, i2, i3] = link.to_ne_bytes();
    let [s0, s1] = state.to_ne_bytes();
    [family, 0, 0, 0, i0, i1, i2, i3, s0, s1, flags as u8, kind]
}

fn put_extended_flags(build: &mut Build<'_>, flags: u32) {
    let extended = flags >> EXTENDED_SHIFT;
    if extended != 0 {
        build.put_u32(nda::FLAGS_EXT, extended);
    }
}

/// Appends `RTM_NEWNEIGH` or `RTM_DELNEIGH` of a neighbour or proxy entry.
pub fn neighbour(out: &mut Vec<u8>, request: &Request, row: &Neighbour) -> Result<(), TooLong> {
    let family = if row.address.is_ipv4() {
        AF_INET
    } else {
        AF_INET6
    };
    let flags = if row.proxy {
        row.flags | PROXY
    } else {
        row.flags
    };
    let header = ndmsg(family, row.link, row.state, flags, row.kind);
    let mut build = request.start(out, KINDS, &header);
    build.put_address(nda::DST, row.address);
    build.put_lladdr(nda::LLADDR, &row.lladdr);
    put_extended_flags(&mut build, flags);
    if row.protocol != 0 {
        build.put_u8(nda::PROTOCOL, row.protocol);
    }
    build.end()
}

/// Appends `RTM_NEWNEIGH` or `RTM_DELNEIGH` of a forwarding entry. An entry
/// of the bridge itself gets `SELF`, without which the kernel looks for a
/// bridge that the bridge is a port of.
pub fn fdb(out: &mut Vec<u8>, request: &Request, row: &FdbEntry) -> Result<(), TooLong> {
    let of_itself = row.master == Some(row.link);
    let flags = if of_itself {
        row.flags | SELF
    } else {
        row.flags
    };
    let header = ndmsg(AF_BRIDGE, row.link, row.state, flags, 0);
    let mut build = request.start(out, KINDS, &header);
    build.put_lladdr(nda::LLADDR, &row.lladdr);
    if let Some(destination) = row.destination {
        build.put_address(nda::DST, destination);
    }
    if let Some(vlan) = row.vlan {
        build.put_u16(nda::VLAN, vlan);
    }
    if let Some(port) = row.port {
        build.put(nda::PORT, &port.to_be_bytes());
    }
    let numbers = [
        (nda::VNI, row.vni),
        (nda::SRC_VNI, row.source_vni),
        (nda::IFINDEX, row.via_link),
        (nda::MASTER, row.master),
        (nda::NH_ID, row.nexthop_id),
        (nda::LINK_NETNSID, row.link_netns_id.map(i32::cast_unsigned)),
    ];
    for (kind, number) in numbers {
        if let Some(number) = number {
            build.put_u32(kind, number);
        }
    }
    put_extended_flags(&mut build, row.flags);
    if row.protocol != 0 {
        build.put_u8(nda::PROTOCOL, row.protocol);
    }
    if let Some(activity) = row.activity {
        let nest = build.open(nda::FDB_EXT_ATTRS | NESTED);
        build.put_u8(nda::NFEA_ACTIVITY_NOTIFY, activity);
        build.close(&nest);
    }
    build.append(row.rest.bytes());
    build.end()
}
