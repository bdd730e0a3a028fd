//! One sender for each way, with the flows of one core. Opened before any
//! thread is started, so that what is missing is said before anything is
//! sent.

use std::os::fd::BorrowedFd;

use anyhow::{Context, Result, ensure};
use dataplane::socket::{Flushed, UdpConfig, UdpSender, UdpWay};
use dataplane::{Batch, Cache, Port, Sent};

use super::device;
use super::frame::Prefix;
use super::own::{Stack, Tables};
use super::plan::{Plan, Way};
use super::prefixes::prefixes;
use super::toward;
use crate::payload::Header;
use packet::ethernet;

/// Frames that are made and not sent, at most.
const BUFFERS: usize = 512;

/// A way, opened.
pub enum Sender {
    /// Datagrams by the kernel's UDP.
    Udp(Udp),
    /// Frames of our own.
    Frames(Frames),
    /// Packets by our own stack.
    Own(Box<Stack>),
}

/// Datagrams by the kernel's UDP.
pub struct Udp {
    sender: UdpSender,
    /// Whether flows differ by their socket; else by their destination.
    by_socket: bool,
    payload_bytes: usize,
    flow: usize,
}

/// Frames of our own.
pub struct Frames {
    port: Box<dyn Port + Send>,
    cache: Cache,
    batch: Batch,
    frame_bytes: usize,
    link_bytes: usize,
    prefixes: Vec<Prefix>,
    flow: usize,
}

impl Sender {
    /// Opens the way for one of the plan's cores.
    pub fn open(plan: &Plan, core: usize, tables: Option<&Tables>) -> Result<Self> {
        let flows = plan.flows.of_core(core, plan.cores);
        if let Some(tables) = tables {
            let stack = Stack::open(plan, core, &flows, tables)?;
            return Ok(Self::Own(Box::new(stack)));
        }
        if plan.way.builds_frames() {
            return Frames::open(plan, core, &flows).map(Self::Frames);
        }
        Udp::open(plan, &flows).map(Self::Udp)
    }

    /// Writes up to `count` packets into slots; how many found one.
    /// `header` gives the header of the next packet of a flow of this core,
    /// counted from 0.
    pub fn push(&mut self, count: usize, mut header: impl FnMut(usize) -> Header) -> usize {
        match self {
            Self::Udp(udp) => udp.push(count, header),
            Self::Frames(frames) => frames.push(count, &mut header),
            Self::Own(stack) => stack.push(count, header),
        }
    }

    /// Hands them to the kernel.
    pub fn flush(&mut self) -> Result<Flushed> {
        match self {
            Self::Udp(udp) => Ok(udp.sender.flush()?),
            Self::Frames(frames) => frames.flush(),
            Self::Own(stack) => stack.flush(),
        }
    }

    /// Packets that the kernel has sent, or for datagrams, taken.
    pub fn sent(&self) -> u64 {
        match self {
            Self::Udp(udp) => udp.sender.sent(),
            Self::Frames(frames) => frames.port.counters().sent_packets,
            Self::Own(stack) => stack.sent(),
        }
    }

    /// Packets that the kernel gave back unsent.
    pub fn refused(&self) -> u64 {
        match self {
            Self::Udp(_) => 0,
            Self::Frames(frames) => frames.port.counters().refused_packets,
            Self::Own(stack) => stack.refused(),
        }
    }

    /// Packets whose bytes were copied into memory that a device sends from.
    pub fn copied(&self) -> u64 {
        match self {
            Self::Udp(_) => 0,
            Self::Frames(frames) => frames.port.counters().copied_packets,
            Self::Own(stack) => stack.copied(),
        }
    }

    /// Packets that are on their way.
    pub fn pending(&self) -> usize {
        match self {
            Self::Udp(udp) => udp.sender.pending(),
            Self::Frames(frames) => frames.batch.len() + frames.port.pending(),
            Self::Own(stack) => stack.pending(),
        }
    }

    /// Looks which of them the kernel has sent meanwhile.
    pub fn reap(&mut self) {
        match self {
            Self::Udp(_) => {}
            Self::Frames(frames) => frames.port.reap(),
            Self::Own(stack) => stack.reap(),
        }
    }

    /// Our own stack, if that is the way.
    pub fn stack(&self) -> Option<&Stack> {
        match self {
            Self::Own(stack) => Some(stack),
            _ => None,
        }
    }

    /// What becomes writable when there is room.
    pub fn writable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Udp(udp) => udp.sender.writable(),
            Self::Frames(frames) => frames.port.writable(),
            Self::Own(stack) => stack.writable(),
        }
    }
}

