//! Whole frames through the rings of an `AF_XDP` socket
//! (Documentation/networking/af_xdp.rst of the kernel). Sending needs no
//! program on the interface. Drivers without zero-copy, veth among them,
//! are served by copying; the kernel chooses.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::frame_sender::grow_send_buffer;
use super::mapping::Mapping;
use super::sys::Address;
use super::{Flushed, SocketError, flushed, sys};

/// Bytes of a slot: the smallest that the kernel takes.
const SLOT_BYTES: usize = 2_048;
/// Slots and entries of a ring, at most.
const MAX_FRAMES: usize = 1 << 14;
/// `XDP_MAX_TX_SKB_BUDGET` (Linux 6.17): frames that one call copies.
const MAX_TX_SKB_BUDGET: i32 = 9;
/// `XDP_RING_NEED_WAKEUP` in the flags of a ring.
const NEED_WAKEUP: u32 = 1;

/// How long a queue may take to be free again, and how often it is tried.
const RELEASE_PATIENCE: Duration = Duration::from_secs(1);
const RELEASE_STEP: Duration = Duration::from_millis(2);

/// Sends frames of one size by one queue of an interface.
pub struct XdpSender {
    transmit: Ring,
    completed: Ring,
    frames: Mapping,
    frame_bytes: usize,
    /// Slots that are ours.
    free: Vec<u32>,
    slots: usize,
    sent: u64,
    // Last: the rings are unmapped before it is closed.
    socket: OwnedFd,
}

impl XdpSender {
    /// Opens it with at least `frames` slots, at most 16,384. Needs
    /// `CAP_NET_RAW` and locked memory for the slots.
    pub fn open(
        interface: &str,
        queue: u32,
        frame_bytes: usize,
        frames: usize,
    ) -> Result<Self, SocketError> {
        if frame_bytes > SLOT_BYTES {
            return Err(SocketError::TooMuch {
                what: "bytes of a frame for AF_XDP",
                value: frame_bytes,
                most: SLOT_BYTES,
            });
        }
        let slots = frames.clamp(64, MAX_FRAMES).next_power_of_two();
        let index = sys::interface_index(interface)?;
        let what = "opening an AF_XDP socket";
        let socket = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0, what)?;
        let memory = Mapping::anonymous(slots * SLOT_BYTES)
            .map_err(|error| SocketError::refused("memory for AF_XDP", error))?;
        register(&socket, &memory, slots)?;
        let offsets = offsets(&socket)?;
        let transmit = Ring::map(
            &socket,
            &offsets.tx,
            libc::XDP_PGOFF_TX_RING,
            slots,
            mem::size_of::<libc::xdp_desc>(),
        )?;
        let completed = Ring::map(
            &socket,
            &offsets.cr,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64,
            slots,
            mem::size_of::<u64>(),
        )?;
        grow_send_buffer(&socket);
        let address = Address::of_queue(index, queue, libc::XDP_USE_NEED_WAKEUP);
        bind_when_free(&socket, &address).map_err(|error| {
            let what = format!("binding AF_XDP to queue {queue} of {interface}");
            match error.raw_os_error() {
                Some(libc::EINVAL) => SocketError::Refused {
                    what,
                    error,
                    advice: ": it has no such queue",
                },
                _ => SocketError::refused(what, error),
            }
        })?;
        Ok(Self {
            transmit,
            completed,
            frames: memory,
            frame_bytes,
            free: (0..slots as u32).rev().collect(),
            slots,
            sent: 0,
            socket,
        })
    }

    /// The next slot, with a frame that was sent before. `None` while the
    /// kernel has all of them: flush, and wait.
    pub fn push(&mut self) -> Option<&mut [u8]> {
        if self.free.is_empty() {
            self.reap();
        }
        let slot = self.free.pop()? as usize;
        let place = self.transmit.next();
        let desc = self.transmit.memory.bytes(place, 16)?;
        // struct xdp_desc: address, length, options.
        let (address, rest) = desc.split_first_chunk_mut::<8>()?;
        let (len, options) = rest.split_first_chunk_mut::<4>()?;
        *address = ((slot * SLOT_BYTES) as u64).to_ne_bytes();
        *len = (self.frame_bytes as u32).to_ne_bytes();
        options.fill(0);
        self.transmit.position = self.transmit.position.wrapping_add(1);
        self.frames.bytes(slot * SLOT_BYTES, self.frame_bytes)
    }

    /// Hands what was pushed to the kernel and lets it send.
    pub fn flush(&mut self) -> Result<Flushed, SocketError> {
        self.transmit.publish_producer();
        loop {
            let before = self.transmit.consumer();
            if before == self.transmit.position || !self.transmit.needs_wakeup() {
                self.reap();
                return Ok(Flushed::All);
            }
            let kicked = sys::kick(self.socket.as_fd());
            self.reap();
            let Err(error) = kicked else { continue };
            // EAGAIN as well when it has taken its share for one call.
            let moved = self.transmit.consumer() != before;
            if error.raw_os_error() == Some(libc::EAGAIN) && moved {
                continue;
            }
            if error.raw_os_error() == Some(libc::EBUSY) {
                return Ok(Flushed::NoBuffers);
            }
            if let Some(flushed) = flushed(error, "sending by AF_XDP")? {
                return Ok(flushed);
            }
        }
    }

    /// Takes back the slots of frames that are sent.
    pub fn reap(&mut self) {
        let end = self.completed.producer();
        let from = self.completed.position;
        while self.completed.position != end {
            let place = self.completed.next();
            let bytes = self.completed.memory.bytes(place, 8);
            let address = bytes.and_then(|bytes| bytes.first_chunk::<8>().copied());
            let slot = u64::from_ne_bytes(address.unwrap_or_default()) / SLOT_BYTES as u64;
            // The kernel gives back what it was given, once.
            if self.free.len() < self.slots && slot < self.slots as u64 {
                self.free.push(slot as u32);
            }
            self.sent += 1;
            self.completed.position = self.completed.position.wrapping_add(1);
        }
        if from != end {
            self.completed.publish_consumer();
        }
    }

    /// Frames that were pushed and have not come back from the kernel.
    pub fn pending(&self) -> usize {
        self.slots - self.free.len()
    }

    /// Frames that the kernel has sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What becomes writable when there is room again.
    pub fn writable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Binds the socket. The kernel frees a queue only a moment after its last
