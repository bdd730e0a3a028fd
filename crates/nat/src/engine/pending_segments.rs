//! TCP segments whose flow's windows are moved on a little later.
//!
//! For calls with one packet. Where each call followed TCP itself, what the
//! processor could do ahead of a flow's line ended at the branch on the
//! protocol, which it guesses wrong half the time, and at twice as many
//! instructions. So a segment that only moves numbers on is written down
//! here without a branch, and followed together with others: when there are
//! [`MOST`], when time passes, or before anything that could end or make a
//! flow. Within one tick no flow's end depends on them.

use packet::protocol;

use super::Nat;
use super::translate::follow_short;
use crate::flow::Flow;
use crate::parse::TCP_LEN;
use crate::tcp::{self, CHANGES, Seen};

/// Segments kept at most.
const MOST: usize = 16;

/// What of a segment is followed, as it stood in its packet.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(8))]
struct Segment {
    name: u32,
    /// IPv4's total length.
    total_len: [u8; 2],
    out: bool,
    /// TCP from its sequence number on.
    numbers: [u8; 16],
}

/// See the module.
#[derive(Debug)]
pub struct PendingSegments {
    segments: [Segment; MOST],
    len: usize,
}

impl Default for PendingSegments {
    fn default() -> Self {
        let segments = [Segment {
            name: 0,
            out: false,
            total_len: [0; 2],
            numbers: [0; 16],
        }; MOST];
        Self { segments, len: 0 }
    }
}

/// What is to be done after a segment was noted.
pub enum Now {
    Nothing,
    /// Follow those that were noted.
    CatchUp,
    /// This one was not noted: it may change its flow's state.
    Follow,
}

// What tells the two apart.
const _: () = assert!(protocol::TCP >> 1 & 1 == 1 && protocol::UDP >> 1 & 1 == 0);
const _: () = assert!(protocol::TCP >> 2 & 4 == 0 && CHANGES >> (protocol::UDP >> 2 & 4) == 0);

impl PendingSegments {
    /// Notes a packet that [`crate::parse::short`] has taken, if it is TCP;
    /// `protocol` is that or UDP.
    #[inline(always)]
    pub fn note<const OUT: bool>(&mut self, name: u32, bytes: &[u8], protocol: u8) -> Now {
        // Shorter ones are UDP.
        let Some(header) = bytes.first_chunk::<TCP_LEN>() else {
            return Now::Nothing;
        };
        let [_, _, l0, l1, ..] = *header;
        let (_, numbers) = header.split_last_chunk::<16>().unwrap_or((&[], &[0; 16]));
        if let Some(place) = self.segments.get_mut(self.len) {
            let [.., flags, _, _, _, _, _, _] = *numbers;
            *place = Segment {
                name,
                total_len: [l0, l1],
                out: OUT,
                numbers: *numbers,
            };
            // Shifted out for UDP: of this the compiler makes no branch.
            if (flags & CHANGES) >> (protocol >> 2 & 4) != 0 {
                return Now::Follow;
            }
            self.len += usize::from(protocol >> 1 & 1);
        }
        if self.len == MOST {
            Now::CatchUp
        } else {
            Now::Nothing
        }
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Brings a copy of a flow up to date.
    pub fn apply(&self, name: u32, flow: &mut Flow) {
        for segment in self.segments.iter().take(self.len) {
            if segment.name == name {
                segment.follow(flow);
            }
        }
    }
}

impl Segment {
    #[inline(always)]
    fn follow(&self, flow: &mut Flow) {
        let len = usize::from(u16::from_be_bytes(self.total_len)).wrapping_sub(20);
        let Some(numbers) = self.numbers.first_chunk() else {
            return;
        };
        let seen = Seen::of(numbers, len);
        if self.out {
            tcp::advance::<true>(flow, &seen);
        } else {
            tcp::advance::<false>(flow, &seen);
        }
    }
}

impl Nat {
    /// Follows what was noted.
    #[inline(always)]
    pub(super) fn catch_up_calls(&mut self) {
        if !self.pending_segments.is_empty() {
            self.catch_up_some();
        }
    }

    #[inline(never)]
    fn catch_up_some(&mut self) {
        let len = std::mem::take(&mut self.pending_segments.len);
        let mut changed = [(0, 0); MOST];
        let mut changes = 0;
        for segment in self.pending_segments.segments.iter().take(len) {
            let Some(flow) = self.table.get_mut(segment.name) else {
                continue;
            };
            let class = flow.class;
            segment.follow(flow);
            if (flow.class != class)
                && let Some(place) = changed.get_mut(changes)
            {
                *place = (segment.name, class);
                changes += 1;
            }
        }
        for (name, class) in changed.into_iter().take(changes) {
            self.turned(name, class);
        }
    }

    /// Follows a segment at once, after those before it.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_now<const OUT: bool>(&mut self, name: u32, bytes: &[u8]) {
        self.catch_up_calls();
        let Some(flow) = self.table.get_mut(name) else {
            return;
        };
        let class = flow.class;
        follow_short::<OUT>(flow, bytes);
        if flow.class != class {
            self.turned(name, class);
        }
    }
}
