//! A ring that hands buffers of one pool from one worker to another.
//!
//! On the way a handle is 8 bytes, half of itself: its place in the pool and
//! where and how long its packet is, without the note for the next node. What
//! it costs is the cache lines that go from core to core, and these are half
//! as many then.

#![allow(
    unsafe_code,
    reason = "a handle is put into one word, and made of it again"
)]

use std::fmt;
use std::mem::{self, MaybeUninit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rtrb::chunks::ChunkError;
use rtrb::{Consumer, Producer, RingBuffer};

use super::moves::Range;
use super::slot::OwnSlot;
use super::{Batch, Buffer, LINE_BYTES, Pool};

/// The end that buffers are put in at.
pub struct Sender {
    ring: Producer<Sealed>,
    both: Arc<Both>,
}

/// The end where they come out.
pub struct Receiver {
    /// There, until this is dropped.
    ring: Option<Consumer<Sealed>>,
    both: Arc<Both>,
}

/// A buffer in one word: lines from the pool's first byte, and above them
/// what [`Buffer`] says about the packet ([`Word::sealed`]). Nothing happens when it
/// is dropped: [`Both`] sees to it that none is.
struct Sealed(u64);

/// What both ends have. The last of them sends home what is left.
struct Both {
    pool: Range,
    /// One of the ends is gone.
    is_ended: AtomicBool,
    /// Of a receiver that is gone.
    left: Mutex<Option<Consumer<Sealed>>>,
}

/// A ring for buffers of this pool, with room for so many.
pub fn ring(pool: &Pool, packets: usize) -> (Sender, Receiver) {
    let (producer, consumer) = RingBuffer::new(packets);
    let both = Arc::new(Both {
        pool: pool.range(),
        is_ended: AtomicBool::new(false),
        left: Mutex::new(None),
    });
    let sender = Sender {
        ring: producer,
        both: Arc::clone(&both),
    };
    let receiver = Receiver {
        ring: Some(consumer),
        both,
    };
    (sender, receiver)
}

impl Sender {
    /// Whether nobody will take out what is put in.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.both.is_ended.load(Ordering::Acquire)
    }

    /// Whether it is of the pool of this ring.
    #[inline(always)]
    pub fn takes(&self, buffer: &Buffer) -> bool {
        self.both.pool.has(&buffer.slot)
    }

    /// Puts in what there is room for, from the batch's first on, as far as
    /// they are of the pool; the others stay in the batch.
    #[inline]
    pub fn send(&mut self, batch: &mut Batch) {
        let pool = self.both.pool;
        let wanted = pool.have(batch.packets());
        let chunk = match self.ring.write_chunk_uninit(wanted) {
            Err(ChunkError::TooFewSlots(some)) => self.ring.write_chunk_uninit(some),
            chunk => chunk,
        };
        if let Ok(mut chunk) = chunk {
            let sent = chunk.len();
            let (first, second) = chunk.as_mut_slices();
            let (buffers, _) = batch.packets().split_at(sent);
            let (early, late) = buffers.split_at(first.len());
            seal(early, first, pool);
            seal(late, second, pool);
            // What they own is in the ring from here on.
            batch.drain_first(sent).for_each(mem::forget);
            // SAFETY: all places are written to: there were no fewer buffers.
            unsafe { chunk.commit_all() };
        }
    }
}

impl Receiver {
    /// Whether nothing more will come than what can be taken out now. (To be
    /// asked before it is taken.)
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.both.is_ended.load(Ordering::Acquire)
    }

    /// Whether nothing is in it at the moment.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ring.as_ref().is_none_or(Consumer::is_empty)
    }

    /// Takes out as many as have room in the batch.
    #[inline]
    pub fn receive(&mut self, batch: &mut Batch) {
        let Some(ring) = &mut self.ring else {
            return;
        };
        // A whole batch at first: what is known to be there is taken without
        // a look at the other end's cache line.
        let chunk = match ring.read_chunk(batch.room()) {
            Err(ChunkError::TooFewSlots(some)) => ring.read_chunk(some),
            chunk => chunk,
        };
        if let Ok(chunk) = chunk {
            let pool = self.both.pool;
            batch.add(chunk.into_iter().map(|sealed| {
                // SAFETY: what comes out of a ring was sealed for its pool.
                unsafe { sealed.open(pool) }
            }));
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // Release: what was put in comes before.
        self.both.is_ended.store(true, Ordering::Release);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.both.is_ended.store(true, Ordering::Release);
        // The sender may be putting more in at this moment.
        let left = self.both.left.lock();
        *left.unwrap_or_else(PoisonError::into_inner) = self.ring.take();
    }
}

impl Drop for Both {
    fn drop(&mut self) {
        let left = self.left.get_mut();
        let Some(ring) = left.unwrap_or_else(PoisonError::into_inner) else {
            return;
        };
        while let Ok(sealed) = ring.pop() {
            // SAFETY: what comes out of a ring was sealed for its pool.
            drop(unsafe { sealed.open(self.pool) });
        }
    }
}

