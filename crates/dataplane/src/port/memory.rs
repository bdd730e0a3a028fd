//! A port of memory: what is received is made here or comes from another
//! port of this kind, what is sent goes there or nowhere. For benchmarks,
//! tests and simulations, and to hand packets from one worker to another.

use std::fmt;
use std::os::fd::BorrowedFd;

use super::{Counters, Port, PortError, Received, Sent};
use crate::buffer::MOST_LINK;
use crate::buffer::ring::{Receiver, Sender, ring};
use crate::{Batch, Buffer, Cache, Pool, TAILROOM};

/// A cache line; frames are kept in whole ones.
const LINE_BYTES: usize = 64;
/// Longer link headers are none.
const MOST_LINK_BYTES: usize = MOST_LINK;

/// A port without a device.
///
/// On lines of its own: the ends of a pair may be neighbours in memory, and
/// each is written to by another worker with every batch.
#[derive(Debug)]
#[repr(align(128))]
pub struct Memory {
    source: Source,
    sink: Option<Sender>,
    counters: Counters,
}

/// Where a [`Memory`] port's packets come from.
enum Source {
    /// Prepared ones, over and over.
    Frames(Frames),
    /// The other end of a ring.
    Ring(Receiver),
    /// Originated one by one, until it says `false`.
    Generator(Box<dyn FnMut(&mut Buffer) -> bool + Send>),
    /// Nowhere; there are none (any more).
    Nowhere,
}

/// Prepared frames, taken in turn.
#[derive(Debug)]
pub struct Frames {
    lines: Vec<[u8; LINE_BYTES]>,
    /// Where each begins in `lines`, and its length in bytes.
    frames: Vec<(u32, u32)>,
    link_len: usize,
    next: usize,
    left: u64,
}

impl Frames {
    /// Frames with a link header of `link_len` bytes (14 for Ethernet, 0 for
    /// bare IP), to be received `packets` times in all, over and over. A
    /// frame that is shorter than its link header is left out.
    pub fn new<'a>(
        frames: impl IntoIterator<Item = &'a [u8]>,
        link_len: usize,
        packets: u64,
    ) -> Self {
        let mut all = Self {
            lines: Vec::new(),
            frames: Vec::new(),
            link_len: link_len.min(MOST_LINK_BYTES),
            next: 0,
            left: packets,
        };
        for frame in frames.into_iter().filter(|frame| frame.len() >= link_len) {
            let place = (all.lines.len() as u32, frame.len() as u32);
            all.frames.push(place);
            all.lines.extend(frame.chunks(LINE_BYTES).map(|chunk| {
                let mut line = [0; LINE_BYTES];
                line.iter_mut()
                    .zip(chunk)
                    .for_each(|(to, from)| *to = *from);
                line
            }));
        }
        if all.frames.is_empty() {
            all.left = 0;
        }
        all
    }

    /// Copies the next one into a buffer, in whole lines. False when it does
    /// not fit.
    #[inline]
    fn copy_next(&mut self, buffer: &mut Buffer) -> bool {
        let Some((start, len)) = self.frames.get(self.next).copied() else {
            return false;
        };
        self.next += 1;
        if self.next == self.frames.len() {
            self.next = 0;
        }
        let len = len as usize;
        let lines = self.lines.get(start as usize..).unwrap_or_default();
        let lines = lines.get(..len.div_ceil(LINE_BYTES)).unwrap_or_default();
        debug_assert!(lines.len() * LINE_BYTES >= len);
        buffer.set_lines(lines.as_flattened(), len, self.link_len)
    }
}

// A whole line may be written behind the longest packet.
const _: () = assert!(TAILROOM >= LINE_BYTES);

impl Memory {
    /// A port that receives prepared frames, and counts and drops what is
    /// sent.
    pub fn frames(frames: Frames) -> Self {
        Self::of(Source::Frames(frames), None)
    }

    /// A port that receives what `make` puts into each empty buffer, until
    /// that says `false`; what is sent is counted and dropped.
    pub fn generator(make: impl FnMut(&mut Buffer) -> bool + Send + 'static) -> Self {
        Self::of(Source::Generator(Box::new(make)), None)
    }

    /// A port that receives nothing, and counts and drops what is sent.
    pub fn null() -> Self {
        Self::of(Source::Nowhere, None)
    }

