//! Whole frames through a ring that an `AF_PACKET` socket shares with us
//! (`PACKET_TX_RING`, `TPACKET_V2`; Documentation/networking/packet_mmap.rst
//! of the kernel): no copy into the system call, one call for a batch.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::super::{Counters, Port, PortError, Received, Sent, drop_discarded};
use super::packet_socket;
use crate::socket::mapping::Mapping;
use crate::socket::{Flushed, SocketError, flushed, sys};
use crate::{Batch, Buffer, Cache};

/// `TPACKET_V2` of the kernel's enumeration.
const VERSION: i32 = 1;
/// Where a frame's bytes begin in its slot: behind the aligned header.
const DATA: usize = mem::size_of::<libc::tpacket2_hdr>().next_multiple_of(16);
/// Where `tp_status` and `tp_len` stand in the header.
const STATUS: usize = 0;
const LEN: usize = 4;
/// Blocks are allocated each in one piece: not too large.
const BLOCK_BYTES: usize = 1 << 16;
/// Frames of a ring, at most.
const MAX_FRAMES: usize = 1 << 14;

/// A ring of slots for frames, sent by one interface.
pub struct AfPacketRing {
    socket: OwnedFd,
    ring: Mapping,
    slot_bytes: usize,
    /// Of the packet in each slot, from its IP header on.
    packet_bytes: Box<[u32]>,
    most_frame_bytes: usize,
    /// Frames since the start: handed over, come back.
    handed: u64,
    back: u64,
    counters: Counters,
}

impl AfPacketRing {
    /// A ring of at least `frames` slots for frames of up to this size, at
    /// most 16,384. Needs `CAP_NET_RAW`.
    pub fn open(interface: &str, frame_bytes: usize, frames: usize) -> Result<Self, PortError> {
        let slot_bytes = (DATA + frame_bytes).next_power_of_two().max(256);
        if slot_bytes > BLOCK_BYTES {
            return Err(SocketError::TooMuch {
                what: "bytes of a frame",
                value: frame_bytes,
                most: BLOCK_BYTES - DATA,
            }
            .into());
        }
        let per_block = BLOCK_BYTES / slot_bytes;
        let blocks = frames.clamp(1, MAX_FRAMES).div_ceil(per_block);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: (blocks * per_block) as u32,
        };
        let socket = packet_socket(interface)?;
        let refused = |what: &'static str| move |source| SocketError::refused(what, source);
        let level = libc::SOL_PACKET;
        sys::set_option(&socket, level, libc::PACKET_VERSION, &VERSION)
            .map_err(refused("PACKET_VERSION"))?;
        sys::set_option(&socket, level, libc::PACKET_TX_RING, &request)
            .map_err(refused("PACKET_TX_RING"))?;
        let ring = Mapping::of(&socket, 0, blocks * BLOCK_BYTES)
            .map_err(refused("mapping the AF_PACKET ring"))?;
        Ok(Self {
            socket,
            ring,
            slot_bytes,
            packet_bytes: vec![0; blocks * per_block].into(),
            most_frame_bytes: slot_bytes - DATA,
            handed: 0,
            back: 0,
            counters: Counters::default(),
        })
    }

    /// Copies a frame into the next slot and hands it over. False where the
    /// kernel has all slots.
    fn write(&mut self, buffer: &Buffer) -> bool {
        let frame = buffer.frame();
        if frame.len() > self.most_frame_bytes {
            self.counters.refused_packets += 1;
            return true;
        }
        if self.handed - self.back >= self.packet_bytes.len() as u64 {
            return false;
        }
        let place = self.place(self.handed);
        let start = place * self.slot_bytes;
        let Some(slot) = self.ring.bytes(start + DATA, frame.len()) else {
            return false;
        };
        slot.copy_from_slice(frame);
        self.packet_bytes[place] = buffer.packet_len() as u32;
        if let (Some(len), Some(status)) =
            (self.ring.word(start + LEN), self.ring.word(start + STATUS))
        {
            len.store(frame.len() as u32, Ordering::Relaxed);
            status.store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        }
        self.handed += 1;
        true
    }

    /// Lets the kernel send what was handed over.
    fn kick(&mut self) -> Result<Sent, SocketError> {
        while self.back < self.handed {
            let kicked = sys::kick(self.socket.as_fd());
            self.reap();
            let Err(error) = kicked else { break };
            match flushed(error, "sending an AF_PACKET ring")? {
                Some(Flushed::NoBuffers) => return Ok(Sent::NoBuffers),
                Some(_) => return Ok(Sent::Full),
                None => {}
            }
        }
        Ok(Sent::All)
    }

    fn place(&self, number: u64) -> usize {
        (number % self.packet_bytes.len() as u64) as usize
    }
}

impl Port for AfPacketRing {
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        cache.clear(batch);
        Ok(Received::End)
    }

    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError> {
        drop_discarded(cache, batch);
        self.reap();
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

    /// Looks which of the oldest frames have come back.
    fn reap(&mut self) {
        while self.back < self.handed {
            let place = self.place(self.back);
            let Some(status) = self.ring.word(place * self.slot_bytes + STATUS) else {
                return;
            };
            match status.load(Ordering::Acquire) {
                libc::TP_STATUS_AVAILABLE => {
                    self.counters.sent_packets += 1;
                    self.counters.sent_bytes += u64::from(self.packet_bytes[place]);
                }
                // Longer than the MTU.
                libc::TP_STATUS_WRONG_FORMAT => {
                    status.store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
                    self.counters.refused_packets += 1;
                }
                _ => return,
            }
            self.back += 1;
        }
    }

    fn pending(&self) -> usize {
        (self.handed - self.back) as usize
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_longer_than_a_block_is_refused_with_a_reason() {
        let refused = AfPacketRing::open("lo", 1 << 17, 8).err().unwrap();
        assert!(refused.to_string().contains("too much"), "{refused}");
    }
}
