//! A stream of bytes as FPM frames: one byte of version, one of what is
//! inside, two of the length in network order, the four of this header
//! included.

use thiserror::Error;

use crate::stream::Stream;

/// Bytes of a frame's header.
const HEADER: usize = 4;
/// `FPM_PROTO_VERSION`.
const VERSION: u8 = 1;
/// `FPM_MSG_TYPE_NETLINK`. (2 is protobuf.)
const NETLINK: u8 = 1;

/// Appends a frame with what `put` appends; nothing, and false, if it says
/// so or if that is too long for a frame.
pub(super) fn append(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
    let start = out.len();
    out.extend([VERSION, NETLINK, 0, 0]);
    let is_put = put(out);
    let len = u16::try_from(out.len() - start).ok().filter(|_| is_put);
    let place = out.get_mut(start + 2..start + HEADER);
    let (Some(len), Some(place)) = (len, place) else {
        out.truncate(start);
        return false;
    };
    place.copy_from_slice(&len.to_be_bytes());
    true
}

/// The bytes that came and were not read yet. Holds no more than was pushed
/// since the last whole frame was taken.
#[derive(Debug, Default)]
pub struct Frames(Stream);

/// What one frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Where its header begins in the stream.
    pub offset: u64,
    /// Netlink messages, one behind the other.
    pub payload: &'a [u8],
}

/// A stream that cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadFrame {
    /// Another version than 1.
    #[error("the frame at byte {offset} is of version {version}, 1 is expected")]
    Version {
        /// Where the frame begins in the stream.
        offset: u64,
        /// What it says.
        version: u8,
    },
    /// Something else than netlink.
    #[error(
        "the frame at byte {offset} holds messages of kind {kind}; 1, netlink, is expected: \
         zebra needs `-M dplane_fpm_nl`"
    )]
    Kind {
        /// Where the frame begins in the stream.
        offset: u64,
        /// What it says.
        kind: u8,
    },
    /// Shorter than its own header.
    #[error("the frame at byte {offset} claims {len} bytes, its header alone has 4")]
    Length {
        /// Where the frame begins in the stream.
        offset: u64,
        /// What it says.
        len: u16,
    },
}

impl Frames {
    /// Takes bytes as they came. O(bytes).
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// The next frame that is there whole; `None` if there is none. After
    /// an error it stays: nothing behind it can be trusted.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, BadFrame> {
        let Some(len) = self.len()? else {
            return Ok(None);
        };
        let offset = self.0.offset();
        let frame = self.0.take(len);
        Ok(Some(Frame {
            offset,
            payload: frame.get(HEADER..).unwrap_or_default(),
        }))
    }

    /// Whether the next frame is there whole.
    pub fn has_frame(&self) -> Result<bool, BadFrame> {
        Ok(self.len()?.is_some())
    }

    /// Bytes that wait for the rest of their frame.
    pub fn pending(&self) -> usize {
        self.0.rest().len()
    }

    /// Those bytes, with frames that nobody has taken yet.
    pub(crate) fn unread(&self) -> &[u8] {
        self.0.rest()
    }

    /// The length of the next frame, if it is there whole. A header is
    /// refused as soon as its first wrong byte is there.
    fn len(&self) -> Result<Option<usize>, BadFrame> {
        let (rest, offset) = (self.0.rest(), self.0.offset());
        if let Some(&version) = rest.first().filter(|version| **version != VERSION) {
            return Err(BadFrame::Version { offset, version });
        }
        if let Some(&kind) = rest.get(1).filter(|kind| **kind != NETLINK) {
            return Err(BadFrame::Kind { offset, kind });
        }
        let Some([_, _, high, low]) = rest.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let len = u16::from_be_bytes([*high, *low]);
        if usize::from(len) < HEADER {
            return Err(BadFrame::Length { offset, len });
        }
        Ok((rest.len() >= usize::from(len)).then_some(usize::from(len)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(payload: &[u8]) -> Vec<u8> {
        let len = u16::try_from(payload.len() + HEADER).unwrap();
        [&[VERSION, NETLINK][..], &len.to_be_bytes(), payload].concat()
    }

    #[test]
    fn frames_are_the_same_wherever_the_stream_is_cut() {
        let whole = [framed(b"one"), framed(b""), framed(&[7; 65_531])].concat();
        let expected: Vec<(u64, Vec<u8>)> =
            vec![(0, b"one".into()), (7, vec![]), (11, vec![7; 65_531])];
        for step in [1, 2, 3, 5, 4096, whole.len()] {
            let (mut frames, mut got) = (Frames::default(), Vec::new());
            for part in whole.chunks(step) {
                frames.push(part);
                while let Some(frame) = frames.next_frame().unwrap() {
                    got.push((frame.offset, frame.payload.to_vec()));
                }
                assert!(frames.pending() < 65_535 + step);
            }
            assert_eq!(got, expected, "{step}");
            assert_eq!(frames.pending(), 0);
        }
    }

    #[test]
    fn what_lies_is_refused_at_its_place_and_stays_refused() {
        for (bytes, told) in [
            (
                &[2][..],
                BadFrame::Version {
                    offset: 7,
                    version: 2,
                },
            ),
            (&[1, 2], BadFrame::Kind { offset: 7, kind: 2 }),
            (&[1, 1, 0, 3], BadFrame::Length { offset: 7, len: 3 }),
            (&[1, 1, 0, 0, 9], BadFrame::Length { offset: 7, len: 0 }),
        ] {
            let mut frames = Frames::default();
            frames.push(&framed(b"one"));
            assert!(frames.next_frame().unwrap().is_some());
            frames.push(bytes);
            assert_eq!(frames.next_frame(), Err(told));
            frames.push(&framed(b"two"));
            assert_eq!(frames.has_frame(), Err(told));
        }
    }
}
