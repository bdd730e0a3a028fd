//! The last steps: one hop less, the link's header; or a wait, an error,
//! fragments.

use std::net::{Ipv4Addr, Ipv6Addr};

use memory::quiescent::Section;
use nat::Verdict;
use packet::ethernet;

use super::error::{is_due_v4, is_due_v6, write_v4, write_v6};
use super::fragment::fragments;
use super::originated::Stage;
use super::vector::{Destination, PacketVector};
use super::waiting::{Held, Request};
use super::{GONE, HOST, Message, Node, Reason, State, fast_path, frame_at, ip};
use crate::Buffer;
use crate::neighbour::{Adjacency, Key, Kind};

/// Room for the longest error.
const ERROR_BYTES: usize = 1_280;

impl State {
    /// Sends the packets of a vector that go.
    #[inline]
    pub(super) fn output_vector<A: Destination>(
        &mut self,
        section: &Section<'_>,
        vector: &PacketVector<A>,
        frames: &mut [Buffer],
        is_host: bool,
    ) {
        let mut sent = 0;
        for k in 0..vector.len() {
            if !vector.goes[k] {
                continue;
            }
            let at = vector.at(k);
            let Some(frame) = frame_at(frames, at) else {
                continue;
            };
            sent += 1;
            let way = vector.way[k];
            if !is_host && way.is_plain() && fast_path::output::<A>(frame, way) {
                self.egress[at] = way.port();
                continue;
            }
            if !is_host {
                ip::take_hop(frame.packet_mut(), A::IS_V6);
            }
            self.egress[at] = self.output::<A>(section, frame, way, vector.hop[k], vector.port(k));
        }
        self.counters.visit(Node::Output, sent);
    }

    /// Sends the packets of a vector that only need one hop less and a header
    /// without a tag. The others stay in it.
    #[inline]
    pub(super) fn output_plain<A: Destination>(
        &mut self,
        vector: &mut PacketVector<A>,
        frames: &mut [Buffer],
    ) {
        let len = vector.len();
        let mut kept = 0;
        for k in 0..len {
            let (at, way) = (vector.at(k), vector.way[k]);
            if let Some(frame) = frame_at(frames, at)
                && way.is_plain()
                && fast_path::output::<A>(frame, way)
            {
                self.egress[at] = way.port();
            } else {
                vector.move_to(k, kept);
                kept += 1;
            }
        }
        vector.truncate(kept);
        self.counters.visit(Node::Output, len - kept);
    }

    /// Gives a packet its header; says by which port it leaves.
    #[inline(always)]
    fn output<A: Destination>(
        &mut self,
        section: &Section<'_>,
        frame: &mut Buffer,
        way: Adjacency,
        hop: u16,
        port_in: u16,
    ) -> u16 {
        if way.kind() == Kind::Unresolved {
            return self.hold::<A>(section, frame.packet(), way, hop, port_in);
        }
        if way.is_stale() {
            self.ask_of::<A>(section, frame.packet(), way, hop);
        }
        if frame.packet_len() > usize::from(way.mtu()) {
            return self.fragment(frame.packet(), way);
        }
        if put_header(frame, way, A::IS_V6) {
            return way.port();
        }
        self.counters.count(Reason::NoHeadroom);
        GONE
    }

    /// Which neighbour a packet's way goes through.
    fn key_of<A: Destination>(
        &self,
        section: &Section<'_>,
        packet: &[u8],
        way: Adjacency,
        hop: u16,
    ) -> Key {
        match hop {
            0 => A::of_packet(packet).on(way.port()),
            _ => self.table.gateway(section, hop),
        }
    }

    /// Leaves a request about the neighbour of a packet's way.
    #[cold]
    fn ask_of<A: Destination>(
        &mut self,
        section: &Section<'_>,
        packet: &[u8],
        way: Adjacency,
        hop: u16,
    ) {
        let key = self.key_of::<A>(section, packet, way, hop);
        self.ask(key);
    }

    fn ask(&mut self, key: Key) {
        if let Some(port) = self.ports.get(key.port) {
            let link = port.link;
            self.requests.ask(Request { link, key }, self.now_millis);
        }
    }

    /// Keeps a packet until its neighbour is resolved.
    #[cold]
    fn hold<A: Destination>(
        &mut self,
        section: &Section<'_>,
        packet: &[u8],
        way: Adjacency,
        hop: u16,
        port_in: u16,
    ) -> u16 {
        let key = self.key_of::<A>(section, packet, way, hop);
        self.ask(key);
        let is_held = self.waiting.hold(key, packet, port_in, self.now_millis);
        self.counters.count(match is_held {
            true => Reason::Held,
            false => Reason::QueueFull,
        });
        GONE
    }

