//! A generator of XDP frames and a sink for them, for measurements: a program
//! that sends a frame out of a link again and again, which the kernel runs in
//! one call, and one that drops what comes. At the other end of a veth pair
//! frames come in as a driver's do.
//!
//! The kernel uses a page again with what was changed in it on the way, so
//! the program writes anew what a router changes: addresses, TTL, checksum.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::{XdpError, sys};

/// Frames that are made at a time.
const BATCH: u32 = 64;
/// Where things stand in a frame: Ethernet and IPv4 without options.
const HEADERS: i32 = 34;
const TTL: i16 = 22;
const CHECKSUM: i16 = 24;
const DESTINATION_END: i16 = 32;
/// What an XDP program answers.
const DROP: i32 = 1;
const OUT_AGAIN: i32 = 3;
/// `bpf_get_prandom_u32`.
const RANDOM: i32 = 7;

/// Sends frames of IPv4 at XDP. Needs what [`super::Forwarding::new`] needs.
#[derive(Debug)]
pub struct Generator {
    program: OwnedFd,
    frame: Vec<u8>,
}

impl Generator {
    /// Makes one of a frame of Ethernet and IPv4 without options. Of the
    /// destination's last 16 bits, those in `drawn` are drawn for each frame;
    /// the frame has to have zeros in all 16 then.
    pub fn new(frame: &[u8], drawn: u16) -> Result<Self, XdpError> {
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

/// Registers: 6 the context, 2 the data, 0 what was drawn, then the sum.
fn instructions(frame: &[u8], drawn: u16) -> Vec<u64> {
    let mut program = vec![
        word(0xbf, 6, 1, 0, 0),                             // r6 = r1
        word(0x85, 0, 0, 0, RANDOM),                        // r0 = random()
        word(0x57, 0, 0, 0, i32::from(drawn.swap_bytes())), // r0 &= drawn
        word(0x61, 2, 6, 0, 0),                             // r2 = data
        word(0x61, 3, 6, 4, 0),                             // r3 = end
        word(0xbf, 4, 2, 0, 0),                             // r4 = r2
        word(0x07, 4, 0, 0, HEADERS),                       // r4 += headers
        word(0x3d, 3, 4, 2, 0),                             // r3 >= r4: on
        word(0xb7, 0, 0, 0, DROP),                          // r0 = drop
        word(0x95, 0, 0, 0, 0),                             // exit
    ];
    for at in [0_i16, 4, 8] {
        let four = i32::from_ne_bytes(bytes(frame, at as usize));
        program.push(word(0x62, 2, 0, at, four)); // MAC addresses
    }
    let ttl = i32::from(bytes::<1>(frame, TTL as usize)[0]);
    let sum = !u16::from_ne_bytes(bytes(frame, CHECKSUM as usize));
    program.extend([
        word(0x72, 2, 0, TTL, ttl),
        word(0x6b, 2, 0, DESTINATION_END, 0), // = r0
        // The checksum is the complement of a sum whose halves may be
        // swapped: of what stood there, and what was drawn (RFC 1071).
        word(0x07, 0, 0, 0, i32::from(sum)), // r0 += sum
        word(0xbf, 1, 0, 0, 0),              // r1 = r0
        word(0x77, 1, 0, 0, 16),             // r1 >>= 16
        word(0x57, 0, 0, 0, 0xffff),         // r0 &= 0xffff
        word(0x0f, 0, 1, 0, 0),              // r0 += r1
        word(0xa7, 0, 0, 0, -1),             // r0 ^= -1
        word(0x6b, 2, 0, CHECKSUM, 0),       // = r0
        word(0xb7, 0, 0, 0, OUT_AGAIN),
        word(0x95, 0, 0, 0, 0),
    ]);
    program
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
