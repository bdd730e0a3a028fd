//! Where a walk stands, as plain data that can be written down.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use table::{
    AddressKey, AddressPlace, BodyId, FdbKey, FdbRemote, LinkLayerAddress, NeighbourKey,
    RoutePlace, RuleKey,
};

/// The last row of a piece: the next one goes on after it, whether the row
/// is still there or not. It says no more than a key does, and whatever it
/// says is only looked for: a forged one gets other rows of the same table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Position {
    /// A link by its index.
    #[serde(rename = "l")]
    Link(u32),
    /// An address where they are walked by address: link, address, length,
    /// peer.
    #[serde(rename = "a")]
    Address(u32, IpAddr, u8, Option<IpAddr>),
    /// An address where they are walked by link: link, class, ordinal.
    #[serde(rename = "p")]
    AddressPlace(u32, u16, u64),
    /// A neighbour: link, address, whether it is a proxy.
    #[serde(rename = "n")]
    Neighbour(u32, IpAddr, bool),
    /// A route: the number of its body where routes are walked by that, its
    /// table, its place there. The number holds for one start of the
    /// program.
    #[serde(rename = "r")]
    Route(Option<u32>, u32, RoutePosition),
    /// A next-hop object by its id.
    #[serde(rename = "h")]
    Nexthop(u32),
    /// A rule: family, priority, ordinal.
    #[serde(rename = "u")]
    Rule(u8, u32, u32),
    /// A forwarding entry.
    #[serde(rename = "f")]
    Fdb(Box<FdbPosition>),
}

/// A route's place in its table: prefix, TOS, metric, ordinal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RoutePosition(IpNet, u8, u32, u32);

/// A forwarding entry's key: link, bytes of the link-layer address, VLAN,
/// of the master, source VNI, remote end (destination, port, VNI, link).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FdbPosition(
    u32,
    Vec<u8>,
    Option<u16>,
    bool,
    Option<u32>,
    Option<RemotePosition>,
);

/// A remote end: destination, port, VNI, link.
type RemotePosition = (IpAddr, Option<u16>, Option<u32>, Option<u32>);

/// The route that a walk goes on after: its body where routes are walked
/// by that, its table, its place there.
pub(super) type RouteAfter = (Option<BodyId>, u32, RoutePlace);

impl Position {
    /// Whether it holds only for the start of the program that gave it.
    pub fn is_of_one_start(&self) -> bool {
        matches!(self, Self::Route(Some(_), ..))
    }

    pub(super) fn of_address(key: &AddressKey) -> Self {
        Self::Address(key.link, key.local, key.prefix_len, key.peer)
    }

    pub(super) fn address(&self) -> Option<AddressKey> {
        match *self {
            Self::Address(link, local, prefix_len, peer) => Some(AddressKey {
                local,
                link,
                prefix_len,
                peer,
            }),
            _ => None,
        }
    }

    pub(super) fn of_address_place(place: &AddressPlace) -> Self {
        Self::AddressPlace(place.link, place.class, place.ordinal)
    }

    pub(super) fn address_place(&self) -> Option<AddressPlace> {
        match *self {
            Self::AddressPlace(link, class, ordinal) => Some(AddressPlace {
                link,
                class,
                ordinal,
            }),
            _ => None,
        }
    }

    pub(super) fn of_neighbour(key: &NeighbourKey) -> Self {
        Self::Neighbour(key.link, key.address, key.proxy)
    }

    pub(super) fn neighbour(&self) -> Option<NeighbourKey> {
        match *self {
            Self::Neighbour(link, address, proxy) => Some(NeighbourKey {
                link,
                address,
                proxy,
            }),
            _ => None,
        }
    }

    pub(super) fn of_route(body: Option<BodyId>, table: u32, place: &RoutePlace) -> Self {
        let place = RoutePosition(place.prefix, place.tos, place.metric, place.ordinal);
        Self::Route(body.map(BodyId::number), table, place)
    }

    pub(super) fn route(&self) -> Option<RouteAfter> {
        match *self {
            Self::Route(body, table, RoutePosition(prefix, tos, metric, ordinal)) => {
                let place = RoutePlace {
                    prefix,
                    tos,
                    metric,
                    ordinal,
                };
                Some((body.map(BodyId::of_number), table, place))
            }
            _ => None,
        }
    }

    pub(super) fn link(&self) -> Option<u32> {
        match *self {
            Self::Link(index) => Some(index),
            _ => None,
        }
    }

    pub(super) fn nexthop(&self) -> Option<u32> {
        match *self {
            Self::Nexthop(id) => Some(id),
            _ => None,
        }
    }

    pub(super) fn of_rule(key: &RuleKey) -> Self {
        Self::Rule(key.family, key.priority, key.ordinal)
    }

    pub(super) fn rule(&self) -> Option<RuleKey> {
        match *self {
            Self::Rule(family, priority, ordinal) => Some(RuleKey {
                family,
                priority,
                ordinal,
            }),
            _ => None,
        }
    }

    pub(super) fn of_fdb(key: &FdbKey) -> Self {
        Self::Fdb(Box::new(FdbPosition(
            key.link,
            key.lladdr.octets().to_vec(),
            key.vlan,
            key.of_master,
            key.source_vni,
            key.remote
                .map(|to| (to.destination, to.port, to.vni, to.via_link)),
        )))
    }

    pub(super) fn fdb(&self) -> Option<FdbKey> {
        let Self::Fdb(key) = self else { return None };
        Some(FdbKey {
            link: key.0,
            lladdr: LinkLayerAddress::new(&key.1)?,
            vlan: key.2,
            of_master: key.3,
            source_vni: key.4,
            remote: key.5.map(|(destination, port, vni, via_link)| FdbRemote {
                destination,
                port,
                vni,
                via_link,
            }),
        })
    }
}

/// Before all rows of an address.
pub(super) fn first_address(local: IpAddr) -> AddressKey {
    AddressKey {
        local,
        link: 0,
        prefix_len: 0,
        peer: None,
    }
}

/// Before all neighbours of a link.
pub(super) fn first_neighbour_of(link: u32) -> NeighbourKey {
    first_neighbour(link, IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// Before all rows of an address on a link.
pub(super) fn first_neighbour(link: u32, address: IpAddr) -> NeighbourKey {
    NeighbourKey {
        link,
        address,
        proxy: false,
    }
}
