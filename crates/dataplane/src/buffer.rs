//! A packet's buffer: an owned handle on a place of a [`Pool`], and what is
//! known about the packet in it.
//!
//! Whoever has a `Buffer` owns its bytes; it cannot be copied, so nobody can
//! free it twice, and one that is just dropped goes home by itself (by the
//! slow way: workers give theirs to a [`Cache`], many at once). What is
//! known about a packet lies in the handle and not in front of the bytes:
//! the handles of a batch lie side by side, and a packet that nobody looks
//! into costs no cache line of the pool.

#![allow(
    unsafe_code,
    reason = "a handle gives out the bytes of its place in the pool"
)]

mod batch;
mod cache;
mod pool;
mod slot;

use std::fmt;
use std::mem;
use std::ops::Range;

pub use batch::Batch;
pub use cache::{Cache, CacheCounters};
pub use pool::{Pool, PoolError};
use slot::{SLOT_HEAD_BYTES, Slot};

/// Bytes kept free in front of a packet, for the headers that ports and
/// links put there. With it, a frame with an Ethernet header begins on a
/// cache line: a small one is all in one line.
pub const HEADROOM: usize = 126;

/// Bytes kept free behind the longest packet, for helpers that lengthen.
pub const TAILROOM: usize = 192;

/// One packet and the room around it. 32 bytes.
pub struct Buffer {
    slot: Slot,
    time_nanos: u64,
    /// Bytes of the packet, from [`HEADROOM`] on.
    len: u32,
    /// Bytes that the capture had cut off behind the packet.
    cut_off: u32,
    /// Cache lines of the whole slot.
    lines: u16,
    /// Bytes of the link's header, which ends where the packet begins.
    link_len: u8,
    is_discarded: bool,
    mark: u32,
}

/// A cache line.
const LINE_BYTES: usize = 64;

impl Buffer {
    /// A handle with no packet in it.
    #[inline(always)]
    fn new(slot: Slot, lines: u16) -> Self {
        Self {
            slot,
            time_nanos: 0,
            len: 0,
            cut_off: 0,
            lines,
            link_len: 0,
            is_discarded: false,
            mark: 0,
        }
    }

    /// The packet, from its IP header on.
    #[inline]
    pub fn packet(&self) -> &[u8] {
        self.bytes().get(self.range()).unwrap_or_default()
    }

    /// The packet, to be changed in place.
    #[inline]
    pub fn packet_mut(&mut self) -> &mut [u8] {
        let range = self.range();
        self.bytes_mut().get_mut(range).unwrap_or_default()
    }

    /// Bytes of the packet, from its IP header on.
    #[inline]
    pub fn packet_len(&self) -> usize {
        self.len as usize
    }

    /// The packet and the room behind it, [`TAILROOM`] at least.
    #[inline]
    pub fn room_mut(&mut self) -> &mut [u8] {
        self.bytes_mut().get_mut(HEADROOM..).unwrap_or_default()
    }

    /// Says how long the packet is now; more than there is room for is cut.
    #[inline]
    pub fn set_len(&mut self, len_bytes: usize) {
        // A slot is shorter than 4 MiB.
        self.len = len_bytes.min(self.bytes_len().saturating_sub(HEADROOM)) as u32;
    }

    /// The header of the link that the packet came with, or goes with; empty
    /// where a port has none.
    #[inline]
    pub fn link(&self) -> &[u8] {
        let start = HEADROOM - usize::from(self.link_len);
        self.bytes().get(start..HEADROOM).unwrap_or_default()
    }

    /// Gives the packet a link header of this length, to be written by the
    /// caller; at most [`HEADROOM`] bytes. What was there before stays where
    /// both headers overlap.
    #[inline]
    pub fn link_mut(&mut self, len_bytes: usize) -> &mut [u8] {
        let len = len_bytes.min(HEADROOM);
        self.link_len = len as u8;
        self.bytes_mut()
            .get_mut(HEADROOM - len..HEADROOM)
            .unwrap_or_default()
    }

    /// Link header and packet in one piece: what is on the link.
    #[inline]
    pub fn frame(&self) -> &[u8] {
        let start = HEADROOM - usize::from(self.link_len);
        let end = HEADROOM + self.len as usize;
        self.bytes().get(start..end).unwrap_or_default()
    }

    /// Link header and packet, to be changed in place.
    #[inline]
    pub fn frame_mut(&mut self) -> &mut [u8] {
        let start = HEADROOM - usize::from(self.link_len);
        let end = HEADROOM + self.len as usize;
        self.bytes_mut().get_mut(start..end).unwrap_or_default()
    }

