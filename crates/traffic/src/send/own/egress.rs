//! Where packets of our own stack go at the end.

use std::os::fd::BorrowedFd;

use anyhow::{Result, ensure};
use dataplane::socket::Flushed;
use dataplane::{Batch, Buffer, Cache, Memory, Port, Tun};

use super::super::frame_port::FramePort;

/// Where packets go, opened.
pub enum Egress {
    /// Counted in memory, or written to a TUN device.
    Port(Box<dyn Port + Send>),
    /// To the kernel as frames.
    Frames(FramePort),
}

impl Egress {
    /// A port that counts.
    pub fn memory() -> Self {
        Self::Port(Box::new(Memory::null()))
    }

    /// A TUN device.
    pub fn tun(tun: Tun) -> Self {
        Self::Port(Box::new(tun))
    }

    /// Sends a batch. Packets that found no room stay in it.
    #[inline]
    pub fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Flushed> {
        match self {
            Self::Port(port) => {
                port.send(cache, batch)?;
                Ok(Flushed::All)
            }
            Self::Frames(port) => frames(port, cache, batch),
        }
    }

    /// Packets that were taken.
    pub fn sent(&self) -> u64 {
        match self {
            Self::Port(port) => port.counters().sent_packets,
            Self::Frames(port) => port.sent(),
        }
    }

    /// Packets that were not.
    pub fn refused(&self) -> u64 {
        match self {
            Self::Port(port) => port.counters().refused_packets,
            Self::Frames(port) => port.refused(),
        }
    }

    /// Packets that are on their way.
    pub fn pending(&self) -> usize {
        match self {
            Self::Port(_) => 0,
            Self::Frames(port) => port.pending(),
        }
    }

    /// Looks which of them are gone.
    pub fn reap(&mut self) {
        if let Self::Frames(port) = self {
            port.reap();
        }
    }

    /// What becomes writable when there is room.
    pub fn writable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Port(_) => None,
            Self::Frames(port) => Some(port.writable()),
        }
    }
}

/// Copies frames into slots, as many as there are, and lets the kernel send
/// them. All frames are of the size that the port was opened for.
fn frames(port: &mut FramePort, cache: &mut Cache, batch: &mut Batch) -> Result<Flushed> {
    while let Some(buffer) = batch.packets().last() {
        if !buffer.is_discarded() {
            let Some(slot) = port.push() else {
                break;
            };
            copy(buffer, slot)?;
        }
        if let Some(buffer) = batch.pop() {
            cache.give(buffer);
        }
    }
    let flushed = port.flush()?;
    // All slots are in the kernel's hands.
    let is_full = flushed == Flushed::All && !batch.is_empty();
    Ok(if is_full { Flushed::Full } else { flushed })
}

fn copy(buffer: &Buffer, slot: &mut [u8]) -> Result<()> {
    let frame = buffer.frame();
    ensure!(
        frame.len() == slot.len(),
        "a frame of {} bytes where {} were expected: a tagged link",
        frame.len(),
        slot.len()
    );
    slot.copy_from_slice(frame);
    Ok(())
}
