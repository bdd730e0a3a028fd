//! A stretch of zeroed memory on huge pages that never moves, for rooms
//! that share it between a writer and readers by rules of their own (`fib`).

#![allow(unsafe_code, reason = "pages are asked from the kernel")]

use std::io;
use std::ptr::NonNull;

#[cfg(not(miri))]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// A huge page on x86-64.
const HUGE_BYTES: usize = 2 << 20;

/// Zeroed memory. Address space is taken at the start, pages come when they
/// are touched, huge ones where the kernel grants them.
#[derive(Debug)]
pub struct Pages {
    base: NonNull<u8>,
    len_bytes: usize,
    /// What was mapped: `base` is the first huge page's start in it.
    mapping: NonNull<u8>,
    mapped_bytes: usize,
}

// SAFETY: the pages belong to this value alone and it holds nothing else;
// what is read and written in them goes through the raw pointer.
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives a raw pointer and a length only.
unsafe impl Sync for Pages {}

/// A mapping of our own, of which only what is touched takes memory; miri
/// knows no more of mmap than the first.
pub(crate) const ANONYMOUS: MapFlags = match cfg!(miri) {
    true => MapFlags::PRIVATE,
    false => MapFlags::PRIVATE.union(MapFlags::NORESERVE),
};

impl Pages {
    /// At least `len_bytes` of zeroed memory, whole huge pages. Fails as the
    /// kernel fails (`ENOMEM`: a limit on address space).
    pub fn new(len_bytes: usize) -> io::Result<Self> {
        let len = len_bytes.checked_next_multiple_of(HUGE_BYTES);
        let both = len.and_then(|len| Some((len, len.checked_add(HUGE_BYTES)?)));
        let Some((len_bytes, mapped_bytes)) = both else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's
        // choice touches nothing that exists.
        let mapping =
            unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_bytes, protection, ANONYMOUS) }?;
        let mapping = NonNull::new(mapping.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let skip = mapping.as_ptr().align_offset(HUGE_BYTES);
        // SAFETY: less than `HUGE_BYTES` into a mapping that is longer.
        let base = unsafe { mapping.add(skip) };
        // A kernel without huge pages refuses, and gives small ones.
        // SAFETY: the range lies in the new mapping; the advice does not
        // change what its bytes are.
        #[cfg(not(miri))]
        let _ = unsafe { madvise(base.as_ptr().cast(), len_bytes, Advice::LinuxHugepage) };
        Ok(Self {
            base,
            len_bytes,
            mapping,
            mapped_bytes,
        })
    }

    /// The first byte, on the border of a huge page. Good for
    /// [`Pages::len_bytes`] bytes as long as the value lives; who reads and
    /// writes there keeps them from racing.
    #[inline(always)]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes from [`Pages::base`] on.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and who holds the raw
        // pointer was told how long it is good. It cannot fail for a range
        // that was mapped.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zeroed_writable_and_aligned() {
        let pages = Pages::new(3 << 20).unwrap();
        assert_eq!(pages.len_bytes(), 4 << 20);
        assert_eq!(pages.base().addr().get() % HUGE_BYTES, 0);
        // SAFETY: the last byte of pages that nobody else looks at.
        let last = unsafe { pages.base().add(pages.len_bytes() - 1).as_mut() };
        assert_eq!(*last, 0);
        *last = 1;
        assert_eq!(*last, 1);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Pages::new(usize::MAX).is_err());
        assert!(Pages::new(usize::MAX - HUGE_BYTES).is_err());
    }
}
