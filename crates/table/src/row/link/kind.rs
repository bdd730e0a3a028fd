//! The settings of a link's kind (`IFLA_INFO_DATA`) and of a port of its
//! master's kind (`IFLA_INFO_SLAVE_DATA`), typed.
//!
//! Each kind has a struct in a file of its own. Its fields are the
//! attributes of the kernel's headers under their own names, `None` where
//! nothing was said; `rest` keeps what the struct does not know, so that
//! nothing is lost when a link is made again. Everything lies behind a
//! pointer: a link without settings pays for none.

use super::bond::{Bond, BondPort};
use super::bridge::{Bridge, BridgePort};
use super::geneve::Geneve;
use super::gre::Gre;
use super::hsr::Hsr;
use super::ip_tunnel::IpTunnel;
use super::ipvlan::Ipvlan;
use super::macvlan::Macvlan;
use super::tun::Tun;
use super::vlan::Vlan;
use super::vrf::Vrf;
use super::vti::Vti;
use super::vxlan::Vxlan;
use super::xfrm::Xfrm;
use crate::row::attributes::RawAttributes;

/// What is said of a link of some kind. The kind's name is in
/// [`super::Link::kind`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KindData {
    /// Nothing: a `dummy`, a `veth`.
    #[default]
    None,
    /// `bond`.
    Bond(Box<Bond>),
    /// `bridge`.
    Bridge(Box<Bridge>),
    /// `geneve`.
    Geneve(Box<Geneve>),
    /// `gre`, `gretap`, `erspan`, and their kin over IPv6.
    Gre(Box<Gre>),
    /// `hsr`.
    Hsr(Box<Hsr>),
    /// `ipip`, `sit`, `ip6tnl`.
    IpTunnel(Box<IpTunnel>),
    /// `ipvlan`, `ipvtap`.
    Ipvlan(Box<Ipvlan>),
    /// `macvlan`, `macvtap`.
    Macvlan(Box<Macvlan>),
    /// `tun`: a TUN or TAP device.
    Tun(Box<Tun>),
    /// `vlan`.
    Vlan(Box<Vlan>),
    /// `vrf`.
    Vrf(Box<Vrf>),
    /// `vti`, `vti6`.
    Vti(Box<Vti>),
    /// `vxlan`.
    Vxlan(Box<Vxlan>),
    /// `xfrm`.
    Xfrm(Box<Xfrm>),
    /// Attributes of a kind that has no struct here.
    Unknown(Box<RawAttributes>),
}

/// What is said of a link as a port of its master. The name of the master's
/// kind is in [`super::Link::slave_kind`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PortData {
    /// Nothing.
    #[default]
    None,
    /// Of a bond.
    Bond(Box<BondPort>),
    /// Of a bridge.
    Bridge(Box<BridgePort>),
    /// Of a VRF.
    Vrf(Box<Vrf>),
    /// Attributes of a kind that has no struct here.
    Unknown(Box<RawAttributes>),
}

// A row has one of each: a name's size.
const _: () = assert!(size_of::<KindData>() == 16 && size_of::<PortData>() == 16);