    /// Takes a whole frame, of which the first `link_len` bytes are the
    /// link's header. False, with nothing taken, when there is no room.
    #[inline]
    pub fn set_frame(&mut self, frame: &[u8], link_len: usize) -> bool {
        let has_room = link_len <= HEADROOM
            && link_len <= frame.len()
            && frame.len() - link_len + HEADROOM + TAILROOM <= self.bytes_len();
        let start = HEADROOM.saturating_sub(link_len);
        let end = start.saturating_add(frame.len());
        let place = self.bytes_mut().get_mut(start..end);
        let Some(place) = place.filter(|_| has_room) else {
            return false;
        };
        place.copy_from_slice(frame);
        self.link_len = link_len as u8;
        self.len = (frame.len() - link_len) as u32;
        true
    }

    /// Takes a frame of `len` bytes as [`Buffer::set_frame`] does, of which
    /// whole cache lines are given and copied; what is written behind its end
    /// means nothing.
    #[inline]
    pub(crate) fn set_lines(&mut self, lines: &[u8], len: usize, link_len: usize) -> bool {
        let has_room = link_len <= HEADROOM
            && link_len <= len
            && len - link_len + HEADROOM + TAILROOM <= self.bytes_len();
        let start = HEADROOM.saturating_sub(link_len);
        let place = self.bytes_mut().get_mut(start..start + lines.len());
        let Some(place) = place.filter(|_| has_room) else {
            return false;
        };
        let (to, _) = place.as_chunks_mut::<LINE_BYTES>();
        let (from, _) = lines.as_chunks::<LINE_BYTES>();
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
        self.link_len = link_len as u8;
        self.len = (len - link_len) as u32;
        true
    }

    /// When the packet was captured, nanoseconds since 1970; 0 from a
    /// port that keeps no time.
    pub fn time_nanos(&self) -> u64 {
        self.time_nanos
    }

    /// Says whether the packet goes nowhere: a port sends the others only.
    #[inline]
    pub fn set_discarded(&mut self, is_discarded: bool) {
        self.is_discarded = is_discarded;
    }

    /// Whether the packet goes nowhere.
    #[inline]
    pub fn is_discarded(&self) -> bool {
        self.is_discarded
    }

    /// What the node before has noted for the next one; 0 to begin with.
    #[inline]
    pub fn mark(&self) -> u32 {
        self.mark
    }

    /// Notes something for the next node: a next hop, a port, a reason.
    #[inline]
    pub fn set_mark(&mut self, mark: u32) {
        self.mark = mark;
    }

    /// Takes link header and time of another, for a packet that was held
    /// back and goes with that one.
    pub fn go_with(&mut self, other: &Self) {
        self.time_nanos = other.time_nanos;
        self.link_mut(other.link().len())
            .copy_from_slice(other.link());
    }

    /// Asks for the line where a frame's headers begin.
    #[inline(always)]
    pub fn prefetch(&self) {
        const FIRST: usize = (HEADROOM + SLOT_HEAD_BYTES) / LINE_BYTES * LINE_BYTES;
        self.slot.prefetch(FIRST);
    }

    /// How long the packet was on the link, with what the capture cut off.
    pub(crate) fn original_len(&self) -> usize {
        usize::from(self.link_len) + self.len as usize + self.cut_off as usize
    }

    /// Takes a frame of a capture: `link_len` bytes of the link's header,
    /// then the packet. False, with nothing taken, when there is no room.
    pub(crate) fn fill(&mut self, frame: &[u8], link_len: usize, cut_off: u32, nanos: u64) -> bool {
        let is_taken = self.set_frame(frame, link_len);
        if is_taken {
            (self.cut_off, self.time_nanos) = (cut_off, nanos);
            (self.is_discarded, self.mark) = (false, 0);
        }
        is_taken
    }

    /// The packet behind `len` zeroed bytes of header.
    pub(crate) fn behind_zeros(&mut self, len: usize) -> &[u8] {
        self.link_mut(len).fill(0);
        self.frame()
    }

    fn range(&self) -> Range<usize> {
        HEADROOM..HEADROOM + self.len as usize
    }

    #[inline(always)]
    fn bytes_len(&self) -> usize {
        usize::from(self.lines) * LINE_BYTES - SLOT_HEAD_BYTES
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        let len = self.bytes_len();
        // SAFETY: the slot is ours alone as long as this handle lives, its
        // pool has made it `lines` long, and its bytes are initialised.
        unsafe { std::slice::from_raw_parts(self.slot.bytes(), len) }
    }

    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.bytes_len();
        // SAFETY: as for `bytes`; the handle is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.slot.bytes(), len) }
    }

    /// The slot, for who sends it home.
    #[inline(always)]
    fn into_slot(self) -> Slot {
        let slot = self.slot;
        mem::forget(self);
        slot
    }
}

/// All bytes, headroom included: for a library that fills many buffers in
/// one call.
impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

/// See [`AsMut`].
impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("link", &self.link())
            .field("packet", &self.packet())
            .finish_non_exhaustive()
    }
}

impl Drop for Buffer {
    /// Home by the slow way: an atomic operation or two for this one buffer.
    fn drop(&mut self) {
        pool::send_home(self.slot);
    }
}

#[cfg(test)]
mod tests;
