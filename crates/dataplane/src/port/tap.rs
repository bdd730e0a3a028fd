//! A TAP device as a way out of the program at XDP and back into the kernel:
//! what the program redirects there is received here, and what is sent here
//! the kernel takes as received by the device, and forwards by its routes.
//! For the router, whose engine translates in between.
//!
//! The program says with each frame what it knows of it, in the Ethernet
//! header's source, which nobody needs: `02 46 50` (ours, "FP"), a byte of
//! notes, and a number of two bytes. Frames without it are the kernel's own
//! (ARP, solicitations of routers) and are dropped.

mod address;

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use super::tun::is_passing;
use super::{Counters, Port, PortError, Received, Sent};
use crate::socket::sys::interface_index;
use crate::{Batch, Buffer, Cache, HEADROOM, TAILROOM};

/// Bytes of an Ethernet header: destination, source, EtherType.
const HEADER: usize = 14;
/// How a source begins that the program has written, and ours as well.
const OURS: [u8; 3] = [0x02, 0x46, 0x50];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// Frames that may wait in the device: the ring that the program redirects
/// into is as long as the queue of the link.
const QUEUE: u32 = 10_000;
/// The most that a TAP device may have. The program's redirection refuses
/// what is longer, so that the device's must not be less than any link's.
const MTU: u16 = (65_535 - HEADER) as u16;

/// A TAP device that is read and written here.
pub struct Tap {
    device: SyncDevice,
    name: String,
    index: u32,
    /// Of what is sent: to the device itself.
    destination: [u8; 6],
    counters: Counters,
}

