//! Reads pcap and pcapng, packet by packet, with `pcap-parser`.

use std::fs::File;
use std::path::{Path, PathBuf};

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};

use super::super::PortError;
use super::LinkType;
use crate::Buffer;

/// What is read at once to begin with, and the longest block there may be:
/// a longer one is refused instead of filling the memory.
const FIRST_BYTES: usize = 1 << 18;
const MAX_BLOCK_BYTES: usize = 1 << 24;
/// Interfaces that a section of a pcapng file may describe.
const MAX_INTERFACES: usize = 4_096;
const NANOS: u64 = 1_000_000_000;

/// A capture that is being read.
pub struct Reader {
    path: PathBuf,
    blocks: Box<dyn PcapReaderIterator + Send>,
    buffer_bytes: usize,
    state: State,
    packets: u64,
}

/// What the blocks so far have said.
struct State {
    interfaces: Vec<Interface>,
    /// Of the packet read last; of the first interface before.
    link: LinkType,
}

/// An interface that packets were captured on.
#[derive(Clone, Copy)]
struct Interface {
    link: Option<LinkType>,
    number: u32,
    units_per_second: u64,
    offset_seconds: i64,
}

/// What came of reading.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// The buffer holds a packet.
    Packet,
    /// A packet that does not fit the buffer.
    TooLong,
    /// The file has ended.
    End,
}

impl Reader {
    /// Opens a file and sees that it is a capture.
    pub fn open(path: &Path) -> Result<Self, PortError> {
        let file = File::open(path).map_err(|source| PortError::File {
            path: path.to_owned(),
            source,
        })?;
        let blocks = create_reader(FIRST_BYTES, file).map_err(|error| PortError::Format {
            path: path.to_owned(),
            what: match error {
                PcapError::ReadError => "cannot be read".to_owned(),
                _ => "is neither pcap nor pcapng".to_owned(),
            },
            packets: 0,
        })?;
        Ok(Self {
            path: path.to_owned(),
            blocks,
            buffer_bytes: FIRST_BYTES,
            state: State {
                interfaces: Vec::new(),
                link: LinkType::Raw,
            },
            packets: 0,
        })
    }

    /// The link type of the packet read last.
    pub fn link(&self) -> LinkType {
        self.state.link
    }

    /// Reads the next packet.
    pub fn read(&mut self, buffer: &mut Buffer) -> Result<Read, PortError> {
        loop {
            let trouble = match self.blocks.next() {
                Ok((len, block)) => {
                    let taken = self.state.take(&block, buffer);
                    drop(block);
                    self.blocks.consume(len);
                    match taken {
                        Ok(None) => continue,
                        Ok(Some(read)) => {
                            self.packets += 1;
                            return Ok(read);
                        }
                        Err(what) => return Err(self.broken(what)),
                    }
                }
                Err(PcapError::Eof) => return Ok(Read::End),
                Err(PcapError::Incomplete(_)) => {
                    self.blocks.refill().err().map(|error| name(&error))
                }
                Err(PcapError::BufferTooSmall) => {
                    self.grow();
                    None
                }
                Err(error) => Some(name(&error)),
            };
            if let Some(what) = trouble {
                return Err(self.broken(what.to_owned()));
            }
            if self.buffer_bytes > MAX_BLOCK_BYTES {
                return Err(self.broken("a block is longer than 16 MiB".to_owned()));
            }
        }
    }

    fn grow(&mut self) {
        self.buffer_bytes *= 2;
        if self.buffer_bytes <= MAX_BLOCK_BYTES {
            self.blocks.grow(self.buffer_bytes);
            // A failure to read shows again at the next try.
            let _ = self.blocks.refill();
        }
    }

    fn broken(&self, what: String) -> PortError {
        PortError::Format {
            path: self.path.clone(),
            what,
            packets: self.packets,
        }
    }
}

fn name(error: &PcapError<&[u8]>) -> &'static str {
    match error {
        PcapError::UnexpectedEof => "ends in the middle of a packet",
        PcapError::ReadError => "cannot be read",
        _ => "a block is malformed",
    }
}

