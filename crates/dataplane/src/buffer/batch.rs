//! A batch: packets that go through the nodes together.

#![allow(
    unsafe_code,
    reason = "a bulk of slots changes hands at once, which is 3 times as fast"
)]

use super::Buffer;
use super::moves::{Moves, Range};
use super::row::Row;
use super::slot::OwnSlot;

/// A run of packets, each in a buffer that the batch owns, up to a most
/// number. Allocated once, and used again and again.
///
/// A batch that is dropped sends its buffers home one by one, which is slow;
/// give them to a [`super::Cache`] (`Cache::clear`) before.
#[derive(Debug)]
pub struct Batch {
    buffers: Row<Buffer>,
}

impl Batch {
    /// Room for so many packets.
    pub fn new(packets: usize) -> Self {
        Self {
            buffers: Row::new(packets),
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
        self.buffers.most()
    }

    /// How many more packets have room in it.
    #[inline]
    pub fn room(&self) -> usize {
        self.buffers.room()
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
        self.buffers.push(buffer)
    }

    /// Takes the last packet out.
    #[inline]
    pub fn pop(&mut self) -> Option<Buffer> {
        self.buffers.pop()
    }

    /// Takes all packets out, in order.
    #[inline]
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = Buffer> {
        self.drain_from(0)
    }

    /// Takes out the packets from a place on, in order; none from behind the
    /// end.
    #[inline]
    pub fn drain_from(&mut self, place: usize) -> impl ExactSizeIterator<Item = Buffer> {
        self.buffers.drain(place..usize::MAX)
    }

    /// Takes out the first packets, in order.
    #[inline(always)]
    pub(crate) fn drain_first(&mut self, count: usize) -> impl Iterator<Item = Buffer> {
        self.buffers.drain(0..count)
    }

    /// Moves the packets for which `goes` says so to another batch, as far as
    /// it has room. The order of both is kept. O(packets).
    pub fn move_to(&mut self, other: &mut Self, mut goes: impl FnMut(&Buffer) -> bool) {
        let mut room = other.room();
        let moved = self.buffers.extract(|buffer| {
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
        self.buffers.extract(move |buffer| goes(buffer))
    }

    /// Adds empty buffers, of up to `count` slots from the end of `stock`.
    #[inline(always)]
    pub(super) fn adopt(&mut self, stock: &mut Row<OwnSlot>, count: usize, moves: Moves) {
        let count = count.min(stock.len()).min(self.room());
        let (rest, len) = (stock.len() - count, self.buffers.len());
        // SAFETY: `count` slots are behind `rest`, and places behind `len`;
        // the stock forgets the slots before they are read, each once.
        unsafe {
            stock.set_len(rest);
            let to = self.buffers.as_mut_ptr().add(len);
            moves.adopt(stock.as_ptr().add(rest), to, count);
            self.buffers.set_len(len + count);
        }
    }

    /// Empties it: moves the slots of all buffers to the end of `stock`.
    /// False, with nothing done, when that has no room, or when one of them
    /// is not of the pool.
    #[inline(always)]
    pub(super) fn surrender(
        &mut self,
        stock: &mut Row<OwnSlot>,
        pool: Range,
        moves: Moves,
    ) -> bool {
        let (count, len) = (self.buffers.len(), stock.len());
        if stock.room() < count {
            return false;
        }
        // SAFETY: `count` places are behind `len`, and `count` handles are
        // here; they are forgotten before the stock knows of their slots.
        unsafe {
            let to = stock.as_mut_ptr().add(len);
            let are_ours = moves.surrender(self.buffers.as_ptr(), to, count, pool);
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
        self.buffers.extend(buffers);
    }
}
