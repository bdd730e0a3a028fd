//! One of a socket's rings: entries that one side writes and the other reads,
//! and the words that say how far each is.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use crate::socket::SocketError;
use crate::socket::mapping::Mapping;
use crate::socket::sys;

/// `XDP_RING_NEED_WAKEUP` in the flags of a ring.
const NEED_WAKEUP: u32 = 1;

/// Where the words of the rings stand.
pub fn offsets(socket: &OwnedFd) -> Result<libc::xdp_mmap_offsets, SocketError> {
    // Sixteen numbers: four rings of producer, consumer, entries, flags.
    let words: [u64; 16] = sys::option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)
        .map_err(|error| SocketError::refused("XDP_MMAP_OFFSETS", error))?;
    let ring = |from: usize| {
        let word = |at: usize| words.get(from + at).copied().unwrap_or(0);
        libc::xdp_ring_offset {
            producer: word(0),
            consumer: word(1),
            desc: word(2),
            flags: word(3),
        }
    };
    Ok(libc::xdp_mmap_offsets {
        rx: ring(0),
        tx: ring(4),
        fr: ring(8),
        cr: ring(12),
    })
}

/// One of a socket's rings. `position` is our side of it.
pub struct Ring {
    pub memory: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    entry_bytes: usize,
    mask: u32,
    pub position: u32,
}

impl Ring {
    pub fn map(
        socket: &OwnedFd,
        offsets: &libc::xdp_ring_offset,
        page: i64,
        entries: usize,
        entry_bytes: usize,
    ) -> Result<Self, SocketError> {
        let start = offsets.desc as usize;
        let memory = Mapping::of(socket, page, start + entries * entry_bytes)
            .map_err(|error| SocketError::refused("mapping an AF_XDP ring", error))?;
        Ok(Self {
            memory,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            flags: offsets.flags as usize,
            entries: start,
            entry_bytes,
            mask: entries as u32 - 1,
            position: 0,
        })
    }

    /// Where the entry of our position stands.
    pub fn next(&self) -> usize {
        self.entries + (self.position & self.mask) as usize * self.entry_bytes
    }

    fn read(&self, offset: usize) -> u32 {
        let word = self.memory.word(offset);
        word.map_or(self.position, |word| word.load(Ordering::Acquire))
    }

    fn publish(&self, offset: usize) {
        if let Some(word) = self.memory.word(offset) {
            word.store(self.position, Ordering::Release);
        }
    }

    pub fn producer(&self) -> u32 {
        self.read(self.producer)
    }

    pub fn consumer(&self) -> u32 {
        self.read(self.consumer)
    }

    pub fn publish_producer(&self) {
        self.publish(self.producer);
    }

    pub fn publish_consumer(&self) {
        self.publish(self.consumer);
    }

    pub fn needs_wakeup(&self) -> bool {
        self.read(self.flags) & NEED_WAKEUP != 0
    }
}
