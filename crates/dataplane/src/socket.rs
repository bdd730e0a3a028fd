//! The kernel's own ways of sending and receiving, with what they need of
//! `unsafe`: arrays of messages for one system call, rings that are shared
//! with the kernel. For `fingerpost send` and `receive`, and for ports that
//! stand on them.
//!
//! All of them work the same way: a packet is written into a slot with
//! `push`, and `flush` hands what is there to the kernel. A slot keeps its
//! bytes, so that a generator writes only what differs from the packet that
//! was in it before. Nothing waits in here but where it says so: a socket
//! that is full says [`Flushed::Full`], and the caller waits as long as it
//! likes for the descriptor.
//!
//! - [`UdpSender`]: `sendto`, connected `send`, `sendmmsg`, UDP segmentation.
//! - [`UdpReceiver`]: `recvmmsg` with the kernel's time and its losses.
//! - `gather`, `mapping`, `sys`: what [`crate::port::af_packet`] and
//!   [`crate::port::af_xdp`] stand on.

pub(crate) mod gather;
pub(crate) mod mapping;
mod messages;
pub(crate) mod sys;
mod udp_receiver;
mod udp_sender;

use std::io;

pub use sys::interface_index;
pub use udp_receiver::{Datagram, ReceiverConfig, UdpReceiver};
pub use udp_sender::{MAX_SEGMENTS, UdpConfig, UdpSender, UdpWay};

/// What came of handing packets to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushed {
    /// All of them were taken.
    All,
    /// The socket has no room for the rest (`EAGAIN`): it becomes writable
    /// when it has.
    Full,
    /// The kernel or the device has no buffers (`ENOBUFS`); the next packet
    /// is still here. Nothing becomes writable: try again a little later.
    NoBuffers,
    /// A host answered an earlier packet with "port unreachable"
    /// (`ECONNREFUSED`); the next packet is still here.
    PortUnreachable,
}

/// Why a socket cannot be opened, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A system call was refused.
    #[error("{what}: {error}{advice}")]
    Refused {
        /// What was to be done.
        what: String,
        /// Why it was not.
        error: io::Error,
        /// What to do about it, where there is something; begins with `: `.
        advice: &'static str,
    },
    /// No interface of this name in this namespace.
    #[error("there is no interface {0}")]
    NoInterface(String),
    /// Numbers that the kernel would not take.
    #[error("{what}: {value} is too much, at most {most}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How much was asked for.
        value: usize,
        /// How much there may be.
        most: usize,
    },
}

impl SocketError {
    /// A refusal with the advice that fits its reason.
    pub(crate) fn refused(what: impl Into<String>, error: io::Error) -> Self {
        let what = what.into();
        let advice = match error.raw_os_error() {
            Some(libc::EACCES) if what.starts_with("listening") => {
                ": ports below 1024 need root (CAP_NET_BIND_SERVICE)"
            }
            Some(libc::EPERM) => {
                ": it takes root (CAP_NET_RAW; for AF_XDP CAP_NET_ADMIN or enough locked memory as well)"
            }
            Some(libc::EACCES) => ": a firewall forbids it, or the address is a broadcast address",
            Some(libc::EMSGSIZE) => ": it is longer than the way's MTU: send a shorter payload",
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
                ": there is no route (ip route get ADDRESS)"
            }
            Some(libc::ENETDOWN) => ": the interface is down (ip link set NAME up)",
            Some(libc::ENODEV | libc::ENXIO) => ": the interface is gone",
            Some(libc::EADDRNOTAVAIL) => ": this host has no such address",
            Some(libc::EADDRINUSE) => ": another program has that port (ss -ulpn)",
            Some(libc::EBUSY) => ": another socket has that queue",
            Some(libc::EMFILE) => ": each flow has a socket: fewer flows, or raise ulimit -n",
            Some(libc::EAFNOSUPPORT) => ": this kernel is built without it",
            Some(libc::EINVAL) => {
                ": is the payload longer than the MTU, or the address none to send to?"
            }
            _ => "",
        };
        Self::Refused {
            what,
            error,
            advice,
        }
    }

    /// The system's number of the error, where the system said it.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Refused { error, .. } => error.raw_os_error(),
            _ => None,
        }
    }
}

/// What an error of a sending call means: [`Flushed`], or that it cannot go
/// on. `None`: the call was interrupted, and is to be made again.
pub(crate) fn flushed(error: io::Error, what: &str) -> Result<Option<Flushed>, SocketError> {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(Some(Flushed::Full)),
        Some(libc::ENOBUFS | libc::ENOMEM) => Ok(Some(Flushed::NoBuffers)),
        Some(libc::ECONNREFUSED) => Ok(Some(Flushed::PortUnreachable)),
        Some(libc::EINTR) => Ok(None),
        _ => Err(SocketError::refused(what, error)),
    }
}

#[cfg(test)]
mod tests;
