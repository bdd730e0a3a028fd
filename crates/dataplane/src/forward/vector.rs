//! The packets of one family on their way through the nodes, as columns.

use super::MAX_BATCH;
use crate::neighbour::{Adjacency, Key};

/// An address as the FIB takes it.
pub trait Destination: Copy + Default {
    /// Whether it is IPv6's.
    const IS_V6: bool;
    /// The neighbour of this address on a port's link.
    fn on(self, port: u16) -> Key;
    /// Where a packet goes.
    fn of_packet(packet: &[u8]) -> Self;
}

impl Destination for u32 {
    const IS_V6: bool = false;

    #[inline(always)]
    fn on(self, port: u16) -> Key {
        Key::v4(port, self)
    }

    #[inline(always)]
    fn of_packet(packet: &[u8]) -> Self {
        let bytes = packet.get(16..20).and_then(|to| to.try_into().ok());
        debug_assert!(bytes.is_some(), "an IPv4 header was checked");
        Self::from_be_bytes(bytes.unwrap_or_default())
    }
}

impl Destination for u128 {
    const IS_V6: bool = true;

    #[inline(always)]
    fn on(self, port: u16) -> Key {
        Key::v6(port, self)
    }

    #[inline(always)]
    fn of_packet(packet: &[u8]) -> Self {
        let bytes = packet.get(24..40).and_then(|to| to.try_into().ok());
        debug_assert!(bytes.is_some(), "an IPv6 header was checked");
        Self::from_be_bytes(bytes.unwrap_or_default())
    }
}

/// Packets of one family: for each the place of its frame, the port it came
/// in by, where it goes.
#[derive(Debug)]
pub struct PacketVector<A> {
    len: usize,
    at: [u8; MAX_BATCH],
    port: [u16; MAX_BATCH],
    to: [A; MAX_BATCH],
    pub(super) hop: [u16; MAX_BATCH],
    pub(super) way: [Adjacency; MAX_BATCH],
    pub(super) goes: [bool; MAX_BATCH],
}

impl<A: Destination> Default for PacketVector<A> {
    fn default() -> Self {
        Self {
            len: 0,
            at: [0; MAX_BATCH],
            port: [0; MAX_BATCH],
            to: [A::default(); MAX_BATCH],
            hop: [0; MAX_BATCH],
            way: [Adjacency::default(); MAX_BATCH],
            goes: [false; MAX_BATCH],
        }
    }
}

impl<A: Destination> PacketVector<A> {
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len.min(MAX_BATCH)
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the packet of a frame; the batch is no longer than the vector.
    #[inline(always)]
    pub(super) fn push(&mut self, at: usize, port: u16, to: A) {
        let end = self.len & (MAX_BATCH - 1);
        self.at[end] = at as u8;
        self.port[end] = port;
        self.to[end] = to;
        self.len += 1;
    }

    /// Place of a packet's frame.
    #[inline(always)]
    pub(super) fn at(&self, k: usize) -> usize {
        usize::from(self.at[k])
    }

    /// The port that a packet came in by.
    #[inline(always)]
    pub(super) fn port(&self, k: usize) -> u16 {
        self.port[k]
    }

    /// Where a packet goes.
    #[inline(always)]
    pub(super) fn to(&self, k: usize) -> A {
        self.to[k]
    }

    pub(super) fn ports(&self) -> &[u16] {
        &self.port[..self.len()]
    }

    /// Destinations, and room for their next hops.
    #[inline(always)]
    pub(super) fn look_up(&mut self) -> (&[A], &mut [u16]) {
        let len = self.len();
        (&self.to[..len], &mut self.hop[..len])
    }

    /// The same packet by packet, with the port of each.
    pub(super) fn look_up_each(&mut self, mut each: impl FnMut(u16, &[A], &mut [u16])) {
        for k in 0..self.len() {
            each(self.port[k], &self.to[k..=k], &mut self.hop[k..=k]);
        }
    }

    /// Moves a packet to an earlier place, with the way that was found.
    #[inline]
    pub(super) fn keep(&mut self, k: usize, kept: usize, hop: u16, way: Adjacency) {
        self.at[kept] = self.at[k];
        self.port[kept] = self.port[k];
        self.to[kept] = self.to[k];
        self.hop[kept] = hop;
        self.way[kept] = way;
    }

    /// Moves a packet to an earlier place.
    #[cold]
    pub(super) fn move_to(&mut self, k: usize, kept: usize) {
        self.at[kept] = self.at[k];
        self.port[kept] = self.port[k];
        self.to[kept] = self.to[k];
        self.hop[kept] = self.hop[k];
        self.way[kept] = self.way[k];
    }

    /// Keeps so many of the first.
    #[inline(always)]
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = len.min(self.len);
    }

    /// Keeps the packets for which it is true, and reads anew where they
    /// go.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(usize) -> Option<A>) {
        let mut kept = 0;
        for k in 0..self.len() {
            let at = self.at[k];
            if let Some(to) = keep(usize::from(at)) {
                self.at[kept] = at;
                self.port[kept] = self.port[k];
                self.to[kept] = to;
                kept += 1;
            }
        }
        self.len = kept;
    }
}
