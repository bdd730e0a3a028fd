//! One sender for each way, with the flows of one core. Opened before any
//! thread is started, so that what is missing is said before anything is
//! sent.

use std::os::fd::BorrowedFd;

use anyhow::{Context, Result, ensure};
use dataplane::socket::{
    Flushed, FrameRing, FrameSender, SocketError, UdpConfig, UdpSender, UdpWay, XdpSender,
};

use super::arguments::{Plan, Way};
use super::flows::Vary;
use super::frame::Prefix;
use super::payload::Header;
use super::toward::{self, Toward};
use packet::ethernet;

/// Slots of a ring: enough that the kernel works while we write.
const RING_FRAMES: usize = 2_048;

/// A way, opened.
pub enum Sender {
    /// Datagrams by the kernel's UDP.
    Udp(Udp),
    /// Frames of our own.
    Frames(Frames),
}

/// Datagrams by the kernel's UDP.
pub struct Udp {
    sender: UdpSender,
    /// Whether flows differ by their socket; else by their destination.
    by_socket: bool,
    flow: usize,
}

/// Frames of our own.
pub struct Frames {
    port: FramePort,
    prefixes: Vec<Prefix>,
    flow: usize,
}

enum FramePort {
    Messages(FrameSender),
    Ring(FrameRing),
    Xdp(XdpSender),
}

impl Sender {
    /// Opens the way for one of the plan's cores.
    pub fn open(plan: &Plan, core: usize) -> Result<Self> {
        let flows = plan.flows.of_core(core, plan.cores);
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
            Self::Udp(udp) => udp.push(count, &mut header),
            Self::Frames(frames) => frames.push(count, &mut header),
        }
    }

    /// Hands them to the kernel.
    pub fn flush(&mut self) -> Result<Flushed, SocketError> {
        match self {
            Self::Udp(udp) => udp.sender.flush(),
            Self::Frames(frames) => match &mut frames.port {
                FramePort::Messages(port) => port.flush(),
                FramePort::Ring(port) => port.flush(),
                FramePort::Xdp(port) => port.flush(),
            },
        }
    }

    /// Packets that the kernel has sent, or for datagrams, taken.
    pub fn sent(&self) -> u64 {
        match self {
            Self::Udp(udp) => udp.sender.sent(),
            Self::Frames(frames) => match &frames.port {
                FramePort::Messages(port) => port.sent(),
                FramePort::Ring(port) => port.sent(),
                FramePort::Xdp(port) => port.sent(),
            },
        }
    }

    /// Packets that the kernel gave back unsent.
    pub fn refused(&self) -> u64 {
        match self {
            Self::Frames(Frames {
                port: FramePort::Ring(port),
                ..
            }) => port.refused(),
            _ => 0,
        }
    }

    /// Packets that are on their way.
    pub fn pending(&self) -> usize {
        match self {
            Self::Udp(udp) => udp.sender.pending(),
            Self::Frames(frames) => match &frames.port {
                FramePort::Messages(port) => port.pending(),
                FramePort::Ring(port) => port.pending(),
                FramePort::Xdp(port) => port.pending(),
            },
        }
    }

    /// Looks which of them the kernel has sent meanwhile.
    pub fn reap(&mut self) {
        if let Self::Frames(frames) = self {
            match &mut frames.port {
                FramePort::Messages(_) => {}
                FramePort::Ring(port) => port.reap(),
                FramePort::Xdp(port) => port.reap(),
            }
        }
    }

    /// What becomes writable when there is room.
    pub fn writable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Udp(udp) => udp.sender.writable(),
            Self::Frames(frames) => Some(match &frames.port {
                FramePort::Messages(port) => port.writable(),
                FramePort::Ring(port) => port.writable(),
                FramePort::Xdp(port) => port.writable(),
            }),
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
            flow: 0,
        })
    }

    fn push(&mut self, count: usize, header: &mut dyn FnMut(usize) -> Header) -> usize {
        let flows = self.flows();
        if self.by_socket {
            self.flow = (self.flow + 1) % flows;
            self.sender.choose(self.flow);
        }
        let train = self.sender.train();
        for pushed in 0..count {
            if !self.by_socket && pushed % train == 0 {
                self.flow = (self.flow + 1) % flows;
            }
            // One socket a flow: all of them go to the first destination.
            let to = if self.by_socket { 0 } else { self.flow as u32 };
            let Some(slot) = self.sender.push(to) else {
                return pushed;
            };
            header(self.flow).write(slot);
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
        let prefixes = prefixes(plan, flows, &toward)?;
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
        let name = &toward.interface;
        let port = match plan.way {
            Way::AfPacketRing => FramePort::Ring(FrameRing::open(name, frame_bytes, RING_FRAMES)?),
            Way::AfXdp => {
                let queue = core as u32;
                let opened = XdpSender::open(name, queue, frame_bytes, RING_FRAMES);
                FramePort::Xdp(opened.with_context(|| {
                    format!(
                        "{name} gives no AF_XDP socket for core {core}: it takes a queue for each \
                         core, and a kernel and driver that have AF_XDP"
                    )
                })?)
            }
            _ => FramePort::Messages(FrameSender::open(name, frame_bytes, plan.batch)?),
        };
        Ok(Self {
            port,
            prefixes,
            flow: 0,
        })
    }

    fn push(&mut self, count: usize, header: &mut dyn FnMut(usize) -> Header) -> usize {
        for pushed in 0..count {
            let slot = match &mut self.port {
                FramePort::Messages(port) => port.push(),
                FramePort::Ring(port) => port.push(),
                FramePort::Xdp(port) => port.push(),
            };
            let Some(slot) = slot else { return pushed };
            self.flow = if self.flow + 1 < self.prefixes.len() {
                self.flow + 1
            } else {
                0
            };
            if let Some(prefix) = self.prefixes.get(self.flow) {
                prefix.write(slot, &header(self.flow));
            }
        }
        count
    }
}

fn prefixes(plan: &Plan, flows: &[u32], toward: &Toward) -> Result<Vec<Prefix>> {
    let mut source = plan.flows.source();
    source.set_ip(toward.source);
    if source.port() == 0 {
        // What a socket would be given: from the dynamic ports (RFC 6335 §6).
        let room = u32::from(u16::MAX - FIRST_DYNAMIC_PORT).saturating_sub(plan.flows.count());
        let offset = u32::from(plan.run) % room.max(1);
        source.set_port(FIRST_DYNAMIC_PORT.saturating_add(offset as u16));
        if plan.flows.vary() == Vary::SourcePort && plan.flows.count() > 16_000 {
            source.set_port(1);
        }
    }
    let all = plan.flows.with_source(source)?;
    Ok(flows
        .iter()
        .map(|flow| {
            let (source, to) = all.get(*flow);
            Prefix::new(toward.link, source, to, plan.payload_bytes)
        })
        .collect())
}

/// The first of the ports that nobody registers.
const FIRST_DYNAMIC_PORT: u16 = 49_152;
