//! A netlink socket of `NETLINK_ROUTE`, `NETLINK_GENERIC` or
//! `NETLINK_SOCK_DIAG`, with the settings that large tables need.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use netlink::message::{flag, kind, messages};
use netlink_sys::protocols::{
    NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_XFRM,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny, recvfrom, send, sockopt};

use crate::error::Error;
use crate::namespace::Namespace;

/// What the kernel sends at most at once; a smaller buffer would make it
/// send less.
pub const DATAGRAM_BYTES: usize = 64 * 1024;

/// How long the kernel may take over one piece of an answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// `NLMSG_HDRLEN`.
const HEADER_BYTES: usize = 16;

/// A socket to the kernel inside a namespace.
#[derive(Debug)]
pub struct Socket {
    inner: netlink_sys::Socket,
    /// Datagrams dropped because another process sent them.
    foreign: AtomicU64,
}

/// Foreign datagrams dropped in a row before the caller has its turn.
const FOREIGN_IN_A_ROW: usize = 256;

/// What a receive found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A datagram of so many bytes.
    Bytes(usize),
    /// Nothing is waiting.
    Nothing,
    /// Events were lost: the receive buffer was full (`ENOBUFS`).
    Overrun,
}

impl Socket {
    /// Opens one to the routing tables of a namespace: strict dumps,
    /// extended acknowledgements.
    pub fn open(namespace: &Namespace) -> Result<Self, Error> {
        namespace.run(|| Self::open_here(NETLINK_ROUTE))?
    }

    /// Opens one in each of some namespaces; `None` where that is not
    /// possible. Some 50 µs each, and one thread for all.
    pub fn open_in_each(namespaces: &[Namespace]) -> Result<Vec<Option<Self>>, Error> {
        let opened = Namespace::run_in_each(namespaces, || Self::open_here(NETLINK_ROUTE))?;
        let opened = opened.into_iter();
        Ok(opened.map(|socket| socket.and_then(Result::ok)).collect())
    }

    /// Opens one to the generic families of a namespace, set the same way.
    pub fn open_generic(namespace: &Namespace) -> Result<Self, Error> {
        namespace.run(|| Self::open_here(NETLINK_GENERIC))?
    }

    /// Opens one to the sockets of a namespace, set the same way.
    pub fn open_diag(namespace: &Namespace) -> Result<Self, Error> {
        namespace.run(|| Self::open_here(NETLINK_SOCK_DIAG))?
    }

    /// Opens one to the packet filters of a namespace, set the same way.
    pub fn open_netfilter(namespace: &Namespace) -> Result<Self, Error> {
        namespace.run(|| Self::open_here(NETLINK_NETFILTER))?
    }

    /// Opens one to IPsec's policies of a namespace, set the same way.
    pub fn open_xfrm(namespace: &Namespace) -> Result<Self, Error> {
        namespace.run(|| Self::open_here(NETLINK_XFRM))?
    }

    fn open_here(protocol: isize) -> Result<Self, Error> {
        let mut inner =
            netlink_sys::Socket::new(protocol).map_err(Error::system("open a netlink socket"))?;
        inner
            .bind_auto()
            .map_err(Error::system("bind a netlink socket"))?;
        inner
            .set_netlink_get_strict_chk(true)
            .map_err(Error::system(
                "ask for strict dumps (Linux 4.20 is the oldest that has them)",
            ))?;
        inner
            .set_ext_ack(true)
            .map_err(Error::system("ask for extended acknowledgements"))?;
        inner
            .set_cap_ack(true)
            .map_err(Error::system("ask for capped acknowledgements"))?;
        Ok(Self {
            inner,
            foreign: AtomicU64::new(0),
        })
    }

    /// Joins event groups (`RTNLGRP_…`).
    pub fn join(&self, groups: &[u32]) -> Result<(), Error> {
        groups.iter().try_for_each(|group| {
            self.inner
                .add_membership(*group)
                .map_err(Error::system("subscribe to the kernel's events"))
        })
    }

    /// Sets the receive buffer, beyond the host's limit where allowed.
    /// Gives what it then is, bytes.
    pub fn set_receive_buffer(&self, bytes: usize) -> Result<usize, Error> {
        if sockopt::set_socket_recv_buffer_size_force(self, bytes).is_err() {
            sockopt::set_socket_recv_buffer_size(self, bytes)
                .map_err(Error::errno("set the receive buffer"))?;
        }
        sockopt::socket_recv_buffer_size(self)
            .map_err(Error::errno("read the receive buffer's size"))
    }

