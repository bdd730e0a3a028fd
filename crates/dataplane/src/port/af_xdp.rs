//! Frames through the rings of an `AF_XDP` socket
//! (Documentation/networking/af_xdp.rst of the kernel). Sending needs no
//! program on the interface. Drivers without zero-copy, veth among them,
//! are served by copying; the kernel chooses.
//!
//! A pool whose slots are frames ([`Pool::aligned`]) is the memory that the
//! kernel sends from: its buffers are the kernel's until they are sent, and
//! nothing is copied here. Each socket registers the whole pool, so several
//! may send from one. From any other pool frames are copied into slots of the
//! socket's own, which [`Counters::copied_packets`] counts.

mod frames;
mod ring;

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::af_packet::grow_send_buffer;
use super::{Counters, Port, PortError, Received, Sent, drop_discarded};
use crate::socket::sys::{self, Address};
use crate::socket::{Flushed, SocketError, flushed};
use crate::{Batch, Cache, Pool};
use frames::{Own, Place, Shared, Taken};
use ring::{Ring, offsets};

/// Bytes of a slot: the smallest that the kernel takes.
const SLOT_BYTES: usize = 2_048;
/// Bytes of `struct xdp_desc`.
const DESC_BYTES: usize = mem::size_of::<libc::xdp_desc>();
/// Slots and entries of a ring, at most.
const MAX_FRAMES: usize = 1 << 14;
/// `XDP_MAX_TX_SKB_BUDGET` (Linux 6.17): frames that one call copies.
const MAX_TX_SKB_BUDGET: i32 = 9;
/// How long an end waits for what the kernel is still sending, and how often
/// it looks.
const END_PATIENCE: Duration = Duration::from_millis(100);
const END_STEP: Duration = Duration::from_millis(1);

/// How long a queue may take to be free again, and how often it is tried.
const RELEASE_PATIENCE: Duration = Duration::from_secs(1);
const RELEASE_STEP: Duration = Duration::from_millis(2);

/// Sends frames by one queue of an interface.
pub struct AfXdp {
    transmit: Ring,
    completed: Ring,
    /// Frames that the kernel has, and how many it may have.
    pending: usize,
    most_pending: usize,
    counters: Counters,
    // Behind the rings, which are unmapped before it is closed; before the
    // frames, which it sends from.
    socket: OwnedFd,
    frames: Frames,
}

/// What it sends from.
enum Frames {
    Shared(Shared),
    Own(Own),
}

impl AfXdp {
    /// Opens it for at least `frames` frames under way, at most 16,384, of up
    /// to this size, which come from this pool. Needs `CAP_NET_RAW` and
    /// locked memory: for the pool, or for slots of its own.
    pub fn open(
        interface: &str,
        queue: u32,
        frame_bytes: usize,
        frames: usize,
        pool: &Pool,
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
        let frames = Frames::of(pool, slots)?;
        register(&socket, frames.region(), slots)?;
        let (transmit, completed) = rings(&socket, slots)?;
        grow_send_buffer(&socket);
        bind(&socket, interface, index, queue)?;
        Ok(Self {
            transmit,
            completed,
            frames,
            pending: 0,
            most_pending: slots,
            counters: Counters::default(),
            socket,
        })
    }

    /// Writes the entry of a frame.
    fn write(&mut self, place: &Place) {
        let at = self.transmit.next();
        let Some(entry) = self.transmit.memory.bytes(at, DESC_BYTES) else {
            return debug_assert!(false, "an entry lies in its ring");
        };
        // struct xdp_desc: address, length, options.
        let (address, rest) = entry.split_at_mut(8);
        address.copy_from_slice(&place.address.to_ne_bytes());
        let (len, options) = rest.split_at_mut(4);
        len.copy_from_slice(&place.len.to_ne_bytes());
        options.fill(0);
        self.transmit.position = self.transmit.position.wrapping_add(1);
        self.pending += 1;
    }

