//! Several workers behind the same alias addresses: each translates what is
//! of its part ([`nat::Shards`]), and what comes to another one goes on to
//! it as it came, whole, with a note in front.
//!
//! Nothing is translated before it is where it belongs, so that nothing has
//! to be taken back; but for a packet from inside to an alias address
//! (a hairpin), whose two halves may be of two workers: it takes its former
//! source along, and gets it back where it gets nowhere.

use std::net::Ipv4Addr;
use std::sync::Arc;

use arrayvec::ArrayVec;
use nat::fragment::{Datagram, Fragments, Later, Limits, Part};
use nat::{Direction, Nat, Owner, Shards, Verdict};
use packet::Ipv4;

use super::originated::Stage;
use super::translate::{FRAGMENT_BYTES, MAX_RELEASED, reason_of, settle};
use super::{GONE, MAX_BATCH, Node, Reason, State, frame_at, packet_at};
use crate::Buffer;

/// Bytes of a note.
pub const NOTE_LEN: usize = 12;
/// Where the numbers of workers begin among those of ports.
const FIRST_WORKER: u16 = 0xf000;
/// Most workers that can be told so.
const MOST_WORKERS: u16 = 0x0f00;
/// Who has the packet need not ask whose it is.
const DECIDED: u8 = 1;
/// It was translated outward already, and turns back here.
const TURNED: u8 = 2;

/// The port number that stands for a worker.
fn port_of(worker: u16) -> u16 {
    FIRST_WORKER + worker % MOST_WORKERS
}

/// The worker that a port number stands for.
#[inline]
pub fn worker_of(port: u16) -> Option<usize> {
    let number = port.checked_sub(FIRST_WORKER)?;
    (number < MOST_WORKERS).then_some(usize::from(number))
}

/// What is said of a packet that goes to another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// The port it came in by.
    port: u16,
    flags: u8,
    /// How many workers were asked already.
    asked: u8,
    /// Of one that turned back: what it had come from.
    source: (Ipv4Addr, u16),
}

impl Note {
    const NONE: Self = Self {
        port: 0,
        flags: 0,
        asked: 0,
        source: (Ipv4Addr::UNSPECIFIED, 0),
    };

    /// Of a packet that came in by a port.
    fn of(port: u16) -> Self {
        Self { port, ..Self::NONE }
    }

    fn to_bytes(self) -> [u8; NOTE_LEN] {
        let ([a, b], [c, d]) = (self.port.to_be_bytes(), self.source.1.to_be_bytes());
        let [e, f, g, h] = self.source.0.octets();
        [a, b, self.flags, self.asked, c, d, e, f, g, h, 0, 0]
    }

    /// Takes the note off the front of a packet.
    fn take(frame: &mut Buffer) -> Option<Self> {
        let [a, b, flags, asked, c, d, e, f, g, h, _, _] =
            *frame.frame().first_chunk::<NOTE_LEN>()?;
        frame.pull_head(NOTE_LEN).then_some(Self {
            port: u16::from_be_bytes([a, b]),
            flags,
            asked,
            source: (Ipv4Addr::new(e, f, g, h), u16::from_be_bytes([c, d])),
        })
    }

    fn with(self, flags: u8) -> Self {
        let flags = self.flags | flags;
        Self { flags, ..self }
    }

    fn is_turned(self) -> bool {
        self.flags & TURNED != 0
    }
}

/// Where a packet is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandsTo {
    Here,
    To(u16, Note),
    /// A fragment whose first one has not come: a copy is kept.
    Held,
    /// One that there is no room for.
    NoRoom,
}

/// What a worker knows of the others' parts.
#[derive(Debug)]
pub(super) struct Handoff {
    shards: Arc<Shards>,
    me: u16,
    /// Fragments that meet here, and to whom their first one went.
    fragments: Fragments<u16>,
    /// What is said of the packets of a batch that others handed over.
    notes: Option<Box<[Note; MAX_BATCH]>>,
}

