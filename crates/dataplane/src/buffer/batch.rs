//! A batch: packets that go through the nodes together.

#![allow(
    unsafe_code,
    reason = "a cache takes all slots at once, which is 3 times as fast"
)]

use std::vec::Drain;

use super::Buffer;
use super::moves::{self, Range};
use super::slot::OwnSlot;

/// A run of packets, each in a buffer that the batch owns, up to a most
/// number. Allocated once, and used again and again.
///
/// A batch that is dropped sends its buffers home one by one, which is slow;
/// give them to a [`super::Cache`] (`Cache::clear`) before.
#[derive(Debug)]
pub struct Batch {
    buffers: Vec<Buffer>,
    /// Never more: the vector is not grown.
    most: usize,
}

impl Batch {
    /// Room for so many packets.
    pub fn new(packets: usize) -> Self {
        Self {
            buffers: Vec::with_capacity(packets),
            most: packets,
        }
    }

    /// How many packets are in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.buffers.len()
    }

    /// Whether none is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// How many packets have room in it.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.most
    }

    /// How many more packets have room in it.
    #[inline]
    pub fn room(&self) -> usize {
        self.most - self.buffers.len()
    }

    /// The packets.
    #[inline]
    pub fn packets(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The packets, to be changed in place.
    #[inline]
    pub fn packets_mut(&mut self) -> &mut [Buffer] {
        &mut self.buffers
    }

    /// Adds a packet; it comes back when there is no room.
    #[inline]
    pub fn push(&mut self, buffer: Buffer) -> Result<(), Buffer> {
        if self.room() == 0 {
            return Err(buffer);
        }
        self.buffers.push(buffer);
        Ok(())
    }

    /// Takes the last packet out.
    #[inline]
    pub fn pop(&mut self) -> Option<Buffer> {
        self.buffers.pop()
    }

    /// Takes all packets out, in order.
    #[inline]
    pub fn drain(&mut self) -> Drain<'_, Buffer> {
        self.buffers.drain(..)
    }

    /// Takes out the packets from a place on, in order; none from behind the
    /// end.
    #[inline]
    pub fn drain_from(&mut self, place: usize) -> Drain<'_, Buffer> {
        let place = place.min(self.buffers.len());
        self.buffers.drain(place..)
    }

    /// Takes out the first packets, in order; none from behind the end.
    #[inline(always)]
    pub(crate) fn drain_first(&mut self, count: usize) -> Drain<'_, Buffer> {
        self.buffers.drain(..count.min(self.buffers.len()))
    }

    /// Moves the packets for which `goes` says so to another batch, as far as
    /// it has room. The order of both is kept. O(packets).
    pub fn move_to(&mut self, other: &mut Self, mut goes: impl FnMut(&Buffer) -> bool) {
        let mut room = other.room();
        let moved = self.buffers.extract_if(.., |buffer| {
            let moves = room > 0 && goes(buffer);
            room -= usize::from(moves);
            moves
        });
        other.buffers.extend(moved);
    }

    /// Takes out the packets for which `goes` says so; the order of the rest
    /// is kept. Those not taken from the iterator stay.
    #[inline]
    pub fn extract(
        &mut self,
        mut goes: impl FnMut(&Buffer) -> bool,
    ) -> impl Iterator<Item = Buffer> {
        self.buffers.extract_if(.., move |buffer| goes(buffer))
    }

    /// Adds empty buffers, of up to `count` slots from the end of `stock`,
    /// which are the pool's.
    #[inline(always)]
    pub(super) fn alloc_bulk(&mut self, stock: &mut Vec<OwnSlot>, count: usize, pool: Range) {
        let count = count.min(stock.len()).min(self.room());
        let (rest, len) = (stock.len() - count, self.buffers.len());
        // SAFETY: `count` slots are behind `rest`, and places behind `len`;
        // the stock forgets the slots before they are read, each once.
        unsafe {
            stock.set_len(rest);
            let to = self.buffers.as_mut_ptr().add(len);
            moves::alloc_bulk(stock.as_ptr().add(rest), to, count, pool);
            self.buffers.set_len(len + count);
        }
    }

    /// Empties it: moves the slots of all buffers to the end of `stock`.
    /// False, with nothing done, when that has no room, or when one of them
    /// is not of the pool.
    #[inline(always)]
    pub(super) fn free_bulk(&mut self, stock: &mut Vec<OwnSlot>, pool: Range) -> bool {
        let (count, len) = (self.buffers.len(), stock.len());
        if stock.capacity() - len < count {
            return false;
        }
        // SAFETY: `count` places are behind `len`, and `count` handles are
        // here; they are forgotten before the stock knows of their slots.
        unsafe {
            let to = stock.as_mut_ptr().add(len);
            let are_ours = moves::free_bulk(self.buffers.as_ptr(), to, count, pool);
            if are_ours {
                self.buffers.set_len(0);
                stock.set_len(len + count);
            }
            are_ours
        }
    }

    /// Adds packets; what there is no room for is dropped.
    #[inline(always)]
    pub(super) fn add(&mut self, buffers: impl Iterator<Item = Buffer>) {
        let (len, room) = (self.buffers.len(), self.room());
        let mut places = self.buffers.spare_capacity_mut().iter_mut().take(room);
        let mut added = 0;
        // Not a loop of `push`: a ring's iterator is at its best from inside.
        buffers.for_each(|buffer| {
            if let Some(place) = places.next() {
                place.write(buffer);
                added += 1;
            }
        });
        // SAFETY: so many places behind `len` are written.
        unsafe { self.buffers.set_len(len + added) };
    }
}
