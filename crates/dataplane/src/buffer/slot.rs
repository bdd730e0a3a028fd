//! A place of the pool, as bytes: what lies where. For the pool and its
//! handles.
//!
//! The first 16 bytes are the pool's own and no part of a buffer. While a
//! slot is at home and the first of a magazine, the places of the whole
//! magazine are written from [`MAGAZINE_OFFSET`] on.

#![allow(unsafe_code, reason = "a slot is looked at as what lies in it")]

use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use super::pool::Shared;

/// Bytes in front of a buffer's bytes.
pub const SLOT_HEAD_BYTES: usize = size_of::<Head>();

/// Where the places of a magazine are written: behind the head's line.
const MAGAZINE_OFFSET: usize = 64;
/// Most places in a magazine.
pub const MAGAZINE: usize = 64;
/// A slot has at least as many bytes.
pub const LEAST_SLOT_BYTES: usize = MAGAZINE_OFFSET + MAGAZINE * size_of::<u32>();

/// What stands at the beginning of each slot, from the pool's making to its
/// end. Read and written by the pool alone, and never through a buffer.
#[repr(C)]
pub struct Head {
    /// The pool that it belongs to; never changed.
    shared: NonNull<Shared>,
    /// The link of the depot's stack.
    link: AtomicU32,
    /// Places in the magazine that begins here.
    count: u32,
}

/// The address of a slot: of memory that lives as long as anything of the
/// pool does. Whoever holds it in a [`super::Buffer`] owns what is behind
/// the head.
#[derive(Clone, Copy)]
pub struct Slot(NonNull<u8>);

// SAFETY: an address; who may use the memory behind it is decided by the
// handles and by the depot, which hands it from thread to thread by Release
// and Acquire.
unsafe impl Send for Slot {}
// SAFETY: as above; through a shared handle its bytes are only read.
unsafe impl Sync for Slot {}

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

    /// Bytes from the pool's first slot; anything for a slot of another pool.
    #[inline(always)]
    pub fn offset(self, base: NonNull<u8>) -> usize {
        self.0.addr().get().wrapping_sub(base.addr().get())
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

    /// Writes a magazine into the slot, which is the first of it.
    ///
    /// # Safety
    /// The slot must be the caller's own, and not be in a handle.
    #[inline]
    pub unsafe fn write_magazine(self, offsets: &[u32]) {
        let count = offsets.len().min(MAGAZINE);
        // SAFETY: the slot is the caller's, and at least `LEAST_SLOT_BYTES`
        // long; only `count` of the head is written, which nobody reads
        // before the slot is pushed to the depot.
        unsafe {
            (*self.0.cast::<Head>().as_ptr()).count = count as u32;
            let places = self.0.add(MAGAZINE_OFFSET).cast::<u32>();
            places.copy_from_nonoverlapping(NonNull::from(offsets).cast(), count);
        }
    }

    /// Reads the magazine that was written into the slot.
    ///
    /// # Safety
    /// The slot must be the caller's own, popped from the depot just now.
    #[inline]
    pub unsafe fn read_magazine(self, into: &mut Vec<u32>) {
        // SAFETY: the slot is the caller's; what was written before the push
        // is seen after the pop, and `count` places were.
        let offsets = unsafe {
            let count = (*self.0.cast::<Head>().as_ptr()).count as usize;
            let places = self.0.add(MAGAZINE_OFFSET).cast::<u32>();
            std::slice::from_raw_parts(places.as_ptr(), count)
        };
        into.extend_from_slice(offsets);
    }
}
