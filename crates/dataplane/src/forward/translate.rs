//! Address translation in between: into the inside before the route is
//! looked up, out of it behind.

use std::net::Ipv4Addr;

use arrayvec::ArrayVec;
use nat::{Direction, Packet, Verdict};
use packet::{Ipv4, Udp, protocol};

use super::originated::Stage;
use super::vector::{Destination, PacketVector};
use super::{GONE, MAX_BATCH, Node, Reason, State, frame_at, packet_at};
use crate::Buffer;
use crate::neighbour::Kind;

/// Room for a packet that the engine held back.
pub(super) const FRAGMENT_BYTES: usize = 65_535;
/// Packets that the engine held back and gives out in one batch at most.
pub(super) const MAX_RELEASED: usize = 64;

/// Places of packets, and where they come from.
type Sources = Vec<(usize, (Ipv4Addr, u16))>;

impl State {
    /// Translates what came in from outside.
    pub(super) fn translate_in(&mut self, vector: &mut PacketVector<u32>, frames: &mut [Buffer]) {
        if self.nat.is_none() {
            return;
        }
        let mut picked = [false; MAX_BATCH];
        let mut count = 0;
        for k in 0..vector.len() {
            let is_outside = self.ports.is_outside(vector.port(k));
            picked[vector.at(k)] = is_outside;
            count += usize::from(is_outside);
        }
        if count == 0 {
            return;
        }
        let came_in = picked;
        self.drop_forged(vector, frames, &mut picked);
        let came = (0..vector.len()).map(|k| (vector.at(k), vector.port(k)));
        self.hand_off(frames, &mut picked, Direction::In, came);
        let verdicts = self.translate(frames, &picked, Direction::In);
        for (at, verdict) in verdicts {
            if !verdict.goes_on() {
                self.drop(at, reason_of(verdict));
                picked[at] = false;
            } else {
                settle_len(frames, at);
            }
        }
        vector.retain(|at| {
            let goes = picked[at] || !came_in[at];
            goes.then(|| u32::of_packet(packet_at(frames, at)))
        });
        self.take_released();
        self.take_met();
    }

    /// Translates what goes out by an outside port from inside, and what
    /// goes from inside to an address of the translator (a hairpin).
    pub(super) fn translate_out<A: Destination>(
        &mut self,
        vector: &mut PacketVector<A>,
        frames: &mut [Buffer],
    ) {
        let mut picked = [false; MAX_BATCH];
        let mut row_of = [0_u8; MAX_BATCH];
        let (mut count, mut turning) = (0, 0);
        for k in 0..vector.len() {
            if self.ports.is_outside(vector.port(k)) {
                continue;
            }
            let at = vector.at(k);
            let goes_out = vector.goes[k] && self.ports.is_outside(vector.way[k].port());
            let turns = vector.way[k].kind() == Kind::Host && self.turns(packet_at(frames, at));
            picked[at] = goes_out || turns;
            row_of[at] = k as u8;
            count += usize::from(picked[at]);
            turning += usize::from(turns);
        }
        if count == 0 {
            return;
        }
        let mut sources = Sources::new();
        if self.handoff.is_some() {
            self.hand_off_out(vector, frames, &mut picked);
            if turning > 0 {
                sources = self.sources_of(vector, frames, &picked);
            }
        }
        let verdicts = self.translate(frames, &picked, Direction::Out);
        for (at, verdict) in verdicts {
            let k = usize::from(row_of[at]);
            let is_to_host = vector.way[k].kind() == Kind::Host;
            match verdict {
                Verdict::Hairpinned | Verdict::Answered => {
                    vector.goes[k] = false;
                    self.egress[at] = GONE;
                    settle_len(frames, at);
                    let packet = frame_at(frames, at).and_then(|frame| self.take_out(frame));
                    if let Some(packet) = packet {
                        self.turn_back(packet, vector.port(k));
                    }
                }
                Verdict::Translated if is_to_host && !sources.is_empty() => {
                    let source = sources.binary_search_by_key(&at, |(at, _)| *at);
                    let source = source.ok().and_then(|place| sources.get(place));
                    settle_len(frames, at);
                    if let (Some((_, source)), Some(frame)) = (source, frame_at(frames, at)) {
                        self.egress[at] = self.turn_elsewhere(frame, vector.port(k), *source);
                    }
                }
                // It stays the host's, as it was.
                _ if is_to_host => {}
                _ if verdict.goes_on() => settle_len(frames, at),
                _ => {
                    vector.goes[k] = false;
                    self.drop(at, reason_of(verdict));
                    if let Some(frame) = frame_at(frames, at) {
                        self.send_refusal(frame.packet(), vector.port(k), verdict);
                    }
                }
            }
        }
        self.take_released();
        self.take_met();
    }

