//! Capture files as a port: one is read (pcap or pcapng), one is written
//! (pcap with nanoseconds). The link's header stays with its packet, so
//! that what is written differs from what was read only by what the
//! engine did.

mod link;
mod reader;
mod writer;

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use crate::{Batch, Counters, Port, PortError, Received};

pub use link::LinkType;
use reader::Reader;
use writer::Writer;

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
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, PortError> {
        batch.clear();
        let mut filled = 0;
        while let Some(buffer) = batch.buffers_mut().get_mut(filled) {
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
        batch.set_len(filled);
        Ok(if filled == 0 && batch.capacity() > 0 {
            Received::End
        } else {
            Received::Packets
        })
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), PortError> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        for buffer in batch.packets() {
            if !buffer.is_discarded() {
                writer.write(buffer, self.reader.link())?;
                self.counters.sent_packets += 1;
                self.counters.sent_bytes += buffer.packet().len() as u64;
            }
        }
        Ok(())
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
