//! Bytes of a payload that are replaced by others. For [`super::segment`] and
//! [`super::datagram`], which see to lengths, numbers and checksums.

use super::sequence::Text;

/// Edits of one packet at most; a packet that asks for more is refused.
pub const MAX_EDITS: usize = 2 * super::sequence::MAX_CHANGES;

/// Bytes of a payload that are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// First byte that goes.
    pub start: usize,
    /// First one that stays.
    pub end: usize,
    /// What comes there.
    pub text: Text,
}

/// Where a packet that ends at `end` ends after the edits, if it fits into
/// `room` all the while: they are made from the last to the first.
pub fn new_end(room: usize, end: usize, edits: &[Edit]) -> Option<usize> {
    edits.iter().rev().try_fold(end, |end, edit| {
        let end = end + edit.text.len() - (edit.end - edit.start);
        (end <= room).then_some(end)
    })
}

/// Makes the edits (in order, apart from each other) in a payload that begins
/// at `payload_at` and ends at `end`, the packet's end; there is room.
pub fn replace(bytes: &mut [u8], payload_at: usize, mut end: usize, edits: &[Edit]) {
    for edit in edits.iter().rev() {
        let (start, old_end) = (payload_at + edit.start, payload_at + edit.end);
        let new_end = start + edit.text.len();
        bytes.copy_within(old_end..end, new_end);
        if let Some(place) = bytes.get_mut(start..new_end) {
            place.copy_from_slice(&edit.text);
        }
        end = end + new_end - old_end;
    }
}
