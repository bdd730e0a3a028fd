//! What stands in a payload: enough to find losses, order and latency at
//! the other side, in the 18 bytes that the smallest Ethernet frame has
//! room for, and nothing else. The rest is zeros.
//!
//! | bytes | what | |
//! |---|---|---|
//! | 0–1 | `f1 9e` | tells it from other datagrams |
//! | 2–3 | run | a random number of this run of `send` |
//! | 4–5 | flow | counted from 0 |
//! | 6–9 | sequence | of the flow, from 0, modulo 2^32 |
//! | 10–17 | time | nanoseconds since 1970, of the batch |
//!
//! All big endian. Used by `send` and `receive`.

use packet::checksum::Sum;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 18;
/// Bytes of the longest UDP payload over IPv4.
pub const MAX_BYTES: usize = 65_507;

const MAGIC: u16 = 0xf19e;

/// The header of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Which run of `send`.
    pub run: u16,
    /// Which of its flows.
    pub flow: u16,
    /// Which packet of the flow, modulo 2^32.
    pub sequence: u32,
    /// When it was made, nanoseconds since 1970.
    pub time_nanos: u64,
}

impl Header {
    /// As bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        self.put(&mut bytes);
        bytes
    }

    /// The same as numbers of eight, eight and two bytes. Originated in registers:
    /// bytes that are put together in memory and read again in larger pieces
    /// wait for the store to end, which cost half of a packet's time.
    #[inline(always)]
    fn words(&self) -> (u64, u64, u16) {
        let sequence = u64::from(self.sequence);
        let first = u64::from(MAGIC) << 48
            | u64::from(self.run) << 32
            | u64::from(self.flow) << 16
            | sequence >> 16;
        let second = sequence << 48 | self.time_nanos >> 16;
        (first, second, self.time_nanos as u16)
    }

    /// Writes it; the sum of its bytes. Nothing of it is read again.
    #[inline(always)]
    pub fn write_whole(&self, payload: &mut [u8; HEADER_BYTES]) -> Sum {
        let (first, second, last) = self.put(payload);
        Sum::of(&first).and(Sum::of(&second)).and(Sum::of(&last))
    }

    /// Writes it, piece by piece; the pieces.
    #[inline(always)]
    fn put(&self, payload: &mut [u8; HEADER_BYTES]) -> ([u8; 8], [u8; 8], [u8; 2]) {
        let (first, second, last) = self.words();
        let pieces = (
            first.to_be_bytes(),
            second.to_be_bytes(),
            last.to_be_bytes(),
        );
        if let ([first, second], [low, high]) = payload.as_chunks_mut() {
            (*first, *second) = (pieces.0, pieces.1);
            [*low, *high] = pieces.2;
        }
        pieces
    }

    /// Writes it, or as much of it as has room; how many bytes.
    #[inline(always)]
    pub fn write(&self, payload: &mut [u8]) -> usize {
        if let Some(whole) = payload.first_chunk_mut::<HEADER_BYTES>() {
            self.put(whole);
            return HEADER_BYTES;
        }
        let bytes = self.bytes();
        let len = payload.len();
        payload.copy_from_slice(bytes.get(..len).unwrap_or_default());
        len
    }

    /// Reads it; `None` from another's datagram.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let bytes = payload.first_chunk::<HEADER_BYTES>()?;
        let [m0, m1, r0, r1, f0, f1, s0, s1, s2, s3, time @ ..] = *bytes;
        (u16::from_be_bytes([m0, m1]) == MAGIC).then_some(Self {
            run: u16::from_be_bytes([r0, r1]),
            flow: u16::from_be_bytes([f0, f1]),
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            time_nanos: u64::from_be_bytes(time),
        })
    }
}

/// A number for a run of `send`: it only has to differ from the last one's.
pub fn run_number() -> u16 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let pid = std::process::id();
    // Odd multiplier: neighbouring processes and times fall apart.
    let mixed = (now.tv_nsec as u32 ^ pid.rotate_left(16)).wrapping_mul(0x9e37_79b1);
    (mixed >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let header = Header {
            run: 7,
            flow: 65_535,
            sequence: 0x0102_0304,
            time_nanos: 1 << 60,
        };
        let mut payload = [9; 20];
        assert_eq!(header.write(&mut payload), HEADER_BYTES);
        assert_eq!(Header::read(&payload), Some(header));
        assert_eq!(payload[18..], [9, 9]);
        let mut whole = [0; HEADER_BYTES];
        let sum = header.write_whole(&mut whole);
        assert_eq!(whole, payload[..18]);
        assert_eq!(sum.checksum(), Sum::of(&whole).checksum());
        let mut short = [9; 5];
        assert_eq!(header.write(&mut short), 5);
        assert_eq!(short, payload[..5]);
        assert_eq!(Header::read(&short), None);
        assert_eq!(Header::read(&[0; 18]), None);
    }
}
