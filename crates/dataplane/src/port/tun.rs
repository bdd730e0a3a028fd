//! A TUN device as a port.
//!
//! The kernel hands over trains of TCP and UDP segments in one read
//! (`IFF_VNET_HDR`); they are cut into packets here, each with a whole
//! checksum. What is sent goes out packet by packet with the checksum it
//! has, so that a capture on the device shows what the engine made.
//!
//! The device's state and addresses are the caller's business: a device
//! that is down takes no packet (they count as refused), and one that is
//! moved to another namespace goes on working.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN};

use super::{Counters, Port, PortError, Received, Sent};
use crate::{Batch, Cache, HEADROOM};

/// The longest thing one read can give: virtio's header and a train.
const TRAIN_BYTES: usize = VIRTIO_NET_HDR_LEN + 65_535;

/// A TUN device that is read and written here.
pub struct Tun {
    device: SyncDevice,
    name: String,
    train: Box<[u8]>,
    sizes: Vec<usize>,
    counters: Counters,
}

impl Tun {
    /// Opens the device of this name, made if there is none (it goes with
    /// the value then). Needs `CAP_NET_ADMIN`, or a device made for the
    /// user before (`ip tuntap add mode tun user NAME`).
    pub fn open(name: &str) -> Result<Self, PortError> {
        let device = build(name, false)?;
        Self::of(device, name)
    }

    /// Opens a device with so many queues, one for each worker. The kernel
    /// gives all packets of a flow to one queue: that by which the flow's
    /// packets came to it last, where there were such.
    pub fn open_queues(name: &str, queues: usize) -> Result<Vec<Self>, PortError> {
        if queues <= 1 {
            return Ok(vec![Self::open(name)?]);
        }
        let first = build(name, true)?;
        let mut all = Vec::with_capacity(queues);
        for _ in 1..queues {
            let next = first.try_clone().map_err(|source| failed(name, source))?;
            all.push(Self::of(next, name)?);
        }
        all.push(Self::of(first, name)?);
        Ok(all)
    }

    fn of(device: SyncDevice, name: &str) -> Result<Self, PortError> {
        let failed = |source| failed(name, source);
        device.set_nonblocking(true).map_err(failed)?;
        let name = device.name().map_err(failed)?;
        Ok(Self {
            device,
            name,
            train: vec![0; TRAIN_BYTES].into(),
            sizes: Vec::new(),
            counters: Counters::default(),
        })
    }

    /// Its name: the kernel's choice where `%d` was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn failed(&self, source: io::Error) -> PortError {
        PortError::Device {
            name: self.name.clone(),
            source,
            advice: "",
        }
    }
}

fn build(name: &str, has_queues: bool) -> Result<SyncDevice, PortError> {
    DeviceBuilder::new()
        .name(name)
        .offload(true)
        .multi_queue(has_queues)
        .inherit_enable_state()
        .build_sync()
        .map_err(|source| failed(name, source))
}

fn failed(name: &str, source: io::Error) -> PortError {
    let advice = match source.kind() {
        ErrorKind::PermissionDenied => ": it takes root (CAP_NET_ADMIN)",
        ErrorKind::NotFound => ": load the kernel's tun module",
        ErrorKind::ResourceBusy => ": another program has it",
        _ => "",
    };
    PortError::Device {
        name: name.to_owned(),
        source,
        advice,
    }
}

impl Port for Tun {
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        cache.clear(batch);
        cache.fill(batch, batch.capacity());
        if batch.is_empty() {
            return Ok(Received::Nothing);
        }
        self.sizes.resize(batch.len(), 0);
        let buffers = batch.packets_mut();
        let read = self
            .device
            .recv_multiple(&mut self.train, buffers, &mut self.sizes, HEADROOM);
        let (count, received) = match read {
            Ok(count) => (count, Received::Packets),
            Err(error) if is_passing(&error) => (0, Received::Nothing),
            Err(error) if error.raw_os_error().is_some() => return Err(self.failed(error)),
            // A train that fits no batch, or with a header of nonsense:
            // it is lost, and the next may be better.
            Err(_) => {
                self.counters.refused_packets += 1;
                (0, Received::Packets)
            }
        };
        for (buffer, size) in buffers.iter_mut().zip(&self.sizes).take(count) {
            buffer.set_len(*size);
            self.counters.received_bytes += *size as u64;
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
            let bytes = buffer.packet().len() as u64;
            match self.device.send(buffer.behind_zeros(VIRTIO_NET_HDR_LEN)) {
                Ok(_) => {
                    self.counters.sent_packets += 1;
                    self.counters.sent_bytes += bytes;
                }
                Err(error) if error.raw_os_error() == Some(EBADFD) => {
                    return Err(self.failed(error));
                }
                // Down (EIO), or no memory: as on any link, it is lost.
                Err(_) => self.counters.refused_packets += 1,
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

/// Whether a read that failed may be tried again.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// "File descriptor in bad state": what a TUN descriptor says once its
/// device has been deleted.
const EBADFD: i32 = 77;
