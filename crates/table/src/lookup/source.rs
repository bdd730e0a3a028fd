//! The source address of a packet that has none yet. Called by the lookup.

use std::net::IpAddr;

use super::{Lookup, Open};
use crate::row::route::{NextHop, RouteRef, kind, scope};
use crate::source_address;

/// The source that a packet gets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Source {
    /// `None` when it has one, or is not the host's own, or there is none.
    pub address: Option<IpAddr>,
    /// Whether only the kernel can tell.
    pub open: Option<Open>,
}

impl Source {
    fn of(address: Option<IpAddr>) -> Self {
        Self {
            address,
            open: None,
        }
    }
}

impl Lookup<'_> {
    /// The source of a packet that takes a route.
    pub(super) fn source_by(&self, route: &RouteRef<'_>, hop: Option<&NextHop>) -> Source {
        let body = route.body;
        let (link, gateway) = hop.map_or((0, None), |hop| (hop.link, hop.gateway));
        match self.packet.destination {
            // Told for what comes in as well, where the route sets it.
            IpAddr::V6(_) if self.packet.iif.is_some() => Source::of(body.preferred_source),
            IpAddr::V4(to) if body.kind == kind::LOCAL && self.wants_source() => {
                Source::of(body.preferred_source.or(Some(to.into())))
            }
            IpAddr::V4(_) if self.leaves_vrf(link) => self.source_of_vrf(),
            IpAddr::V4(_) if body.nexthop_id.is_some() && body.preferred_source.is_none() => {
                self.source_by_object(link, gateway, body.scope)
            }
            _ => self.source(body.preferred_source, link, gateway, body.scope),
        }
    }

    /// Whether a packet of a VRF goes by a link that is not in it.
    fn leaves_vrf(&self, link: u32) -> bool {
        let of_link = || source_address::vrf_of(self.tables, link);
        self.vrf.is_some_and(|vrf| of_link() != Some(vrf.index))
    }

    /// It has a source of the VRF's then, whatever the route prefers
    /// (`fib_select_path`, from Linux 6.11 on and in what was mended before).
    /// IPv6 packets have as well, but the kernel's answer tells the source that
    /// the route's link would have (`rt6_fill_node`).
    fn source_of_vrf(&self) -> Source {
        let vrf = self.loopback();
        self.source(None, vrf, None, scope::LINK)
    }

    /// By an object the kernel keeps the source that it chose when the object
    /// was made, by a scope of the object's own, or for whoever asked first
    /// since any address came or went (`nh_saddr_genid`).
    fn source_by_object(&self, link: u32, gateway: Option<IpAddr>, of_route: u8) -> Source {
        let by = |scope| self.source(None, link, gateway, scope);
        let source = by(of_route);
        // One below that of the way to a gateway, or of a link
        // (`nh_create_ipv4`).
        let of_object = match gateway {
            Some(_) => scope::LINK - 1,
            None => scope::HOST - 1,
        };
        let may_be = [scope::UNIVERSE, of_object];
        let is_open = may_be
            .iter()
            .any(|scope| by(*scope).address != source.address);
        Source {
            open: is_open.then_some(Open::Source),
            ..source
        }
    }

    fn wants_source(&self) -> bool {
        let v6 = self.packet.destination.is_ipv6();
        self.packet.iif.is_none() && (self.packet.source.is_none() || v6)
    }

    pub(super) fn source(
        &self,
        preferred: Option<IpAddr>,
        link: u32,
        gateway: Option<IpAddr>,
        scope: u8,
    ) -> Source {
        if !self.wants_source() {
            return Source::default();
        }
        if let Some(address) = self.source_of_group().or(preferred) {
            return Source::of(Some(address));
        }
        match self.packet.destination {
            IpAddr::V4(_) => {
                let gateway = gateway.filter(IpAddr::is_ipv4);
                Source::of(source_address::v4(self.tables, link, gateway, scope))
            }
            IpAddr::V6(to) => {
                let chosen = source_address::v6(self.tables, link, to);
                Source {
                    address: chosen.map(|chosen| chosen.address),
                    open: chosen
                        .is_some_and(|chosen| chosen.by_home_address)
                        .then_some(Open::Source),
                }
            }
        }
    }

    /// IPv4 multicast by a link that is named is of that link's first address
    /// of universe scope, whatever the route says.
    fn source_of_group(&self) -> Option<IpAddr> {
        let oif = self.oif?;
        let IpAddr::V4(to) = self.packet.destination else {
            return None;
        };
        if !to.is_multicast() || to.octets()[..3] == [224, 0, 0] {
            return None;
        }
        source_address::v4(self.tables, oif.index, None, scope::UNIVERSE)
    }
}
