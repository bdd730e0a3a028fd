//! Which rules a packet meets (`fib_rule_match`), and which routes a rule
//! does not want. Called by the lookup.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::{Found, LEGACY_TOS, Lookup};
use crate::AF_INET;
use crate::row::rule::{RareMatch, Rule, flag};

impl Lookup<'_> {
    pub(super) fn table_of(&self, rule: &Rule) -> u32 {
        match self.vrf {
            Some(vrf) if rule.l3mdev => vrf.vrf_table.unwrap_or(0),
            _ => rule.table,
        }
    }

    pub(super) fn matches(&self, rule: &Rule) -> bool {
        let fits = self.fits_links(rule) && self.fits_header(rule) && self.fits_rare(rule);
        fits != (rule.flags & flag::INVERT != 0)
    }

    fn fits_links(&self, rule: &Rule) -> bool {
        let named = |name: &Option<Box<str>>, index: Option<u32>| match name {
            None => true,
            Some(name) => {
                let named = self.tables.links.by_name(name).map(|link| link.index);
                named.is_some() && named == index
            }
        };
        let iif = self.packet.iif.or_else(|| Some(self.loopback()));
        named(&rule.iif, iif)
            && named(&rule.oif, self.packet.oif)
            && (!rule.l3mdev || self.vrf.is_some())
    }

    fn fits_header(&self, rule: &Rule) -> bool {
        let packet = &self.packet;
        let within = |net: Option<IpNet>, address: Option<IpAddr>| match (net, address) {
            (None, _) => true,
            (Some(net), Some(address)) => net.contains(&address),
            (Some(net), None) => net.prefix_len() == 0,
        };
        // IPv4 compares an unknown source as 0.0.0.0.
        let any = Some(Ipv4Addr::UNSPECIFIED.into()).filter(|_| self.family == AF_INET);
        let in_range =
            |range: Option<(u32, u32)>, value| range.is_none_or(|(a, b)| (a..=b).contains(&value));
        rule.fwmark
            .is_none_or(|(mark, mask)| (mark ^ packet.mark) & mask == 0)
            && within(rule.source, packet.source.or(any))
            && within(rule.destination, Some(packet.destination))
            && self.fits_tos(rule)
            && in_range(rule.uids, packet.uid)
            && rule
                .ip_protocol
                .is_none_or(|protocol| protocol == 0 || protocol == packet.ip_protocol)
            // No packet that is asked about came through a tunnel.
            && rule.tunnel_id.is_none_or(|id| id == 0)
    }

    /// A type of service as of old; IPv6 compares all of it.
    fn fits_tos(&self, rule: &Rule) -> bool {
        let mask = if self.family == AF_INET {
            LEGACY_TOS
        } else {
            0xfc
        };
        rule.tos == 0 || rule.tos == self.packet.tos & mask
    }

    /// What younger kernels compare, and ports, which they may mask.
    fn fits_rare(&self, rule: &Rule) -> bool {
        let none = RareMatch::default();
        let rare = rule.rare.as_deref().unwrap_or(&none);
        let dscp = rare.dscp.is_none_or(|dscp| {
            let mask = rare.dscp_mask.unwrap_or(0x3f);
            (dscp ^ (self.packet.tos >> 2)) & mask == 0
        });
        let flow = rare.flow_label.unwrap_or(0) & rare.flow_label_mask.unwrap_or(u32::MAX) == 0;
        let port = |range: Option<(u16, u16)>, mask: Option<u16>, port: u16| match (range, mask) {
            (None, _) => true,
            (Some((value, _)), Some(mask)) if mask != 0 => (value ^ port) & mask == 0,
            (Some((first, last)), _) => (first..=last).contains(&port),
        };
        let packet = &self.packet;
        dscp && flow
            && port(rule.source_ports, rare.source_port_mask, packet.source_port)
            && port(
                rule.destination_ports,
                rare.destination_port_mask,
                packet.destination_port,
            )
    }

    /// Whether a rule does not want the route that its table found.
    pub(super) fn suppressed(&self, rule: &Rule, found: &Found<'_>) -> bool {
        let Found { route, hops, .. } = found;
        let set = |value: Option<u32>| value.filter(|value| *value != u32::MAX);
        let too_short = set(rule.suppress_prefix_len)
            .is_some_and(|len| u32::from(route.prefix.prefix_len()) <= len);
        // IPv4 looks at the route's first hop, alive or not.
        let first = route.body.next_hops.as_slice().first();
        let hop = first.filter(|_| self.family == AF_INET).or(hops.first());
        let by_group = set(rule.suppress_group).is_some_and(|group| {
            let link = hop.and_then(|hop| self.tables.links.get(hop.link));
            link.is_some_and(|link| link.group == group)
        });
        too_short || by_group
    }
}
