//! A slot of the pool: its bytes, which are all a packet's, and its head,
//! which lies in an array aside. For the pool and its handles.
//!
//! Nothing stands before or behind a packet in its slot, so that a kernel or
//! a device may own it for a while (`AF_XDP`), and a packet that nobody looks
//! into costs no line of the pool. While a slot is at home and the first of
//! a magazine, the places of the whole magazine are written into it.

#![allow(unsafe_code, reason = "a slot is looked at as what lies in it")]

use std::cell::UnsafeCell;
use std::num::NonZero;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

/// Most slots in a magazine, however long they are.
pub const MAGAZINE: usize = 256;

/// Most slots in a magazine of slots of this length: the list of them lies in
/// one of them.
pub fn most_in_magazine(slot_bytes: usize) -> usize {
    (slot_bytes / size_of::<u32>()).min(MAGAZINE)
}

/// What is kept of a slot beside its bytes, by its number.
#[derive(Debug, Default)]
pub struct Head {
    /// The link of the depot's stack.
    pub link: AtomicU32,
    /// Places in the magazine that begins here. Of whoever owns the slot.
    count: UnsafeCell<u32>,
    /// Of the packet. Of whoever owns the slot.
    captured: UnsafeCell<Captured>,
}

// SAFETY: what is not atomic is read and written by the slot's owner alone,
// who has it from the one before through the depot or with a handle.
unsafe impl Sync for Head {}

/// What a capture says of a packet beside its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Captured {
    /// When, in nanoseconds since 1970.
    pub time_nanos: u64,
    /// Bytes that were cut off behind the packet.
    pub cut_off: u32,
}

/// The address of a slot's bytes: of memory that lives as long as anything of
/// the pool does. Whoever holds it in a [`super::Buffer`] owns them.
#[derive(Clone, Copy)]
pub struct Slot(NonNull<u8>);

/// The address of a slot that the holder owns, and above its 48 bits the
/// pool's number: what a handle needs to know, in one word. It is a number
/// and no pointer, for bulks of them go through vectors of numbers; the pool
/// has exposed its memory ([`OwnSlot::origin`]), and a pointer into that is
/// made where bytes are looked at.
pub struct OwnSlot(NonZero<usize>);

/// Bits of an address in a process. (More are given only to who asks for
/// them; a pool makes sure.)
pub const ADDRESS_BITS: u32 = 48;
const ADDRESS: usize = (1 << ADDRESS_BITS) - 1;

impl OwnSlot {
    /// The first slot's address and the pool's number, to which offsets of
    /// slots can be added. Exposes the memory that `base` leads to.
    pub fn origin(base: NonNull<u8>, pool: u16) -> NonZero<usize> {
        base.expose_provenance() | (usize::from(pool) << ADDRESS_BITS)
    }

    /// The slot so many bytes behind the first one.
    ///
    /// # Safety
    /// The offset must be that of a slot of the pool with this origin, which
    /// is the caller's own and given away by this.
    #[inline(always)]
    pub unsafe fn at(origin: NonZero<usize>, offset: usize) -> Self {
        let place = origin.get().wrapping_add(offset);
        // SAFETY: an address in a mapping, which is not 0.
        Self(unsafe { NonZero::new_unchecked(place) })
    }

    /// Bytes from the first slot of the pool with this origin, which it is
    /// of.
    #[inline(always)]
    pub fn offset(&self, origin: NonZero<usize>) -> usize {
        self.0.get().wrapping_sub(origin.get())
    }

    /// Bits above [`ADDRESS_BITS`] where it is of another pool than this
    /// origin, and none there where it is of the same.
    #[inline(always)]
    pub fn difference(&self, origin: NonZero<usize>) -> usize {
        self.0.get() ^ origin.get()
    }

    /// The number of its pool.
    #[inline(always)]
    pub fn pool(&self) -> u16 {
        (self.0.get() >> ADDRESS_BITS) as u16
    }

    /// The slot's address.
    #[inline(always)]
    pub fn slot(&self) -> Slot {
        let place = ptr::with_exposed_provenance_mut(self.0.get() & ADDRESS);
        // SAFETY: `origin` was made of an address that is not null.
        Slot(unsafe { NonNull::new_unchecked(place) })
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

    /// Where its bytes begin.
    #[inline(always)]
    pub fn bytes(self) -> *mut u8 {
        self.0.as_ptr()
    }

    #[inline(always)]
    pub fn prefetch(self, offset: usize) {
        let line = self.0.as_ptr().wrapping_add(offset).cast_const();
        memory::prefetch_at(line);
    }

    /// Writes a magazine into the slot, which is one of it: the lines, from
    /// the pool's first, where its slots begin. At most as many as
    /// [`most_in_magazine`] says.
    ///
    /// # Safety
    /// The slot must be the caller's own, and not be in a handle, this its
    /// head, and the lines no more than that.
    #[inline]
    pub unsafe fn write_magazine(self, head: &Head, lines: &[u32]) {
        let count = lines.len();
        // SAFETY: the slot is the caller's, long enough, and begins on a
        // cache line; nobody reads either before it is pushed to the depot.
        unsafe {
            *head.count.get() = count as u32;
            let places = self.0.cast::<u32>();
            places.copy_from_nonoverlapping(NonNull::from(lines).cast(), count);
        }
    }

    /// The magazine that was written into the slot.
    ///
    /// # Safety
    /// The slot must be the caller's own, this its head, popped from the
    /// depot just now, and nobody may write to it as long as the result is
    /// looked at.
    #[inline]
    pub unsafe fn magazine<'a>(self, head: &Head) -> &'a [u32] {
        // SAFETY: the slot is the caller's; what was written before the push
        // is seen after the pop, and `count` lines were.
        unsafe {
            let count = *head.count.get() as usize;
            std::slice::from_raw_parts(self.0.cast::<u32>().as_ptr(), count)
        }
    }
}

impl Head {
    /// What is said of the packet in the slot.
    ///
    /// # Safety
    /// The slot must be the caller's own.
    pub unsafe fn captured(&self) -> Captured {
        // SAFETY: the caller's.
        unsafe { *self.captured.get() }
    }

    /// Says something of the packet in the slot.
    ///
    /// # Safety
    /// The slot must be the caller's own.
    pub unsafe fn set_captured(&self, captured: Captured) {
        // SAFETY: the caller's.
        unsafe { *self.captured.get() = captured };
    }
}
