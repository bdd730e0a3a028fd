//! AS paths as messages have them, to paths of AS numbers of four bytes.

use table::row::path_attributes::segment;
use table::{AsPath, Segment};

use crate::Bad;
use crate::bytes::Bytes;

/// How many bytes an AS number has in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsSize {
    /// Before RFC 6793.
    Two,
    /// Since.
    Four,
}

const PATH: &str = "an AS path";

/// Checks a path (RFC 7606 §7.2).
pub fn check(path: &[u8], size: AsSize) -> Result<(), Bad> {
    each_segment(path, size, |_, _, _| {})
}

/// Checks a path and appends it with numbers of four bytes.
pub fn widen(path: &[u8], size: AsSize, to: &mut Vec<u8>) -> Result<(), Bad> {
    each_segment(path, size, |kind, count, numbers| {
        to.extend_from_slice(&[kind, count]);
        match size {
            AsSize::Four => to.extend_from_slice(numbers),
            AsSize::Two => {
                for number in numbers.as_chunks::<2>().0 {
                    to.extend_from_slice(&[0, 0]);
                    to.extend_from_slice(number);
                }
            }
        }
    })
}

/// Gives each segment's kind, count and numbers, up to one that is wrong.
fn each_segment(path: &[u8], size: AsSize, mut each: impl FnMut(u8, u8, &[u8])) -> Result<(), Bad> {
    let width = match size {
        AsSize::Two => 2,
        AsSize::Four => 4,
    };
    let mut bytes = Bytes(path);
    while !bytes.is_empty() {
        let (kind, count) = (bytes.u8(PATH)?, bytes.u8(PATH)?);
        if !(segment::SET..=segment::CONFED_SET).contains(&kind) {
            let (what, value) = ("the kind of a segment of an AS path", kind.into());
            return Err(Bad::Value { what, value });
        }
        if count == 0 {
            let (what, len) = ("a segment of an AS path", 0);
            return Err(Bad::Length { what, len });
        }
        each(kind, count, bytes.take(usize::from(count) * width, PATH)?);
    }
    Ok(())
}

/// Puts together what a speaker of two bytes says (both paths widened):
/// `AS4_PATH` and as many leading numbers of `AS_PATH` as that has more
/// (RFC 6793 §4.2.3). A longer `AS4_PATH` says nothing.
pub fn merge(path: &[u8], new: &[u8]) -> Vec<u8> {
    let Some(more) = AsPath::new(path)
        .hops()
        .checked_sub(AsPath::new(new).hops())
    else {
        return path.to_vec();
    };
    let mut merged = Vec::with_capacity(path.len() + new.len());
    let mut left = more;
    for segment in AsPath::new(path).segments() {
        let numbers: Vec<u32> = segment.numbers().collect();
        let is_outside = matches!(segment.kind, segment::SEQUENCE | segment::SET);
        // What is within a confederation has no length, and goes along
        // while there is something behind it to be prepended.
        let taken = match segment.kind {
            _ if is_outside && left == 0 => break,
            segment::SEQUENCE => numbers.len().min(left),
            _ => numbers.len(),
        };
        left -= match segment.kind {
            segment::SEQUENCE => taken,
            segment::SET => 1,
            _ => 0,
        };
        push(segment, &numbers[..taken], &mut merged);
    }
    join(&mut merged, new);
    merged
}

fn push(segment: Segment<'_>, numbers: &[u32], to: &mut Vec<u8>) {
    // A segment counts its numbers in a byte.
    to.extend_from_slice(&[segment.kind, numbers.len() as u8]);
    to.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
}

/// Appends a path; two sequences that meet become one, as one speaker would
/// have written them.
fn join(to: &mut Vec<u8>, path: &[u8]) {
    let is_one = AsPath::new(to).segments().count() == 1;
    if let ([segment::SEQUENCE, before, ..], [segment::SEQUENCE, behind, numbers @ ..]) =
        (&mut to[..], path)
        && is_one
        && let Some(count) = before.checked_add(*behind)
    {
        *before = count;
        return to.extend_from_slice(numbers);
    }
    to.extend_from_slice(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(segments: &[(u8, &[u32])]) -> Vec<u8> {
        let mut path = Vec::new();
        for (kind, numbers) in segments {
            path.extend_from_slice(&[*kind, numbers.len() as u8]);
            path.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        }
        path
    }

    #[test]
    fn a_path_is_checked_and_widened() {
        let mut wide = Vec::new();
        widen(&[2, 2, 0, 7, 1, 0, 1, 1, 0, 9], AsSize::Two, &mut wide).unwrap();
        assert_eq!(wide, of(&[(2, &[7, 256]), (1, &[9])]));
        let mut same = Vec::new();
        widen(&wide, AsSize::Four, &mut same).unwrap();
        assert_eq!(same, wide);
        let mut none = Vec::new();
        for wrong in [
            &[2][..],
            &[2, 2, 0, 7],
            &[0, 1, 0, 7],
            &[5, 1, 0, 7],
            &[2, 0],
        ] {
            assert!(widen(wrong, AsSize::Two, &mut none).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_path_of_two_bytes_and_one_of_four_are_put_together() {
        const TRANS: u32 = 23_456;
        for (path, new, merged) in [
            (
                of(&[(2, &[1, TRANS, TRANS])]),
                of(&[(2, &[70_000, 80_000])]),
                of(&[(2, &[1, 70_000, 80_000])]),
            ),
            (
                of(&[(3, &[64_512]), (2, &[1, TRANS])]),
                of(&[(2, &[70_000])]),
                of(&[(3, &[64_512]), (2, &[1]), (2, &[70_000])]),
            ),
            (
                of(&[(2, &[1]), (1, &[2, 3]), (2, &[TRANS])]),
                of(&[(2, &[70_000])]),
                of(&[(2, &[1]), (1, &[2, 3]), (2, &[70_000])]),
            ),
            // All of the new one, and one that is longer.
            (
                of(&[(2, &[TRANS])]),
                of(&[(2, &[70_000])]),
                of(&[(2, &[70_000])]),
            ),
            (of(&[(2, &[5])]), of(&[(2, &[6, 7])]), of(&[(2, &[5])])),
        ] {
            assert_eq!(merge(&path, &new), merged);
        }
    }
}
