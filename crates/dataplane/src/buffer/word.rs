//! What a handle says of its packet, in one word: where in its slot the frame
//! begins, how long it is, how much of it is the link's header. A register
//! holds all of it, and the lower part goes along over a ring as it is.

use super::HEADROOM;

/// From the lowest bit: the frame's first byte in its slot (10), its length
/// (19), bytes of the link's header at its front (6), whether the slot's head
/// says when the packet was captured, whether it goes nowhere, the slot's
/// room in units of 256 bytes (11), a note for the next node (16).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Word(pub u64);

const START_BITS: u32 = 10;
const LEN_BITS: u32 = 19;
const LINK_BITS: u32 = 6;
const UNIT_BITS: u32 = 11;

const LEN_SHIFT: u32 = START_BITS;
const LINK_SHIFT: u32 = LEN_SHIFT + LEN_BITS;
const CAPTURED_SHIFT: u32 = LINK_SHIFT + LINK_BITS;
const DISCARDED_SHIFT: u32 = CAPTURED_SHIFT + 1;
const ROOM_SHIFT: u32 = DISCARDED_SHIFT + 1;
const MARK_SHIFT: u32 = ROOM_SHIFT + UNIT_BITS;

const START: u64 = field(START_BITS, 0);
const LEN: u64 = field(LEN_BITS, LEN_SHIFT);
const LINK_FIELD: u64 = field(LINK_BITS, LINK_SHIFT);
const FRAME: u64 = START | LEN | LINK_FIELD;
const CAPTURED: u64 = 1 << CAPTURED_SHIFT;
const DISCARDED: u64 = 1 << DISCARDED_SHIFT;

/// The furthest byte of a slot that a frame may begin at.
pub const MOST_START: usize = (1 << START_BITS) - 1;
/// The longest header of a link.
pub const MOST_LINK: usize = (1 << LINK_BITS) - 1;
/// Room is told in units of so many bytes, so many at most.
pub const ROOM_UNIT: usize = 256;
pub const MOST_UNITS: usize = (1 << UNIT_BITS) - 1;
/// The longest packet that is ever put into a buffer.
pub const MOST_BYTES: usize = 1 << 18;

/// Bits that go along over a ring: all up to [`CAPTURED`]. Above a word's
/// 64 bits less these is room for a place in the pool.
const SEALED_BITS: u32 = CAPTURED_SHIFT + 1;
/// Bits of a place in a pool, in cache lines.
pub const LINE_BITS: u32 = u64::BITS - SEALED_BITS;

// A frame lies in its room, so its length needs no look at its field's.
const _: () = assert!(MOST_UNITS * ROOM_UNIT < 1 << LEN_BITS);
const _: () = assert!(MARK_SHIFT + u16::BITS == u64::BITS);
const _: () = assert!(HEADROOM < MOST_START);

const fn field(bits: u32, shift: u32) -> u64 {
    ((1 << bits) - 1) << shift
}

impl Word {
    /// No packet, at the usual place of a slot with so much room.
    pub fn empty(room_bytes: usize) -> Self {
        let units = (room_bytes / ROOM_UNIT).min(MOST_UNITS) as u64;
        Self(units << ROOM_SHIFT | HEADROOM as u64)
    }

    /// The frame's first byte in its slot.
    #[inline(always)]
    pub fn start(self) -> usize {
        (self.0 & START) as usize
    }

    /// Bytes of the frame.
    #[inline(always)]
    pub fn len(self) -> usize {
        ((self.0 & LEN) >> LEN_SHIFT) as usize
    }

    /// Bytes of the link's header.
    #[inline(always)]
    pub fn link(self) -> usize {
        ((self.0 & LINK_FIELD) >> LINK_SHIFT) as usize
    }

    /// Bytes of the slot.
    #[inline(always)]
    pub fn room(self) -> usize {
        ((self.0 >> ROOM_SHIFT) as usize & MOST_UNITS) * ROOM_UNIT
    }

    #[inline(always)]
    pub fn is_captured(self) -> bool {
        self.0 & CAPTURED != 0
    }

    #[inline(always)]
    pub fn is_discarded(self) -> bool {
        self.0 & DISCARDED != 0
    }

    #[inline(always)]
    pub fn mark(self) -> u16 {
        (self.0 >> MARK_SHIFT) as u16
    }

    /// With a frame elsewhere, of this length and with so much of it the
    /// link's. The caller sees that each fits its field.
    #[inline(always)]
    pub fn with_frame(self, start: usize, len: usize, link: usize) -> Self {
        debug_assert!(start <= MOST_START && link <= MOST_LINK && link <= len);
        debug_assert!(start + len <= self.room());
        let frame = start as u64 | (len as u64) << LEN_SHIFT | (link as u64) << LINK_SHIFT;
        Self(self.0 & !FRAME | frame)
    }

    /// With a header of the link in front of the frame, for which there is
    /// room.
    #[inline(always)]
    pub fn with_link_in_front<const LINK: usize>(self) -> Self {
        const { assert!(LINK <= MOST_LINK) };
        debug_assert!(LINK <= self.start());
        // The beginning gets less, and the rest more, in one sum.
        let more = (LINK as u64) << LEN_SHIFT | (LINK as u64) << LINK_SHIFT;
        Self((self.0 & !LINK_FIELD) + (more - LINK as u64))
    }

    #[inline(always)]
    pub fn with_captured(self) -> Self {
        Self(self.0 | CAPTURED)
    }

    #[inline(always)]
    pub fn with_discarded(self, is_discarded: bool) -> Self {
        Self(self.0 & !DISCARDED | u64::from(is_discarded) << DISCARDED_SHIFT)
    }

    #[inline(always)]
    pub fn with_mark(self, mark: u16) -> Self {
        Self(self.0 << u16::BITS >> u16::BITS | u64::from(mark) << MARK_SHIFT)
    }

    /// In one word with a place of less than [`LINE_BITS`], for a ring.
    #[inline(always)]
    pub fn sealed(self, line: u64) -> u64 {
        self.0 << LINE_BITS | line
    }

    /// What was sealed, and its place; `self` is the empty one of its pool.
    #[inline(always)]
    pub fn opened(self, sealed: u64) -> (Self, u64) {
        let room = self.0 & field(UNIT_BITS, ROOM_SHIFT);
        let line = sealed & field(LINE_BITS, 0);
        (Self(sealed >> LINE_BITS | room), line)
    }
}
