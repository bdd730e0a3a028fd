//! A row as the kernel told it, in the form in which it takes it.

use std::borrow::Cow;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use netlink::attribute::attributes;
use netlink::encode::{KindData, LINK_KINDS, LinkEnd, LinkNetns};
use table::{Address, Link};

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
pub(super) fn kind(link: &Link) -> Result<KindData, String> {
    let kind = link.kind.as_deref().unwrap_or_default();
    let known = LINK_KINDS.iter().find(|known| known.name == kind);
    let Some(known) = known else {
        return Err(format!("links of kind {kind} are not brought back"));
    };
    let mut data = KindData::new(known.name);
    for (number, value) in attributes(link.kind_data.bytes()).map_while(Result::ok) {
        if let Some(value) = taken(kind, number, value) {
            data.put(number, &value);
        }
    }
    Ok(data)
}

/// An attribute of `IFLA_INFO_DATA` as the kernel tells it, in the form in
/// which it takes it; `None`: not at all, or it goes without saying.
fn taken<'a>(kind: &str, number: u16, value: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let is_zero = value.iter().all(|octet| *octet == 0);
    match (kind, number) {
        // IFLA_MACVLAN_MACADDR_DATA, MACADDR_COUNT, BC_QUEUE_LEN_USED.
        ("macvlan" | "macvtap", 5 | 6 | 8) => None,
        // IFLA_VXLAN_TTL_INHERIT: told as a number, taken as a flag.
        ("vxlan", 28) => (!is_zero).then(Cow::default),
        // IFLA_VXLAN_RESERVED_BITS: follows from the rest, and is refused.
        ("vxlan", 33) => None,
        // IFLA_BR_VLAN_FILTERING: told as 0 by a kernel built without it,
        // which refuses to hear of it.
        ("bridge", 7) => (!is_zero).then(|| value.into()),
        // IFLA_BR_MULTI_BOOLOPT: values, and which of them are meant. Told
        // are all, some of which the kernel may have been built without.
        ("bridge", 46) => {
            let on = value.first_chunk::<4>()?;
            (*on != [0; 4]).then(|| [*on, *on].concat().into())
        }
        // IFLA_VLAN_FLAGS: likewise; VLAN_FLAG_REORDER_HDR is 1.
        ("vlan", 2) => {
            let flags = u32::from_ne_bytes(*value.first_chunk()?);
            Some(
                [flags.to_ne_bytes(), (flags | 1).to_ne_bytes()]
                    .concat()
                    .into(),
            )
        }
        // IFLA_BOND_MODE; MIIMON, UPDELAY, DOWNDELAY, XMIT_HASH_POLICY. The
        // others are refused in one mode or the other.
        ("bond", 1) => Some(value.into()),
        ("bond", 3 | 4 | 5 | 14) => (!is_zero).then(|| value.into()),
        ("bond", _) => None,
        _ => Some(value.into()),
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
