//! The thread that has the sockets of all feeds. It reads whatever comes as
//! soon as it comes, so that no peer waits, and shows readers what came at
//! most every few milliseconds.
//!
//! - `entrance`: a door, and who is let in.
//! - `candidate`: connections that have fed nothing yet, and which of them
//!   becomes the feed.
//! - `line`: a feed by FPM, its door and its connection; `routers`: one by
//!   BMP, its door and its connections; `served`: either.

mod candidate;
mod entrance;
mod line;
mod routers;
mod served;

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ipnet::IpNet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use table::{Feeder, Feeders};

use crate::bmp::StationLimits;
use crate::fpm::Forwarded;
use crate::now::Now;
use crate::recording::Tape;
use served::Served;

/// Between two looks whether a peer has told all.
const TICK: Duration = Duration::from_secs(1);
/// Bytes that are read at once: some four thousand routes.
const CHUNK: usize = 256 << 10;

/// Where a feed's peer connects: a listening socket, and who may.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
    peers: Vec<IpNet>,
}

impl Door {
    /// Listens at an address, with port 0 at a free one. Besides those in
    /// `peers` the host itself may connect.
    pub fn open(address: SocketAddr, peers: &[IpNet]) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            peers: peers.to_vec(),
        })
    }

    /// Another value for the same socket.
    pub fn again(&self) -> io::Result<Self> {
        Ok(Self {
            listener: self.listener.try_clone()?,
            address: self.address,
            peers: self.peers.clone(),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn lets_in(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        peer.is_loopback() || self.peers.iter().any(|net| net.contains(&peer))
    }
}

/// The port that zebra connects to unless told otherwise
/// (`FPM_DEFAULT_PORT`).
pub const FPM_PORT: u16 = 2620;
/// The port of BMP stations that GoBGP takes unless told otherwise; none is
/// assigned.
pub const BMP_PORT: u16 = 11_019;

/// Reads where the peers of a feed connect: an address of this host, and a
/// port if it is not the usual one. Else what is wrong, in words.
pub fn loopback_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let address = text.parse::<SocketAddr>();
    let address = address.or_else(|_| text.parse().map(|ip: IpAddr| (ip, port).into()));
    let wrong = |_| format!("an address is expected, such as 127.0.0.1:{port}");
    let address = address.map_err(wrong)?;
    if !address.ip().to_canonical().is_loopback() {
        return Err(format!(
            "{address} is beyond loopback, where anybody could tell routes: a feed in the \
             configuration of `up` names those who may in `peers`"
        ));
    }
    Ok(address)
}

/// A feed to be served.
#[derive(Debug)]
pub enum Feed {
    /// A routing daemon by FPM.
    Fpm(FpmFeed),
    /// Routers by BMP.
    Bmp(StationFeed),
}

/// A feed by FPM: where its peer connects, and whose rows it has.
#[derive(Debug)]
pub struct FpmFeed {
    /// Where its peer connects.
    pub door: Door,
    /// Where its rows go.
    pub feeder: Feeder,
    /// Whether packets are forwarded by them here: its routes are
    /// acknowledged then, as [`Server::forwarded`] says.
    pub is_forwarded: bool,
    /// Where what it hears is recorded.
    pub tape: Option<Arc<dyn Tape>>,
}

/// A feed by BMP.
#[derive(Debug)]
pub struct StationFeed {
    /// Where its routers connect.
    pub door: Door,
    /// Has its name, and says how it is.
    pub own: Feeder,
    /// Where the tables of its routers' peers join.
    pub feeders: Feeders,
    /// How much it takes.
    pub limits: StationLimits,
    /// Where what it hears is recorded.
    pub tape: Option<Arc<dyn Tape>>,
}

/// What a feed takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// Rows of a feed by FPM.
    Fpm(table::Limits),
    /// Of one by BMP.
    Bmp(StationLimits),
}

