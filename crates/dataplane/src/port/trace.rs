//! A port whose packets are seen: what it received and what it was given to
//! send goes into a capture as well.

use std::os::fd::BorrowedFd;
use std::path::Path;

use super::pcap::{LinkType, Writer};
use super::{Counters, Port, PortError, Received, Sent};
use crate::{Batch, Cache};

/// A port, and the capture of what goes through it.
pub struct Trace<P> {
    port: P,
    writer: Writer,
    link: LinkType,
    /// Nanoseconds since 1970, asked once a batch.
    clock: Box<dyn FnMut() -> u64 + Send>,
}

impl<P: Port> Trace<P> {
    /// Makes the capture, or empties it. `link` is what frames of the port
    /// begin with; the clock gives each packet's time, in nanoseconds since
    /// 1970.
    pub fn new(
        port: P,
        path: &Path,
        link: LinkType,
        clock: impl FnMut() -> u64 + Send + 'static,
    ) -> Result<Self, PortError> {
        Ok(Self {
            port,
            writer: Writer::create(path)?,
            link,
            clock: Box::new(clock),
        })
    }

    /// Sees that all of it is in the file, and gives the port back.
    pub fn finish(mut self) -> Result<P, PortError> {
        self.writer.finish(self.link)?;
        Ok(self.port)
    }

    fn write(&mut self, batch: &Batch) -> Result<(), PortError> {
        let now = (self.clock)();
        let mut packets = batch.packets().iter();
        packets.try_for_each(|buffer| match buffer.is_discarded() {
            true => Ok(()),
            false => self.writer.write_at(buffer, self.link, now),
        })
    }
}

impl<P: Port> Port for Trace<P> {
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        let received = self.port.receive(cache, batch)?;
        self.write(batch)?;
        Ok(received)
    }

    /// What stays for want of room is in the capture again with its next
    /// try.
    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError> {
        self.write(batch)?;
        self.port.send(cache, batch)
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
        self.port.pending()
    }

    fn counters(&self) -> Counters {
        self.port.counters()
    }
}
