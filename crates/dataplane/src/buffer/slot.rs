//! A place of the pool, as bytes: what lies where. For the pool and its
//! handles.
//!
//! The first 32 bytes are a head and no part of a buffer's bytes. While a
//! slot is at home and the first of a magazine, the places of the whole
//! magazine are written from [`MAGAZINE_OFFSET`] on.

#![allow(unsafe_code, reason = "a slot is looked at as what lies in it")]

use std::num::NonZero;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use super::pool::Shared;

/// Bytes in front of a buffer's bytes.
pub const SLOT_HEAD_BYTES: usize = size_of::<Head>();

/// Where the places of a magazine are written: behind the head's line.
const MAGAZINE_OFFSET: usize = 64;
/// Most slots in a magazine, however long they are.
pub const MAGAZINE: usize = 256;

/// Most slots in a magazine of slots of this length: the list of them lies in
/// one of them.
pub fn most_in_magazine(slot_bytes: usize) -> usize {
    (slot_bytes.saturating_sub(MAGAZINE_OFFSET) / size_of::<u32>()).min(MAGAZINE)
}

/// What stands at the beginning of each slot, from the pool's making to its
/// end.
#[repr(C)]
struct Head {
    /// The pool that it belongs to; never changed.
    shared: NonNull<Shared>,
    /// The link of the depot's stack.
    link: AtomicU32,
    /// Places in the magazine that begins here.
    count: u32,
    /// Of the packet; its owner's to write, as the buffer's bytes are.
    captured: Captured,
}

/// What a capture says of a packet beside its bytes.
#[derive(Clone, Copy, Default)]
pub struct Captured {
    /// When, in nanoseconds since 1970.
    pub time_nanos: u64,
    /// Bytes that were cut off behind the packet.
    pub cut_off: u32,
}

/// The address of a slot: of memory that lives as long as anything of the
/// pool does. Whoever holds it in a [`super::Buffer`] owns what is behind
/// the head.
#[derive(Clone, Copy)]
pub struct Slot(NonNull<u8>);

/// The address of a slot that the holder owns, and above its 48 bits how many
/// cache lines the slot has: what a handle needs to know, in one word. It is a
/// number and no pointer, for bulks of them go through vectors of numbers;
/// the pool has exposed its memory ([`OwnSlot::origin`]), and a pointer into
/// that is made where bytes are looked at.
pub struct OwnSlot(NonZero<usize>);

/// Bits of an address in a process. (More are given only to who asks for
/// them; a pool makes sure.)
pub const ADDRESS_BITS: u32 = 48;
const ADDRESS: usize = (1 << ADDRESS_BITS) - 1;

impl OwnSlot {
    /// The first slot's address and every slot's size, to which offsets of
    /// slots can be added. Exposes the memory that `base` leads to.
    pub fn origin(base: NonNull<u8>, lines: u16) -> NonZero<usize> {
        base.expose_provenance() | (usize::from(lines) << ADDRESS_BITS)
    }

    /// The slot so many bytes behind the first one.
    ///
    /// # Safety
    /// The offset must be that of a slot of the pool with this origin, which
    /// is the caller's own and given away by this.
    #[inline(always)]
    pub unsafe fn at(origin: NonZero<usize>, offset: usize) -> Self {
        let place = origin.get().wrapping_add(offset);
        // SAFETY: the upper bits are a slot's size and not 0.
        Self(unsafe { NonZero::new_unchecked(place) })
    }

    /// Bytes from the pool's first slot; more than the pool has for a slot
    /// of another one.
    #[inline(always)]
    pub fn offset(&self, origin: NonZero<usize>) -> usize {
        self.0.get().wrapping_sub(origin.get())
    }

    /// The slot's address.
    #[inline(always)]
    pub fn slot(&self) -> Slot {
        let place = ptr::with_exposed_provenance_mut(self.0.get() & ADDRESS);
        // SAFETY: `origin` was made of an address that is not null.
        Slot(unsafe { NonNull::new_unchecked(place) })
    }

    /// Cache lines of the slot.
    #[inline(always)]
    pub fn lines(&self) -> usize {
        self.0.get() >> ADDRESS_BITS
    }
}

