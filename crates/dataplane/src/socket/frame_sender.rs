//! Whole frames by an `AF_PACKET` socket: past the kernel's routes and
//! neighbours, a batch in a system call.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::messages::Messages;
use super::sys::{self, Address};
use super::{Flushed, SocketError};

/// Bytes of frames that may wait in the kernel.
const SEND_BUFFER_BYTES: i32 = 8 << 20;

/// Sends frames of one size by one interface.
pub struct FrameSender {
    socket: OwnedFd,
    messages: Messages,
    sent: u64,
}

impl FrameSender {
    /// Opens it for frames of this size, `batch` between two flushes.
    /// Needs `CAP_NET_RAW`.
    pub fn open(interface: &str, frame_bytes: usize, batch: usize) -> Result<Self, SocketError> {
        Ok(Self {
            socket: packet_socket(interface)?,
            messages: Messages::new(batch.max(1), frame_bytes, 1),
            sent: 0,
        })
    }

    /// The next slot, with the frame that was in it before. `None`: flush
    /// first.
    pub fn push(&mut self) -> Option<&mut [u8]> {
        self.messages.push(0)
    }

    /// Hands what was pushed to the kernel.
    pub fn flush(&mut self) -> Result<Flushed, SocketError> {
        let what = "sendmmsg on AF_PACKET";
        self.messages.flush(&self.socket, &[], &mut self.sent, what)
    }

    /// Frames that wait to be sent.
    pub fn pending(&self) -> usize {
        self.messages.pending()
    }

    /// Frames that the kernel has taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What becomes writable when there is room again.
    pub fn writable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket that sends frames by an interface and receives none.
pub fn packet_socket(interface: &str) -> Result<OwnedFd, SocketError> {
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
pub fn grow_send_buffer(socket: &OwnedFd) {
    let bytes = SEND_BUFFER_BYTES;
    let forced = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes);
    if forced.is_err() {
        // The host's limit cuts it; what remains does as well.
        let _ = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes);
    }
}