impl Tap {
    /// Makes the device of this name (it goes with the value); refuses a name
    /// that is taken. Needs `CAP_NET_ADMIN`. It is down until [`Tap::up`].
    pub fn make(name: &str) -> Result<Self, PortError> {
        let failed = |source| failed(name, source);
        // Else a lasting TAP device of that name would be taken over.
        if interface_index(name).is_ok() {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let device = DeviceBuilder::new()
            .name(name)
            .layer(Layer::L2)
            .inherit_enable_state()
            .build_sync()
            .map_err(failed)?;
        device.set_nonblocking(true).map_err(failed)?;
        // One that was set is left alone by who gives new links addresses
        // (udev), and stays what is written in front of packets.
        let destination = device.mac_address().map_err(failed)?;
        device.set_mac_address(destination).map_err(failed)?;
        Ok(Self {
            name: device.name().map_err(failed)?,
            index: device.if_index().map_err(failed)?,
            device,
            destination,
            counters: Counters::default(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The index of its link.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Brings it up as a way into the kernel's forwarding. To be called in
    /// the namespace that it was made in.
    ///
    /// What is sent may have a source that is the router's own, or one whose
    /// way back is another link, and the kernel takes both for forged unless
    /// told otherwise. `rp_filter` is 2 and not 0, since the greater of the
    /// link's and that of all links holds, and 2 is the one that lets pass
    /// what has any way back. That is looked at only where the link has an
    /// address; without one all is dropped.
    pub fn up(&self) -> Result<(), PortError> {
        let failed = |source| self.failed(source);
        // Else the kernel would solicit routers there.
        let without_ipv6 = self.setting("ipv6", "disable_ipv6");
        if without_ipv6.exists() {
            write(&without_ipv6, "1")?;
        }
        for (name, value) in [
            ("accept_local", "1"),
            ("rp_filter", "2"),
            ("forwarding", "1"),
            ("send_redirects", "0"),
        ] {
            write(&self.setting("ipv4", name), value)?;
        }
        address::add(self.index).map_err(failed)?;
        self.device.set_tx_queue_len(QUEUE).map_err(failed)?;
        self.device.set_mtu(MTU).map_err(failed)?;
        self.device.enabled(true).map_err(failed)
    }

    fn setting(&self, family: &str, name: &str) -> PathBuf {
        let directory = Path::new("/proc/sys/net").join(family).join("conf");
        directory.join(&self.name).join(name)
    }

    fn failed(&self, source: io::Error) -> PortError {
        failed(&self.name, source)
    }

    /// The header in front of a packet that is sent; `None`: it is neither
    /// IPv4 nor IPv6.
    fn header(&self, packet: &[u8]) -> Option<[u8; HEADER]> {
        let [high, low] = match packet.first()? >> 4 {
            4 => IPV4,
            6 => IPV6,
            _ => return None,
        };
        let [d0, d1, d2, d3, d4, d5] = self.destination;
        let [s0, s1, s2] = OURS;
        Some([d0, d1, d2, d3, d4, d5, s0, s1, s2, 0, 0, 0, high, low])
    }

    /// Sends one packet; whether the kernel took it.
    fn send_one(&mut self, buffer: &mut Buffer) -> Result<bool, PortError> {
        let Some(header) = self.header(buffer.packet()) else {
            return Ok(false);
        };
        let link = buffer.link_mut(HEADER);
        if link.len() != HEADER {
            return Ok(false);
        }
        link.copy_from_slice(&header);
        match self.device.send(buffer.frame()) {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Err(self.failed(error)),
            // Down (EIO), or no memory: as on any link, it is lost.
            Err(_) => Ok(false),
        }
    }
}

fn failed(name: &str, source: io::Error) -> PortError {
    let advice = match source.kind() {
        ErrorKind::PermissionDenied => ": it takes root (CAP_NET_ADMIN)",
        ErrorKind::NotFound => ": load the kernel's tun module",
        ErrorKind::AlreadyExists | ErrorKind::ResourceBusy => ": there is a link of this name",
        _ => "",
    };
    PortError::Device {
        name: name.to_owned(),
        source,
        advice,
    }
}

fn write(path: &Path, value: &str) -> Result<(), PortError> {
    fs::write(path, value).map_err(|source| PortError::File {
        path: path.to_owned(),
        source,
    })
}

impl Port for Tap {
    /// The notes of each packet are its mark. The frame's header stays, as
    /// the buffer's link: who wants the number of the program finds it there.
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        cache.clear(batch);
        cache.fill(batch, batch.capacity());
        let (mut count, mut received) = (0, Received::Nothing);
        for _ in 0..batch.len() {
            let Some(buffer) = batch.packets_mut().get_mut(count) else {
                break;
            };
            let frame = buffer.as_mut().get_mut(HEADROOM - HEADER..);
            match self.device.recv(frame.unwrap_or_default()) {
                Ok(len) if take(buffer, len) => {
                    self.counters.received_bytes += buffer.packet_len() as u64;
                    count += 1;
                }
                Ok(_) => self.counters.refused_packets += 1,
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(self.failed(error)),
            }
            received = Received::Packets;
        }
        self.counters.received_packets += count as u64;
        cache.give_all(batch.drain_from(count));
        Ok(received)
    }

    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError> {
        for buffer in batch.packets_mut() {
            if buffer.is_discarded() {
                continue;
            }
            if self.send_one(buffer)? {
                self.counters.sent_packets += 1;
                self.counters.sent_bytes += buffer.packet_len() as u64;
            } else {
                self.counters.refused_packets += 1;
            }
        }
        cache.clear(batch);
        Ok(Sent::All)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// Makes a packet of a frame that was read into an empty buffer. False where
/// it is to be dropped: it is too short, longer than the buffer's packets may
/// be, or nothing that the program has sent.
fn take(buffer: &mut Buffer, frame_len: usize) -> bool {
    let most = buffer.as_ref().len() - HEADROOM - TAILROOM;
    let len = frame_len.checked_sub(HEADER).filter(|len| *len <= most);
    let Some(len) = len else {
        return false;
    };
    buffer.set_len(len);
    let notes = notes(buffer.link_mut(HEADER));
    buffer.set_mark(u16::from(notes.unwrap_or_default()));
    notes.is_some()
}

/// The notes in an Ethernet header; `None`: the program has not written it.
fn notes(header: &[u8]) -> Option<u8> {
    let behind = header.get(6..)?.strip_prefix(&OURS)?;
    behind.first().copied()
}
