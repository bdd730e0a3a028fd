//! An array that grows in place and never moves: address space is reserved
//! for its most elements at the start, memory is taken page by page.
//!
//! For tables that may not pause to be copied (`nat`).

#![allow(
    unsafe_code,
    reason = "pages are asked from the kernel and seen as elements"
)]

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{Advice, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::line::prefetch_at;
use crate::pages::ANONYMOUS;

/// A small page.
const SMALL_BYTES: usize = 4 << 10;
/// A huge page on x86-64; memory is made ready in these steps.
const HUGE_BYTES: usize = 2 << 20;
/// The steps of an array that is shorter than half of that.
const STEP_BYTES: usize = 64 << 10;

/// An array of plain values with a fixed most length.
///
/// Memory that was made ready by [`Reserved::prepare`] lies on huge pages
/// where the kernel grants them; what [`Reserved::push`] reaches beyond it
/// comes in small pages, because a fault of a small page is short.
#[derive(Debug)]
pub struct Reserved<T: Copy> {
    base: NonNull<T>,
    len: usize,
    max: usize,
    /// What was mapped: `base` is the first huge page's start in it.
    mapping: NonNull<u8>,
    mapped_bytes: usize,
    /// Bytes from `base` on that were made ready; whole small pages.
    ready_bytes: usize,
}

// SAFETY: the pages belong to this value alone, as a `Vec`'s do; sending it
// sends its elements.
unsafe impl<T: Copy + Send> Send for Reserved<T> {}
// SAFETY: a shared reference gives shared references to elements only.
unsafe impl<T: Copy + Sync> Sync for Reserved<T> {}

impl<T: Copy> Reserved<T> {
    /// An empty array for at most `max` elements. Takes address space, no
    /// memory. Fails as the kernel fails (`ENOMEM`: a limit on address
    /// space), or for a type that has no size or wants more than a page's
    /// alignment.
    pub fn new(max: usize) -> io::Result<Self> {
        let unfit = size_of::<T>() == 0 || align_of::<T>() > SMALL_BYTES;
        let bytes = max.checked_mul(size_of::<T>()).filter(|_| !unfit);
        let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(HUGE_BYTES));
        let mapped_bytes = bytes.and_then(|bytes| bytes.checked_add(HUGE_BYTES));
        let Some(mapped_bytes) = mapped_bytes else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's
        // choice touches nothing that exists.
        let mapping =
            unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_bytes, protection, ANONYMOUS) }?;
        let mapping = NonNull::new(mapping.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let skip = mapping.as_ptr().align_offset(HUGE_BYTES);
        // SAFETY: at most `HUGE_BYTES` - 1 into a mapping that is longer.
        let base = unsafe { mapping.add(skip) }.cast();
        let array = Self {
            base,
            len: 0,
            max,
            mapping,
            mapped_bytes,
            ready_bytes: 0,
        };
        // Small pages until asked otherwise. A kernel without huge pages
        // refuses; there is nothing to refuse then.
        let whole = array.mapped_bytes - skip;
        let _ = array.advise(0, whole, Advice::LinuxNoHugepage);
        Ok(array)
    }

    /// Appends an element; `false`, and nothing done, at the most length.
    #[inline]
    pub fn push(&mut self, value: T) -> bool {
        if self.len == self.max {
            return false;
        }
        // SAFETY: `len` < `max`, so the place lies in the mapping, aligned
        // as `base` is; it holds no value yet and `T: Copy` has no drop.
        unsafe { self.base.add(self.len).write(value) };
        self.len += 1;
        true
    }

    /// Forgets all elements; the memory stays ready.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Most elements.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Bytes of memory in use: what was made ready, or what elements take
    /// beyond it.
    pub fn memory_bytes(&self) -> usize {
        let used = (self.len * size_of::<T>()).next_multiple_of(SMALL_BYTES);
        used.max(self.ready_bytes)
    }

    /// Makes memory ready for `len` elements from the first on: whole huge
    /// pages as such, the rest in small ones. Some 0.1 ms for each MiB. What
    /// the kernel refuses comes by faults later.
    pub fn prepare(&mut self, len: usize) {
        let bytes = (len.min(self.max) * size_of::<T>()).next_multiple_of(SMALL_BYTES);
        while self.ready_bytes < bytes {
            let whole = bytes / HUGE_BYTES * HUGE_BYTES;
            let step = if self.ready_bytes < whole {
                whole
            } else {
                bytes
            };
            self.prepare_to(step);
        }
    }

    /// Makes memory ready to the end of the next huge page, if the elements
    /// have come within one of what is ready; of a short array in steps of
    /// 64 KiB, up to half of what it has. Returns whether there was something
    /// to do.
    pub fn prepare_ahead(&mut self) -> bool {
        let used = self.len * size_of::<T>();
        let is_short = used < HUGE_BYTES / 2;
        let ahead = if is_short {
            (used / 2).max(STEP_BYTES)
        } else {
            HUGE_BYTES
        };
        let soon = used > 0 && used + ahead > self.ready_bytes;
        let more = self.ready_bytes < self.max * size_of::<T>();
        if soon && more {
            let step = (self.ready_bytes.max(used) + STEP_BYTES).next_multiple_of(SMALL_BYTES);
            self.prepare_to(if is_short {
                step
            } else {
                (self.ready_bytes / HUGE_BYTES + 1) * HUGE_BYTES
            });
        }
        soon && more
    }

    fn prepare_to(&mut self, end: usize) {
        let (from, bytes) = (self.ready_bytes, end - self.ready_bytes);
        if from % HUGE_BYTES == 0 && bytes >= HUGE_BYTES {
            let _ = self.advise(from, bytes, Advice::LinuxHugepage);
        }
        let _ = self.advise(from, bytes, Advice::LinuxPopulateWrite);
        self.ready_bytes = end;
    }

    fn advise(&self, from: usize, bytes: usize, advice: Advice) -> io::Result<()> {
        // Miri has no advice.
        if bytes == 0 || cfg!(miri) {
            return Ok(());
        }
        // SAFETY: the range lies in the mapping of this value (its end is
        // rounded up to a huge page at the start), and none of the advices
        // used changes what its bytes are.
        unsafe {
            let start = self.base.cast::<u8>().add(from);
            madvise(start.as_ptr().cast(), bytes, advice)?;
        }
        Ok(())
    }

    /// Asks for the cache line of an element; any place is harmless.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        prefetch_at(self.base.as_ptr().wrapping_add(at).cast());
    }
}