    /// Two ports: what one sends the other receives, in the same buffers, up
    /// to `packets` on the way in each direction. The ends may be in two
    /// threads. When one end is dropped the other receives what is still on
    /// its way, and then the end. Buffers of another pool are refused, and a
    /// note for the next node ([`Buffer::mark`]) does not go along.
    pub fn pair(pool: &Pool, packets: usize) -> (Self, Self) {
        let (to_right, from_left) = ring(pool, packets);
        let (to_left, from_right) = ring(pool, packets);
        (
            Self::of(Source::Ring(from_right), Some(to_right)),
            Self::of(Source::Ring(from_left), Some(to_left)),
        )
    }

    fn of(source: Source, sink: Option<Sender>) -> Self {
        Self {
            source,
            sink,
            counters: Counters::default(),
        }
    }

    fn count_received(&mut self, batch: &Batch) -> Received {
        if batch.is_empty() {
            return Received::Nothing;
        }
        self.counters.received_packets += batch.len() as u64;
        self.counters.received_bytes += packet_bytes(batch);
        Received::Packets
    }
}

/// Bytes of all packets, from the IP header on.
fn packet_bytes(batch: &Batch) -> u64 {
    let packets = batch.packets().iter();
    packets.map(|buffer| buffer.packet_len() as u64).sum()
}

