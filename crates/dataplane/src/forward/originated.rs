//! Packets that are made on the way: errors, fragments, those that waited;
//! and those that turn back, which are no new ones and keep their buffer.

use super::GONE;
use crate::{Buffer, Cache};

/// Packets of one batch at most; beyond, they are counted as dropped.
const MAX_ORIGINATED: usize = 512;

/// How far such a packet is on its way.
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

/// Such a packet.
#[derive(Debug)]
pub(super) struct OriginatedPacket {
    pub buffer: Buffer,
    pub stage: Stage,
}

/// Those of a batch.
#[derive(Debug, Default)]
pub(super) struct OriginatedQueue {
    /// In order; none where one is worked on, or was given out.
    list: Vec<Option<OriginatedPacket>>,
    given: usize,
}

impl OriginatedQueue {
    /// Forgets them; what nobody took goes back to the cache.
    pub fn clear(&mut self, cache: &mut Cache) {
        let left = self.list.drain(..).flatten();
        cache.give_all(left.map(|one| one.buffer));
        self.given = 0;
    }

    /// How many there were.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Adds a packet. False, and it is back in the cache, where there is no
    /// room.
    pub fn add(&mut self, cache: &mut Cache, buffer: Buffer, stage: Stage) -> bool {
        if self.list.len() >= MAX_ORIGINATED {
            cache.give(buffer);
            return false;
        }
        self.list.push(Some(OriginatedPacket { buffer, stage }));
        true
    }

    /// Another packet, written by `write` into room for `len` bytes, which
    /// says how long it became. False where there is no room, or nothing
    /// was written.
    pub fn make(
        &mut self,
        cache: &mut Cache,
        len: usize,
        stage: Stage,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> bool {
        let Some(mut buffer) = cache.take() else {
            return false;
        };
        let written = buffer.begin(len).map_or(0, |room| write(room).min(len));
        if written == 0 {
            cache.give(buffer);
            return false;
        }
        buffer.set_len(written);
        self.add(cache, buffer, stage)
    }

    /// Takes one out, to be worked on beside the others.
    pub fn take(&mut self, at: usize) -> Option<OriginatedPacket> {
        self.list.get_mut(at)?.take()
    }

    /// Puts it back in its place.
    pub fn put_back(&mut self, at: usize, packet: OriginatedPacket) {
        if let Some(place) = self.list.get_mut(at) {
            *place = Some(packet);
        }
    }

    /// The next one that leaves, and by which port. What ended stays until
    /// [`OriginatedQueue::clear`].
    pub fn next(&mut self) -> Option<(u16, Buffer)> {
        while let Some(place) = self.list.get_mut(self.given) {
            self.given += 1;
            let is_ready = |one: &mut OriginatedPacket| matches!(one.stage, Stage::Ready(port) if port != GONE);
            if let Some(one) = place.take_if(is_ready)
                && let Stage::Ready(port) = one.stage
            {
                return Some((port, one.buffer));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;

    #[test]
    fn packets_come_out_in_order_and_no_more_than_the_limit() {
        let pool = Pool::new(MAX_ORIGINATED + 8, 100).unwrap();
        let mut cache = pool.cache();
        let mut originated = OriginatedQueue::default();
        for round in 0..2 {
            originated.clear(&mut cache);
            for number in 0..MAX_ORIGINATED + 5 {
                let stage = Stage::Ready(number as u16);
                let made = originated.make(&mut cache, 2, stage, |room| {
                    room.copy_from_slice(&(number as u16).to_be_bytes());
                    2
                });
                assert_eq!(made, number < MAX_ORIGINATED, "round {round}");
            }
            let mut seen = 0;
            while let Some((port, buffer)) = originated.next() {
                assert_eq!(port, seen);
                assert_eq!(buffer.packet(), seen.to_be_bytes());
                seen += 1;
                cache.give(buffer);
            }
            assert_eq!(usize::from(seen), MAX_ORIGINATED);
        }
        drop(cache);
        assert_eq!((pool.outstanding(), pool.late_frees()), (0, 0));
    }

    #[test]
    fn what_ended_or_was_not_written_does_not_come_out() {
        let pool = Pool::new(8, 200).unwrap();
        let mut cache = pool.cache();
        let mut originated = OriginatedQueue::default();
        assert!(!originated.make(&mut cache, 9, Stage::Ready(1), |_| 0));
        assert!(!originated.make(&mut cache, 100_000, Stage::Ready(1), |_| 9));
        assert!(originated.make(&mut cache, 9, Stage::Ready(GONE), |_| 9));
        let stage = Stage::ToRoute {
            port_in: 0,
            takes_hop: false,
            is_translated: false,
        };
        assert!(originated.make(&mut cache, 100, stage, |_| 9));
        assert_eq!(originated.len(), 2);
        assert!(originated.next().is_none());
        let mut taken = originated.take(1).unwrap();
        taken.stage = Stage::Ready(3);
        originated.put_back(1, taken);
        assert!(originated.take(2).is_none());
        originated.clear(&mut cache);
        drop(cache);
        assert_eq!((pool.outstanding(), pool.late_frees()), (0, 0));
        let mut none = Pool::new(0, 200).unwrap().cache();
        assert!(!originated.make(&mut none, 9, Stage::Ready(1), |_| 9));
    }
}
