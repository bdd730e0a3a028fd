//! A generator of XDP frames and a sink for them, for measurements: a program
//! that sends a frame out of a link again and again, which the kernel runs in
//! one call, and one that drops what comes. At the other end of a veth pair
//! frames come in as a driver's do.
//!
//! The kernel uses a page again with what was changed in it on the way, so
//! the program writes anew what a router changes: all headers up to UDP's.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::{XdpError, sys};

/// Frames that are made at a time.
const BATCH: u32 = 64;
/// Where things stand in a frame: Ethernet, IPv4 without options, UDP.
const HEADERS: i16 = 42;
const CHECKSUM: i16 = 24;
const DESTINATION_END: i16 = 32;
const SOURCE_PORT: i16 = 34;
const UDP_CHECKSUM: i16 = 40;
/// What an XDP program answers.
const DROP: i32 = 1;
const OUT_AGAIN: i32 = 3;
/// `bpf_get_prandom_u32`.
const RANDOM: i32 = 7;

/// What differs from frame to frame: 16 bits, which are drawn for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// Nothing.
    None,
    /// The last 16 bits of the destination's address, all that there are.
    Destinations,
    /// The source's port: so many from the frame's on.
    SourcePorts(u16),
}

/// Sends frames of UDP at XDP. Needs what [`super::Forwarding::new`] needs.
#[derive(Debug)]
pub struct Generator {
    program: OwnedFd,
    frame: Vec<u8>,
}

impl Generator {
    /// Makes one of a frame of Ethernet, IPv4 without options, and UDP. Its
    /// checksums are right, and so are those of what is made of it.
    pub fn new(frame: &[u8], drawn: Drawn) -> Result<Self, XdpError> {
        let program = sys::load_program(&instructions(frame, drawn), None)
            .map_err(|(error, log)| XdpError::Load { error, log })?;
        Ok(Self {
            program,
            frame: frame.to_vec(),
        })
    }

    /// Sends so many out of a link of this thread's namespace; returns when
    /// they are sent. The other end has to take XDP frames (it has a program
    /// for XDP, or GRO). Some 30 ms go by beside: the kernel waits twice for
    /// its readers.
    pub fn send(&self, link: u32, frames: u32) -> io::Result<()> {
        sys::run_live(self.program.as_fd(), link, &self.frame, frames, BATCH)
    }
}

/// Drops what comes in by a link, as early as can be, for as long as it lives:
/// the link's counters tell how much it was.
#[derive(Debug)]
pub struct Sink(#[expect(dead_code, reason = "held for its end")] OwnedFd);

impl Sink {
    /// At a link of this thread's namespace.
    pub fn at(link: u32) -> Result<Self, XdpError> {
        let drop = [word(0xb7, 0, 0, 0, DROP), word(0x95, 0, 0, 0, 0)];
        let program =
            sys::load_program(&drop, None).map_err(|(error, log)| XdpError::Load { error, log })?;
        let attached = sys::attach(&program, link).map_err(|error| XdpError::Attach {
            device: format!("link {link}"),
            error,
        })?;
        Ok(Self(attached))
    }
}

/// An instruction: `struct bpf_insn` as a word.
fn word(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> u64 {
    let [low, high] = offset.to_le_bytes();
    let [a, b, c, d] = immediate.to_le_bytes();
    u64::from_le_bytes([code, to | from << 4, low, high, a, b, c, d])
}

/// The bytes of a frame from a place on, as a processor reads them.
fn bytes<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    let found = frame.get(at..at + N).and_then(|some| some.try_into().ok());
    found.unwrap_or([0; N])
}

/// Registers: 6 the context, 7 what was drawn as a processor reads it,
/// 2 the data, 0 and 1 for sums.
fn instructions(frame: &[u8], drawn: Drawn) -> Vec<u64> {
    let (field, first, count) = match drawn {
        Drawn::None => (SOURCE_PORT, port(frame), 1),
        Drawn::Destinations => (DESTINATION_END, 0, 1 << 16),
        Drawn::SourcePorts(count) => (SOURCE_PORT, port(frame), i32::from(count.max(1))),
    };
    let mut program = vec![
        word(0xbf, 6, 1, 0, 0),              // r6 = r1
        word(0x85, 0, 0, 0, RANDOM),         // r0 = random()
        word(0xbc, 7, 0, 0, 0),              // r7 = r0, 32 bits
        word(0x94, 7, 0, 0, count),          // r7 %= count, 32 bits
        word(0x07, 7, 0, 0, first),          // r7 += first
        word(0xdc, 7, 0, 0, 16),             // r7 = its big-endian 16 bits
        word(0x61, 2, 6, 0, 0),              // r2 = data
        word(0x61, 3, 6, 4, 0),              // r3 = end
        word(0xbf, 4, 2, 0, 0),              // r4 = r2
        word(0x07, 4, 0, 0, HEADERS.into()), // r4 += headers
        word(0x3d, 3, 4, 2, 0),              // r3 >= r4: on
        word(0xb7, 0, 0, 0, DROP),           // r0 = drop
        word(0x95, 0, 0, 0, 0),              // exit
    ];
    for at in (0..UDP_CHECKSUM).step_by(4) {
        let four = i32::from_ne_bytes(bytes(frame, at as usize));
        program.push(word(0x62, 2, 0, at, four));
    }
    program.push(word(0x6b, 2, 7, field, 0)); // = r7
    if field == DESTINATION_END {
        program.extend(checksum(frame, field, CHECKSUM));
    }
    program.extend(checksum(frame, field, UDP_CHECKSUM));
    program.extend([word(0xb7, 0, 0, 0, OUT_AGAIN), word(0x95, 0, 0, 0, 0)]);
    program
}

fn port(frame: &[u8]) -> i32 {
    i32::from(u16::from_be_bytes(bytes(frame, SOURCE_PORT as usize)))
}

/// Writes a checksum anew for what was drawn in the place of a field: the
/// complement of a sum whose halves may be swapped (RFC 1071), of what the
/// frame's own says without the field, and of what was drawn. It is never 0,
/// which is none to UDP; to IPv4 0xffff is the same.
fn checksum(frame: &[u8], field: i16, at: i16) -> [u64; 5] {
    let own = !u16::from_ne_bytes(bytes(frame, at as usize));
    let without = !u16::from_ne_bytes(bytes(frame, field as usize));
    let known = i32::from(own) + i32::from(without);
    [
        word(0xbf, 0, 7, 0, 0),      // r0 = r7
        word(0x07, 0, 0, 0, known),  // r0 += known
        word(0x97, 0, 0, 0, 0xffff), // r0 %= 0xffff
        word(0xa7, 0, 0, 0, 0xffff), // r0 ^= 0xffff
        word(0x6b, 2, 0, at, 0),     // = r0
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_its_fields_where_the_kernel_reads_them() {
        assert_eq!(word(0xbf, 6, 1, 0, 0), 0x0000_0000_0000_16bf);
        assert_eq!(word(0x62, 2, 0, 4, -2), 0xffff_fffe_0004_0262);
    }

    #[test]
    fn a_frame_that_ends_early_has_zeros() {
        assert_eq!(bytes::<4>(&[1, 2], 0), [0; 4]);
        assert_eq!(bytes::<2>(&[1, 2], 0), [1, 2]);
    }
}