/// Writes what goes on the way of each buffer of this pool. (By slices: an
/// iterator that is asked for one after the other takes a tenth more of the
/// whole way.)
#[inline(always)]
fn seal(buffers: &[Buffer], places: &mut [MaybeUninit<Sealed>], pool: Range) {
    for (place, buffer) in places.iter_mut().zip(buffers) {
        place.write(Sealed::of(buffer, pool));
    }
}

impl Sealed {
    /// Of a buffer of this pool, which is to be forgotten then.
    #[inline(always)]
    fn of(buffer: &Buffer, pool: Range) -> Self {
        // A pool has no more lines than there is room for in the word.
        let line = buffer.slot.offset(pool.origin) / LINE_BYTES;
        Self(buffer.word.sealed(line as u64))
    }

    /// # Safety
    /// It was sealed for this pool.
    #[inline(always)]
    unsafe fn open(self, pool: Range) -> Buffer {
        let (word, line) = pool.empty.opened(self.0);
        // SAFETY: the slot of a handle that was forgotten after `of`, once:
        // this is neither copied nor opened twice.
        let slot = unsafe { OwnSlot::at(pool.origin, line as usize * LINE_BYTES) };
        Buffer { slot, word }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiver")
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_packet_goes_along() {
        let pool = Pool::new(40, 100).unwrap();
        let (mut cache, mut batch) = (pool.cache(), Batch::new(40));
        cache.fill(&mut batch, 40);
        for (place, buffer) in batch.packets_mut().iter_mut().enumerate() {
            assert!(buffer.fill(&[place as u8; 50], 14, 3, 99));
            buffer.set_mark(5);
        }
        let (mut sender, mut receiver) = ring(&pool, 32);
        sender.send(&mut batch);
        assert_eq!(batch.len(), 8);
        let mut came = Batch::new(30);
        receiver.receive(&mut came);
        receiver.receive(&mut came);
        assert_eq!(came.len(), 30);
        for (place, buffer) in came.packets().iter().enumerate() {
            assert_eq!(
                (buffer.link(), buffer.packet()),
                (&[place as u8; 14][..], &[place as u8; 36][..])
            );
            assert_eq!(
                (buffer.time_nanos(), buffer.original_len(), buffer.mark()),
                (99, 53, 0)
            );
        }
        cache.clear(&mut came);
        receiver.receive(&mut came);
        assert_eq!(came.len(), 2);
        cache.clear(&mut came);
        cache.clear(&mut batch);
        drop(cache);
        assert_eq!((pool.outstanding(), pool.late_frees()), (0, 0));
    }

    #[test]
    fn a_bulk_lies_across_the_ring_s_end() {
        let pool = Pool::new(40, 100).unwrap();
        let (mut cache, mut batch) = (pool.cache(), Batch::new(5));
        let (mut sender, mut receiver) = ring(&pool, 7);
        let mut came = Batch::new(5);
        for turn in 0..20_u8 {
            cache.fill(&mut batch, 5);
            for (place, buffer) in batch.packets_mut().iter_mut().enumerate() {
                assert!(buffer.set_frame(&[turn, place as u8], 0));
            }
            sender.send(&mut batch);
            assert!(batch.is_empty());
            receiver.receive(&mut came);
            let packets = came.packets().iter().map(Buffer::packet);
            assert!(packets.eq((0..5).map(|place| [turn, place])));
            cache.clear(&mut came);
        }
        drop(cache);
        assert_eq!((pool.outstanding(), pool.late_frees()), (0, 0));
    }

    #[test]
    fn what_is_of_another_pool_stays_with_the_sender() {
        let (pool, other) = (Pool::new(8, 100).unwrap(), Pool::new(8, 100).unwrap());
        let (mut sender, mut receiver) = ring(&pool, 8);
        let mut batch = Batch::new(8);
        pool.cache().fill(&mut batch, 2);
        other.cache().fill(&mut batch, 2);
        sender.send(&mut batch);
        assert_eq!(batch.len(), 2);
        assert!(!batch.packets().iter().any(|buffer| sender.takes(buffer)));
        drop(batch);
        let mut came = Batch::new(8);
        receiver.receive(&mut came);
        assert!(came.packets().iter().all(|buffer| sender.takes(buffer)));
        assert_eq!(came.len(), 2);
    }

    #[test]
    fn what_is_left_goes_home_with_the_last_end() {
        let pool = Pool::new(16, 100).unwrap();
        for sender_first in [true, false] {
            let (mut sender, receiver) = ring(&pool, 16);
            let mut batch = Batch::new(16);
            pool.cache().fill(&mut batch, 9);
            sender.send(&mut batch);
            assert!(!receiver.is_ended() && !sender.is_ended());
            if sender_first {
                drop(sender);
                assert!(receiver.is_ended());
                drop(receiver);
            } else {
                drop(receiver);
                assert!(sender.is_ended());
                // Too late, and not lost.
                pool.cache().fill(&mut batch, 3);
                sender.send(&mut batch);
                assert_eq!(pool.outstanding(), 12);
                drop(sender);
            }
            assert_eq!(pool.outstanding(), 0);
        }
    }
}
