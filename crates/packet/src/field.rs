//! Reading and writing fields at fixed places: total, whatever the length.
//!
//! For the views of this crate, which look at the length when they are made.
//! What is not there all the same is a mistake of ours: a development build
//! stops there, a release reads zeros.

use std::ops::RangeBounds;
use std::slice::SliceIndex;

use crate::Malformed;

/// Some bytes at `at`; zeros if they are not all there.
#[inline(always)]
pub fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<N>());
    debug_assert!(field.is_some(), "{N} bytes at {at} of {}", bytes.len());
    field.copied().unwrap_or([0; N])
}

/// A part of the bytes; empty if it is not all there.
#[inline(always)]
pub fn part<R>(bytes: &[u8], range: R) -> &[u8]
where
    R: SliceIndex<[u8], Output = [u8]> + RangeBounds<usize>,
{
    let (len, part) = (bytes.len(), bytes.get(range));
    debug_assert!(part.is_some(), "a part beyond {len} bytes");
    part.unwrap_or_default()
}

/// A part of the bytes, to be changed; empty if it is not all there.
#[inline(always)]
pub fn part_mut<R>(bytes: &mut [u8], range: R) -> &mut [u8]
where
    R: SliceIndex<[u8], Output = [u8]> + RangeBounds<usize>,
{
    let len = bytes.len();
    let part = bytes.get_mut(range);
    debug_assert!(part.is_some(), "a part beyond {len} bytes");
    part.unwrap_or_default()
}

/// Writes bytes at `at`; nothing if they do not all fit.
#[inline(always)]
pub fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    let len = bytes.len();
    let place = bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<N>());
    debug_assert!(place.is_some(), "{N} bytes at {at} of {len}");
    if let Some(place) = place {
        *place = value;
    }
}

/// A byte.
#[inline(always)]
pub fn byte(bytes: &[u8], at: usize) -> u8 {
    let byte = bytes.get(at).copied();
    debug_assert!(byte.is_some(), "a byte at {at} of {}", bytes.len());
    byte.unwrap_or(0)
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
