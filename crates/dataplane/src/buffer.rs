//! A packet's buffer: an owned handle on a slot of a [`Pool`], and what is
//! known about the packet in it. The one handle of a packet, from the port
//! that it comes by to the port that it leaves by.
//!
//! Whoever has a `Buffer` owns its bytes; it cannot be copied, so nobody can
//! free it twice, and one that is just dropped goes home by itself (by the
//! slow way: workers give theirs to a [`Cache`], many at once). What is
//! known about a packet lies in the handle and not in front of the bytes:
//! the handles of a batch lie side by side, and a packet that nobody looks
//! into costs no cache line of the pool. The handle also says where the
//! packet begins, so a header that is put on or taken off moves the
//! beginning, and no byte behind it.

#![allow(
    unsafe_code,
    reason = "a handle gives out the bytes of its place in the pool"
)]

mod batch;
mod cache;
mod moves;
mod numbers;
mod pool;
pub(crate) mod ring;
mod slot;
mod word;

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;

pub use batch::Batch;
pub use cache::{Cache, CacheCounters};
pub use pool::{Pool, PoolError};
use slot::{Captured, OwnSlot};
use word::{MOST_BYTES, MOST_START, Word};

pub(crate) use word::MOST_LINK;

/// Where a packet begins in its slot, behind the link's header that a port
/// puts in front of it. With it, a frame with an Ethernet header begins 256
/// bytes into the slot: on a cache line, and where a kernel's driver puts
/// what it receives by XDP (`XDP_PACKET_HEADROOM`).
pub const HEADROOM: usize = 256 + 14;

/// Bytes kept free behind the longest packet, for helpers that lengthen.
pub const TAILROOM: usize = 192;

/// One packet and the room around it. 16 bytes.
///
/// The frame, link header and packet, lies in the slot's room, and the link's
/// header in the frame: every method keeps that so.
#[repr(C)]
pub struct Buffer {
    slot: OwnSlot,
    word: Word,
}

/// A header was to go in front of a packet that begins too near to its
/// slot's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a header of {wanted} bytes has no room in front of a packet: {free} are free there")]
pub struct NoHeadroom {
    /// Bytes of the header.
    pub wanted: usize,
    /// Bytes in front of the packet.
    pub free: usize,
}

/// A cache line.
const LINE_BYTES: usize = 64;

impl Buffer {
    /// A handle with no packet in it; the word is the pool's empty one.
    #[inline(always)]
    fn new(slot: OwnSlot, empty: Word) -> Self {
        Self { slot, word: empty }
    }

    /// The packet, from its IP header on.
    #[inline(always)]
    pub fn packet(&self) -> &[u8] {
        let (start, link) = (self.word.start(), self.word.link());
        // SAFETY: the frame lies in the room, its link's header in the frame.
        unsafe { self.part(start + link, self.word.len() - link) }
    }

    /// The packet, to be changed in place.
    #[inline(always)]
    pub fn packet_mut(&mut self) -> &mut [u8] {
        let (start, link) = (self.word.start(), self.word.link());
        // SAFETY: the frame lies in the room, its link's header in the frame.
        unsafe { self.part_mut(start + link, self.word.len() - link) }
    }

    /// Bytes of the packet, from its IP header on.
    #[inline(always)]
    pub fn packet_len(&self) -> usize {
        self.word.len() - self.word.link()
    }

    /// The packet and the room behind it.
    #[inline]
    pub fn room_mut(&mut self) -> &mut [u8] {
        let start = self.word.start() + self.word.link();
        // SAFETY: the packet begins in the room.
        unsafe { self.part_mut(start, self.word.room() - start) }
    }

    /// Says how long the packet is now; more than there is room for is cut.
    #[inline(always)]
    pub fn set_len(&mut self, len_bytes: usize) {
        let (start, link) = (self.word.start(), self.word.link());
        let len = len_bytes.min(self.word.room() - start - link);
        self.word = self.word.with_frame(start, link + len, link);
    }

    /// The header of the link that the packet came with, or goes with; empty
    /// where a port has none.
    #[inline]
    pub fn link(&self) -> &[u8] {
        // SAFETY: the link's header lies in the frame, and that in the room.
        unsafe { self.part(self.word.start(), self.word.link()) }
    }

    /// Gives the packet a link header of this length, to be written by the
    /// caller, instead of the one it has; at most 63 bytes, and what is free
    /// in front of the packet. What was there before stays where both headers
    /// overlap.
    #[inline]
    pub fn link_mut(&mut self, len_bytes: usize) -> &mut [u8] {
        let packet = self.word.start() + self.word.link();
        let len = len_bytes.min(MOST_LINK).min(packet);
        let frame_len = self.packet_len() + len;
        self.word = self.word.with_frame(packet - len, frame_len, len);
        // SAFETY: as for `link`.
        unsafe { self.part_mut(packet - len, len) }
    }

