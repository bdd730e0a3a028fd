//! Frames by an `AF_PACKET` socket: past the kernel's routes and neighbours.
//! [`AfPacket`] hands over a batch in a system call, without a copy of ours;
//! [`AfPacketRing`] through a ring in shared memory. Both only send.

mod ring;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Counters, Port, PortError, Received, Sent, drop_discarded};
use crate::socket::gather::Gather;
use crate::socket::sys::{self, Address};
use crate::socket::{Flushed, SocketError, flushed};
use crate::{Batch, Buffer, Cache};

pub use ring::AfPacketRing;

/// Bytes of frames that may wait in the kernel.
const SEND_BUFFER_BYTES: i32 = 8 << 20;
/// Frames of a system call, at most.
const MOST_FRAMES: usize = 1_024;

/// Sends frames by one interface, from where they lie.
pub struct AfPacket {
    socket: OwnedFd,
    gather: Gather,
    counters: Counters,
}

impl AfPacket {
    /// Opens it for batches of this size. Needs `CAP_NET_RAW`.
    pub fn open(interface: &str, batch: usize) -> Result<Self, PortError> {
        Ok(Self {
            socket: packet_socket(interface)?,
            gather: Gather::new(batch.min(MOST_FRAMES)),
            counters: Counters::default(),
        })
    }

    /// The first packets of the batch are gone.
    fn sent(&mut self, count: usize, cache: &mut Cache, batch: &mut Batch) {
        let packets = batch.packets().iter().take(count);
        self.counters.sent_packets += packets.len() as u64;
        self.counters.sent_bytes += packets.map(|one| one.packet_len() as u64).sum::<u64>();
        cache.give_all(batch.drain_first(count));
    }
}

impl Port for AfPacket {
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        cache.clear(batch);
        Ok(Received::End)
    }

    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError> {
        drop_discarded(cache, batch);
        while !batch.is_empty() {
            let frames = batch.packets().iter().map(Buffer::frame);
            let error = match self.gather.send(&self.socket, frames) {
                Ok(count) => {
                    self.sent(count, cache, batch);
                    continue;
                }
                Err(error) => error,
            };
            if error.raw_os_error() == Some(libc::EMSGSIZE) {
                // The first one is longer than the interface takes.
                self.counters.refused_packets += 1;
                cache.give_all(batch.drain_first(1));
                continue;
            }
            match flushed(error, "sendmmsg on AF_PACKET")? {
                Some(Flushed::NoBuffers) => return Ok(Sent::NoBuffers),
                Some(_) => return Ok(Sent::Full),
                None => {}
            }
        }
        Ok(Sent::All)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn writable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// A socket that sends frames by an interface and receives none.
fn packet_socket(interface: &str) -> Result<OwnedFd, SocketError> {
    let index = sys::interface_index(interface)?;
    let what = "opening an AF_PACKET socket";
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0, what)?;
    let refused = |what: &str, source| SocketError::refused(what, source);
    sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)
        .map_err(|source| refused("PACKET_QDISC_BYPASS", source))?;
    grow_send_buffer(&socket);
    sys::bind(&socket, &Address::of_link(index))
        .map_err(|source| refused(&format!("binding to {interface}"), source))?;
    Ok(socket)
}

/// More room where we may have it: with less, the socket is full more often.
pub(super) fn grow_send_buffer(socket: &OwnedFd) {
    let bytes = SEND_BUFFER_BYTES;
    let forced = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes);
    if forced.is_err() {
        // The host's limit cuts it; what remains does as well.
        let _ = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes);
    }
}
