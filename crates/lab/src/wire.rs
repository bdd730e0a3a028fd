//! Frames in and out of the links of a namespace, as they are: what a test
//! has in hand of the other ends of a router's cables. Called by tests.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvfrom, sendto, socket,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use crate::Netns;

/// Longer than any frame.
const FRAME_BYTES: usize = 1 << 16;
/// Bytes of frames that may wait to be heard.
const UNHEARD: usize = 32 << 20;

/// All links of a namespace at once.
#[derive(Debug)]
pub struct Wire {
    socket: OwnedFd,
    links: Vec<(String, LinkAddr)>,
}

impl Wire {
    /// Opens one for the links that are there. It hears everything that comes
    /// in or goes out by them. Needs `CAP_NET_RAW` there.
    pub fn open(netns: &Netns) -> Result<Self> {
        Self::with(netns, Some(SockProtocol::EthAll))
    }

    /// One that hears nothing: what comes in costs nothing here.
    pub fn deaf(netns: &Netns) -> Result<Self> {
        Self::with(netns, None)
    }

    fn with(netns: &Netns, heard: Option<SockProtocol>) -> Result<Self> {
        netns.inside(|| {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let family = AddressFamily::Packet;
            let socket =
                socket(family, SockType::Raw, flags, heard).context("opening a packet socket")?;
            set_socket_recv_buffer_size_force(&socket, UNHEARD)
                .context("making room for frames")?;
            let links = getifaddrs().context("listing links")?.filter_map(|one| {
                let address = one.address?;
                Some((one.interface_name, *address.as_link_addr()?))
            });
            let links = links.collect();
            Ok(Self { socket, links })
        })?
    }

    /// Sends a frame by a link. One that the other end does not take (it is
    /// longer than that one's MTU) is gone.
    pub fn send(&self, link: &str, frame: &[u8]) -> Result<()> {
        let found = self.links.iter().find(|(name, _)| name == link);
        let (_, address) = found.with_context(|| format!("there is no link {link}"))?;
        loop {
            let fd = self.socket.as_raw_fd();
            match sendto(fd, frame, address, MsgFlags::empty()) {
                Ok(_) => return Ok(()),
                Err(Errno::ENOBUFS) => return Ok(()),
                Err(Errno::EAGAIN) => {
                    self.wait(PollFlags::OUT, Duration::from_secs(1))?;
                }
                Err(error) => return Err(error).with_context(|| format!("sending by {link}")),
            }
        }
    }

    /// The next frame and its link; `None`: none came in time. Those that
    /// were sent here are heard as well.
    pub fn receive(&self, patience: Duration) -> Result<Option<(&str, Vec<u8>)>> {
        let deadline = Instant::now() + patience;
        let mut frame = vec![0; FRAME_BYTES];
        loop {
            match recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut frame) {
                Ok((len, from)) => {
                    let index = from.map(|from| from.ifindex());
                    let mut links = self.links.iter();
                    let link = links.find(|(_, link)| Some(link.ifindex()) == index);
                    let Some((name, _)) = link else { continue };
                    frame.truncate(len);
                    return Ok(Some((name, frame)));
                }
                Err(Errno::EAGAIN) => {}
                Err(error) => return Err(error).context("receiving frames"),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.wait(PollFlags::IN, left)? {
                return Ok(None);
            }
        }
    }

    fn wait(&self, what: PollFlags, patience: Duration) -> Result<bool> {
        let timeout = Timespec::try_from(patience)?;
        match poll(&mut [PollFd::new(&self.socket, what)], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error).context("waiting for frames"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;
    use crate::wait::wait_until;

    #[test]
    fn a_frame_goes_over_a_pair() {
        let Some(netns) = skip::unless(Netns::new("wire")) else {
            return;
        };
        netns
            .ip_batch("link add one up type veth peer name two\nlink set two up\n")
            .unwrap();
        let wire = Wire::open(&netns).unwrap();
        let frame = [
            &[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5][..],
            &[7; 50],
        ]
        .concat();
        // Until the kernel has seen to the carrier, it drops what is sent.
        wait_until(Duration::from_secs(60), "the frame", || {
            wire.send("one", &frame).unwrap();
            while let Some((link, bytes)) = wire.receive(Duration::from_millis(100)).unwrap() {
                if link == "two" && bytes == frame {
                    return Some(());
                }
            }
            None
        })
        .unwrap();
        assert!(wire.send("three", &frame).is_err());
    }
}
