//! Parts of a packet, read and changed where it was found before that they are
//! there. For all of the crate.

use std::ops::Range;

/// A part of a packet that was found to be there. Where it is not all the
/// same, which is a mistake of ours, a development build stops; a release goes
/// on with none of it.
pub fn part(bytes: &[u8], range: Range<usize>) -> &[u8] {
    let (len, part) = (bytes.len(), bytes.get(range.clone()));
    debug_assert!(part.is_some(), "{range:?} of {len} bytes");
    part.unwrap_or_default()
}

/// The same, to be changed.
pub fn part_mut(bytes: &mut [u8], range: Range<usize>) -> &mut [u8] {
    let len = bytes.len();
    let part = bytes.get_mut(range.clone());
    debug_assert!(part.is_some(), "{range:?} of {len} bytes");
    part.unwrap_or_default()
}
