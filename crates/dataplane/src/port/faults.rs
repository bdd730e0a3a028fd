//! A port behind a bad link: some of what it is given to send is lost,
//! doubled, falls behind the next packet, or has a bit turned over. What is
//! done is decided by a seed, so that a run can be repeated. For tests.

use std::os::fd::BorrowedFd;

use memory::Random;

use super::{Counters, Port, PortError, Received, Sent};
use crate::{Batch, Buffer, Cache};

/// How often what happens, in packets of a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Lost.
    pub loss: u32,
    /// Sent twice.
    pub duplicate: u32,
    /// Sent behind the packet that comes after it.
    pub reorder: u32,
    /// With a bit turned over.
    pub corrupt: u32,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Packets lost.
    pub lost: u64,
    /// Packets sent twice.
    pub duplicated: u64,
    /// Packets that fell behind another one.
    pub reordered: u64,
    /// Packets with a bit turned over.
    pub corrupted: u64,
}

const MILLION: u64 = 1_000_000;

/// A port, and what happens to the packets that it sends.
pub struct Faults<P> {
    port: P,
    rates: Rates,
    random: Random,
    done: Done,
    /// Goes behind the next packet.
    late: Option<Buffer>,
    out: Batch,
}

impl<P: Port> Faults<P> {
    /// Around a port. A batch may double: `batch` is the largest that it is
    /// given.
    pub fn new(port: P, rates: Rates, seed: u64, batch: usize) -> Self {
        Self {
            port,
            rates,
            random: Random::new(seed),
            done: Done::default(),
            late: None,
            out: Batch::new(2 * batch + 2),
        }
    }

    /// What happened so far.
    pub fn done(&self) -> Done {
        self.done
    }

    /// The port, without what it holds back.
    pub fn into_inner(self) -> P {
        self.port
    }

    fn happens(&mut self, rate: u32) -> bool {
        self.random.number() % MILLION < u64::from(rate)
    }

    /// One packet, with what happens to it.
    fn take(&mut self, mut buffer: Buffer, cache: &mut Cache) {
        if self.happens(self.rates.loss) {
            self.done.lost += 1;
            return cache.give(buffer);
        }
        if self.happens(self.rates.corrupt) {
            let at = self.random.number();
            let bytes = buffer.packet_mut();
            if let Some(byte) = bytes.get_mut((at >> 3) as usize % bytes.len().max(1)) {
                *byte ^= 1 << (at & 7);
                self.done.corrupted += 1;
            }
        }
        let twin = self.happens(self.rates.duplicate).then(|| cache.take());
        let twin = twin.flatten().and_then(|mut twin| {
            let is_copied = twin.set_frame(buffer.frame(), buffer.link().len());
            is_copied.then_some(twin)
        });
        if self.late.is_none() && self.happens(self.rates.reorder) {
            self.late = Some(buffer);
        } else {
            self.put(buffer, cache);
            if let Some(late) = self.late.take() {
                self.done.reordered += 1;
                self.put(late, cache);
            }
        }
        if let Some(twin) = twin {
            self.done.duplicated += 1;
            self.put(twin, cache);
        }
    }

    fn put(&mut self, buffer: Buffer, cache: &mut Cache) {
        if let Err(buffer) = self.out.push(buffer) {
            cache.give(buffer);
        }
    }
}

impl<P: Port> Port for Faults<P> {
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        self.port.receive(cache, batch)
    }

    /// What the port has no room for is kept here until the next call.
    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError> {
        if self.out.room() < 2 * batch.len() + 2 {
            let sent = self.port.send(cache, &mut self.out)?;
            if sent != Sent::All {
                return Ok(sent);
            }
        }
        let mut left = std::mem::replace(batch, Batch::new(batch.capacity()));
        for buffer in left.drain() {
            match buffer.is_discarded() {
                true => cache.give(buffer),
                false => self.take(buffer, cache),
            }
        }
        *batch = left;
        self.port.send(cache, &mut self.out)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.port.readable()
    }

    fn writable(&self) -> Option<BorrowedFd<'_>> {
        self.port.writable()
    }

    fn reap(&mut self) {
        self.port.reap();
    }

    fn pending(&self) -> usize {
        self.port.pending() + self.out.len() + usize::from(self.late.is_some())
    }

    fn counters(&self) -> Counters {
        self.port.counters()
    }
}
