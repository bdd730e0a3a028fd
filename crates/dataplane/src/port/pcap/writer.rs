//! Writes a classic pcap file: little-endian, nanoseconds. The format is
//! draft-ietf-opsawg-pcap: a header of 24 bytes, 16 bytes for each packet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::super::PortError;
use super::LinkType;
use crate::Buffer;

/// Marks a file with nanoseconds.
const MAGIC: u32 = 0xA1B2_3C4D;
const VERSION: [u16; 2] = [2, 4];
/// The longest frame that may be in the file, as tcpdump has it.
const SNAP_LEN: u32 = 262_144;
const NANOS: u64 = 1_000_000_000;

/// A capture that is being written.
pub struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    /// The link type that the file's header names, once it is written.
    link: Option<LinkType>,
    packets: u64,
}

impl Writer {
    /// Makes the file, or empties it.
    pub fn create(path: &Path) -> Result<Self, PortError> {
        let file = File::create(path).map_err(|source| PortError::File {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 18, file),
            link: None,
            packets: 0,
        })
    }

    /// Adds a packet with its own time, and its link's header. The first one decides the
    /// file's link type; a classic pcap has only one.
    pub fn write(&mut self, buffer: &Buffer, link: LinkType) -> Result<(), PortError> {
        let time_nanos = buffer.time_nanos();
        self.write_at(buffer, link, time_nanos)
    }

    /// Adds a packet that went by at this time, nanoseconds since 1970.
    pub fn write_at(
        &mut self,
        buffer: &Buffer,
        link: LinkType,
        time_nanos: u64,
    ) -> Result<(), PortError> {
        self.check(link)?;
        self.packets += 1;
        self.record(buffer, time_nanos)
            .map_err(|source| self.failed(source))
    }

    fn check(&mut self, link: LinkType) -> Result<(), PortError> {
        let begun = self.begin(link).map_err(|source| self.failed(source))?;
        if begun != link {
            return Err(PortError::Format {
                path: self.path.clone(),
                what: format!(
                    "the packets are of two link types ({begun:?}, {link:?}), and pcap has room for one: split the capture by interface"
                ),
                packets: self.packets,
            });
        }
        Ok(())
    }

    /// Sees that all of it is in the file; an empty one gets its header.
    pub fn finish(&mut self, link: LinkType) -> Result<(), PortError> {
        let finished = self.begin(link).and_then(|_| self.file.flush());
        finished.map_err(|source| self.failed(source))
    }

    fn begin(&mut self, link: LinkType) -> io::Result<LinkType> {
        if let Some(begun) = self.link {
            return Ok(begun);
        }
        self.link = Some(link);
        self.file.write_all(&MAGIC.to_le_bytes())?;
        for part in VERSION {
            self.file.write_all(&part.to_le_bytes())?;
        }
        for field in [0, 0, SNAP_LEN, link.number()] {
            self.file.write_all(&field.to_le_bytes())?;
        }
        Ok(link)
    }

    fn record(&mut self, buffer: &Buffer, time_nanos: u64) -> io::Result<()> {
        let frame = buffer.frame();
        let (seconds, nanos) = (time_nanos / NANOS, time_nanos % NANOS);
        let original = buffer.original_len();
        // Seconds are 32 bits wide in the file: good until 2106.
        for field in [seconds, nanos, frame.len() as u64, original as u64] {
            self.file.write_all(&(field as u32).to_le_bytes())?;
        }
        self.file.write_all(frame)
    }

    fn failed(&self, source: io::Error) -> PortError {
        PortError::File {
            path: self.path.clone(),
            source,
        }
    }
}