impl Port for Memory {
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        cache.clear(batch);
        match &mut self.source {
            Source::Nowhere => return Ok(Received::End),
            Source::Frames(frames) => {
                if frames.left == 0 {
                    return Ok(Received::End);
                }
                let most = usize::try_from(frames.left).unwrap_or(usize::MAX);
                let came = cache.fill(batch, most.min(batch.capacity()));
                frames.left -= came as u64;
                let mut refused = 0;
                for buffer in batch.packets_mut() {
                    let fits = frames.copy_next(buffer);
                    buffer.set_discarded(!fits);
                    refused += u64::from(!fits);
                }
                if refused > 0 {
                    self.counters.refused_packets += refused;
                    drop_discarded(cache, batch);
                }
            }
            Source::Generator(make) => {
                cache.fill(batch, batch.capacity());
                let mut packets = batch.packets_mut().iter_mut();
                if let Some(end) = packets.position(|buffer| !make(buffer)) {
                    cache.give_all(batch.drain_from(end));
                    self.source = Source::Nowhere;
                }
            }
            Source::Ring(ring) => {
                // Asked before the look: nothing comes behind it then.
                let is_ended = ring.is_ended();
                ring.receive(batch);
                if is_ended && batch.is_empty() {
                    return Ok(Received::End);
                }
            }
        }
        Ok(self.count_received(batch))
    }

    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError> {
        let (mut bytes, some_go_nowhere) = look_over(batch);
        if some_go_nowhere {
            drop_discarded(cache, batch);
            bytes = packet_bytes(batch);
        }
        let packets = batch.len() as u64;
        let Some(ring) = &mut self.sink else {
            self.counters.sent_packets += packets;
            self.counters.sent_bytes += bytes;
            cache.clear(batch);
            return Ok(Sent::All);
        };
        let mut strange = (0, 0);
        // Nobody takes what the ring of a dropped end holds.
        if !ring.is_ended() {
            ring.send(batch);
            while let Some(one) = batch.packets().first().filter(|one| !ring.takes(one)) {
                strange = (strange.0 + 1, strange.1 + one.packet_len() as u64);
                // Home by themselves.
                batch.drain_first(1).for_each(drop);
                ring.send(batch);
            }
        }
        let refused = batch.len() as u64 + strange.0;
        self.counters.refused_packets += refused;
        self.counters.sent_packets += packets - refused;
        self.counters.sent_bytes += bytes - packet_bytes(batch) - strange.1;
        cache.clear(batch);
        Ok(Sent::All)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// Bytes of all packets, and whether some go nowhere: one pass over the
/// handles, which stops at none of them.
#[inline(always)]
fn look_over(batch: &Batch) -> (u64, bool) {
    let packets = batch.packets().iter();
    packets.fold((0, false), |(bytes, some), buffer| {
        let len = buffer.packet_len() as u64;
        (bytes + len, some | buffer.is_discarded())
    })
}

/// Gives the buffers of packets that go nowhere back.
#[cold]
#[inline(never)]
fn drop_discarded(cache: &mut Cache, batch: &mut Batch) {
    cache.give_all(batch.extract(Buffer::is_discarded));
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frames(_) => "Frames",
            Self::Ring(_) => "Ring",
            Self::Generator(_) => "Generator",
            Self::Nowhere => "Nowhere",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;

    fn room(packets: usize) -> (Cache, Batch) {
        let pool = Pool::new(4 * packets, 200).unwrap();
        (pool.cache(), Batch::new(packets))
    }

    #[test]
    fn frames_come_in_turn_as_often_as_asked() {
        let frames = [[1; 60].as_slice(), &[2; 100], &[3; 5]];
        let mut port = Memory::frames(Frames::new(frames, 14, 5));
        let (mut cache, mut batch) = room(3);
        assert_eq!(
            port.receive(&mut cache, &mut batch).unwrap(),
            Received::Packets
        );
        let of = |batch: &Batch| -> Vec<(u8, usize, usize)> {
            let packets = batch.packets().iter();
            let of = |buffer: &Buffer| {
                let packet = buffer.packet();
                (packet[0], packet.len(), buffer.link().len())
            };
            packets.map(of).collect()
        };
        assert_eq!(of(&batch), [(1, 46, 14), (2, 86, 14), (1, 46, 14)]);
        port.send(&mut cache, &mut batch).unwrap();
        port.receive(&mut cache, &mut batch).unwrap();
        assert_eq!(of(&batch), [(2, 86, 14), (1, 46, 14)]);
        assert_eq!(port.receive(&mut cache, &mut batch).unwrap(), Received::End);
        let counters = port.counters();
        assert_eq!((counters.received_packets, counters.sent_packets), (5, 3));
        assert_eq!((counters.received_bytes, counters.sent_bytes), (310, 178));
    }

    #[test]
    fn a_frame_too_long_for_a_buffer_is_refused() {
        let frames = [[1; 60].as_slice(), &[2; 2_000]];
        let mut port = Memory::frames(Frames::new(frames, 0, 4));
        let (mut cache, mut batch) = room(4);
        port.receive(&mut cache, &mut batch).unwrap();
        assert_eq!((batch.len(), port.counters().refused_packets), (2, 2));
        let none = Frames::new([], 0, 9);
        let received = Memory::frames(none).receive(&mut cache, &mut batch);
        assert_eq!(received.unwrap(), Received::End);
    }

    #[test]
    fn a_generator_makes_packets_until_it_has_enough() {
        let mut left = 5;
        let mut port = Memory::generator(move |buffer| {
            left -= 1;
            buffer.set_frame(&[left; 30], 10) && left > 0
        });
        let (mut cache, mut batch) = room(3);
        let mut seen = Vec::new();
        while port.receive(&mut cache, &mut batch).unwrap() == Received::Packets {
            seen.extend(batch.packets().iter().map(|buffer| buffer.packet()[0]));
        }
        assert_eq!(seen, [4, 3, 2, 1]);
        let received = Memory::null().receive(&mut cache, &mut batch);
        assert_eq!(received.unwrap(), Received::End);
    }

    #[test]
    fn what_one_end_sends_the_other_receives() {
        let pool = Pool::new(16, 200).unwrap();
        let (mut left, mut right) = Memory::pair(&pool, 4);
        let (mut cache, mut batch) = (pool.cache(), Batch::new(6));
        assert_eq!(cache.fill(&mut batch, 6), 6);
        for (place, buffer) in batch.packets_mut().iter_mut().enumerate() {
            assert!(buffer.set_frame(&[place as u8; 20], 0));
            buffer.set_discarded(place == 1);
        }
        left.send(&mut cache, &mut batch).unwrap();
        let counters = left.counters();
        assert_eq!((counters.sent_packets, counters.refused_packets), (4, 1));
        assert!(batch.is_empty());
        let received = right.receive(&mut cache, &mut batch).unwrap();
        assert_eq!(received, Received::Packets);
        let seen: Vec<u8> = batch.packets().iter().map(|one| one.packet()[0]).collect();
        assert_eq!(seen, [0, 2, 3, 4]);
        assert_eq!(
            right.receive(&mut cache, &mut batch).unwrap(),
            Received::Nothing
        );
        // One of another pool is refused, and the others go.
        let other = Pool::new(4, 200).unwrap().cache().take();
        assert_eq!(cache.fill(&mut batch, 1), 1);
        batch.push(other.unwrap()).unwrap();
        assert_eq!(cache.fill(&mut batch, 1), 1);
        left.send(&mut cache, &mut batch).unwrap();
        let counters = left.counters();
        assert_eq!((counters.sent_packets, counters.refused_packets), (6, 2));
        right.receive(&mut cache, &mut batch).unwrap();
        assert_eq!(batch.len(), 2);
        cache.clear(&mut batch);
        drop(left);
        assert_eq!(cache.fill(&mut batch, 2), 2);
        right.send(&mut cache, &mut batch).unwrap();
        assert_eq!(right.counters().refused_packets, 2);
        assert_eq!(
            right.receive(&mut cache, &mut batch).unwrap(),
            Received::End
        );
    }
}