/// The running thread. Dropped, it ends, and the rows of its feeds leave.
#[derive(Debug)]
pub struct Server {
    orders: Sender<Order>,
    bell: UnixStream,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Order {
    Limits(String, Limits),
    Forwarded(String, Forwarded),
    End,
}

impl Server {
    /// Starts to serve feeds. Returns at once.
    pub fn start(feeds: Vec<Feed>) -> io::Result<Self> {
        let (orders, taken) = channel();
        let (bell, rung) = UnixStream::pair()?;
        rung.set_nonblocking(true)?;
        let worker = Worker {
            lines: feeds.into_iter().map(Served::new).collect(),
            orders: taken,
            bell: rung,
            began: Instant::now(),
            ticked: Duration::ZERO,
            buffer: vec![0; CHUNK].into(),
        };
        let thread = std::thread::Builder::new()
            .name("feeds".into())
            .spawn(move || worker.run())?;
        Ok(Self {
            orders,
            bell,
            thread: Some(thread),
        })
    }

    /// Has a feed take other limits, for rows to come.
    pub fn set_limits(&self, name: &str, limits: Limits) {
        self.order(Order::Limits(name.to_owned(), limits));
    }

    /// Says how forwarding by a feed stands. Returns at once.
    pub fn forwarded(&self, name: &str, news: Forwarded) {
        self.order(Order::Forwarded(name.to_owned(), news));
    }

    fn order(&self, order: Order) {
        // A thread that is gone needs no orders.
        let _ = self.orders.send(order);
        let _ = (&self.bell).write(&[1]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.order(Order::End);
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

struct Worker {
    lines: Vec<Served>,
    orders: Receiver<Order>,
    bell: UnixStream,
    began: Instant,
    ticked: Duration,
    buffer: Box<[u8]>,
}

impl Worker {
    fn run(mut self) {
        if let Err(error) = privileges::drop_all() {
            tracing::warn!("the feeds' thread keeps its capabilities: {error}");
        }
        loop {
            let called = match self.wait() {
                Ok(called) => called,
                Err(error) => {
                    tracing::error!("the feeds end: cannot wait for their peers: {error}");
                    return;
                }
            };
            if !self.take_orders() {
                return;
            }
            let now = self.now();
            let mut called = called.into_iter();
            for line in &mut self.lines {
                let own: Vec<bool> = called.by_ref().take(line.sockets().len()).collect();
                line.serve(&own, &mut self.buffer, now);
            }
            self.look(now);
        }
    }

    fn now(&self) -> Now {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let instant = Instant::now();
        Now {
            monotonic: instant.saturating_duration_since(self.began),
            instant: Some(instant),
            millis: since.map_or(0, |since| since.as_millis() as u64),
        }
    }

    /// Waits until somebody calls or something is due; which of all lines'
    /// sockets were called, in their order.
    fn wait(&self) -> io::Result<Vec<bool>> {
        let now = self.began.elapsed();
        let due = self.lines.iter().filter_map(Served::due);
        let due = due.chain([self.ticked + TICK]).min().unwrap_or(now);
        let patience = due.saturating_sub(now);
        let patience = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        let sockets = self.lines.iter().flat_map(Served::sockets);
        let mut fds: Vec<PollFd<'_>> = [(self.bell.as_fd(), PollFlags::IN)]
            .into_iter()
            .chain(sockets)
            .map(|(fd, what)| PollFd::from_borrowed_fd(fd, what))
            .collect();
        match poll(&mut fds, Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(fds
            .iter()
            .skip(1)
            .map(|fd| !fd.revents().is_empty())
            .collect())
    }

    /// False: to end.
    fn take_orders(&mut self) -> bool {
        let mut bytes = [0; 64];
        while self.bell.read(&mut bytes).is_ok_and(|read| read > 0) {}
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::End => return false,
                Order::Limits(name, limits) => {
                    if let Some(line) = self.line(&name) {
                        line.set_limits(limits);
                    }
                }
                Order::Forwarded(name, news) => {
                    if let Some(line) = self.line(&name) {
                        line.forwarded(news);
                    }
                }
            }
        }
        true
    }

    fn line(&mut self, name: &str) -> Option<&mut Served> {
        self.lines.iter_mut().find(|line| line.name() == name)
    }

    fn look(&mut self, now: Now) {
        let is_due = now.monotonic.saturating_sub(self.ticked) >= TICK;
        if is_due {
            self.ticked = now.monotonic;
        }
        for line in &mut self.lines {
            if is_due {
                line.tick(now);
            }
            line.publish(now);
            line.send();
        }
    }
}
