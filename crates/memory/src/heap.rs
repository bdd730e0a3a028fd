//! The C library's heap: how much of it is in use, and what it keeps back.
//!
//! Each thread that finds the others' arenas busy gets one of its own, and
//! what is freed in one is not used for another. So there are few
//! ([`share_arenas`]), and what lies free is given back now and then
//! ([`give_back`]). Where the C library is another one than glibc nothing is
//! done, and nothing known.

#![allow(unsafe_code, reason = "the C library is asked")]

/// Octets of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heap {
    /// Allocated.
    pub used: u64,
    /// Freed, and kept by the allocator.
    pub free: u64,
}

/// Has all threads share so many arenas, and has large pieces always come
/// from the system and go back there. For the start of a program, before
/// there are threads.
pub fn share_arenas(arenas: i32) {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes numbers, and says whether it knows them; the allocator
    // locks itself.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, arenas);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * MMAP_BYTES);
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = arenas;
}

/// Pieces of this size and above have pages of their own. Without the number
/// glibc raises it up to 32 MiB, and pieces of that size stay in its heap.
#[cfg(target_env = "gnu")]
const MMAP_BYTES: i32 = 256 << 10;

/// What the heap has; `None`: the C library does not tell. Some
/// microseconds, and longer with much that is free: not for hot paths.
#[must_use]
pub fn usage() -> Option<Heap> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: fills a struct of numbers.
        let told = unsafe { libc::mallinfo2() };
        Some(Heap {
            used: (told.uordblks + told.hblkhd) as u64,
            free: told.fordblks as u64,
        })
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Gives the system back what is free; whether there was any. Some
/// milliseconds.
pub fn give_back() -> bool {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes a number; the allocator locks itself.
        unsafe { libc::malloc_trim(0) != 0 }
    }
    #[cfg(not(target_env = "gnu"))]
    false
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_counts_until_it_is_freed_and_given_back() {
        const PIECES: usize = 10_000;
        share_arenas(1);
        let before = usage().unwrap();
        let pieces: Vec<Box<[u8; 1_000]>> = (0..PIECES).map(|_| Box::new([1; 1_000])).collect();
        let with = usage().unwrap();
        let octets = (PIECES * 1_000) as u64;
        assert!(with.used >= before.used + octets, "{before:?} {with:?}");
        drop(pieces);
        let after = usage().unwrap();
        assert!(after.used + octets <= with.used, "{with:?} {after:?}");
        give_back();
    }
}
