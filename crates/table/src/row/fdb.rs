//! An entry of a bridge's or VXLAN's forwarding database.

use std::net::IpAddr;

use super::attributes::RawAttributes;
use super::link_layer_address::LinkLayerAddress;

/// A forwarding entry (`RTM_NEWNEIGH` of `AF_BRIDGE`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FdbEntry {
    /// `ndm_ifindex`: the port.
    pub link: u32,
    /// `NDA_LLADDR`.
    pub lladdr: LinkLayerAddress,
    /// `NDA_VLAN`.
    pub vlan: Option<u16>,
    /// `NDA_MASTER`: the bridge.
    pub master: Option<u32>,
    /// `NDA_DST`: the remote VXLAN end.
    pub destination: Option<IpAddr>,
    /// `NDA_PORT`: UDP port of the remote VXLAN end.
    pub port: Option<u16>,
    /// `NDA_VNI`.
    pub vni: Option<u32>,
    /// `NDA_SRC_VNI`.
    pub source_vni: Option<u32>,
    /// `NDA_IFINDEX`: link towards the remote VXLAN end.
    pub via_link: Option<u32>,
    /// `NDA_LINK_NETNSID`.
    pub link_netns_id: Option<i32>,
    /// `NDA_NH_ID`.
    pub nexthop_id: Option<u32>,
    /// `ndm_state`: [`super::neighbour::state`].
    pub state: u16,
    /// `ndm_flags` and, from bit 8, `NDA_FLAGS_EXT`:
    /// [`super::neighbour::flag`].
    pub flags: u32,
    /// `NDA_PROTOCOL`.
    pub protocol: u8,
    /// Attributes not named above, as they came (ages apart).
    pub rest: RawAttributes,
}

/// What tells forwarding entries apart, in the table's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the fields are those of FdbEntry")]
pub struct FdbKey {
    pub link: u32,
    pub lladdr: LinkLayerAddress,
    pub vlan: Option<u16>,
    pub of_master: bool,
    pub destination: Option<IpAddr>,
    pub port: Option<u16>,
    pub vni: Option<u32>,
    pub source_vni: Option<u32>,
    pub nexthop_id: Option<u32>,
}

impl FdbKey {
    /// Before all entries of a link-layer address on a port.
    pub fn first_of(link: u32, lladdr: LinkLayerAddress) -> Self {
        Self {
            link,
            lladdr,
            vlan: None,
            of_master: false,
            destination: None,
            port: None,
            vni: None,
            source_vni: None,
            nexthop_id: None,
        }
    }
}

impl FdbEntry {
    /// Its key.
    pub fn key(&self) -> FdbKey {
        FdbKey {
            link: self.link,
            lladdr: self.lladdr,
            vlan: self.vlan,
            of_master: self.master.is_some(),
            destination: self.destination,
            port: self.port,
            vni: self.vni,
            source_vni: self.source_vni,
            nexthop_id: self.nexthop_id,
        }
    }
}
