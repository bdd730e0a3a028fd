//! TCP's state as a translator sees it: from flags, sequence numbers and
//! windows of both directions (RFC 5382 §5, RFC 7857 §2).
//!
//! For the engine. Sequence numbers are the inside's: a helper that shifts
//! them does so after an outgoing packet was seen here, and before an
//! incoming one is.

use std::hint::select_unpredictable;

use packet::tcp::{ACK, FIN, RST, SYN};

use crate::State;
use crate::flow::{Flow, flag};

/// How far one side is.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Side {
    /// Behind the last byte it sent.
    pub end: u32,
    /// What the other side acknowledged of it.
    pub acked: u32,
    /// How far the other side lets it send: acknowledgement and window.
    pub limit: u32,
}

impl Side {
    pub const UNKNOWN: Self = Self {
        end: 0,
        acked: 0,
        limit: 0,
    };
}

/// Window scale of a side whose SYN was not seen: the most (RFC 7323 §2.3).
pub const MOST_SCALE: u8 = 14;

/// What of a segment counts here.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub flags: u8,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub window: u16,
    /// Bytes of data.
    pub len: u32,
    /// Window scale of a SYN, if it has one.
    pub scale: u8,
}

impl Seen {
    /// From a TCP header; `len` is the segment's length by the IP header.
    /// Nothing is read beyond `segment`.
    #[inline]
    pub fn read(segment: &[u8], len: usize) -> Option<Self> {
        let (_, rest) = segment.first_chunk::<20>()?.split_first_chunk::<4>()?;
        let seen = Self::of(rest.first_chunk::<12>()?, len);
        let scale = if seen.flags & SYN != 0 {
            window_scale(segment)
        } else {
            0
        };
        Some(Self { scale, ..seen })
    }

    /// From a header's bytes behind the ports up to the window; without the
    /// window scale.
    #[inline(always)]
    pub fn of(numbers: &[u8; 12], len: usize) -> Self {
        let [s0, s1, s2, s3, a0, a1, a2, a3, offset, flags, w0, w1] = *numbers;
        let header_len = usize::from(offset >> 4) * 4;
        Self {
            flags,
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            acknowledgement: u32::from_be_bytes([a0, a1, a2, a3]),
            window: u16::from_be_bytes([w0, w1]),
            len: len.saturating_sub(header_len) as u32,
            scale: 0,
        }
    }
}

#[cold]
fn window_scale(segment: &[u8]) -> u8 {
    let Ok(tcp) = packet::Tcp::new(segment) else {
        return 0;
    };
    let scale = tcp
        .options()
        .find(|option| option.kind == packet::tcp::OPTION_WINDOW_SCALE);
    let scale = scale.and_then(|option| option.data.first().copied());
    scale.map_or(0, |scale| scale.min(MOST_SCALE))
}

/// Flags of a segment that may change its flow's state; any other only
/// moves numbers on.
pub const CHANGES: u8 = SYN | FIN | RST;

/// Whether `a` comes after `b` in sequence space (RFC 9293 §3.4).
#[inline(always)]
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b)).cast_signed() > 0
}

/// The flags of one direction, and of the other.
struct Bits {
    fin: u32,
    end: u32,
    /// The sender's data was acknowledged.
    acked: u32,
    /// The receiver's data was acknowledged (by the sender).
    acks: u32,
    other_end: u32,
}

const OUT: Bits = Bits {
    fin: flag::FIN_OUT,
    end: flag::END_OUT,
    acked: flag::ACKED_OUT,
    acks: flag::ACKED_IN,
    other_end: flag::END_IN,
};
const IN: Bits = Bits {
    fin: flag::FIN_IN,
    end: flag::END_IN,
    acked: flag::ACKED_IN,
    acks: flag::ACKED_OUT,
    other_end: flag::END_OUT,
};

/// Takes a segment into account.
#[inline]
pub fn track<const FROM_INSIDE: bool>(flow: &mut Flow, seen: &Seen) {
    if seen.flags & CHANGES != 0 {
        turn::<FROM_INSIDE>(flow, seen);
    } else {
        advance::<FROM_INSIDE>(flow, seen);
    }
}

/// Takes a packet that [`crate::parse::short`] has taken into account, from its
/// IPv4 header on.
#[inline(always)]
pub fn track_short<const FROM_INSIDE: bool>(flow: &mut Flow, bytes: &[u8]) {
    let Some((ip, tcp)) = bytes.split_first_chunk::<20>() else {
        return;
    };
    let [_, _, l0, l1, ..] = *ip;
    let len = usize::from(u16::from_be_bytes([l0, l1])).wrapping_sub(20);
    let numbers = tcp.get(4..20).and_then(|numbers| numbers.first_chunk());
    let Some(numbers) = numbers else {
        return;
    };
    let seen = Seen::of(numbers, len);
    if seen.flags & CHANGES != 0 {
        turn_short::<FROM_INSIDE>(flow, tcp, len);
    } else {
        advance::<FROM_INSIDE>(flow, &seen);
    }
}

