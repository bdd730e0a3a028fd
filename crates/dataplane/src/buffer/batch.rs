//! A batch: packets that go through the nodes together.

use std::vec::Drain;

use super::Buffer;

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

    /// Adds packets; no more than there is room for are asked for.
    #[inline(always)]
    pub(crate) fn add(&mut self, buffers: impl ExactSizeIterator<Item = Buffer>) {
        let room = self.room();
        self.buffers.extend(buffers.take(room));
    }
}