impl State {
    /// Takes a block: `None` when it holds no packet.
    fn take(
        &mut self,
        block: &PcapBlockOwned<'_>,
        buffer: &mut Buffer,
    ) -> Result<Option<Read>, String> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let units = if header.is_nanosecond_precision() {
                    NANOS
                } else {
                    1_000_000
                };
                self.interfaces.clear();
                // The upper half of the field is about frame check sequences.
                self.enter(header.network.0 as u32 & 0xFFFF, units, 0)?;
                Ok(None)
            }
            PcapBlockOwned::Legacy(packet) => {
                let units = self.interface(0)?.units_per_second;
                let time = u64::from(packet.ts_sec)
                    .saturating_mul(units)
                    .saturating_add(packet.ts_usec.into());
                let original = packet.origlen;
                self.packet(0, time, packet.data, packet.caplen, original, buffer)
            }
            PcapBlockOwned::NG(block) => self.take_next_generation(block, buffer),
        }
    }

    fn take_next_generation(
        &mut self,
        block: &Block<'_>,
        buffer: &mut Buffer,
    ) -> Result<Option<Read>, String> {
        match block {
            Block::SectionHeader(_) => {
                self.interfaces.clear();
                Ok(None)
            }
            Block::InterfaceDescription(described) => {
                let units = described
                    .ts_resolution()
                    .filter(|units| *units > 0)
                    .ok_or("an interface has an impossible resolution of time")?;
                let link = described.linktype.0 as u32 & 0xFFFF;
                self.enter(link, units, described.ts_offset())?;
                Ok(None)
            }
            Block::EnhancedPacket(packet) => {
                let time = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let (data, cap, original) = (packet.data, packet.caplen, packet.origlen);
                self.packet(packet.if_id, time, data, cap, original, buffer)
            }
            // It has no time, and its length is all there is of it.
            Block::SimplePacket(packet) => {
                let original = packet.origlen;
                self.packet(0, 0, packet.data, original, original, buffer)
            }
            _ => Ok(None),
        }
    }

    fn enter(&mut self, number: u32, units_per_second: u64, offset: i64) -> Result<(), String> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(format!("describes more than {MAX_INTERFACES} interfaces"));
        }
        let link = LinkType::from_number(number);
        if let (Some(link), true) = (link, self.interfaces.is_empty()) {
            self.link = link;
        }
        self.interfaces.push(Interface {
            link,
            number,
            units_per_second,
            offset_seconds: offset,
        });
        Ok(())
    }

    fn interface(&self, id: u32) -> Result<Interface, String> {
        self.interfaces
            .get(id as usize)
            .copied()
            .ok_or_else(|| format!("a packet is of interface {id}, which is not described"))
    }

    fn packet(
        &mut self,
        interface: u32,
        time: u64,
        data: &[u8],
        captured_len: u32,
        original_len: u32,
        buffer: &mut Buffer,
    ) -> Result<Option<Read>, String> {
        let interface = self.interface(interface)?;
        let link = interface.link.ok_or_else(|| {
            format!(
                "packets of link type {} are not known here: Ethernet, raw IP, loopback and Linux's cooked ones are",
                interface.number
            )
        })?;
        self.link = link;
        // The data of pcapng end with padding.
        let frame = data.get(..captured_len as usize).unwrap_or(data);
        let cut_off = original_len.saturating_sub(frame.len() as u32);
        let is_taken = buffer.fill(
            frame,
            link.header_len(frame),
            cut_off,
            interface.nanos(time),
        );
        Ok(Some(if is_taken {
            Read::Packet
        } else {
            Read::TooLong
        }))
    }
}

impl Interface {
    /// A time of its packets in nanoseconds since 1970.
    fn nanos(&self, time: u64) -> u64 {
        let nanos = u128::from(time) * u128::from(NANOS) / u128::from(self.units_per_second);
        let offset = i128::from(self.offset_seconds) * i128::from(NANOS);
        let total = i128::try_from(nanos).unwrap_or(i128::MAX);
        u64::try_from(total.saturating_add(offset).max(0)).unwrap_or(u64::MAX)
    }
}
