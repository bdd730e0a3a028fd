//! Memory that is shared with the kernel. Called by the rings of `socket`.
#![allow(
    unsafe_code,
    reason = "rings mapped from a socket: the kernel writes them while we read"
)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::AtomicU32;

/// A mapping that is gone with its value.
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: memory of the process, not of a thread. All access to it goes
// through `&self` as atomics or through `&mut self`.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a part of a socket's rings.
    pub fn of(fd: &OwnedFd, offset: i64, len: usize) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(fd.as_raw_fd(), flags, offset, len)
    }

    /// Memory of zeros, not shared yet.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::map(-1, flags, 0, len)
    }

    fn map(fd: i32, flags: i32, offset: i64, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at a place of the kernel's choice overlaps
        // nothing of ours.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at null"))?;
        Ok(Self { start, len })
    }

    /// Where it begins, for the kernel.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Bytes that are ours at the moment: by the ring's protocol the kernel
    /// does not write them until they are handed over.
    pub fn bytes(&mut self, offset: usize, len: usize) -> Option<&mut [u8]> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: inside of the mapping (checked above), which is readable,
        // writable and set to something by the kernel; borrowed as mutably
        // as `self`.
        Some(unsafe { slice::from_raw_parts_mut(self.start.as_ptr().add(offset), len) })
    }

    /// A word that both sides change.
    pub fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let end = offset.checked_add(mem::size_of::<AtomicU32>())?;
        if end > self.len || !offset.is_multiple_of(mem::align_of::<AtomicU32>()) {
            return None;
        }
        // SAFETY: inside of the mapping and aligned (checked above; the
        // mapping begins at a page); others change it only atomically.
        Some(unsafe { &*self.start.as_ptr().add(offset).cast::<AtomicU32>() })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nobody has a borrow of it.
        // Nothing could be done about a failure.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn nothing_outside_is_reached() {
        let mut mapping = Mapping::anonymous(4_096).unwrap();
        assert_eq!(mapping.bytes(4_000, 96).unwrap(), [0; 96]);
        assert!(mapping.bytes(4_000, 97).is_none());
        assert!(mapping.bytes(usize::MAX, 2).is_none());
        mapping.bytes(8, 4).unwrap().copy_from_slice(&[1; 4]);
        let word = mapping.word(8).unwrap().load(Ordering::Acquire);
        assert_eq!(word, 0x0101_0101);
        assert!(mapping.word(4_094).is_none() && mapping.word(2).is_none());
        assert!(mapping.word(4_096).is_none());
    }
}
