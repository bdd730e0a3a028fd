//! Packets that are made on the way: errors, fragments, those that waited.

use super::GONE;
use super::frame::Frame;

/// Packets made in one batch at most; beyond, they are counted as dropped.
const MAX_ORIGINATED: usize = 512;
/// Room in front for a link's header, and behind for helpers.
const FRONT: usize = 64;
const BEHIND: usize = 192;
/// A buffer that became larger than this is not kept for the next batch.
const MAX_KEPT_BYTES: usize = 4_096;

/// How far a made packet is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It leaves by a port as it is.
    Ready(u16),
    /// It has to be looked up first.
    ToRoute {
        /// By which port what caused it came in.
        port_in: u16,
        /// Whether it is one hop further (a packet that turned back).
        takes_hop: bool,
        /// Whether it went through address translation already.
        is_translated: bool,
    },
}

/// A made packet.
#[derive(Debug)]
pub(super) struct OriginatedPacket {
    pub bytes: Vec<u8>,
    pub start: usize,
    pub len: usize,
    pub stage: Stage,
}

impl OriginatedPacket {
    pub fn frame(&mut self) -> Frame<'_> {
        Frame::new(&mut self.bytes, self.start, self.len)
    }
}

/// The made packets of a batch. Their buffers are used again.
#[derive(Debug, Default)]
pub(super) struct OriginatedQueue {
    list: Vec<OriginatedPacket>,
    used: usize,
    given: usize,
}

impl OriginatedQueue {
    pub fn clear(&mut self) {
        if self.used > 0 {
            self.list
                .retain(|extra| extra.bytes.capacity() <= MAX_KEPT_BYTES);
        }
        (self.used, self.given) = (0, 0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Another packet, written by `write` into room for `len` bytes, which
    /// says how long it became. False where there is no room, or nothing
    /// was written.
    pub fn make(
        &mut self,
        len: usize,
        stage: Stage,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> bool {
        if self.used >= MAX_ORIGINATED {
            return false;
        }
        if self.used == self.list.len() {
            self.list.push(OriginatedPacket {
                bytes: Vec::new(),
                start: 0,
                len: 0,
                stage,
            });
        }
        let Some(extra) = self.list.get_mut(self.used) else {
            return false;
        };
        extra.bytes.clear();
        extra.bytes.resize(FRONT + len + BEHIND, 0);
        (extra.start, extra.stage) = (FRONT, stage);
        let room = extra.bytes.get_mut(FRONT..FRONT + len).unwrap_or_default();
        extra.len = write(room).min(len);
        let is_made = extra.len > 0;
        self.used += usize::from(is_made);
        is_made
    }

    /// Takes one out, to be worked on beside the others.
    pub fn take(&mut self, at: usize) -> Option<OriginatedPacket> {
        let extra = self.list.get_mut(at).filter(|_| at < self.used)?;
        Some(OriginatedPacket {
            bytes: std::mem::take(&mut extra.bytes),
            ..*extra
        })
    }

    /// Puts it back in its place.
    pub fn put_back(&mut self, at: usize, extra: OriginatedPacket) {
        if let Some(place) = self.list.get_mut(at) {
            *place = extra;
        }
    }

    /// The next one that leaves.
    pub fn next(&mut self) -> Option<(u16, Frame<'_>)> {
        while self.given < self.used {
            let at = self.given;
            self.given += 1;
            let ready = |extra: &OriginatedPacket| matches!(extra.stage, Stage::Ready(port) if port != GONE);
            if self.list.get(at).is_some_and(ready) {
                let extra = self.list.get_mut(at)?;
                let Stage::Ready(port) = extra.stage else {
                    return None;
                };
                return Some((port, extra.frame()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_in_order_and_no_more_than_the_limit() {
        let mut originated = OriginatedQueue::default();
        for round in 0..2 {
            originated.clear();
            for number in 0..MAX_ORIGINATED + 5 {
                let made = originated.make(2, Stage::Ready(number as u16), |room| {
                    room.copy_from_slice(&(number as u16).to_be_bytes());
                    2
                });
                assert_eq!(made, number < MAX_ORIGINATED, "round {round}");
            }
            let mut seen = 0;
            while let Some((port, frame)) = originated.next() {
                assert_eq!(port, seen);
                assert_eq!(frame.bytes(), seen.to_be_bytes());
                seen += 1;
            }
            assert_eq!(usize::from(seen), MAX_ORIGINATED);
        }
    }

    #[test]
    fn what_ended_or_was_not_written_does_not_come_out() {
        let mut originated = OriginatedQueue::default();
        assert!(!originated.make(9, Stage::Ready(1), |_| 0));
        assert!(originated.make(9, Stage::Ready(GONE), |_| 9));
        let stage = Stage::ToRoute {
            port_in: 0,
            takes_hop: false,
            is_translated: false,
        };
        assert!(originated.make(100_000, stage, |_| 9));
        assert_eq!(originated.len(), 2);
        assert!(originated.next().is_none());
        let mut taken = originated.take(1).unwrap();
        taken.stage = Stage::Ready(3);
        originated.put_back(1, taken);
        assert!(originated.take(2).is_none());
    }
}
