//! Sources that are not routed by where they came from (RFC 3704 §2.2, §2.4),
//! where the settings ask for it. Such a packet is counted and discarded
//! silently (RFC 1812 §5.3.8).

use memory::quiescent::Section;

use super::vector::{Destination, PacketVector};
use super::{MAX_BATCH, Reason, State, VrfFibs, packet_at};
use crate::Buffer;
use crate::neighbour::{Adjacency, BUCKETS, Kind};

/// What a packet's source is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceCheck {
    /// Nothing.
    #[default]
    Off,
    /// There is a route to it that leads out, by whatever port.
    Loose,
    /// A best route to it leads out by the port that it came in by.
    /// Outside of the translation both ask for a route that leads outside.
    Strict,
}

/// An address whose packets say where they come from.
pub trait Source: Destination {
    /// Where a packet comes from.
    fn source_of(packet: &[u8]) -> Self;
    /// Whether it is its link's alone, and routed nowhere.
    fn is_of_link(self) -> bool;
}

impl Source for u32 {
    fn source_of(packet: &[u8]) -> Self {
        let bytes = packet.get(12..16).and_then(|from| from.try_into().ok());
        Self::from_be_bytes(bytes.unwrap_or_default())
    }

    fn is_of_link(self) -> bool {
        false
    }
}

impl Source for u128 {
    fn source_of(packet: &[u8]) -> Self {
        let bytes = packet.get(8..24).and_then(|from| from.try_into().ok());
        Self::from_be_bytes(bytes.unwrap_or_default())
    }

    fn is_of_link(self) -> bool {
        self >> 118 == 0x3fa
    }
}

impl State {
    /// Drops those of a vector whose source is not routed by where they came
    /// from; `find` is the lookup of the vector's family. What the host sends
    /// is left alone.
    #[inline]
    pub(super) fn check_sources<A: Source>(
        &mut self,
        section: &Section<'_>,
        vector: &mut PacketVector<A>,
        frames: &[Buffer],
        find: impl Fn(&VrfFibs, &[A], &mut [u16]),
    ) {
        if self.settings.source_check != SourceCheck::Off {
            self.drop_unrouted(section, vector, frames, find);
        }
    }

    #[inline(never)]
    fn drop_unrouted<A: Source>(
        &mut self,
        section: &Section<'_>,
        vector: &mut PacketVector<A>,
        frames: &[Buffer],
        find: impl Fn(&VrfFibs, &[A], &mut [u16]),
    ) {
        let mut kept = [true; MAX_BATCH];
        for k in 0..vector.len() {
            let (at, port) = (vector.at(k), vector.port(k));
            if self.ports.get(port).is_none_or(|port| port.is_host) {
                continue;
            }
            let source = A::source_of(packet_at(frames, at));
            let mut hop = [0];
            if let Some(view) = self.views.get(self.view_of(port)) {
                find(view, &[source], &mut hop);
            }
            let [hop] = hop;
            if !source.is_of_link() && !self.leads_back(section, hop, port) {
                kept[at] = false;
                self.drop(at, Reason::SourceNotRouted);
            }
        }
        vector.retain(|at| kept[at].then(|| A::of_packet(packet_at(frames, at))));
    }

    /// Whether a next hop leads out, and by this port where that counts.
    fn leads_back(&self, section: &Section<'_>, hop: u16, port: u16) -> bool {
        let way = self.table.next_hop(section, hop);
        if way.kind() != Kind::Group {
            return self.is_back(way, port);
        }
        // Any of its members; a flow's own is not that of the way back.
        (0..BUCKETS as u32).any(|bucket| {
            let hash = bucket * (u32::MAX / BUCKETS as u32 + 1);
            let member = self.table.member(section, way.group(), hash);
            self.is_back(self.table.next_hop(section, member), port)
        })
    }

    fn is_back(&self, way: Adjacency, port: u16) -> bool {
        let leads_out = matches!(
            way.kind(),
            Kind::Rewrite | Kind::Direct | Kind::Unresolved | Kind::OnLink
        );
        let is_strict = self.settings.source_check == SourceCheck::Strict;
        // Of several ways to the outside the way back may be another one; but
        // nobody there is of the inside.
        leads_out
            && match self.ports.is_outside(port) {
                true => self.ports.is_outside(way.port()),
                false => !is_strict || way.port() == port,
            }
    }
}