    /// Cuts an IPv4 packet into fragments that fit.
    #[cold]
    fn fragment(&mut self, packet: &[u8], way: Adjacency) -> u16 {
        let mtu = usize::from(way.mtu());
        let mut refused = 0;
        let (originated, cache) = (&mut self.originated, &mut self.cache);
        let is_cut = fragments(packet, mtu, |head, payload| {
            let len = head.len() + payload.len();
            let is_made = originated.make(cache, len, Stage::Ready(way.port()), |room| {
                room[..head.len()].copy_from_slice(head);
                room[head.len()..].copy_from_slice(payload);
                len
            });
            if !is_made {
                refused += 1;
                return;
            }
            let at = originated.len() - 1;
            if let Some(mut made) = originated.take(at) {
                let is_put = put_header(&mut made.buffer, way, false);
                debug_assert!(is_put, "a new packet has headroom");
                originated.put_back(at, made);
            }
        });
        self.counters.count(match (is_cut, refused) {
            (false, _) => Reason::TooBig,
            (true, 0) => Reason::Fragmented,
            (true, _) => Reason::NoRoom,
        });
        GONE
    }

    /// Tells the sender of a packet what became of it, if it may be told.
    #[cold]
    pub(super) fn send_error<A: Destination>(
        &mut self,
        about: &[u8],
        port_in: u16,
        message: Message,
    ) {
        let is_due = match A::IS_V6 {
            false => is_due_v4(about),
            true => is_due_v6(about, message),
        };
        if !is_due {
            return self.counters.count(Reason::ErrorForbidden);
        }
        if !self.error_budget.take(sender_of(about), self.now_millis) {
            return self.counters.count(Reason::ErrorLimited);
        }
        let came_by = self.ports.get(port_in);
        let all = || came_by.into_iter().chain(self.ports.iter());
        // The host takes nothing that comes from its own addresses: what it
        // hears of its packets comes from where they were to go.
        let is_host = came_by.is_some_and(|port| port.is_host);
        let from_v4 = || match is_host {
            true => Some(Ipv4Addr::from_bits(u32::of_packet(about))),
            false => all().find_map(|port| port.ipv4),
        };
        let from_v6 = || match is_host {
            true => Some(Ipv6Addr::from_bits(u128::of_packet(about))),
            false => all().find_map(|port| port.ipv6),
        };
        let stage = Stage::ToRoute {
            port_in,
            takes_hop: false,
            is_translated: false,
        };
        let (originated, cache) = (&mut self.originated, &mut self.cache);
        let is_made = match A::IS_V6 {
            false => from_v4().map(|from| {
                originated.make(cache, ERROR_BYTES, stage, |room| {
                    write_v4(room, message, about, from)
                })
            }),
            true => from_v6().map(|from| {
                originated.make(cache, ERROR_BYTES, stage, |room| {
                    write_v6(room, message, about, from)
                })
            }),
        };
        match is_made {
            Some(true) => self.counters.visit(Node::Icmp, 1),
            Some(false) => self.counters.count(Reason::NoRoom),
            None => self.counters.count(Reason::ErrorNoSource),
        }
    }

    /// Tells the sender inside that a packet of its was refused. Where room
    /// or a quota is used up it may try again: to code 1 TCP does not end
    /// (RFC 6888 REQ-11, for which RFC 5508 REQ-8 had code 13). What a rule
    /// forbids stays so.
    #[cold]
    pub(super) fn send_refusal(&mut self, about: &[u8], port_in: u16, verdict: Verdict) {
        let message = match verdict {
            Verdict::PortsExhausted | Verdict::OverQuota | Verdict::TableFull => {
                Message::HostUnreachable
            }
            Verdict::Denied => Message::Prohibited,
            _ => return,
        };
        self.send_error::<u32>(about, port_in, message);
    }

    /// Packets whose neighbour is resolved now go on.
    pub(super) fn release(&mut self, section: &Section<'_>) {
        let changes = self.table.changes();
        if changes == self.seen_changes {
            return;
        }
        self.seen_changes = changes;
        if self.waiting.neighbours() == 0 {
            return;
        }
        for key in self.waiting.keys() {
            let Some(way) = self.table.neighbour(section, key, self.table.place(key)) else {
                continue;
            };
            for held in self.waiting.release(key) {
                self.send_held(section, &held, way);
            }
        }
    }

    fn send_held(&mut self, section: &Section<'_>, held: &Held, way: Adjacency) {
        let Some(mut packet) = self.copy_of(&held.bytes) else {
            return;
        };
        let port = match is_v6(&held.bytes) {
            true => self.output::<u128>(section, &mut packet, way, 0, held.port_in),
            false => self.output::<u32>(section, &mut packet, way, 0, held.port_in),
        };
        self.add(packet, Stage::Ready(port));
    }

    /// Packets whose neighbour has not answered end (RFC 1812 §3.3.2); for
    /// the others it is asked again, now and then.
    pub(super) fn give_up(&mut self) {
        let Some(overdue) = self.waiting.overdue(self.now_millis) else {
            return;
        };
        for key in overdue {
            for held in self.waiting.release(key) {
                self.counters.count(Reason::NotResolved);
                let message = Message::HostUnreachable;
                match is_v6(&held.bytes) {
                    true => self.send_error::<u128>(&held.bytes, held.port_in, message),
                    false => self.send_error::<u32>(&held.bytes, held.port_in, message),
                }
            }
        }
        for key in self.waiting.keys() {
            self.ask(key);
        }
    }