/// socket was closed, when that program may have ended long ago.
fn bind_when_free(socket: &OwnedFd, address: &Address) -> io::Result<()> {
    let until = Instant::now() + RELEASE_PATIENCE;
    loop {
        match sys::bind(socket, address) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until => {
                sleep(RELEASE_STEP);
            }
            bound => return bound,
        }
    }
}

/// Registers the slots and the size of each ring. The fill ring is only for
/// receiving, but a socket without one cannot be bound.
fn register(socket: &OwnedFd, memory: &Mapping, slots: usize) -> Result<(), SocketError> {
    let set = |name, value: u32, what: &'static str| {
        sys::set_option(socket, libc::SOL_XDP, name, &value)
            .map_err(|error| SocketError::refused(what, error))
    };
    let slots = slots as u32;
    let region = libc::xdp_umem_reg_v1 {
        addr: memory.address(),
        len: u64::from(slots) * SLOT_BYTES as u64,
        chunk_size: SLOT_BYTES as u32,
        headroom: 0,
    };
    sys::set_option(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)
        .map_err(|error| SocketError::refused("XDP_UMEM_REG", error))?;
    set(libc::XDP_UMEM_FILL_RING, 64, "XDP_UMEM_FILL_RING")?;
    set(
        libc::XDP_UMEM_COMPLETION_RING,
        slots,
        "XDP_UMEM_COMPLETION_RING",
    )?;
    set(libc::XDP_TX_RING, slots, "XDP_TX_RING")?;
    // Kernels before 6.17 take 32 frames a call and do not know it.
    let _ = set(MAX_TX_SKB_BUDGET, slots.min(512), "XDP_MAX_TX_SKB_BUDGET");
    Ok(())
}

/// Where the words of the rings stand.
fn offsets(socket: &OwnedFd) -> Result<libc::xdp_mmap_offsets, SocketError> {
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
struct Ring {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    entry_bytes: usize,
    mask: u32,
    position: u32,
}

impl Ring {
    fn map(
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
    fn next(&self) -> usize {
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

    fn producer(&self) -> u32 {
        self.read(self.producer)
    }

    fn consumer(&self) -> u32 {
        self.read(self.consumer)
    }

    fn publish_producer(&self) {
        self.publish(self.producer);
    }

    fn publish_consumer(&self) {
        self.publish(self.consumer);
    }

    fn needs_wakeup(&self) -> bool {
        self.read(self.flags) & NEED_WAKEUP != 0
    }
}
