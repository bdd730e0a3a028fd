//! Bytes that wait, in a ring: kept in the order they came, gone in the
//! order their time ends. Each is found by a number that is never used
//! again while the ring remembers it.

use std::collections::VecDeque;

/// What stands beside the bytes of one.
#[derive(Debug, Clone, Copy)]
struct Record {
    start: usize,
    len: usize,
    until_millis: u64,
    /// The next one of the same datagram.
    next: Option<u32>,
    taken: bool,
}

/// What [`Held::take`] gives.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// The next one of the same datagram.
    pub next: Option<u32>,
    /// Bytes copied; `None`: they did not fit, or were gone.
    pub len: Option<usize>,
}

/// The ring. Its memory is taken with the first one that waits.
#[derive(Debug, Default)]
pub struct Held {
    bytes: Vec<u8>,
    capacity: usize,
    records: VecDeque<Record>,
    /// The number of the oldest record.
    first: u32,
    /// Where the next bytes go.
    end: usize,
    len_bytes: usize,
    /// Those that went without having been taken.
    lost: u64,
}

/// The shortest packet: what bounds the number of records.
const SHORTEST: usize = 32;
/// Records that one call lets go at most.
const GONE_A_CALL: usize = 8;

impl Held {
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// How many went without having been taken.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Keeps some bytes; `None`: no room.
    pub fn keep(&mut self, bytes: &[u8], until_millis: u64, now_millis: u64) -> Option<u32> {
        self.let_go(now_millis);
        if self.bytes.is_empty() {
            self.bytes = vec![0; self.capacity];
        }
        if self.records.len() >= self.capacity / SHORTEST {
            return None;
        }
        let start = self.room(bytes.len())?;
        let end = start + bytes.len();
        self.bytes.get_mut(start..end)?.copy_from_slice(bytes);
        self.end = end;
        self.len_bytes += bytes.len();
        self.records.push_back(Record {
            start,
            len: bytes.len(),
            until_millis,
            next: None,
            taken: false,
        });
        Some(self.first.wrapping_add(self.records.len() as u32 - 1))
    }

    /// Where so many bytes fit in one piece: behind the latest, or at the
    /// beginning again.
    fn room(&self, len: usize) -> Option<usize> {
        let Some(oldest) = self.records.front() else {
            return (len <= self.capacity).then_some(0);
        };
        if oldest.start < self.end {
            if self.capacity - self.end >= len {
                return Some(self.end);
            }
            return (len < oldest.start).then_some(0);
        }
        (self.end + len < oldest.start).then_some(self.end)
    }

    fn record(&mut self, number: u32) -> Option<&mut Record> {
        let place = number.wrapping_sub(self.first) as usize;
        self.records.get_mut(place)
    }

    /// `next` comes behind `number`.
    pub fn chain(&mut self, number: u32, next: u32) {
        if let Some(record) = self.record(number) {
            record.next = Some(next);
        }
    }

    /// Copies one to `buffer`; `None`: it is gone.
    pub fn take(&mut self, number: u32, buffer: &mut [u8]) -> Option<Taken> {
        let record = self.record(number).filter(|record| !record.taken)?;
        record.taken = true;
        let Record {
            start, len, next, ..
        } = *record;
        let bytes = self.bytes.get(start..start + len)?;
        let copied = buffer.get_mut(..len).map(|place| {
            place.copy_from_slice(bytes);
            len
        });
        self.pop_taken();
        Some(Taken { next, len: copied })
    }

    fn pop_taken(&mut self) {
        for _ in 0..GONE_A_CALL {
            if !self.records.front().is_some_and(|record| record.taken) {
                return;
            }
            self.pop();
        }
    }

    fn let_go(&mut self, now_millis: u64) {
        for _ in 0..GONE_A_CALL {
            let over = |record: &Record| record.taken || record.until_millis <= now_millis;
            if !self.records.front().is_some_and(over) {
                return;
            }
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(record) = self.records.pop_front() {
            self.len_bytes -= record.len;
            self.lost += u64::from(!record.taken);
            self.first = self.first.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_out_whole_round_and_round() {
        let mut held = Held::new(1_000);
        let mut buffer = [0; 200];
        let mut waiting = VecDeque::new();
        for round in 0_u32..2_000 {
            let bytes = vec![round as u8; 20 + (round as usize * 37) % 150];
            match held.keep(&bytes, 10, 0) {
                Some(number) => waiting.push_back((number, bytes)),
                None => assert!(held.len_bytes() > 600),
            }
            let any = if round % 3 == 0 {
                waiting.pop_back()
            } else {
                None
            };
            let oldest = (waiting.len() > 5).then(|| waiting.pop_front()).flatten();
            for (number, bytes) in any.into_iter().chain(oldest) {
                let taken = held.take(number, &mut buffer).unwrap();
                assert_eq!(buffer[..taken.len.unwrap()], bytes);
                assert!(held.take(number, &mut buffer).is_none());
            }
        }
        held.let_go(10);
        assert!(waiting.len() <= GONE_A_CALL && held.len_bytes() == 0);
    }

    #[test]
    fn too_long_for_the_ring_or_the_buffer() {
        let mut held = Held::new(64);
        assert!(held.keep(&[0; 65], 10, 0).is_none());
        let number = held.keep(&[0; 64], 10, 0).unwrap();
        assert!(held.keep(&[0; 1], 10, 0).is_none());
        assert!(held.take(number, &mut [0; 63]).unwrap().len.is_none());
        assert!(Held::new(0).keep(&[0; 20], 10, 0).is_none());
    }
}