    /// Of packets to go out, those that are other workers' go there.
    #[inline]
    fn hand_off_out<A: Destination>(
        &mut self,
        vector: &mut PacketVector<A>,
        frames: &mut [Buffer],
        picked: &mut [bool; MAX_BATCH],
    ) {
        let wanted = *picked;
        let came = (0..vector.len()).map(|k| (vector.at(k), vector.port(k)));
        if self.hand_off(frames, picked, Direction::Out, came) {
            for k in 0..vector.len() {
                let at = vector.at(k);
                vector.goes[k] &= picked[at] | !wanted[at];
            }
        }
    }

    /// Where those come from that turn back, by their places.
    #[cold]
    fn sources_of<A: Destination>(
        &self,
        vector: &PacketVector<A>,
        frames: &[Buffer],
        picked: &[bool; MAX_BATCH],
    ) -> Sources {
        let nat = self.nat.as_ref();
        if nat.is_some_and(|nat| nat.config().mode.reverse) {
            return Sources::new();
        }
        let turns = |k: &usize| picked[vector.at(*k)] && vector.way[*k].kind() == Kind::Host;
        let turning = (0..vector.len()).filter(turns).map(|k| {
            let at = vector.at(k);
            (at, nat::source_of(packet_at(frames, at)))
        });
        turning.collect()
    }

    /// Translates an error or the like of our own on its way out; one that
    /// has no translation goes as it is.
    pub(super) fn translate_own(&mut self, frame: &mut Buffer) {
        if let Some(nat) = &mut self.nat {
            self.counters.visit(Node::Nat, 1);
            nat.translate_out(frame.packet_mut(), self.now_millis);
        }
    }

    /// Drops what comes from outside with an address of the translator's own
    /// for its source: what turns back inside never gets there.
    fn drop_forged(
        &mut self,
        vector: &PacketVector<u32>,
        frames: &[Buffer],
        picked: &mut [bool; MAX_BATCH],
    ) {
        let nat = self.nat.as_ref();
        if nat.is_none_or(|nat| nat.config().mode.reverse) {
            return;
        }
        for at in (0..vector.len()).map(|k| vector.at(k)) {
            let source = packet_at(frames, at).get(12..16);
            let source = source.and_then(|source| source.first_chunk::<4>());
            let is_own = source.is_some_and(|octets| self.is_alias_address((*octets).into()));
            if picked[at] && is_own {
                picked[at] = false;
                self.drop(at, Reason::Ipv4MartianSource);
            }
        }
    }

    /// Whether a packet from inside to this machine is the translator's: to
    /// an alias address, or a question to itself (PCP, NAT-PMP).
    fn turns(&self, packet: &[u8]) -> bool {
        let to = Ipv4Addr::from_bits(u32::of_packet(packet));
        self.is_alias_address(to) || self.asks_translator(to, packet)
    }

    fn asks_translator(&self, to: Ipv4Addr, packet: &[u8]) -> bool {
        let Some(nat) = &self.nat else {
            return false;
        };
        let Ok(ip) = Ipv4::new(packet) else {
            return false;
        };
        let udp = Udp::new(ip.payload()).ok();
        let udp = udp.filter(|_| ip.protocol() == protocol::UDP && !ip.is_fragment());
        udp.is_some_and(|udp| nat.is_asked_at(to, udp.destination_port()))
    }

