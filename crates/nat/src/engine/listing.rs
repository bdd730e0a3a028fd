//! Shared mappings, looked up and listed.

use std::net::IpAddr;

use super::{address, ipv4_word};
use crate::clock::millis;
use crate::mapping::{Kind, Mapping};
use crate::{Cursor, MappingView, Nat};

impl Nat {
    /// The shared mapping of an inside endpoint (port in host order) towards
    /// a remote address: where mapping is endpoint-independent the remote is
    /// any, where it is address-dependent this very one. `None`: there is
    /// none, or each flow is its own mapping ([`Nat::lookup`]), or one of the
    /// addresses is of IPv6. O(1).
    pub fn mapping(
        &self,
        protocol: u8,
        inside: (IpAddr, u16),
        remote: IpAddr,
    ) -> Option<MappingView> {
        let (host, port) = (ipv4_word(inside.0)?, inside.1.to_be());
        let remote = ipv4_word(remote)?;
        let of = |remote| self.mappings.by_inside(host, port, remote, protocol);
        let name = of(0).or_else(|| of(remote))?;
        let mapping = self.mappings.get(name)?;
        self.is_living(mapping).then(|| self.mapping_view(mapping))
    }

    /// Hands some shared mappings to `sink`, as [`Nat::flows`] does flows:
    /// looks at `budget` places from `from` on and returns where to go on,
    /// `None` at the end. O(`budget`).
    pub fn mappings(
        &self,
        from: Cursor,
        budget: usize,
        sink: &mut dyn FnMut(&MappingView),
    ) -> Option<Cursor> {
        let Cursor(from) = from;
        let places = self.mappings.places();
        let to = (from as usize).saturating_add(budget.max(1)).min(places);
        for name in from..to as u32 {
            let mapping = self.mappings.get(name);
            if let Some(mapping) = mapping.filter(|mapping| self.is_living(mapping)) {
                sink(&self.mapping_view(mapping));
            }
        }
        (to < places).then_some(Cursor(to as u32))
    }

    /// Whether an entry is a mapping that serves new flows.
    fn is_living(&self, mapping: &Mapping) -> bool {
        let is_mapping = mapping.flows > 0 && mapping.kind == Kind::Mapping;
        let is_known = mapping.epoch == self.epoch && !mapping.is_detached();
        is_mapping && is_known && self.clock.now() <= mapping.dies
    }

    fn mapping_view(&self, mapping: &Mapping) -> MappingView {
        let left = mapping.dies.saturating_sub(self.clock.now());
        MappingView {
            protocol: mapping.protocol,
            inside: address(mapping.inside).into(),
            inside_port: u16::from_be(mapping.inside_port),
            alias: address(mapping.alias).into(),
            alias_port: u16::from_be(mapping.alias_port),
            remote: (mapping.remote != 0).then(|| address(mapping.remote).into()),
            flows: mapping.flows,
            expires_millis: millis(left),
        }
    }
}
