//! A UDP socket on which SNMP is asked: datagrams in batches in, answers
//! in batches out, each from the address that was asked.
//!
//! One `recvmmsg` waits for a datagram and takes those that wait behind it;
//! one `sendmmsg` sends all answers. On a socket that is bound to every
//! address the answer must name the one that was asked (`IP_PKTINFO`), and
//! goes out by a `sendmsg` of its own. Called by [`super::listener`].

use std::array;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use arrayvec::ArrayVec;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrIn, SockaddrIn6,
    SockaddrStorage, recvmmsg, sendmsg, setsockopt, sockopt,
};
use rustix::net::addr::SocketAddrArg;
use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketFlags,
    SocketType, bind, getsockname, sendmmsg, shutdown, socket_with, sockopt as options,
};
use snmp::agent::ANSWER_BUFFER_BYTES;

use super::fair::Datagram;

/// Datagrams taken and answered at once.
pub const BATCH: usize = 32;
/// No UDP datagram is longer.
const DATAGRAM_BYTES: usize = 65_536;
/// What the kernel keeps of datagrams that wait for us: a burst of some
/// thousand requests. Less where the host's limit is lower.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// A socket that is bound.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    address: SocketAddr,
}

/// A datagram's way: who sent it to which of our addresses.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// Who asks.
    pub from: SocketAddr,
    /// The address that was asked, on a socket bound to all of them, and
    /// its link.
    to: Option<(IpAddr, u32)>,
}

/// Datagrams and their answers. Allocated once.
pub struct Batch {
    buffers: Vec<u8>,
    headers: MultiHeaders<SockaddrStorage>,
    received: ArrayVec<(usize, Way), BATCH>,
    answers: ArrayVec<(Range<usize>, Way), BATCH>,
    /// A place for each answer.
    out: Vec<u8>,
}

impl Way {
    /// From an address, to whichever of ours.
    #[cfg(test)]
    pub fn of(from: SocketAddr) -> Self {
        Self { from, to: None }
    }
}

impl Socket {
    /// Binds a socket. IPv6 ones speak no IPv4: list both addresses where
    /// both are wanted. A wait on it ends after `patience` at the latest.
    pub fn bind(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let fd = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        if address.is_ipv6() {
            options::set_ipv6_v6only(&fd, true)?;
        }
        if address.ip().is_unspecified() {
            match address {
                SocketAddr::V4(_) => setsockopt(&fd, sockopt::Ipv4PacketInfo, &true)?,
                SocketAddr::V6(_) => setsockopt(&fd, sockopt::Ipv6RecvPacketInfo, &true)?,
            }
        }
        options::set_socket_recv_buffer_size(&fd, RECEIVE_BUFFER_BYTES)?;
        options::set_socket_timeout(&fd, options::Timeout::Recv, Some(patience))?;
        bind(&fd, &address)?;
        // The port that was chosen, where none was asked for.
        let address = getsockname(&fd)?.try_into()?;
        Ok(Self { fd, address })
    }

    /// Where it is bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends a wait on it, and each one to come.
    pub fn wake(&self) {
        // A socket without a peer says that it has none, and wakes up.
        let _ = shutdown(&self.fd, Shutdown::Read);
    }

