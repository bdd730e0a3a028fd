//! A network interface.

pub mod bond;
pub mod bridge;
pub mod geneve;
pub mod gre;
pub mod hsr;
pub mod ip_tunnel;
pub mod ipvlan;
mod kind;
pub mod limits;
pub mod macvlan;
pub mod tun;
pub mod vlan;
pub mod vrf;
pub mod vti;
pub mod vxlan;
pub mod xfrm;

pub use kind::{KindData, PortData};

use limits::KeptLimits;

use super::link_layer_address::LinkLayerAddress;
use crate::AF_INET6;

/// A link (`RTM_NEWLINK`), without its counters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// `ifi_index`, its key; never 0.
    pub index: u32,
    /// `IFLA_IFNAME`.
    pub name: Box<str>,
    /// `IFLA_PROP_LIST`'s `IFLA_ALT_IFNAME`s.
    pub alt_names: Box<[Box<str>]>,
    /// `ifi_type`: `ARPHRD_…`.
    pub hardware: u16,
    /// `ifi_flags`: [`flag`].
    pub flags: u32,
    /// `IFLA_MTU`, bytes.
    pub mtu: u32,
    /// `IFLA_MIN_MTU`.
    pub min_mtu: u32,
    /// `IFLA_MAX_MTU`.
    pub max_mtu: u32,
    /// `IFLA_QDISC`.
    pub qdisc: Option<Box<str>>,
    /// `IFLA_OPERSTATE`: [`oper`].
    pub oper_state: u8,
    /// `IFLA_LINKMODE`: 0 default, 1 dormant.
    pub link_mode: u8,
    /// `IFLA_GROUP`.
    pub group: u32,
    /// `IFLA_TXQLEN`, packets.
    pub tx_queue_len: u32,
    /// `IFLA_ADDRESS`.
    pub address: LinkLayerAddress,
    /// `IFLA_BROADCAST` (the peer's address on a point-to-point link).
    pub broadcast: LinkLayerAddress,
    /// `IFLA_PERM_ADDRESS`.
    pub perm_address: LinkLayerAddress,
    /// `IFLA_MASTER`: index of the bridge, bond or VRF this link is in.
    pub master: Option<u32>,
    /// `IFLA_LINK`: index of the lower link, or of the peer.
    pub lower: Option<u32>,
    /// `IFLA_LINK_NETNSID`: where `lower` lives if not here.
    pub lower_netns_id: Option<i32>,
    /// `IFLA_IFALIAS`.
    pub alias: Option<Box<str>>,
    /// `IFLA_INFO_KIND`: `veth`, `bridge`, `vlan`, …
    pub kind: Option<Box<str>>,
    /// `IFLA_INFO_SLAVE_KIND`.
    pub slave_kind: Option<Box<str>>,
    /// `IFLA_INFO_DATA`: settings of its kind.
    pub kind_data: KindData,
    /// `IFLA_INFO_SLAVE_DATA`: settings as a port of its master.
    pub slave_data: PortData,
    /// `IFLA_PROMISCUITY`.
    pub promiscuity: u32,
    /// `IFLA_ALLMULTI`: how many want all multicast frames.
    pub allmulti: Option<u32>,
    /// `IFLA_INET6_ADDR_GEN_MODE`: how it gives itself link-local addresses
    /// (`IN6_ADDR_GEN_MODE_…`); `None` without IPv6.
    pub addr_gen_mode: Option<u8>,
    /// `IFLA_GSO_MAX_SIZE` and its kin.
    pub limits: KeptLimits,
    /// `IFLA_NUM_TX_QUEUES`.
    pub tx_queues: u32,
    /// `IFLA_NUM_RX_QUEUES`.
    pub rx_queues: u32,
    /// The device that it is of, if it is of one.
    pub parent: Option<Box<Parent>>,
    /// For a VRF: the table of its routes (`IFLA_VRF_TABLE`).
    pub vrf_table: Option<u32>,
    /// Where `ignore_routes_with_linkdown` is set: [`linkdown`].
    pub ignores_linkdown: u8,
    /// Whether IPv6 is switched off on it (`disable_ipv6`). The kernel tells
    /// it with the link, and does not announce the link when it changes.
    pub v6_disabled: bool,
    /// Whether IPv4 packets that come in by it may leave by another
    /// (`net.ipv4.conf.*.forwarding`).
    pub forwards_v4: bool,
    /// `IFLA_PROTO_DOWN`: held down by a protocol.
    pub proto_down: bool,
}

/// Links with a lower MTU have no IPv6 (`IPV6_MIN_MTU`).
pub const V6_MIN_MTU: u32 = 1280;

// There are links by the hundred thousand.
const _: () = assert!(size_of::<Link>() <= 344);

/// The device that a link is of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parent {
    /// `IFLA_PARENT_DEV_NAME`.
    pub device: Option<Box<str>>,
    /// `IFLA_PARENT_DEV_BUS_NAME`: `pci`, `virtio`, …
    pub bus: Option<Box<str>>,
}

