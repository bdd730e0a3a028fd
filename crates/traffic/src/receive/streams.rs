//! What came of each flow: a window over the newest sequence numbers finds
//! losses, duplicates and late ones in a fixed space. Pure: datagrams go
//! in, counts come out.

use std::collections::HashMap;
use std::net::SocketAddr;

use dataplane::socket::Datagram;

use crate::histogram::Histogram;
use crate::payload::Header;

/// Packets behind the newest one that are told apart.
const WINDOW: u64 = 1_024;
const WORDS: usize = (WINDOW / 64) as usize;

/// What tells flows apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Who sends.
    pub source: SocketAddr,
    /// Which run of `send`.
    pub run: u16,
    /// Which of its flows.
    pub flow: u16,
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Packets, duplicates among them.
    pub packets: u64,
    /// Sequence numbers that are missing between the first and the newest.
    pub lost: u64,
    /// Numbers before the first that came: lost, or from before we listened.
    pub before_first: u64,
    /// Came after one with a higher number (RFC 4737 §3).
    pub reordered: u64,
    /// How far behind the newest one a reordered one was, at most.
    pub reordered_by_most: u64,
    /// Came again.
    pub duplicates: u64,
    /// Came so late that it cannot be said whether for the first time.
    pub too_late: u64,
}

/// One flow.
#[derive(Debug, Clone)]
struct Stream {
    /// The newest number, extended to 64 bits.
    newest: u64,
    /// Bit `n % WINDOW`: whether `n` came, for the newest numbers.
    seen: [u64; WORDS],
    counts: Counts,
}

/// All flows.
#[derive(Debug)]
pub struct Streams {
    streams: HashMap<Key, Stream>,
    max_streams: usize,
    latency: Histogram,
    packets: u64,
    bytes: u64,
    foreign: u64,
    untracked: u64,
    clock_behind: u64,
    first_nanos: u64,
    last_nanos: u64,
}

impl Streams {
    /// At most so many flows; what comes of others is only counted.
    pub fn new(max_streams: usize) -> Self {
        Self {
            streams: HashMap::new(),
            max_streams,
            latency: Histogram::default(),
            packets: 0,
            bytes: 0,
            foreign: 0,
            untracked: 0,
            clock_behind: 0,
            first_nanos: 0,
            last_nanos: 0,
        }
    }

    /// Counts a datagram. O(1); allocates for a new flow only.
    pub fn take(&mut self, datagram: &Datagram<'_>) {
        self.packets += 1;
        self.bytes += datagram.len as u64;
        if self.packets == 1 {
            self.first_nanos = datagram.time_nanos;
        }
        self.last_nanos = self.last_nanos.max(datagram.time_nanos);
        let Some(header) = Header::read(datagram.bytes) else {
            self.foreign += 1;
            return;
        };
        if datagram.time_nanos != 0 {
            match datagram.time_nanos.checked_sub(header.time_nanos) {
                Some(latency) => self.latency.add(latency),
                None => self.clock_behind += 1,
            }
        }
        let key = Key {
            source: datagram.source,
            run: header.run,
            flow: header.flow,
        };
        let room = self.streams.len() < self.max_streams;
        match self.streams.get_mut(&key) {
            Some(stream) => stream.take(header.sequence),
            None if room => {
                self.streams.insert(key, Stream::new(header.sequence));
            }
            None => self.untracked += 1,
        }
    }

    /// Packets, all of them.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes of payload.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets of others than `send`, or too short to say.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Packets of flows beyond the most.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// Packets from the future: the clocks differ.
    pub fn clock_behind(&self) -> u64 {
        self.clock_behind
    }

    /// From the first packet to the last, by the kernel's clock.
    pub fn nanos(&self) -> u64 {
        self.last_nanos.saturating_sub(self.first_nanos)
    }

    /// How long packets took.
    pub fn latency(&self) -> &Histogram {
        &self.latency
    }

    /// The flows, in order.
    pub fn rows(&self) -> Vec<(Key, Counts)> {
        let mut rows: Vec<_> = self
            .streams
            .iter()
            .map(|(key, stream)| (*key, stream.counts))
            .collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        rows
    }

    /// All flows together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for stream in self.streams.values() {
            let counts = &stream.counts;
            total.packets += counts.packets;
            total.lost += counts.lost;
            total.before_first += counts.before_first;
            total.reordered += counts.reordered;
            total.reordered_by_most = total.reordered_by_most.max(counts.reordered_by_most);
            total.duplicates += counts.duplicates;
            total.too_late += counts.too_late;
        }
        total
    }
}