impl Udp {
    fn open(plan: &Plan, flows: &[u32]) -> Result<Self> {
        let vary = plan.flows.vary();
        let pairs = || flows.iter().map(|flow| plan.flows.get(*flow));
        let (sources, destinations) = if vary.is_destination() {
            let to = pairs().map(|(_, to)| to).collect();
            (vec![plan.flows.source()], to)
        } else {
            let sources = pairs().map(|(source, _)| source).collect();
            (sources, vec![plan.flows.to()])
        };
        let way = match plan.way {
            Way::Sendto => UdpWay::SendTo,
            Way::Connected => UdpWay::Connected,
            Way::Segments => UdpWay::Segments,
            _ => UdpWay::SendMmsg,
        };
        ensure!(
            plan.next_hop.is_none(),
            "--next-hop is for frames: choose --by af-packet"
        );
        let config = UdpConfig {
            way,
            destinations,
            sources,
            payload_bytes: plan.payload_bytes,
            batch: plan.batch,
            broadcast: plan.broadcast,
            interface: plan.interface.clone(),
        };
        let sender = UdpSender::open(&config)?;
        Ok(Self {
            by_socket: sender.sockets() == flows.len(),
            sender,
            payload_bytes: plan.payload_bytes,
            flow: 0,
        })
    }

    fn push(&mut self, count: usize, mut header: impl FnMut(usize) -> Header) -> usize {
        let flows = self.flows();
        if self.by_socket {
            self.flow = (self.flow + 1) % flows;
            self.sender.choose(self.flow);
        }
        let mut pushed = 0;
        while pushed < count {
            if !self.by_socket {
                self.flow = (self.flow + 1) % flows;
            }
            // One socket a flow: all of them go to the first destination.
            let to = if self.by_socket { 0 } else { self.flow as u32 };
            let Some((slots, train)) = self.sender.push_train(to, count - pushed) else {
                return pushed;
            };
            // At least 1: a payload may be empty.
            for slot in slots.chunks_exact_mut(self.payload_bytes.max(1)) {
                header(self.flow).write(slot);
            }
            pushed += train;
        }
        count
    }

    fn flows(&self) -> usize {
        self.sender.sockets().max(self.sender.destinations()).max(1)
    }
}

impl Frames {
    fn open(plan: &Plan, core: usize, flows: &[u32]) -> Result<Self> {
        let toward = toward::resolve(plan)?;
        let link = toward.link.with_context(|| {
            format!(
                "{} carries no Ethernet frames: choose --by sendmmsg",
                toward.interface
            )
        })?;
        let prefixes = prefixes(plan, flows, Some(link), toward.source)?;
        let headers = prefixes.first().map_or(0, Prefix::len);
        let frame_bytes = headers + plan.payload_bytes;
        let most = toward.mtu + ethernet::HEADER_LEN;
        ensure!(
            frame_bytes <= most,
            "{} bytes of payload are longer than the MTU of {}: at most {}",
            plan.payload_bytes,
            toward.interface,
            most.saturating_sub(headers)
        );
        let (name, batch) = (&toward.interface, plan.batch);
        let pool = device::pool(plan.way, frame_bytes, BUFFERS.max(4 * batch))?;
        let port = device::open(plan.way, name, core, frame_bytes, batch, &pool)?;
        Ok(Self {
            port,
            cache: pool.cache(),
            batch: Batch::new(plan.batch),
            frame_bytes,
            link_bytes: ethernet::HEADER_LEN,
            prefixes,
            flow: 0,
        })
    }

    fn push(&mut self, count: usize, header: &mut dyn FnMut(usize) -> Header) -> usize {
        let before = self.batch.len();
        let got = self.cache.fill(&mut self.batch, count);
        for buffer in self.batch.packets_mut().iter_mut().skip(before) {
            self.flow = if self.flow + 1 < self.prefixes.len() {
                self.flow + 1
            } else {
                0
            };
            buffer.set_len(self.frame_bytes - self.link_bytes);
            buffer.link_mut(self.link_bytes);
            if let Some(prefix) = self.prefixes.get(self.flow) {
                let frame = buffer.frame_mut();
                // What was in the buffer before is anything.
                frame.get_mut(prefix.len()..).unwrap_or_default().fill(0);
                prefix.write(frame, &header(self.flow));
            }
        }
        got
    }

    fn flush(&mut self) -> Result<Flushed> {
        Ok(match self.port.send(&mut self.cache, &mut self.batch)? {
            Sent::All => Flushed::All,
            Sent::Full => Flushed::Full,
            Sent::NoBuffers => Flushed::NoBuffers,
        })
    }
}
