//! A packet as the nodes see it: bytes with room in front and behind.

/// A packet in a buffer of somebody else's: a port's, a test's.
#[derive(Debug)]
pub struct Frame<'a> {
    room: &'a mut [u8],
    start: u32,
    len: u32,
}

impl<'a> Frame<'a> {
    /// The packet of `len` bytes that begins at `start` of a buffer; cut to
    /// what the buffer holds.
    #[inline(always)]
    pub fn new(room: &'a mut [u8], start: usize, len: usize) -> Self {
        let start = start.min(room.len());
        let len = len.min(room.len() - start);
        Self {
            room,
            start: start as u32,
            len: len as u32,
        }
    }

    /// Where it begins in its buffer.
    #[inline(always)]
    pub fn start(&self) -> usize {
        self.start as usize
    }

    /// Bytes of it.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        let start = self.start();
        self.room.get(start..start + self.len()).unwrap_or_default()
    }

    /// Its bytes, to be changed in place.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let (start, len) = (self.start(), self.len());
        self.room.get_mut(start..start + len).unwrap_or_default()
    }

    /// Its bytes and the room behind them.
    pub fn room_mut(&mut self) -> &mut [u8] {
        let start = self.start();
        self.room.get_mut(start..).unwrap_or_default()
    }

    /// Says how long it is now; more than there is room for is cut.
    #[inline(always)]
    pub fn set_len(&mut self, len: usize) {
        self.len = len.min(self.room.len() - self.start()) as u32;
    }

    /// Takes bytes off its front; all of them where it has fewer.
    #[inline(always)]
    pub fn strip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.len()) as u32;
        self.start += bytes;
        self.len -= bytes;
    }

    /// Its first bytes and `front` bytes of the room in front of them, `N`
    /// in all; `None` where it, or the room, has fewer.
    #[inline(always)]
    pub(super) fn with_front<const N: usize>(&mut self, front: usize) -> Option<&mut [u8; N]> {
        let start = self.start().checked_sub(front)?;
        if self.len() + front < N {
            return None;
        }
        self.room.get_mut(start..)?.first_chunk_mut()
    }

    /// Takes bytes of the room in front to it, which is no less than that.
    #[inline(always)]
    pub(super) fn grow(&mut self, front: u32) {
        let front = front.min(self.start);
        self.start -= front;
        self.len += front;
    }

    /// Puts a header in front. False, with nothing done, where there is no
    /// room.
    #[inline(always)]
    pub fn push<const N: usize>(&mut self, header: &[u8; N]) -> bool {
        let Some(start) = self.start().checked_sub(N) else {
            return false;
        };
        match self.room.get_mut(start..start + N) {
            Some(room) => room.copy_from_slice(header),
            None => return false,
        }
        self.start = start as u32;
        self.len += N as u32;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_off_and_go_on_as_far_as_there_is_room() {
        let mut room = [7; 40];
        let mut frame = Frame::new(&mut room, 10, 100);
        assert_eq!(frame.len(), 30);
        frame.strip(14);
        assert_eq!((frame.start(), frame.len()), (24, 16));
        assert!(frame.push(&[1; 18]));
        assert_eq!((frame.start(), frame.len()), (6, 34));
        assert!(!frame.push(&[2; 14]));
        assert_eq!((frame.bytes()[0], frame.bytes()[17]), (1, 1));
        assert_eq!(frame.bytes()[18], 7);
        frame.set_len(1_000);
        assert_eq!(frame.len(), 34);
        frame.strip(1_000);
        assert!(frame.is_empty() && frame.bytes().is_empty());
        assert!(Frame::new(&mut [], 3, 4).bytes().is_empty());
    }
}
