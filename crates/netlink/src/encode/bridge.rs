//! Changes of a bridge's ports, of their VLANs and multicast groups
//! (`linux/if_bridge.h`).

use std::net::IpAddr;
use std::ops::RangeInclusive;

use table::PortData;
use table::row::multicast_group::{Group, MulticastGroup};

use super::Request;
use crate::attribute::NESTED;
use crate::build::Build;
use crate::kernel::{AF_BRIDGE, bridge, ifla, mdba};
use crate::link_data;
use crate::malformed::TooLong;
use crate::message::kind;

/// Who is to do it, and how a card switches frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtPort {
    /// The link by itself.
    pub to_self: bool,
    /// Its bridge; the kernel's choice where neither is said.
    pub to_master: bool,
    /// `BRIDGE_MODE_…`
    pub mode: Option<u16>,
}

/// VLANs of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vlans {
    /// Their numbers.
    pub numbers: RangeInclusive<u16>,
    /// Untagged frames that come in are of it.
    pub is_pvid: bool,
    /// Frames leave without a tag.
    pub untagged: bool,
    /// The tunnels that they are led into.
    pub tunnels: Option<RangeInclusive<u32>>,
}

/// Appends a change of what a port is set to: what is `None` stays.
pub fn bridge_port(
    out: &mut Vec<u8>,
    request: &Request,
    link: u32,
    settings: &PortData,
    at: AtPort,
) -> Result<(), TooLong> {
    let mut build = request.start(out, [kind::SETLINK, kind::DELLINK], &of_port(link));
    let info = build.open(ifla::PROTINFO | NESTED);
    link_data::put_port(&mut build, settings);
    build.close(&info);
    if at != AtPort::default() {
        let spec = build.open(ifla::AF_SPEC | NESTED);
        put_at(&mut build, at);
        build.close(&spec);
    }
    build.end()
}

/// Appends a change of a port's VLANs.
pub fn bridge_vlans(
    out: &mut Vec<u8>,
    request: &Request,
    link: u32,
    vlans: &Vlans,
    at: AtPort,
) -> Result<(), TooLong> {
    let mut build = request.start(out, [kind::SETLINK, kind::DELLINK], &of_port(link));
    let spec = build.open(ifla::AF_SPEC | NESTED);
    put_at(&mut build, at);
    let mut flags = 0;
    if vlans.is_pvid {
        flags |= bridge::PVID;
    }
    if vlans.untagged {
        flags |= bridge::UNTAGGED;
    }
    let (first, last) = (*vlans.numbers.start(), *vlans.numbers.end());
    let tunnels = vlans.tunnels.as_ref();
    let ends = tunnels.map(|tunnels| (*tunnels.start(), *tunnels.end()));
    if first == last {
        put_vlan(&mut build, flags, first, ends.map(|ends| ends.0));
    } else {
        let (begins, ends_with) = (bridge::RANGE_BEGIN, bridge::RANGE_END);
        put_vlan(&mut build, flags | begins, first, ends.map(|ends| ends.0));
        put_vlan(&mut build, flags | ends_with, last, ends.map(|ends| ends.1));
    }
    build.close(&spec);
    build.end()
}

fn put_vlan(build: &mut Build<'_>, flags: u16, number: u16, tunnel: Option<u32>) {
    let Some(tunnel) = tunnel else {
        let [f0, f1] = flags.to_ne_bytes();
        let [v0, v1] = number.to_ne_bytes();
        return build.put(bridge::VLAN_INFO, &[f0, f1, v0, v1]);
    };
    let open = build.open(bridge::VLAN_TUNNEL_INFO | NESTED);
    build.put_u32(bridge::VLAN_TUNNEL_ID, tunnel);
    build.put_u16(bridge::VLAN_TUNNEL_VID, number);
    build.put_u16(bridge::VLAN_TUNNEL_FLAGS, flags);
    build.close(&open);
}

/// Appends a group of a bridge's port, or its deletion.
pub fn multicast_group(
    out: &mut Vec<u8>,
    request: &Request,
    of_bridge: u32,
    row: &MulticastGroup,
) -> Result<(), TooLong> {
    let [i0, i1, i2, i3] = of_bridge.to_ne_bytes();
    let header = [AF_BRIDGE, 0, 0, 0, i0, i1, i2, i3];
    let mut build = request.start(out, [kind::NEWMDB, kind::DELMDB], &header);
    let entry = build.open(mdba::SET_ENTRY);
    build.append(&row.port.to_ne_bytes());
    build.append(&[u8::from(row.is_permanent) * mdba::PERMANENT, row.flags]);
    build.append(&row.vlan.to_ne_bytes());
    let (octets, protocol) = address_of(row.group);
    build.append(&octets);
    build.append(&protocol.to_be_bytes());
    build.append(&[0; 2]);
    build.close(&entry);
    if let Some(source) = row.source {
        let attributes = build.open(mdba::SET_ENTRY_ATTRS | NESTED);
        build.put_address(mdba::SET_SOURCE, source);
        build.close(&attributes);
    }
    build.end()
}

fn address_of(group: Group) -> ([u8; 16], u16) {
    let mut octets = [0; 16];
    let (address, protocol): (&[u8], u16) = match &group {
        Group::Ip(IpAddr::V4(address)) => (&address.octets(), mdba::ETH_P_IP),
        Group::Ip(IpAddr::V6(address)) => (&address.octets(), mdba::ETH_P_IPV6),
        Group::LinkLayer(address) => (address, 0),
    };
    for (place, octet) in octets.iter_mut().zip(address) {
        *place = *octet;
    }
    (octets, protocol)
}

fn put_at(build: &mut Build<'_>, at: AtPort) {
    let mut flags = 0;
    if at.to_master {
        flags |= bridge::FLAGS_MASTER;
    }
    if at.to_self {
        flags |= bridge::FLAGS_SELF;
    }
    if flags != 0 {
        build.put_u16(bridge::FLAGS, flags);
    }
    if let Some(mode) = at.mode {
        build.put_u16(bridge::MODE, mode);
    }
}

/// `struct ifinfomsg`
fn of_port(link: u32) -> [u8; 16] {
    let [i0, i1, i2, i3] = link.to_ne_bytes();
    [AF_BRIDGE, 0, 0, 0, i0, i1, i2, i3, 0, 0, 0, 0, 0, 0, 0, 0]
}