#[cold]
#[inline(never)]
fn turn_short<const FROM_INSIDE: bool>(flow: &mut Flow, tcp: &[u8], len: usize) {
    if let Some(segment) = tcp.get(..len)
        && let Some(seen) = Seen::read(segment, len)
    {
        turn::<FROM_INSIDE>(flow, &seen);
    }
}

/// A segment that moves numbers on, or acknowledges them.
#[inline(always)]
pub fn advance<const FROM_INSIDE: bool>(flow: &mut Flow, seen: &Seen) {
    let bits = if FROM_INSIDE { &OUT } else { &IN };
    let scales = flow.scales();
    let [inside, remote] = &mut flow.sides;
    let (from, to) = if FROM_INSIDE {
        (inside, remote)
    } else {
        (remote, inside)
    };
    let end = seen.sequence.wrapping_add(seen.len);
    // How far a flow is differs from flow to flow: a branch on it would be
    // guessed wrong, and its line may be on its way still. So branches are
    // for what hardly ever is.
    let spoke = flow.flags & bits.end != 0;
    let measured = spoke & (flow.flags & bits.acked != 0);
    let beyond = after(end, from.limit) & after(end, from.end) & (seen.len > 0);
    let outside = beyond | after(from.acked.wrapping_sub(1 << 30), end);
    if select_unpredictable(measured, outside, false) {
        // Outside its window: translated, but nothing is learned.
        return;
    }
    from.end = select_unpredictable(!spoke | after(end, from.end), end, from.end);
    flow.flags |= bits.end;
    if seen.flags & ACK == 0 {
        return;
    }
    let known = flow.flags & bits.other_end != 0;
    if select_unpredictable(known, after(seen.acknowledgement, to.end), false) {
        // An acknowledgement of what was never sent (RFC 5961 §5.2).
        return;
    }
    let scale = if FROM_INSIDE {
        scales & 0x0f
    } else {
        scales >> 4
    };
    let limit = seen
        .acknowledgement
        .wrapping_add(u32::from(seen.window) << scale);
    let first = flow.flags & bits.acks == 0;
    let newer = first | after(seen.acknowledgement, to.acked);
    to.acked = select_unpredictable(newer, seen.acknowledgement, to.acked);
    to.limit = select_unpredictable(first | after(limit, to.limit), limit, to.limit);
    flow.flags |= bits.acks;
    let both = flow.has(flag::ACKED_OUT | flag::ACKED_IN);
    let opened = both & (flow.class == State::TcpOpening as u8);
    flow.class = select_unpredictable(opened, State::TcpEstablished as u8, flow.class);
    if flow.class == State::TcpReset as u8 {
        // Traffic after a reset: it was not one (RFC 7857 §2.2).
        flow.class = state_without_reset(flow) as u8;
    }
}

/// A segment that may change the state: SYN, FIN or RST.
#[cold]
#[inline(never)]
fn turn<const FROM_INSIDE: bool>(flow: &mut Flow, seen: &Seen) {
    let bits = if FROM_INSIDE { &OUT } else { &IN };
    if seen.flags & RST != 0 {
        if is_unseen(flow) {
            begin_anew::<FROM_INSIDE>(flow, seen);
        }
        if reset_is_sound::<FROM_INSIDE>(flow, seen) {
            flow.class = State::TcpReset as u8;
        }
        return;
    }
    if seen.flags & SYN != 0 {
        let over = matches!(flow.state(), State::TcpClosed | State::TcpReset);
        if over && seen.flags & ACK == 0 {
            // The same endpoints again (RFC 9293 §3.6.1): from the start.
            forget(flow);
        }
        if flow.class != State::TcpOpening as u8 {
            // A SYN within a connection changes nothing (RFC 5961 §4).
            return;
        }
        let scale = seen.scale & 0x0f;
        flow.set_scales(if FROM_INSIDE {
            flow.scales() & 0xf0 | scale
        } else {
            flow.scales() & 0x0f | scale << 4
        });
    } else if !in_window::<FROM_INSIDE>(flow, seen) {
        return;
    }
    let fin = seen.flags & FIN != 0;
    let counted = u32::from(seen.flags & SYN != 0) + u32::from(fin);
    let plain = Seen {
        flags: seen.flags & ACK,
        len: seen.len.wrapping_add(counted),
        ..*seen
    };
    advance::<FROM_INSIDE>(flow, &plain);
    if fin {
        flow.flags |= bits.fin;
        let state = state_without_reset(flow);
        if flow.class != State::TcpReset as u8 {
            flow.class = state as u8;
        }
    }
}

