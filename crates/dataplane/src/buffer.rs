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
mod moves;
mod pool;
pub(crate) mod ring;
mod slot;

use std::fmt;
use std::hint;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr;

pub use batch::Batch;
pub use cache::{Cache, CacheCounters};
pub use pool::{Pool, PoolError};
use slot::{Captured, OwnSlot, SLOT_HEAD_BYTES};

/// Bytes kept free in front of a packet, for the headers that ports and
/// links put there. With it, a frame with an Ethernet header begins on a
/// cache line: a small one is all in one line.
pub const HEADROOM: usize = 110;

/// Bytes kept free behind the longest packet, for helpers that lengthen.
pub const TAILROOM: usize = 192;

/// One packet and the room around it. 16 bytes.
#[repr(C)]
pub struct Buffer {
    slot: OwnSlot,
    /// From the lowest bit: bytes of the packet from [`HEADROOM`] on (22),
    /// [`DISCARDED`], [`CAPTURED`], bytes of the link's header, which ends
    /// where the packet begins (8).
    about: u32,
    mark: u32,
}

/// The bits of a packet's length: a slot is shorter than 4 MiB.
const LEN: u32 = (1 << LEN_BITS) - 1;
const LEN_BITS: u32 = 22;
/// The packet goes nowhere.
const DISCARDED: u32 = 1 << LEN_BITS;
/// The slot's head says when the packet was captured, and what was cut off.
const CAPTURED: u32 = 1 << (LEN_BITS + 1);
const LINK_SHIFT: u32 = LEN_BITS + 2;

/// A cache line.
const LINE_BYTES: usize = 64;