    /// Link header and packet in one piece: what is on the link.
    #[inline(always)]
    pub fn frame(&self) -> &[u8] {
        // SAFETY: the frame lies in the room.
        unsafe { self.part(self.word.start(), self.word.len()) }
    }

    /// Link header and packet, to be changed in place.
    #[inline(always)]
    pub fn frame_mut(&mut self) -> &mut [u8] {
        // SAFETY: the frame lies in the room.
        unsafe { self.part_mut(self.word.start(), self.word.len()) }
    }

    /// Bytes of the frame.
    #[inline(always)]
    pub fn frame_len(&self) -> usize {
        self.word.len()
    }

    /// Where in its slot the frame begins: so many bytes are free in front of
    /// it.
    #[inline(always)]
    pub fn headroom(&self) -> usize {
        self.word.start()
    }

    /// Takes bytes off the frame's front, first the link's header. False,
    /// with nothing done, where it has fewer, or begins too far back then.
    #[inline(always)]
    #[must_use]
    pub fn pull_head(&mut self, bytes: usize) -> bool {
        let (start, len) = (self.word.start() + bytes, self.word.len());
        if bytes > len || start > MOST_START {
            return false;
        }
        let link = self.word.link().saturating_sub(bytes);
        self.word = self.word.with_frame(start, len - bytes, link);
        true
    }

    /// Takes a header of the link off the front and what is behind `len`
    /// bytes of packet off the end. False, with nothing done, where the frame
    /// is shorter than both.
    #[inline(always)]
    #[must_use]
    pub(crate) fn pull_to_packet(&mut self, head: usize, len: usize) -> bool {
        let start = self.word.start() + head;
        if head + len > self.word.len() || start > MOST_START {
            return false;
        }
        self.word = self.word.with_frame(start, len, 0);
        true
    }

    /// Puts room for a header of this length in front of the frame, to be
    /// written by the caller. All of it is packet then; where the header is
    /// the link's, [`Buffer::set_link_len`] says so.
    #[inline(always)]
    pub fn push_head(&mut self, bytes: usize) -> Result<&mut [u8], NoHeadroom> {
        let free = self.word.start();
        let Some(start) = free.checked_sub(bytes) else {
            return Err(NoHeadroom {
                wanted: bytes,
                free,
            });
        };
        self.word = self.word.with_frame(start, self.word.len() + bytes, 0);
        // SAFETY: it is the front of the frame.
        Ok(unsafe { self.part_mut(start, bytes) })
    }

    /// Puts a header of the link in front of the frame.
    #[inline(always)]
    pub(crate) fn push_link<const N: usize>(&mut self, header: &[u8; N]) -> Result<(), NoHeadroom> {
        const { assert!(N <= MOST_LINK) };
        self.push_head(N)?.copy_from_slice(header);
        self.set_link_len(N);
        Ok(())
    }

    /// Says how many of the frame's first bytes are the link's header, 63 at
    /// most; the packet is what is behind them.
    #[inline(always)]
    pub fn set_link_len(&mut self, bytes: usize) {
        let (start, len) = (self.word.start(), self.word.len());
        debug_assert!(bytes <= len && bytes <= MOST_LINK);
        let link = bytes.min(len).min(MOST_LINK);
        self.word = self.word.with_frame(start, len, link);
    }

    /// Has a header of the link of `LINK` bytes written in front of the
    /// frame, and what changes in the frame's first bytes: `N` in all. False,
    /// with nothing done, where there is no room, the frame is shorter, or
    /// `write` says so.
    #[inline(always)]
    pub(crate) fn link_in_front<const LINK: usize, const N: usize>(
        &mut self,
        write: impl FnOnce(&mut [u8; N]) -> bool,
    ) -> bool {
        let Some(start) = self.word.start().checked_sub(LINK) else {
            return false;
        };
        if self.word.len() + LINK < N {
            return false;
        }
        // SAFETY: what is in front of the frame is in the room, and what is of
        // it is in the frame, by the two comparisons.
        let part = unsafe { self.part_mut(start, N) };
        let is_written = part.first_chunk_mut().is_some_and(write);
        if is_written {
            self.word = self.word.with_link_in_front::<LINK>();
        }
        is_written
    }

    /// Takes a whole frame, of which the first `link_len` bytes are the
    /// link's header. False, with nothing taken, when there is no room.
    #[inline]
    pub fn set_frame(&mut self, frame: &[u8], link_len: usize) -> bool {
        if !self.begins(frame.len(), link_len) {
            return false;
        }
        self.frame_mut().copy_from_slice(frame);
        true
    }