impl Handoff {
    /// Of an engine that is one of several.
    pub(super) fn of(nat: &Nat) -> Option<Self> {
        let (shards, me) = nat.shard()?;
        Some(Self {
            shards: Arc::clone(shards),
            me,
            fragments: Fragments::new(Limits::default()),
            notes: None,
        })
    }

    /// What is said of a packet that came in by a port.
    #[inline]
    fn note(&self, at: usize, port: u16) -> Note {
        match &self.notes {
            None => Note::of(port),
            Some(notes) => notes.get(at).copied().unwrap_or(Note::of(port)),
        }
    }

    /// Where a packet goes.
    fn owner(&self, note: Note, direction: Direction, packet: &[u8]) -> Owner {
        match note.flags & DECIDED {
            0 => self.shards.owner(direction, packet),
            _ => Owner::Shard(self.me),
        }
    }
}

impl State {
    /// Of packets of a vector that are to be translated, those that are other
    /// workers' go there: they are picked no more. Whether there were such.
    #[inline]
    pub(super) fn hand_off(
        &mut self,
        frames: &mut [Buffer],
        picked: &mut [bool; MAX_BATCH],
        direction: Direction,
        came: impl Iterator<Item = (usize, u16)>,
    ) -> bool {
        let Some(handoff) = &self.handoff else {
            return false;
        };
        let (shards, me) = (&*handoff.shards, Owner::Shard(handoff.me));
        let mut others: ArrayVec<(u8, u16), MAX_BATCH> = ArrayVec::new();
        for (at, port) in came {
            if picked[at]
                && shards.owner(direction, packet_at(frames, at)) != me
                && others.try_push((at as u8, port)).is_err()
            {
                break;
            }
        }
        for (at, port) in &others {
            let at = usize::from(*at);
            if let Some(frame) = frame_at(frames, at) {
                picked[at] = self.hand_off_one(at, frame, *port, direction);
            }
        }
        !others.is_empty()
    }

    /// Deals a packet that is not known to be this worker's; whether it is.
    fn hand_off_one(
        &mut self,
        at: usize,
        frame: &mut Buffer,
        port: u16,
        direction: Direction,
    ) -> bool {
        let Some(handoff) = &self.handoff else {
            return true;
        };
        let note = handoff.note(at, port);
        match self.hands_to(note, direction, frame.packet()) {
            HandsTo::Here => true,
            HandsTo::To(worker, note) => {
                self.egress[at] = self.hand_over(frame, worker, note);
                false
            }
            HandsTo::Held => {
                self.drop(at, Reason::HandoffHeld);
                false
            }
            HandsTo::NoRoom => {
                self.drop(at, Reason::HandoffNoRoom);
                false
            }
        }
    }

    /// Puts a note in front; gives the port by which the packet leaves.
    fn hand_over(&mut self, frame: &mut Buffer, worker: u16, note: Note) -> u16 {
        if frame.push_link(&note.to_bytes()).is_ok() {
            self.counters.visit(Node::Handoff, 1);
            return port_of(worker);
        }
        self.counters.count(Reason::NoHeadroom);
        GONE
    }

    fn hands_to(&mut self, note: Note, direction: Direction, packet: &[u8]) -> HandsTo {
        let (Some(handoff), Some(nat)) = (&self.handoff, &self.nat) else {
            return HandsTo::Here;
        };
        let (me, parts) = (handoff.me, handoff.shards.parts());
        let to = |worker, note| match worker == me {
            true => HandsTo::Here,
            false => HandsTo::To(worker, note),
        };
        match handoff.owner(note, direction, packet) {
            Owner::Any => HandsTo::Here,
            Owner::Shard(worker) => to(worker, note),
            Owner::Meets(worker) if worker != me => to(worker, note),
            Owner::Meets(_) => self.meet(note, direction, packet),
            Owner::Call(worker, _) if worker != me => to(worker, note),
            Owner::Call(_, worker) => match nat.knows_call(direction, packet) {
                true => HandsTo::Here,
                false => to(worker, note.with(DECIDED)),
            },
            Owner::Each => {
                let asked = note.asked.saturating_add(1);
                let is_known = nat.knows_call(direction, packet);
                match is_known || u16::from(asked) >= parts {
                    true => HandsTo::Here,
                    false => to((me + 1) % parts, Note { asked, ..note }),
                }
            }
        }
    }

