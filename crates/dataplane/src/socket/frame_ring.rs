//! Whole frames through a ring that an `AF_PACKET` socket shares with us
//! (`PACKET_TX_RING`, `TPACKET_V2`; Documentation/networking/packet_mmap.rst
//! of the kernel): no copy into the system call, one call for a batch.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::frame_sender::packet_socket;
use super::mapping::Mapping;
use super::{Flushed, SocketError, flushed, sys};

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
pub struct FrameRing {
    socket: OwnedFd,
    ring: Mapping,
    slot_bytes: usize,
    frames: usize,
    frame_bytes: usize,
    /// Frames since the start: written, handed over, come back.
    written: u64,
    handed: u64,
    back: u64,
    refused: u64,
}

impl FrameRing {
    /// A ring of at least `frames` slots for frames of this size, at most
    /// 16,384. Needs `CAP_NET_RAW`.
    pub fn open(interface: &str, frame_bytes: usize, frames: usize) -> Result<Self, SocketError> {
        let slot_bytes = (DATA + frame_bytes).next_power_of_two().max(256);
        if slot_bytes > BLOCK_BYTES {
            return Err(SocketError::TooMuch {
                what: "bytes of a frame",
                value: frame_bytes,
                most: BLOCK_BYTES - DATA,
            });
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
            frames: blocks * per_block,
            frame_bytes,
            written: 0,
            handed: 0,
            back: 0,
            refused: 0,
        })
    }

    /// The next slot, with the frame that was in it before. `None` while
    /// the kernel has all of them: flush, and wait.
    pub fn push(&mut self) -> Option<&mut [u8]> {
        self.reap();
        if self.written - self.back >= self.frames as u64 {
            return None;
        }
        let start = self.slot(self.written);
        self.written += 1;
        self.ring.bytes(start + DATA, self.frame_bytes)
    }

    /// Hands what was pushed to the kernel and lets it send.
    pub fn flush(&mut self) -> Result<Flushed, SocketError> {
        for number in self.handed..self.written {
            let start = self.slot(number);
            if let (Some(len), Some(status)) =
                (self.ring.word(start + LEN), self.ring.word(start + STATUS))
            {
                len.store(self.frame_bytes as u32, Ordering::Relaxed);
                status.store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
            }
        }
        self.handed = self.written;
        loop {
            let kicked = sys::kick(self.socket.as_fd());
            self.reap();
            match kicked {
                Ok(()) => return Ok(Flushed::All),
                Err(error) => {
                    if let Some(flushed) = flushed(error, "sending an AF_PACKET ring")? {
                        return Ok(flushed);
                    }
                }
            }
        }
    }

    /// Frames that were pushed and have not come back from the kernel.
    pub fn pending(&self) -> usize {
        (self.written - self.back) as usize
    }

    /// Frames that the kernel has sent.
    pub fn sent(&self) -> u64 {
        self.back - self.refused
    }

    /// Frames that it gave back unsent (`TP_STATUS_WRONG_FORMAT`: longer
    /// than the MTU).
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// What becomes writable when there is room again.
    pub fn writable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn slot(&self, number: u64) -> usize {
        (number % self.frames as u64) as usize * self.slot_bytes
    }

    /// Looks which of the oldest frames have come back.
    pub fn reap(&mut self) {
        while self.back < self.handed {
            let start = self.slot(self.back) + STATUS;
            let Some(status) = self.ring.word(start) else {
                return;
            };
            match status.load(Ordering::Acquire) {
                libc::TP_STATUS_AVAILABLE => {}
                libc::TP_STATUS_WRONG_FORMAT => {
                    status.store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
                    self.refused += 1;
                }
                _ => return,
            }
            self.back += 1;
        }
    }
}