    /// Takes a frame of `len` bytes as [`Buffer::set_frame`] does, of which
    /// whole cache lines are given and copied; what is written behind its end
    /// means nothing.
    #[inline]
    pub(crate) fn set_lines(&mut self, lines: &[u8], len: usize, link_len: usize) -> bool {
        if lines.len() > len + TAILROOM || !self.begins(len, link_len) {
            return false;
        }
        // SAFETY: behind the packet is as much room as `begins` leaves.
        let to = unsafe { self.part_mut(self.word.start(), lines.len()) };
        let (to, _) = to.as_chunks_mut::<LINE_BYTES>();
        let (from, _) = lines.as_chunks::<LINE_BYTES>();
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
        true
    }

    /// Room for a packet of this length, at the usual place; `None`, with
    /// nothing done, where there is none.
    pub(crate) fn begin(&mut self, len: usize) -> Option<&mut [u8]> {
        self.begins(len, 0).then(|| self.packet_mut())
    }

    /// A frame of this length, to be written, whose packet is at the usual
    /// place. False, with nothing done, when there is no room.
    #[inline(always)]
    fn begins(&mut self, len: usize, link_len: usize) -> bool {
        let most = self.word.room() - HEADROOM - TAILROOM;
        let Some(packet_len) = len.checked_sub(link_len) else {
            return false;
        };
        if link_len > MOST_LINK || packet_len > most.min(MOST_BYTES) {
            return false;
        }
        self.word = self.word.with_frame(HEADROOM - link_len, len, link_len);
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
        self.word = self.word.with_discarded(is_discarded);
    }

    /// Whether the packet goes nowhere.
    #[inline]
    pub fn is_discarded(&self) -> bool {
        self.word.is_discarded()
    }

    /// What the node before has noted for the next one; 0 to begin with.
    #[inline]
    pub fn mark(&self) -> u16 {
        self.word.mark()
    }

    /// Notes something for the next node: a next hop, a port, a reason.
    #[inline]
    pub fn set_mark(&mut self, mark: u16) {
        self.word = self.word.with_mark(mark);
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
        self.slot
            .slot()
            .prefetch(HEADROOM / LINE_BYTES * LINE_BYTES);
    }

    /// How long the packet was on the link, with what the capture cut off.
    pub(crate) fn original_len(&self) -> usize {
        self.frame_len() + self.captured().cut_off as usize
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

    /// What a capture says of the packet; nothing, if it is of none.
    fn captured(&self) -> Captured {
        if !self.word.is_captured() {
            return Captured::default();
        }
        // SAFETY: the slot is ours as long as this handle lives, and a user
        // of its pool.
        let captured =
            unsafe { pool::of(&self.slot).map(|pool| pool.head_of(&self.slot).captured()) };
        captured.unwrap_or_default()
    }

    fn set_captured(&mut self, captured: Captured) {
        self.word = self.word.with_captured();
        // SAFETY: the slot is ours alone, a user of its pool; the handle is
        // borrowed alone.
        unsafe {
            if let Some(pool) = pool::of(&self.slot) {
                pool.head_of(&self.slot).set_captured(captured);
            }
        }
    }

    /// The slot, for who sends it home.
    #[inline(always)]
    fn into_slot(self) -> OwnSlot {
        let buffer = ManuallyDrop::new(self);
        // SAFETY: read once, and the handle is not dropped.
        unsafe { ptr::read(&buffer.slot) }
    }

    /// So many bytes of the slot from a place on.
    ///
    /// # Safety
    /// Both must be within the slot's room.
    #[inline(always)]
    unsafe fn part(&self, start: usize, len: usize) -> &[u8] {
        debug_assert!(start + len <= self.word.room());
        // SAFETY: the slot is ours alone as long as this handle lives, and its
        // pool has made it as long as its room, whose bytes are initialised.
        unsafe { std::slice::from_raw_parts(self.slot.slot().bytes().add(start), len) }
    }

    /// See `part`.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn part_mut(&mut self, start: usize, len: usize) -> &mut [u8] {
        debug_assert!(start + len <= self.word.room());
        // SAFETY: as for `part`; the handle is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.slot.slot().bytes().add(start), len) }
    }
}

/// All bytes, headroom included: for a library that fills many buffers in
/// one call.
impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: all of it.
        unsafe { self.part_mut(0, self.word.room()) }
    }
}

/// See [`AsMut`].
impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: all of it.
        unsafe { self.part(0, self.word.room()) }
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