    /// A fragment where all of its datagram meet: the first one says where
    /// they go, what comes before it is kept.
    fn meet(&mut self, note: Note, direction: Direction, packet: &[u8]) -> HandsTo {
        let (Some(handoff), Ok(ip)) = (&mut self.handoff, Ipv4::new(packet)) else {
            return HandsTo::Here;
        };
        let datagram = Datagram::of(direction, &ip);
        let (me, now_millis) = (handoff.me, self.now_millis);
        let to = |worker| match worker == me {
            true => HandsTo::Here,
            false => HandsTo::To(worker, note.with(DECIDED)),
        };
        match Part::of(&ip) {
            Part::First => {
                let worker = match handoff.shards.owner_of_first(direction, packet) {
                    Owner::Shard(worker) => worker,
                    _ => me,
                };
                handoff.fragments.first(datagram, Some(worker), now_millis);
                to(worker)
            }
            Part::Later => {
                let kept = [&note.to_bytes()[..], packet].concat();
                match handoff.fragments.later(datagram, &kept, now_millis) {
                    Later::Known(worker) => to(worker),
                    Later::Held => HandsTo::Held,
                    Later::Refused | Later::NoRoom => HandsTo::NoRoom,
                }
            }
            Part::Whole | Part::Lying => HandsTo::Here,
        }
    }

    /// Fragments that had waited here for a first one that has come go after
    /// it.
    pub(super) fn take_met(&mut self) {
        for _ in 0..MAX_RELEASED {
            let Some(handoff) = &mut self.handoff else {
                return;
            };
            if !handoff.fragments.has_ready() {
                return;
            }
            let mut room = std::mem::take(&mut self.fragment);
            room.resize(FRAGMENT_BYTES + NOTE_LEN, 0);
            let taken = handoff.fragments.next_ready(&mut room);
            let packet = taken.and_then(|(datagram, len)| {
                debug_assert!(len <= room.len());
                let kept = room.get(..len).unwrap_or(&room);
                Some((self.copy_of(kept)?, datagram.direction))
            });
            self.fragment = room;
            if let Some((packet, direction)) = packet {
                self.go_after(packet, direction);
            }
        }
    }

    fn go_after(&mut self, mut frame: Buffer, direction: Direction) {
        let Some(note) = Note::take(&mut frame) else {
            return self.add(frame, Stage::Ready(GONE));
        };
        let port = match self.hands_to(note, direction, frame.packet()) {
            HandsTo::Here if note.is_turned() => self.turn_here(&mut frame, note),
            HandsTo::Here => {
                let verdict = self.translate_one(&mut frame, direction);
                if verdict.goes_on() {
                    return self.turn_back(frame, note.port);
                }
                self.counters.count(reason_of(verdict));
                GONE
            }
            HandsTo::To(worker, note) => self.hand_over(&mut frame, worker, note),
            HandsTo::Held | HandsTo::NoRoom => {
                self.counters.count(Reason::HandoffNoRoom);
                GONE
            }
        };
        self.add(frame, Stage::Ready(port));
    }

    /// Translates one packet of this worker's.
    fn translate_one(&mut self, frame: &mut Buffer, direction: Direction) -> Verdict {
        let Some(nat) = &mut self.nat else {
            return Verdict::default();
        };
        self.counters.visit(Node::Nat, 1);
        let room = frame.room_mut();
        let verdict = match direction {
            Direction::Out => nat.translate_out(room, self.now_millis),
            Direction::In => nat.translate_in(room, self.now_millis),
        };
        if verdict.goes_on() {
            settle(frame);
        }
        verdict
    }