impl Buffer {
    /// A handle with no packet in it.
    #[inline(always)]
    fn new(slot: OwnSlot) -> Self {
        Self {
            slot,
            about: 0,
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
        (self.about & LEN) as usize
    }

    /// The packet and the room behind it, [`TAILROOM`] at least.
    #[inline]
    pub fn room_mut(&mut self) -> &mut [u8] {
        self.bytes_mut().get_mut(HEADROOM..).unwrap_or_default()
    }

    /// Says how long the packet is now; more than there is room for is cut.
    #[inline]
    pub fn set_len(&mut self, len_bytes: usize) {
        let len = len_bytes.min(self.bytes_len().saturating_sub(HEADROOM));
        self.about = (self.about & !LEN) | len as u32;
    }

    /// The header of the link that the packet came with, or goes with; empty
    /// where a port has none.
    #[inline]
    pub fn link(&self) -> &[u8] {
        let start = HEADROOM - self.link_len();
        self.bytes().get(start..HEADROOM).unwrap_or_default()
    }

    /// Gives the packet a link header of this length, to be written by the
    /// caller; at most [`HEADROOM`] bytes. What was there before stays where
    /// both headers overlap.
    #[inline]
    pub fn link_mut(&mut self, len_bytes: usize) -> &mut [u8] {
        let len = len_bytes.min(HEADROOM);
        self.set_link_len(len);
        self.bytes_mut()
            .get_mut(HEADROOM - len..HEADROOM)
            .unwrap_or_default()
    }

    /// Link header and packet in one piece: what is on the link.
    #[inline]
    pub fn frame(&self) -> &[u8] {
        let start = HEADROOM - self.link_len();
        let end = HEADROOM + self.packet_len();
        self.bytes().get(start..end).unwrap_or_default()
    }

    /// Link header and packet, to be changed in place.
    #[inline]
    pub fn frame_mut(&mut self) -> &mut [u8] {
        let start = HEADROOM - self.link_len();
        let end = HEADROOM + self.packet_len();
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
        self.set_lens(link_len, frame.len() - link_len);
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
        self.set_lens(link_len, len - link_len);
        true
    }

    /// When the packet was captured, nanoseconds since 1970; 0 from a
    /// port that keeps no time.
    pub fn time_nanos(&self) -> u64 {
        self.captured().time_nanos
    }

    /// Says whether the packet goes nowhere: a port sends the others only.
    #[inline]
    pub fn set_discarded(&mut self, is_discarded: bool) {
        self.about = (self.about & !DISCARDED) | (u32::from(is_discarded) * DISCARDED);
    }

    /// Whether the packet goes nowhere.
    #[inline]
    pub fn is_discarded(&self) -> bool {
        self.about & DISCARDED != 0
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
        self.set_captured(Captured {
            time_nanos: other.time_nanos(),
            cut_off: 0,
        });
        self.link_mut(other.link().len())
            .copy_from_slice(other.link());
    }

    /// Asks for the line where a frame's headers begin.
    #[inline(always)]
    pub fn prefetch(&self) {
        const FIRST: usize = (HEADROOM + SLOT_HEAD_BYTES) / LINE_BYTES * LINE_BYTES;
        self.slot.slot().prefetch(FIRST);
    }

    /// How long the packet was on the link, with what the capture cut off.
    pub(crate) fn original_len(&self) -> usize {
        self.frame().len() + self.captured().cut_off as usize
    }

    /// Takes a frame of a capture: `link_len` bytes of the link's header,
    /// then the packet. False, with nothing taken, when there is no room.
    pub(crate) fn fill(&mut self, frame: &[u8], link_len: usize, cut_off: u32, nanos: u64) -> bool {
        let is_taken = self.set_frame(frame, link_len);
        if is_taken {
            self.set_captured(Captured {
                time_nanos: nanos,
                cut_off,
            });
        }
        is_taken
    }

    /// The packet behind `len` zeroed bytes of header.
    pub(crate) fn behind_zeros(&mut self, len: usize) -> &[u8] {
        self.link_mut(len).fill(0);
        self.frame()
    }

    fn range(&self) -> Range<usize> {
        HEADROOM..HEADROOM + self.packet_len()
    }

    #[inline(always)]
    fn link_len(&self) -> usize {
        (self.about >> LINK_SHIFT) as usize
    }

    /// At most [`HEADROOM`].
    #[inline(always)]
    fn set_link_len(&mut self, len: usize) {
        self.about = (self.about & !(!0 << LINK_SHIFT)) | ((len as u32) << LINK_SHIFT);
    }

    /// Both of what has room.
    #[inline(always)]
    fn set_lens(&mut self, link_len: usize, len: usize) {
        let flags = self.about & (DISCARDED | CAPTURED);
        self.about = flags | len as u32 | ((link_len as u32) << LINK_SHIFT);
    }

    /// What a capture says of the packet; nothing, if it is of none.
    fn captured(&self) -> Captured {
        if self.about & CAPTURED == 0 {
            return Captured::default();
        }
        // SAFETY: the slot is ours as long as this handle lives.
        unsafe { self.slot.slot().captured() }
    }

    /// The slot, for who sends it home.
    #[inline(always)]
    fn into_slot(self) -> OwnSlot {
        let buffer = ManuallyDrop::new(self);
        // SAFETY: read once, and the handle is not dropped.
        unsafe { ptr::read(&buffer.slot) }
    }

    fn set_captured(&mut self, captured: Captured) {
        self.about |= CAPTURED;
        // SAFETY: the slot is ours alone; the handle is borrowed alone.
        unsafe { self.slot.slot().set_captured(captured) };
    }

    #[inline(always)]
    fn bytes_len(&self) -> usize {
        let len = self.slot.lines() * LINE_BYTES - SLOT_HEAD_BYTES;
        // SAFETY: a pool makes no slot shorter than that (`slot_lines`).
        unsafe { hint::assert_unchecked(len >= HEADROOM + TAILROOM) };
        len
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        let len = self.bytes_len();
        // SAFETY: the slot is ours alone as long as this handle lives, its
        // pool has made it so long, and its bytes are initialised.
        unsafe { std::slice::from_raw_parts(self.slot.slot().bytes(), len) }
    }

    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.bytes_len();
        // SAFETY: as for `bytes`; the handle is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.slot.slot().bytes(), len) }
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
        // SAFETY: read once: the handle ends here, and a slot has no drop.
        pool::free_slow(unsafe { ptr::read(&self.slot) });
    }
}

#[cfg(test)]
mod tests;
