//! What a port is: the one small interface behind which files, devices and
//! the kernel's sockets look alike. Used by workers, by `send` and by
//! whoever moves packets in a test.
//!
//! - [`memory`]: packets made here, or handed from one thread to another.
//! - [`pcap`]: capture files. [`tun`]: TUN devices. [`tap`]: TAP devices, for
//!   what the program at XDP hands over.
//! - [`af_packet`], [`af_xdp`]: frames of an interface, past the kernel's
//!   routes and neighbours; today for sending alone.
//! - [`trace`], [`faults`]: around any other port, what it did as a capture,
//!   and what a bad link does to packets.

pub mod af_packet;
pub mod af_xdp;
pub mod faults;
pub mod memory;
pub mod pcap;
pub mod tap;
pub mod trace;
pub mod tun;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use crate::socket::SocketError;
use crate::{Batch, Buffer, Cache};

/// Where packets come from and go to.
pub trait Port {
    /// Fills the batch with what has come, in buffers from the cache; what
    /// was in it is given back there. Never waits; costs one system call a
    /// packet, or less. When the pool is empty nothing is received, which
    /// the cache counts. A port for sending alone says [`Received::End`].
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError>;

    /// Sends the packets that are not discarded, in order; never waits. One
    /// that the other side does not take is counted as refused, and is no
    /// error. What there is no room for at the moment stays in the batch,
    /// and the answer says so: the caller sends it again when
    /// [`Port::writable`] says that there is room, or drops it. All other
    /// buffers are in the cache then, or with the other side. With an empty
    /// batch it moves on what was taken before.
    ///
    /// After an error the port is not to be used any more.
    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError>;

    /// What becomes readable when there is something to receive; `None`
    /// where there is no waiting.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// What becomes writable when there is room to send; `None` where there
    /// is no waiting.
    fn writable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Looks which of the packets that were taken are gone meanwhile.
    fn reap(&mut self) {}

    /// Packets that were taken and are not gone yet, as far as is known.
    fn pending(&self) -> usize {
        0
    }

    /// What went through it so far.
    fn counters(&self) -> Counters;
}

/// What came of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The batch is empty.
    All,
    /// The port has no room for the rest: it becomes writable when it has.
    Full,
    /// The kernel or the device has no buffers for the rest (`ENOBUFS`).
    /// Nothing becomes writable: try again a little later.
    NoBuffers,
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
    /// the device is down, or nothing for this port ([`tap`]).
    pub refused_packets: u64,
    /// Packets whose bytes were copied to be sent: a device's memory is not
    /// that of their pool ([`af_xdp`]).
    pub copied_packets: u64,
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
    #[error("device {name}: {source}{advice}")]
    Device {
        /// Which device.
        name: String,
        /// Why.
        source: io::Error,
        /// What to do about it, where there is something; begins with `: `.
        advice: &'static str,
    },
    /// A socket could not be opened or used.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// Gives the buffers of packets that go nowhere back, where there are such.
fn drop_discarded(cache: &mut Cache, batch: &mut Batch) {
    if batch.packets().iter().any(Buffer::is_discarded) {
        cache.give_all(batch.extract(Buffer::is_discarded));
    }
}