impl Stream {
    /// A flow of which this is the first packet.
    fn new(sequence: u32) -> Self {
        let first = u64::from(sequence);
        let mut stream = Self {
            newest: first,
            seen: [0; WORDS],
            counts: Counts {
                packets: 1,
                before_first: first,
                ..Counts::default()
            },
        };
        // What came before is nobody's loss: as if it had come, but for
        // those that may still come late.
        stream.mark(first);
        stream
    }

    fn take(&mut self, sequence: u32) {
        self.counts.packets += 1;
        let number = self.extended(sequence);
        if number > self.newest {
            self.advance(number);
            return;
        }
        let behind = self.newest - number;
        if behind >= WINDOW {
            self.counts.too_late += 1;
        } else if self.is_marked(number) {
            self.counts.duplicates += 1;
        } else {
            self.mark(number);
            self.counts.reordered += 1;
            self.counts.reordered_by_most = self.counts.reordered_by_most.max(behind);
            // It was missed: among the losses, or before the first.
            if self.counts.lost > 0 {
                self.counts.lost -= 1;
            } else {
                self.counts.before_first = self.counts.before_first.saturating_sub(1);
            }
        }
    }

    /// The number that these 32 bits are nearest to.
    fn extended(&self, sequence: u32) -> u64 {
        let ahead = sequence.wrapping_sub(self.newest as u32) as i32;
        self.newest.saturating_add_signed(i64::from(ahead))
    }

    fn advance(&mut self, number: u64) {
        let step = number - self.newest;
        self.counts.lost += step - 1;
        if step >= WINDOW {
            self.seen = [0; WORDS];
        } else {
            for passed in self.newest + 1..number {
                self.clear(passed);
            }
        }
        self.newest = number;
        self.mark(number);
    }

    fn mark(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] &= !bit;
    }

    fn is_marked(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen[word] & bit != 0
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn streams(numbers: &[u32]) -> Streams {
        let mut streams = Streams::new(4);
        for number in numbers {
            packet(&mut streams, 1, *number);
        }
        streams
    }

    fn packet(streams: &mut Streams, flow: u16, sequence: u32) {
        let header = Header {
            run: 1,
            flow,
            sequence,
            time_nanos: 1_000,
        };
        streams.take(&Datagram {
            bytes: &header.bytes(),
            len: 18,
            source: "10.0.0.1:7".parse().unwrap(),
            time_nanos: 1_500,
        });
    }

    #[test]
    fn losses_order_and_duplicates_are_told_apart() {
        let counts = streams(&[0, 1, 4, 2, 2, 6, 5]).total();
        let expected = Counts {
            packets: 7,
            lost: 1,
            reordered: 2,
            reordered_by_most: 2,
            duplicates: 1,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn what_was_before_the_first_is_counted_apart() {
        assert_eq!(streams(&[100, 101]).total().before_first, 100);
        let late = streams(&[2, 0, 1, 3]).total();
        assert_eq!((late.before_first, late.lost, late.reordered), (0, 0, 2));
    }

    #[test]
    fn numbers_wrap_and_windows_move_on() {
        let wrapped = streams(&[u32::MAX - 1, u32::MAX, 0, 1, u32::MAX]).total();
        assert_eq!((wrapped.lost, wrapped.duplicates), (0, 1));
        let far = streams(&[0, 5_000, 4_999, 100, 5_001]).total();
        assert_eq!((far.lost, far.reordered, far.too_late), (4_998, 1, 1));
    }

    #[test]
    fn any_order_within_the_window_agrees_with_a_set() {
        let mut random = lab::Random::new(7);
        for _ in 0..200 {
            let mut numbers: Vec<u32> = (0..300).filter(|_| random.below(10) > 0).collect();
            for _ in 0..40 {
                let (a, b) = (random.below(numbers.len()), random.below(numbers.len()));
                numbers.swap(a, b);
                numbers.push(numbers[a]);
            }
            let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
            let counts = streams(&numbers).total();
            let newest = u64::from(*distinct.last().unwrap()) + 1;
            let missing = newest - distinct.len() as u64;
            assert_eq!(counts.lost + counts.before_first, missing);
            assert_eq!(counts.duplicates, (numbers.len() - distinct.len()) as u64);
        }
    }

    #[test]
    fn flows_beyond_the_most_take_no_memory() {
        let mut streams = Streams::new(2);
        for flow in 0..10 {
            packet(&mut streams, flow, 0);
            packet(&mut streams, flow, 1);
        }
        assert_eq!((streams.rows().len(), streams.untracked()), (2, 16));
        streams.take(&Datagram {
            bytes: b"something else altogether",
            len: 25,
            source: "10.0.0.1:7".parse().unwrap(),
            time_nanos: 0,
        });
        assert_eq!((streams.foreign(), streams.packets()), (1, 21));
        assert_eq!(streams.latency().quantile(0.5), Some(500));
    }
}