impl Slot {
    /// The slot so many bytes behind the first one.
    ///
    /// # Safety
    /// The offset must be that of a slot of the pool with this base.
    #[inline(always)]
    pub unsafe fn at(base: NonNull<u8>, offset: usize) -> Self {
        // SAFETY: the caller's: it lies in the pool's memory.
        Self(unsafe { base.add(offset) })
    }

    /// What is said of the packet in it.
    ///
    /// # Safety
    /// The slot must be the caller's own.
    pub unsafe fn captured(self) -> Captured {
        // SAFETY: written by `found` at least, and only by its owner since.
        unsafe { (*self.0.cast::<Head>().as_ptr()).captured }
    }

    /// Says something of the packet in it.
    ///
    /// # Safety
    /// The slot must be the caller's own.
    pub unsafe fn set_captured(self, captured: Captured) {
        // SAFETY: the caller's; only this field is written.
        unsafe { (*self.0.cast::<Head>().as_ptr()).captured = captured };
    }

    /// Where the buffer's bytes begin.
    #[inline(always)]
    pub fn bytes(self) -> *mut u8 {
        // SAFETY: a slot is longer than its head.
        unsafe { self.0.add(SLOT_HEAD_BYTES) }.as_ptr()
    }

    #[inline(always)]
    pub fn prefetch(self, offset: usize) {
        let line = self.0.as_ptr().wrapping_add(offset).cast_const();
        memory::prefetch_at(line);
    }

    /// Writes the head, once, when the pool is made.
    ///
    /// # Safety
    /// Nobody else may know of the slot yet.
    pub unsafe fn found(self, shared: NonNull<Shared>) {
        let head = Head {
            shared,
            link: AtomicU32::new(0),
            count: 0,
            captured: Captured::default(),
        };
        // SAFETY: slots begin on a cache line, which is aligned enough, and
        // are longer than a head; nobody else looks at it (the caller's).
        unsafe { self.0.cast::<Head>().write(head) };
    }

    /// The pool that the slot belongs to.
    #[inline]
    pub fn shared(self) -> NonNull<Shared> {
        // SAFETY: written by `found` and never changed since; read as a
        // field, so that no reference to the rest of the head is made.
        unsafe { (*self.0.cast::<Head>().as_ptr()).shared }
    }

    /// The link of the depot's stack.
    #[inline]
    pub fn link<'a>(self) -> &'a AtomicU32 {
        // SAFETY: written by `found`, an atomic since, in memory that lives
        // while the pool's `Shared` does; the depot alone asks for it.
        unsafe { &(*self.0.cast::<Head>().as_ptr()).link }
    }

    /// Writes a magazine into the slot, which is one of it: the lines, from
    /// the pool's first, where its slots begin. At most as many as
    /// [`most_in_magazine`] says.
    ///
    /// # Safety
    /// The slot must be the caller's own, and not be in a handle, and the
    /// lines no more than that.
    #[inline]
    pub unsafe fn write_magazine(self, lines: &[u32]) {
        let count = lines.len();
        // SAFETY: the slot is the caller's, and long enough; only `count` of
        // the head is written, which nobody reads before the slot is pushed
        // to the depot.
        unsafe {
            (*self.0.cast::<Head>().as_ptr()).count = count as u32;
            let places = self.0.add(MAGAZINE_OFFSET).cast::<u32>();
            places.copy_from_nonoverlapping(NonNull::from(lines).cast(), count);
        }
    }

    /// The magazine that was written into the slot.
    ///
    /// # Safety
    /// The slot must be the caller's own, popped from the depot just now, and
    /// nobody may write to it as long as the result is looked at.
    #[inline]
    pub unsafe fn magazine<'a>(self) -> &'a [u32] {
        // SAFETY: the slot is the caller's; what was written before the push
        // is seen after the pop, and `count` lines were.
        unsafe {
            let count = (*self.0.cast::<Head>().as_ptr()).count as usize;
            let places = self.0.add(MAGAZINE_OFFSET).cast::<u32>();
            std::slice::from_raw_parts(places.as_ptr(), count)
        }
    }
}
