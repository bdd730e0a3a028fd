//! From a next hop's number to the adjacency a packet takes, and whether it
//! may take it.

use memory::quiescent::Section;

use super::vector::{Destination, PacketVector};
use super::{
    MAX_BATCH, Message, Node, Reason, State, fast_path, flow_hash, frame_at, ip, packet_at,
};
use crate::Buffer;
use crate::neighbour::{Adjacency, Kind, Place, Spot};

impl State {
    /// Next hops of a vector: members of groups by the flow, neighbours on
    /// the link by the destination.
    #[inline]
    pub(super) fn resolve<A: Destination>(
        &mut self,
        section: &Section<'_>,
        vector: &mut PacketVector<A>,
        frames: &[Buffer],
    ) {
        let len = vector.len();
        self.counters.visit(Node::Neighbour, len);
        for hop in &vector.hop[..len] {
            self.table.prefetch(*hop);
        }
        let mut has_on_link = false;
        for k in 0..len {
            let mut way = self.table.next_hop(section, vector.hop[k]);
            if way.kind() == Kind::Group {
                let packet = packet_at(frames, vector.at(k));
                (vector.hop[k], way) = self.member(section, way, packet);
            }
            has_on_link |= way.kind() == Kind::OnLink;
            vector.way[k] = way;
        }
        if has_on_link {
            self.resolve_on_link(section, vector);
        }
    }

    /// Next hops of a vector, and out with all packets that only need one hop
    /// less and a header without a tag: nearly all, and in one pass. The
    /// others stay in it, with their ways.
    #[inline]
    pub(super) fn resolve_and_output<A: Destination>(
        &mut self,
        section: &Section<'_>,
        vector: &mut PacketVector<A>,
        frames: &mut [Buffer],
    ) {
        let len = vector.len();
        self.counters.visit(Node::Neighbour, len);
        for hop in &vector.hop[..len] {
            self.table.prefetch(*hop);
        }
        let mut has_on_link = false;
        let mut kept = 0;
        for k in 0..len {
            let (at, mut hop) = (vector.at(k), vector.hop[k]);
            let Some(frame) = frame_at(frames, at) else {
                continue;
            };
            let mut way = self.table.next_hop(section, hop);
            if way.kind() == Kind::Group {
                (hop, way) = self.member(section, way, frame.packet());
            }
            if way.is_plain() && fast_path::output::<A>(frame, way) {
                self.egress[at] = way.port();
                continue;
            }
            has_on_link |= way.kind() == Kind::OnLink;
            vector.keep(k, kept, hop, way);
            kept += 1;
        }
        vector.truncate(kept);
        self.counters.visit(Node::Output, len - kept);
        if has_on_link {
            self.resolve_on_link(section, vector);
            self.output_plain(vector, frames);
        }
    }

    /// Those of a vector whose destination is a neighbour itself.
    #[inline(never)]
    fn resolve_on_link<A: Destination>(&self, section: &Section<'_>, vector: &mut PacketVector<A>) {
        let mut on_link = [0_u8; MAX_BATCH];
        let mut places = [Place::default(); MAX_BATCH];
        let mut spots = [Spot::default(); MAX_BATCH];
        let mut found = 0;
        for k in 0..vector.len() {
            let way = vector.way[k];
            if way.kind() == Kind::OnLink {
                places[found] = self.table.place(vector.to(k).on(way.port()));
                on_link[found] = k as u8;
                found += 1;
            }
        }
        for (spot, place) in spots.iter_mut().zip(&places[..found]) {
            *spot = self.table.spot(section, *place);
        }
        for at in 0..found {
            let k = usize::from(on_link[at]);
            let key = vector.to(k).on(vector.way[k].port());
            let neighbour = self.table.neighbour_at(section, key, places[at], spots[at]);
            vector.way[k] = neighbour.unwrap_or_else(|| missing(vector.way[k]));
            // Its own destination is its gateway.
            vector.hop[k] = 0;
        }
    }