    /// Waits for datagrams and takes those that are there. None when the
    /// patience is over. One system call.
    pub fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        self.receive_with(MsgFlags::MSG_WAITFORONE, batch)
    }

    /// Takes the datagrams that are there, and waits for none.
    pub fn receive_now(&self, batch: &mut Batch) -> io::Result<()> {
        self.receive_with(MsgFlags::MSG_DONTWAIT, batch)
    }

    fn receive_with(&self, flags: MsgFlags, batch: &mut Batch) -> io::Result<()> {
        batch.received.clear();
        let mut buffers = batch.buffers.chunks_exact_mut(DATAGRAM_BYTES);
        let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
            array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
        let fd = self.fd.as_raw_fd();
        let results = match recvmmsg(fd, &mut batch.headers, slices.iter_mut(), flags, None) {
            Ok(results) => results,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        for message in results {
            // Without an address nobody could be answered; its place
            // stays, so that the buffers keep theirs.
            let way = way(&message).unwrap_or(Way {
                from: SocketAddr::from(([0; 4], 0)),
                to: None,
            });
            batch.received.push((message.bytes, way));
        }
        Ok(())
    }

    /// Sends the answers. One system call, or one for each on a socket
    /// that is bound to all addresses. Gives the number that the system
    /// did not take: it is never waited for.
    pub fn send(&self, batch: &mut Batch) -> usize {
        let refused = if self.address.ip().is_unspecified() {
            self.send_from_the_asked(batch)
        } else {
            self.send_all(batch)
        };
        batch.answers.clear();
        refused
    }

    fn send_all(&self, batch: &Batch) -> usize {
        let answer = |range: &Range<usize>| batch.out.get(range.clone()).unwrap_or_default();
        let slices: ArrayVec<[IoSlice<'_>; 1], BATCH> = batch
            .answers
            .iter()
            .map(|(range, _)| [IoSlice::new(answer(range))])
            .collect();
        let addresses: ArrayVec<SocketAddrAny, BATCH> = batch
            .answers
            .iter()
            .map(|(_, way)| way.from.as_any())
            .collect();
        let mut controls: ArrayVec<SendAncillaryBuffer<'_, '_, '_>, BATCH> = batch
            .answers
            .iter()
            .map(|_| SendAncillaryBuffer::default())
            .collect();
        let mut headers: ArrayVec<MMsgHdr<'_>, BATCH> = addresses
            .iter()
            .zip(&slices)
            .zip(&mut controls)
            .map(|((address, slice), control)| MMsgHdr::new_with_addr(address, slice, control))
            .collect();
        let mut rest: &mut [MMsgHdr<'_>] = &mut headers;
        let mut refused = 0;
        while !rest.is_empty() {
            let sent = match sendmmsg(&self.fd, rest, SendFlags::DONTWAIT) {
                Ok(sent) => sent.max(1),
                // The first of them is what it complains of.
                Err(_) => {
                    refused += 1;
                    1
                }
            };
            rest = rest.get_mut(sent..).unwrap_or_default();
        }
        refused
    }

    fn send_from_the_asked(&self, batch: &Batch) -> usize {
        let sent = |(range, way): &&(Range<usize>, Way)| {
            let answer = batch.out.get(range.clone()).unwrap_or_default();
            self.send_one(answer, way).is_ok()
        };
        batch.answers.len() - batch.answers.iter().filter(sent).count()
    }

    /// Sends one answer; whether the system took it.
    pub fn answer(&self, answer: &[u8], way: &Way) -> bool {
        self.send_one(answer, way).is_ok()
    }

    fn send_one(&self, answer: &[u8], way: &Way) -> nix::Result<usize> {
        let fd = self.fd.as_raw_fd();
        let slices = [IoSlice::new(answer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        match (way.from, way.to) {
            (SocketAddr::V4(from), Some((IpAddr::V4(own), _))) => {
                let info = in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: in_addr {
                        s_addr: u32::from_ne_bytes(own.octets()),
                    },
                    ipi_addr: in_addr { s_addr: 0 },
                };
                let control = [ControlMessage::Ipv4PacketInfo(&info)];
                sendmsg(fd, &slices, &control, flags, Some(&SockaddrIn::from(from)))
            }
            (SocketAddr::V6(from), Some((IpAddr::V6(own), link))) => {
                let info = in6_pktinfo {
                    ipi6_addr: in6_addr {
                        s6_addr: own.octets(),
                    },
                    ipi6_ifindex: link,
                };
                let control = [ControlMessage::Ipv6PacketInfo(&info)];
                sendmsg(fd, &slices, &control, flags, Some(&SockaddrIn6::from(from)))
            }
            (SocketAddr::V4(from), _) => {
                sendmsg(fd, &slices, &[], flags, Some(&SockaddrIn::from(from)))
            }
            (SocketAddr::V6(from), _) => {
                sendmsg(fd, &slices, &[], flags, Some(&SockaddrIn6::from(from)))
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Who sent a datagram, and where to.
fn way(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<Way> {
    let address = message.address?;
    let from = if let Some(v4) = address.as_sockaddr_in() {
        SocketAddr::V4(SocketAddrV4::new(v4.ip(), v4.port()))
    } else {
        let v6 = address.as_sockaddr_in6()?;
        SocketAddr::V6(SocketAddrV6::new(v6.ip(), v6.port(), 0, v6.scope_id()))
    };
    let mut controls = message.cmsgs().into_iter().flatten();
    let to = controls.find_map(|control| match control {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            let own = Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes());
            Some((IpAddr::V4(own), 0))
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            let own = Ipv6Addr::from(info.ipi6_addr.s6_addr);
            let link = own.is_unicast_link_local();
            // A group cannot answer: the system chooses then.
            let to = (IpAddr::V6(own), if link { info.ipi6_ifindex } else { 0 });
            (!own.is_multicast()).then_some(to)
        }
        _ => None,
    });
    Some(Way { from, to })
}

impl Batch {
    /// Room for datagrams; it is touched as far as they are long.
    pub fn new() -> Self {
        Self {
            buffers: vec![0; BATCH * DATAGRAM_BYTES],
            headers: MultiHeaders::preallocate(BATCH, Some(cmsg_space!(in6_pktinfo))),
            received: ArrayVec::new(),
            answers: ArrayVec::new(),
            out: vec![0; BATCH * ANSWER_BUFFER_BYTES],
        }
    }

    /// Whether more may wait in the socket.
    pub fn is_full(&self) -> bool {
        self.received.is_full()
    }

    /// What was received.
    pub fn received(&self) -> impl Iterator<Item = (&[u8], Way)> {
        let datagrams = self.buffers.chunks_exact(DATAGRAM_BYTES);
        let received = self.received.iter().zip(datagrams);
        received.map(|((len, way), datagram)| (datagram.get(..*len).unwrap_or_default(), *way))
    }

    /// Has other datagrams for those received, `most` of them.
    pub fn load(&mut self, most: usize, mut next: impl FnMut() -> Option<Datagram>) {
        self.received.clear();
        for place in self.buffers.chunks_exact_mut(DATAGRAM_BYTES).take(most) {
            let Some(datagram) = next() else { return };
            let len = datagram.octets.len().min(place.len());
            place[..len].copy_from_slice(&datagram.octets[..len]);
            self.received.push((len, datagram.way));
        }
    }

    /// Whether nothing was received.
    pub fn is_empty(&self) -> bool {
        self.received.is_empty()
    }

    /// Hands each datagram received, its place among them, its way and room
    /// for its answer to `answer`, which gives the answer's length, or none.
    pub fn answer(
        &mut self,
        mut answer: impl FnMut(usize, &[u8], Way, &mut [u8]) -> Option<usize>,
    ) {
        let datagrams = self.buffers.chunks_exact(DATAGRAM_BYTES);
        let places = self.out.chunks_exact_mut(ANSWER_BUFFER_BYTES);
        let received = self.received.iter().zip(datagrams).zip(places);
        for (at, (((len, way), datagram), place)) in received.enumerate() {
            let datagram = datagram.get(..*len).unwrap_or_default();
            if let Some(len) = answer(at, datagram, *way, place) {
                let start = at * ANSWER_BUFFER_BYTES;
                // There is a place for each one received.
                self.answers.push((start..start + len, *way));
            }
        }
    }
}

#[cfg(test)]
mod tests;
