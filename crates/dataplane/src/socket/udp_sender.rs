//! UDP by the kernel's sockets: `sendto`, connected `send`, `sendmmsg`, and
//! trains that the kernel or the device cuts (`UDP_SEGMENT`).

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::messages::Messages;
use super::sys::{self, Address};
use super::{Flushed, SocketError};

/// Datagrams in one train: `UDP_MAX_SEGMENTS` of kernels before 6.11, and
/// half of those since.
pub const MAX_SEGMENTS: usize = 64;
/// Bytes of the longest UDP payload over IPv4, trains included.
const MAX_BYTES: usize = 65_507;

/// How a socket is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UdpWay {
    /// A `sendto` with its address for each packet.
    SendTo,
    /// A `send` on a connected socket for each packet: the route is kept.
    Connected,
    /// One `sendmmsg` on connected sockets for a batch.
    SendMmsg,
    /// Trains of datagrams, several of them in one `sendmmsg`.
    Segments,
}

/// What a [`UdpSender`] is opened with.
#[derive(Debug, Clone)]
pub struct UdpConfig {
    /// How it sends.
    pub way: UdpWay,
    /// To whom. At least one, all of one family.
    pub destinations: Vec<SocketAddr>,
    /// From where: a socket for each. An unspecified address and port 0
    /// leave the choice to the kernel.
    pub sources: Vec<SocketAddr>,
    /// Bytes of each payload.
    pub payload_bytes: usize,
    /// Packets between two flushes, at most.
    pub batch: usize,
    /// Whether it may send to a broadcast address.
    pub broadcast: bool,
    /// The interface that it sends by, whatever the routes say.
    pub interface: Option<String>,
}

/// Sends datagrams of one size.
pub struct UdpSender {
    way: UdpWay,
    sockets: Vec<OwnedFd>,
    /// Empty where sockets are connected.
    addresses: Vec<Address>,
    /// Destinations, and sockets for each of them.
    socket: usize,
    messages: Messages,
    sent: u64,
}

impl UdpSender {
    /// Opens the sockets: one for each source, and where the way is a
    /// connected one, for each source and destination.
    pub fn open(config: &UdpConfig) -> Result<Self, SocketError> {
        let per_message = Self::per_message(config)?;
        let connected = matches!(config.way, UdpWay::Connected)
            || config.way != UdpWay::SendTo && config.destinations.len() == 1;
        let addresses: Vec<Address> = config.destinations.iter().map(Address::of).collect();
        let mut sockets = Vec::new();
        for source in &config.sources {
            if !connected {
                sockets.push(open(config, source, None)?);
                continue;
            }
            for (to, address) in config.destinations.iter().zip(&addresses) {
                sockets.push(open(config, source, Some((to, address)))?);
            }
        }
        Ok(Self {
            way: config.way,
            sockets,
            addresses: if connected { Vec::new() } else { addresses },
            socket: 0,
            messages: Messages::new(config.batch.max(1), config.payload_bytes, per_message),
            sent: 0,
        })
    }

    fn per_message(config: &UdpConfig) -> Result<usize, SocketError> {
        if config.payload_bytes > MAX_BYTES {
            return Err(SocketError::TooMuch {
                what: "bytes of payload",
                value: config.payload_bytes,
                most: MAX_BYTES,
            });
        }
        if config.way != UdpWay::Segments {
            return Ok(1);
        }
        let fit = MAX_BYTES / config.payload_bytes.max(1);
        Ok(fit.clamp(1, MAX_SEGMENTS))
    }

    /// How many sockets there are: flows that each need one.
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// Destinations that `push` may name; none where sockets are connected.
    pub fn destinations(&self) -> usize {
        self.addresses.len()
    }

    /// Chooses the socket for what is pushed next. Nothing may be pending.
    pub fn choose(&mut self, socket: usize) {
        if self.pending() == 0 {
            self.socket = socket;
        }
    }

    /// The next slot, with the payload that was in it before, for a number
    /// in the list of destinations. `None`: flush first.
    pub fn push(&mut self, destination: u32) -> Option<&mut [u8]> {
        self.messages.push(destination)
    }

    /// The next slots of one train, one behind the other, and how many: at
    /// most so many. As [`UdpSender::push`].
    #[inline]
    pub fn push_train(&mut self, destination: u32, most: usize) -> Option<(&mut [u8], usize)> {
        self.messages.push_train(destination, most)
    }

    /// Hands what was pushed to the kernel.
    pub fn flush(&mut self) -> Result<Flushed, SocketError> {
        let Some(socket) = self.sockets.get(self.socket) else {
            self.messages.clear();
            return Ok(Flushed::All);
        };
        let (to, sent) = (&self.addresses, &mut self.sent);
        match self.way {
            UdpWay::SendTo => self.messages.flush_each(socket, to, sent, "sendto"),
            UdpWay::Connected => self.messages.flush_each(socket, to, sent, "send"),
            UdpWay::SendMmsg => self.messages.flush(socket, to, sent, "sendmmsg"),
            UdpWay::Segments => self
                .messages
                .flush(socket, to, sent, "sendmmsg with UDP_SEGMENT"),
        }
    }

    /// Packets that wait to be sent.
    pub fn pending(&self) -> usize {
        self.messages.pending()
    }

    /// Packets that the kernel has taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What becomes writable when there is room again.
    pub fn writable(&self) -> Option<BorrowedFd<'_>> {
        self.sockets.get(self.socket).map(OwnedFd::as_fd)
    }
}

fn open(
    config: &UdpConfig,
    source: &SocketAddr,
    to: Option<(&SocketAddr, &Address)>,
) -> Result<OwnedFd, SocketError> {
    let domain = match source {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let socket = sys::socket(domain, libc::SOCK_DGRAM, 0, "opening a UDP socket")?;
    let refused = |what: String| move |source| SocketError::refused(what, source);
    let set = |level, name, value: i32, what: &str| {
        sys::set_option(&socket, level, name, &value).map_err(refused(what.to_owned()))
    };
    if config.broadcast {
        set(libc::SOL_SOCKET, libc::SO_BROADCAST, 1, "SO_BROADCAST")?;
    }
    if let Some(interface) = &config.interface {
        let index = sys::interface_index(interface)? as i32;
        set(
            libc::SOL_SOCKET,
            libc::SO_BINDTOIFINDEX,
            index,
            "SO_BINDTOIFINDEX",
        )?;
    }
    if !source.ip().is_unspecified() || source.port() != 0 {
        sys::bind(&socket, &Address::of(source)).map_err(refused(format!("binding {source}")))?;
    }
    if let Some((to, address)) = to {
        sys::connect(&socket, address).map_err(refused(format!("connecting to {to}")))?;
    }
    Ok(socket)
}