impl<T: Copy> Deref for Reserved<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` elements were written by `push`, lie in
        // one mapping, and are borrowed as `self` is.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Reserved<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl<T: Copy> Drop for Reserved<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own and nobody borrows from
        // it any more. It cannot fail for a range that was mapped.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_in_place_to_its_most_length() {
        let mut array = Reserved::new(100_000).unwrap();
        assert!(array.push([0_u64; 8]));
        let first = array.as_ptr();
        for at in 1..100_000 {
            assert!(array.push([at; 8]));
        }
        assert!(!array.push([0; 8]));
        assert_eq!(array.as_ptr(), first);
        assert!(
            array
                .iter()
                .enumerate()
                .all(|(at, value)| value[7] == at as u64)
        );
        assert!(array.memory_bytes() >= 100_000 * 64);
        array[5] = [1; 8];
        assert_eq!(array[5][0], 1);
        array.clear();
        assert!(array.is_empty());
    }

    #[test]
    fn memory_is_made_ready_ahead_and_elements_stay() {
        let mut array = Reserved::new(1 << 20).unwrap();
        array.prepare(10);
        for at in 0..50_000_u64 {
            assert!(array.push(at));
        }
        array.prepare(300_000);
        assert!(array.memory_bytes() >= 300_000 * 8);
        assert!(!array.prepare_ahead());
        for at in 50_000..300_000 {
            assert!(array.push(at));
        }
        while array.prepare_ahead() {}
        assert!(array.memory_bytes() >= array.len() * 8 + HUGE_BYTES);
        assert!(
            array
                .iter()
                .enumerate()
                .all(|(at, value)| *value == at as u64)
        );
        array.prefetch(usize::MAX);
    }

    #[test]
    fn a_short_array_is_prepared_in_small_steps() {
        let mut array = Reserved::new(1 << 20).unwrap();
        assert!(!array.prepare_ahead(), "nothing is in it");
        for at in 0..100_000_u64 {
            assert!(array.push(at));
            while array.prepare_ahead() {}
            let used = array.len() * 8;
            let ahead = array.memory_bytes() - used;
            assert!((STEP_BYTES..=used / 2 + 2 * STEP_BYTES).contains(&ahead));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Reserved::<u64>::new(usize::MAX).is_err());
        assert!(Reserved::<()>::new(1).is_err());
        assert!(Reserved::<u64>::new(usize::MAX / 16).is_err());
        let mut none = Reserved::<u64>::new(0).unwrap();
        assert!(!none.push(1));
        none.prepare(5);
    }
}
