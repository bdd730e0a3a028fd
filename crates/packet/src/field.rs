//! Reading and writing fields at fixed places: total, whatever the length.
//!
//! For the views of this crate.

use crate::Malformed;

/// Some bytes at `at`; zeros if they are not all there.
#[inline(always)]
pub fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<N>())
        .copied()
        .unwrap_or([0; N])
}

/// Writes bytes at `at`; nothing if they do not all fit.
#[inline(always)]
pub fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<N>())
    {
        *place = value;
    }
}

/// A byte.
#[inline(always)]
pub fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// A 16-bit field in network order.
#[inline(always)]
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(get(bytes, at))
}

/// A 32-bit field in network order.
#[inline(always)]
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(get(bytes, at))
}

/// Refuses bytes shorter than a header.
#[inline(always)]
pub fn at_least(header: &'static str, bytes: &[u8], need: usize) -> Result<(), Malformed> {
    let have = bytes.len();
    if have < need {
        return Err(Malformed::Truncated { header, need, have });
    }
    Ok(())
}
