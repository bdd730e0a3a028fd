//! Frames through the rings of an `AF_XDP` socket
//! (Documentation/networking/af_xdp.rst of the kernel). Sending needs no
//! program on the interface. Drivers without zero-copy, veth among them,
//! are served by copying; the kernel chooses.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::af_packet::grow_send_buffer;
use super::{Counters, Port, PortError, Received, Sent, drop_discarded};
use crate::socket::mapping::Mapping;
use crate::socket::sys::{self, Address};
use crate::socket::{Flushed, SocketError, flushed};
use crate::{Batch, Buffer, Cache};

/// Bytes of a slot: the smallest that the kernel takes.
const SLOT_BYTES: usize = 2_048;
/// Bytes of `struct xdp_desc`.
const DESC_BYTES: usize = mem::size_of::<libc::xdp_desc>();
/// Slots and entries of a ring, at most.
const MAX_FRAMES: usize = 1 << 14;
/// `XDP_MAX_TX_SKB_BUDGET` (Linux 6.17): frames that one call copies.
const MAX_TX_SKB_BUDGET: i32 = 9;
/// `XDP_RING_NEED_WAKEUP` in the flags of a ring.
const NEED_WAKEUP: u32 = 1;

/// How long a queue may take to be free again, and how often it is tried.
const RELEASE_PATIENCE: Duration = Duration::from_secs(1);
const RELEASE_STEP: Duration = Duration::from_millis(2);

/// Sends frames by one queue of an interface.
pub struct AfXdp {
    transmit: Ring,
    completed: Ring,
    frames: Mapping,
    /// Slots that are ours.
    free: Vec<u32>,
    /// Of the packet in each slot, from its IP header on.
    packet_bytes: Box<[u32]>,
    counters: Counters,
    // Last: the rings are unmapped before it is closed.
    socket: OwnedFd,
}

impl AfXdp {
    /// Opens it with at least `frames` slots for frames of up to this size,
    /// at most 16,384. Needs `CAP_NET_RAW` and locked memory for the slots.
    pub fn open(
        interface: &str,
        queue: u32,
        frame_bytes: usize,
        frames: usize,
    ) -> Result<Self, PortError> {
        if frame_bytes > SLOT_BYTES {
            return Err(SocketError::TooMuch {
                what: "bytes of a frame for AF_XDP",
                value: frame_bytes,
                most: SLOT_BYTES,
            }
            .into());
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
            DESC_BYTES,
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
            free: (0..slots as u32).rev().collect(),
            packet_bytes: vec![0; slots].into(),
            counters: Counters::default(),
            socket,
        })
    }

    /// Copies a frame into a slot of ours and writes its entry. False where
    /// the kernel has all slots.
    fn write(&mut self, buffer: &Buffer) -> bool {
        let frame = buffer.frame();
        if frame.len() > SLOT_BYTES {
            self.counters.refused_packets += 1;
            return true;
        }
        if self.free.is_empty() {
            self.reap();
        }
        let Some(slot) = self.free.last().map(|slot| *slot as usize) else {
            return false;
        };
        let place = self.transmit.next();
        let copied = self.frames.bytes(slot * SLOT_BYTES, frame.len());
        let entry = self.transmit.memory.bytes(place, DESC_BYTES);
        let (Some(to), Some(entry)) = (copied, entry) else {
            return false;
        };
        to.copy_from_slice(frame);
        // struct xdp_desc: address, length, options.
        let (address, rest) = entry.split_at_mut(8);
        address.copy_from_slice(&((slot * SLOT_BYTES) as u64).to_ne_bytes());
        let (len, options) = rest.split_at_mut(4);
        len.copy_from_slice(&(frame.len() as u32).to_ne_bytes());
        options.fill(0);
        self.packet_bytes[slot] = buffer.packet_len() as u32;
        self.free.pop();
        self.transmit.position = self.transmit.position.wrapping_add(1);
        true
    }

    /// Hands what was written to the kernel and lets it send.
    fn kick(&mut self) -> Result<Sent, SocketError> {
        self.transmit.publish_producer();
        loop {
            let before = self.transmit.consumer();
            if before == self.transmit.position || !self.transmit.needs_wakeup() {
                self.reap();
                return Ok(Sent::All);
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
                return Ok(Sent::NoBuffers);
            }
            match flushed(error, "sending by AF_XDP")? {
                Some(Flushed::NoBuffers) => return Ok(Sent::NoBuffers),
                Some(_) => return Ok(Sent::Full),
                None => {}
            }
        }
    }
}

impl Port for AfXdp {
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        cache.clear(batch);
        Ok(Received::End)
    }

    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError> {
        drop_discarded(cache, batch);
        let full = batch.packets().iter().position(|one| !self.write(one));
        let written = full.unwrap_or(batch.len());
        cache.give_all(batch.drain_first(written));
        let sent = self.kick()?;
        // The kernel has taken what is in the ring, whatever it says of it.
        Ok(match (sent, batch.is_empty()) {
            (Sent::NoBuffers, _) => Sent::NoBuffers,
            (_, true) => Sent::All,
            (_, false) => Sent::Full,
        })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn writable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    /// Takes back the slots of frames that are sent.
    fn reap(&mut self) {
        let end = self.completed.producer();
        let from = self.completed.position;
        while self.completed.position != end {
            let place = self.completed.next();
            let bytes = self.completed.memory.bytes(place, 8);
            let address = bytes.and_then(|bytes| bytes.first_chunk::<8>().copied());
            let slot = u64::from_ne_bytes(address.unwrap_or_default()) / SLOT_BYTES as u64;
            // The kernel gives back what it was given, once.
            if self.free.len() < self.packet_bytes.len()
                && let Some(bytes) = self.packet_bytes.get(slot as usize)
            {
                self.counters.sent_packets += 1;
                self.counters.sent_bytes += u64::from(*bytes);
                self.free.push(slot as u32);
            }
            self.completed.position = self.completed.position.wrapping_add(1);
        }
        if from != end {
            self.completed.publish_consumer();
        }
    }

    fn pending(&self) -> usize {
        self.packet_bytes.len() - self.free.len()
    }

    fn counters(&self) -> Counters {
        self.counters
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_longer_than_a_slot_is_refused_with_a_reason() {
        let refused = AfXdp::open("lo", 0, 4_096, 8).err().unwrap();
        assert!(refused.to_string().contains("at most 2048"), "{refused}");
    }
}
