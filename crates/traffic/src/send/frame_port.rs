//! The three ways to hand a whole frame to the kernel, behind one face.

use std::os::fd::BorrowedFd;

use anyhow::{Context, Result};
use dataplane::socket::{Flushed, FrameRing, FrameSender, SocketError, XdpSender};

use super::plan::Way;

/// Slots of a ring: enough that the kernel works while we write.
const RING_FRAMES: usize = 2_048;

/// Frames of one size, by one interface.
pub enum FramePort {
    /// By `sendmmsg`.
    Messages(FrameSender),
    /// Through the ring of an `AF_PACKET` socket.
    Ring(FrameRing),
    /// Through the rings of an `AF_XDP` socket.
    Xdp(XdpSender),
}

impl FramePort {
    /// Opens a way for a core.
    pub fn open(
        way: Way,
        name: &str,
        core: usize,
        frame_bytes: usize,
        batch: usize,
    ) -> Result<Self> {
        Ok(match way {
            Way::AfPacketRing => Self::Ring(FrameRing::open(name, frame_bytes, RING_FRAMES)?),
            Way::AfXdp => {
                let opened = XdpSender::open(name, core as u32, frame_bytes, RING_FRAMES);
                Self::Xdp(opened.with_context(|| {
                    format!(
                        "{name} gives no AF_XDP socket for core {core}: it takes a queue for each \
                         core, and a kernel and driver that have AF_XDP"
                    )
                })?)
            }
            _ => Self::Messages(FrameSender::open(name, frame_bytes, batch)?),
        })
    }

    /// The next slot, with a frame that was in it before.
    #[inline]
    pub fn push(&mut self) -> Option<&mut [u8]> {
        match self {
            Self::Messages(port) => port.push(),
            Self::Ring(port) => port.push(),
            Self::Xdp(port) => port.push(),
        }
    }

    /// Hands what was pushed to the kernel.
    pub fn flush(&mut self) -> Result<Flushed, SocketError> {
        match self {
            Self::Messages(port) => port.flush(),
            Self::Ring(port) => port.flush(),
            Self::Xdp(port) => port.flush(),
        }
    }

    /// Frames that the kernel has sent.
    pub fn sent(&self) -> u64 {
        match self {
            Self::Messages(port) => port.sent(),
            Self::Ring(port) => port.sent(),
            Self::Xdp(port) => port.sent(),
        }
    }

    /// Frames that it gave back unsent.
    pub fn refused(&self) -> u64 {
        match self {
            Self::Ring(port) => port.refused(),
            Self::Messages(_) | Self::Xdp(_) => 0,
        }
    }

    /// Frames that are on their way.
    pub fn pending(&self) -> usize {
        match self {
            Self::Messages(port) => port.pending(),
            Self::Ring(port) => port.pending(),
            Self::Xdp(port) => port.pending(),
        }
    }

    /// Looks which of them the kernel has sent meanwhile.
    pub fn reap(&mut self) {
        match self {
            Self::Messages(_) => {}
            Self::Ring(port) => port.reap(),
            Self::Xdp(port) => port.reap(),
        }
    }

    /// What becomes writable when there is room.
    pub fn writable(&self) -> BorrowedFd<'_> {
        match self {
            Self::Messages(port) => port.writable(),
            Self::Ring(port) => port.writable(),
            Self::Xdp(port) => port.writable(),
        }
    }
}
