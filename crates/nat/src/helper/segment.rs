//! A TCP segment whose payload is edited, whose numbers are moved into
//! another space, and whose length may change. For the helpers.

use packet::checksum::{Delta, Sum};
use packet::tcp::{self, OPTION_SACK};
use packet::{Ipv4, Tcp, protocol};

use super::Refusal;
use super::edit::{Edit, new_end, replace};
use super::sequence::Sequence;
use crate::part::{part, part_mut};

/// Where the parts of a segment are, and its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where the TCP header begins.
    pub header_at: usize,
    /// Where the payload begins.
    pub payload_at: usize,
    /// Where it ends, and the packet.
    pub end: usize,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Flags ([`packet::tcp`]).
    pub flags: u8,
}

impl Segment {
    /// Of an IPv4 packet that is whole; `None` of anything else.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let ip = Ipv4::new(bytes).ok()?;
        if ip.protocol() != protocol::TCP || ip.is_fragment() {
            return None;
        }
        let tcp = Tcp::new(ip.payload()).ok()?;
        Some(Self {
            header_at: ip.header_len(),
            payload_at: ip.header_len() + tcp.header_len(),
            end: ip.total_len(),
            sequence: tcp.sequence(),
            acknowledgement: tcp.acknowledgement(),
            flags: tcp.flags(),
        })
    }

    /// The payload.
    pub fn payload<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        part(bytes, self.payload_at..self.end)
    }

    /// The number behind the last byte of the payload.
    pub fn next(&self) -> u32 {
        self.sequence.wrapping_add(self.len() as u32)
    }

    /// Bytes of payload.
    pub fn len(&self) -> usize {
        self.end.saturating_sub(self.payload_at)
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Makes the edits (in order, apart from each other), gives the segment the
/// sequence number `sequence`, and moves what it acknowledges from the
/// receiver's space of `other` to its sender's. `bytes` reaches to the end
/// of the room that there is. A wrong checksum stays wrong.
pub fn rewrite(
    bytes: &mut [u8],
    segment: &Segment,
    edits: &[Edit],
    sequence: u32,
    other: &Sequence,
) -> Result<(), Refusal> {
    let new_end = new_end(bytes.len(), segment.end, edits).ok_or(Refusal::NoRoom)?;
    let total_len = u16::try_from(new_end).map_err(|_| Refusal::NoRoom)?;
    let before = sum(bytes, segment.header_at, segment.end);
    replace(bytes, segment.payload_at, segment.end, edits);
    if new_end != segment.end {
        let ip = Ipv4::parse_truncated(&mut *bytes);
        let set = ip.map(|mut ip| ip.set_total_len(total_len));
        // It was read as IPv4 before, and fits as was just seen.
        debug_assert!(set.is_ok_and(|set| set));
    }
    let Some(all) = bytes.get_mut(segment.header_at..new_end) else {
        return Err(Refusal::NoRoom);
    };
    if let Ok(mut tcp) = Tcp::new(&mut *all) {
        renumber(&mut tcp, segment, sequence, other);
        let after = Sum::of(all).folded();
        let length = |end: usize| ((end - segment.header_at) as u16).to_be();
        let lengths = Delta::of16(length(segment.end), length(new_end));
        let delta = Delta::of16(before, after).and(lengths);
        if let Ok(mut tcp) = Tcp::new(all) {
            tcp.set_checksum(delta.apply(tcp.checksum()));
        }
    }
    Ok(())
}

/// Lets `change` write into a payload and keeps the checksum as right, or
/// as wrong, as it was.
pub fn patch(bytes: &mut [u8], segment: &Segment, change: impl FnOnce(&mut [u8])) {
    let before = sum(bytes, segment.header_at, segment.end);
    if let Some(payload) = bytes.get_mut(segment.payload_at..segment.end) {
        change(payload);
    }
    let after = sum(bytes, segment.header_at, segment.end);
    let all = part_mut(bytes, segment.header_at..segment.end);
    if let Ok(mut tcp) = Tcp::new(all) {
        tcp.set_checksum(Delta::of16(before, after).apply(tcp.checksum()));
    }
}

fn sum(bytes: &[u8], from: usize, to: usize) -> u16 {
    Sum::of(part(bytes, from..to)).folded()
}

fn renumber(tcp: &mut Tcp<&mut [u8]>, segment: &Segment, sequence: u32, other: &Sequence) {
    tcp.set_sequence(sequence);
    if segment.has(tcp::ACK) {
        tcp.set_acknowledgement(other.backward(segment.acknowledgement));
    }
    if other.is_plain() {
        return;
    }
    // RFC 2018 §3: pairs of edges. At most four fit.
    let sack = tcp.options().find(|option| option.kind == OPTION_SACK);
    let Some((at, len)) = sack.map(|sack| (sack.at, sack.data.len())) else {
        return;
    };
    let from = at - tcp::HEADER_LEN;
    let options = tcp.option_bytes_mut();
    let edges = part_mut(options, from..from + len);
    for edge in edges.chunks_exact_mut(4) {
        if let Some(field) = edge.first_chunk_mut::<4>() {
            *field = other.backward(u32::from_be_bytes(*field)).to_be_bytes();
        }
    }
}