    /// The member of a group that a packet takes.
    fn member(&self, section: &Section<'_>, group: Adjacency, packet: &[u8]) -> (u16, Adjacency) {
        let hash = flow_hash(packet, self.settings.hash_seed);
        let hop = self.table.member(section, group.group(), hash);
        let way = self.table.next_hop(section, hop);
        // A group of groups is none.
        match way.kind() {
            Kind::Group => (hop, Adjacency::default()),
            _ => (hop, way),
        }
    }

    /// The adjacency of one packet of its own.
    pub(super) fn resolve_one<A: Destination>(
        &self,
        section: &Section<'_>,
        mut hop: u16,
        packet: &[u8],
    ) -> (u16, Adjacency) {
        let mut way = self.table.next_hop(section, hop);
        if way.kind() == Kind::Group {
            (hop, way) = self.member(section, way, packet);
        }
        if way.kind() == Kind::OnLink {
            let key = A::of_packet(packet).on(way.port());
            let neighbour = self.table.neighbour(section, key, self.table.place(key));
            return (0, neighbour.unwrap_or_else(|| missing(way)));
        }
        (hop, way)
    }

    /// Which packets of a vector go out; the others are dropped with an error
    /// or are the host's.
    #[inline]
    pub(super) fn decide<A: Destination>(
        &mut self,
        vector: &mut PacketVector<A>,
        frames: &mut [Buffer],
        is_host: bool,
    ) {
        for k in 0..vector.len() {
            let (at, way) = (vector.at(k), vector.way[k]);
            let Some(frame) = frame_at(frames, at) else {
                continue;
            };
            let goes = match way.kind() {
                Kind::Rewrite | Kind::Direct | Kind::Unresolved => {
                    match self.obstacle::<A>(frame.packet(), way, vector.port(k), is_host) {
                        None => true,
                        Some((reason, message)) => {
                            self.refuse::<A>(at, frame.packet(), vector.port(k), reason, message);
                            false
                        }
                    }
                }
                kind => {
                    self.end::<A>(kind, at, frame.packet(), vector.port(k));
                    false
                }
            };
            vector.goes[k] = goes;
        }
    }

    /// Why a packet may not take its way, if it may not.
    #[inline(always)]
    pub(super) fn obstacle<A: Destination>(
        &self,
        packet: &[u8],
        way: Adjacency,
        port_in: u16,
        is_host: bool,
    ) -> Option<(Reason, Message)> {
        if ip::hops(packet, A::IS_V6) <= 1 && !is_host {
            return Some((Reason::HopsExceeded, Message::HopsExceeded));
        }
        if packet.len() > usize::from(way.mtu()) && (A::IS_V6 || must_not_be_cut(packet)) {
            return Some((Reason::TooBig, Message::TooBig(way.mtu())));
        }
        if A::IS_V6 && port_in != way.port() && !is_host && ip::is_from_link_local(packet) {
            return Some((Reason::Ipv6Scope, Message::BeyondScope));
        }
        None
    }

    /// The end of a packet that has no way out.
    #[cold]
    fn end<A: Destination>(&mut self, kind: Kind, at: usize, packet: &[u8], port_in: u16) {
        let (reason, message) = match kind {
            Kind::Host => return self.leave_to_host(at),
            Kind::Blackhole => return self.drop(at, Reason::Blackhole),
            Kind::Unreachable => (Reason::Unreachable, Message::HostUnreachable),
            Kind::Prohibit => (Reason::Prohibited, Message::Prohibited),
            _ => (Reason::NoRoute, Message::NoRoute),
        };
        self.refuse::<A>(at, packet, port_in, reason, message);
    }

    /// Drops a packet and tells its sender.
    #[cold]
    fn refuse<A: Destination>(
        &mut self,
        at: usize,
        packet: &[u8],
        port_in: u16,
        reason: Reason,
        message: Message,
    ) {
        self.drop(at, reason);
        self.send_error::<A>(packet, port_in, message);
    }
}

/// A neighbour on a link that is not known.
fn missing(on_link: Adjacency) -> Adjacency {
    Adjacency::of_port(Kind::Unresolved, on_link.port(), on_link.mtu())
}

/// "Don't fragment" of an IPv4 packet.
fn must_not_be_cut(packet: &[u8]) -> bool {
    packet.get(6).is_some_and(|flags| flags & 0x40 != 0)
}
