//! The C library's heap: how much of it is in use, and what it keeps back.
//!
//! Each thread that finds the others' arenas busy gets one of its own, and
//! what is freed in one is not used for another. So there are few
//! ([`share_arenas`]), and what lies free is given back now and then
//! ([`give_back`]). Where the C library is another one than glibc nothing is
//! done, and nothing known.

#![allow(unsafe_code, reason = "the C library is asked")]

use std::sync::atomic::{AtomicU64, Ordering};

static USED: AtomicU64 = AtomicU64::new(0);
static FREE: AtomicU64 = AtomicU64::new(0);

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
/// Whether the C library does all of it.
#[must_use]
pub fn share_arenas(arenas: i32) -> bool {
    #[cfg(target_env = "gnu")]
    {
        let settings = [
            (libc::M_ARENA_MAX, arenas),
            (libc::M_MMAP_THRESHOLD, MMAP_BYTES),
            (libc::M_TRIM_THRESHOLD, 2 * MMAP_BYTES),
        ];
        // SAFETY: takes numbers, and says whether it knows them; the
        // allocator locks itself.
        settings.map(|(what, to)| unsafe { libc::mallopt(what, to) }) == [1; 3]
    }
    #[cfg(not(target_env = "gnu"))]
    {
        let _ = arenas;
        false
    }
}

/// Pieces of this size and above have pages of their own. Without the number
/// glibc raises it up to 32 MiB, and pieces of that size stay in its heap.
#[cfg(target_env = "gnu")]
const MMAP_BYTES: i32 = 256 << 10;

/// What the heap has; `None`: the C library does not tell. Some
/// microseconds, and longer with much that is free: not for hot paths.
pub fn usage() -> Option<Heap> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: fills a struct of numbers.
        let told = unsafe { libc::mallinfo2() };
        let heap = Heap {
            used: (told.uordblks + told.hblkhd) as u64,
            free: told.fordblks as u64,
        };
        USED.store(heap.used, Ordering::Relaxed);
        FREE.store(heap.free, Ordering::Relaxed);
        Some(heap)
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// What the heap had when [`usage`] was asked last, by whomever; `None`: it
/// never was.
#[must_use]
pub fn last_usage() -> Option<Heap> {
    let [used, free] = [&USED, &FREE].map(|of| of.load(Ordering::Relaxed));
    (used > 0).then_some(Heap { used, free })
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
