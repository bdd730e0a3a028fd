//! What rows take of the heap beside themselves, about: what events are
//! bounded by. Counted whole, though some is shared. Called by `event`.

use super::encap::{Encap, IpTunnel, Tunnel, TunnelOption};
use super::link::{KindData, Link, PortData};
use super::nexthop::Nexthop;
use super::route::{NextHop, NextHops, OtherRoute, RouteBody};
use super::rule::{RareMatch, Rule};

/// An allocation's own, and the counts of an `Arc`.
pub(crate) const OWN: usize = 32;
/// The settings of a link's kind, but for what has no field: the largest are
/// a bond's, with its lists.
const SETTINGS: usize = 1 << 10;
/// A routing header's octets at most (RFC 8200 §4.4).
const ROUTING_HEADER: usize = 2_048;

impl Link {
    pub(crate) fn heap_bytes(&self) -> usize {
        let names = self.alt_names.iter().map(|name| OWN + name.len());
        let texts = [&self.qdisc, &self.alias, &self.kind, &self.slave_kind];
        let texts = texts.into_iter().flatten().map(|text| OWN + text.len());
        let settings = match &self.kind_data {
            KindData::None => 0,
            KindData::Unknown(rest) => OWN + rest.bytes().len(),
            KindData::Macvlan(data) => {
                SETTINGS + size_of_val(&*data.macaddr_data) + data.rest.bytes().len()
            }
            KindData::Vlan(data) => {
                let maps = data.egress_qos.len() + data.ingress_qos.len();
                SETTINGS + 8 * maps + data.rest.bytes().len()
            }
            _ => SETTINGS,
        };
        let port = match &self.slave_data {
            PortData::None => 0,
            PortData::Unknown(rest) => OWN + rest.bytes().len(),
            _ => SETTINGS,
        };
        let parent = self.parent.as_ref().map_or(0, |parent| {
            let texts = [&parent.device, &parent.bus].into_iter().flatten();
            OWN + size_of_val(&**parent) + texts.map(|text| OWN + text.len()).sum::<usize>()
        });
        self.name.len()
            + size_of_val(&*self.alt_names)
            + names.sum::<usize>()
            + texts.sum::<usize>()
            + settings
            + port
            + parent
    }
}

impl RouteBody {
    pub(crate) fn heap_bytes(&self) -> usize {
        let hops = match &self.next_hops {
            NextHops::None => 0,
            NextHops::One(hop) => hop.heap_bytes(),
            NextHops::Many(hops) => {
                let each = hops.iter().map(NextHop::heap_bytes);
                OWN + size_of_val(&**hops) + each.sum::<usize>()
            }
        };
        let metrics = self.metrics.as_ref().map_or(0, |metrics| {
            let congestion = metrics.congestion.as_ref().map_or(0, |name| name.len());
            OWN + size_of_val(&**metrics) + congestion + metrics.rest.bytes().len()
        });
        hops + metrics + self.rest.bytes().len() + self.path.heap_bytes()
    }
}

impl NextHop {
    fn heap_bytes(&self) -> usize {
        self.encap.as_ref().map_or(0, |encap| encap.heap_bytes())
    }
}

impl Encap {
    fn heap_bytes(&self) -> usize {
        let tunnel = match &self.tunnel {
            Tunnel::Mpls(mpls) => size_of_val(&*mpls.labels),
            Tunnel::Ip(tunnel) => tunnel.heap_bytes(),
            Tunnel::Ip6(tunnel) => tunnel.heap_bytes(),
            Tunnel::Ila(_) | Tunnel::Xfrm(_) | Tunnel::Unknown(_) => 0,
            _ => ROUTING_HEADER,
        };
        OWN + size_of::<Self>() + tunnel + self.rest.bytes().len()
    }
}

impl<A> IpTunnel<A> {
    fn heap_bytes(&self) -> usize {
        let data = self.options.iter().map(|option| match option {
            TunnelOption::Geneve { data, .. } => OWN + data.len(),
            _ => 0,
        });
        size_of_val(&*self.options) + data.sum::<usize>()
    }
}

impl Nexthop {
    pub(crate) fn heap_bytes(&self) -> usize {
        let encap = self.encap.as_ref().map_or(0, |encap| encap.heap_bytes());
        size_of_val(&*self.group) + encap + self.rest.bytes().len()
    }
}

impl Rule {
    pub(crate) fn heap_bytes(&self) -> usize {
        let names = [&self.iif, &self.oif].into_iter().flatten();
        let rare = self.rare.as_ref().map_or(0, |rare| {
            OWN + size_of::<RareMatch>() + rare.rest.bytes().len()
        });
        names.map(|name| OWN + name.len()).sum::<usize>() + rare
    }
}

impl OtherRoute {
    pub(crate) fn heap_bytes(&self) -> usize {
        OWN + self.key.place.len() + self.attributes.bytes().len()
    }
}
