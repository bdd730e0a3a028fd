//! A row as the kernel told it, in the form in which it takes it.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use netlink::encode::{LINK_KINDS, LinkEnd, LinkKind, LinkNetns};
use table::row::link::bond::Bond;
use table::{Address, KindData, Link};

use crate::namespace::Namespace;

/// `IFAPROT_KERNEL_RA` and `IFAPROT_KERNEL_LL`, `linux/if_addr.h`: the
/// kernel gives these addresses itself.
const KERNEL_S_OWN: [u8; 2] = [2, 3];

/// One end of a link, down; with an index, or 0.
pub(super) fn end(link: &Link, index: u32) -> LinkEnd {
    LinkEnd {
        name: link.name.clone(),
        index,
        up: false,
        mtu: (link.mtu > 0).then_some(link.mtu),
        address: (!link.address.is_none()).then_some(link.address),
        broadcast: None,
        group: Some(link.group),
        tx_queue_len: Some(link.tx_queue_len),
        tx_queues: Some(link.tx_queues).filter(|queues| *queues > 0),
        rx_queues: Some(link.rx_queues).filter(|queues| *queues > 0),
        netns: None,
    }
}

/// A link's kind and its settings, if links of that kind can be made.
pub(super) fn kind(link: &Link) -> Result<LinkKind, String> {
    let kind = link.kind.as_deref().unwrap_or_default();
    let known = LINK_KINDS.iter().find(|known| known.name == kind);
    let Some(known) = known else {
        return Err(format!("links of kind {kind} are not brought back"));
    };
    let mut data = link.kind_data.clone();
    as_taken(&mut data);
    Ok(LinkKind::Other {
        name: known.name,
        data,
    })
}

/// `VLAN_FLAG_REORDER_HDR`, `linux/if_vlan.h`.
const REORDER_HDR: u32 = 1;

/// Settings as the kernel tells them, in the form in which it takes them:
/// without what it does not take, or what goes without saying.
fn as_taken(data: &mut KindData) {
    match data {
        KindData::Macvlan(macvlan) => {
            macvlan.macaddr_data = Box::default();
            macvlan.macaddr_count = None;
            macvlan.bc_queue_len_used = None;
        }
        // They follow from the rest, and are refused.
        KindData::Vxlan(vxlan) => vxlan.reserved_bits = None,
        KindData::Bridge(bridge) => {
            // Told as 0 by a kernel built without it, which refuses to hear
            // of it.
            bridge.vlan_filtering = bridge.vlan_filtering.filter(|on| *on != 0);
            // Told are all, some of which the kernel may have been built
            // without.
            let on = bridge.multi_boolopt.map(|(on, _)| (on, on));
            bridge.multi_boolopt = on.filter(|(on, _)| *on != 0);
        }
        KindData::Vlan(vlan) => {
            vlan.flags = vlan.flags.map(|(on, _)| (on, on | REORDER_HDR));
        }
        // The others are refused in one mode or the other.
        KindData::Bond(bond) => {
            **bond = Bond {
                mode: bond.mode,
                miimon: bond.miimon.filter(|millis| *millis != 0),
                updelay: bond.updelay.filter(|millis| *millis != 0),
                downdelay: bond.downdelay.filter(|millis| *millis != 0),
                xmit_hash_policy: bond.xmit_hash_policy.filter(|policy| *policy != 0),
                ..Bond::default()
            };
        }
        _ => {}
    }
}

/// Whether the kernel gives an address by itself.
pub(super) fn is_the_kernel_s(address: &Address) -> bool {
    let is_link_local = match address.local {
        IpAddr::V6(local) => local.is_unicast_link_local(),
        IpAddr::V4(_) => false,
    };
    is_link_local && address.protocol != 0 || KERNEL_S_OWN.contains(&address.protocol)
}

/// How a request names a namespace.
pub(super) fn descriptor(namespace: &Namespace) -> LinkNetns {
    LinkNetns::Fd(namespace.as_fd().as_raw_fd())
}
