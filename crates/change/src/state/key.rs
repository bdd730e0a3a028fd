//! What tells rows apart, links of rows, and which are equal. Pure; called
//! by the rooms of [`mod@super`].

use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};
use netlink::decode::Item;
use table::LinkLayerAddress;
use table::row::fdb::FdbKey;
use table::row::neighbour::{NeighbourKey, state};
use words::Object;

use crate::rows::undo::steady;

/// `RTPROT_…` of what `apply` made, where the file says nothing else: no
/// other program has this number.
pub const MARK: u8 = 70;

/// The metric of an IPv6 route that says none (`IP6_RT_PRIO_USER`).
const V6_METRIC: u32 = 1024;

/// What tells rows apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    Address(u32, IpAddr, u8, Option<IpAddr>),
    Neighbour(NeighbourKey),
    Nexthop(u32),
    Route {
        table: u32,
        prefix: IpNet,
        tos: u8,
        metric: u32,
        source: Option<Ipv6Net>,
    },
    /// Several may have one place.
    Rule(u8, u32),
    Fdb(FdbKey),
}

/// The key of a row; links have none.
pub fn key(item: &Item) -> Option<Key> {
    Some(match item {
        Item::Address(row) => Key::Address(row.link, row.local, row.prefix_len, row.peer),
        Item::Neighbour(row) => Key::Neighbour(row.key()),
        Item::Nexthop(row) => Key::Nexthop(row.id),
        Item::Route(row) => Key::Route {
            table: row.table,
            prefix: row.prefix,
            tos: row.tos,
            metric: match row.prefix {
                IpNet::V6(_) if row.metric == 0 => V6_METRIC,
                _ => row.metric,
            },
            source: row.body.source,
        },
        Item::Rule(row) => Key::Rule(row.family, row.priority),
        Item::Fdb(row) => Key::Fdb(row.key()),
        Item::Link(_) | Item::OtherRoute(_) => return None,
    })
}

/// Which table a row is of.
pub fn object(item: &Item) -> Object {
    match item {
        Item::Link(_) => Object::Link,
        Item::Address(_) => Object::Addr,
        Item::Neighbour(_) => Object::Neigh,
        Item::Nexthop(_) => Object::Nexthop,
        Item::Route(_) | Item::OtherRoute(_) => Object::Route,
        Item::Rule(_) => Object::Rule,
        Item::Fdb(_) => Object::Fdb,
    }
}

/// Who made a row.
pub fn protocol(item: &mut Item) -> Option<&mut u8> {
    Some(match item {
        Item::Address(row) => &mut row.protocol,
        Item::Neighbour(row) => &mut row.protocol,
        Item::Nexthop(row) => &mut row.protocol,
        Item::Route(row) => &mut row.body.protocol,
        Item::Rule(row) => &mut row.protocol,
        Item::Link(_) | Item::Fdb(_) | Item::OtherRoute(_) => return None,
    })
}

/// Whether it carries our mark.
pub fn is_ours(item: &Item) -> bool {
    let protocol = match item {
        Item::Address(row) => row.protocol,
        Item::Neighbour(row) => row.protocol,
        Item::Nexthop(row) => row.protocol,
        Item::Route(row) => row.body.protocol,
        Item::Rule(row) => row.protocol,
        Item::Link(_) | Item::Fdb(_) | Item::OtherRoute(_) => return false,
    };
    protocol == MARK
}

/// Whether a row is there as it is wanted. What the file leaves to the
/// kernel is as the kernel has it.
pub fn is_as_wanted(wanted: &Item, has_protocol: bool, is: &Item) -> bool {
    let mut wanted = steady(wanted.clone());
    let mut is = steady(is.clone());
    if !has_protocol && let (Some(to), Some(from)) = (protocol(&mut wanted), protocol(&mut is)) {
        *to = *from;
    }
    match (&mut wanted, &mut is) {
        (Item::Address(wanted), Item::Address(is)) => {
            // The kernel's label is the link's name, and its scope of IPv6
            // follows from the address.
            if wanted.label.is_none() {
                wanted.label.clone_from(&is.label);
            }
            if wanted.local.is_ipv6() {
                wanted.scope = is.scope;
            }
        }
        (Item::Neighbour(wanted), Item::Neighbour(is)) => {
            wanted.kind = is.kind;
            if wanted.proxy {
                (wanted.state, wanted.lladdr) = (is.state, is.lladdr);
                wanted.flags = is.flags;
            }
            // A link without addresses needs none.
            if wanted.state & state::NOARP != 0 && wanted.lladdr == LinkLayerAddress::NONE {
                wanted.lladdr = is.lladdr;
            }
        }
        (Item::Nexthop(wanted), Item::Nexthop(is)) => {
            wanted.rest.clone_from(&is.rest);
            if wanted.blackhole || wanted.fdb {
                wanted.family = is.family;
            }
        }
        (Item::Route(wanted), Item::Route(is)) => {
            wanted.metric = is.metric;
            let (wanted, is) = (&mut wanted.body, &is.body);
            if wanted.preference.is_none() {
                wanted.preference = is.preference;
            }
            wanted.flags = is.flags;
            wanted.rest.clone_from(&is.rest);
            if wanted.nexthop_id.is_some() {
                wanted.scope = is.scope;
            }
            let hops = wanted.next_hops.as_mut_slice();
            for (hop, is) in hops.iter_mut().zip(is.next_hops.as_slice()) {
                // The kernel finds the link that leads to the gateway.
                if hop.link == 0 {
                    hop.link = is.link;
                }
                hop.weight = hop.weight.max(1);
            }
        }
        (Item::Rule(wanted), Item::Rule(is)) => {
            let is = is.suppress_prefix_len;
            wanted.suppress_prefix_len = wanted.suppress_prefix_len.or(is);
        }
        (Item::Fdb(wanted), Item::Fdb(is)) => {
            wanted.rest.clone_from(&is.rest);
            wanted.protocol = is.protocol;
            wanted.flags = is.flags;
            wanted.master = is.master;
        }
        _ => {}
    }
    wanted == is
}
