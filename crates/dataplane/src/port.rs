//! What a port is: the one small interface behind which files and devices
//! look alike.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use crate::{Batch, Cache};

/// Where packets come from and go to.
pub trait Port {
    /// Fills the batch with what has come, in buffers from the cache; what
    /// was in it is given back there. Never waits; costs one system call a
    /// packet, or less. When the pool is empty nothing is received, which
    /// the cache counts.
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError>;

    /// Sends the packets that are not discarded. One that the other side
    /// does not take is counted as refused, and is no error. The batch is
    /// empty then: its buffers are in the cache, or with the other side.
    /// After an error they may still be in the batch.
    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<(), PortError>;

    /// What becomes readable when there is something to receive; `None`
    /// where there is no waiting.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// What went through it so far.
    fn counters(&self) -> Counters;
}

/// What came of asking a port for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// The batch holds packets, and there may be more.
    Packets,
    /// Nothing at the moment.
    Nothing,
    /// Nothing, and nothing will come: the end of a file.
    End,
}

/// What went through a port, since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets given to the program.
    pub received_packets: u64,
    /// Their bytes, from the IP header on.
    pub received_bytes: u64,
    /// Packets that the other side took.
    pub sent_packets: u64,
    /// Their bytes, from the IP header on.
    pub sent_bytes: u64,
    /// Packets that could not be received or sent: too long for a buffer,
    /// or the device is down.
    pub refused_packets: u64,
}

/// Why a port cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A capture file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A capture file is no capture, or a broken one.
    #[error("{}: {what} (behind {packets} packets)", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// How many packets of it could be read.
        packets: u64,
    },
    /// A device could not be opened, read or written.
    #[error("TUN device {name}: {source}{advice}")]
    Device {
        /// Which device.
        name: String,
        /// Why.
        source: io::Error,
        /// What to do about it, where there is something; begins with `: `.
        advice: &'static str,
    },
}