    /// Takes frames from the batch's first on, as many as there is room for.
    fn take(&mut self, cache: &mut Cache, batch: &mut Batch) {
        if self.most_pending - self.pending < batch.len() {
            self.reap();
        }
        let room = self.most_pending - self.pending;
        for buffer in batch.drain_first(room) {
            match self.frames.take(buffer, cache) {
                Taken::At(place) => {
                    self.counters.copied_packets += u64::from(self.frames.copies());
                    self.write(&place);
                }
                Taken::Refused => self.counters.refused_packets += 1,
            }
        }
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
        self.take(cache, batch);
        let sent = self.kick()?;
        self.frames.give_done(cache);
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

    /// Takes back the frames that are sent.
    fn reap(&mut self) {
        let end = self.completed.producer();
        let from = self.completed.position;
        while self.completed.position != end {
            let place = self.completed.next();
            let bytes = self.completed.memory.bytes(place, 8);
            let address = bytes.and_then(|bytes| bytes.first_chunk::<8>().copied());
            debug_assert!(address.is_some(), "an entry lies in its ring");
            let done = address.and_then(|address| self.frames.done(u64::from_ne_bytes(address)));
            if let Some(bytes) = done {
                self.counters.sent_packets += 1;
                self.counters.sent_bytes += bytes;
                self.pending = self.pending.saturating_sub(1);
            }
            self.completed.position = self.completed.position.wrapping_add(1);
        }
        if from != end {
            self.completed.publish_consumer();
        }
    }

    fn pending(&self) -> usize {
        self.pending
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

impl Drop for AfXdp {
    /// Buffers of the pool are the kernel's while it sends them: it has a
    /// moment for that, before others write to them.
    fn drop(&mut self) {
        let until = Instant::now() + END_PATIENCE;
        loop {
            self.reap();
            if self.pending == 0 || Instant::now() >= until {
                return;
            }
            // What it says to that is no matter any more.
            let _ = sys::kick(self.socket.as_fd());
            sleep(END_STEP);
        }
    }
}

/// The rings for sending and for what is sent.
fn rings(socket: &OwnedFd, slots: usize) -> Result<(Ring, Ring), SocketError> {
    let offsets = offsets(socket)?;
    let page = libc::XDP_PGOFF_TX_RING;
    let transmit = Ring::map(socket, &offsets.tx, page, slots, DESC_BYTES)?;
    let page = libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64;
    let completed = Ring::map(socket, &offsets.cr, page, slots, mem::size_of::<u64>())?;
    Ok((transmit, completed))
}

/// Binds the socket to a queue.
fn bind(socket: &OwnedFd, interface: &str, index: u32, queue: u32) -> Result<(), SocketError> {
    let address = Address::of_queue(index, queue, libc::XDP_USE_NEED_WAKEUP);
    bind_when_free(socket, &address).map_err(|error| {
        let what = format!("binding AF_XDP to queue {queue} of {interface}");
        match error.raw_os_error() {
            Some(libc::EINVAL) => SocketError::Refused {
                what,
                error,
                advice: ": it has no such queue",
            },
            _ => SocketError::refused(what, error),
        }
    })
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

/// Registers the memory (address, length, length of a slot) and the size of
/// each ring. The fill ring is only for
/// receiving, but a socket without one cannot be bound.
fn register(
    socket: &OwnedFd,
    (addr, len, chunk_size): (u64, u64, u32),
    slots: usize,
) -> Result<(), SocketError> {
    let set = |name, value: u32, what: &'static str| {
        sys::set_option(socket, libc::SOL_XDP, name, &value)
            .map_err(|error| SocketError::refused(what, error))
    };
    let slots = slots as u32;
    let region = libc::xdp_umem_reg_v1 {
        addr,
        len,
        chunk_size,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_longer_than_a_slot_is_refused_with_a_reason() {
        let pool = Pool::aligned(8, 4_096).unwrap();
        let refused = AfXdp::open("lo", 0, 4_096, 8, &pool).err().unwrap();
        assert!(refused.to_string().contains("at most 2048"), "{refused}");
    }
}
