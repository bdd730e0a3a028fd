//! The Internet checksum (RFC 1071): from scratch, and its incremental
//! update (RFC 1624).
//!
//! For everything that makes or changes a packet.
//!
//! Sums are kept in the machine's byte order, as 16-bit words are loaded
//! from memory: one's complement addition does not care (RFC 1071 §2 B).
//! So a [`Sum`] or a [`Delta`] is never swapped, only the field that is
//! read or written with `u16::from_ne_bytes`.

/// The word that stands for a sum of zero where zero means "none" (RFC 768).
const NEGATIVE_ZERO: u16 = 0xffff;

/// A one's complement sum in the making.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum of some bytes; an odd last byte is padded with zero.
    /// `cargo bench -p fingerpost-packet` says what it costs.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sum(bytes))
    }

    /// The sum of a pseudo header for IPv4 (RFC 768, RFC 9293 §3.1).
    #[inline]
    pub fn pseudo_ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8, length: u16) -> Self {
        let words = [
            u32::from_ne_bytes(source),
            u32::from_ne_bytes(destination),
            u32::from(u16::from(protocol).to_be()),
            u32::from(length.to_be()),
        ];
        Self(words.iter().map(|word| u64::from(*word)).sum())
    }

    /// The sum of a pseudo header for IPv6 (RFC 8200 §8.1).
    pub fn pseudo_ipv6(
        source: [u8; 16],
        destination: [u8; 16],
        next_header: u8,
        length: u32,
    ) -> Self {
        Self::of(&source)
            .and(Self::of(&destination))
            .and(Self::of(&length.to_be_bytes()))
            .and(Self::of(&[0, next_header]))
    }

    /// Both sums together. What stands before `other` must be an even
    /// number of bytes.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        // Each is at most 2^17 * (2^32 - 1) after `sum`, so that some
        // hundred of them add up without an overflow; fold to be sure.
        Self(fold_to_32(self.0) + fold_to_32(other.0))
    }

    /// The sum folded to 16 bits, in memory order; not complemented.
    #[inline]
    pub fn folded(self) -> u16 {
        fold(self.0)
    }

    /// The checksum field: the complement, in memory order.
    #[inline]
    pub fn checksum(self) -> u16 {
        !fold(self.0)
    }
}

/// What a change of some words does to a checksum over them (RFC 1624,
/// equation 3): the sum of all `~old + new`, in 16 bits.
///
/// Its negation undoes the change, so that one delta serves both directions
/// of a translation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delta(u16);

impl Delta {
    /// No change.
    pub const NONE: Self = Self(0);

    /// One word replaced.
    #[inline(always)]
    pub fn of16(old: u16, new: u16) -> Self {
        Self(plus(!old, new))
    }

    /// Two words replaced, as an address is.
    #[inline(always)]
    pub fn of32(old: u32, new: u32) -> Self {
        // The carry of 32 bits is that of the upper word, which comes back
        // in at the lower one's end.
        let (sum, carry) = (!old).overflowing_add(new);
        let sum = sum + u32::from(carry);
        Self(plus(sum as u16, (sum >> 16) as u16))
    }

    /// This change and another one.
    #[inline(always)]
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(plus(self.0, other.0))
    }

    /// From 16 bits that were kept.
    #[inline(always)]
    pub fn from_folded(folded: u16) -> Self {
        Self(folded)
    }

    /// In 16 bits, to be kept.
    #[inline(always)]
    pub fn folded(self) -> u16 {
        self.0
    }

    /// The change back.
    #[inline(always)]
    #[must_use]
    pub fn negated(self) -> Self {
        Self(!self.0)
    }

    /// A checksum field after the change, in memory order.
    #[inline(always)]
    pub fn apply(self, checksum: u16) -> u16 {
        !plus(!checksum, self.0)
    }

    /// A UDP checksum field after the change: an absent one (zero) stays
    /// absent, and one that comes out as zero is sent as 0xffff (RFC 768).
    #[inline(always)]
    pub fn apply_udp(self, checksum: u16) -> u16 {
        if checksum == 0 {
            return 0;
        }
        match self.apply(checksum) {
            0 => NEGATIVE_ZERO,
            changed => changed,
        }
    }
}

/// One's complement addition: a carry comes back in at the lower end.
#[inline(always)]
fn plus(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// A sum as the field of UDP: zero is sent as 0xffff.
#[inline]
pub fn udp_field(checksum: u16) -> u16 {
    if checksum == 0 {
        NEGATIVE_ZERO
    } else {
        checksum
    }
}

/// Folds with end-around carry.
#[inline(always)]
fn fold(sum: u64) -> u16 {
    let mut sum = fold_to_32(sum);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

#[inline(always)]
fn fold_to_32(sum: u64) -> u64 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    (sum & 0xffff_ffff) + (sum >> 32)
}

/// From this length on a wide register pays for asking whether there is one.
const WIDE_FROM_BYTES: usize = 128;

#[inline]
fn sum(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= WIDE_FROM_BYTES && std::arch::is_x86_feature_detected!("avx2") {
        #[allow(unsafe_code, reason = "AVX2: half the time of the portable path")]
        // SAFETY: the processor has AVX2, asked in the line above.
        return unsafe { sum_avx2(bytes) };
    }
    sum_portable(bytes)
}

/// The portable loop, compiled for registers of 32 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(bytes: &[u8]) -> u64 {
    sum_portable(bytes)
}

/// Sums 32-bit words into 64 bits: no carry to look after below 2^32 words.
#[inline(always)]
fn sum_portable(bytes: &[u8]) -> u64 {
    let mut lanes = [0_u64; 16];
    let (blocks, rest) = bytes.as_chunks::<64>();
    for block in blocks {
        let (words, _) = block.as_chunks::<4>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    let (words, tail) = rest.as_chunks::<4>();
    let mut sum: u64 = lanes.iter().sum();
    for word in words {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(tail) {
        *to = *from;
    }
    sum + u64::from(u32::from_ne_bytes(last))
}

#[cfg(test)]
mod tests;