    fn is_alias_address(&self, address: Ipv4Addr) -> bool {
        let nat = self.nat.as_ref();
        nat.is_some_and(|nat| nat.is_alias(address))
    }

    /// Runs the picked frames through the engine.
    fn translate(
        &mut self,
        frames: &mut [Buffer],
        picked: &[bool; MAX_BATCH],
        direction: Direction,
    ) -> ArrayVec<(usize, Verdict), MAX_BATCH> {
        let mut verdicts = ArrayVec::new();
        let Some(nat) = &mut self.nat else {
            return verdicts;
        };
        let mut packets: ArrayVec<Packet<'_>, MAX_BATCH> = ArrayVec::new();
        for ((at, frame), picked) in frames.iter_mut().enumerate().zip(picked) {
            if *picked {
                packets.push(Packet::new(frame.room_mut()));
                verdicts.push((at, Verdict::default()));
            }
        }
        self.counters.visit(Node::Nat, packets.len());
        match direction {
            Direction::Out => nat.translate_out_batch(&mut packets, self.now_millis),
            Direction::In => nat.translate_in_batch(&mut packets, self.now_millis),
        }
        for (packet, (_, verdict)) in packets.iter().zip(&mut verdicts) {
            *verdict = packet.verdict;
        }
        verdicts
    }

    /// A packet to another host inside turns back there.
    pub(super) fn turn_back(&mut self, packet: Buffer, port_in: u16) {
        let stage = Stage::ToRoute {
            port_in,
            takes_hop: true,
            is_translated: true,
        };
        self.add(packet, stage);
    }

    /// Takes out the fragments that had waited in the engine for a first
    /// one that has come.
    pub(super) fn take_released(&mut self) {
        let now_millis = self.now_millis;
        for _ in 0..MAX_RELEASED {
            let Some(nat) = &mut self.nat else {
                return;
            };
            let room = &mut self.fragment;
            room.resize(FRAGMENT_BYTES, 0);
            let Some((of, len, verdict)) = nat.next_fragment_of(room, now_millis) else {
                return;
            };
            if !verdict.goes_on() {
                self.counters.count(reason_of(verdict));
                continue;
            }
            let room = std::mem::take(&mut self.fragment);
            debug_assert!(len <= room.len());
            let packet = self.copy_of(room.get(..len).unwrap_or(&room));
            self.fragment = room;
            let Some(packet) = packet else {
                continue;
            };
            let is_half = verdict == Verdict::Translated && of.direction == Direction::Out;
            if is_half && self.handoff.is_some() && self.is_alias_address(of.destination) {
                self.release_elsewhere(packet, of.source);
            } else {
                self.turn_back(packet, 0);
            }
        }
    }
}

/// A helper may have made a packet longer or shorter: its header says.
fn settle_len(frames: &mut [Buffer], at: usize) {
    if let Some(frame) = frame_at(frames, at) {
        settle(frame);
    }
}

/// The same of one packet.
pub(super) fn settle(frame: &mut Buffer) {
    if let Some([high, low]) = frame.packet().get(2..4) {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        frame.set_len(len);
    }
}

pub(super) fn reason_of(verdict: Verdict) -> Reason {
    match verdict {
        Verdict::NoMapping => Reason::NatNoMapping,
        Verdict::TableFull => Reason::NatTableFull,
        Verdict::PortsExhausted => Reason::NatPortsExhausted,
        Verdict::OverQuota => Reason::NatOverQuota,
        Verdict::Malformed => Reason::NatMalformed,
        Verdict::FragmentWaiting => Reason::NatFragmentHeld,
        Verdict::HelperRefused => Reason::NatHelper,
        Verdict::Unsupported => Reason::NatUnsupported,
        Verdict::Denied
        | Verdict::Translated
        | Verdict::Passed
        | Verdict::Hairpinned
        | Verdict::Answered => Reason::NatDenied,
    }
}