    /// Sets the send buffer, beyond the host's limit where allowed.
    pub fn set_send_buffer(&self, bytes: usize) -> Result<(), Error> {
        if sockopt::set_socket_send_buffer_size_force(self, bytes).is_err() {
            sockopt::set_socket_send_buffer_size(self, bytes)
                .map_err(Error::errno("set the send buffer"))?;
        }
        Ok(())
    }

    /// Sends requests to the kernel. It works on them before this returns.
    pub fn send(&self, requests: &[u8]) -> Result<(), Error> {
        loop {
            match send(self, requests, SendFlags::empty()) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::errno("send to the kernel")(errno)),
            }
        }
    }

    /// Makes the kernel answer with an empty acknowledgement
    /// ([`is_nudge`]): wakes whoever waits for this socket, from another
    /// thread. The kernel does nothing else for it, and takes no lock.
    pub fn nudge(&self) -> Result<(), Error> {
        let mut message = [0; HEADER_BYTES];
        message[..4].copy_from_slice(&(HEADER_BYTES as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&kind::NOOP.to_ne_bytes());
        message[6..8].copy_from_slice(&(flag::REQUEST | flag::ACK).to_ne_bytes());
        self.send(&message)
    }

    /// Takes a datagram if one is waiting.
    pub fn try_receive(&self, buffer: &mut [u8]) -> Result<Received, Error> {
        self.receive_with(buffer, RecvFlags::DONTWAIT)
    }

    /// Takes a datagram, waiting for it up to [`PATIENCE`].
    pub fn receive(&self, buffer: &mut [u8], what: &'static str) -> Result<Received, Error> {
        loop {
            let received = self.try_receive(buffer)?;
            if received != Received::Nothing {
                return Ok(received);
            }
            if !self.wait(PATIENCE)? {
                return Err(Error::Silent {
                    what,
                    seconds: PATIENCE.as_secs(),
                });
            }
        }
    }

    /// Datagrams dropped so far because another process sent them.
    pub fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }

    /// Only what the kernel sent (`nl_pid` 0) is given: any process with
    /// `CAP_NET_ADMIN` in the namespace may send to this socket.
    fn receive_with(&self, buffer: &mut [u8], flags: RecvFlags) -> Result<Received, Error> {
        for _ in 0..FOREIGN_IN_A_ROW {
            match recvfrom(self, &mut *buffer, flags | RecvFlags::TRUNC) {
                Ok((_, _, sender)) if !is_kernel(sender.as_ref()) => {
                    self.foreign.fetch_add(1, Ordering::Relaxed);
                }
                Ok((_, len, _)) if len > buffer.len() => {
                    return Err(Error::System {
                        what: "receive from the kernel",
                        source: io::Error::other(format!(
                            "a datagram of {len} bytes does not fit {}",
                            buffer.len()
                        )),
                    });
                }
                Ok((_, len, _)) => return Ok(Received::Bytes(len)),
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(Errno::NOBUFS) => return Ok(Received::Overrun),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::errno("receive from the kernel")(errno)),
            }
        }
        Ok(Received::Nothing)
    }

    /// Waits for a datagram; false when none came in time.
    pub fn wait(&self, patience: Duration) -> Result<bool, Error> {
        wait_for(&mut [PollFd::new(self, PollFlags::IN)], patience)
    }
}

/// Whether a datagram is what came of [`Socket::nudge`]: the only answer to
/// a socket that asks nothing else.
pub fn is_nudge(datagram: &[u8]) -> bool {
    messages(datagram)
        .next()
        .is_some_and(|first| first.is_ok_and(|first| first.kind == kind::ERROR))
}

/// Whether the kernel sent a datagram; a process has its port's number.
fn is_kernel(sender: Option<&SocketAddrAny>) -> bool {
    let sender = sender.and_then(|sender| SocketAddrNetlink::try_from(sender.clone()).ok());
    sender.is_some_and(|sender| sender.pid() == 0)
}

/// Waits until one of the descriptors is ready; false when none was in
/// time.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], patience: Duration) -> Result<bool, Error> {
    let timeout = Timespec {
        tv_sec: patience.as_secs().min(3600) as i64,
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    match poll(fds, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(Error::errno("wait for the kernel")(errno)),
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}
