//! Capture files as a port: one is read (pcap or pcapng), one is written
//! (pcap with nanoseconds). The link's header stays with its packet, so
//! that what is written differs from what was read only by what the
//! engine did.

mod link;
mod reader;
mod writer;

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use super::{Counters, Port, PortError, Received, Sent};
use crate::{Batch, Cache};

pub use link::LinkType;
use reader::Reader;
pub use writer::Writer;

/// A capture that is read, and one that is written.
pub struct Capture {
    reader: Reader,
    writer: Option<Writer>,
    counters: Counters,
}

impl Capture {
    /// Opens `input`; creates `output` anew, where one is wanted.
    pub fn open(input: &Path, output: Option<&Path>) -> Result<Self, PortError> {
        let reader = Reader::open(input)?;
        if let Some(output) = output.filter(|output| same_file(input, output)) {
            return Err(PortError::Format {
                path: output.to_owned(),
                what: "is the file that is read: name another to write to".to_owned(),
                packets: 0,
            });
        }
        let writer = output.map(Writer::create).transpose()?;
        Ok(Self {
            reader,
            writer,
            counters: Counters::default(),
        })
    }

    /// The link type of the packet that was read last; before the first one
    /// what the file's head says, and raw IP where it says nothing.
    pub fn link(&self) -> LinkType {
        self.reader.link()
    }

    /// Writes what is still on its way to the file. Without this the end
    /// may be missing.
    pub fn finish(&mut self) -> Result<(), PortError> {
        let link = self.reader.link();
        self.writer
            .as_mut()
            .map_or(Ok(()), |writer| writer.finish(link))
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| -> Option<PathBuf> { path.canonicalize().ok() };
    canonical(one).is_some_and(|one| canonical(other) == Some(one))
}

impl Port for Capture {
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        cache.clear(batch);
        cache.fill(batch, batch.capacity());
        let is_starved = batch.is_empty();
        let mut filled = 0;
        while let Some(buffer) = batch.packets_mut().get_mut(filled) {
            match self.reader.read(buffer)? {
                reader::Read::Packet => {
                    self.counters.received_packets += 1;
                    self.counters.received_bytes += buffer.packet().len() as u64;
                    filled += 1;
                }
                reader::Read::TooLong => self.counters.refused_packets += 1,
                reader::Read::End => break,
            }
        }
        cache.give_all(batch.drain_from(filled));
        Ok(match (is_starved, filled) {
            (true, _) => Received::Nothing,
            (false, 0) => Received::End,
            _ => Received::Packets,
        })
    }

    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError> {
        if let Some(writer) = &mut self.writer {
            for buffer in batch
                .packets()
                .iter()
                .filter(|buffer| !buffer.is_discarded())
            {
                writer.write(buffer, self.reader.link())?;
                self.counters.sent_packets += 1;
                self.counters.sent_bytes += buffer.packet().len() as u64;
            }
        }
        cache.clear(batch);
        Ok(Sent::All)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