    /// Looks up the way of packets that were made here, those included
    /// that are made meanwhile.
    pub(super) fn route_originated(&mut self, section: &Section<'_>) {
        let mut at = 0;
        while at < self.originated.len() {
            if let Some(mut made) = self.originated.take(at) {
                if let Stage::ToRoute {
                    port_in,
                    takes_hop,
                    is_translated,
                } = made.stage
                {
                    let view = self.ports.get(port_in).map_or(0, |port| port.view);
                    let terms = Terms {
                        port_in,
                        takes_hop,
                        is_translated,
                        view: usize::from(view),
                    };
                    let packet = &mut made.buffer;
                    let port = match is_v6(packet.packet()) {
                        true => self.route_v6(section, packet, terms),
                        false => self.route_v4(section, packet, terms),
                    };
                    made.stage = Stage::Ready(port);
                }
                self.originated.put_back(at, made);
            }
            at += 1;
        }
    }

    fn route_v4(&mut self, section: &Section<'_>, frame: &mut Buffer, terms: Terms) -> u16 {
        let mut hop = [0];
        let to = [u32::of_packet(frame.packet())];
        if let Some(view) = self.views.get(terms.view) {
            view.v4.lookup(section, &to, &mut hop);
        }
        self.route::<u32>(section, frame, hop[0], terms)
    }

    fn route_v6(&mut self, section: &Section<'_>, frame: &mut Buffer, terms: Terms) -> u16 {
        let mut hop = [0];
        let to = [u128::of_packet(frame.packet())];
        if let Some(view) = self.views.get(terms.view) {
            view.v6.lookup(section, &to, &mut hop);
        }
        self.route::<u128>(section, frame, hop[0], terms)
    }

    /// One packet from its next hop to its port.
    fn route<A: Destination>(
        &mut self,
        section: &Section<'_>,
        frame: &mut Buffer,
        hop: u16,
        terms: Terms,
    ) -> u16 {
        let (hop, way) = self.resolve_one::<A>(section, hop, frame.packet());
        match way.kind() {
            Kind::Rewrite | Kind::Direct | Kind::Unresolved => {}
            Kind::Host => {
                self.counters.visit(Node::Host, 1);
                return HOST;
            }
            _ => {
                self.counters.count(Reason::NoRoute);
                return GONE;
            }
        }
        let obstacle = self.obstacle::<A>(frame.packet(), way, terms.port_in, !terms.takes_hop);
        if let Some((reason, message)) = obstacle {
            self.counters.count(reason);
            self.send_error::<A>(frame.packet(), terms.port_in, message);
            return GONE;
        }
        if !A::IS_V6 && !terms.is_translated && self.ports.is_outside(way.port()) {
            self.translate_own(frame);
        }
        if terms.takes_hop {
            ip::take_hop(frame.packet_mut(), A::IS_V6);
        }
        self.counters.visit(Node::Output, 1);
        self.output::<A>(section, frame, way, hop, terms.port_in)
    }
}

/// How a made packet is routed.
#[derive(Debug, Clone, Copy)]
struct Terms {
    port_in: u16,
    takes_hop: bool,
    is_translated: bool,
    view: usize,
}

/// Who has sent a packet, for the budget of errors: an address of IPv4, a
/// network of IPv6.
fn sender_of(packet: &[u8]) -> u64 {
    let at = if is_v6(packet) { 8..16 } else { 12..16 };
    let octets = packet.get(at).unwrap_or_default();
    octets
        .iter()
        .fold(0, |sender, octet| sender << 8 | u64::from(*octet))
}

fn is_v6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6)
}

/// Puts the link's header in front: none, Ethernet, or Ethernet with a tag.
#[inline(always)]
fn put_header(frame: &mut Buffer, way: Adjacency, is_v6: bool) -> bool {
    if way.kind() == Kind::Direct {
        return true;
    }
    let protocol = if is_v6 {
        ethernet::IPV6
    } else {
        ethernet::IPV4
    };
    let [high, low] = protocol.to_be_bytes();
    let [a, b, c, d, e, f, g, h, i, j, k, l] = way.addresses();
    if way.vlan() == 0 {
        let header = [a, b, c, d, e, f, g, h, i, j, k, l, high, low];
        return frame.push_link(&header).is_ok();
    }
    let [of, tag] = ethernet::VLAN.to_be_bytes();
    let [id_high, id_low] = way.vlan().to_be_bytes();
    let header = [
        a, b, c, d, e, f, g, h, i, j, k, l, of, tag, id_high, id_low, high, low,
    ];
    frame.push_link(&header).is_ok()
}
