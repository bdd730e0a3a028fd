//! An entry of a bridge's or VXLAN's forwarding database.

use std::net::IpAddr;

use super::attributes::RawAttributes;
use super::link_layer_address::LinkLayerAddress;

/// A forwarding entry (`RTM_NEWNEIGH` of `AF_BRIDGE`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// `NFEA_ACTIVITY_NOTIFY` of `NDA_FDB_EXT_ATTRS`: whether the bridge
    /// announces that the station is active, and whether it is.
    pub activity: Option<u8>,
    /// Attributes not named above, as they came (ages apart).
    pub rest: RawAttributes,
}

/// What tells forwarding entries apart in the kernel, in the table's order.
///
/// An entry of a bridge is one station: link-layer address and VLAN, at one
/// port at a time; the port is part of the key for the order only, and a
/// table keeps one entry of a station ([`FdbEntry::station`]). An entry of
/// a VXLAN device has one remote end, which can change, unless its address
/// is a group's or all zeros: those have a list of remote ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the fields are those of FdbEntry")]
pub struct FdbKey {
    pub link: u32,
    pub lladdr: LinkLayerAddress,
    pub vlan: Option<u16>,
    /// Whether the entry is the bridge's, not the device's own.
    pub of_master: bool,
    pub source_vni: Option<u32>,
    /// Which remote end, where there may be several.
    pub remote: Option<FdbRemote>,
}

/// What tells the remote ends of one VXLAN entry apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the fields are those of FdbEntry")]
pub struct FdbRemote {
    pub destination: IpAddr,
    pub port: Option<u16>,
    pub vni: Option<u32>,
    pub via_link: Option<u32>,
}

/// A station of a bridge: it is at one port at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station {
    /// The bridge.
    pub master: u32,
    /// The station's address.
    pub lladdr: LinkLayerAddress,
    /// The VLAN that it is in.
    pub vlan: Option<u16>,
}

impl FdbKey {
    /// Before all entries of a link-layer address on a port.
    pub fn first_of(link: u32, lladdr: LinkLayerAddress) -> Self {
        Self {
            link,
            lladdr,
            vlan: None,
            of_master: false,
            source_vni: None,
            remote: None,
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
            source_vni: self.source_vni,
            remote: self.remote(),
        }
    }

    /// The station that it is of, for an entry of a bridge.
    pub fn station(&self) -> Option<Station> {
        Some(Station {
            master: self.master?,
            lladdr: self.lladdr,
            vlan: self.vlan,
        })
    }

    fn remote(&self) -> Option<FdbRemote> {
        let octets = self.lladdr.octets();
        let is_group = octets.first().is_some_and(|first| first & 1 != 0);
        let is_zero = octets.iter().all(|octet| *octet == 0);
        if self.master.is_some() || !(is_group || is_zero) {
            return None;
        }
        Some(FdbRemote {
            destination: self.destination?,
            port: self.port,
            vni: self.vni,
            via_link: self.via_link,
        })
    }
}