/// Where `net.ipv4.conf.*` or `net.ipv6.conf.*` says
/// `ignore_routes_with_linkdown`.
pub mod linkdown {
    /// For the link, IPv4.
    pub const V4: u8 = 1;
    /// For the link, IPv6.
    pub const V6: u8 = 2;
    /// For all links, IPv4. (IPv6 asks for the link's own setting only.)
    pub const ALL_V4: u8 = 4;
}

impl Link {
    /// Whether it is administratively up.
    pub fn is_up(&self) -> bool {
        self.flags & flag::UP != 0
    }

    /// The link of this namespace that it lies on: a VLAN's parent, a
    /// tunnel's device. Not the other end of a pair, which `IFLA_LINK`
    /// tells as well; of a VXLAN only its settings tell it.
    pub fn below(&self) -> Option<u32> {
        let is_pair = matches!(self.kind.as_deref(), Some("veth" | "netkit" | "vxcan"));
        let of_kind = match &self.kind_data {
            KindData::Vxlan(vxlan) => vxlan.link,
            _ => None,
        };
        let lower = self
            .lower
            .or(of_kind)
            .filter(|&lower| lower != 0 && lower != self.index);
        lower.filter(|_| !is_pair && self.lower_netns_id.is_none())
    }

    /// Whether routes of a family (`AF_INET`, `AF_INET6`) over it are not
    /// used while it has no carrier.
    pub fn ignores_linkdown(&self, family: u8) -> bool {
        let bits = if family == AF_INET6 {
            linkdown::V6
        } else {
            linkdown::V4 | linkdown::ALL_V4
        };
        self.ignores_linkdown & bits != 0
    }

    /// Whether the kernel sends packets of a family (`AF_INET`,
    /// `AF_INET6`) over it: it is up, and has a carrier where that counts.
    pub fn is_usable(&self, family: u8) -> bool {
        self.is_up() && (self.has_carrier() || !self.ignores_linkdown(family))
    }

    /// Whether the kernel takes IPv6 into use on it (`addrconf_notify`): it is
    /// up and ready, is no port of a bond or a team (of a team since Linux
    /// 6.2), and IPv6 is not switched off.
    pub fn is_ready_for_v6(&self) -> bool {
        let is_ready = matches!(self.oper_state, oper::UP | oper::UNKNOWN);
        let is_port = self.flags & flag::SLAVE != 0 || self.slave_kind.as_deref() == Some("team");
        let has_v6 = self.mtu >= V6_MIN_MTU && !self.v6_disabled;
        self.is_up() && is_ready && !is_port && has_v6
    }

    /// Whether it is up and has a carrier: what the kernel's routing calls
    /// the opposite of `linkdown`.
    pub fn has_carrier(&self) -> bool {
        self.flags & flag::LOWER_UP != 0
    }
}

/// `IFF_…`, `linux/if.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod flag {
    pub const UP: u32 = 1;
    pub const BROADCAST: u32 = 1 << 1;
    pub const DEBUG: u32 = 1 << 2;
    pub const LOOPBACK: u32 = 1 << 3;
    pub const POINTOPOINT: u32 = 1 << 4;
    pub const NOTRAILERS: u32 = 1 << 5;
    pub const RUNNING: u32 = 1 << 6;
    pub const NOARP: u32 = 1 << 7;
    pub const PROMISC: u32 = 1 << 8;
    pub const ALLMULTI: u32 = 1 << 9;
    pub const MASTER: u32 = 1 << 10;
    pub const SLAVE: u32 = 1 << 11;
    pub const MULTICAST: u32 = 1 << 12;
    pub const PORTSEL: u32 = 1 << 13;
    pub const AUTOMEDIA: u32 = 1 << 14;
    pub const DYNAMIC: u32 = 1 << 15;
    pub const LOWER_UP: u32 = 1 << 16;
    pub const DORMANT: u32 = 1 << 17;
    pub const ECHO: u32 = 1 << 18;
}

/// `IF_OPER_…`, RFC 2863's `ifOperStatus` as Linux numbers it.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod oper {
    pub const UNKNOWN: u8 = 0;
    pub const NOT_PRESENT: u8 = 1;
    pub const DOWN: u8 = 2;
    pub const LOWER_LAYER_DOWN: u8 = 3;
    pub const TESTING: u8 = 4;
    pub const DORMANT: u8 = 5;
    pub const UP: u8 = 6;
}

/// `ARPHRD_…`, `linux/if_arp.h`: those that Fingerpost treats apart.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod hardware {
    pub const ETHER: u16 = 1;
    pub const INFINIBAND: u16 = 32;
    pub const PPP: u16 = 512;
    pub const TUNNEL: u16 = 768;
    pub const TUNNEL6: u16 = 769;
    pub const LOOPBACK: u16 = 772;
    pub const SIT: u16 = 776;
    pub const IPGRE: u16 = 778;
    pub const IP6GRE: u16 = 823;
    pub const NONE: u16 = 0xFFFE;
    pub const VOID: u16 = 0xFFFF;
}