/// The state that flags say.
fn state_without_reset(flow: &Flow) -> State {
    // One whose numbers began anew was established before.
    let was_open = matches!(flow.state(), State::TcpEstablished | State::TcpHalfClosed);
    let is_open = was_open || flow.has(flag::ACKED_OUT | flag::ACKED_IN);
    match flow.flags & (flag::FIN_OUT | flag::FIN_IN) {
        0 if is_open => State::TcpEstablished,
        0 => State::TcpOpening,
        both if both == flag::FIN_OUT | flag::FIN_IN => State::TcpClosed,
        // A FIN before the handshake was done keeps the short timeout.
        _ if !is_open => State::TcpOpening,
        _ => State::TcpHalfClosed,
    }
}

/// Whether nothing of an established connection was seen: another engine saw
/// it. Its first segment is believed, as in [`begin_anew`].
fn is_unseen(flow: &Flow) -> bool {
    let seen = flag::END_OUT | flag::END_IN | flag::ACKED_OUT | flag::ACKED_IN;
    flow.class == State::TcpEstablished as u8 && flow.flags & seen == 0
}

/// Whether a connection was reset before its handshake was done.
pub fn is_refused(flow: &Flow) -> bool {
    flow.class == State::TcpReset as u8 && !flow.has(flag::ACKED_OUT | flag::ACKED_IN)
}

/// Whether a connection that begins with a sequence number lies behind what
/// the inside sent in a flow, as far as that is known.
pub fn begins_behind(flow: &Flow, syn: u32) -> bool {
    let [inside, _] = &flow.sides;
    flow.has(flag::END_OUT) && after(syn, inside.end)
}

/// A connection's numbers begin anew with a segment that may change its
/// state, and is taken into account afterwards: those between were not seen
/// here. A FIN or reset is believed; what follows is, too, until both sides
/// have spoken and acknowledged again, so that one that was forged does not
/// shut the flow's own segments out. The state stays, and the window scales.
pub fn begin_anew<const FROM_INSIDE: bool>(flow: &mut Flow, seen: &Seen) {
    forget_numbers(flow);
    if seen.flags & SYN != 0 {
        // Within a connection it changes nothing, and the reset that answers
        // it has other numbers (RFC 5961 §4).
        return;
    }
    let bits = if FROM_INSIDE { &OUT } else { &IN };
    let [inside, remote] = &mut flow.sides;
    let from = if FROM_INSIDE { inside } else { remote };
    from.end = seen.sequence;
    flow.flags |= bits.end;
}

fn forget_numbers(flow: &mut Flow) {
    flow.flags &= !(flag::END_OUT | flag::END_IN | flag::ACKED_OUT | flag::ACKED_IN);
    flow.sides = [Side::UNKNOWN; 2];
}

fn forget(flow: &mut Flow) {
    forget_numbers(flow);
    flow.flags &= !(flag::FIN_OUT | flag::FIN_IN);
    flow.set_scales(MOST_SCALE << 4 | MOST_SCALE);
    flow.class = State::TcpOpening as u8;
}

/// Whether a segment lies in its sender's window, as far as that is known.
fn in_window<const FROM_INSIDE: bool>(flow: &Flow, seen: &Seen) -> bool {
    let bits = if FROM_INSIDE { &OUT } else { &IN };
    let [inside, remote] = &flow.sides;
    let from = if FROM_INSIDE { inside } else { remote };
    if flow.flags & bits.acked == 0 {
        return true;
    }
    let most = if after(from.limit, from.end) {
        from.limit
    } else {
        from.end
    };
    !after(from.acked, seen.sequence) && !after(seen.sequence, most)
}

/// Whether a reset is one its receiver would take (RFC 5961 §3, RFC 9293
/// §3.10.7.3): in the window, or the answer to a SYN.
fn reset_is_sound<const FROM_INSIDE: bool>(flow: &Flow, seen: &Seen) -> bool {
    let bits = if FROM_INSIDE { &OUT } else { &IN };
    let [inside, remote] = &flow.sides;
    let (from, to) = if FROM_INSIDE {
        (inside, remote)
    } else {
        (remote, inside)
    };
    if flow.flags & bits.acked != 0 {
        return in_window::<FROM_INSIDE>(flow, seen);
    }
    if flow.flags & bits.end != 0 {
        // It spoke already and was not answered yet.
        return seen.sequence == from.end || seen.sequence == from.acked;
    }
    // It has not spoken: the reset must acknowledge the other's SYN.
    seen.flags & ACK != 0 && flow.flags & bits.other_end != 0 && seen.acknowledgement == to.end
}

#[cfg(test)]
mod tests;