    /// A packet from inside to an alias address, which was translated outward
    /// here and had come from `source`, and whose other half is another
    /// worker's: it goes there. Gives the port by which it leaves.
    pub(super) fn turn_elsewhere(
        &mut self,
        frame: &mut Buffer,
        port: u16,
        source: (Ipv4Addr, u16),
    ) -> u16 {
        let note = Note {
            source,
            ..Note::of(port).with(TURNED)
        };
        self.turn(frame, note)
    }

    /// The same of a fragment that the engine held back.
    pub(super) fn release_elsewhere(&mut self, mut frame: Buffer, source: Ipv4Addr) {
        let port = self.turn_elsewhere(&mut frame, 0, (source, 0));
        self.add(frame, Stage::Ready(port));
    }

    /// A packet that was translated outward, and turns back.
    fn turn(&mut self, frame: &mut Buffer, note: Note) -> u16 {
        match self.hands_to(note, Direction::In, frame.packet()) {
            HandsTo::Here => self.turn_here(frame, note),
            HandsTo::To(worker, note) => self.hand_over(frame, worker, note),
            HandsTo::Held => {
                self.counters.count(Reason::HandoffHeld);
                GONE
            }
            HandsTo::NoRoom => {
                self.counters.count(Reason::HandoffNoRoom);
                GONE
            }
        }
    }

    /// The same where the other half is this worker's. One that gets nowhere
    /// is the host's, as it was.
    fn turn_here(&mut self, frame: &mut Buffer, note: Note) -> u16 {
        let verdict = self.translate_one(frame, Direction::In);
        if verdict == Verdict::Translated {
            if let Some(packet) = self.take_out(frame) {
                self.turn_back(packet, note.port);
            }
            return GONE;
        }
        if verdict != Verdict::FragmentWaiting && nat::put_back(frame.packet_mut(), note.source) {
            self.counters.visit(Node::Host, 1);
            return super::HOST;
        }
        self.counters.count(reason_of(verdict));
        GONE
    }

    /// Reads what is said of packets that others handed over. Those that
    /// turn back are done with; the ports by which the others came in.
    pub(super) fn take_notes(
        &mut self,
        frames: &mut [Buffer],
        ports_in: &mut [Option<u16>; MAX_BATCH],
    ) {
        let kept = self
            .handoff
            .as_mut()
            .and_then(|handoff| handoff.notes.take());
        let mut notes = kept.unwrap_or_else(|| Box::new([Note::NONE; MAX_BATCH]));
        for (at, frame) in frames.iter_mut().enumerate() {
            let Some(note) = Note::take(frame) else {
                self.drop(at, Reason::NoPort);
                continue;
            };
            notes[at] = note;
            if note.is_turned() {
                self.egress[at] = self.turn(frame, note);
            } else {
                ports_in[at] = Some(note.port);
            }
        }
        if let Some(handoff) = &mut self.handoff {
            handoff.notes = Some(notes);
        }
    }

    /// What was said is over.
    pub(super) fn forget_notes(&mut self) {
        if let Some(handoff) = &mut self.handoff {
            handoff.notes = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;

    #[test]
    fn a_note_goes_in_front_and_comes_off_again() {
        let note = Note {
            source: ([10, 1, 2, 3].into(), 40_000),
            asked: 7,
            ..Note::of(4_095).with(TURNED)
        };
        let mut cache = Pool::new(4, 40).unwrap().cache();
        let mut frame = cache.take().unwrap();
        assert!(frame.set_frame(&[9; 20], 0));
        let start = frame.headroom();
        assert!(frame.push_link(&note.with(DECIDED).to_bytes()).is_ok());
        assert_eq!(Note::take(&mut frame), Some(note.with(DECIDED)));
        assert_eq!((frame.headroom(), frame.packet()), (start, &[9; 20][..]));
        assert!(frame.set_frame(&[0; 11], 0));
        assert_eq!(Note::take(&mut frame), None);
        assert_eq!(worker_of(port_of(63)), Some(63));
        for port in [0, super::super::MAX_PORTS as u16, super::super::HOST, GONE] {
            assert_eq!(worker_of(port), None);
        }
    }
}
